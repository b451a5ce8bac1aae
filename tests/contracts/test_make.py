"""The commands a developer types."""

from __future__ import annotations

import re
import shutil
import stat
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT, run

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]


def make(*arguments: str, cwd: Path = ROOT) -> tuple[int, str, str]:
    done = run(["make", "--no-print-directory", *arguments], cwd=cwd, env={"MAKEFLAGS": "", "MAKELEVEL": ""})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A clone in which nothing has been set up."""
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_make_alone_says_what_there_is() -> None:
    code, told, _ = make()
    assert code == 0
    targets = (
        "test",
        "repeat",
        "check",
        "format",
        "torture",
        "bench",
        "mutation",
        "constraints",
        "clean",
        "help",
    )
    for target in targets:
        assert re.search(rf"^  make {target} +\S", told, re.MULTILINE)


@pytest.mark.parametrize("version", ["3.10", None], ids=["too old", "missing"])
def test_a_python_that_will_not_do_is_named_with_what_to_try(bare: Path, version: str | None) -> None:
    python = bare / "python"
    if version:
        python.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
    code, _, told = make("test", f"PYTHON={python}", cwd=bare)
    assert code != 0
    assert f"error: Sevenfold needs Python 3.11 or newer, and '{python}' is not one." in told
    assert "make PYTHON=python3.12 test" in told
    assert not (bare / ".venv").exists()


def test_setting_up_takes_only_pinned_files_whose_hashes_match(bare: Path) -> None:
    code, plan, _ = make("--dry-run", "test", cwd=bare)
    assert code == 0
    assert "install --require-hashes --requirement constraints.txt" in plan
    assert "install --no-deps --no-build-isolation --no-index --editable ." in plan


def test_nothing_is_set_up_twice(bare: Path) -> None:
    (bare / ".venv").mkdir()
    for stamp in (".tools-installed", ".package-installed"):
        (bare / ".venv" / stamp).touch()
    code, plan, _ = make("--dry-run", "test", cwd=bare)
    assert code == 0
    assert "install" not in plan
    assert "pytest" in plan


def test_the_tour_installs_only_what_it_needs(bare: Path) -> None:
    shutil.copy(ROOT / "constraints-try.txt", bare)
    code, plan, _ = make("--dry-run", "try", cwd=bare)
    assert code == 0
    assert "install --no-compile --require-hashes --requirement constraints-try.txt" in plan
    assert "constraints.txt" not in plan
    pins = (ROOT / "constraints-try.txt").read_text(encoding="ascii")
    assert not re.search(
        r"^(basedpyright|pytest|playwright|onnxruntime|openai|xllamacpp)==", pins, re.MULTILINE
    )


def test_a_developer_needs_no_second_environment_for_the_tour(bare: Path) -> None:
    shutil.copy(ROOT / "constraints-try.txt", bare)
    (bare / ".venv").mkdir()
    (bare / ".venv" / ".tour-installed").touch()
    code, plan, _ = make("--dry-run", "try", cwd=bare)
    assert (code, "install" in plan) == (0, False)


def test_the_tour_has_the_versions_that_the_tests_run_with() -> None:
    pins = [
        set(re.findall(r"^([\w.-]+==\S+)", (ROOT / name).read_text(encoding="ascii"), re.MULTILINE))
        for name in ("constraints.txt", "constraints-try.txt")
    ]
    assert {pin for pin in pins[1] - pins[0] if not pin.startswith("httptools==")} == set()


def test_every_tool_of_the_dev_group_is_pinned() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    group = text.partition("dev = [")[2].partition("\n]")[0]
    pins = (ROOT / "constraints.txt").read_text(encoding="ascii")
    wanted = re.findall(r'^  "([a-z-]+)"', group, re.MULTILINE)
    assert {"basedpyright", "hatchling", "pytest", "ruff"} <= set(wanted)
    for name in wanted:
        assert re.search(rf"^{name}==", pins, re.MULTILINE), f"{name}: run `make constraints`"
