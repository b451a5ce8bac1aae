"""The torture command: what it prints, how it ends, and that it leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT, run
from tests.torture import __main__ as command
from tests.torture.rig import Orders, Outcome, outcome

pytestmark = pytest.mark.torture


def fine(orders: Orders) -> list[Outcome]:
    with outcome("fine", "things") as found:
        found.count = 1_234
        found.notes.append(f"seed {orders.seed} in {orders.place.parent.name}, {orders.size}")
    return [found]


def wrong(orders: Orders) -> list[Outcome]:
    found = fine(orders)
    for number in range(25):
        found[0].wrong(f"thing {number} is lost")
    return found


def missing(orders: Orders) -> list[Outcome]:
    return [Outcome(name="missing", unit="things", skipped="there is no such tool")]


def failing(orders: Orders) -> list[Outcome]:
    raise OSError("no room")


@pytest.fixture(autouse=True)
def planted_rigs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEVENFOLD_NO_SKIP", raising=False)
    monkeypatch.setattr(
        command, "RIGS", {"fine": fine, "wrong": wrong, "missing": missing, "failing": failing}
    )


def test_a_run_that_finds_nothing_prints_its_figures_and_ends_well(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command.main(["--only", "fine", "--seed", "7", "--dir", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "fine                           1,234 things" in told
    assert f"seed 7 in {tmp_path.name}, short" in told
    assert "0 violations, 0 skipped" in told
    assert list(tmp_path.iterdir()) == []


def test_a_violation_is_shown_and_ends_the_run_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "wrong", "--only", "fine"]) == 1
    told = capsys.readouterr().out
    assert "WRONG: thing 0 is lost" in told
    assert "… and 5 more" in told
    assert "25 violations" in told


def test_a_rig_that_cannot_run_is_skipped_with_its_reason_but_not_in_ci(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.main(["--only", "missing"]) == 0
    assert "skipped: there is no such tool" in capsys.readouterr().out
    monkeypatch.setenv("SEVENFOLD_NO_SKIP", "1")
    assert command.main(["--only", "missing"]) == 1


def test_a_rig_that_fails_does_not_keep_the_others_from_running(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "failing", "--only", "fine"]) == 1
    told = capsys.readouterr()
    assert "the rig itself failed: OSError: no room" in told.out
    assert "1,234 things" in told.out
    assert "Traceback" in told.err


def test_findings_can_be_had_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "wrong", "--json", "--long", "--seed", "3"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["size"], told["seed"]) == ("long", 3)
    assert told["rigs"][0]["violations"] == 25
    assert told["rigs"][0]["count"] == 1_234


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "nothing"], "invalid choice: 'nothing'"),
        (["--short", "--long"], "not allowed with"),
        (["--seed", "x"], "invalid int value"),
        (["--dir", "/no/such/folder"], "make it first"),
    ],
)
def test_bad_usage_ends_with_2_and_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_help_names_every_rig_and_shows_examples() -> None:
    told = run([sys.executable, "-m", "tests.torture", "--help"]).stdout
    for name in ("faults", "strace", "kills", "lock", "paths", "races", "power", "shell"):
        assert f"\n  {name} " in told
    assert "--only races --long" in told


def those_who_name(place: Path) -> list[str]:
    """Command lines of living processes that mention a folder."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            found += [line] if str(place) in line else []
    return found


def left_of(place: Path) -> list[str]:
    """Processes, mounts and loop devices that still have to do with a folder."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(place) in line]
    loops = [file.read_text() for file in Path("/sys/block").glob("loop*/loop/backing_file")]
    return those_who_name(place) + mounts + [name for name in loops if str(place) in name]


@pytest.mark.parametrize(
    ("rig", "number"),
    [
        ("kills", signal.SIGINT),
        ("lock", signal.SIGINT),
        ("strace", signal.SIGINT),
        ("power", signal.SIGINT),
        ("kills", signal.SIGTERM),
        ("strace", signal.SIGKILL),
        ("power", signal.SIGKILL),
    ],
)
def test_an_interrupted_run_leaves_no_process_mount_or_loop_device(
    tmp_path: Path, rig: str, number: signal.Signals
) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.torture", "--long", "--only", rig, "--dir", str(tmp_path)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stderr is not None
    assert "of" in started.stderr.readline(), "it tells how far it is, so it is at work"
    started.send_signal(number)
    told = started.communicate()[0]
    if number != signal.SIGKILL:
        assert started.returncode == 130
        assert "violations" in told
        assert list(tmp_path.iterdir()) == []
    # With nobody left to tidy up, workers die with their parent, and mounts with their namespace in a while.
    until = time.monotonic() + 20
    while left_of(tmp_path) and time.monotonic() < until:
        threading.Event().wait(0.05)
    assert left_of(tmp_path) == []
