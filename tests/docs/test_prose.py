"""Plain technical English: phrasings that readers stumbled over do not come back.

What a user reads: README and docs, the help of every command, and texts in the source, such as errors and
events. Texts for a model are left alone: their bytes are a contract.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from sevenfold.cli.commands import make_parser
from sevenfold.cli.screen import format_count
from tests.contracts.source_tree import ROOT, parse, relative, source_files, tracked_files

pytestmark = pytest.mark.gate

BANNED = {
    r"\b(?:key|model|client|API)s? of (?:Anthropic|OpenAI)'s": "an Anthropic API key",
    r"\bspeaks? (?:like )?OpenAI": "OpenAI-compatible",
    r"\b[Cc]ommands? (?:is|are|cannot be|can be) held\b|\bcannot be held\b": "runs in a sandbox",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair, correct",
    r"\banew\b": "again",
    r"\blets? go of\b": "drop, release, remove",
    r"\b(?:can|cannot) be had\b|\bhad by\b|\bto be had\b": "is available, can be reached",
    r"\bwill do\b(?=[;,.)])": "is enough",
    r"\bhow (?:its|an|that|the) (?:id )?begins\b": "the start of its id",
    r"\ba line a (?:session|request|day|call)\b": "one line per session",
    r"(?<!here )\bis no (?:port|folder|amount|setting\b|GGUF|number of)": "is not a port",
    r"\bof no use\b": "does not help",
    r"\bmakes do with\b": "uses",
    r"\bled (?:to|through) (?:a|the) proxy\b": "sent through the proxy",
    r"\bin the hundred\b": "percent",
    r"\b(?:thereof|whereof|hereby|heretofore|henceforth)\b": "say it in today's words",
    r"\btaken up again\b": "resumed",
    r"\b(?:is|are) told as\b|\band told(?=[:;(]| \(|$)": "is reported as, and reported",
    r"\bdearer\b": "more expensive, costs more",
    r"\bput(?:s)? aside\b": "archived, moved, left out",
    r"\bforeign hands\b": "other people's words, taint",
    r"\bthat is said\b|\band said(?= \||\.$)": "and that is reported",
    r"\b(?:of|on) the user's side\b": "in the user role",
    r"\b(?:takes|took|taking|take) (?:its|the|their) place\b": "replaces",
    r"\bholds? (?:it )?to reading\b|\bheld to (?:reading|the project)\b": "a read-only sandbox",
    r"\bis let go\b": "is dropped",
    r"\b[Ww]hoever (?:wrote|started|dies|died)\b": "the author, the agent that started it",
    r"\bwhat programs obey\b": "guarded files",
    r"\bis (?:looked|gone) through\b": "is read, is scanned",
    r"\(s\)(?! )": "a plural that fits the number",
}
"""What is not written, and what is written instead."""
FOR_MODELS = (
    *(
        "agent/tools/",
        "agent/mcp/",
        "agent/subagents/",
        "layers/session_notes/",
        "layers/memory/",
        "simulator/",
    ),
    *("layers/compaction/", "layers/dreams/", "layers/living_docs/", "cli/tour/script.py", "proxy/"),
)
"""Parts of the package whose texts go into prompts, or repeat what a provider says."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OLD = ("docs/decisions/", "docs/simulator-contract.md")
"""Written once: what was decided then, and the words of a provider."""


@dataclass(frozen=True, slots=True)
class Passage:
    place: str
    text: str


def find_banned(passages: Iterator[Passage] | list[Passage]) -> list[str]:
    return [
        f"{passage.place}: {found.group()!r}; write: {better}"
        for passage in passages
        for pattern, better in BANNED.items()
        if (found := re.search(pattern, passage.text))
    ]


def read_pages() -> Iterator[Passage]:
    for page in PAGES:
        if relative(page).startswith(OLD) or not page.exists():
            continue
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        # Names in backticks and the addresses of links are not prose.
        prose = re.sub(r"`[^`\n]+`|\]\([^)]*\)", "`…`", text)
        for number, line in enumerate(prose.splitlines(), 1):
            yield Passage(f"{relative(page)}, near line {number}", line)


def read_help() -> Iterator[Passage]:
    waiting: list[object] = [make_parser()]
    while waiting:
        parser = waiting.pop()
        if not isinstance(parser, argparse.ArgumentParser):
            continue
        yield Passage(parser.prog, parser.format_help())
        for action in parser._actions:
            choices = cast("object", action.choices)
            if isinstance(choices, dict):
                waiting += cast("dict[str, object]", choices).values()


def read_messages(path: Path) -> Iterator[Passage]:
    """Texts of a module that are no docstrings."""
    tree = parse(path)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield Passage(f"{relative(path)}:{node.lineno}", node.value)


def test_pages_say_it_plainly() -> None:
    assert find_banned(read_pages()) == []


def test_the_help_of_every_command_says_it_plainly() -> None:
    assert find_banned(read_help()) == []


def test_messages_say_it_plainly() -> None:
    package = ROOT / "src" / "sevenfold"
    kept = set(tracked_files())
    modules = [
        path
        for path in source_files("src")
        if path in kept and not path.relative_to(package).as_posix().startswith(FOR_MODELS)
    ]
    assert len(modules) > 150
    assert find_banned(passage for path in modules for passage in read_messages(path)) == []


def test_a_banned_phrasing_is_found() -> None:
    planted = [Passage("here", "Give it a key of Anthropic's; the beginning of an id will do.")]
    assert len(find_banned(planted)) == 2
    assert find_banned([Passage("here", "It fixes 2 files. What it will do is shown.")]) == []


@pytest.mark.parametrize(
    ("number", "thing", "said"),
    [
        (0, "call", "0 calls"),
        (1, "call", "1 call"),
        (2, "memory", "2 memories"),
        (3, "day", "3 days"),
        (2, "match", "2 matches"),
    ],
)
def test_plurals_fit_the_number(number: int, thing: str, said: str) -> None:
    assert format_count(number, thing) == said
