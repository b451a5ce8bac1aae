"""A memory: one topic in one markdown file, with a head that says what it is about and when it matters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType

from sevenfold.core.errors import InputError
from sevenfold.core.text.frontmatter import (
    MAX_HEAD_BYTES,
    FieldValue,
    MarkdownDocument,
    read_frontmatter,
    write_frontmatter,
)

MemoryKey = NewType("MemoryKey", str)
"""Its file below the memory folder: `topic.md`, `team/topic.md`. The grammar is `store/memory/keys.py`'s."""

INDEX_FILE = "MEMORY.md"
MEMORY_KINDS = ("user", "feedback", "project", "reference")
"""Others are kept as they are, and mean nothing in particular."""

TEAM_PREFIX = "team/"
LOGS_PREFIX = "logs/"
ARCHIVE_PREFIX = "archive/"
"""What a dream put aside: kept and restorable, and not brought up again."""

_UNSHOWN = (LOGS_PREFIX, ARCHIVE_PREFIX)
_APPLIES_TO = "applies_to"


def is_indexed(key: str) -> bool:
    """Whether a memory stands in the index and may be recalled; logs and what was put aside do not."""
    return not key.startswith(_UNSHOWN)


@dataclass(frozen=True, slots=True)
class Memory:
    key: MemoryKey
    text: str
    """The whole file."""
    document: MarkdownDocument

    @property
    def name(self) -> str:
        return self.document.text("name") or self.key.rpartition("/")[2].removesuffix(".md")

    @property
    def description(self) -> str:
        """One line that says when it matters; the first of the body where the head has none."""
        return " ".join(self.document.text("description").split()) or _first_line(self.body)

    @property
    def kind(self) -> str:
        return self.document.text("type")

    @property
    def body(self) -> str:
        return self.document.body

    @property
    def applies_to(self) -> tuple[str, ...]:
        """When its text is to be shown before an action, as it stands; `core/conditions.py` reads it."""
        return self.document.texts(_APPLIES_TO)

    def field(self, name: str) -> str:
        """Any field of the head; empty where it is not set."""
        return self.document.text(name)


def read_memory(key: str, text: str) -> Memory:
    """Never fails: without a head that can be read, everything is body."""
    return Memory(MemoryKey(key), text, read_frontmatter(text))


def write_memory(
    name: str,
    description: str,
    kind: str,
    body: str,
    *,
    applies_to: Sequence[str] = (),
) -> str:
    """The file of a new memory."""
    fields: dict[str, FieldValue] = {"name": name, "description": " ".join(description.split()), "type": kind}
    if applies_to:
        fields[_APPLIES_TO] = tuple(applies_to)
    return write_frontmatter(fields, f"\n{body.strip()}\n")


def rewrite_memory(
    before: Memory, description: str, kind: str, body: str, *, applies_to: Sequence[str] | None = None
) -> str:
    """The file of a memory with another text. All else in its head stays, with None also when it applies."""
    if before.document.fault or not before.document.fields:
        told = before.applies_to if applies_to is None else applies_to
        return write_memory(before.name, description, kind, body, applies_to=told)
    text = change_body(before.text, f"\n{body.strip()}\n")
    for name, value, was in (("description", description, before.description), ("type", kind, before.kind)):
        text = text if value == was else change_field(text, name, value)
    if applies_to is not None and tuple(applies_to) != before.applies_to:
        text = change_field(text, _APPLIES_TO, applies_to or None)
    return text if before.field("name") else change_field(text, "name", before.name)


def change_body(text: str, body: str) -> str:
    """The file with another body; its head stays byte for byte."""
    return text.removesuffix(read_frontmatter(text).body) + body


def change_field(text: str, name: str, value: str | Sequence[str] | None) -> str:
    """The file with one field of its head changed, or taken out with None; all else stays byte for byte.

    A field that stands under `metadata:` is overruled by the one that is put on top.
    """
    told = value if isinstance(value, str) or value is None else tuple(value)
    fresh = "" if told is None else write_frontmatter({name: told}, "").split("\n")[1] + "\n"
    document = read_frontmatter(text)
    if document.fault:
        raise InputError(f"the head cannot be changed: {document.fault}")
    head = text.removesuffix(document.body)
    if not head:
        return f"---\n{fresh}---\n{text}" if fresh else text
    opening, *lines, closing = re.findall(r"[^\n]*\n|[^\n]+", head)
    at = next((n for n, line in enumerate(lines) if re.match(rf"{re.escape(name)}:(?:\s|$)", line)), None)
    start, end = (len(lines), len(lines)) if at is None else (at, _end_of_entry(lines, at))
    changed = [*lines[:start], fresh, *lines[end:]]
    size = len("".join(changed).encode("utf-8", "surrogatepass"))
    if size > MAX_HEAD_BYTES:
        raise InputError(f"a head of {size:,} bytes is over the {MAX_HEAD_BYTES:,} it may have; shorten it")
    return "".join([opening, *changed, closing]) + document.body


def _end_of_entry(lines: Sequence[str], at: int) -> int:
    """Past the lines that belong to the field at `at`: indented, or a list at the margin."""
    end = at + 1
    while end < len(lines) and (lines[end][0] in " \t" or lines[end].startswith("- ")):
        end += 1
    return end


def _first_line(body: str) -> str:
    return next((line.strip("# \t") for line in body.splitlines() if line.strip("# \t")), "")
