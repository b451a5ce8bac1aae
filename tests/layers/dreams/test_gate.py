"""A dream is due by itself when it was switched on, the rest is over and others have worked since."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.layers.dreams import inputs
from sevenfold.layers.dreams.inputs import DreamGate
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.store.files.locks import Lock
from sevenfold.store.project.project import Project


class Door:
    def __init__(self, root: Path, settings: DreamSettings) -> None:
        self.clock = ManualClock()
        (root / "repo").mkdir()
        self.project = Project.open(root / "repo", home=root / "home", clock=self.clock)
        self.lock = Lock(self.project.control, "dream", clock=self.clock, pid_file=self.project.pid_file)
        self.gate = DreamGate(self.project, self.lock, settings, self.clock)

    def work_on(self, *sessions: str) -> None:
        for name in sessions:
            path = Path(self.project.sessions.path) / f"{name}.jsonl"
            path.write_text("", encoding="utf-8")
            now = self.clock.now().timestamp()
            os.utime(path, (now, now))

    @property
    def is_open(self) -> bool:
        return asyncio.run(self.gate.is_due("own"))


@pytest.fixture(autouse=True)
def no_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "SPREAD", timedelta(0))


def test_other_sessions_of_people_are_counted_and_at_most_every_ten_minutes(tmp_path: Path) -> None:
    door = Door(tmp_path, DreamSettings(enabled=True, sessions=2))
    door.work_on("a", "own", "agent-b")
    assert not door.is_open
    door.work_on("c")
    assert not door.is_open, "it has counted just now"
    door.clock.pass_time(timedelta(minutes=10))
    assert door.is_open
    door.project.close()


def test_after_a_dream_it_rests_and_counts_anew(tmp_path: Path) -> None:
    door = Door(tmp_path, DreamSettings(enabled=True, sessions=1))
    door.work_on("a")
    assert door.is_open
    door.lock.acquire().publish(lambda: None)
    door.gate.forget()
    assert not door.is_open
    door.clock.pass_time(timedelta(hours=24))
    assert not door.is_open, "nobody has worked since"
    door.work_on("a")
    door.clock.pass_time(timedelta(minutes=10))
    assert door.is_open
    door.project.close()


def test_a_crash_opens_it_again_and_failures_rest_longer_each_time(tmp_path: Path) -> None:
    door = Door(tmp_path, DreamSettings(enabled=True, sessions=0))
    door.lock.acquire()
    door.clock.pass_time(timedelta(minutes=2))
    assert door.is_open, "the lease has lapsed, and a crash is no success"
    door.lock.acquire().release()
    assert not door.is_open
    door.clock.pass_time(timedelta(hours=2))
    assert door.is_open
    door.project.close()


def test_switched_off_it_never_looks(tmp_path: Path) -> None:
    door = Door(tmp_path, DreamSettings())
    door.work_on(*"abcdef")
    assert not door.is_open
    door.project.close()
