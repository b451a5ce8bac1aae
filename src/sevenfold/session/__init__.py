"""The session: what a loop calls. `prepare` before each model call, `record` after it, `turn_ended` at the
end of a turn.

- `session`: `Session`, the public class; start here.
- `pipeline`: `ViewBuilder`, from history to view.
- `history`, `history_sync`: the append-only history, and how the session follows a list of the caller.
- `model_limits`: the window of the model, and messages in a form that it accepts.
- `context`, `compaction`, `memory`, `notes`: the layers applied to the view of one session; `compaction` also
  clears old tool results.
- `cache`: breakpoints, breaks of the prefix, usage.
- `budget`, `governor`: caps on the cost of background work: the arithmetic, and applying it to every call.
- `journal`: writes the transcript; `MonitoredProvider` records the calls of forks.
- `settings`: all sections of settings.
- `opening`, `resume`: opens a session, and rebuilds the view of one that continues.
- `blocking`: the same session for code without `async`.

Decisions belong to `sevenfold.layers`; this folder applies them.
"""

from sevenfold.session.session import Session

__all__ = ["Session"]
