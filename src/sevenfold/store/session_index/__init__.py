"""An index of all sessions on this machine: ours, Claude Code's and Codex's.

- `passages`: what people and models said in a transcript, in pieces that can be found and shown.
- `index`: the pieces in an SQLite database with full-text search. It reads only what is new in a transcript.
- `finder`: the turns that a query is about.
- `database`: an SQLite database that is built again when it is damaged; what reports computed from
  transcripts is kept in one.

The index holds nothing that the transcripts do not hold: it can be deleted at any time, and is built again.
"""
