"""Layer 3, session notes: running notes of a session, written in the background.

- `policy`: the settings, when an update is due, the size limits, and the brief of the fork.
- `writer`: `NotesLayer` takes every message, `NotesWriter` updates the notes file; start here to follow the
  code.
- `structural_notes`: the notes without a model, from the messages alone; it uses the three modules below.
- `tool_calls`: what a tool call does, and how it ended.
- `file_ledger`: the files of a session.
- `work_ledger`: turns, commands, errors and answers.
- `sections`: splits and renders the notes file, fits entries to a limit, and keeps edits made by hand.
- `notes_file`: the notes and their record on disk.
- `prompts/`: the template of the notes, and the prompt of an update.
"""
