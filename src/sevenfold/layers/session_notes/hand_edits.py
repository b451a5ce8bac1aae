"""What a person changed in the notes file, so that the next writing of it does not undo their work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sevenfold.layers.session_notes.sections import (
    NoteSection,
    SectionedNotes,
    split_note_lines,
    split_notes,
)

MIN_REMOVABLE_CHARS = 8
"""Shorter lines, fences among them, stand in many places: taking one away would take away all."""


@dataclass(frozen=True, slots=True)
class AddedLine:
    section: str
    """Its name in lower case; empty: before the first heading."""
    text: str


@dataclass(frozen=True, slots=True)
class HandEdits:
    added: tuple[AddedLine, ...] = ()
    removed: frozenset[str] = frozenset()
    sections: tuple[str, ...] = ()
    """Whole sections that we do not write."""


NO_HAND_EDITS = HandEdits()


def find_hand_edits(written: str, found: str, before: HandEdits = NO_HAND_EDITS) -> HandEdits:
    """All edits by hand: those known before, and what tells the file as found from the one as written."""
    if written == found:
        return before
    ours, theirs = _by_section(split_notes(written)), _by_section(split_notes(found))
    own = {_name(text) for text in before.sections}
    fresh = [
        AddedLine(name, line)
        for name, lines in theirs.items()
        if name in ours and name not in own
        for line in (Counter(lines) - Counter(ours[name]))
    ]
    gone = {line for name, lines in ours.items() for line in Counter(lines) - Counter(theirs.get(name, []))}
    kept = [item for item in before.added if item.text not in gone]
    shown = {item.text for item in fresh}
    removed = {line for line in gone if _is_removable(line)} - {item.text for item in before.added}
    return HandEdits(
        tuple(dict.fromkeys((*kept, *fresh))),
        frozenset((before.removed | removed) - shown),
        _own_sections(found, set(ours) - own),
    )


def apply_hand_edits(rendered: str, edits: HandEdits) -> str:
    """Freshly written notes with a person's lines at the head of their sections."""
    if edits == NO_HAND_EDITS:
        return rendered
    notes = split_notes(rendered)
    preamble = "".join(f"{item.text}\n" for item in edits.added if not item.section) + notes.preamble
    body = "".join(_edited(section, edits) for section in notes.sections)
    own = "".join(f"\n{text.strip()}\n" for text in edits.sections)
    return preamble + body + own


def _edited(section: NoteSection, edits: HandEdits) -> str:
    name = section.name.casefold()
    theirs = "".join(f"{item.text}\n" for item in edits.added if item.section == name)
    ours = "".join(line for line in split_note_lines(section.body) if line.strip() not in edits.removed)
    return f"{section.heading}{theirs}{ours}"


def _by_section(notes: SectionedNotes) -> dict[str, list[str]]:
    found = {"": _said(notes.preamble)}
    for section in notes.sections:
        found.setdefault(section.name.casefold(), []).extend(_said(section.body))
    return found


def _said(text: str) -> list[str]:
    return [line.strip() for line in split_note_lines(text) if line.strip()]


def _own_sections(found: str, ours: Iterable[str]) -> tuple[str, ...]:
    known = set(ours)
    return tuple(item.text for item in split_notes(found).sections if item.name.casefold() not in known)


def _name(text: str) -> str:
    sections = split_notes(text.strip()).sections
    return sections[0].name.casefold() if sections else ""


def _is_removable(line: str) -> bool:
    return len(line) >= MIN_REMOVABLE_CHARS and set(line) - set("~`-_ ") != set()
