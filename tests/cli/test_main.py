"""At the edge every failure is one line and an exit code."""

from __future__ import annotations

import builtins
import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from sevenfold.cli import commands, main
from sevenfold.cli.screen import Screen
from sevenfold.core import __version__
from sevenfold.core.errors import DiskFull, InputError, SettingsError
from sevenfold.layers import LAYERS
from sevenfold.store.project.project import Project


def answer_with(monkeypatch: pytest.MonkeyPatch, outcome: BaseException | int) -> None:
    def command(options: Namespace, screen: Screen) -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def found(name: str) -> commands.RunCommand:
        assert name == "layers"
        return command

    monkeypatch.setattr(commands, "load_command", found)


@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (InputError("no such thing"), 2, "error: no such thing\n"),
        (SettingsError("bad value"), 2, "error: bad value\n"),
        (DiskFull("no space left"), 1, "error: no space left\n"),
        (KeyboardInterrupt(), 130, ""),
        (InputError("red \x1b[31m name"), 2, "error: red \\x1b[31m name\n"),
    ],
)
def test_each_outcome_has_its_code_and_its_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: BaseException | int,
    code: int,
    said: str,
) -> None:
    answer_with(monkeypatch, outcome)
    assert main(["layers"]) == code
    assert capsys.readouterr().err == said


def test_a_bug_is_one_line_that_asks_to_be_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_with(monkeypatch, KeyError("shelf\nsecond line"))
    assert main(["layers"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: unexpected KeyError")
    assert "please report" in said
    assert said.count("\n") == 1


def test_a_bug_shows_where_it_happened_to_those_who_ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEVENFOLD_DEBUG", "1")
    answer_with(monkeypatch, KeyError("shelf"))
    assert main(["layers"]) == 1
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert said.splitlines()[-1].startswith("error: unexpected KeyError")


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "examples:" in said
    assert "sevenfold settings compact.enabled" in said
    assert len(said.splitlines()) <= 60, "one screen"
    assert main(["settings", "--help"]) == 0
    assert ".sevenfold/settings.local.toml" in capsys.readouterr().out


def test_every_command_stands_in_the_help_once_in_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    listed = capsys.readouterr().out.partition("options:")[0]
    shown: dict[str, list[str]] = {}
    group = ""
    for line in listed.splitlines():
        if found := re.match(r"(try|run|look|team): ", line):
            group = found[1]
        elif line.startswith("    "):
            shown.setdefault(group, []).append(line.split()[0])
    assert list(shown) == list(commands.COMMAND_GROUPS)
    assert shown == {
        group: [command.name for command in commands.COMMANDS if command.group == group] for group in shown
    }
    names = [name for several in shown.values() for name in several]
    assert sorted(names) == sorted(command.name for command in commands.COMMANDS)
    assert all(callable(commands.load_command(name)) for name in names)


def test_no_command_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "examples:" in shown.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["laiers"],
            "argument COMMAND: 'laiers' is unknown; did you mean 'layers'? (see `sevenfold --help`)",
        ),
        (["qqq"], "argument COMMAND: 'qqq' is unknown (see `sevenfold --help`)"),
        (
            ["layers", "--jsno"],
            "unrecognized arguments: --jsno; did you mean '--json'? (see `sevenfold layers --help`)",
        ),
        (
            ["chat", "--modle", "x"],
            "unrecognized arguments: --modle; did you mean '--model'? (see `sevenfold chat --help`)",
        ),
        (["layers", "--qqq"], "unrecognized arguments: --qqq (see `sevenfold layers --help`)"),
        (
            ["memory", "lst"],
            "argument ACTION: 'lst' is unknown; did you mean 'list'? (see `sevenfold memory --help`)",
        ),
        (
            ["completion", "tcsh"],
            "argument SHELL: 'tcsh' is unknown; expected bash, zsh, fish (see `sevenfold completion --help`)",
        ),
        (["layers", "re\x1b[31md"], "unrecognized arguments: re\\x1b[31md (see `sevenfold layers --help`)"),
    ],
)
def test_a_wrong_argument_is_one_line_that_says_what_was_meant(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sevenfold {__version__}\n"


def test_an_interrupt_while_the_command_is_loaded_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def interrupted(name: str, *more: object) -> object:
        if name == "sevenfold.cli.screen":
            raise KeyboardInterrupt
        return cast("Callable[..., object]", real)(name, *more)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert main(["layers"]) == 130
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_layers_are_printed_from_their_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(LAYERS) == 14
    for layer, first, second in zip(LAYERS, lines[::2], lines[1::2], strict=True):
        assert first.split() == [str(layer.number), *layer.name.split(), "costs", *layer.cost.split()]
        assert second.split() == [layer.folder, "acts", "on", *layer.trigger.split()]
    assert main(["layers", "--json"]) == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)] == [item.name for item in LAYERS]


def test_the_module_runs_like_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sevenfold", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (f"sevenfold {__version__}\n", "")


@pytest.mark.story
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sevenfold", "settings", "--json"],
            cwd=tmp_path,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.story
def test_a_narrow_encoding_hides_nothing_and_fails_nothing(tmp_path: Path) -> None:
    project = tmp_path / "tée"
    settings = project / ".sevenfold" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[tool_results]\nlimit_chars = 5\n")
    done = subprocess.run(
        [sys.executable, "-m", "sevenfold", "settings", "--project", str(project)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert r"t\xe9e" in done.stdout
    assert done.stderr == ""


def test_the_command_line_loads_no_command_it_does_not_run(tmp_path: Path) -> None:
    code = "import sys, sevenfold.cli as cli; cli.main(['layers']); print('sevenfold.store' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_an_empty_home_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    answer_with(monkeypatch, 0)
    assert main(["layers"]) == 0
    assert "HOME" not in os.environ
    assert Path("~/x").expanduser() != Path("/x") or Path("~").expanduser() == Path("/")


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_chat_that_cannot_open_its_session_says_so_in_the_form_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str
) -> None:
    def is_full(*_: object, **__: object) -> None:
        raise DiskFull("no space left; free some")

    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setattr(Project, "open_root", is_full)
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["chat", "-p", "hi", "--project", str(tmp_path), "--output", form]) == 1
    told = capsys.readouterr()
    (line,) = told.out.splitlines()
    result = json.loads(line)
    assert (result["type"], result["is_error"], result["session_id"]) == ("result", True, "")
    assert (result["subtype"], result["result"]) == ("error_during_execution", "no space left; free some")
    assert told.err == "error: no space left; free some\n"


@pytest.mark.parametrize("command", [["mcp"], ["install", "cursor", "--dry-run"], ["memory", "list"]])
def test_in_a_folder_that_was_removed_a_command_says_so(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(command) == 1
    assert "was removed; change to another one" in capsys.readouterr().err


def test_a_resident_process_that_does_not_run_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEVENFOLD_HOME", str(tmp_path))
    assert main(["resident"]) == 0
    assert capsys.readouterr().out == "not running; it starts when a hook or an MCP server needs it\n"


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in ((["help"], "usage: sevenfold COMMAND"), (["help", "replay"], "--policy")):
        assert main(words) == 0
        assert said in capsys.readouterr().out


def test_an_option_without_its_value_lists_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--policy"]) == 2
    assert "expected one argument: sevenfold, balanced" in capsys.readouterr().err
