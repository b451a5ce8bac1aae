"""The simulator's endpoints in OpenAI's format, with the same `Brain` and ledger.

- `exchange`: the HTTP routes, and one request and its response.
- `chat`: Chat Completions; requests, replies and parsing that both endpoints share.
- `responses`: Responses.
- `prompt`: a request as the cache sees it, and where it leaves the one before it; schemas of tools.
"""
