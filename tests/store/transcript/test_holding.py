"""One holder of a session at a time, and the other is told who it is."""

from __future__ import annotations

import os
import socket

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import SessionBusy
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.transcript import HOLDER, hold_session


def busy(folder: Folder) -> str:
    with pytest.raises(SessionBusy) as refused, hold_session(folder, "s1", ManualClock()):
        pass
    return str(refused.value)


def test_a_process_that_has_the_session_already_is_told_so(control: Folder) -> None:
    with hold_session(control, "s1", ManualClock()):
        assert f"session s1 is open in this process ({os.getpid()}) already; go on there" in busy(control)


@pytest.mark.parametrize(("pid", "host"), [(7, None), (None, "far.example.org")])
def test_another_holder_is_named(control: Folder, pid: int | None, host: str | None) -> None:
    """Of another process here, or of the same number elsewhere."""
    pid, host = pid or os.getpid(), host or socket.gethostname()
    told = f'{{"pid": {pid}, "host": "{host}", "since": "noon"}}'
    with hold_session(control, "s1", ManualClock()):
        control.replace(HOLDER, told.encode())
        assert f"is open in process {pid} on {host} (since noon); go on there" in busy(control)


def test_a_holder_that_cannot_be_read_is_another_process(control: Folder) -> None:
    with hold_session(control, "s1", ManualClock()):
        control.replace(HOLDER, b"{")
        assert "is open in another process; go on there" in busy(control)


def test_a_session_that_was_left_is_free(control: Folder) -> None:
    for _ in range(2):
        with hold_session(control, "s1", ManualClock()):
            assert control.stat(HOLDER) is not None
