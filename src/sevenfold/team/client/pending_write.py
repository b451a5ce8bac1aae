"""Texts on their way into the files: whoever was cut off asks the files what became of them."""

from __future__ import annotations

import secrets

from sevenfold.team.client.ports import LocalFiles
from sevenfold.team.client.state import SyncState, after_pending_write


def new_write_mark() -> str:
    """One that no other write has."""
    return secrets.token_hex(8)


async def resolve_pending_write(state: SyncState, files: LocalFiles) -> SyncState:
    if state.incoming is None:
        return state
    return after_pending_write(state, came=await files.was_written(state.incoming.mark))
