"""What is put back into view after a compaction (SPEC E3): which files and what else, within which budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.token_portions import PATH_KEYS, READERS
from sevenfold.layers.compact import CompactSettings
from sevenfold.layers.cut_text import Count, cut_tokens
from sevenfold.layers.fences import fenced, read_fences

FILE_TAG = "restored-file"
KEPT_TAG = "restored"

Kind: TypeAlias = Literal["skill", "plan", "todo", "tasks", "tools", "hook", "session"]


@dataclass(frozen=True, slots=True)
class Extra:
    """Something beside files that was in view and must be again: a skill, the plan, the todo list, …"""

    kind: Kind
    title: str
    text: str


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
class Left:
    """What is not put back, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    files: tuple[str, ...]
    """To be read again, in this order, each within the settings' budget."""
    extras: tuple[Extra, ...]
    """As they go into view, cut where they were too long."""
    left: tuple[Left, ...]


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it goes back into view."""

    path: str
    text: str
    is_cut: bool


def plan_restore(facts: RestoreFacts, settings: CompactSettings, count: Count) -> RestorePlan:
    """The newest few files and what else was there; each refusal is told."""
    files: list[str] = []
    left: list[Left] = []
    for path in dict.fromkeys(facts.seen):
        if path in facts.barred:
            left.append(Left(path, "transcripts, plans and instruction files are never restored"))
        elif path not in facts.in_view and len(files) < settings.restored_files:
            files.append(path)
    extras: list[Extra] = []
    skills_left = settings.restored_skills_tokens
    for extra in facts.extras:
        if extra.kind != "skill":
            extras.append(extra)
            continue
        tokens = min(settings.restored_skill_tokens, skills_left)
        text = cut_tokens(extra.text, tokens, count)
        if not text:
            left.append(Left(f"skill {extra.title}", "the budget for skills is used up by newer ones"))
            continue
        skills_left -= count(text)
        extras.append(Extra("skill", extra.title, text))
    return RestorePlan(tuple(files), tuple(extras), tuple(left))


def render_file(file: FileText) -> Text:
    note = "\n[only its beginning is shown; read the rest if it is needed]" if file.is_cut else ""
    return Text(fenced(FILE_TAG, file.text + note, label=file.path))


def render_extra(extra: Extra) -> Text:
    return Text(fenced(KEPT_TAG, extra.text, label=f"{extra.kind}: {extra.title}"))


def files_read(messages: Sequence[Message]) -> tuple[str, ...]:
    """Paths that were read with success, or restored by an earlier compaction, the newest first."""
    uses: dict[str, str] = {}
    found: list[str] = []
    for message in messages:
        for block in message.blocks:
            match block:
                case ToolUse() if block.name.lower() in READERS:
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
    return (fence.label for fence in read_fences(FILE_TAG, text)) if text.startswith(f"<{FILE_TAG} ") else ()
