"""The frontmatter of a markdown file, and the files that an instruction file imports.

Frontmatter is strings and lists of strings between two `---` lines. It is deliberately not YAML: six hundred
bytes of YAML can hang a parser, `no` becomes false, and ` #` cuts a sentence short. What is not understood is
kept unchanged in `rest`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import TypeAlias

from sevenfold.core.errors import InputError

MAX_HEAD_BYTES = 4_096
"""A name, a description and a few lists. A longer head is content in the wrong place, or means harm."""

METADATA_KEY = "metadata"
"""Other agents write the same fields one level down, under this key; they count as if they stood on top."""

FieldValue: TypeAlias = str | tuple[str, ...]

_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,63}):(?:[ \t]+(.*))?", re.DOTALL)
_BLOCK = re.compile(r"([|>])[-+]?")
_ITEM = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,"'\[\]{}][^,\[\]{}]*)\s*(?:,|$)""")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 .()/_-]*(?<! )")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})
"""What others would read as something else than text."""


@dataclass(frozen=True, slots=True)
class MarkdownDocument:
    """A markdown file in two parts."""

    fields: Mapping[str, FieldValue]
    body: str
    rest: tuple[str, ...] = ()
    """Lines of the head that are no field of ours, as they stand."""
    fault: str = ""
    """Why a head was not read, and counts as a part of the body."""

    def text(self, key: str) -> str:
        """A field as one string; empty where it is not set."""
        value = self.fields.get(key, "")
        return value if isinstance(value, str) else ", ".join(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A field as a list; people also write one as words between commas."""
        value = self.fields.get(key, ())
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(part.strip() for part in parts if part.strip())


def read_frontmatter(text: str) -> MarkdownDocument:
    """The fields and the body of a file. Never fails: a head that cannot be read is body, and a `fault`."""
    start = text.removeprefix("\ufeff")
    opening, newline, below = start.partition("\n")
    if opening.rstrip() != "---" or not newline:
        return MarkdownDocument(MappingProxyType({}), text)
    closing = re.search(r"^---[ \t\r]*(?:\n|\Z)", below, re.MULTILINE)
    head = below[: closing.start()] if closing else below
    if closing is None or len(head.encode("utf-8", "surrogatepass")) > MAX_HEAD_BYTES:
        fault = f"its head does not end with --- within {MAX_HEAD_BYTES:,} bytes; shorten it, or close it"
        return MarkdownDocument(MappingProxyType({}), text, fault=fault)
    found = _Found()
    for entry in _entries(head.replace("\r\n", "\n")):
        found.take(entry)
    return MarkdownDocument(MappingProxyType(found.merged()), below[closing.end() :], tuple(found.rest))


def write_frontmatter(fields: Mapping[str, FieldValue], body: str, rest: Sequence[str] = ()) -> str:
    """A file that reads back as the same, by us and by whoever takes the head for YAML."""
    lines = [f"{_checked_key(key)}: {_spelled(value)}" for key, value in fields.items()]
    head = "".join(f"{line}\n" for line in (*lines, *rest))
    size = len(head.encode("utf-8", "backslashreplace"))
    if size > MAX_HEAD_BYTES:
        raise InputError(f"a head of {size:,} bytes is over the {MAX_HEAD_BYTES:,} it may have; shorten it")
    return f"---\n{head}---\n{body}"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line that begins at the margin, and what is indented below it."""

    first: str
    below: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.first, *self.below)


