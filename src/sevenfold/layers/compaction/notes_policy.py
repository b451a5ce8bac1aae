"""Compaction by notes, without a model call: which messages stay beside the notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.messages import (
    Message,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.layers.compaction.trim import without_thinking
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.sections import is_blank_notes

NotesUnusable: TypeAlias = Literal[
    "switched off",
    "no notes were written yet",
    "the notes are still the empty template",
    "the last noted message is not in the view",
    "nothing would be left out",
    "the result would still be over the limit",
]
"""Why notes cannot serve this time; full compaction runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesCompactFacts:
    messages: Sequence[Message]
    """The view as it would be sent."""
    tokens: Sequence[int]
    """Of each of them."""
    notes: str | None
    """As they stand in the file; None: there is none."""
    template: str
    noted: int | None
    """The place in `messages` of the last one that the notes cover; None: it is not among them."""
    notes_tokens: int
    """Of the notes as they would stand in the prompt, and of all that comes back with them."""
    overhead_tokens: int
    """System prompt and tools."""
    target_tokens: int
    """The auto-compact point: a result over it is no compaction."""
    drops_thinking: bool = False
    """The model's thinking is signed over everything before it: after a cut none of it is valid."""


@dataclass(frozen=True, slots=True)
class NotesKeepPlan:
    """The notes and these messages are the new view."""

    start: int
    """The first message of the old view that stays."""
    kept: tuple[Message, ...]
    kept_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class NoNotesPlan:
    reason: NotesUnusable


def plan_notes_compaction(facts: NotesCompactFacts, settings: NotesSettings) -> NotesKeepPlan | NoNotesPlan:
    """What compaction by notes would keep, or the reason against it; the cheapest check first."""
    if not (settings.enabled and settings.compaction_enabled):
        return NoNotesPlan("switched off")
    if facts.notes is None:
        return NoNotesPlan("no notes were written yet")
    if is_blank_notes(facts.notes, facts.template):
        return NoNotesPlan("the notes are still the empty template")
    if facts.noted is None or not 0 <= facts.noted < len(facts.messages):
        return NoNotesPlan("the last noted message is not in the view")
    start = choose_notes_start(facts.messages, facts.tokens, facts.noted, settings)
    if start == 0:
        return NoNotesPlan("nothing would be left out")
    kept = tuple(facts.messages[start:])
    if facts.drops_thinking:
        kept = without_thinking(kept)
    kept_tokens = sum(facts.tokens[start:])
    total = facts.overhead_tokens + facts.notes_tokens + kept_tokens
    if total > facts.target_tokens:
        return NoNotesPlan("the result would still be over the limit")
    return NotesKeepPlan(start, kept, kept_tokens, total)


def choose_notes_start(
    messages: Sequence[Message], tokens: Sequence[int], noted: int, settings: NotesSettings
) -> int:
    """Where the kept messages begin: after the noted one, and back from there until there is enough.

    What the notes do not cover always stays. Going back ends before more than `keep_limit_tokens` are kept,
    and only at places that part no result from its request.
    """
    chosen: int | None = None
    size = spoken = 0
    whole = _whole_starts(messages)
    for start in range(len(messages), -1, -1):
        if start < len(messages):
            size += tokens[start]
            spoken += has_message_text(messages[start])
        if start > noted + 1 or start not in whole:
            continue
        if chosen is not None and size > settings.keep_limit_tokens:
            break
        chosen = start
        if size >= settings.keep_tokens and spoken >= settings.keep_messages:
            break
    return chosen or 0


def has_message_text(message: Message) -> bool:
    """Whether a person or the model says something in it, not only a tool."""
    return any(isinstance(block, Text) and block.text.strip() for block in message.blocks)


def _whole_starts(messages: Sequence[Message]) -> set[int]:
    """The places before which a view can be cut: no call without its result, no answer in two pieces."""
    asked = {block.id for message in messages for block in message.blocks if isinstance(block, ToolUse)}
    waiting: set[ToolUseId] = set()
    found = {len(messages)}
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        for block in message.blocks:
            if isinstance(block, ToolResult) and block.tool_use_id in asked:
                waiting.add(block.tool_use_id)
        for block in message.blocks:
            if isinstance(block, ToolUse):
                waiting.discard(block.id)
        is_torn = message.role == "assistant" and place > 0 and messages[place - 1].role == "assistant"
        if not waiting and not is_torn:
            found.add(place)
    return found
