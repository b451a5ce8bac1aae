"""Transcripts of other agents, and our own, read line by line as a stream of entries.

- `entries`: what a line can say, whoever wrote it; the reader of plain Messages JSONL.
- `claude_requests`: requests and running costs in transcripts of Claude Code.
- `claude_code`, `codex`, `own`: the readers of the other formats.
- `transcripts`: finding transcripts, telling their format, and reading them.

Readers keep no history. `replay` makes calls from entries, and costs from calls.
"""
