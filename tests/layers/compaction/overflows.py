"""Views to compact, and the jobs that ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sevenfold.core.events import Event
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Breakpoint, ModelRequest, RequestParams, choose_capabilities
from sevenfold.layers.compaction.compactor import CompactionStateFile, Compactor
from sevenfold.layers.compaction.job import Compacted, CompactionJob, ViewSizer
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.providers.scripted import ScriptedProvider, ScriptedSteps

OLDER, NEWER = "claude-opus-4-8", "claude-opus-5-5"
"""One whose old turns may be rewritten, and one with preserved thinking."""

SUMMARY = "The user wants the parser mended. It splits a line at the first colon, which fails on paths. " * 2
GOOD = f"<analysis>Line by line.</analysis>\n<summary>{SUMMARY}</summary>"
STRUCTURAL = "# Current state\nMending the parser in /src/parser.py.\n" * 4
TRANSCRIPT = "/sessions/one.jsonl"
FRAME_TOKENS = 1_000


def talk(rounds: int = 20, *, words: int = 1_000) -> list[Message]:
    """A user's wish, and rounds of reading one file each, with thinking."""
    messages = [Message("user", "Please mend the parser, and keep its tests.")]
    for number in range(rounds):
        use = ToolUseId(f"t{number}")
        call = ToolUse(use, "Read", JsonObject({"file_path": f"/src/{number}.py"}))
        messages.append(Message("assistant", (Thinking("Hm.", f"sig{number}"), Text("I read on."), call)))
        messages.append(Message("user", (ToolResult(use, f"{number} " + "word " * words),)))
    return messages


def job(messages: Sequence[Message], model: str = OLDER, **changes: object) -> CompactionJob:
    counts = count(messages, model)
    found = CATALOG.find(model)
    marks = (Breakpoint("system", 0), Breakpoint("messages", len(messages) - 1))
    made = CompactionJob(
        request=ModelRequest(
            RequestParams(model=model, max_tokens=4_000, system="You mend things."), tuple(messages), marks
        ),
        tokens_before=sum(counts) + FRAME_TOKENS,
        target=20_000,
        counts=counts,
        capabilities=choose_capabilities(found, "anthropic"),
        structural=STRUCTURAL,
        transcript=TRANSCRIPT,
    )
    return replace(made, **changes)


def count(messages: Sequence[Message], model: str = OLDER) -> list[int]:
    scale = 1.3 if CATALOG.find(model).tokenizer == "newer" else 1.0
    return [ViewSizer(scale, 0).message(message) for message in messages]


@dataclass(kw_only=True)
class Rig:
    """An overflow over a script, with what it told."""

    steps: ScriptedSteps = ()
    settings: CompactSettings = field(default_factory=CompactSettings)
    notes: NotesSettings = field(default_factory=NotesSettings)
    state: CompactionStateFile | None = None
    heard: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.provider = ScriptedProvider(self.steps)
        self.overflow = Compactor(
            self.provider, self.settings, notes=self.notes, state=self.state, emit=self.heard.append
        )

    def compact(self, wanted: CompactionJob) -> Compacted:
        return asyncio.run(self.overflow.compact(wanted))

    @property
    def calls(self) -> int:
        return len(self.provider.requests)

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.heard if isinstance(event, kind)]


def texts(messages: Sequence[Message]) -> str:
    """Everything these messages say, results included."""
    found: list[str] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text):
                found.append(block.text)
            elif isinstance(block, ToolResult) and isinstance(block.content, str):
                found.append(block.content)
    return "\n".join(found)


def has_thinking(messages: Sequence[Message]) -> bool:
    return any(isinstance(block, Thinking) for message in messages for block in message.blocks)
