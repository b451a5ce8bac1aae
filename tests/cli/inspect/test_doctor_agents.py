"""What doctor says of other agents: which are here, and whether Sevenfold is installed in them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.cli.inspect import doctor
from sevenfold.cli.inspect.doctor_agents import check_agents
from sevenfold.cli.inspect.doctor_store import DoctorFinding
from sevenfold.proxy.agent_files import COPY_PREFIX
from sevenfold.resident.agent_configs import INSTALLABLE_AGENTS


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder of the search path, with no agent in it yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SEVENFOLD_HOME", str(tmp_path / "own"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def add_program(programs: Path, name: str) -> str:
    path = programs / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def find(programs: Path, area: str) -> list[DoctorFinding]:
    return [finding for finding in check_agents({"PATH": str(programs)}) if finding.area == area]


def test_a_machine_without_agents_gets_one_line(programs: Path) -> None:
    [finding] = find(programs, "agents")
    assert finding.level == "fine"
    assert finding.said.startswith("none found of claude-code, codex, opencode")


@pytest.mark.parametrize(
    ("agent", "program", "parts"),
    [
        ("claude-code", "claude", "hooks and the MCP server"),
        ("codex", "codex", "hooks and the MCP server"),
        ("opencode", "opencode", "the MCP server"),
        ("goose", "goose", "the MCP server"),
        ("continue", "cn", "the MCP server"),
        ("cursor", "cursor", "the MCP server"),
    ],
)
def test_an_agent_is_named_before_and_after_the_install(
    programs: Path, agent: str, program: str, parts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = add_program(programs, program)
    [before] = find(programs, agent)
    assert (before.level, before.said) == ("note", f"{path}: Sevenfold is not installed in it")
    assert f"sevenfold install {agent}`" in before.advice
    assert main(["install", agent]) == 0
    [after] = find(programs, agent)
    assert (after.level, after.said) == ("fine", f"{path}: Sevenfold is installed: {parts}")
    assert main(["install", agent, "--uninstall"]) == 0
    assert find(programs, agent) == [before]
    capsys.readouterr()


def test_every_agent_that_can_be_installed_into_has_a_program(programs: Path) -> None:
    for agent in INSTALLABLE_AGENTS:
        assert find(programs, agent) == []


def test_a_file_that_the_agent_wrote_again_with_other_spaces_counts(programs: Path, tmp_path: Path) -> None:
    add_program(programs, "cursor")
    main(["install", "cursor"])
    path = tmp_path / ".cursor/mcp.json"
    path.write_text(json.dumps({"theme": [1, 2], **json.loads(path.read_text())}, indent=3))
    assert [one.level for one in find(programs, "cursor")] == ["fine"]


def test_an_install_of_which_a_part_is_gone_is_a_worry(programs: Path, tmp_path: Path) -> None:
    add_program(programs, "claude")
    main(["install", "claude-code"])
    (tmp_path / ".claude/commands/sevenfold-spend.md").unlink()
    [finding] = find(programs, "claude-code")
    assert finding.level == "worry"
    assert finding.said.endswith("sevenfold-spend.md")
    assert finding.advice == "`sevenfold install claude-code`"


def test_an_install_for_an_agent_that_is_gone_is_named(programs: Path) -> None:
    main(["install", "goose"])
    [finding] = find(programs, "goose")
    assert (finding.level, finding.advice) == ("note", "`sevenfold install goose --uninstall` takes it out")


def test_a_file_that_cannot_be_read_is_a_worry_and_no_traceback(programs: Path, tmp_path: Path) -> None:
    add_program(programs, "claude")
    (tmp_path / ".claude.json").write_text("{")
    [finding] = find(programs, "claude-code")
    assert finding.level == "worry"
    assert "is no JSON" in finding.said


def test_an_agent_that_only_run_starts_is_named_with_its_command(programs: Path) -> None:
    path = add_program(programs, "mini")
    [finding] = find(programs, "mini-swe-agent")
    assert finding.said == f"{path}: `sevenfold run mini-swe-agent` starts it, and ends with its bill"


def test_copies_that_killed_runs_left_are_removed(programs: Path, tmp_path: Path) -> None:
    left = tmp_path / f"{COPY_PREFIX}999999999-x"
    left.mkdir()
    [finding] = [one for one in find(programs, "agents") if "killed" in one.said]
    assert finding.said == "removed 1 copy of an agent's file that a killed `run` had left"
    assert not left.exists()


def test_what_is_needed_optional_and_other_agents_stand_apart(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def untried(*_: object) -> tuple[DoctorFinding, ...]:
        return ()

    monkeypatch.setattr(doctor, "check_sandbox", untried)
    monkeypatch.setattr(doctor, "check_sockets", untried)
    add_program(programs, "codex")
    add_program(programs, "git")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    titles = ["Sevenfold on this machine", "Optional: ", "Other agents", "If you want more"]
    places = [shown.index(title) for title in titles]
    assert places == sorted(places)
    assert "What to do" not in shown
    assert shown.endswith("Everything that Sevenfold needs is in order.\n")
