"""Layer 6, dreams: when memories are consolidated, and the brief of the fork that does it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import ClassVar, Literal, TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.memories import Memory, Origin, change_body, change_field, read_memory
from sevenfold.core.settings import amount, choice, limit, switch
from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.tool_kinds import OWN_READERS
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit

DREAM_KIND = "dream"
MEMORY_TOOL = "memory"
"""The only way in which a dream changes anything, and only in its own copy."""

FIRST_RETRY_REST = timedelta(hours=1)
"""After one failure; it doubles with each, up to the usual rest."""

DreamStep: TypeAlias = Literal["wait", "count sessions", "take lock"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamSettings:
    SECTION: ClassVar[str] = "dream"

    enabled: bool = switch(False)
    """Off: by itself nothing rewrites what was remembered, nor spends on it, until somebody wants that."""

    writer: str = choice("auto", "auto", "model", "mechanical")
    """Auto: a model where there is one, else none is needed for duplicates, dates and what is stale."""

    rest_hours: int = amount(24, at_least=1)
    """A day: shorter merges half-formed notes, longer lets duplicates pile up."""

    sessions: int = amount(5, at_least=0)
    """Fewer than this rarely hold anything worth merging."""

    scan_minutes: int = amount(10, at_least=1)
    """Counting sessions lists a folder: rarely enough that nobody notices."""

    drop_percent: int = limit(20, at_most=100)
    """Of the files, and of the facts, that one dream may let go of. More is no tidying up, and is left for a
    person to look at."""

    stale_days: int = amount(90, at_least=1)
    """A memory that was not used for so long and that the project no longer bears out is archived; one that
    nothing speaks against, after four times as long."""

    rounds: int = limit(24, at_least=1)
    """Model calls of one dream: four phases over a few dozen files."""

    daily_logs: bool = switch(False)
    """For assistants that run for days: what a turn was about goes into a log of the day, and dreams distil
    it."""

    keep_records: int = limit(20, at_least=1)
    """Accounts of past dreams that are kept. What they changed is in the memories' history for good."""

    @property
    def rest(self) -> timedelta:
        return timedelta(hours=self.rest_hours)

    @property
    def scan(self) -> timedelta:
        return timedelta(minutes=self.scan_minutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamFacts:
    """What is known of dreams of a project; what costs more to know comes later, and may be missing."""

    now: datetime
    last_dream: datetime | None = None
    """None: it never had one."""
    last_attempt: datetime | None = None
    strikes: int = 0
    """Attempts since then that came to nothing."""
    spread: timedelta = timedelta(0)
    """How much longer this project rests: not all of a machine's projects dream at one moment."""
    last_count: datetime | None = None
    sessions_since: int | None = None
    """Other sessions that went on since the last dream."""


def choose_dream_step(facts: DreamFacts, settings: DreamSettings) -> DreamStep:
    """What to do next, cheapest question first; the caller does it and asks again."""
    if not settings.enabled or _rests(facts, settings):
        return "wait"
    count, counted = facts.sessions_since, facts.last_count
    if count is not None and count >= settings.sessions:
        return "take lock"
    is_fresh = count is not None and counted is not None and facts.now - counted < settings.scan
    return "wait" if is_fresh else "count sessions"


def _rests(facts: DreamFacts, settings: DreamSettings) -> bool:
    if facts.last_dream is not None and facts.now - facts.last_dream < settings.rest + facts.spread:
        return True
    if not facts.strikes or facts.last_attempt is None:
        return False
    pause = min(settings.rest, FIRST_RETRY_REST * 2 ** min(facts.strikes - 1, 10))
    return facts.now - facts.last_attempt < pause


@dataclass(frozen=True, slots=True)
class DreamMemory:
    """A memory as a dream finds it."""

    memory: Memory
    written: date
    origin: Origin
    days: tuple[date | None, ...] = ()
    """Of each line of its body, the day it was written, and None where nobody knows, the last one for all
    that follow; empty: all on that of the whole."""

    @property
    def dated(self) -> Memory:
        """The same with absolute dates, each counted from the day its line was written."""
        memory, text = self.memory, self.memory.text
        body = _dated_body(memory.body, self.days or (self.written,))
        if body != memory.body:
            text = change_body(text, body)
        said = memory.document.text("description")
        # It may be older than the last change of the body.
        is_known = {*self.days} <= {self.written}
        if said and is_known and resolve_relative_dates(said, self.written, events_only=True) != said:
            text = _with_description(text, resolve_relative_dates(said, self.written, events_only=True))
        return memory if text == memory.text else read_memory(memory.key, text)


def _dated_body(body: str, days: tuple[date | None, ...]) -> str:
    lines = body.splitlines(keepends=True)
    made = {
        day: resolve_relative_dates(body, day, events_only=True).splitlines(keepends=True)
        for day in {*days}
        if day
    }
    made |= {None: lines}
    # Nothing is put on another line, so that each can be taken from the text of its own day.
    return "".join(made[days[min(at, len(days) - 1)]][at] for at in range(len(lines)))


def _with_description(text: str, said: str) -> str:
    try:
        return change_field(text, "description", said)
    except InputError:
        return text  # the frontmatter is at its limit, and the body says the same


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamTask:
    """What the fork is shown."""

    today: date
    manifest: str
    index: str
    logs: Mapping[str, str]
    """Daily logs that were not distilled yet, by key."""
    transcripts: str
    """Where sessions lie, to be searched narrowly and never read whole."""
    copy: str
    """The folder that shows the memories to tools that read files."""
    turns: str = ""
    """Of past sessions, that may speak of memories in doubt."""


def build_dream_brief(task: DreamTask, prompt: str, settings: DreamSettings) -> ForkBrief:
    """The fork that dreams: it reads, and it writes only to a copy of the memories."""
    logs = "\n".join(fence_text("log", text, label=key) for key, text in task.logs.items())
    filled = {
        "today": task.today.isoformat(),
        "manifest": fence_text("memories", task.manifest),
        "index": fence_text("index", task.index),
        "logs": logs or "(none)",
        "turns": fence_text("turns", task.turns) if task.turns else "(none)",
        "transcripts": task.transcripts,
        "copy": task.copy,
        "drop_percent": str(settings.drop_percent),
    }
    # In one go, so that braces in a memory stay as they are.
    directive = re.sub(r"\{(\w+)\}", lambda match: filled.get(match[1], match[0]), prompt)
    permits = tuple(ToolPermit(tool) for tool in (*OWN_READERS, MEMORY_TOOL))
    return ForkBrief(kind=DREAM_KIND, directive=directive, allow=permits, max_rounds=settings.rounds)
