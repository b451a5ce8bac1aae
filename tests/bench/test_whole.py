"""The whole session of `bench/whole.py`, short: the same bars, and the same work every time."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.contracts.house import ROOT

pytestmark = pytest.mark.story


def measure(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "bench" / "whole.py"), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_layer_works_in_a_whole_session_of_each_family() -> None:
    found = measure("--tasks", "9")
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


def test_the_layers_do_the_same_in_two_runs_of_one_session() -> None:
    first, again = (measure("--tasks", "6", "--family", "unsigned")["unsigned"] for _ in range(2))
    about = {
        "compactions",
        "usd",
        "units",
        "units_without_layers",
        "saved",
        "read_share",
        "cuts",
        "cleared_tokens",
    }
    assert {name: first[name] for name in first.keys() - about} == {
        name: again[name] for name in again.keys() - about
    }
    assert [cut["layer"] for cut in first["cuts"]] == [cut["layer"] for cut in again["cuts"]]
    assert first["units"] == pytest.approx(again["units"], rel=0.01)
