"""What belongs together is written together."""

from __future__ import annotations

import errno
import io
import os

import pytest

from sevenfold.agent.tui.prompt_input import BufferedOutput, drop_closed_terminal


class Log(io.TextIOWrapper):
    """A stream that notes each write."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.writes: list[str] = []

    def write(self, text: str, /) -> int:
        self.writes.append(text)
        return super().write(text)


def test_what_is_held_goes_out_in_one_write() -> None:
    log = Log()
    pane = BufferedOutput(log)
    with pane.batched():
        for part in ("erase", "print", "draw"):
            pane.write(part)
            pane.flush()
        assert log.writes == []
    assert log.writes == ["eraseprintdraw"]


def test_what_a_terminal_cannot_say_is_spelled_out() -> None:
    log = Log("ascii")
    pane = BufferedOutput(log)
    pane.write("a → b")
    pane.flush()
    assert log.writes == ["a \\u2192 b"]


def test_nothing_is_written_for_nothing() -> None:
    log = Log()
    BufferedOutput(log).flush()
    assert log.writes == []


def test_of_two_outputs_one_that_is_not_open_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    device, put = os.stat(os.devnull), list[int]()

    def examine(fd: int) -> os.stat_result:
        if fd == 1:
            raise OSError(errno.EBADF, "Bad file descriptor")
        return device

    def replace(_: int, fd: int) -> None:
        put.append(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", examine)
        patch.setattr(os, "dup2", replace)
        patch.setattr(os, "isatty", {1: False, 2: False}.get)
        drop_closed_terminal()
    assert put == [2]
