"""What a compaction keeps: what returns to the view after it, and which messages stay beside notes.

`plan_restore` chooses the files and other content, within a budget. Tools whose content must return (skills,
a plan, a todo list) implement `Restorable`. `plan_notes_compaction` decides whether notes can replace the
history without a model call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from sevenfold.core.messages import (
    Message,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.text.safe_text import CountTokens, fence_text, find_fences, truncate_tokens
from sevenfold.core.tool_kinds import PATH_KEYS, find_effect
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.compaction.trim import without_thinking
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.sections import is_blank_notes

RESTORED_FILE_TAG = "restored-file"
RESTORED_TAG = "restored"

ExtraKind: TypeAlias = Literal["skill", "plan", "todo", "tasks", "tools", "agents", "mcp", "hook", "session"]
"""Skills that were in use; the plan, by its path; the todo list; background tasks and how they stand;
schemas of deferred tools; which agents there are; instructions of MCP servers; what session-start hooks say;
metadata of the session."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Something beside files that was in view and must be again: a skill, the plan, the todo list, …"""

    kind: ExtraKind
    title: str
    text: str
    is_cut: bool = False
    """Only its beginning is here."""


@dataclass(frozen=True, slots=True)
class RestoreFacts:
    """What there is to restore. `seen` is newest first; so are skills among the extras."""

    seen: tuple[str, ...] = ()
    """Paths of files that the agent has read."""
    in_view: frozenset[str] = frozenset()
    """Paths whose content the kept messages show."""
    barred: frozenset[str] = frozenset()
    """The transcript, the plan, instruction files: each comes back by its own way, or must not."""
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class RestoreSkip:
    """What is not put back, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    files: tuple[str, ...]
    """To be read again, in this order, each within the settings' budget."""
    extras: tuple[Extra, ...]
    """As they go into view, cut where they were too long."""
    left: tuple[RestoreSkip, ...]


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """A file as it goes back into view."""

    path: str
    text: str
    is_cut: bool


def plan_restore(facts: RestoreFacts, settings: CompactSettings, count: CountTokens) -> RestorePlan:
    """The newest files and other content to restore; each refusal has a reason."""
    files: list[str] = []
    left: list[RestoreSkip] = []
    for path in dict.fromkeys(facts.seen):
        if path in facts.barred:
            left.append(RestoreSkip(path, "transcripts, plans and instruction files are never restored"))
        elif path not in facts.in_view and len(files) < settings.restored_files:
            files.append(path)
    extras: list[Extra] = []
    skills_left = settings.restored_skills_tokens
    for extra in facts.extras:
        is_skill = extra.kind == "skill"
        tokens = (
            min(settings.restored_skill_tokens, skills_left) if is_skill else settings.restored_extra_tokens
        )
        text = truncate_tokens(extra.text, tokens, count)
        if not text.strip():
            left.append(RestoreSkip(f"{extra.kind} {extra.title}", _why_none(extra)))
            continue
        skills_left -= count(text) if is_skill else 0
        extras.append(replace(extra, text=text, is_cut=extra.is_cut or len(text) < len(extra.text)))
    return RestorePlan(tuple(files), tuple(extras), tuple(left))


def _why_none(extra: Extra) -> str:
    if not extra.text.strip():
        return "it is empty"
    is_skill = extra.kind == "skill"
    return (
        "the budget for skills is used up by newer ones"
        if is_skill
        else "there is no room for its first line"
    )


def render_restored_file(file: RestoredFile) -> Text:
    return Text(fence_text(RESTORED_FILE_TAG, file.text + _note(is_cut=file.is_cut), label=file.path))


def render_restored_extra(extra: Extra) -> Text:
    text = extra.text + _note(is_cut=extra.is_cut)
    return Text(fence_text(RESTORED_TAG, text, label=f"{extra.kind}: {extra.title}"))


def _note(*, is_cut: bool) -> str:
    return "\n[only its beginning is shown; read the rest if it is needed]" if is_cut else ""


def find_read_files(messages: Sequence[Message]) -> tuple[str, ...]:
    """Paths that were read with success, or restored by an earlier compaction, the newest first."""
    uses: dict[str, str] = {}
    found: list[str] = []
    for message in messages:
        for block in message.blocks:
            match block:
                case ToolUse() if find_effect(block) == "read":
                    uses.update((block.id, path) for path in _paths(block))
                case ToolResult() if not block.is_error and block.tool_use_id in uses:
                    found.append(uses[block.tool_use_id])
                case Text() if message.role == "user":
                    found += _restored(block.text)
                case _:
                    pass
    return tuple(dict.fromkeys(reversed(found)))


def _paths(use: ToolUse) -> Iterator[str]:
    yield from (path for key in PATH_KEYS if isinstance(path := use.input.get(key), str))


def _restored(text: str) -> Iterable[str]:
    return (
        (fence.label for fence in find_fences(RESTORED_FILE_TAG, text))
        if text.startswith(f"<{RESTORED_FILE_TAG} ")
        else ()
    )


@runtime_checkable
class Restorable(Protocol):
    """A tool that holds something the model must see again: skills, a plan, a todo list, tasks, listings."""

    def extras(self) -> Sequence[Extra]:
        """What it is now, skills newest first; nothing where there is nothing."""
        ...


# Compaction by notes, without a model call.

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
