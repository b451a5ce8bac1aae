"""Layer 1, tool-result storage: store large tool results on disk and send a preview.

- `policy`: the settings, which results are stored, and the text of the preview.
- `spill`: decides once for each result, and stores it on disk before anything refers to it; reads
  it for other agents.
"""
