"""The copy of the memories that a dream edits: the `memory` tool over it, and the folder in which its fork
reads it.

`DreamProgress` is the state shown to a person. `DreamToolRunner` lets the fork read, and routes its `memory`
calls to the copy only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.errors import InputError, KeyRefused, SevenfoldError
from sevenfold.core.events import DreamProgressed, Emit
from sevenfold.core.json import JsonObject, get_choice, get_string
from sevenfold.core.memories import (
    ARCHIVE_PREFIX,
    LOGS_PREFIX,
    MEMORY_KINDS,
    TEAM_PREFIX,
    read_memory,
    rewrite_memory,
    write_memory,
)
from sevenfold.core.messages import ToolResult, ToolUse
from sevenfold.core.system import run_blocking
from sevenfold.core.text.facts import FactIndex
from sevenfold.layers.dreams.check import (
    RemovalReason,
    find_memory_fault,
    list_memory_facts,
    parse_removal_reason,
    render_dream_manifest,
    with_md_suffix,
)
from sevenfold.layers.dreams.inputs import FindTurns
from sevenfold.layers.dreams.policy import MEMORY_TOOL, DreamMemory
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner
from sevenfold.store.files.folder import Folder, check_memory_key

_ACTIONS = ("list", "read", "write", "delete")
MAX_LISTED_MEMORIES = 1_000
_MOST_TOLD = 10
"""Facts that are named when a write loses them."""


@dataclass(slots=True, kw_only=True)
class DreamWorkspace:
    """Memories as the dream would have them. `folder` shows them to tools that read files."""

    before: Mapping[str, DreamMemory]
    texts: dict[str, str]
    today: date
    folder: Folder | None = None
    on_write: Callable[[str], None] = lambda _key: None
    reasons: list[RemovalReason] = field(default_factory=list[RemovalReason])

    def write_copy(self) -> None:
        """Write the copy to the folder where the fork can read it. Blocks on the disk."""
        for key in self.texts:
            self._show(key)

    def run(self, given: JsonObject) -> str:
        """One call of the `memory` tool; `InputError` says what would be right. Blocks on the disk."""
        match get_choice(given, "action", _ACTIONS):
            case "list":
                return self._list()
            case "read":
                return self._read(_key(given))
            case "write":
                return self._write(_own_key(given), given)
            case _:
                return self._delete(_own_key(given), get_string(given, "content", ""))

    def manifest(self, limit: int) -> str:
        """One line a memory, the newest first, as many as that."""
        shown = [(read_memory(key, self.texts[key]), self._day(key)) for key in [*self.texts][:limit]]
        left = len(self.texts) - len(shown)
        return render_dream_manifest(shown) + (
            f"\n[and {left:,} older ones: grep the copy for them]" if left else ""
        )

    def _list(self) -> str:
        return self.manifest(MAX_LISTED_MEMORIES) or "nothing is remembered"

    def _read(self, key: str) -> str:
        found = self.texts.get(key)
        if found is None:
            raise InputError(f"there is no memory {key!r}; list them first")
        return found

    def _write(self, key: str, given: JsonObject) -> str:
        text = _written(self.texts.get(key), key, given)
        fault = find_memory_fault(key, text)
        if fault:
            raise InputError(f"{key} would not do: {fault}")
        self.texts[key] = text
        self._changed(key)
        return f"{key} is written. {self._missing(key)}".strip()

    def _delete(self, key: str, said: str) -> str:
        self._read(key)
        reason = parse_removal_reason(key, said) if said else None
        if said and reason is None:
            raise InputError(
                f"content is {said[:80]!r}; expected `duplicate of FILE`, `contradicted by FILE`, "
                "`reworded in FILE` or `stale: why`"
            )
        text = self.texts.pop(key)
        if reason and reason.why == "stale":
            # It may matter again, so it is archived and can be restored.
            self.texts[f"{ARCHIVE_PREFIX}{key}"] = text
        if reason:
            self.reasons.append(reason)
        self._changed(key)
        return f"{key} is taken out. {'' if reason else self._missing(key)}".strip()

    def _missing(self, key: str) -> str:
        """Which of its facts nothing says any more, so that they can be put back or explained."""
        kept = self.before.get(key)
        if kept is None:
            return ""
        known = FactIndex()
        for other, text in self.texts.items():
            known.add(other, list_memory_facts(read_memory(other, text), self._day(other)))
        lost = [fact.text for fact in list_memory_facts(kept.dated, kept.written) if not known.find(fact)]
        if not lost:
            return ""
        listed = "".join(f"\n- {text[:200]}" for text in lost[:_MOST_TOLD])
        return f"Nothing says this any more; put it back, or give a reason in your last answer:{listed}"

    def _day(self, key: str) -> date:
        kept = self.before.get(key)
        return kept.written if kept else self.today

    def _changed(self, key: str) -> None:
        self.on_write(key)
        self._show(key)

    def _show(self, key: str) -> None:
        if self.folder is None:
            return
        if key in self.texts:
            self.folder.replace(key, self.texts[key].encode("utf-8", "surrogateescape"), durable=False)
        elif self.folder.stat(key):
            self.folder.remove(key, durable=False)


def _written(before: str | None, key: str, given: JsonObject) -> str:
    """The file as a call wants it; what it does not speak of stays."""
    old = read_memory(key, before) if before is not None else None
    content = get_string(given, "content", old.body if old else None)
    said = get_string(given, "description", old.description if old else None)
    kind = get_choice(
        given, "type", MEMORY_KINDS, old.kind if old and old.kind in MEMORY_KINDS else "project"
    )
    if old is None:
        return write_memory(key.rpartition("/")[2].removesuffix(".md"), said, kind, content)
    return rewrite_memory(old, said, kind, content)


def _key(given: JsonObject) -> str:
    try:
        return check_memory_key(with_md_suffix(get_string(given, "name")))
    except KeyRefused as error:
        raise InputError(str(error)) from error


def _own_key(given: JsonObject) -> str:
    """A memory that a dream may change."""
    key = _key(given)
    if key.startswith((TEAM_PREFIX, LOGS_PREFIX, ARCHIVE_PREFIX)):
        raise InputError(f"{key} is not changed by a dream; leave it as it is")
    return key


DreamState: TypeAlias = Literal["starting", "updating"]

_STEPS = 30
STEP_CHARS = 300


@dataclass(slots=True, kw_only=True)
class DreamProgress:
    dream: str
    emit: Emit
    state: DreamState = "starting"
    tools: int = 0
    touched: dict[str, None] = field(default_factory=dict[str, None])
    steps: deque[str] = field(default_factory=lambda: deque[str](maxlen=_STEPS))

    def step(self, text: str) -> None:
        said = " ".join(text.split())[:STEP_CHARS]
        self.steps.append(said)
        self.emit(
            DreamProgressed(
                dream=self.dream, state=self.state, step=said, tools=self.tools, touched=len(self.touched)
            )
        )

    def tool(self, said: str) -> None:
        self.tools += 1
        self.step(said)

    def touch(self, key: str) -> None:
        self.state = "updating"
        self.touched[key] = None


RunDreamFork: TypeAlias = Callable[[ForkBrief, ToolRunner], Awaitable[ForkResult]]
MakeReader: TypeAlias = Callable[[tuple[Path, ...]], ToolRunner]
"""Makes a runner of read-only calls that may read the project and these folders, and nothing else."""

_SEARCH = "grep"


@dataclass(frozen=True, slots=True)
class DreamModel:
    """How a model dreams: what runs its read-only calls, and what runs the fork."""

    reader_of: MakeReader
    run_fork: RunDreamFork
    find_turns: FindTurns | None = None
    """Searches past sessions for it; None: they are not looked at."""


class DreamToolRunner:
    """Runs the calls of a dream's fork."""

    def __init__(
        self,
        reader_of: MakeReader,
        stage: DreamWorkspace,
        copy: Path,
        sessions: Path,
        progress: DreamProgress,
    ) -> None:
        self._stage, self._progress = stage, progress
        # Not the memory folder itself: it may contain files that no person has accepted.
        self._read = reader_of((copy,))
        # Transcripts are searched and never read whole.
        self._search = reader_of((copy, sessions))

    async def run(self, use: ToolUse) -> ToolResult:
        self._progress.tool(_said(use))
        if use.name == MEMORY_TOOL:
            return await self._run_memory(use)
        return await (self._search(use) if use.name == _SEARCH else self._read(use))

    async def _run_memory(self, use: ToolUse) -> ToolResult:
        try:
            return ToolResult(use.id, await run_blocking(lambda: self._stage.run(use.input)))
        except SevenfoldError as error:
            return ToolResult(use.id, str(error), is_error=True)


def _said(use: ToolUse) -> str:
    shown = [use.input.get(key) for key in ("action", "name", "file_path", "path", "pattern")]
    return " ".join((use.name, *(text for text in shown if isinstance(text, str))))
