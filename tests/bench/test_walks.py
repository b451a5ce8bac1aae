"""The count of files that a reader follows, on the shortest walk and on calls that were made up here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from bench.walks import Call, Recorder, count_switches

from tests.contracts.source_tree import ROOT

MAIN, SIMULATOR = 1, 2


@pytest.mark.story
def test_a_walk_over_one_limit_fails_and_names_the_figure() -> None:
    limits = ["--attached-files", "1", "--attached-switches", "100000"]
    command = [
        sys.executable,
        ROOT / "bench" / "walks.py",
        "--walk",
        "attached",
        "--json",
        "--files",
        *limits,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    found = json.loads(done.stdout)["attached"]
    assert (done.returncode, found["over"]) == (1, ["files"])
    assert found["limits"] == {"files": 1, "switches": 100_000}
    assert len(found["paths"]) == found["files"] > found["packages"] > 1
    assert found["calls"] > found["switches_with_core"] > found["switches"] > 0
    assert found["folder_switches"] >= found["switches"]
    assert all((ROOT / "src" / "sevenfold" / path).is_file() for path in found["paths"])
    assert not any(path.startswith(("simulator/", "testing")) for path in found["paths"])


def test_calls_into_core_and_the_simulator_make_no_switch() -> None:
    files = ("store/a.py", "core/b.py", "store/c.py", "simulator/d.py", "layers/x/e.py", "layers/y/f.py")
    recorder = Recorder(calls=[Call(file, MAIN) for file in files if not file.startswith("simulator")])
    recorder.calls[3:3] = [Call("simulator/d.py", SIMULATOR), Call("core/g.py", SIMULATOR)]
    walk = recorder.summary(depth=None)
    assert walk.figures() == {
        "calls": 6,
        "files": 6,
        "simulator_files": 1,
        "packages": 4,
        "switches": 2,
        "switches_with_core": 5,
        "folder_switches": 2,
    }
    assert recorder.summary().switches == 1
    assert recorder.summary().folder_switches == 2
    assert walk.over({"files": 6, "switches": 1}) == ["switches"]


def test_only_calls_made_while_recording_count() -> None:
    recorder = Recorder()
    with recorder.installed():
        from sevenfold import __version__

        _look_up("__version__")
        with recorder.on():
            _look_up("no_such_name")
    assert __version__
    assert [call.file for call in recorder.calls] == ["__init__.py"]


def _look_up(name: str) -> object:
    import sevenfold

    return getattr(sevenfold, name, None)


def test_a_switch_is_a_change_from_one_call_to_the_next() -> None:
    assert count_switches([]) == count_switches(["a", "a"]) == 0
    assert count_switches(["a", "b", "b", "a"]) == 2
