"""Layer 3, session notes: when they are brought up to date, how large they may be, and who may write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import amount, choice, limit, switch
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit
from sevenfold.layers.session_notes.sections import (
    EstimateTokens,
    NoteSection,
    find_open_fence,
    render_code_block,
    split_note_lines,
    split_notes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSettings:
    SECTION: ClassVar[str] = "notes"

    enabled: bool = switch(True)
    """On: the structural writer costs microseconds, and makes compaction free of any model call."""

    writer: str = choice("structural", "structural", "model")
    """Structural: it needs no model and cannot be wrong about what happened. A model adds judgement, at the
    price of a fork for each update."""

    compaction_enabled: bool = switch(True)
    """On: notes that are there already are the cheapest summary. Off leaves the summary to a model."""

    first_update_tokens: int = amount(10_000, at_least=0)
    """For a model. Before that the whole conversation is still at hand, and there is little to note."""

    growth_tokens: int = amount(5_000, at_least=1)
    """For a model. About what a round or two of reading adds: the notes are never far behind."""

    tool_calls: int = amount(3, at_least=0)
    """For a model. Fewer calls since the last update seldom change what the notes would say."""

    section_limit_tokens: int = limit(2_000, at_least=100)
    """A section that grows past a screen or two pushes the others out of the file."""

    limit_tokens: int = limit(12_000, at_least=500)
    """Six per cent of a 200,000-token window: small enough to stand at its head after every compaction."""

    keep_tokens: int = amount(10_000, at_least=0)
    """What compaction by notes leaves of the newest messages at least, so that work goes on where it was."""

    keep_messages: int = amount(5, at_least=0)
    """Messages with text among them: large results alone would tell nothing of what was being done."""

    keep_limit_tokens: int = amount(40_000, at_least=0)
    """A quarter of where compaction sets in: keeping more would bring the next one near."""


@dataclass(frozen=True, slots=True)
class NotesFacts:
    said_tokens: int
    """What was said so far. Not the size of the context, which a layer may make smaller at any time."""
    said_at_update: int | None = None
    """The same when the notes were last brought up to date; None: never."""
    tool_calls_since: int = 0
    has_tool_call: bool = False
    """The last assistant message asks for a tool: the turn goes on."""


def needs_update(facts: NotesFacts, settings: NotesSettings) -> bool:
    """Whether the notes are due, checked after every response. A model waits until enough was said; the
    structural writer costs nothing, so that its notes are always current."""
    return settings.enabled and (settings.writer == "structural" or has_grown(facts, settings))


def has_grown(facts: NotesFacts, settings: NotesSettings) -> bool:
    """Whether enough was said since the last update for a model to look at, or a person to be told."""
    if facts.said_at_update is None:
        return facts.said_tokens >= settings.first_update_tokens
    if facts.said_tokens - facts.said_at_update < settings.growth_tokens:
        return False
    return facts.tool_calls_since >= settings.tool_calls or not facts.has_tool_call


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A section, or with an empty name the whole file, that has grown past its limit."""

    section: str
    tokens: int
    limit_tokens: int


@dataclass(frozen=True, slots=True)
class TruncatedNotes:
    """Notes as they may enter a prompt."""

    text: str
    tokens: int
    cut: tuple[str, ...] = ()
    """The sections that lost lines; the file on disk has them all."""


def find_over_limit(text: str, settings: NotesSettings, count: EstimateTokens) -> tuple[OverLimit, ...]:
    """What has to be condensed, the file as a whole last."""
    found = [
        OverLimit(section.name, tokens, settings.section_limit_tokens)
        for section in split_notes(text).sections
        if (tokens := round(count(section.text))) > settings.section_limit_tokens
    ]
    total = round(count(text))
    if total > settings.limit_tokens:
        found.append(OverLimit("", total, settings.limit_tokens))
    return tuple(found)


def truncate_notes(text: str, settings: NotesSettings, count: EstimateTokens) -> TruncatedNotes:
    """The notes within their limits: long sections lose their last lines to a notice, never a line in part
    unless it alone is too long. Notes within the limits come back as they are."""
    if not find_over_limit(text, settings, count):
        return TruncatedNotes(text, round(count(text)))
    notes = split_notes(text)
    parts = [NoteSection("", notes.preamble), *notes.sections]
    sizes = [count(part.text) for part in parts]
    bound = _level(sizes, settings)
    shown = [
        part.text if size <= bound else _cut_section(part, bound, count)
        for part, size in zip(parts, sizes, strict=True)
    ]
    cut = tuple(part.name for part, size in zip(parts, sizes, strict=True) if size > bound)
    whole = "".join(shown)
    if round(count(whole)) > settings.limit_tokens:
        # So many sections that their headings and notices alone are too much.
        whole = _cut_section(NoteSection("", whole), settings.limit_tokens, count)
    return TruncatedNotes(whole, round(count(whole)), cut)


def _level(sizes: Sequence[float], settings: NotesSettings) -> float:
    """The largest bound on every section that keeps the file within its own: short sections stay whole."""
    left, bound = float(settings.limit_tokens), float(settings.section_limit_tokens)
    waiting = sorted(min(size, bound) for size in sizes)
    for place, size in enumerate(waiting):
        share = left / (len(waiting) - place)
        if size > share:
            return share
        left -= size
    return bound


def _cut_section(section: NoteSection, bound: float, count: EstimateTokens) -> str:
    lines = split_note_lines(section.body)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_with_notice(section, lines[:middle], len(lines))) <= bound:
            low = middle
        else:
            high = middle - 1
    if low == 0 and lines:
        lines[0] = _cut_line(section, lines, bound, count)
        low = 1 if lines[0] else 0
    return _with_notice(section, lines[:low], len(lines))


def _cut_line(section: NoteSection, lines: Sequence[str], bound: float, count: EstimateTokens) -> str:
    """As much of the first line as fits, for a section that is one long line."""
    low, high = 0, len(lines[0]) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if count(_with_notice(section, [lines[0][:middle] + "…\n"], len(lines))) <= bound:
            low = middle
        else:
            high = middle - 1
    return lines[0][:low] + "…\n" if low else ""


def _with_notice(section: NoteSection, kept: Sequence[str], there: int) -> str:
    notice = f"[cut here: {len(kept)} of {there} lines shown, the notes file has them all; condense it]\n\n"
    # An open fence would swallow every heading after it.
    closing = find_open_fence(kept)
    return section.heading + "".join(kept) + (f"{closing}\n" if closing else "") + notice


@dataclass(frozen=True, slots=True)
class NotesTask:
    """What the model writer is to work on."""

    path: str
    """Of the notes file, as the edit tool is to be called with it."""
    text: str
    tool: str
    """The edit tool that the request declares."""
    over: tuple[OverLimit, ...] = ()


def build_notes_brief(task: NotesTask, prompt: str) -> ForkBrief:
    """The fork that updates the notes: one tool, one path, one answer."""
    filled = {
        "{path}": task.path,
        "{tool}": task.tool,
        "{condense}": "".join(f"- {_condense(item)}\n" for item in task.over),
        # Last, so that braces in the notes stay as they are.
        "{notes}": render_code_block(task.text),
    }
    directive = prompt
    for name, value in filled.items():
        directive = directive.replace(name, value)
    return ForkBrief(kind="notes", directive=directive, allow=(ToolPermit(task.tool, task.path),))


def _condense(item: OverLimit) -> str:
    what = f'The section "{item.section}"' if item.section else "The whole file"
    return f"{what} has {item.tokens:,} tokens and may have {item.limit_tokens:,}: condense it."
