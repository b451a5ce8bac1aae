"""The session: what a loop calls. `prepare` before each model call, `record` after it, `turn_ended` at the
end of a turn.

- `session`: `Session`, the public class; start here. `prepare` shows the steps of a request in their order.
- `pipeline`: opens what a session works with, and builds these steps around one conversation
  (`sevenfold.layers.conversation`).
- `rebuilding`: rebuilds the view of a session that continues.
- `earlier`: finds the session that a caller's list of messages goes on with.
- `history`, `history_sync`: the append-only history, and how the session follows a list of the caller.
- `cache`: the request with its breakpoints, breaks of the prefix, usage.
- `budget`, `governor`: caps on the cost of background work: the arithmetic, and applying it to every call.
- `settings`: all sections of settings, and what the steps work with.
- `opening`: `Workspace`, which reads settings and opens the project once.
- `blocking`: the same session for code without `async`.

A step belongs to the folder of its layer in `sevenfold.layers`; this folder puts them in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sevenfold.session.session import Session

__all__ = ["Session"]


def __getattr__(name: str) -> object:
    # When it is asked for: commands that only read settings from `opening` do not load the layers.
    if name != "Session":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sevenfold.session.session import Session

    return Session
