"""Everything on disk. Every durable operation goes through `files.disk.Disk`, every name through a
`files.folder.Folder`.

- `files`: folders, keys, locks and durable operations.
- `project`: a project's folders, settings files, instruction files and consent, and the user's own files.
- `transcript`: the append-only record of a session.
- `memory`: the memory folder of a project, and its history.
- `mailbox`: mail between agents in different processes, and the signature that it carries.
- `safe_git`: running git safely.
- `foreign`: transcripts of other agents and our own, as entries.
- `session_index`: an index of all sessions on the machine, for searching them.

Nothing here calls a model or decides what a request holds. The rules for writers are in `docs/store.md`.
"""
