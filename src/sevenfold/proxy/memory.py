"""Memory for the agents behind the proxy: what a prompt recalls, the rules of a call, what a turn has taught.

It works as the hooks of other agents do (`resident`), on the project that the agent was started in. Recall
searches an index. Extraction goes by rules, or asks the model that the user has named for other agents, with
the user's own key: nothing in this process may hold the agent's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.core.clock import Clock
from sevenfold.core.errors import StoreError
from sevenfold.core.events import Emit, Event, ExtractionEnded
from sevenfold.core.fields import write_fields
from sevenfold.core.json import JsonObject, freeze_object, read_object
from sevenfold.core.messages import Message, Text, ToolUse
from sevenfold.core.settings import Settings
from sevenfold.layers.memory.extraction.drafts import ConversationSnapshot, RecordedMessage
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.layers.tool_results.spill import SpillStore
from sevenfold.resident.agent_hooks import HookCall, answer_hook
from sevenfold.resident.agent_sessions import AgentConversation, AgentSession
from sevenfold.resident.extraction import (
    extract_memories,
    keep_agent_session,
    load_agent_session,
    make_session_writer,
)
from sevenfold.resident.projects import MAX_PROJECTS, OpenProject, ProjectPool

SESSION_PREFIX = "proxy-"
"""Of the folders and sessions of proxied conversations among a project's own."""

_NO_TRANSCRIPT = Path("/nonexistent")


@dataclass(slots=True)
class LearntCount:
    """What was learnt while the proxy ran."""

    written: int = 0
    waiting: int = 0


@dataclass(slots=True, kw_only=True)
class ProxyMemory:
    """The projects of proxied agents. Every method blocks; for any thread."""

    clock: Clock
    environ: Mapping[str, str]
    emit: Emit
    learnt: LearntCount = field(default_factory=LearntCount)
    _pool: ProjectPool | None = None
    _used: dict[str, OpenProject] = field(default_factory=dict[str, OpenProject])
    """By folder: the project that its settings were read from last."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def recall(self, cwd: str, name: str, prompt: str, is_late: Callable[[], bool]) -> str:
        """What a prompt brings to mind, and the index of memories at the first one; empty: nothing."""
        return self._ask(cwd, name, "UserPromptSubmit", [{"prompt": prompt}], is_late)

    def find_rules(self, cwd: str, name: str, uses: Sequence[ToolUse], is_late: Callable[[], bool]) -> str:
        """Rules that apply to calls whose results are about to be shown, each once."""
        given = [
            {"tool_name": use.name, "tool_input": use.input, "tool_use_id": use.id, "shows_rules": True}
            for use in uses
        ]
        return self._ask(cwd, name, "PostToolUse", given, is_late)

    def forget_shown(self, cwd: str, name: str) -> None:
        """The agent has compacted or cleared its conversation: what was shown may be shown again."""
        with self._use(cwd) as project:
            session = _find_session(project, name)
            session.forget_view()
            keep_agent_session(project, session)

    def read_settings(self, cwd: str) -> Settings:
        """The settings of a project. Nothing is waited for while its settings files stay as they are."""
        project = self._used.get(cwd)
        if project is None or project.is_closed or not project.is_current:
            with self._use(cwd) as project:
                if len(self._used) >= MAX_PROJECTS:
                    self._used.clear()
                self._used[cwd] = project
        return project.workspace.settings

    def open_spills(self, cwd: str, name: str) -> SpillStore:
        """Where large results of a conversation are stored: among the project's sessions, so that
        `read_result` of the MCP server finds them."""
        with self._use(cwd) as project:
            workspace = project.workspace
            with workspace.project.sessions.subfolder(f"{SESSION_PREFIX}{name}") as folder:
                return SpillStore(folder, workspace.settings.of(ToolResultSettings), emit=self.emit)

    def learn(self, cwd: str, name: str, messages: Sequence[RecordedMessage], *, is_end: bool) -> None:
        """Look for what the user taught, in messages that were not looked through yet. By rules, or with the
        model that the user has named for other agents, and then for minutes."""
        with self._use(cwd) as project:
            if not project.has_memory:
                return
            session = f"{SESSION_PREFIX}{name}"
            writer = project.writers.get(
                session,
                lambda: make_session_writer(project, session, self.clock, self._count, asks_model=True),
            )
        snapshot = ConversationSnapshot(messages, [one.message for one in messages])
        extract_memories(writer, snapshot, is_end=is_end)

    def warm_up(self, cwd: str) -> None:
        """Read what the first prompt would wait for."""
        with self._use(cwd) as project:
            project.warm_up()

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
            self._used.clear()
        if pool is not None:
            pool.close()

    def _ask(
        self,
        cwd: str,
        name: str,
        event: str,
        given: Sequence[Mapping[str, object]],
        is_late: Callable[[], bool],
    ) -> str:
        """What is answered to one event after another of the same kind."""
        later: list[Callable[[], None]] = []
        answers: list[str] = []
        with self._use(cwd) as project:
            if not project.has_memory:
                return ""
            project.follow()
            session = _find_session(project, name)
            before = write_fields(session)
            for one in given:
                call = HookCall(
                    event=event,
                    given=freeze_object({**one, "cwd": cwd, "session_id": session.session}),
                    project=project,
                    session=session,
                    conversation=AgentConversation(_NO_TRANSCRIPT),
                    clock=self.clock,
                    emit=self.emit,
                    do_later=later.append,
                    is_late=is_late,
                )
                answers.append(_read_context(answer_hook(call)))
            with suppress(StoreError):  # counts, and what was shown: nothing that a request depends on
                if write_fields(session) != before:
                    keep_agent_session(project, session)
                for work in later:
                    work()
        return "\n\n".join(text for text in answers if text)

    def _use(self, cwd: str) -> AbstractContextManager[OpenProject]:
        with self._lock:
            self._pool = self._pool or ProjectPool(self.clock, self.emit)
            pool = self._pool
        return pool.use(cwd, self.environ)

    def _count(self, event: Event) -> None:
        if isinstance(event, ExtractionEnded):
            self.learnt.written += event.written
            self.learnt.waiting += event.waiting
        self.emit(event)


def _find_session(project: OpenProject, name: str) -> AgentSession:
    session = f"{SESSION_PREFIX}{name}"
    return project.sessions.get(session, lambda: load_agent_session(project, session))


def _read_context(answer: str) -> str:
    output = read_object(answer).get("hookSpecificOutput") if answer else None
    text = output.get("additionalContext") if isinstance(output, JsonObject) else None
    return text if isinstance(text, str) else ""


def read_prompt(messages: Iterable[Message]) -> str:
    """What a person says in these messages; empty where it is results alone."""
    texts = (
        block.text
        for message in messages
        if message.role == "user"
        for block in message.blocks
        if isinstance(block, Text)
    )
    return "\n\n".join(text for text in texts if text.strip())
