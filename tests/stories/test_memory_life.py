"""The life of `bench/memory_life.py`, short: the same bars."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.contracts.source_tree import ROOT

pytestmark = pytest.mark.story


def test_memories_taught_again_and_again_stay_few_and_the_index_whole() -> None:
    command = [sys.executable, str(ROOT / "bench" / "memory_life.py"), "--sessions", "16", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sessions"] == 16
    assert found["memories"] > 0
    assert found["dreams"]
    assert {"extraction", "dream"} <= set(found["micro_usd"])
