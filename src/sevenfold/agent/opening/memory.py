"""Memory in an agent: who a saved memory is attributed to, memory rules, and sync with a team.

Saves of the agent are compared with the conversation, so that text from tools or web pages is not stored as
the user's own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.permissions.rule_guard import RuleGuard, VisibleContext
from sevenfold.agent.tools.memory import MemoryTool
from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import Emit, TeamStopped
from sevenfold.core.memories import (
    GATE_KEY,
    INDEX_FILE,
    TEAM_FOLDER,
    TEAM_PREFIX,
    Memory,
    Origin,
    Taint,
    join_taint,
    read_memory,
)
from sevenfold.core.messages import Text
from sevenfold.core.secrets import refuse_secrets
from sevenfold.core.settings import MemorySettings
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.core.system import run_blocking
from sevenfold.core.text.markdown import FieldValue
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.memory.extraction.gate import MemoryDraft, quote_draft, restrict_head
from sevenfold.layers.memory.rule_policy import RuleSettings
from sevenfold.layers.memory.rule_reader import MemoryRuleReader
from sevenfold.layers.memory.trust.taint import (
    Attribution,
    ConversationSources,
    SourceTracker,
)
from sevenfold.layers.memory.trust.taint_changes import attribute_change
from sevenfold.layers.templates import read_template
from sevenfold.session import Session
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.index_text import drop_index_entries

if TYPE_CHECKING:
    # Most projects have joined no team, and do not wait for the modules of its client.
    from sevenfold.team.client.local_state import TeamAccess
    from sevenfold.team.client.memory import TeamWatcher

JUDGED_FIELDS = frozenset(("name", "description", "type", "applies_to", GATE_KEY))
"""Of the head of a memory: each is compared with the conversation or with what it was."""
MAX_NAMES_CHARS = 120
"""Of a line that is read in passing."""


def read_review_notice(memory: MemoryDir) -> tuple[str, ...]:
    """What a person is told when a session begins: that something waits for them. Blocks on the disk."""
    waiting = memory.waiting()
    if not waiting:
        return ()
    keys = ", ".join(dict.fromkeys(change.key for one in waiting for change in one.changes))
    shown = keys if len(keys) <= MAX_NAMES_CHARS else f"{keys[:MAX_NAMES_CHARS]}…"
    return (f"changes of memory wait for you, and count for nothing until then: {shown}; /memory review",)


def attribute_saved_memories(agent: Agent, *, is_child: bool = False) -> None:
    """Have what the agent saves compared with what was said: a stranger's words wait for the user. What an
    agent tells its child is not the user's word."""
    attributor = _ChangeAttributor(session=agent.session, clock=agent.place.clock, is_child=is_child)
    for tool in agent.toolbox.tools:
        if isinstance(tool, MemoryTool):
            tool.conversation = attributor


@dataclass(slots=True, kw_only=True)
class _ChangeAttributor:
    """Compares changes with what was said in a session. Forks save by the same tool, each in a thread."""

    session: Session
    clock: Clock
    is_child: bool = False
    _tracker: SourceTracker | None = None
    """Made for the first change: most sessions have none."""
    _turn: Lock = field(default_factory=Lock)

    def judge_change(self, before: Memory | None, after: Memory) -> Origin:
        with self._turn:
            return self._make_origin(attribute_change(before, after, self._sources()))

    def judge_words(self, words: str) -> Origin:
        with self._turn:
            found = self._sources().attribute(words)
            taint: frozenset[Taint] = found.taint or frozenset(["transcript"])
            return self._make_origin(replace(found, taint=taint) if found.unsupported else found)

    def with_own_head(self, draft: MemoryDraft, known: Collection[str]) -> MemoryDraft:
        with self._turn:
            return restrict_head(draft, self._sources(), known)

    def with_own_words(self, draft: MemoryDraft, before: Memory | None, after: Memory) -> MemoryDraft | None:
        with self._turn:
            sources = self._sources()
            return quote_draft(draft, attribute_change(before, after, sources), sources)

    def _sources(self) -> ConversationSources:
        if self._tracker is None:
            self._tracker = SourceTracker(is_delegated=self.is_child)
        return self._tracker.update(self.session.parent.messages, self.clock.now().astimezone().date())

    def _make_origin(self, found: Attribution) -> Origin:
        return Origin(
            who="agent",
            why="saved by the agent",
            session=self.session.id,
            said_by=found.said_by,
            taint=found.taint,
            evidence=found.evidence,
        )


