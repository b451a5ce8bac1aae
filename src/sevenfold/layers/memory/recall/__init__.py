"""Recall: find the memories that a prompt is about.

- `policy`: the settings, which candidates are recalled, and the side query to a cheap model.
- `finder`: searches a memory directory and checks what it found; `recall` is the public entry point.
- `render`: recalled memories as the model reads them.
"""
