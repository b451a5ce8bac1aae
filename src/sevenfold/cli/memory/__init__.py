"""Commands on memories: `memory`, `recall` and `dream`.

- `context`: the memories of a project, opened for a command.
- `command`: `sevenfold memory`, its dispatch, and `memory review`.
- `listing`: `memory list`, `show` and `search`.
- `check`: `memory check`.
- `change`: `memory add`, `edit`, `rm`, `import` and `export`; and of the history `log`, `diff`, `blame`,
  `revert`, `undo`, `restore` and `purge`.
- `recall`: `sevenfold recall`.
- `dream`: `sevenfold dream`.
"""
