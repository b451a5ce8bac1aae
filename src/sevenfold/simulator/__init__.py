"""A local Messages API that validates, caches and bills as the provider does, and costs nothing.

A request goes from `app` (HTTP) to `exchange`, which calls in turn:

- `wire/messages_request`: parses headers and body.
- `checks/validate`: refuses what the API refuses.
- `prepare`: checks thinking and applies context edits.
- `reply_generation`: looks up the cache, gets a reply from a `Brain`, and computes the bill.
- `wire/answer`: the reply as stream events, and its usage.

The other modules:

- `server`: runs the application on a local port, in a thread.
- `state/`: what the simulator keeps between requests.
- `responders/`: `Brain` and its implementations. They use values of `core` only, so both APIs share them.
- `openai/`: the endpoints in OpenAI's format.
- `cache_edits`: an extension that deletes tool results inside the cached prefix.

docs/simulator-contract.md lists the rules that the simulator follows.
"""
