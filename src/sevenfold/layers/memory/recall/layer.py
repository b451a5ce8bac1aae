"""Recall in the view of a session: memories that a prompt is about, appended once after it and never edited.

The search runs while the request is prepared, and a request waits for it no longer than its budget: what is
found later comes with the next one. A failure is an event, and the request continues without memories.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Lock

from sevenfold.core import events
from sevenfold.core.clock import Clock
from sevenfold.core.events import Emit
from sevenfold.core.json import JsonObject
from sevenfold.core.memories import INDEX_FILE
from sevenfold.core.messages import Message, Text, ToolUse, has_user_text
from sevenfold.core.models import Model
from sevenfold.core.prices import Catalog, find_cheapest_model
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.core.settings import MemorySettings
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import REMINDER_TAG
from sevenfold.layers.context import ContextSource
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary
from sevenfold.layers.memory.recall.policy import (
    RECALL_KIND,
    RECALL_PROMPT,
    SIDE_FILES,
    SIDE_QUERY_TOKENS,
    RecallCandidate,
    RecalledMemory,
    RecallFacts,
    RecallSettings,
    build_output_config,
    choose_eligible,
    choose_related,
    estimate_certainty,
    find_surfaced,
    fit_recalled,
    needs_side_query,
    parse_recall_choice,
    render_recalled_memories,
    render_side_query,
)
from sevenfold.layers.templates import read_template
from sevenfold.providers.provider import Provider
from sevenfold.store.files.disk import may_exist
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project, locate_user_wide


class SessionMemories:
    """The memories of one session, opened when there are any. Every method blocks on the disk."""

    def __init__(
        self,
        project: Project | None,
        settings: MemorySettings,
        *,
        home: Path,
        root: Path | None,
        memory: MemoryDir | None,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self._project, self._settings, self._home, self._root = project, settings, home, root
        self._memory, self._clock, self._emit = memory, clock, emit
        self._owned: MemoryDir | None = None
        self._user_wide = None if project is None else locate_user_wide(project)
        self._lock = Lock()

    @property
    def is_possible(self) -> bool:
        """Whether there may be anything to read at all."""
        return self._project is not None and self._settings.enabled

    def library(self) -> MemoryLibrary | None:
        """None where memory is switched off, or nothing was ever remembered."""
        memory = self._find()
        if memory is None or self._project is None:
            return None
        if not self._has_any(self._project):
            # Opening a search takes longer than a request waits for it, and there is nothing to find.
            return None
        return MemoryLibrary(self._project, memory, self._home, Path(self._root or self._project.root))

    def index(self) -> tuple[ContextSource, ...]:
        """The memory index as a context source; empty where there is no index."""
        memory = self._find()
        found = memory.index_text() if memory is not None else None
        if memory is None or found is None or not found.text.strip():
            return ()
        text = f"{found.text.rstrip()}\n{found.warning}".rstrip()
        return (ContextSource("memory", text, str(memory.path / INDEX_FILE)),)

    def close(self) -> None:
        with self._lock:
            if self._owned is not None:
                self._owned.close()
                self._owned = self._memory = None

    def _find(self) -> MemoryDir | None:
        project = self._project
        if project is None or not self.is_possible:
            return None
        with self._lock:
            if self._memory is None and self._has_any(project):
                self._memory = self._owned = MemoryDir(
                    project,
                    clock=self._clock,
                    emit=self._emit,
                    trusts_outside=self._settings.trust_outside,
                )
            return self._memory

    def _has_any(self, project: Project) -> bool:
        return bool(project.memory.names()) or may_exist(self._user_wide)


RECENT_MESSAGES = 12
"""In which a tool counts as being in use: about six rounds."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """Memories on their way into the view."""

    candidates: tuple[RecallCandidate, ...]
    memories: tuple[RecalledMemory, ...]
    ranked_by: str


@dataclass(frozen=True, slots=True)
class SideQuery:
    """Who is asked to choose, and how."""

    provider: Provider
    model: str
    instruction: str


class RecallLayer:
    """The recall of one conversation."""

    def __init__(
        self,
        conversation: Conversation,
        memories: SessionMemories,
        settings: RecallSettings,
        *,
        side: SideQuery | None,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self._conversation, self._memories, self._settings = conversation, memories, settings
        self._side, self._clock, self._emit = side, clock, emit
        self._seen = conversation.entries[-1].id if conversation.entries else None
        """The last message of the history that was looked at, of a resumed session too."""
        self._finder: MemoryFinder | None = None
        self._search: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        """What nobody waits for: vectors that are still missing, counts of what was used."""
        self._is_kept_up = False
        self._found: list[_Choice] = []
        self._is_late = False

    def start_search(self) -> None:
        """Search for what the user has just asked about, if they asked anything."""
        if not self._settings.enabled or not self._memories.is_possible:
            return
        prompt, entries = "\n".join(_asked(self._list_unseen())), self._conversation.entries
        self._seen = entries[-1].id if entries else None
        if prompt.strip():
            self._search = asyncio.create_task(self._run_search(prompt, self._search))

    def _list_unseen(self) -> list[Message]:
        entries = self._conversation.entries
        unseen = [one.message for one in takewhile(lambda one: one.id != self._seen, reversed(entries))]
        if self._seen is not None and len(unseen) == len(entries):
            # The caller has taken it back: new is what was asked last.
            asked = next((at for at, message in enumerate(unseen) if has_user_text(message)), len(unseen))
            del unseen[asked + 1 :]
        return unseen[::-1]

    async def append(self) -> None:
        """Put what was found behind what was said; wait for it no longer than the budget allows."""
        search = self._search
        if search is not None:
            done, _ = await asyncio.wait({search}, timeout=self._settings.budget_ms / 1000)
            if done:
                self._search = None
            elif not self._is_late:
                waited = f"nothing was found within {self._settings.budget_ms} ms"
                self._emit(events.RecallSkipped(f"{waited}; what is found comes with a later request"))
        found, self._found = self._found, []
        for choice in found:
            self._show(choice)
            self._run_beside(partial(self._count, [one.key for one in choice.candidates]))
        self._is_late = self._search is not None

    async def close(self) -> None:
        """Wait for what is under way, which is short, and release the files."""
        tasks = [*self._background, *([self._search] if self._search else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._finder is not None:
            await run_blocking(self._finder.close)

    async def _run_search(self, prompt: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        try:
            await self._choose(prompt)
        except Exception as error:  # a failing layer is reported, and the request continues
            self._emit(events.RecallSkipped(f"{type(error).__name__}: {error}"))

    async def _choose(self, prompt: str) -> None:
        finder = await run_blocking(self._find_finder)
        if finder is None:
            return
        settings, facts = self._settings, self._facts()
        found = await run_blocking(lambda: finder.find(prompt, settings.candidates))
        ranked_by = "words and meanings" if finder.has_meanings else "words"
        related = choose_related(found, facts, settings)
        side = self._side if needs_side_query(finder.measure_prompt(prompt)) else None
        fitting = fit_recalled(related, facts, settings)
        sure = fitting[: max(1, settings.max_files - SIDE_FILES)] if side else fitting
        await self._take(finder, sure, ranked_by)
        if related and not fitting:
            shown = f"memories of {facts.surfaced_bytes:,} bytes stand in the view"
            self._emit(events.RecallSkipped(f"{shown}, and recall.session_bytes leaves no room for more"))
        if side is not None:
            await self._choose_aside(side, finder, prompt, found, settings.max_files - len(sure))
        if not self._is_kept_up:
            self._is_kept_up = True
            self._run_beside(partial(self._keep_up, finder))

    async def _choose_aside(
        self,
        side: SideQuery,
        finder: MemoryFinder,
        prompt: str,
        found: Sequence[RecallCandidate],
        left: int,
    ) -> None:
        """Have a model choose among the others, as many as are missing: the cap is that of the prompt."""
        candidates = choose_eligible(finder.filled(found, self._settings.candidates), self._facts())
        if left > 0 and candidates:
            chosen = await self._ask(side, finder, prompt, candidates, left)
            await self._take(finder, fit_recalled(chosen, self._facts(), self._settings), "side query")

    async def _take(self, finder: MemoryFinder, chosen: Sequence[RecallCandidate], ranked_by: str) -> None:
        if chosen:
            memories = await run_blocking(lambda: finder.take(chosen))
            self._found.append(_Choice(tuple(chosen), memories, ranked_by))

    async def _ask(
        self,
        side: SideQuery,
        finder: MemoryFinder,
        prompt: str,
        candidates: Sequence[RecallCandidate],
        count: int,
    ) -> tuple[RecallCandidate, ...]:
        manifest = finder.list(one.key for one in candidates)
        asked = Message("user", render_side_query(side.instruction, prompt, manifest, count))
        params = JsonObject({"output_config": build_output_config(count)})
        frame = RequestParams(model=side.model, max_tokens=SIDE_QUERY_TOKENS, params=params)
        reply = await side.provider.send(ModelRequest(frame, (asked,), purpose=RECALL_KIND))
        chosen = parse_recall_choice(reply.text, candidates)
        if chosen is None:
            said = f"{len(reply.text):,} characters that are no list of names"
            self._emit(events.RecallSkipped(f"{side.model} was asked aside and answered with {said}"))
        return (chosen or ())[:count]

    async def _keep_up(self, finder: MemoryFinder) -> None:
        """Once a session: have meanings at hand from the next prompt on, and compute what is missing."""
        if self._settings.vectors and await run_blocking(finder.load_encoder):
            while await run_blocking(finder.embed):
                pass

    async def _count(self, keys: Sequence[str]) -> None:
        finder, now = self._finder, self._clock.now()
        if finder is not None:
            await run_blocking(lambda: finder.count(keys, now))

    def _run_beside(self, work: Callable[[], Awaitable[None]]) -> None:
        # Called only once the task runs: a task that is cancelled before would leave a coroutine unawaited.
        async def run() -> None:
            try:
                await work()
            except Exception as error:
                self._emit(events.RecallSkipped(f"{type(error).__name__}: {error}"))

        task = asyncio.create_task(run())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _find_finder(self) -> MemoryFinder | None:
        """Opened with the first prompt of a project that has a memory."""
        if self._finder is None:
            library = self._memories.library()
            self._finder = MemoryFinder(library, self._clock, self._emit) if library else None
        return self._finder

    def _facts(self) -> RecallFacts:
        surfaced = find_surfaced(self._conversation.shown.messages())
        waiting = [one for choice in self._found for one in choice.candidates]
        return RecallFacts(
            frozenset([*(one.key for one in surfaced), *(one.key for one in waiting)]),
            sum(one.size_bytes for one in (*surfaced, *waiting)),
            _tools([entry.message for entry in self._conversation.entries[-RECENT_MESSAGES:]]),
        )

    def _show(self, choice: _Choice) -> None:
        now, settings = self._clock.now(), self._settings
        text = render_recalled_memories(choice.memories, now, settings.file_bytes)
        # Of the user's side and never the system's: a memory is evidence, and has no more say than that.
        message = Message("user", (Text(text),))
        self._conversation.inject(message, "memory")
        for one in choice.candidates:
            percent = round(100 * estimate_certainty(one))
            size = min(one.size_bytes, settings.file_bytes)
            self._emit(
                events.MemoryRecalled(
                    key=one.key,
                    percent=percent,
                    ranked_by=choice.ranked_by,
                    size_bytes=size,
                    is_late=self._is_late,
                )
            )


def _asked(messages: Sequence[Message]) -> list[str]:
    """What a person has said in them, reminders of programs aside."""
    return [
        block.text
        for message in messages
        if has_user_text(message)
        for block in message.blocks
        if isinstance(block, Text) and not block.text.lstrip().startswith(f"<{REMINDER_TAG}>")
    ]


def _tools(messages: Sequence[Message]) -> frozenset[str]:
    """Names of the tools in use, and of the parts that a server's tool is named by."""
    used = (
        block.name.lower() for message in messages for block in message.blocks if isinstance(block, ToolUse)
    )
    return frozenset(part for name in used for part in (name, *name.split("__")) if part)


def choose_side_query(
    model: Model,
    settings: RecallSettings,
    provider: Provider | None,
    *,
    catalog: Catalog,
    today: date,
    templates: Folder | None,
    is_agent: bool,
) -> SideQuery | None:
    """The cheapest model of whoever serves the conversation's; None where nobody is to be asked."""
    if provider is None or settings.side_query == "off":
        return None
    cheap = find_cheapest_model(model, catalog, today) or model
    # A loop of somebody else's did not ask for calls to other models, nor one model to be asked twice.
    if settings.side_query == "auto" and (not is_agent or cheap == model):
        return None
    return SideQuery(provider, cheap.name, read_template(templates, RECALL_PROMPT))
