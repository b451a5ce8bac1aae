"""A proxy between an agent that somebody else wrote and its model: it forwards every byte and keeps the bill.

In the order in which a request passes them:

- `server`: HTTP: forwards raw requests and streams responses; a server on a local port, in a thread.
- `profiles`: the agents that are known: how to recognize, configure and start each.
- `requests`: what a request is for, and which conversation it belongs to. Pure.
- `responses`: reads the usage from a response while it is forwarded.
- `ledger`: every request with its cost, and why the cache was not used; on disk and as a receipt.
"""
