"""Rules: memories that say before which actions they apply.

- `policy`: the settings, and whether an action meets a condition.
- `reader`: reads the rules of a project, and again when a memory has changed.
- `render`: a rule as the model reads it, and whether the view still shows it.
"""