def attribute_edited_memories(agent: Agent, memory: MemoryDir, *, is_child: bool = False) -> None:
    """Have files that the agent writes or edits in the memory folder recorded, and checked, as its own."""
    tracker = SourceTracker(is_delegated=is_child)
    edits = _Edits(agent=agent, memory=memory, is_child=is_child, tracker=tracker)
    agent.toolbox.place = replace(agent.place, on_edit=edits.take)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edits:
    """Memories that tools for files have changed."""

    agent: Agent
    memory: MemoryDir
    is_child: bool
    tracker: SourceTracker
    """Kept: a long session is not read again for each edit."""
    _turn: Lock = field(default_factory=Lock)

    def take(self, path: str) -> str:
        """Record a file that was changed, if it is a memory; what the agent has to know of it."""
        folder = os.path.realpath(self.memory.path)
        if not path.startswith(f"{folder}{os.sep}"):
            return ""
        key = os.path.relpath(path, folder).replace(os.sep, "/")
        try:
            return self._record(key, path)
        except (SevenfoldError, OSError, ValueError) as error:
            return f"It counts for nothing in memory until the user has accepted it: {error}."

    def _record(self, key: str, path: str) -> str:
        text = Path(path).read_text(encoding="utf-8")
        refuse_secrets(text)
        with self._turn:
            origin = self._judge(key, text)
        self.memory.record_edit([key], origin)
        if origin.is_trusted:
            return "It is remembered."
        return (
            "It is not remembered yet: it says more than the user did, and waits for them; tell them that "
            "`sevenfold memory review` shows it."
        )

    def _judge(self, key: str, text: str) -> Origin:
        session = self.agent.session
        sources = self.tracker.update(session.parent.messages)
        if key == INDEX_FILE:
            found, taint = self._judge_index(text, sources), frozenset[Taint]()
        else:
            stored, now = self.memory.find(key), read_memory(key, text)
            before = stored.memory if stored else None
            found = attribute_change(before, now, sources)
            taint = join_taint(stored.origin) if stored else frozenset[Taint]()
            foreign: frozenset[Taint] = sources.taints or frozenset(["transcript"])
            taint |= frozenset() if _has_own_head(now, before, sources) else foreign
        return Origin(
            who="agent",
            why="edited by the agent",
            session=session.id,
            said_by=found.said_by,
            taint=taint | found.taint,
            evidence=found.evidence,
        )

    def _judge_index(self, text: str, sources: ConversationSources) -> Attribution:
        """The lines that the engine writes come back, whatever an agent makes of them."""
        shown = self.memory.index_text().text
        own = drop_index_entries(shown, self.memory.keys()).split("\n")
        engines = {line for line in shown.split("\n") if line not in own}
        added = "\n".join(line for line in text.split("\n") if line not in engines)
        return attribute_change(
            read_memory(INDEX_FILE, "\n".join(own)), read_memory(INDEX_FILE, added), sources
        )


def _has_own_head(now: Memory, before: Memory | None, sources: ConversationSources) -> bool:
    if _other_fields(now) != (_other_fields(before) if before else {}):
        return False
    if before is not None:
        return (now.name, now.description, now.kind) == (before.name, before.description, before.kind)
    draft = MemoryDraft(key=now.key, name=now.name, description=now.description, kind=now.kind, body=now.body)
    return restrict_head(draft, sources, ()) == draft


def _other_fields(memory: Memory) -> dict[str, FieldValue]:
    """Fields of the head that nobody reads as instructions, and that an agent may read all the same."""
    return {name: value for name, value in memory.document.fields.items() if name not in JUDGED_FIELDS}


# Memory rules: shown before calls, counted after turns.


def make_rule_guard(workspace: Workspace, session: Session, place: ToolContext) -> RuleGuard | None:
    """What is asked before each call of an agent; None where settings say no."""
    settings = workspace.settings.of(RuleSettings)
    if not settings.enabled or not workspace.settings.of(MemorySettings).enabled:
        return None

    def words() -> str:
        said = session.history[-1] if session.history else None
        blocks = said.blocks if said and said.role == "assistant" else ()
        return "\n".join(block.text for block in blocks if isinstance(block, Text))

    rules = MemoryRuleReader(memories=workspace.memory, settings=settings, emit=place.emit)
    return RuleGuard(rules.read, place, VisibleContext(lambda: session.parent.messages, words), settings)


def add_rule_counter(agent: Agent, workspace: Workspace) -> None:
    """Have it written down after each turn what became of rules."""
    rules = agent.toolbox.rules
    if not isinstance(rules, RuleGuard):
        return

    folder = workspace.project.memory_state
    agent.add_writer("rule counts", lambda _end: rules.write_uses(folder))


# Team memory: pulled before the first prompt, pushed while the agent works.

TEAM_GUIDANCE_FILE = "team_memory.md"


async def start_team_sync(workspace: Workspace, emit: Emit, exits: AsyncExitStack) -> str:
    """Pull the team's news and watch for ours from now on; what the agent is told about it.

    Empty where the project has joined no server. Nothing that goes wrong with a server keeps an agent from
    opening.
    """
    settings, clock = workspace.settings.of(SyncSettings), workspace.clock
    if not (settings.enabled and workspace.settings.of(MemorySettings).enabled):
        return ""
    try:
        folder = await run_blocking(
            lambda: workspace.project.memory_state.subfolder(TEAM_FOLDER, create=False)
        )
        exits.callback(folder.close)
        joined = await run_blocking(lambda: _joined(folder, workspace.home))
    except FileMissing:
        return ""
    except SevenfoldError as error:
        emit(TeamStopped(str(error)))
        return ""
    if joined is None:
        return ""
    from sevenfold.team.client.memory import TeamMemory, TeamWatcher

    team = TeamMemory(joined, workspace.memory, folder, settings, clock=clock, emit=emit)
    news = await team.pull_news()
    watcher = TeamWatcher(team, workspace.memory, is_behind=news is None, clock=clock, emit=emit)
    watching = asyncio.create_task(watcher.run(), name="team memory")
    exits.push_async_callback(_stop, watcher, watching)
    return _guidance(workspace, joined)


def _joined(folder: Folder, home: Path) -> TeamAccess | None:
    from sevenfold.team.client.local_state import find_team_access

    with Folder.open(home) as ours:
        return find_team_access(folder, ours)


def _guidance(workspace: Workspace, joined: TeamAccess) -> str:
    private = Path(workspace.project.memory.path)
    text = read_template(workspace.templates, TEAM_GUIDANCE_FILE)
    said = {"{private}": private, "{team}": private / TEAM_PREFIX, "{repo}": joined.membership.repo_name}
    for mark, value in said.items():
        text = text.replace(mark, str(value))
    return text.strip()


async def _stop(watcher: TeamWatcher, watching: asyncio.Task[None]) -> None:
    if watching.done():
        return  # it has told why
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await watcher.finish()
