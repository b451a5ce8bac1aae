"""What there is stands in the docs, and what stands in the docs is there."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.cli.commands import make_parser
from sevenfold.core import errors
from sevenfold.core.events import EVENT_TYPES
from tests.contracts.source_tree import ROOT, relative, tracked_files

pytestmark = pytest.mark.gate

PAGES = sorted(path for path in tracked_files() if path.suffix == ".md")
TURNING = ("history", "view", "round", "turn", "spill", "preview", "notes", "memory", "index")
LASTING = ("fork", "brief", "writer", "prefix", "break", "cut", "boundary", "package", "layer", "breakpoint")


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    options: tuple[str, ...]


def read_commands(capsys: pytest.CaptureFixture[str]) -> list[Command]:
    """The commands there are, as their own help tells them."""
    names = re.findall(r"^    (\w+)  +\S", make_parser().format_help(), re.MULTILINE)
    return [Command(name, help_options(name, capsys)) for name in names]


def help_options(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, ...]:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out.partition("examples:")[0]
    options = re.findall(r"^  (--\w[\w-]*|[A-Z]+)\b", text, re.MULTILINE)
    return tuple(options)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows(text: str) -> dict[str, str]:
    """The first cell of each row of a page's tables that is a name, with the rest of its row."""
    found = re.findall(r"^\| [`*]+(\w+)[`*]+ \|(.*)$", text, re.MULTILINE)
    return dict(found)


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(source: Path) -> list[Path]:
    """The pages and folders of ours that a page links to."""
    if source.suffix != ".md":
        return []
    names = re.findall(r"\]\(([\w./-]+)", source.read_text(encoding="utf-8"))
    return [(source.parent / name).resolve() for name in names]


def broken_links(source: Path, text: str) -> list[str]:
    """Relative links of a page that lead nowhere."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    broken: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (source.parent / name).resolve() if name else source
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    return broken


def test_every_event_is_described_with_all_its_fields_and_no_other_is() -> None:
    told = rows(page("docs/events.md"))
    assert sorted(told) == [event.__name__ for event in EVENT_TYPES]
    for event in EVENT_TYPES:
        for field in fields(event):
            assert f"`{field.name}`" in told[event.__name__], f"{event.__name__}.{field.name}"


def test_every_error_is_described_and_no_other_is() -> None:
    declared = {name for name, thing in vars(errors).items() if isinstance(thing, type)}
    assert set(rows(page("docs/errors.md"))) == declared


def test_every_command_is_described_with_all_its_options_and_no_other_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = rows(page("docs/commands.md").partition("## Exit codes")[0])
    commands = read_commands(capsys)
    assert set(told) == {command.name for command in commands}
    assert any("--html" in command.options for command in commands)
    for command in commands:
        for option in command.options:
            assert f"`{option}" in told[command.name], f"sevenfold {command.name} {option}"


def test_every_exit_code_is_described() -> None:
    codes = set(re.findall(r"\b(\d+): ", main.__doc__ or ""))
    assert codes == set(re.findall(r"^\| (\d+) \|", page("docs/commands.md"), re.MULTILINE))


def package_rows(text: str) -> list[str]:
    """The rows of the table of packages."""
    table = text.partition("## Packages")[2].partition("###")[0]
    return [line for line in table.splitlines() if line.startswith("| `")]


def missing_packages(text: str, packages: set[str]) -> list[str]:
    """Packages that have no row in the table."""
    cells = " ".join(line.split("|")[1] for line in package_rows(text))
    return sorted(package for package in packages if f"`{package}`" not in cells)


def test_every_package_stands_in_the_architecture() -> None:
    package = ROOT / "src" / "sevenfold"
    found = {
        path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert missing_packages(page("docs/architecture.md"), found - {"__init__"}) == []


def test_a_package_without_a_row_is_found() -> None:
    planted = "## Packages\n\n| `core`, `store` | values; not `agent` |\n\n### `agent`\n"
    assert missing_packages(planted, {"core", "store", "agent"}) == ["agent"]


def test_the_architecture_names_packages_in_the_order_of_the_contract() -> None:
    listing = re.search(r"^layers = \[\n(.*?)^\]", page("pyproject.toml"), re.MULTILINE | re.DOTALL)
    assert listing
    cells = [line.split("|")[1] for line in package_rows(page("docs/architecture.md"))]
    assert re.findall(r"\w+", " ".join(cells)) == re.findall(r"\w+", listing[1])


def test_every_layer_of_the_contract_has_its_folder_in_the_architecture() -> None:
    package = ROOT / "src" / "sevenfold" / "layers"
    section = page("docs/architecture.md").partition("## What a layer looks like")[2].partition("\n## ")[0]
    for folder in package.iterdir():
        if (folder / "__init__.py").exists():
            assert f"`layers/{folder.name}`" in section


def test_every_contract_stands_in_the_architecture() -> None:
    names = re.findall(
        r'^name = "(.+)"$', page("pyproject.toml").partition("[tool.importlinter]")[2], re.MULTILINE
    )
    assert len(names) == 6
    table = page("docs/architecture.md").partition("## Contracts")[2].partition("\n## ")[0]
    for name in names:
        assert f"| {name} |" in table


def test_every_module_of_gates_stands_in_the_architecture() -> None:
    table = page("docs/architecture.md").partition("## Contracts")[2].partition("\n## ")[0]
    gates = {path.name for path in (ROOT / "tests" / "contracts").glob("test_*.py")} - {"test_imports.py"}
    assert sorted(gate for gate in gates if f"`tests/contracts/{gate}`" not in table) == []


@pytest.mark.parametrize("word", [*TURNING, *LASTING])
def test_the_glossary_defines(word: str) -> None:
    assert word in rows(page("docs/glossary.md"))


@pytest.mark.parametrize("source", PAGES, ids=relative)
def test_every_relative_link_leads_somewhere(source: Path) -> None:
    assert broken_links(source, source.read_text(encoding="utf-8")) == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    text = "[a](README.md) [b](nowhere.md) [c](AGENTS.md#nothing) [d](https://a.b) [e](README.md#read-on)"
    assert broken_links(ROOT / "README.md", text) == ["nowhere.md", "AGENTS.md#nothing"]


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        place = waiting.pop()
        if place not in reached and place.exists():
            reached.add(place)
            waiting += place.glob("*.md") if place.is_dir() else links(place)
    assert [relative(source) for source in PAGES if source not in reached] == []


def test_decisions_are_numbered_once_and_say_what_a_decision_says() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [path.name[:3] for path in decisions]
    assert len(set(numbers)) == len(numbers)
    assert all(re.fullmatch(r"\d{3}-[a-z0-9-]+\.md", path.name) for path in decisions)
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        for part in ("context", "decision", "consequence"):
            assert re.search(rf"^(#+ |\*\*){part}", text, re.MULTILINE | re.IGNORECASE), (
                f"{relative(path)}: {part}"
            )


def test_agents_md_is_one_page() -> None:
    assert len(page("AGENTS.md").splitlines()) <= 60
