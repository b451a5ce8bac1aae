"""Tab completes commands, options and values, in a real bash."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from sevenfold.cli import completion, main
from sevenfold.cli.commands import COMMANDS
from sevenfold.core.extras import render_install_command

needs_shtab = pytest.mark.skipif(find_spec("shtab") is None, reason="shtab is not installed")


def print_script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@needs_shtab
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script_with_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = print_script(shell, capsys)
    for command in COMMANDS:
        assert command.name in script


@needs_shtab
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("sevenfold lay", {"layers"}),
        ("sevenfold layers --js", {"--json"}),
        ("sevenfold install cl", {"claude-code"}),
        ("sevenfold memory bla", {"blame"}),
    ],
)
def test_bash_completes(typed: str, expected: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = typed.split()
    ask = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_sevenfold; echo ${{COMPREPLY[@]}}"
    script = f"{print_script('bash', capsys)}\n{ask}\n"
    done = subprocess.run(["bash", "--norc"], input=script, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == expected, done.stderr


def test_no_other_command_loads_the_library() -> None:
    code = "import sys, sevenfold.cli as cli; cli.main(['layers']); print('shtab' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_without_the_library_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_nothing(_name: str) -> None:
        """Nothing is installed."""

    monkeypatch.setattr(completion, "find_spec", find_nothing)
    assert main(["completion", "bash"]) == 2
    said = f"error: sevenfold completion needs shtab; run: {render_install_command('completion')}\n"
    assert capsys.readouterr().err == said
