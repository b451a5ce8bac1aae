"""`sevenfold doctor` shows what a repository wants to run, what was answered, and what cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.cli.inspect import doctor
from sevenfold.cli.inspect.doctor_store import DoctorFinding

HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make lint"}]}]}}'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SEVENFOLD_HOME", raising=False)
    root = tmp_path / "project"
    (root / ".sevenfold").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.setattr(doctor, "check_sandbox", untried)
    return root


def untried(*_: object) -> tuple[DoctorFinding, ...]:
    return ()


def told(capsys: pytest.CaptureFixture[str], code: int = 0) -> list[dict[str, str]]:
    assert main(["doctor", "--json"]) == code
    return [item for item in json.loads(capsys.readouterr().out) if item["area"] == "repository"]


def test_hooks_that_wait_were_agreed_to_or_refused_are_shown(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / ".sevenfold/hooks.json"
    path.write_text(HOOKS)
    (waiting,) = told(capsys)
    assert waiting["level"] == "worry"
    assert "nobody has agreed to it: Stop: make lint" in waiting["said"]
    assert "sevenfold settings --trust .sevenfold/hooks.json" in waiting["advice"]
    for option, said in (("--trust", "as you have agreed"), ("--refuse", "you have refused it")):
        assert main(["settings", option, ".sevenfold/hooks.json"]) == 0
        capsys.readouterr()
        (answered,) = told(capsys)
        assert (answered["level"], answered["advice"]) == ("fine", "")
        assert said in answered["said"]


def test_a_file_that_wants_a_thousand_things_is_shown_in_short(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = {f"s{number}": {"command": "x" * 200} for number in range(1_000)}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (waiting,) = told(capsys)
    assert "and 995 more" in waiting["said"]
    assert len(waiting["said"]) < 1_000


LONG = HOOKS.replace('"type"', f'"timeout": {"9" * 400}, "type"')


@pytest.mark.story
@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 7}', LONG])
def test_hooks_that_cannot_be_used_are_named(
    tmp_path: Path, project: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (project / ".sevenfold/hooks.json").write_text(text)
    assert next(item["level"] for item in told(capsys)) == "worry"
    (tmp_path / ".sevenfold").mkdir(exist_ok=True, mode=0o700)
    (tmp_path / ".sevenfold/hooks.json").write_text(text)
    found = [item for item in told(capsys, code=1) if item["level"] == "broken"]
    assert [str(tmp_path / ".sevenfold/hooks.json") in item["said"] for item in found] == [True]
