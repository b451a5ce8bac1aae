"""The benchmark measures what it says, on a corpus small enough for a test."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT
from tests.replay.test_sample import SAMPLE


@pytest.mark.story
def test_the_benchmark_builds_a_corpus_of_fresh_calls_and_measures_it(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    shutil.copy(SAMPLE, tmp_path / "raw" / "one.jsonl")
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "replay.py", "--data", tmp_path, "--megabytes", "0.4", "--json"],
        capture_output=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["files"] == 5
    assert found["calls"] == 5 * 20, "no copy was taken for a repetition"
    assert 0 < found["memory_mb"] < 300
    assert done.returncode in (0, 1), "a machine may be too slow for so small a corpus"


def test_the_benchmark_says_what_it_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "replay.py", "--data", tmp_path], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"no raw/**/*.jsonl" in done.stderr
