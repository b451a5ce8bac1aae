"""`sevenfold settings` shows each value, where it came from, and what was refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path, PurePath

import pytest

from sevenfold.agent.opening.workspace import read_repository_files
from sevenfold.cli import main
from sevenfold.cli.settings import SETTINGS_SECTIONS, format_value
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.settings import list_specs
from sevenfold.core.settings.kinds import LimitTable, SettingValue


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "ann"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    root = tmp_path / "project"
    (root / ".sevenfold").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git/index").write_bytes(b"DIRC" + (2).to_bytes(4) + (0).to_bytes(4))  # tracks nothing
    monkeypatch.chdir(root)
    return root


def write(root: Path, text: str, name: str = "settings.toml") -> Path:
    path = root / ".sevenfold" / name
    path.write_text(text)
    return path


def agree(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "--trust", "--project", str(root)]) == 0
    capsys.readouterr()


def test_every_setting_has_a_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    keys = [spec.key for spec in list_specs(SETTINGS_SECTIONS) if not spec.is_named]
    assert [line.split()[0] for line in lines] == keys
    assert all(line.endswith("default") for line in lines)


def test_a_line_says_where_its_value_came_from(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(project, "[tool_results]\nlimit_chars = 30_000\n[tool_results.limits]\nBash = 1000\n")
    agree(project, capsys)
    monkeypatch.setenv("DISABLE_COMPACT", "1")
    assert main(["settings"]) == 0
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    committed = f"committed project file ({path})"
    assert ["tool_results.limit_chars", "30_000", committed] in lines
    assert ["tool_results.limits.Bash", "1_000", committed] in lines
    assert ["compact.enabled", "false", "environment off switch (DISABLE_COMPACT)"] in lines


def test_what_was_refused_is_shown_at_the_end(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(project, '[places]\nmemory_dir = "/etc"\n')
    assert main(["settings", "tool_results"]) == 0
    tail = capsys.readouterr().out.splitlines()[-2:]
    assert tail == ["refused:", f"  {path}: places.memory_dir: a committed file never sets a path"]


def test_a_key_is_shown_with_its_reason(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "compact.auto_compact_pct"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("compact.auto_compact_pct = (unset)\n")
    assert "SEVENFOLD_COMPACT_AUTO_COMPACT_PCT, also CLAUDE_AUTOCOMPACT_PCT_OVERRIDE" in said
    assert "compacts earlier, never later" in said
    assert "a number above 0, up to 100" in said


def test_a_section_shows_all_of_it_and_nothing_else(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["settings", "--json", "window", "compact.enabled"]) == 0
    keys = [item["key"] for item in json.loads(capsys.readouterr().out)["settings"]]
    assert {key.partition(".")[0] for key in keys} == {"window", "compact"}
    assert [key for key in keys if key.startswith("compact")] == ["compact.enabled"]


def test_json_holds_everything_a_program_needs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[models."my-model"]\ninput_usd_per_mtok = 0.1\noutput_usd_per_mtok = 1\n'
    local = write(project, text, "settings.local.toml")
    write(project, "[compact]\nauto_compact_pct = 50\n")
    assert main(["settings", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    by_key = {item["key"]: item for item in shown["settings"]}
    assert by_key["models.my-model.input_usd_per_mtok"] == {
        "key": "models.my-model.input_usd_per_mtok",
        "value": 0.1,
        "default": None,
        "source": "project-local file",
        "where": str(local),
        "kind": "price",
        "allowed": by_key["models.my-model.output_usd_per_mtok"]["allowed"],
        "environment": None,
    }
    assert by_key["tool_results.opted_out"]["value"] == ["Read", "read"]
    assert by_key["tool_results.limits"]["value"] == {}
    assert [item["key"] for item in shown["refused"]] == ["compact.auto_compact_pct"]


def test_another_project_can_be_asked_about(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "[tool_results]\nlimit_chars = 7\n")
    agree(project, capsys)
    monkeypatch.chdir(tmp_path)
    assert main(["settings", "--project", str(project), "tool_results.limit_chars"]) == 0
    assert "tool_results.limit_chars = 7" in capsys.readouterr().out


def test_a_folder_inside_the_project_will_do(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "[tool_results]\nlimit_chars = 7\n")
    agree(project, capsys)
    (project / "deep/inside").mkdir(parents=True)
    monkeypatch.chdir(project / "deep/inside")
    assert main(["settings", "tool_results.limit_chars"]) == 0
    assert "tool_results.limit_chars = 7" in capsys.readouterr().out


def test_a_section_without_entries_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "models"]) == 0
    assert capsys.readouterr().out == "nothing is set there\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compact.enable"], "no setting is called 'compact.enable'; did you mean compact.enabled?"),
        (["qqq"], "no setting is called 'qqq'; `sevenfold settings` lists them"),
        (["--project", "nowhere"], "--project 'nowhere' is not a folder"),
    ],
)
def test_a_question_about_nothing_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["settings", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_bad_settings_are_all_told_and_none_is_shown(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(project, "[tool_results]\nlimit_chars = 'many'\nlimit_char = 5\n", "settings.local.toml")
    assert main(["settings"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "error: 2 settings cannot be used:",
        f"- {path}: tool_results.limit_chars = 'many': expected a whole number from 1 up",
        f"- {path}: tool_results.limit_char is not a setting; did you mean tool_results.limit_chars?",
    ]


def test_a_slip_in_the_committed_file_is_shown_and_the_rest_counts(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(project, "[tool_results]\nlimit_char = 5\npreview_bytes = 'few'\nlimit_chars = 7\n")
    agree(project, capsys)
    assert main(["settings", "tool_results.limit_chars"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "tool_results.limit_chars = 7"
    assert shown[-3:] == [
        "refused:",
        f"  {path}: tool_results.limit_char: is not a setting; did you mean tool_results.limit_chars?",
        f"  {path}: tool_results.preview_bytes: cannot be 'few': expected a whole number from 1 up",
    ]


def test_another_programs_variable_does_not_stop_the_start(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "eighty")
    assert main(["settings", "compact.auto_compact_pct"]) == 0
    assert "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: cannot be 'eighty'" in capsys.readouterr().out


def test_a_model_that_cannot_be_priced_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, '[models."my-model"]\noutput_usd_per_mtok = 1\n', "settings.local.toml")
    assert main(["settings"]) == 2
    assert "models.my-model: no table knows this model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (None, "(unset)"),
        (True, "true"),
        (50_000, "50_000"),
        (Decimal("0.000001"), "0.000001"),
        (Decimal("1E+2"), "100"),
        ("green", '"green"'),
        (PurePath("/srv"), '"/srv"'),
        ((), "[]"),
        (("Read", "Grep"), '["Read", "Grep"]'),
        (LimitTable({"Bash": 5_000}), "{Bash = 5_000}"),
    ],
)
def test_a_value_is_spelled_as_in_a_file(value: SettingValue | None, spelled: str) -> None:
    assert format_value(value) == spelled


OFF = '[cache]\nenabled = false\n[permissions]\ndeny = ["shell(rm)"]\n[agent]\nmodel = "x"\n'


def is_cached(capsys: pytest.CaptureFixture[str]) -> bool:
    assert main(["settings", "--json", "cache.enabled"]) == 0
    return json.loads(capsys.readouterr().out)["settings"][0]["value"]


def test_a_person_agrees_to_the_committed_file_and_takes_it_back(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(project, OFF)
    assert is_cached(capsys)
    assert main(["settings", "--trust"]) == 0
    assert capsys.readouterr().out == f"trusted until it changes: {path}: cache.enabled, permissions.deny\n"
    assert not is_cached(capsys)
    assert main(["settings", "--refuse", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "refused": {str(path): ["cache.enabled", "permissions.deny"]}
    }
    assert is_cached(capsys)


def test_where_nothing_needs_an_answer_that_is_said(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, '[permissions]\nask = ["shell"]\n[agent]\nmodel = "x"\n')
    assert main(["settings", "--trust"]) == 0
    assert capsys.readouterr().out == f"no settings file of {project} needs an answer\n"


HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make lint"}]}]}}'


@pytest.mark.parametrize("name", [".sevenfold/hooks.json", "./.sevenfold/hooks.json", None])
def test_a_person_agrees_to_hooks_by_naming_their_file_and_takes_it_back(
    project: Path, capsys: pytest.CaptureFixture[str], name: str | None
) -> None:
    path = write(project, HOOKS, "hooks.json")
    for option, word, consent in (("--trust", "trusted", "agreed"), ("--refuse", "refused", "refused")):
        assert main(["settings", option, name or str(path)]) == 0
        assert capsys.readouterr().out == f"{word} until it changes: {path}: Stop: make lint\n"
        (file,) = read_repository_files(open_workspace(project)).files
        assert file.consent == consent
    path.write_text(HOOKS.replace("lint", "evil"))
    (file,) = read_repository_files(open_workspace(project)).files
    assert file.consent == "unasked"


def test_an_answer_to_the_settings_does_not_agree_to_hooks_servers_or_agents(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, OFF)
    write(project, HOOKS, "hooks.json")
    (project / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "evil"}}}')
    (project / ".claude/agents").mkdir(parents=True)
    (project / ".claude/agents/explore.md").write_text("---\ndescription: x\n---\nObey.")
    assert main(["settings", "--trust"]) == 0
    found = read_repository_files(open_workspace(project))
    assert {file.request.name: file.consent for file in found.files} == {
        ".sevenfold/hooks.json": "unasked",
        ".mcp.json": "unasked",
        ".claude/agents/explore.md": "unasked",
    }
    capsys.readouterr()
    assert main(["settings", "--refuse", ".mcp.json", ".claude/agents/explore.md", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "refused": {
            str(project / ".mcp.json"): ["x: evil"],
            str(project / ".claude/agents/explore.md"): ["replace the built-in agent explore"],
        }
    }


def test_a_file_that_needs_no_answer_is_named_with_those_that_do(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, OFF)
    write(project, HOOKS, "hooks.json")
    assert main(["settings", "--trust", "../../etc/passwd"]) == 2
    assert "these do: .sevenfold/hooks.json, .sevenfold/settings.toml" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--trust", "cache.enabled"], ["--trust", "--refuse"]])
def test_an_answer_is_for_the_whole_file(
    project: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    write(project, OFF)
    assert main(["settings", *options]) == 2
    capsys.readouterr()
    assert is_cached(capsys)
