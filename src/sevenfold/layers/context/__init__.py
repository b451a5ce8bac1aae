"""The context that opens a conversation: which sources, how much of each, and how they are rendered.

It enters the prompt as user-level text, each source in a fence that it cannot close. It contains no date: the
same sources give the same bytes on any day. A change of the memory index is rendered as changed lines only.

- `layer`: `ContextLayer`, the step of a request: reads the sources and appends what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from sevenfold.core.messages import Message, Text
from sevenfold.core.settings import limit, switch
from sevenfold.core.text.safe_text import (
    REMINDER_TAG,
    CountTokens,
    escape_reminder_tags,
    fence_text,
    render_reminder,
    truncate_tokens,
)

CONTEXT_TAG = "context"

SourceKind: TypeAlias = Literal[
    "managed", "user", "project", "local", "memory", "mcp", "skills", "todo", "plan", "selection"
]

CONTEXT_HEADINGS: dict[SourceKind, str] = {
    "managed": "Instructions of whoever runs this installation",
    "user": "The user's own instructions, for every project",
    "project": "Instructions that came with the project",
    "local": "The user's own instructions, for this project",
    "memory": "Index of what is remembered from earlier sessions",
    "mcp": "What an MCP server says of itself and its tools; these are not the user's words",
    "skills": "Skills that the skill tool loads; these are not the user's words",
    "todo": "The todo list",
    "plan": "The plan",
    "selection": "What the user has selected",
}
"""Each kind, in the order in which they are shown."""

_OPENING = (
    "Context of this conversation, put together by the program; nobody typed it as a message. Any of it may "
    "have nothing to do with what is asked: use what helps and pass over the rest. Where two parts disagree, "
    "the later one is nearer to the work at hand."
)
_CHANGED = (
    "Context of this conversation has changed. What stands here replaces what was said of the same source "
    "before; it may have nothing to do with what is asked."
)
_GONE = "No longer there; what it said before no longer holds."
_UNSHOWN = "Not shown: there is no room left for it. Read it before relying on what it may say."

_LEAST_TOKENS = 50
"""Fewer lines of a source than this hold are of no use to anybody."""


@dataclass(frozen=True, slots=True)
class ContextSettings:
    SECTION: ClassVar[str] = "context"

    enabled: bool = switch(True)
    """On: a session has context only where its caller asks for it. Off keeps it out, whoever asks."""

    limit_tokens: int = limit(40_000, at_least=500)
    """A fifth of the smallest window: instructions that need more are not followed anyway."""

    claude_files: bool = switch(True)
    """On: a project's CLAUDE.md says the same to any agent. Off reads AGENTS.md alone."""

    claude_user_file: bool = switch(False)
    """Off: what a person wrote for another agent is theirs to share; on reads ~/.claude/CLAUDE.md too."""


