"""Living documents: markdown files whose first heading asks to be kept up to date, and the brief of the fork
that does so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sevenfold.core.settings import limit, switch
from sevenfold.core.text.safe_text import fence_text
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit

LIVING_DOC_KIND = "living doc"
LIVING_DOC_SUFFIXES = (".md", ".markdown", ".mdx")
MAX_HEADER_CHARS = 16_384
"""A first heading that comes later than this is nobody's title."""
_ROUNDS = 4
"""An edit that did not fit can be mended; more means going round in circles."""

_HEADING = re.compile(r"#{1,6}\s")
_TITLE = re.compile(r"#\s+MAGIC\s+DOC:\s*(.*?)\s*#*", re.IGNORECASE)
_ITALIC = re.compile(r"([*_])(?![*_\s])(.+?)(?<![*_\s])\1")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class DocSettings:
    SECTION: ClassVar[str] = "living_docs"

    enabled: bool = switch(True)
    """On: nothing is touched unless a file's own heading asks for it, and then that file alone."""

    documents: int = limit(5)
    """Each costs a fork after every turn; whoever keeps more of them keeps them by hand."""

    limit_bytes: int = limit(65_536, at_least=1_000)
    """The whole of it is shown to the fork; what is longer is no page that somebody reads."""


@dataclass(frozen=True, slots=True)
class DocHeader:
    title: str
    instruction: str = ""
    """What the italic line below the heading says: what the document is for, or how to keep it."""


@dataclass(frozen=True, slots=True)
class DocFacts:
    """What is known when a turn has ended."""

    is_idle: bool
    """It ended with an answer, and nothing is under way."""
    may_edit: bool
    """The agent is in a mode in which files are changed at all."""
    tracked: int


def choose_doc_step(facts: DocFacts, settings: DocSettings) -> Literal["wait", "update"]:
    """Whether to update documents now: only after an idle turn."""
    if not settings.enabled or not facts.is_idle or not facts.may_edit or not facts.tracked:
        return "wait"
    return "update"


def parse_doc_header(text: str) -> DocHeader | None:
    """The header of a living document; None for any other file."""
    lines = _outside_fences(text[:MAX_HEADER_CHARS].removeprefix("\ufeff"))
    heading = next((line for line in lines if _HEADING.match(line)), "")
    title = _TITLE.fullmatch(heading.rstrip())
    if title is None or not title[1]:
        return None
    below = next((line.strip() for line in lines if line.strip()), "")
    italic = _ITALIC.fullmatch(below)
    return DocHeader(title[1], italic[2] if italic else "")


def _outside_fences(text: str) -> Iterator[str]:
    """The lines of a text that are not code, nor the front matter of a page."""
    lines = text.splitlines()
    start = 0
    if lines[:1] == ["---"] and "---" in lines[1:]:
        start = lines.index("---", 1) + 1
    fence = ""
    for line in lines[start:]:
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        else:
            yield line


@dataclass(frozen=True, slots=True)
class DocTask:
    """A document that is due."""

    path: str
    """As the edit tool is to be called with it."""
    text: str
    header: DocHeader
    tool: str
    """The edit tool that the conversation declares."""


def build_doc_brief(task: DocTask, prompt: str) -> ForkBrief:
    """The fork that updates a document: one tool, one path."""
    filled = {
        "path": task.path,
        "tool": task.tool,
        "title": task.header.title,
        "instruction": task.header.instruction or "none",
        "document": fence_text("document", task.text, label=task.path),
    }
    # In one go, so that braces in a document stay as they are.
    directive = re.sub(r"\{(\w+)\}", lambda match: filled.get(match[1], match[0]), prompt)
    return ForkBrief(
        kind=LIVING_DOC_KIND,
        directive=directive,
        allow=(ToolPermit(task.tool, task.path),),
        max_rounds=_ROUNDS,
    )
