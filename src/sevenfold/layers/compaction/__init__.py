"""Layer 4, compaction: when the window fills, replace the history by a summary and continue.

- `policy`: the settings, the order of the strategies, and the breaker that stops repeated failures.
- `job`: what a compaction is given and returns, and the state of one that is running.
- `compactor`: runs one compaction; start here to follow the code.
- `local_summary`: the strategies that ask no model: notes, structural notes, and the clip.
- `notes_policy`: whether notes can replace the history, and which messages stay beside them.
- `model_summary`: the strategies that ask a model.
- `trim`: a view as rounds, messages with parts removed, and the price of a summary request.
- `summary`: the text of a summary: request, parsing, the user's quoted messages.
- `compose`: builds the new view from a draft.
- `restore_policy`: which files and other content return to the view.
- `hooks`: calls the caller's hooks before and after a compaction.
"""
