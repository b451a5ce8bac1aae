"""Memories in their shortest torture: nothing is lost, and a broken keeper is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.store.memory import plan
from sevenfold.store.memory.files import MemoryLog
from tests.torture.cuts import run_cuts
from tests.torture.faults import run_faults
from tests.torture.memory import run_crowd
from tests.torture.play_memory import CutMemories, Memories
from tests.torture.rig import Orders, Progress
from tests.torture.test_torture import expect_nothing, expect_something

pytestmark = pytest.mark.torture


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders("tiny", 1, tmp_path, Progress(quiet=True))


def test_an_accident_leaves_memories_wholly_old_or_wholly_new(orders: Orders) -> None:
    expect_nothing(run_faults(orders, (Memories,), points=60))


def test_a_power_cut_leaves_memories_wholly_old_or_wholly_new(orders: Orders) -> None:
    expect_nothing(run_cuts(orders, (CutMemories,)))


def test_a_crowd_loses_no_change_of_a_memory(orders: Orders) -> None:
    expect_nothing(run_crowd(orders))


def test_a_keeper_that_checks_nothing_is_found_out(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(plan, "_clashes", never)
    expect_something(run_crowd(orders, topics=2), "had not seen")


def test_a_keeper_that_places_before_it_records_is_found_out(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(_: MemoryLog) -> None:
        """Say that it is durable, and do nothing."""

    monkeypatch.setattr(MemoryLog, "sync", forget)
    expect_something(run_cuts(orders, (CutMemories,)), "memory")
