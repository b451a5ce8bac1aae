"""Recall: find the memories that a prompt is about.

- `policy`: the settings, which candidates are recalled, the side query to a cheap model, and recalled
  memories as the model reads them.
- `layer`: `RecallLayer`, the step of a request: searches for a prompt and appends what was found.
- `asking`: whether a prompt asks for anything, by its form.
- `finder`: searches a memory directory and checks what it found; `recall` is the public entry point.
- `prompts/`: the prompt of the side query.
"""
