"""Help, examples and arguments of each command. `--help` loads all of them, so they import little.

- `shared`: arguments that several commands have.
- `running`: `chat`, `tour`, `simulate`, `team` and `serve`.
- `inspect`: `context`, `stats`, `spend`, `doctor`, `settings`, `layers` and `replay`.
- `memory`: `memory`, `recall`, `search` and `dream`.
"""
