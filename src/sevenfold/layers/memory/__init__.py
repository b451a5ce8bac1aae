"""Layer 5, memory: learn memories from a conversation, and show them when a prompt or an action needs them.

- `extraction`: learns memories from a turn.
- `trust`: finds out whose words a memory is, and whether what it names still exists.
- `search`: ranks memories by words and, if set up, by vectors.
- `recall`: chooses the memories that a prompt is about.
- `rule_policy`: which memories apply before an action, and how they are shown.
- `rule_reader`: reads these rules from the memories of a project.
- `overview`: a memory with its uses, its rule and what of it could not be confirmed.

The files themselves belong to `sevenfold.store.memory`.
"""
