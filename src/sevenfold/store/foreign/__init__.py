"""Other agents' transcripts, read line by line: Claude Code, Codex, and plain Messages JSONL."""
