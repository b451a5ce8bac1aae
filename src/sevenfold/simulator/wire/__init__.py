"""Requests and responses of the simulated Messages API.

- `messages_request`: a request: headers, version, betas and body; its content blocks, and `cache_edits`, an
  extension that deletes tool results inside the cached prefix.
- `models`: what each model accepts, the known values of the beta header, and the models endpoint.
- `choices`: switches for what the contract leaves open, and rate limits.
- `error_response`: error responses, and parsing that refuses with a path.
- `message_cache`: parsed messages and what was computed from them, reused across requests.
- `signatures`: signatures of thinking and compaction blocks, and the hash chain that binds thinking.
- `answer`: a reply as stream events, and its usage.
"""
