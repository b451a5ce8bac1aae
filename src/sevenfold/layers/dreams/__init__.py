"""Layer 6, dreams: consolidate the memories of a project between sessions.

- `policy`: the settings, when a dream is due, and the brief of its fork.
- `inputs`: what a dream reads: memories, their use, daily logs, what past sessions say of memories in doubt;
  and `DreamGate`, which asks whether one is due.
- `dreamer`: runs a dream from its lock to its commit; start here to follow the code.
- `merge`: the part that needs no model: duplicates, dates, stale memories, daily logs.
- `workspace`: the copy of the memories that the fork edits, and the tools it has.
- `check`: compares the result with the memories, so that no fact is lost without a valid reason.
- `publish`: commits what passed the check, and proposes the rest to a person; the record of each dream on
  disk.
- `prompts/`: the prompt of a dream.

A dream works on a copy. Only `publish` changes the memories, in one commit.
"""
