"""The contracts of `[tool.importlinter]` hold, and each of them can be broken."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.contracts.source_tree import ROOT, run

pytestmark = pytest.mark.gate

DOWN = "Imports go down, never up and never sideways"
PURE = "Policies decide and do not act"
ORDER = "A layer uses only the layers below it"
OUTSIDE = "Each outside library stays in the packages named for it"
SERVER = "The server knows the protocol, not the engine"
ACYCLIC = "No module imports itself by a detour"


@dataclass(frozen=True, slots=True)
class Verdict:
    code: int
    broken: frozenset[str]
    text: str


def lint(tree: Path) -> Verdict:
    """What import-linter says of the package in `tree`, whichever package is installed."""
    done = run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as go; go()", "--no-cache"],
        cwd=tree,
        env={"PYTHONPATH": f"{tree / 'src'}:{ROOT}", "PYTHONSAFEPATH": "1"},
    )
    text = done.stdout + done.stderr
    return Verdict(done.returncode, frozenset(re.findall(r"^(.+) BROKEN$", text, re.MULTILINE)), text)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and its contracts, free to be spoiled."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(tree: Path, module: str, code: str) -> None:
    """Write a module, making the packages it stands in."""
    path = tree / "src" / "sevenfold" / module
    for folder in reversed(path.relative_to(tree / "src" / "sevenfold").parents[:-1]):
        package = tree / "src" / "sevenfold" / folder
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
    path.write_text(code, encoding="utf-8")


def test_every_contract_is_kept() -> None:
    verdict = lint(ROOT)
    assert verdict.code == 0, verdict.text
    for name in (DOWN, ORDER, PURE, OUTSIDE, SERVER, ACYCLIC):
        assert f"{name} KEPT" in verdict.text


@pytest.mark.story
def test_an_import_upwards_breaks_the_build_however_it_is_written(copy: Path) -> None:
    """One run for all of them: each has to be named by itself."""
    spellings = {
        "plain": "import sevenfold.store\n",
        "deferred": "def later() -> None:\n    import sevenfold.store\n",
        "typed": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sevenfold.store\n",
        "relative": "from .. import store\n",
    }
    for name, code in spellings.items():
        plant(copy, f"core/planted_{name}.py", code)
    verdict = lint(copy)
    assert verdict.code != 0
    assert verdict.broken == {DOWN}
    missed = {name for name in spellings if f"core.planted_{name} -> sevenfold.store" not in verdict.text}
    assert missed == set()


@pytest.mark.story
def test_an_import_sideways_breaks_the_build(copy: Path) -> None:
    plant(copy, "proxy/planted.py", "import sevenfold.agent.planted\n")
    plant(copy, "agent/planted.py", "")
    verdict = lint(copy)
    assert verdict.broken == {DOWN}, verdict.text


@pytest.mark.story
def test_a_package_that_nobody_planned_breaks_the_build(copy: Path) -> None:
    plant(copy, "utils/things.py", "")
    plant(copy, "helpers.py", "")
    verdict = lint(copy)
    assert verdict.broken == {DOWN}
    assert "not listed as layers" in verdict.text
    assert "sevenfold.utils" in verdict.text
    assert "sevenfold.helpers" in verdict.text


@pytest.mark.story
def test_a_policy_that_could_act_breaks_the_build(copy: Path) -> None:
    acting = ("os", "pathlib", "time", "asyncio", "http.client", "socket", "io", "random", "importlib")
    names = {f"planted_{module.partition('.')[0]}": module for module in (*acting, "sqlite3")}
    for name, module in names.items():
        plant(copy, f"layers/{name}_policy.py", f"def decide() -> None:\n    import {module}\n")
    verdict = lint(copy)
    assert verdict.broken == {PURE}, verdict.text
    expected = {name: f"layers.{name}_policy -> {name.removeprefix('planted_')} (line 2)" for name in names}
    assert {name for name, line in expected.items() if line not in verdict.text} == set()


@pytest.mark.story
def test_a_policy_that_knows_a_provider_breaks_two_contracts(copy: Path) -> None:
    libraries = ("httpx2", "anthropic", "openai")
    for library in libraries:
        plant(copy, f"layers/planted_{library}_policy.py", f"import {library}\n")
    verdict = lint(copy)
    assert verdict.broken == {PURE, OUTSIDE}
    told = {
        library: verdict.text.count(f"layers.planted_{library}_policy -> {library}") for library in libraries
    }
    assert told == dict.fromkeys(libraries, 2), verdict.text


@pytest.mark.story
def test_a_policy_that_reads_the_clock_or_uses_a_module_that_acts_breaks_the_build(copy: Path) -> None:
    plant(copy, "layers/sown_policy.py", "from sevenfold.core.clock import SystemClock\n")
    plant(copy, "layers/planted_policy.py", "import sevenfold.layers.planted\n")
    plant(copy, "layers/planted.py", "import os\n")
    verdict = lint(copy)
    assert verdict.broken == {PURE}
    assert "sevenfold.layers.sown_policy -> sevenfold.core.clock (line 1)" in verdict.text
    assert "sevenfold.layers.planted_policy -> sevenfold.layers.planted (line 1)" in verdict.text


@pytest.mark.story
def test_a_layer_that_uses_one_above_it_breaks_the_build(copy: Path) -> None:
    plant(copy, "layers/tool_results/planted.py", "import sevenfold.layers.dreams.sown\n")
    plant(copy, "layers/dreams/sown.py", "")
    assert lint(copy).broken == {ORDER}


@pytest.mark.story
def test_a_library_outside_its_packages_or_in_no_row_breaks_the_build(copy: Path) -> None:
    plant(copy, "providers/planted.py", "import anthropic\n")
    plant(copy, "store/planted.py", "import anthropic.types\n")
    plant(copy, "store/sown.py", "def later() -> None:\n    import yaml\n")
    verdict = lint(copy)
    assert verdict.broken == {OUTSIDE}
    assert "sevenfold.store.planted -> anthropic" in verdict.text
    assert "sevenfold.store.sown -> yaml (line 2)" in verdict.text
    assert "sevenfold.providers.planted" not in verdict.text


@pytest.mark.story
def test_a_server_that_knows_the_engine_breaks_the_build(copy: Path) -> None:
    packages = ("agent", "layers", "providers", "session", "store")
    for package in packages:
        plant(copy, f"{package}/planted.py", "")
        plant(copy, f"team/server/planted_{package}.py", f"import sevenfold.{package}.planted\n")
    verdict = lint(copy)
    assert verdict.broken == {DOWN, SERVER}
    expected = {package: f"server.planted_{package} -> sevenfold.{package}.planted" for package in packages}
    assert {package for package, line in expected.items() if line not in verdict.text} == set()


@pytest.mark.story
def test_a_server_that_reaches_the_engine_through_a_friend_breaks_the_build(copy: Path) -> None:
    plant(copy, "store/planted.py", "")
    plant(copy, "team/sown.py", "import sevenfold.store.planted\n")
    plant(copy, "team/server/planted.py", "import sevenfold.team.sown\n")
    plant(copy, "team/shared.py", "")
    plant(copy, "team/server/free.py", "import sevenfold.team.shared\n")
    verdict = lint(copy)
    assert verdict.broken == {SERVER}
    assert "team.server.planted" in verdict.text
    assert "team.server.free" not in verdict.text, "what is shared is free to be known"


@pytest.mark.story
def test_a_cycle_through_a_deferred_import_breaks_the_build(copy: Path) -> None:
    plant(copy, "core/planted.py", "import sevenfold.core.sown\n")
    plant(copy, "core/sown.py", "def later() -> None:\n    import sevenfold.core.planted\n")
    verdict = lint(copy)
    assert verdict.broken == {ACYCLIC}
    assert "sevenfold.core.planted -> sevenfold.core.sown -> sevenfold.core.planted" in verdict.text


def test_the_table_of_libraries_names_only_packages_of_ours() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = cast("list[dict[str, object]]", config["tool"]["importlinter"]["contracts"])
    by_name = {contract["name"]: contract for contract in contracts}
    layers = " ".join(cast("list[str]", by_name[DOWN]["layers"]))
    packages = set(re.findall(r"\w+", layers))
    table = cast("dict[str, list[str]]", by_name[OUTSIDE]["libraries"])
    assert {package for row in table.values() for package in row} <= packages


def test_a_package_that_is_built_stands_in_the_list_without_brackets() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    planned = set(re.findall(r"\((\w+)\)", text))
    home = ROOT / "src" / "sevenfold"
    built = {
        package
        for package in planned
        if any((home / file).exists() for file in (f"{package}/__init__.py", f"{package}.py"))
    }
    assert built == set(), "take the brackets off these packages in [tool.importlinter]"
