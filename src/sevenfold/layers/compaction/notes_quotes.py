"""Notes beside the user's own messages: what stands there word for word need not stand in the notes too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sevenfold.layers.session_notes.sections import (
    SectionName,
    find_open_fence,
    split_note_lines,
    split_notes,
)

TASK_SECTION: SectionName = "Task specification"
QUOTES_POINTER = "- (The user's messages stand word for word outside of these notes.)\n"

_ENTRY = re.compile(r"\d+\. (?:\(said \d+×\) ?)?")
_BEGINS = re.compile(r"begins so, of [\d,]+ characters(?:; the whole is in [^\n]*)?:(?=\n~)")
_BRIEF = re.compile(r"…(?: \([^()\n]*\))?$")


def without_quoted_requests(notes: str, shown: Iterable[str]) -> str:
    """The notes without requests that are shown beside them; what a person or a model added there stays."""
    parts = split_notes(notes)
    body = parts.body(TASK_SECTION)
    words = "\n".join(map(_squeezed, shown))
    entries = list(_entries(body))
    kept = [entry for entry in entries if not _is_shown(entry, words)]
    if len(kept) == len(entries):
        return notes
    rest = "".join(kept)
    section = QUOTES_POINTER + rest if rest.strip() else QUOTES_POINTER + "\n"
    return replace(
        parts,
        sections=tuple(
            replace(item, body=section) if item.body == body and item.name == TASK_SECTION else item
            for item in parts.sections
        ),
    ).text


def _entries(body: str) -> Iterator[str]:
    """The numbered entries of the section, each with its quote, and all other lines one by one."""
    entry: list[str] = []
    for line in split_note_lines(body):
        is_quoted = bool(find_open_fence(entry))
        is_quote = len(entry) == 1 and line.startswith("~~~") and _ENTRY.match(entry[0])
        if entry and not is_quoted and not is_quote:
            yield "".join(entry)
            entry = []
        entry.append(line)
    if entry:
        yield "".join(entry)


def _is_shown(entry: str, words: str) -> bool:
    number = _ENTRY.match(entry)
    if number is None:
        return False
    text = _BEGINS.sub("", entry[number.end() :].rstrip("\n"), count=1).lstrip("\n")
    lines = text.split("\n")
    if len(lines) > 2 and lines[0] == lines[-1] and not lines[0].strip("~"):
        text = "\n".join(lines[1:-1])
    else:
        text = _BRIEF.sub("", text)
    said = _squeezed(text)
    return bool(said) and said in words


def _squeezed(text: str) -> str:
    return " ".join(text.split())
