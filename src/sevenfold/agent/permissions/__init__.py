"""Decides whether a tool call may run.

- `rules`: permission rules such as `edit(src/**)`, parsed and matched; adding one to a person's settings.
- `command_patterns`: commands by their first words, such as `git log *`.
- `guard`: applies mode and rules to a call, and asks a person where needed.
- `rule_guard`: shows the model the memory rules that apply to a call before it runs.
"""
