"""What a user installs: the built wheel, without the source beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT

pytestmark = [pytest.mark.story, pytest.mark.timeout(600)]

MAX_WHEEL_BYTES = 2_500_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = target.glob("*.whl")
    print(f"wheel: {built.stat().st_size:,} bytes")  # noqa: T201 - a figure to look at
    return built


def read_metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return files.read(name).decode("utf-8")


def test_the_wheel_is_small_and_has_nothing_but_the_package(wheel: Path) -> None:
    assert wheel.stat().st_size <= MAX_WHEEL_BYTES
    with zipfile.ZipFile(wheel) as files:
        tops = {name.partition("/")[0] for name in files.namelist()}
    assert {re.sub(r"-[\d.]+\.", ".", top) for top in tops} == {"sevenfold", "sevenfold.dist-info"}


def test_its_metadata_says_who_made_it_and_where_it_is(wheel: Path) -> None:
    head = read_metadata(wheel).partition("\n\n")[0]
    assert re.search(r"^Author: \S", head, re.MULTILINE)
    urls = dict(re.findall(r"^Project-URL: (\w+), (https://\S+)$", head, re.MULTILINE))
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues"} <= set(urls)
    assert re.search(r"^Provides-Extra: all$", head, re.MULTILINE)


def test_every_link_and_picture_of_its_readme_is_a_whole_address(wheel: Path) -> None:
    head, _, readme = read_metadata(wheel).partition("\n\n")
    links = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert len(links) > 10
    assert [link for link in links if not re.match(r"https://|#", link)] == []
    home = re.search(r"^Project-URL: Homepage, https://github.com/(\S+)$", head, re.MULTILINE)
    assert home
    for link in links:
        if link.startswith("https://"):
            assert f"/{home[1]}/" in f"{link}/", link


def run_replay(command: list[str], folder: Path, **environ: str) -> str:
    # In place of a browser: writes down what it was to open.
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {folder}/opened\n', encoding="utf-8")
    browser.chmod(0o755)
    clean = {"HOME": str(folder), "PATH": os.environ["PATH"], "BROWSER": f"{browser} %s", **environ}
    done = subprocess.run(
        [*command, "replay", "--html", "--open"],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    opened = (folder / "opened").read_text(encoding="utf-8").strip()
    assert "</html>" in Path(opened.removeprefix("file://")).read_text(encoding="utf-8")
    return done.stdout


def test_the_wheel_alone_shows_a_bill(wheel: Path, tmp_path: Path) -> None:
    """With the libraries of this environment, and none of its source."""
    unpacked, home = tmp_path / "unpacked", tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(wheel) as files:
        files.extractall(unpacked)
    told = run_replay([sys.executable, "-m", "sevenfold"], home, PYTHONPATH=str(unpacked))
    assert "spent" in told


@pytest.mark.registry
def test_uvx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    tools, home = tmp_path / "tools", tmp_path / "home"
    home.mkdir()
    uvx = shutil.which("uvx")
    if uvx is None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tools), "uv"]
        if subprocess.run(pip, capture_output=True, check=False).returncode != 0:
            pytest.skip("uvx is not installed and no package registry can be reached")
        uvx = str(tools / "bin" / "uvx")
    passed = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_", "PIP_"))}
    told = run_replay([uvx, "--python", sys.executable, "--from", str(wheel), "sevenfold"], home, **passed)
    assert "spent" in told
