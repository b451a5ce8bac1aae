"""Builds an agent from settings: project, session, model, tools and background work.

- `open_agent`: the entry point; calls everything below.
- `workspace`: asks a person about settings files, lists the files of a repository that need an agreement, and
  finds the session to resume.
- `toolset`: the tools of a session, and its system prompt.
- `memory`: memory in an agent: attribution of saves, rules, and sync with a team.
- `background_work`: what runs after a turn: living documents, memory extraction, dreams.
- `teammate`: the main program of an agent in a process of its own.
"""
