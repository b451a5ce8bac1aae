"""The tour is a real session: its layers act, its test passes, and its bill is the simulator's."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.cli import tour as command
from sevenfold.cli.screen import Screen
from sevenfold.cli.tour import team as tour_team
from sevenfold.cli.tour.run import BaselineRun
from sevenfold.cli.tour.view import ReadingPace, TourView
from sevenfold.core.extras import render_install_command

pytestmark = pytest.mark.story


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    place, said, errors = tmp_path_factory.mktemp("tour"), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(errors):
        patch.setattr(tempfile, "tempdir", str(place))
        patch.setenv("COLUMNS", "200")
        assert main(["tour", "--fast"]) == 0
    assert list(place.iterdir()) == [], "nothing is left behind"
    assert errors.getvalue() == ""
    return said.getvalue()


def test_every_layer_that_there_is_acts_and_is_told(told: str) -> None:
    for layer in (1, 2, 3, 4, 5, 7):
        assert f"layer {layer}: " in told, told
        assert f"Layer {layer}, " in told, told
    assert "went to disk" in told
    assert re.search(r"old tool results? left the prompt", told)
    assert re.search(r"compacted by notes: [\d,]+ → [\d,]+ tokens", told)
    shares = [float(share) for share in re.findall(r"a fork read ([\d.]+)%", told)]
    assert len(shares) >= 3, "two for the countries, and one that remembers"
    assert min(shares) >= 99
    assert "The agent reports 2,400 orders." in told


def test_the_second_day_knows_what_the_first_one_taught(told: str) -> None:
    first, second = told.split("Day two: ")
    assert re.search(r"layer 5: \S+\.md changed by the search of the turn", first)
    assert "layer 5: recalled tests-before-commit.md" in second
    held, ran, committed = (second.index(part) for part in ("Not run yet", "Ran 1 test", "Committed"))
    assert held < ran < committed, "the rule comes before the commit, and the tests run first"


def test_a_dream_shows_what_it_changes_and_is_undone(told: str) -> None:
    dream = told[told.index("/10 A dream\n") :]
    assert re.search(r"^ +--- deploy(s|-days)\.md\n +\+\+\+ /dev/null$", dream, re.MULTILINE), dream
    assert re.search(r"^ +\+The freeze starts on \d{4}-\d\d-\d\d", dream, re.MULTILINE), dream
    assert "Layer 6, dreams: " in dream
    assert "4 memories are restored, byte for byte" in dream


def test_the_work_is_done_and_the_bill_is_lower_than_without_layers(told: str) -> None:
    assert "+    return (amount * rates.of(country)).quantize(CENT, ROUND_HALF_UP)" in told
    assert "OK" in told
    here, there = (float(found) for found in re.findall(r"layers(?: off)?  .*\$([\d.]+)", told))
    assert 0 < here < there
    assert "sevenfold replay" in told
    assert "sevenfold chat" in told


def test_each_part_of_the_first_day_ends_with_the_bill_so_far(told: str) -> None:
    parts = re.split(r"^\d+/10 ", told, flags=re.MULTILINE)[1:]
    assert len(parts) == 10
    bills = [
        [float(usd) for usd in pair]
        for pair in re.findall(r"so far: \$([\d.]+) with the layers, \$([\d.]+) with them off", told)
    ]
    assert len(bills) == 6
    assert "so far" in parts[0], "the first part shows the bill"
    assert all(here < there for here, there in bills)
    assert bills == sorted(bills), "a bill only grows"


def test_a_teammate_receives_what_the_other_one_added(told: str) -> None:
    team = told[told.index("/10 A team\n") :]
    learnt, came, found = (
        team.index(part) for part in ("1 memory sent", "1 memory received", "team/deploy-days.md  ")
    )
    assert learnt < came < found
    assert "conflict: deploy-days.md and deploy-days-conflict-" in team
    assert "the conflict over deploy-days.md is resolved" in team
    assert "looks like a secret (AWS access key id)" in team
    assert team.rindex("The shop is deployed on Mondays.") > team.index("Ada has the resolved text.")


def test_a_tour_without_the_server_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_some(name: str) -> object:
        return None if name == "apsw" else tour_team

    monkeypatch.setattr(tour_team, "find_spec", find_some)
    view = TourView(Screen(), ReadingPace(Screen(), is_fast=True), BaselineRun())
    assert not asyncio.run(view.open_team(tour_team.find_missing_libraries()))
    command = render_install_command("server", "team")
    assert f"this part needs apsw; run: {command}" in capsys.readouterr().out


def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_nothing(name: str) -> None:
        """Nothing is installed."""

    monkeypatch.setattr(command, "find_spec", find_nothing)
    assert main(["tour"]) == 2
    assert render_install_command("chat", "simulator") in capsys.readouterr().err


@pytest.mark.timeout(240)
def test_a_key_goes_to_the_bill_and_the_terminal_is_as_it_was(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    environ = {
        **os.environ,
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "COLUMNS": "100",
        "TERM": "xterm",
    }
    tour = subprocess.Popen(
        [sys.executable, "-m", "sevenfold", "tour"], stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    )
    shown = b""
    while b"The bill of the first day" not in shown or b"sevenfold chat" not in shown:
        shown += os.read(ours, 65_536)
        if b"1/10" in shown and b"pressed" not in shown:
            os.write(ours, b"q")
            shown += b"pressed"
    assert tour.wait() == 0
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
    assert b"Space skips to the next part. q goes to the bill." in shown
    assert b"2/10" not in shown, "no further part is played"
    assert b"the same, layers off" in shown
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
