"""The resident process: one per user, which keeps memories, indexes and the encoder loaded for other agents.

- `client`: `request` asks it, and starts it when there is none. Standard library only.
- `server`: the process itself: a Unix socket, one request at a time for each project.
- `operations`: what it can be asked for, as functions that also run in any other process.
- `projects`: what it keeps open for each project, followed when files change.
- `agent_sessions`: sessions of other agents: their conversations, and what each was shown.
- `agent_hooks`: what the hooks of other agents answer. `hook_script` is the program that those agents run.
- `agent_configs`: what `sevenfold install` writes into the configuration of other agents.
- `commented_json`: the same in JSON with comments.
- `extraction`: what is learnt from the transcripts of other agents, after a turn.
- `learning_model`: the model that may help with it, where the user has named one.

`perform` asks it, and does the work in this process where it cannot be had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


_SILENT_SECONDS = 1.0
"""To wait for one that gave no answer the last time: it may hang, and then each call would wait in full."""
_SILENT = [False]


def perform(operation: str, arguments: Mapping[str, object], *, deadline_seconds: float) -> dict[str, object]:
    """What the resident process answers, or the same from this process, which takes longer."""
    from sevenfold.core.errors import ResidentUnavailable
    from sevenfold.resident.client import request

    timeout = min(deadline_seconds, _SILENT_SECONDS) if _SILENT[0] else deadline_seconds
    try:
        found = request(operation, arguments, deadline_seconds=timeout)
    except ResidentUnavailable:
        from sevenfold.resident.operations import run_once

        _SILENT[0] = True
        return run_once(operation, arguments)
    _SILENT[0] = False
    return found
