"""Extraction: learn memories from what a user says in a turn.

- `settings`: its section of the settings.
- `policy`: when a turn is searched, the brief of the fork, and how statements become memories.
- `writer`: runs extraction after a turn, with a fork or with rules; start here to follow the code.
- `statements`: what a user states explicitly, found without a model; `cues`: the words for it, by language;
  `cues_romance`, `cues_unspaced`: those of Romance languages, and of languages without spaces;
  `cue_patterns`: which language it is, and its words as patterns.
- `drafts`: drafts of memories: `StatementReader` makes them with the two modules above, a fork with
  `ExtractionTools`.
- `gate`: accepts or refuses every draft, whoever wrote it.
- `prompts/`: the prompts of the fork.

Extraction saves nothing that did not pass `gate`.
"""
