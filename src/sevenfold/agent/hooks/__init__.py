"""Hooks: user commands that run before and after an agent's actions, in Claude Code's format.

- `config`: parses the hooks of one settings file.
- `files`: finds the files that may define hooks; those of a repository need a person's consent.
- `results`: parses what hooks answer and merges the answers.
- `runner`: runs the hooks of a session at each event.
"""
