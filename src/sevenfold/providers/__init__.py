"""Models: a request goes in and a response comes out, as values of `core/requests.py`.

- `provider`: what every provider offers, and what their modules share.
- `anthropic`: the Messages API.
- `openai`: chat completions and the Responses API, also of compatible servers.
- `local`: a GGUF file on this machine, and counting tokens with a model's own tokenizer.
- `scripted`: answers from a script, for tests.
- `error_map`: errors of SDKs and of HTTP as errors of ours.
- `reply_limits`: bytes and time that an endpoint may take; requests sent again after a failure, with short
  waits that are shown.

Nothing here changes a history or chooses what is sent. SDKs are imported when a provider is first used.
"""
