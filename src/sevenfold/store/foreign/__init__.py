"""Transcripts of other agents, read line by line as a stream of entries.

- `entries`: what a line can say, whoever wrote it.
- `claude_code`, `codex`, `plain`: one reader for each format.
- `transcripts`: finding transcripts, telling their format, and reading them.

Readers keep no history. `replay` makes calls from entries, and costs from calls.
"""
