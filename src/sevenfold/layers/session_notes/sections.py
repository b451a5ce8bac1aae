"""The notes file as sections: splits it and joins it again without losing a character."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
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
"""How many tokens a text is; `core.token_shape.shape_tokens` where nobody knows better."""

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
