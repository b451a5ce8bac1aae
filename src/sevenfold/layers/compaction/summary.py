"""The summary that opens a view after a compaction: how it is requested, parsed and rendered.

The user's messages survive every compaction word for word: the code copies them, not a model. Each stands in
a fence of its own, so that the next compaction finds them again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sevenfold.core.messages import Block, Document, Image, Message, Text
from sevenfold.core.text.safe_text import CountTokens, fence_text, find_fences, truncate_tokens
from sevenfold.layers.compaction.policy import CompactionStrategy, CompactSettings
from sevenfold.layers.compaction.trim import DOCUMENT_PLACEHOLDER, IMAGE_PLACEHOLDER
from sevenfold.layers.forks.policy import FORK_MARK
from sevenfold.layers.session_notes.sections import (
    SectionName,
    find_open_fence,
    split_note_lines,
    split_notes,
)

USER_MESSAGE_TAG = "user-message"

_REMINDER = "<system-reminder>"
"""How text begins that a harness put into the user's side; nobody said it."""

MIN_QUOTE_TOKENS = 20
"""Shorter than this no message is made: its first words must still say what it was about."""


@dataclass(frozen=True, slots=True)
class UserQuote:
    """One message of the user's."""

    text: str
    pointer: str = ""
    """Where all of it is, if only its beginning is shown."""


@dataclass(frozen=True, slots=True)
class QuotePlan:
    """How everything the user said is made to fit."""

    fold: int = 0
    """So many of the oldest go to one file together. Only where there are thousands."""
    max_tokens: int = 0
    """What may stay in view of any other."""
    long: tuple[int, ...] = ()
    """Which of the others are over that."""


def collect_user_quotes(
    messages: Sequence[Message], *, is_summary: Sequence[bool], attachments: Collection[int] = ()
) -> tuple[UserQuote, ...]:
    """All messages of the user, oldest first, including those quoted in earlier summaries."""
    found: list[UserQuote] = []
    for at, message in enumerate(messages):
        if message.role != "user":
            continue
        if is_summary[at]:
            for block in message.blocks:
                found += _carried(block.text) if isinstance(block, Text) else ()
        elif at not in attachments:
            text = extract_user_text(message)
            found += [UserQuote(text)] if text else []
    return tuple(found)


def extract_user_text(message: Message) -> str:
    """What a person said in a message: tool results and reminders do not count."""
    return "\n".join(part for block in message.blocks if (part := _spoken(block)))


def _spoken(block: Block) -> str:
    match block:
        case Text():
            is_ours = block.text.lstrip().startswith((_REMINDER, FORK_MARK))
            return "" if is_ours else block.text
        case Image():
            return IMAGE_PLACEHOLDER
        case Document():
            return DOCUMENT_PLACEHOLDER
        case _:
            return ""


def _carried(text: str) -> Iterator[UserQuote]:
    return (UserQuote(fence.text, fence.label) for fence in find_fences(USER_MESSAGE_TAG, text))


