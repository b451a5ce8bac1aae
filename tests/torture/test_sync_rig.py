"""The rigs of team memory in their shortest form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.canaries import run_canaries
from tests.torture.lines import run_lines
from tests.torture.rig import Orders, Progress, Rig
from tests.torture.schedules import run_sync

pytestmark = pytest.mark.torture


@pytest.mark.parametrize("rig", [run_sync, run_lines, run_canaries])
def test_nothing_is_lost_nothing_is_back_and_no_secret_leaves(rig: Rig, tmp_path: Path) -> None:
    found = rig(Orders("tiny", 1, tmp_path, Progress(quiet=True)))
    assert [line.shown for line in found if line.violations] == []
    assert all(line.count for line in found)
