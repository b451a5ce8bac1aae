"""What later calls use of earlier results: lines that edits quote, paths and names in tool inputs.

A use counts against every tool result that showed it. It is in view when one of them still is; a line in the
agent's own words is not asked about, for nobody clears those. That is the strict reading: a name that the
agent has written down itself counts as lost all the same when no result shows it any more.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Block, Compaction, Text, Thinking, ToolResult, ToolUse
from sevenfold.core.tool_kinds import CONTENT_KEYS, NEW_TEXT_KEYS, OLD_TEXT_KEYS, find_tool

QuoteKind: TypeAlias = Literal["span", "path", "name"]

SPAN_CHARS = 40
"""Shorter lines occur by chance."""
LEAST_PATH, LEAST_NAME = 6, 6

QUOTED_INPUT_KEYS = frozenset({*OLD_TEXT_KEYS, "edits"})
NEW_INPUT_KEYS = frozenset({*NEW_TEXT_KEYS, *CONTENT_KEYS})
"""What an edit brings is its own, not a use of something seen."""

_PATH = re.compile(
    r"(?:[\w.~@+-]*/)+[\w.@+-]+|[\w-]+\.(?:go|py|md|json|sh|ts|js|tsx|toml|ya?ml|txt|rs|java|c|h|cpp|jsonl|mod)\b"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Quote:
    """Something that a call uses."""

    kind: QuoteKind
    text: str


@dataclass(frozen=True, slots=True)
class ResultUse:
    """A quote of something that results had shown."""

    kind: QuoteKind
    sources: tuple[int, ...]
    """The clearable results of this stretch that showed it, oldest first; empty: a boundary took them all."""


def find_quotes(use: ToolUse) -> list[Quote]:
    """What a call uses, each once, in a fixed order."""
    tool = find_tool(use.name)
    takes_patch = tool is not None and tool.takes_patch
    quotes_lines = tool is not None and tool.effect == "edit" and not takes_patch
    found: dict[Quote, None] = {}
    for key, value in use.input.items():
        for text in _strings(value):
            if quotes_lines and key in QUOTED_INPUT_KEYS:
                found.update(dict.fromkeys(_spans(text.split("\n"))))
                found.update(dict.fromkeys(_names(text)))
            elif takes_patch:
                removed = (line[1:] for line in text.split("\n") if line.startswith("-"))
                found.update(dict.fromkeys(_spans(removed)))
            elif key not in NEW_INPUT_KEYS:
                found.update(dict.fromkeys(_paths(text)))
                found.update(dict.fromkeys(_names(_PATH.sub(" ", text))))
    return list(found)


class TextIndex:
    """Where in a session's blocks a text occurs. Asked again, it knows."""

    __slots__ = ("_ends", "_found", "_starts", "_whole")

    def __init__(self, texts: Sequence[str]) -> None:
        self._whole = "\0".join(texts)
        lengths = [len(text) + 1 for text in texts]
        self._starts = [0, *accumulate(lengths)][:-1]
        self._ends = [start + length for start, length in zip(self._starts, lengths, strict=True)]
        self._found: dict[str, tuple[int, ...]] = {}

    def find(self, text: str) -> tuple[int, ...]:
        """The blocks that hold it, in order."""
        known = self._found.get(text)
        if known is None:
            known = self._found[text] = tuple(self._search(text))
        return known

    def _search(self, text: str) -> Iterator[int]:
        place = self._whole.find(text)
        while place >= 0:
            block = bisect_right(self._starts, place) - 1
            yield block
            place = self._whole.find(text, self._ends[block])


def extract_block_text(block: Block) -> str:
    """What a model can read in a block."""
    match block:
        case Text():
            return block.text
        case Thinking():
            return block.thinking
        case ToolUse():
            return "\n".join(_strings(block.input))
        case ToolResult():
            content = block.content or ""
            return content if isinstance(content, str) else "\n".join(map(extract_block_text, content))
        case Compaction():
            return block.content or ""
        case _:
            return ""


def _spans(lines: Iterator[str] | list[str]) -> Iterator[Quote]:
    return (Quote("span", text) for line in lines if len(text := line.strip()) >= SPAN_CHARS)


def _paths(text: str) -> Iterator[Quote]:
    return (Quote("path", path) for path in _PATH.findall(text) if len(path) >= LEAST_PATH)


def _names(text: str) -> Iterator[Quote]:
    return (Quote("name", name) for name in _NAME.findall(text) if _is_telling(name))


def _is_telling(name: str) -> bool:
    """Whether it looks like a name out of a program: with a hump, or a line inside."""
    if len(name) < LEAST_NAME:
        return False
    has_hump = any(char.isupper() for char in name[1:]) and any(char.islower() for char in name)
    return has_hump or "_" in name.strip("_")


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, JsonObject):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _strings(item)