@dataclass(slots=True)
class _Found:
    flat: dict[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    nested: dict[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    rest: list[str] = field(default_factory=list[str])

    def take(self, entry: _Entry) -> None:
        match = _KEY.fullmatch(entry.first)
        key, inline = (match[1], (match[2] or "").strip()) if match else ("", "")
        if key == METADATA_KEY:
            self._take_nested(entry, inline)
            return
        value = _value(inline, entry.below) if match else None
        if value is None or key in self.flat:
            self.rest += entry.lines
        else:
            self.flat[key] = value

    def merged(self) -> dict[str, FieldValue]:
        return {**self.flat, **{key: value for key, value in self.nested.items() if key not in self.flat}}

    def _take_nested(self, entry: _Entry, inline: str) -> None:
        if inline.startswith("{") and inline.endswith("}") and not entry.below:
            lines = "\n".join(item.strip() for item in _items(inline) or ())
        else:
            lines = "" if inline else _dedented(entry.below)
        pairs = [(_KEY.fullmatch(below.first), below) for below in _entries(lines)]
        for match, below in pairs:
            value = _value((match[2] or "").strip(), below.below) if match else None
            if match and value is not None:
                self.nested.setdefault(match[1], value)
        if not pairs or not all(match for match, _ in pairs):
            self.rest += entry.lines


def _entries(head: str) -> list[_Entry]:
    entries: list[_Entry] = []
    for line in head.removesuffix("\n").split("\n") if head else ():
        # A list may stand at the margin too, and a blank line ends nothing.
        is_below = not line.strip() or line[0] in " \t" or line.startswith("- ")
        if entries and is_below:
            entries[-1] = _Entry(entries[-1].first, (*entries[-1].below, line))
        else:
            entries.append(_Entry(line))
    return entries


def _value(inline: str, below: tuple[str, ...]) -> FieldValue | None:
    block = _BLOCK.fullmatch(inline)
    if block:
        return _block(block[1], below)
    words = [line.strip() for line in below if line.strip()]
    if inline.startswith("["):
        items = _items(" ".join([inline, *words]))
        return None if items is None else tuple(_scalar(item) for item in items)
    if inline.startswith("{"):
        return None
    if not inline and words and all(word.startswith("- ") for word in words):
        return tuple(_scalar(word[2:].strip()) for word in words)
    if not inline and any(_KEY.fullmatch(word) for word in words):
        return None
    return _scalar(" ".join(filter(None, [inline, *words])))


def _block(style: str, below: tuple[str, ...]) -> str:
    text = _dedented(below).strip("\n")
    # Folded: a line break is a blank, an empty line is a line break.
    return text if style == "|" else re.sub(r"(?<!\n)\n(?!\n)", " ", text).replace("\n\n", "\n")


def _dedented(lines: Sequence[str]) -> str:
    margins = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    return "".join(f"{line[min(margins, default=0) :]}\n" for line in lines)


def _items(inline: str) -> list[str] | None:
    """What stands between brackets and commas, as spelled; None where that is no list of strings."""
    inner, at = inline[1:-1].strip(), 0
    if inline[-1] not in "]}" or len(inline) < 2:
        return None
    items: list[str] = []
    while at < len(inner):
        match = _ITEM.match(inner, at)
        if match is None:
            return None
        items.append(match[1])
        at = match.end()
    return items


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            read: object = json.loads(text, strict=False)
        except ValueError:
            return text[1:-1]
        return str(read)
    return text


def _checked_key(key: str) -> str:
    if not _KEY.fullmatch(f"{key}:") or key == METADATA_KEY:
        raise InputError(f"{key!r} cannot be a field of a head; use letters, digits, '_' and '-'")
    return key


def _spelled(value: FieldValue) -> str:
    if not isinstance(value, str):
        return "[" + ", ".join(_quoted(item) for item in value) + "]"
    return value if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else _quoted(value)


def _quoted(text: str) -> str:
    return "".join(map(_escaped, text)).join('""')


def _escaped(character: str) -> str:
    # Line ends of other alphabets end a line for others. Past the first 65,536 there are none, and an escape
    # would be two, which not everybody puts together again.
    is_plain = character.isprintable() or character > "\uffff"
    return character if is_plain and character not in '"\\' else json.dumps(character)[1:-1]


# Imports: `@path` in the prose, as other agents write it.

_IMPORT = re.compile(r"(?:^|(?<=\s))@(\S+)")
_CODE = re.compile(r"`[^`]*`")
_FENCES = ("```", "~~~")
_CLOSING = ".,;:!?)]}>\"'*_"
"""What a sentence puts after a name, and no name of a file ends with."""


def find_imports(text: str) -> tuple[str, ...]:
    """Each path once, in order. What stands in code is an example, and an address or a name is no path."""
    return tuple(dict.fromkeys(_found(text)))


def is_path_like(wanted: str) -> bool:
    """Whether a person would call it a file: `@team` and `@types/node` may be anything."""
    return PurePath(wanted).suffix != ""


def _found(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines():
        start = line.lstrip()
        if fence:
            fence = "" if start.startswith(fence) else fence
        elif start.startswith(_FENCES):
            fence = start[:3]
        elif "@" in line:
            for found in _IMPORT.finditer(_CODE.sub(" ", line)):
                wanted = found[1].rstrip(_CLOSING)
                if wanted and wanted not in (".", "..", "/", "~"):
                    yield wanted
