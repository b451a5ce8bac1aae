"""One agent and its turns: from a user message to the final answer, round by round.

- `agent`: the loop itself.
- `turn`: the state of a running turn, its events and its end; what an agent is built from.
- `choose_provider`: which provider and model answer a request.
"""
