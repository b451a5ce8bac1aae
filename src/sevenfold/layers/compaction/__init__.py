"""Layer 4, compaction: when the window fills, replace the history by a summary and continue.

- `policy`: the settings, the order of the strategies, and the breaker that stops repeated failures.
- `job`: what a compaction is given and returns, and the state of one that is running.
- `layer`: `CompactionLayer`, the step of a request, and `WindowPlan`, the window of the model.
- `compactor`: runs one compaction; start here to follow the code.
- `summary_methods`: the strategies: those that ask a model, and notes, structural notes and the clip.
- `keep_policy`: whether notes can replace the history, which messages stay beside them, and which files and
  other content return to the view.
- `trim`: a view as rounds, messages with parts removed, and the price of a summary request.
- `summary`: the text of a summary: request, parsing, the user's quoted messages.
- `compose`: builds the new view from a draft.
- `hooks`: calls the caller's hooks before and after a compaction.
- `prompts/`: the prompts of a summary.
"""
