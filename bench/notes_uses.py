"""What tool calls use of what came before (lines that edits quote, paths, identifiers), and where it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.json import Json, JsonObject, write_json
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolResult, ToolUse

Kind: TypeAlias = Literal["span", "path", "identifier"]
KINDS: tuple[Kind, ...] = ("span", "path", "identifier")
SPAN_CHARS = 40

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
_PATH = re.compile(
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]+|\b[\w-]+\.(?:go|py|md|jsonl?|[jt]sx?|ya?ml|toml|sh|rs|mod)\b"
)
_READS = re.compile(r"\b(?:cat|sed|head|tail|nl|awk|less|grep|rg|git (?:show|diff|blame))\b")
_MATCH = re.compile(r"([\w./@+~-]+\.\w+)[:-]\d+[:-]")
_OLD = ("old_string", "old_str")
_PATHS = ("file_path", "path", "notebook_path")
_LINES = ("command", "cmd", "pattern", "glob", "input")


@dataclass(frozen=True, slots=True)
class Use:
    kind: Kind
    text: str


def uses_of(call: ToolUse) -> set[Use]:
    """Everything one call uses."""
    found = {Use("path", path) for key in _PATHS if isinstance(path := call.input.get(key), str) and path}
    for key in _LINES:
        value = call.input.get(key)
        if isinstance(value, str):
            found |= {Use("path", path) for path in _PATH.findall(value) if len(path) > 4}
    found |= {Use("identifier", word) for word in _WORD.findall(spoken(call)) if _HUMP.search(word)}
    return found | {Use("span", line) for line in _quoted(call) if len(line) >= SPAN_CHARS}


def _quoted(call: ToolUse) -> Iterator[str]:
    edits = call.input.get("edits")
    each = [item for item in edits if isinstance(item, JsonObject)] if isinstance(edits, tuple) else []
    for given in (call.input, *each):
        for key in _OLD:
            value = given.get(key)
            if isinstance(value, str):
                yield from (line.strip() for line in value.split("\n"))
    patch = call.input.get("input")
    if isinstance(patch, str) and "*** Begin Patch" in patch:
        yield from (line[1:].strip() for line in patch.split("\n") if line[:1] in (" ", "-"))


def spoken(block: Block) -> str:
    """A block's text, as a model sees it."""
    match block:
        case Text():
            return block.text
        case Thinking():
            return block.thinking
        case ToolUse():
            return "\n".join(_said(value) for value in block.input.values())
        case ToolResult():
            content = block.content or ""
            return content if isinstance(content, str) else "\n".join(spoken(item) for item in content)
        case _:
            return ""


def _said(value: Json) -> str:
    return value if isinstance(value, str) else write_json(value).decode()


def told(messages: Iterable[Message], *, with_thinking: bool = True) -> str:
    """All text of these messages."""
    return "\n".join(
        spoken(block)
        for message in messages
        for block in message.blocks
        if with_thinking or not isinstance(block, Thinking)
    )


class Seen:
    """The text before a cut, by the file it came from where that can be told."""

    def __init__(self, messages: Iterable[Message]) -> None:
        calls: dict[str, ToolUse] = {}
        by_source: dict[str, list[str]] = {}
        for message in messages:
            for block in message.blocks:
                if isinstance(block, ToolUse):
                    calls[block.id] = block
                for part in _parts(block, calls):
                    by_source.setdefault(part.source, []).append(part.text)
        self._texts = {source: "\n".join(texts) for source, texts in by_source.items()}

    def holds(self, text: str) -> bool:
        return any(text in held for held in self._texts.values())

    def sources(self, text: str) -> list[str]:
        """The files that held it; empty where no file did."""
        return [source for source, held in self._texts.items() if source and text in held]


@dataclass(frozen=True, slots=True)
class _Part:
    source: str
    """A file or an address; empty: none."""
    text: str


def _parts(block: Block, calls: dict[str, ToolUse]) -> Iterator[_Part]:
    """A block's text, under each file that it shows."""
    text = spoken(block)
    call = calls.get(block.tool_use_id) if isinstance(block, ToolResult) else block
    files = _files(call) if isinstance(call, ToolUse) else set[str]()
    for file in files or {""}:
        yield _Part(file, text)
    if isinstance(block, ToolResult):
        for line in text.split("\n"):
            found = _MATCH.match(line)
            if found:
                yield _Part(found[1], line)


def _files(call: ToolUse) -> set[str]:
    """The files whose content a call or its result shows."""
    found = {
        value
        for key in _PATHS
        if isinstance(value := call.input.get(key), str) and "." in value.rsplit("/", 1)[-1]
    }
    for key in ("command", "cmd", "input"):
        value = call.input.get(key)
        if isinstance(value, str) and (key == "input" or _READS.search(value)):
            found |= {path for path in _PATH.findall(value) if "." in path.rsplit("/", 1)[-1]}
    url = call.input.get("url")
    return found | ({url} if isinstance(url, str) else set())
