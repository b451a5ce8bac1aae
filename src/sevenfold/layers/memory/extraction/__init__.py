"""Extraction: learn memories from what a user says in a turn.

- `policy`: the settings, when a turn is searched, and the brief of the fork.
- `writer`: runs extraction after a turn, with a fork or with rules; start here to follow the code.
- `statements`: what a user states explicitly, found without a model.
- `topics`: turns statements into memories.
- `statement_reader`: runs both over a conversation.
- `tools`: the tools of a fork, which writes drafts in memory.
- `gate`: accepts or refuses every draft, whoever wrote it.

Extraction saves nothing that did not pass `gate`.
"""
