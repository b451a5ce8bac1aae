"""The whole session of `bench/whole.py`, short: the same bars, and the same work every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.source_tree import ROOT

pytestmark = pytest.mark.story


def measure(folder: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "bench" / "whole.py"), "--json", *arguments]
    environ = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_layer_works_in_a_whole_session_of_each_family(tmp_path: Path) -> None:
    found = measure(tmp_path, "--tasks", "9")
    assert set(found) == {"unsigned", "signed", "openai"}
    for run in found.values():
        assert run["turns"] == 9
        assert run["restarts"] == 2
        assert min(run["spilled"], run["notes_updates"], run["memories_written"]) > 0
        assert run["memories_recalled"] > 0
        assert run["dream"] == "unchanged"
        assert [cut["covered"] for cut in run["cuts"] if cut["layer"] == 4] == [1.0]
        assert run["repairs"] == run["prefix_breaks"] == run["refused"] == 0
        assert run["read_share"] > 0.7
        assert run["saved"] > 0


def test_the_layers_do_the_same_in_two_runs_of_one_session(tmp_path: Path) -> None:
    runs = [measure(tmp_path, "--tasks", "6", "--family", "unsigned")["unsigned"] for _ in range(2)]
    spent = [[run.pop(name) for name in ("units", "units_without_layers")] for run in runs]
    for run in runs:
        del run["usd"], run["saved"], run["read_share"]
    first, again = runs
    assert first == again
    assert spent[0] == pytest.approx(spent[1], rel=0.001)  # a duration that a tool tells is a token longer
