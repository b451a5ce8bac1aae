"""One agent and its turns: from a user message to the final answer, round by round.

- `agent`: the loop itself.
- `turn`: the state of a running turn, its events and its end.
- `deps`: what an agent is built from, and where its events go.
- `project_context`: settings, folders and the session that an agent opens with.
- `local_settings`: asks a person before settings files of a project take effect.
- `choose_provider`: which provider and model answer a request.
"""
