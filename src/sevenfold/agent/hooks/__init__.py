"""Hooks: user commands that run before and after an agent's actions, in Claude Code's format.

- `config`: finds and parses the files that define hooks, and what hooks answer. Files of a repository need a
  person's consent.
- `runner`: runs the hooks of a session at each event.
- `claude_response`: what a tool returned, in the form that hooks of Claude Code expect.
"""