def plan_quotes(said: Sequence[UserQuote], count: CountTokens, settings: CompactSettings) -> QuotePlan:
    """Which messages are shortened, and to what: those over their own limit; and while all together are over
    theirs, ever more of the longest."""
    sizes = [count(item.text) for item in said]
    total, cap = settings.said_total_tokens, settings.said_tokens
    while cap > MIN_QUOTE_TOKENS and sum(min(size, cap) for size in sizes) > total:
        cap = max(MIN_QUOTE_TOKENS, cap // 2)
    fold = 0
    while sum(min(size, cap) for size in sizes[fold:]) > total:
        fold += max(1, (len(sizes) - fold) // 10)
    return QuotePlan(fold, cap, tuple(at for at, size in enumerate(sizes) if at >= fold and size > cap))


def shorten_quote(said: UserQuote, max_tokens: int, count: CountTokens, pointer: str) -> UserQuote:
    """Its beginning, in whole lines, and the path of the whole text; an earlier path is kept."""
    return UserQuote(truncate_tokens(said.text, max_tokens, count).rstrip(), said.pointer or pointer)


def render_user_quotes(said: Sequence[UserQuote]) -> str:
    return "\n".join(fence_text(USER_MESSAGE_TAG, item.text, label=item.pointer) for item in said)


SUMMARY_OPENING = "[This session goes on from an earlier part, which is no longer in view.]"
"""How every head begins: the next compaction knows its predecessor by it."""

SUMMARY_TAG = "session-summary"
MIN_SUMMARY_CHARS = 80
"""Less than a sentence is no summary of anything."""

_SOURCES: dict[CompactionStrategy, str] = {
    "notes": "These notes, kept while it went on, stand for it:",
    "block": "Its summary stands before this message.",
    "summary": "This summary stands for it:",
    "trimmed": "This summary stands for it; its oldest rounds did not fit and are not covered:",
    "structural": "This record of it was made from its structure, without a model:",
    "clip": "No summary of it could be made. What is known of it:",
}
_GO_ON = (
    "Go on with the work where it stopped, as if nothing had happened between. Do not ask the user to repeat "
    "anything that stands here, and do not remark on this summary."
)


@dataclass(frozen=True, slots=True)
class ParsedSummary:
    """What an answer contained."""

    summary: str
    problem: str = ""
    """Why it is none; empty when it is one."""


def parse_summary(text: str) -> ParsedSummary:
    """The summary of an answer, without its scratchpad. An incomplete summary is a failure."""
    if not text.strip():
        return ParsedSummary("", "the answer was empty")
    rest = text
    if (start := text.find("<analysis>")) >= 0 and not text[:start].strip():
        _, closed, rest = text.partition("</analysis>")
        if not closed:
            return ParsedSummary("", "the answer broke off before its summary")
    start, end = rest.find("<summary>"), rest.rfind("</summary>")
    if start < 0:
        return ParsedSummary("", "the answer held no <summary>")
    if end < start:
        return ParsedSummary("", "the summary was not closed")
    summary = rest[start + len("<summary>") : end].strip()
    if len(summary) < MIN_SUMMARY_CHARS:
        return ParsedSummary("", f"the summary had {len(summary)} characters")
    return ParsedSummary(summary)


def render_summary_directive(template: str, *, instructions: str = "", scope: str = "") -> str:
    """The request for a summary. Braces in the instructions are kept as they are."""
    asked = (
        f"\nThe user asks for this in particular:\n{instructions.strip()}\n" if instructions.strip() else ""
    )
    filled = {"scope": scope, "instructions": asked}
    return re.sub(r"\{(scope|instructions)\}", lambda found: filled[found[1]], template).strip()


def render_summary_scope(anchor: str) -> str:
    """The scope of a summary that covers only what follows a message."""
    quoted = " ".join(anchor.split())[:200]
    return f", but only of the part that begins with the message that reads: “{quoted}”" if quoted else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryHead:
    """What goes into the message that opens the new view."""

    strategy: CompactionStrategy
    summary: str
    said: tuple[UserQuote, ...] = ()
    transcript: str = ""
    remark: str = ""
    """What else should be known, such as what was dropped."""


def render_summary_head(head: SummaryHead, restored: Sequence[Text] = ()) -> Message:
    """One message of the user's side: the summary, the user's words, what was restored, how to go on."""
    blocks = [Text(_render_opening(head))]
    if head.said:
        blocks.append(
            Text(f"## All user messages, word for word, oldest first\n{render_user_quotes(head.said)}")
        )
    return Message("user", (*blocks, *restored, Text(_GO_ON)))


def _render_opening(head: SummaryHead) -> str:
    where = f"All of it can be read in {head.transcript}." if head.transcript else ""
    parts = [SUMMARY_OPENING, where, head.remark, _SOURCES[head.strategy]]
    if head.strategy != "block" and head.summary:
        parts.append(fence_text(SUMMARY_TAG, head.summary))
    return "\n".join(part for part in parts if part)


def is_summary_head(message: Message) -> bool:
    """Whether this message opened a view after a compaction."""
    first = next((block for block in message.blocks if isinstance(block, Text)), None)
    return message.role == "user" and first is not None and first.text.startswith(SUMMARY_OPENING)


def find_carried_summary(messages: Sequence[Message]) -> str:
    """The summary that an earlier compaction left in these messages; empty where there is none."""
    for message in messages:
        if is_summary_head(message):
            texts = (block.text for block in message.blocks if isinstance(block, Text))
            for text in texts:
                for fence in find_fences(SUMMARY_TAG, text):
                    return fence.text
    return ""


# Requests that are quoted in the head need not stand in the notes too.

TASK_SECTION: SectionName = "Task specification"
QUOTES_POINTER = "- (The user's messages stand word for word outside of these notes.)\n"

_ENTRY = re.compile(r"\d+\. (?:\(said \d+×\) ?)?")
_BEGINS = re.compile(r"begins so, of [\d,]+ characters(?:; the whole is in [^\n]*)?:(?=\n~)")
_BRIEF = re.compile(r"…(?: \([^()\n]*\))?$")


def without_quoted_requests(notes: str, shown: Iterable[str]) -> str:
    """The notes without requests that are quoted beside them; what a person or a model added stays."""
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
