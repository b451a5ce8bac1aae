"""Every block of code in the docs runs, or says above it why it does not."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sevenfold.cli.commands import make_parser
from sevenfold.testing import Simulator
from tests.contracts.source_tree import ROOT, relative, tracked_files

pytestmark = pytest.mark.gate

PAGES = sorted(path for path in tracked_files() if path.suffix == ".md" and ROOT / "docs" in path.parents)
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n\n?)?^```(?P<language>\w+)\n(?P<text>.*?)^```", re.M | re.S
)
SHOWN = frozenset({"markdown", "jsonl"})
"""Files that somebody writes; they do nothing by themselves."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    place: str
    language: str
    text: str


def read_blocks(text: str, place: str) -> list[CodeBlock]:
    """Blocks that have to run: those without a reason why not."""
    return [
        CodeBlock(f"{place}:{text[: found.start('text')].count(chr(10))}", found["language"], found["text"])
        for found in _BLOCK.finditer(text)
        if not found["reason"]
    ]


BLOCKS = [block for page in PAGES for block in read_blocks(page.read_text(encoding="utf-8"), relative(page))]


def blocks_of(*languages: str) -> list[CodeBlock]:
    return [block for block in BLOCKS if block.language in languages]


_RUN_EACH = """
import ast, asyncio, inspect, json, os, sys, tempfile
for place, code in json.load(sys.stdin):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        os.chdir(folder)
        try:
            compiled = compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            ran = eval(compiled, {"__name__": "__main__"})
            if inspect.iscoroutine(ran):
                asyncio.run(ran)
        except BaseException as error:
            sys.exit(f"{place}: {type(error).__name__}: {error}")
        finally:
            os.chdir("/")
"""


def run_python(blocks: Sequence[CodeBlock], url: str) -> str:
    """Run blocks in turn, each with names and a home of its own; what went wrong.

    A short example may leave the client of an SDK open: the collector closes it, with a warning.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", _RUN_EACH],
        input=json.dumps([[block.place, block.text] for block in blocks]),
        env={**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


def test_python_runs_as_it_stands_with_the_simulator_as_the_provider() -> None:
    blocks = blocks_of("python")
    assert len(blocks) >= 14
    with Simulator() as sim:
        assert run_python(blocks, sim.url) == ""


def test_a_block_that_fails_is_found() -> None:
    planted = read_blocks("```python\nimport os\n```\n\n```python\nawait nowhere()\n```\n", "page.md")
    assert run_python(planted, "").startswith("page.md:5: NameError")


def wrong_commands(block: CodeBlock) -> list[str]:
    """Command lines of ours that the parser refuses."""
    wrong: list[str] = []
    for line in block.text.splitlines():
        if block.language == "console" and not line.startswith("$ "):
            continue
        for part in line.removeprefix("$ ").partition(" # ")[0].split("|"):
            words = shlex.split(part, comments=True)
            if words[:1] != ["sevenfold"]:
                continue
            try:
                make_parser().parse_args(words[1:])
            except SystemExit as stop:
                if stop.code:
                    wrong.append(line)
    return wrong


@pytest.mark.parametrize("block", blocks_of("console", "sh"), ids=lambda block: block.place)
def test_every_command_line_is_one_that_the_parser_takes(block: CodeBlock) -> None:
    assert wrong_commands(block) == []


def test_a_command_line_that_the_parser_refuses_is_found() -> None:
    planted = CodeBlock(
        "page.md:1", "console", "$ sevenfold layers --json | jq .\n$ sevenfold layers --colour\n"
    )
    assert wrong_commands(planted) == ["$ sevenfold layers --colour"]


@pytest.mark.parametrize("block", blocks_of("toml", "json", "yaml"), ids=lambda block: block.place)
def test_data_can_be_read(block: CodeBlock) -> None:
    match block.language:
        case "toml":
            assert tomllib.loads(block.text)
        case "json":
            assert json.loads(block.text)
        case _:
            yaml = pytest.importorskip("yaml")
            assert yaml.safe_load(block.text)


def test_every_language_is_checked_somehow() -> None:
    assert {block.language for block in BLOCKS} <= {"python", "console", "sh", "toml", "json", "yaml"} | SHOWN


def test_only_a_block_with_a_reason_is_left_out() -> None:
    text = "<!-- not run: it needs a key -->\n```python\n1\n```\n\n```python\n2\n```\n"
    assert [block.text for block in read_blocks(text, "page.md")] == ["2\n"]
