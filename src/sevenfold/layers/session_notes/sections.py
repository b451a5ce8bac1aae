"""The notes file as sections: splits and joins it without losing a character.

Also here: `fit_entries` chooses the lines for a section by weight when not all fit, and `HandEdits` keeps
what a person changed, so that the next update does not undo it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

SectionName: TypeAlias = Literal[
    "Title",
    "Current state",
    "Task specification",
    "Files and functions",
    "Workflow",
    "Errors and corrections",
    "Codebase and system documentation",
    "Learnings",
    "Key results",
    "Worklog",
]
SECTION_NAMES: tuple[SectionName, ...] = get_args(SectionName)

EstimateTokens: TypeAlias = Callable[[str], float]
"""How many tokens a text has; `estimate_text_tokens` by default."""

_HEADING = re.compile(r"#[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class NoteSection:
    heading: str
    """The whole line, as it was written."""
    body: str

    @property
    def name(self) -> str:
        found = _HEADING.match(self.heading)
        return found[1].strip() if found else ""

    @property
    def text(self) -> str:
        return self.heading + self.body


@dataclass(frozen=True, slots=True)
class SectionedNotes:
    preamble: str
    """What stands before the first heading: nothing, unless a person put it there."""
    sections: tuple[NoteSection, ...]

    @property
    def text(self) -> str:
        return self.preamble + "".join(section.text for section in self.sections)

    def body(self, name: str) -> str:
        """The body of the first section of that name; empty where there is none."""
        wanted = name.casefold()
        return next((item.body for item in self.sections if item.name.casefold() == wanted), "")


def split_notes(text: str) -> SectionedNotes:
    """Every section there is, those a person added too. `split_notes(text).text == text`."""
    parts: list[list[str]] = [[]]
    headings: list[str] = []
    fence = ""
    for line in split_note_lines(text):
        if not fence and _HEADING.match(line):
            headings.append(line)
            parts.append([])
        else:
            fence = _fence_after(fence, line)
            parts[-1].append(line)
    bodies = ["".join(part) for part in parts]
    sections = tuple(NoteSection(heading, body) for heading, body in zip(headings, bodies[1:], strict=True))
    return SectionedNotes(bodies[0], sections)


def append_notes(text: str, heading: str, more: str) -> str:
    """Notes with the sections of others under one more heading, without their title and empty sections."""
    parts = [
        f"## {section.name}\n{section.body.strip()}\n"
        for section in split_notes(more).sections
        if section.body.strip() and section.name != "Title"
    ]
    return f"{text.rstrip()}\n\n# {heading}\n" + "\n".join(parts) if parts else text


def split_note_lines(text: str) -> list[str]:
    """Lines with their ends. Only a line feed ends one: what else Python splits at may stand in a quote."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _fence_after(fence: str, line: str) -> str:
    """Which fence is open after this line: a heading inside a quoted text is no heading of ours."""
    found = _FENCE.match(line)
    if not found:
        return fence
    if not fence:
        return found[1]
    closes = found[1].startswith(fence) and not found[2].strip()
    return "" if closes else fence


def find_open_fence(lines: Iterable[str]) -> str:
    """The fence that these lines leave open; empty when they close what they open."""
    fence = ""
    for line in lines:
        fence = _fence_after(fence, line)
    return fence


def render_code_block(text: str) -> str:
    """Any text as a block that ends where it ends, whatever fences and headings it holds itself."""
    longest = max((len(run) for run in re.findall(r"~{3,}", text)), default=2)
    fence = "~" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def render_quote(text: str) -> str:
    """A text for the end of a list item: as it is where it is one line, else as a block of its own."""
    return f"\n{render_code_block(text)}" if "\n" in text else text


def render_notes(bodies: Mapping[SectionName, Iterable[str]], template: str) -> str:
    """Notes with these lines in their sections; a section without any shows what the template says there."""
    said = split_notes(template)
    rendered: list[str] = []
    for name in SECTION_NAMES:
        lines = "\n".join(bodies.get(name, ()))
        body = lines or said.body(name).strip("\n")
        rendered.append(f"# {name}\n{body}\n" if body else f"# {name}\n")
    return "\n".join(rendered)


def is_blank_notes(text: str, template: str) -> bool:
    """Whether the notes are still empty: each line is blank or a line of the template."""
    known = {line.strip() for line in split_note_lines(template)} | {f"# {name}" for name in SECTION_NAMES}
    return all(line.strip() in known for line in split_note_lines(text) if line.strip())


FOLD_TOKENS = 24.0
"""Kept free for the line that says how many were left out."""

MAX_CONSIDERED = 300
"""The heaviest entries: no section has room for more, and weighing them all would cost time for nothing."""


@dataclass(frozen=True, slots=True)
class NotesEntry:
    """A line, or a few, that stand or fall together."""

    text: str
    brief: str = ""
    """What stands in when the whole does not fit; empty: then it is left out."""
    weight: float = 0.0


def fit_entries(
    entries: Sequence[NotesEntry],
    limit_tokens: float,
    count: EstimateTokens,
    *,
    folded: str = "",
    brief_share: float = 1.0,
) -> list[str]:
    """The entries that fit, in the order given: the heaviest whole, the rest in brief while there is room.

    `folded` names what was left out, such as `older commands`; with it a last line says how many.
    """
    ranked = sorted(range(len(entries)), key=lambda place: (-entries[place].weight, place))[:MAX_CONSIDERED]
    sizes = {place: count(entries[place].text) + 1 for place in ranked}
    if len(ranked) == len(entries) and sum(sizes.values()) <= limit_tokens:
        return [entry.text for entry in entries]
    left = limit_tokens - FOLD_TOKENS
    chosen: dict[int, str] = {}
    briefs = {place: count(entries[place].brief) + 1 for place in ranked if entries[place].brief}
    reserved: dict[int, float] = {}
    for_briefs = left * brief_share
    for place in ranked:
        size = briefs.get(place, 0.0)
        if size and size <= for_briefs:
            reserved[place] = size
            for_briefs -= size
    left -= sum(reserved.values())
    for place in ranked:
        extra = sizes[place] - reserved.get(place, 0.0)
        if extra <= left:
            chosen[place] = entries[place].text
            left -= extra
        elif place in reserved:
            chosen[place] = entries[place].brief
    lines = [chosen[place] for place in sorted(chosen)]
    missing = len(entries) - len(lines)
    if missing and folded:
        lines.append(f"- (and {missing:,} {folded})")
    return lines


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
    """All edits by hand: those known before, and the differences between the file as found and as written."""
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