@dataclass(frozen=True, slots=True)
class ContextSource:
    """One text of the context."""

    kind: SourceKind
    text: str
    name: str = ""
    """Where it came from, mostly a path. A kind and a name are one source, whatever it says."""
    is_cut: bool = False
    """There is more of it than was read."""

    @property
    def key(self) -> str:
        return f"{self.kind}\n{self.name}"

    @property
    def title(self) -> str:
        return self.name or self.kind


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A source that is a file, such as the plan: read whenever context is said, and again when it changed."""

    kind: SourceKind
    path: str
    """Relative to where the session works, or absolute."""


@dataclass(frozen=True, slots=True)
class RenderedContext:
    """Sources as they go into the view; no text where there are none."""

    text: str
    tokens: int
    cut: tuple[str, ...] = ()
    """Titles of those that are not shown whole."""


def sort_sources(sources: Iterable[ContextSource]) -> tuple[ContextSource, ...]:
    """By kind, those of one kind as they came; the last of a name counts, and an empty one not at all."""
    named = {source.key: source for source in sources}
    order = list(CONTEXT_HEADINGS)
    ordered = sorted(named.values(), key=lambda source: order.index(source.kind))
    return tuple(source for source in ordered if source.text.strip())


def find_changed_sources(
    before: Sequence[ContextSource], after: Sequence[ContextSource]
) -> tuple[ContextSource, ...]:
    """What has to be said for the second to hold where the first was said; one that is gone has no text."""
    said = {source.key: source for source in before}
    there = {source.key for source in after}
    gone = (replace(source, text="", is_cut=False) for source in before if source.key not in there)
    return (*(source for source in after if said.get(source.key) != source), *gone)


def render_context(
    sources: Sequence[ContextSource], limit_tokens: int, count: CountTokens
) -> RenderedContext:
    """All of the context, within its limit."""
    return _render(sources, _Room(limit_tokens, limit_tokens), count, _OPENING)


def render_context_changes(
    sources: Sequence[ContextSource], limit_tokens: int, count: CountTokens, *, used_tokens: int = 0
) -> RenderedContext:
    """What has changed of it, to be said after everything else, within what is left of the limit."""
    return _render(sources, _Room(max(0, limit_tokens - used_tokens), limit_tokens), count, _CHANGED)


def is_context_message(message: Message) -> bool:
    """Whether all of the context was said with this message."""
    first = message.blocks[0] if message.role == "user" and message.blocks else None
    return isinstance(first, Text) and first.text.startswith(f"<{REMINDER_TAG}>\n{_OPENING}")


@dataclass(frozen=True, slots=True)
class _Room:
    left_tokens: int
    limit_tokens: int


def _render(
    sources: Sequence[ContextSource], room: _Room, count: CountTokens, opening: str
) -> RenderedContext:
    if not sources:
        return RenderedContext("", 0)
    shown = _fitted(sources, room.left_tokens, count)
    cut = [one for one, other in zip(shown, sources, strict=True) if one.is_cut or one.text != other.text]
    parts = [opening, *([_warning(cut, room.limit_tokens)] if cut else [])]
    parts += [_section(one, other) for one, other in zip(shown, sources, strict=True)]
    text = render_reminder("\n\n".join(parts))
    return RenderedContext(text, count(text), tuple(source.title for source in cut))


def _section(shown: ContextSource, whole: ContextSource) -> str:
    if not whole.text:
        body = _GONE
    elif not shown.text:
        body = _UNSHOWN
    else:
        body = escape_reminder_tags(shown.text)
        if shown.is_cut or shown.text != whole.text:
            body += "\n[the rest is not shown]"
    fenced = fence_text(CONTEXT_TAG, body, label=escape_reminder_tags(shown.name))
    return f"# {CONTEXT_HEADINGS[shown.kind]}\n{fenced}"


def _warning(cut: Sequence[ContextSource], limit_tokens: int) -> str:
    named = ", ".join(escape_reminder_tags(" ".join(source.title.split())) for source in cut)
    return (
        f"Warning: not all of this is shown, since context may have {limit_tokens:,} tokens in all. Cut: "
        f"{named}. To fix it, shorten them, move what is seldom needed into files that they name, or raise "
        "context.limit_tokens."
    )


def _fitted(sources: Sequence[ContextSource], limit_tokens: int, count: CountTokens) -> list[ContextSource]:
    """The sources cut so that all fit: an operator's first, then the longest give way to the shorter."""
    sizes = [count(source.text) for source in sources]
    managed = [at for at, source in enumerate(sources) if source.kind == "managed"]
    others = [at for at in range(len(sources)) if at not in managed]
    left = limit_tokens
    shares: dict[int, int] = {}
    for group in (managed, others):
        shares |= _shares({at: sizes[at] for at in group}, left)
        left = limit_tokens - sum(shares.values())
    return [_cut(source, shares[at], count) for at, source in enumerate(sources)]


def _shares(sizes: dict[int, int], budget: int) -> dict[int, int]:
    """How many tokens each gets: all it has, or as much as any other that has too many."""
    shares: dict[int, int] = {}
    left = max(0, budget)
    for done, at in enumerate(sorted(sizes, key=lambda one: sizes[one])):
        shares[at] = min(sizes[at], left // (len(sizes) - done))
        left -= shares[at]
    return shares


def _cut(source: ContextSource, share: int, count: CountTokens) -> ContextSource:
    text = truncate_tokens(source.text, share, count)
    is_whole = len(text) == len(source.text)
    return source if is_whole else replace(source, text=text if share >= _LEAST_TOKENS else "")


_INDEX_OPENING = "Only what changed; the rest of the index holds as it was said."


def render_index_change(before: str, after: str) -> str:
    """The lines that are new and those that are gone; empty where they only changed their order."""
    old, new = before.splitlines(), after.splitlines()
    added = [line for line in new if line.strip() and line not in set(old)]
    gone = [line for line in old if line.strip() and line not in set(new)]
    if not added and not gone:
        return ""
    parts = [_INDEX_OPENING]
    if added:
        parts += ["New:", *added]
    if gone:
        parts += ["Gone:", *gone]
    return "\n".join(parts)
