"""The memory folder of a project, and its history.

- `directory`: `MemoryDir`, which everybody else uses.
- `changes`: what is done to memories, as values.
- `plan`: what a change would record, or why it may not.
- `records`: the lines of the history, as values and as JSON.
- `files`: the files of the folder, and the log.
- `state`: what is accepted and what waits, from the lines of the history.
- `history`: appending to the history, and reading who changed what.
- `upkeep`: bringing files up to date, and noticing edits by others.
- `index_text`: the text of `MEMORY.md`.
- `purge`: erasing versions for good.
- `sidecars`: what is known of memories besides their text.

Files in the memory folder follow from the history: change memories through `MemoryDir` only.
"""
