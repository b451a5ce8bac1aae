"""The command that adds an extra, for every way in which the package was installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sevenfold.core.extras import render_install_command, render_pip_arguments


@pytest.mark.parametrize(
    ("origin", "arguments"),
    [
        ({}, "'sevenfold[ui,chat]'"),
        (
            {
                "url": "https://example.org/s.git",
                "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "ab12"},
            },
            "'sevenfold[ui,chat] @ git+https://example.org/s.git@main'",
        ),
        (
            {"url": "https://example.org/s.whl", "archive_info": {}},
            "'sevenfold[ui,chat] @ https://example.org/s.whl'",
        ),
        ({"url": "file:///no/such/checkout", "dir_info": {}}, "'sevenfold[ui,chat]'"),
    ],
)
def test_it_is_installed_from_where_it_came(origin: dict[str, object], arguments: str) -> None:
    assert render_pip_arguments(origin, ("ui", "chat"), "/") == arguments


def test_a_local_path_is_named_as_seen_from_here(tmp_path: Path) -> None:
    checkout = tmp_path / "my checkout"
    (checkout / "docs").mkdir(parents=True)
    origin: dict[str, object] = {"url": checkout.as_uri(), "dir_info": {}}
    assert render_pip_arguments(origin, ("ui",), str(checkout)) == "'.[ui]'"
    assert render_pip_arguments(origin, ("ui",), str(tmp_path)) == "'./my checkout[ui]'"
    assert render_pip_arguments(origin, ("ui",), str(checkout / "docs")) == f"'{checkout}[ui]'"
    origin = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    assert render_pip_arguments(origin, ("ui",), str(checkout)) == "-e '.[ui]'"


def test_the_pip_is_that_of_this_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert render_install_command("ui").startswith("pip install ")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert render_install_command("ui").startswith(f"{sys.executable} -m pip install ")
    monkeypatch.chdir(Path(sys.executable).parents[1])
    assert render_install_command("ui").startswith(f"bin/{Path(sys.executable).name} -m pip install ")


def test_an_error_brings_it_without_loading_it_first() -> None:
    code = "import sys, sevenfold.core.errors; print('sevenfold.core.extras' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
