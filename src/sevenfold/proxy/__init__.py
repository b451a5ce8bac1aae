"""A proxy between an agent that somebody else wrote and its model: it forwards, bills, and runs the layers.

In the order in which a request passes them:

- `server`: HTTP: forwards raw requests and streams responses; a server on a local port, in a thread.
- `headers`: what of a request's headers is passed on. Pure.
- `profiles`: the agents that are known: how to recognize and start each, and what may be done for it.
- `agent_files`: a copy of the file that leads an agent, for one run.
- `agent_servers`: which server an agent's own configuration names.
- `requests`: what a request is for, and which conversation it belongs to. Pure.
- `layers`: all conversations, and what is done around each request of a run.
- `turns`: one main turn: what is decided for its new messages, and what is sent.
- `clearing`: when old results are cleared and a conversation is compacted.
- `bodies`: the body of a request, and the few edits that it can be written with. Pure.
- `state`: what was decided in each conversation, on disk.
- `machine_text`: what in the messages of a user no person said.
- `memory`: what a prompt recalls, the rules of a call, and what a turn has taught.
- `responses`: reads the usage from a response while it is forwarded.
- `ledger`: every request with its cost, what the layers did to it, and why the cache was not used; on disk.
- `receipt`: the ledger as a person reads it, and the ledgers of earlier sessions.
"""
