"""Layer 7, forks and messages: model runs that inherit the prefix of a conversation, and what agents send
each other.

- `policy`: the brief of a fork, its permissions, and the messages appended for it; addresses, kinds of
  messages between agents, and how a message appears in a history.
- `runner`: runs a fork; `ForkBatch` coordinates forks that start together.

Nothing here changes the messages of the parent: a fork only appends.
"""
