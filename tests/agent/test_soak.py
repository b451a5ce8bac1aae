"""The long session of `bench/soak.py`, short: the same bars."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.contracts.source_tree import ROOT

pytestmark = pytest.mark.story


def test_a_long_session_breaks_no_prefix_and_its_forks_read_the_cache() -> None:
    command = [sys.executable, str(ROOT / "bench" / "soak.py"), "--rounds", "60", "--forks", "6", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] >= 60
    assert found["forks"] == 6
    assert found["prefix_breaks"] == found["refused"] == 0
    assert min(found["lowest_share"], found["lowest_parallel_share"]) >= 0.99
    assert {"main", "check"} <= set(found["cost_usd"])
