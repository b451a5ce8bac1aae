"""`sevenfold spend`, from its arguments to what is on the screen."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.core.errors import Overloaded
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.core.usage import Usage
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.budget import SpendSettings
from sevenfold.session.governor import GovernedProvider, Governor


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / ".sevenfold"


def call(home: Path, who: str, model: str = "claude-opus-5-5", *, fails: bool = False) -> None:
    steps = (
        [Overloaded("busy")]
        if fails
        else [make_response("ok", usage=Usage(read=9_000, fresh=500, output=500))]
    )
    models = GovernedProvider(ScriptedProvider(steps), Governor.open(home, SpendSettings()))
    request = ModelRequest(
        RequestParams(model=model, max_tokens=1_000), (Message("user", "hello"),), purpose=who
    )
    if fails:
        with pytest.raises(Overloaded):
            asyncio.run(models.send(request))
    else:
        asyncio.run(models.send(request))


def show(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["spend", *arguments]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def test_nothing_spent_is_said_with_the_caps(capsys: pytest.CaptureFixture[str]) -> None:
    out = show(capsys)
    assert "the last hour" in out
    assert "$5.00 (0.0% used)" in out
    assert "by kind" not in out


def test_calls_are_listed_by_kind_with_what_came_out_of_the_cache(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(home, "notes")
    call(home, "notes")
    call(home, "summary", "nobody-knows-it")
    out = show(capsys)
    notes = next(line for line in out.splitlines() if line.startswith("notes"))
    assert notes.split()[1] == "2"
    assert "94.7%" in notes
    assert "unpriced" in next(line for line in out.splitlines() if line.startswith("summary"))
    found: dict[str, Any] = json.loads(show(capsys, "--json"))
    assert found["kinds"]["notes"]["calls"] == 2
    assert found["kinds"]["summary"]["unpriced_calls"] == 1
    assert found["hour"]["tokens"] == 30_000


def test_the_switch_is_shown_until_it_is_thrown_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert "spend resume" in show(capsys, "stop")
    assert json.loads(show(capsys, "--json"))["background"] is False
    assert "stopped" not in show(capsys, "resume")


def test_a_kind_that_rests_is_shown_and_can_be_forgiven(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        call(home, "notes", fails=True)
    assert "notes: 3 failures in a row, rests until" in show(capsys)
    assert "failures" not in show(capsys, "forgive", "notes")
    assert "no failures to forgive" in show(capsys, "forgive", "notes", code=2)


@pytest.mark.parametrize("arguments", [("forgive",), ("stop", "notes")])
def test_a_kind_is_named_where_one_is_needed_and_nowhere_else(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "forgive KIND" in show(capsys, *arguments, code=2)


def test_a_damaged_state_is_said_and_the_ledger_counts(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(home, "notes")
    (home / "spend" / "spend.json").write_bytes(b"{broken")
    assert main(["spend", "--json"]) == 0
    out = capsys.readouterr()
    assert "what the ledger says" in out.err
    assert json.loads(out.out)["hour"]["tokens"] == 10_000


def test_a_call_that_no_bill_came_for_is_counted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(home, "notes")
    assert json.loads(show(capsys, "--json"))["unbilled_calls"] == 0
    governor = Governor.open(home, SpendSettings())

    async def die() -> None:
        await governor.hold("notes", "claude-opus-5-5", Usage(fresh=500, output=500))
        await governor.abandon(await governor.hold("notes", "claude-opus-5-5", Usage(fresh=500)))

    asyncio.run(die())
    found = json.loads(show(capsys, "--json"))
    assert found["unbilled_calls"] == 2
    assert found["kinds"]["notes"]["calls"] == 1
    assert "2 requests without a bill" in show(capsys)
