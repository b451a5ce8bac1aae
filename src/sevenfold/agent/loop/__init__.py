"""One agent and its turns: from a user message to the final answer, round by round.

- `agent`: the loop itself.
- `turn`: the state of a running turn, its events and its end; what an agent is built from; `LoopGuard`, which
  notices a failing call that is made again and again.
- `rewind`: going back to an earlier message, with the files.
- `choose_provider`: which provider and model answer a request.
"""
