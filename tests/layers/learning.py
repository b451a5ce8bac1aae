"""Conversations that extraction looks through: a project of its own, a scripted model, and turns said one by
one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Literal
from unittest.mock import patch

from sevenfold.core.events import Event
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, run_fork
from sevenfold.layers.memory.extraction import gate
from sevenfold.layers.memory.extraction.drafts import ConversationSnapshot, RecordedMessage, render_steps
from sevenfold.layers.memory.extraction.policy import ExtractionSpend
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.extraction.writer import ExtractionPlaces, ExtractionWriter, ForkTools
from sevenfold.layers.memory.trust.taint import Attribution
from sevenfold.providers.scripted import ScriptedProvider, ScriptedSteps
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir

WriterName = Literal["rules", "model"]


def memory_dir(root: Path, emit: Callable[[Event], None]) -> MemoryDir:
    (root / "project").mkdir(parents=True, exist_ok=True)
    return MemoryDir.for_project(root / "project", environ={"HOME": str(root)}, emit=emit)


@dataclass
class School:
    """A project, and sessions in which something is taught."""

    root: Path
    settings: ExtractionSettings = field(default_factory=lambda: ExtractionSettings(writer="rules"))
    is_defended: bool = True
    """Off: nobody asks whose words they were."""
    heard: list[Event] = field(default_factory=list[Event])
    memory: MemoryDir = field(init=False)

    def __post_init__(self) -> None:
        self.memory = memory_dir(self.root, self.heard.append)

    def session(self, name: str = "s1", steps: ScriptedSteps = (), *, is_kept: bool = False) -> Lesson:
        return Lesson(self, name, ScriptedProvider(steps), is_kept)

    def told(self, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.heard if isinstance(event, kinds)]

    def bodies(self) -> dict[str, str]:
        return {stored.memory.key: stored.memory.body.strip() for stored in self.memory.scan(None)}

    def close(self) -> None:
        self.memory.close()


@dataclass(frozen=True)
class Look:
    """What a fork was run for."""

    messages: int
    steps: str


class Lesson:
    """One session."""

    def __init__(self, school: School, name: str, models: ScriptedProvider, is_kept: bool) -> None:
        self.school, self.name, self.models = school, name, models
        self.said: list[Message] = []
        self.beside: list[Message] = []
        """What a model is shown and the history does not hold."""
        self.compacted = 0
        """How many messages a summary stands for."""
        self.reads: dict[str, str] = {}
        kept = Folder.open(school.root / name, create=True) if is_kept else None
        self.folder = str(school.memory.path)
        places = ExtractionPlaces(session=name, memory=school.memory, folder=self.folder, kept=kept)
        has_model = school.settings.writer != "rules"
        self.main_usd = 0.0
        """What the conversation itself has cost, if that is known."""
        self.each_usd = 0.01
        self.looks: list[Look] = []
        tools = ForkTools(
            ("read", "grep", "memory", "write", "edit"), self._fork, self._read, self._measure_spend
        )
        self.writer = ExtractionWriter(
            places, school.settings, tools if has_model else None, emit=school.heard.append
        )

    def say(self, own: str, answer: str = "Done.") -> Lesson:
        self.said += [Message("user", own), Message("assistant", answer)]
        return self

    def call(self, tool: str, result: str, *, is_error: bool = False, **given: str) -> Lesson:
        """The assistant calls a tool in the middle of a turn."""
        use = ToolUse(ToolUseId(f"u{len(self.said)}"), tool, JsonObject(given))
        answer = ToolResult(use.id, result, is_error=is_error or None)
        self.said += [Message("assistant", (use,)), Message("user", (answer,))]
        return self

    def post(self, message: Message) -> Lesson:
        self.said.append(message)
        return self

    def compact(self) -> Lesson:
        """All but the last turn leaves the view."""
        self.compacted = len(self.said) - 2
        self.beside = [Message("user", "A summary: we looked at modules of the parser.")]
        return self

    def leave(self) -> Lesson:
        """The session is over."""
        history = [RecordedMessage(f"{self.name}.{at}", message) for at, message in enumerate(self.said)]
        view = [*self.beside, *self.said[self.compacted :]]
        hidden = frozenset(one.id for one in history[: self.compacted])
        asyncio.run(self.writer.session_ended(ConversationSnapshot(history, view, hidden)))
        return self

    def end(self) -> Lesson:
        """The turn is over."""
        history = [RecordedMessage(f"{self.name}.{at}", message) for at, message in enumerate(self.said)]
        view = [*self.beside, *self.said] if self.school.is_defended else []
        undefended = patch.object(gate, "attribute_change", return_value=Attribution(said_by="user"))
        with nullcontext() if self.school.is_defended else undefended:
            asyncio.run(self.writer.turn_ended(ConversationSnapshot(history, view)))
        return self

    async def _fork(
        self, brief: ForkBrief, run_tool: ToolRunner, new: Sequence[RecordedMessage]
    ) -> ForkResult:
        self.looks.append(Look(len(new), render_steps(new)))
        frame = RequestParams(model="claude-opus-5-5", max_tokens=1_000)
        parent = ModelRequest(frame, tuple(self.said))
        return await run_fork(parent, brief, self.models, run_tool=run_tool, emit=self.school.heard.append)

    def _measure_spend(self) -> ExtractionSpend | None:
        own, main = Decimal(str(self.each_usd)) * len(self.models.requests), Decimal(str(self.main_usd))
        return ExtractionSpend(own_usd=own, session_usd=main + own) if self.main_usd else None

    async def _read(self, use: ToolUse) -> ToolResult:
        path = str(use.input.get("file_path", ""))
        found = self.reads.get(path)
        return ToolResult(use.id, found or f"{path} is not there", is_error=None if found else True)


def written(name: str, content: str, **more: str) -> dict[str, object]:
    """The input of a memory tool that writes."""
    known = {"action": "write", "name": name, "type": "feedback", "description": content[:140]}
    return {**known, "content": content, **more}


def by_model(settings: ExtractionSettings | None = None) -> ExtractionSettings:
    return replace(settings or ExtractionSettings(), writer="model")
