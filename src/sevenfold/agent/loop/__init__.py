"""One agent and its turns: from a user message to the final answer, round by round.

- `agent`: the loop itself.
- `turn`: the state of a running turn, its events and its end; what an agent is built from.
- `project_context`: settings, folders and the session that an agent opens with; asks a person before settings
  files of a project take effect.
- `choose_provider`: which provider and model answer a request.
"""
