"""One holder a session: a second would go on from what it has read, and neither see the other's words.

The kernel's lock of an open file keeps others out, and lets go when its holder dies, however it does. Who
holds it stands in a file beside it, for people to read: exclusion does not rest on that.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from sevenfold.core.clock import Clock
from sevenfold.core.errors import LockBusy, SessionBusy, SevenfoldError, StoreError
from sevenfold.core.events import Emit, LockFaceFailed, ignore_event
from sevenfold.core.json import freeze, read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.mutex import mutex

_NAME = "session"
HOLDER = "session.json"
MAX_HOLDER_BYTES = 4_096


@contextmanager
def hold_session(folder: Folder, session: str, clock: Clock, emit: Emit = ignore_event) -> Generator[None]:
    """Keep others out of a session for the block; `SessionBusy` at once where somebody is in."""
    with ExitStack() as held:
        try:
            held.enter_context(mutex(folder, _NAME, wait=timedelta()))
        except LockBusy as error:
            raise SessionBusy(
                f"session {session} is open in {_holder(folder)}; go on there, close it there, or start "
                "another session (`sevenfold context` can look at one that is open)"
            ) from error
        told = {"pid": os.getpid(), "host": socket.gethostname(), "since": clock.now().isoformat()}
        try:
            folder.replace(HOLDER, write_json(freeze(told)))
        except StoreError as error:
            emit(LockFaceFailed(f"{_NAME} {session}", str(error)))
        yield


def _holder(folder: Folder) -> str:
    try:
        told = read_object(folder.read(HOLDER, max_bytes=MAX_HOLDER_BYTES))
    except SevenfoldError:
        return "another process"
    pid, host = told.get("pid"), told.get("host")
    if (pid, host) == (os.getpid(), socket.gethostname()):
        return f"this process ({pid}) already"
    return f"process {pid} on {host} (since {told.get('since')})"
