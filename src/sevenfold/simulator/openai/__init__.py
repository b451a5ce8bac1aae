"""The simulator's endpoints in OpenAI's format, with the same `Brain` and ledger.

- `routes`: HTTP.
- `exchange`: one request and its response.
- `conversation`: requests, replies and parsing that both endpoints share.
- `chat`: Chat Completions.
- `responses`: Responses.
"""
