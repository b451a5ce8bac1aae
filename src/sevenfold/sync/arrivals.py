"""Texts on their way into the files: whoever was cut off asks the files what became of them."""

from __future__ import annotations

import secrets

from sevenfold.sync.ports import Files
from sevenfold.sync.state import SyncState, after_arrival


def new_mark() -> str:
    """One that no other write has."""
    return secrets.token_hex(8)


async def with_arrival_known(state: SyncState, files: Files) -> SyncState:
    if state.incoming is None:
        return state
    return after_arrival(state, came=await files.was_written(state.incoming.mark))
