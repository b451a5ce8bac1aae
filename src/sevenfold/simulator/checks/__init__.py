"""What the simulated API refuses, as the real one does.

- `validate`: runs all checks in the API's order; checks roles and tool pairs itself.
- `validate_params`: the fields of a request, and its tools.
- `blocks`: content blocks, and thinking blocks that a client sends back.
- `context_management`: context edits and compaction blocks.
"""
