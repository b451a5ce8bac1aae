"""Paths, modules and names of ours that a page mentions exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tests.contracts.source_tree import ROOT, relative, tracked_files

pytestmark = pytest.mark.gate

PACKAGE = ROOT / "src" / "sevenfold"
PAGES = sorted(path for path in tracked_files() if path.suffix == ".md" and PACKAGE not in path.parents)
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CHANGES = (
    *("provider", "tool", "slash command", "setting", "event", "CLI command"),
    *("agent to install into", "field of a memory", "database column", "transcript reader", "clearing rule"),
)
EXAMPLES = frozenset({"api/routes.py", "src/api/routes.py"})
"""Paths of an imaginary project that a page explains something with."""

_SPAN = re.compile(r"`([^`\n]+)`")
_PYTHON_FILE = re.compile(r"(?<![\w./-])[\w-][\w./-]*/[\w-]+\.py\b")
_DOTTED = re.compile(r"(?<![\w./-])sevenfold(?:\.[A-Za-z_]\w*)+")
_IMPORT = re.compile(r"^from (sevenfold[\w.]*) import (?:\(([^)]*)\)|([\w, ]+))", re.MULTILINE)
_CODE_NAME = re.compile(r"(?=\w*[A-Z_.])[A-Za-z_]\w*(?:\.[a-z_]\w*)?(?<!\.md)")
"""With a capital, an underscore or a member: one lower-case word may be a word of the field."""
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*|\w[\w-]*\.(?:md|toml|json)")


def is_there(path: str) -> bool:
    """Whether a path exists, below the repository or below the package."""
    return (ROOT / path).exists() or (PACKAGE / path).exists()


def missing_files(text: str) -> list[str]:
    """Python files with a folder, in backticks, that are in neither place."""
    named = (path for span in _SPAN.findall(text) for path in _PYTHON_FILE.findall(span))
    return [path for path in named if path not in EXAMPLES and not is_there(path)]


def missing_names(text: str) -> list[str]:
    """Dotted names of modules, or of what is in one, and imports that would fail."""
    named = [*_DOTTED.findall(text), *_imported(text)]
    return [name for name in named if not _is_name(name)]


def _imported(text: str) -> Iterator[str]:
    for module, several, few in _IMPORT.findall(text):
        for name in re.findall(r"\w+", several or few):
            yield f"{module}.{name}"


def _is_name(name: str) -> bool:
    module, rest = name.split(".", 1)[0], name.split(".")[1:]
    while rest and _is_module(f"{module}.{rest[0]}"):
        module, rest = f"{module}.{rest[0]}", rest[1:]
    found: object = import_module(module)
    for attribute in rest:
        if not hasattr(found, attribute):
            return False
        found = getattr(found, attribute)
        if isinstance(found, ModuleType) and not _is_module(found.__name__):
            return False
    return True


def _is_module(name: str) -> bool:
    """Whether there is a file or folder for it: an old path that is only kept for compatibility is none."""
    try:
        found = find_spec(name)
    except ModuleNotFoundError:
        return False
    return found is not None and found.origin is not None


def change_lists(text: str) -> dict[str, str]:
    """The parts of the section that says where to change something, by their heading."""
    section = text.partition("## Where do I change")[2]
    parts = re.split(r"^### An? (.+)$", section, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def missing_layer_files(text: str) -> list[str]:
    """Files in the table of layers that are not in the folder of their row."""
    section = text.partition("## What a layer looks like")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if re.match(r"\| \d ", line)]
    return [
        f"{folder}/{name}"
        for row in rows
        for folder in re.findall(r"`([\w/]+)`", row[2])[-1:]
        for name in re.findall(r"`(\w+\.py)`", "".join(row[3:]))
        if not is_there(f"{folder}/{name}")
    ]


def missing_paths(text: str) -> list[str]:
    """Paths of any kind in backticks that are in neither place."""
    spans = (span for span in _SPAN.findall(text) if _PATH.fullmatch(span) or "/" in span)
    return [span for span in spans if not is_there(span)]


def misplaced_names(text: str) -> list[str]:
    """Names of code in the steps of a list that are in none of the Python files which their step names."""
    found: list[str] = []
    for step in re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]:
        spans = _SPAN.findall(step)
        paths = (place / span for span in spans if span.endswith(".py") for place in (ROOT, PACKAGE))
        code = "\n".join(path.read_text(encoding="utf-8") for path in paths if path.exists())
        words = set(re.findall(r"\w+", code))
        names = (span for span in spans if _CODE_NAME.fullmatch(span)) if code else ()
        found += [name for name in names if not words.issuperset(name.split("."))]
    return found


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_python_file_and_module_of_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert missing_files(text) == []
    assert missing_names(text) == []


def test_every_file_in_the_table_of_layers_is_in_its_folder() -> None:
    assert len(re.findall(r"^\| \d .*`policy\.py`", ARCHITECTURE, re.MULTILINE)) >= 7
    assert missing_layer_files(ARCHITECTURE) == []


def test_a_file_that_is_not_in_the_folder_of_its_layer_is_found() -> None:
    planted = "## What a layer looks like\n\n| 6 dreams | `layers/dreams` | `policy.py` | `sleep.py` |\n"
    assert missing_layer_files(planted) == ["layers/dreams/sleep.py"]


def test_every_path_of_where_to_change_something_exists() -> None:
    lists = change_lists(ARCHITECTURE)
    assert tuple(lists) == CHANGES
    for name, text in lists.items():
        assert missing_paths(text) == [], name
        assert misplaced_names(text) == [], name
        for folder in ("`tests/", "`docs/"):
            assert folder in text, f"{name} names nothing in {folder[1:]}"


def test_a_name_that_is_not_in_the_files_of_its_step_is_found() -> None:
    planted = (
        "1. `core/clock.py`: `Clock`, `Hammer`.\n2. `docs/tools.md`, `core/json.py`: `JsonObject.swing`\n"
    )
    assert misplaced_names(planted) == ["Hammer", "JsonObject.swing"]


def test_a_path_to_change_that_is_not_there_is_found() -> None:
    planted = (
        "## Where do I change …\n\n### A tool\n\n`agent/tools`, `agent/tools/hammer.py`, `docs/hammer.md`\n"
    )
    assert missing_paths(change_lists(planted)["tool"]) == ["agent/tools/hammer.py", "docs/hammer.md"]
    assert missing_paths("`nowhere.md`, `CHANGELOG.md`, `tests/nowhere`") == ["nowhere.md", "tests/nowhere"]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`core/nowhere.py` and `core/json.py`", ["core/nowhere.py"]),
        ("`python bench/nowhere.py --data DIR`", ["bench/nowhere.py"]),
        ("`tests/docs/test_names.py`, `script.py`, api/routes.py, `src/api/routes.py`", []),
    ],
)
def test_a_file_that_is_not_there_is_found(text: str, missing: list[str]) -> None:
    assert missing_files(text) == missing


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`sevenfold.core.nowhere`", ["sevenfold.core.nowhere"]),
        ("`sevenfold.core.json.read_nothing`", ["sevenfold.core.json.read_nothing"]),
        ("`sevenfold.engine` has moved", ["sevenfold.engine"]),
        ("from sevenfold.core.json import Json, Jason\n", ["sevenfold.core.json.Jason"]),
        ("from sevenfold.core.json import (\n    Jason,\n)\n", ["sevenfold.core.json.Jason"]),
        ("`sevenfold.core`, `sevenfold.attach`, `sevenfold.session.session.Session.prepare`", []),
    ],
)
def test_a_name_that_is_not_there_is_found(text: str, missing: list[str]) -> None:
    assert missing_names(text) == missing
