"""What a person asks for by name: to delete a shared memory for all. Only while no exchange is under way."""

from __future__ import annotations

from dataclasses import replace

from sevenfold.core.errors import InputError, LockBusy
from sevenfold.team.client.pending_write import new_write_mark, resolve_pending_write
from sevenfold.team.client.ports import FileChange, LocalFiles, SyncLedger
from sevenfold.team.client.state import PendingWrite, after_pending_write
from sevenfold.team.protocol import TeamKey

_TRIES = 3


async def delete_for_all(key: TeamKey, files: LocalFiles, ledger: SyncLedger) -> None:
    """Remove the file and write down the wish; the next exchange tells the others.

    The wish counts once the file is gone, also where this is cut off in between: the old text would come back
    from the server otherwise. A file that is there beside the wish has been written since, and stays.
    """
    for _ in range(_TRIES):
        here = await files.scan()
        mine = here.get(key)
        if mine is None:
            raise InputError(f"there is no {key!r} in the team's folder; `sevenfold team status` lists it")
        if mine.hold:
            raise InputError(f"{key!r} is not deleted: {mine.hold}")
        state = await resolve_pending_write(await ledger.read(), files)
        leaving = PendingWrite(new_write_mark(), {}, {key: mine.checksum})
        state = replace(state, incoming=leaving)
        await ledger.write(state)
        is_gone = await files.write([FileChange(key, mine.checksum, None)], leaving.mark)
        await ledger.write(after_pending_write(state, came=is_gone))
        if is_gone:
            return
    raise LockBusy(f"{key!r} keeps changing, and was not deleted; try again")
