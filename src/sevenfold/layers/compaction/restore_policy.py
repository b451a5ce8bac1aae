"""What returns to the view after a compaction: which files and what else, within which budget.

Tools whose content must return (skills, a plan, a todo list) implement `Restorable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.text.safe_text import fence_text, find_fences
from sevenfold.core.text.truncation import CountTokens, truncate_tokens
from sevenfold.core.tool_kinds import PATH_KEYS, find_effect
from sevenfold.layers.compaction.policy import CompactSettings

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
