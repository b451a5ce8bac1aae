"""The tour waits as long as a person reads, and no longer once a key was pressed."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from sevenfold.cli import tour
from sevenfold.cli.screen import Screen
from sevenfold.cli.tour import view
from sevenfold.cli.tour.run import BaselineRun
from sevenfold.cli.tour.view import WORD_SECONDS, ReadingPace, TourView

TEXT = "one two three four"


class Keys:
    """Keys that are pressed one by one, each when it is waited for."""

    def __init__(self, *pressed: bytes) -> None:
        self.pressed, self.waits = list(pressed), list[float]()

    def read(self, seconds: float) -> bytes:
        self.waits.append(seconds)
        return self.pressed.pop(0) if self.pressed else b""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Stands still."""
    now = [100.0]
    monkeypatch.setattr(view.time, "monotonic", lambda: now[0])
    return now


def show(keys: Keys, *, is_fast: bool = False) -> ReadingPace:
    reading = ReadingPace(Screen(), is_fast=is_fast, read_key=keys.read)
    reading.begin_part("part 1 of 10", 0.1)
    reading.note(TEXT, list[str]().append)
    return reading


def test_a_text_waits_until_the_one_before_it_was_read(clock: list[float]) -> None:
    keys = Keys()
    show(keys).wait()
    assert keys.waits == [pytest.approx(4 * WORD_SECONDS)]


def test_a_pasted_text_is_no_key_however_long_it_is(clock: list[float]) -> None:
    keys = Keys(*[b"x"] * 3_000, b"q")
    reading = show(keys)
    reading.wait()
    assert reading.is_over
    assert keys.pressed == []


def test_work_that_takes_as_long_as_reading_costs_no_time(clock: list[float]) -> None:
    keys = Keys()
    reading = show(keys)
    clock[0] += 4 * WORD_SECONDS
    reading.wait()
    assert keys.waits == []


def test_space_skips_to_the_next_part_and_no_further(clock: list[float]) -> None:
    keys = Keys(b" ")
    reading = show(keys)
    for _ in range(3):
        reading.wait()
        reading.note(TEXT, list[str]().append)
    assert len(keys.waits) == 1
    reading.begin_part("part 2 of 10", 0.2)
    reading.wait()
    assert len(keys.waits) == 2
    assert not reading.is_over


def test_q_ends_the_tour_and_other_keys_do_nothing(clock: list[float]) -> None:
    keys = Keys(b"x", b"q")
    reading = show(keys)
    reading.wait()
    assert reading.is_over
    reading.begin_part("part 2 of 10", 0.2)
    reading.note(TEXT, list[str]().append)
    reading.wait()
    assert len(keys.waits) == 2


def test_a_fast_tour_never_waits(clock: list[float]) -> None:
    keys = Keys(b"q")
    show(keys, is_fast=True).wait()
    assert keys.waits == []


def test_ctrl_c_ends_the_tour_while_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []

    async def load(_screen: Screen, *, is_fast: bool) -> None:
        signal.raise_signal(signal.SIGINT)
        reached.append(f"the first part, {is_fast=}")

    monkeypatch.setattr(tour, "_tour", load)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tour.run_tour(Namespace(fast=True), Screen())
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == []


@pytest.mark.parametrize("is_on_path", [False, True])
def test_the_tour_ends_with_commands_that_can_be_typed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_on_path: bool,
) -> None:
    (tmp_path / "sevenfold").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path if is_on_path else tmp_path / "bin"))
    monkeypatch.setattr(sys, "argv", ["./sevenfold", "tour"])
    TourView(Screen(), ReadingPace(Screen(), is_fast=True), BaselineRun()).end()
    named = "sevenfold" if is_on_path else "./sevenfold"
    assert [line.partition(" ")[0] for line in capsys.readouterr().out.split("\n") if line] == [named] * 2
