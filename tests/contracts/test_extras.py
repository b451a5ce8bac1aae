"""The extras of the package, what doctor says of them, and the one message for a missing one."""

from __future__ import annotations

import re
import tomllib
from typing import cast

import pytest

from sevenfold.cli.inspect.doctor import OPTIONAL_EXTRAS
from sevenfold.core.errors import describe_missing
from sevenfold.core.extras import render_install_command
from tests.contracts.source_tree import ROOT, relative, tracked_files

pytestmark = pytest.mark.gate

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = cast("dict[str, list[str]]", _PROJECT["optional-dependencies"])


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w-]+", requirement) for requirement in requirements)
    return {match.group().lower().replace("_", "-") for match in found if match}


def test_all_is_every_extra_but_local_models() -> None:
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything)) - {"sevenfold"} == set(EXTRAS) - {"all", "local"}


def test_chat_brings_one_sdk() -> None:
    assert names(EXTRAS["chat"]) & {"anthropic", "openai"} == {"anthropic"}


def test_doctor_names_each_optional_package_and_an_extra_that_installs_it() -> None:
    told = {extra.package.lower().replace("_", "-") for extra in OPTIONAL_EXTRAS}
    assert told == {name for key, needed in EXTRAS.items() if key != "all" for name in names(needed)}
    for extra in OPTIONAL_EXTRAS:
        assert extra.package.lower().replace("_", "-") in names(EXTRAS[extra.extra]), extra


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        (["rich"], "rich"),
        (["prompt_toolkit", "rich"], "prompt_toolkit and rich"),
        (["apsw", "prometheus_client", "yaml"], "apsw, prometheus-client and PyYAML"),
    ],
)
def test_a_missing_package_is_named_as_the_index_spells_it(modules: list[str], said: str) -> None:
    message = describe_missing("sevenfold tour", modules, "chat", "simulator")
    assert message == f"sevenfold tour needs {said}; run: {render_install_command('chat', 'simulator')}"


def other_shapes(text: str) -> list[str]:
    """Commands that install an extra, written by hand."""
    return re.findall(r"install (?:'?sevenfold\[)[^{\]]*\]", text)


def test_only_one_place_says_how_to_install_an_extra() -> None:
    package = ROOT / "src" / "sevenfold"
    found = {
        relative(path): len(other_shapes(path.read_text(encoding="utf-8")))
        for path in tracked_files()
        if path.suffix == ".md" or (path.suffix == ".py" and package in path.parents)
    }
    assert {name: count for name, count in found.items() if count} == {}


def test_a_second_shape_is_found() -> None:
    assert len(other_shapes("pip install 'sevenfold[mcp]' or install sevenfold[mcp]")) == 2
