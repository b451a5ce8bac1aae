"""What was said in a transcript, in passages: the pieces that a search finds and shows.

A passage is one turn, or a part of a long one. Reading can go on at the offset of a passage, so that a
transcript that grew costs only what is new in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

from sevenfold.core.json import iterate_texts
from sevenfold.core.messages import Block, Text, ToolResult, ToolUse
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ConversationId,
    ForeignAgent,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
)
from sevenfold.store.foreign.transcripts import FOREIGN_READERS, ForeignLine, ForeignReader, scan_lines

PASSAGE_CHARS = 8_000
"""Two screens: enough for a question and its answer, and short enough for a snippet to say where it is."""
SAID_CHARS = 20_000
"""Of one message. People paste whole files; what a message is about stands at its beginning."""
RESULT_HEAD_CHARS, RESULT_TAIL_CHARS = 1_500, 500
"""Of a tool result: the error that people look for stands at the beginning or at the end."""
INPUT_CHARS = 1_000
"""Of one argument of a tool call: a command or a path is shorter, a file's content is in the repository."""
TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Where to go on reading a transcript."""

    offset: int = 0
    turns: Mapping[ConversationId, int] = field(default_factory=dict[ConversationId, int])
    """Turns of each conversation that began before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPassage:
    offset: int
    """Where its first line starts."""
    turn: int
    """From 1, in its conversation. Passages of one turn share the number."""
    conversation: ConversationId
    at: datetime | None
    prompt: str
    """What a person said; "" where the passage continues a turn."""
    answer: str
    tools: str
    """Arguments of tool calls, and the beginnings and ends of their results."""

    def hash_after(self, before: bytes) -> bytes:
        """A hash of its conversation up to its end, from that of the passage before: the same in a copy."""
        text = "\0".join((self.prompt, self.answer, self.tools))
        return blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


@dataclass(slots=True, kw_only=True)
class _OpenPassage:
    offset: int
    turn: int
    turns_before: Mapping[ConversationId, int]
    at: datetime | None
    prompt: list[str] = field(default_factory=list[str])
    answer: list[str] = field(default_factory=list[str])
    tools: list[str] = field(default_factory=list[str])
    chars: int = 0

    def add(self, part: list[str], text: str) -> None:
        if text:
            part.append(text)
            self.chars += len(text)

    def close(self, conversation: ConversationId) -> SessionPassage | None:
        if not self.chars:
            return None
        return SessionPassage(
            offset=self.offset,
            turn=self.turn,
            conversation=conversation,
            at=self.at,
            prompt="\n".join(self.prompt),
            answer="\n".join(self.answer),
            tools="\n".join(self.tools),
        )


class PassageReader:
    """Reads one transcript from a position to its end. `position` is then where the next reading starts."""

    def __init__(self, path: Path, agent: ForeignAgent, start: ReadPosition) -> None:
        self.session = self.project = ""
        """What the lines that were read say of their session."""
        self.title = ""
        """The beginning of the first message of a person in these lines."""
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self.position = start
        self._path, self._start = path, start
        self._agent: ForeignAgent = agent
        self._turns = dict(start.turns)
        self._open: dict[ConversationId, _OpenPassage] = {}

    def read(self, on_bytes: Callable[[int], None]) -> Iterator[SessionPassage]:
        """Every passage, the one that may still grow included."""
        reader = FOREIGN_READERS[self._agent]()
        end = self._start.offset
        for line in scan_lines(self._path, self._start.offset):
            on_bytes(line.length_bytes)
            if line.fault == "half-written":
                break
            end = line.offset + line.length_bytes
            for entry in self._read_line(reader, line):
                yield from self._take(entry, line.offset)
        self.position = self._next_position(end)
        yield from self._close_all()

    def _read_line(self, reader: ForeignReader, line: ForeignLine) -> Iterator[ForeignEntry]:
        for entry in reader.read(line.fields) if line.fault is None else ():
            yield entry
            if self._agent == "codex" and isinstance(entry, ForeignCompaction):
                # The rest of the line repeats what stays in the context: it was said before.
                return

    def _next_position(self, end: int) -> ReadPosition:
        first = min(self._open.values(), key=lambda item: item.offset, default=None)
        return ReadPosition(first.offset, first.turns_before) if first else ReadPosition(end, self._turns)

    def _take(self, entry: ForeignEntry, offset: int) -> Iterator[SessionPassage]:
        match entry:
            case ForeignSession():
                # A session of Codex that branched off repeats what its source says of itself. The folder in
                # which a session began is the one that resumes it.
                is_first = self._agent == "codex" and self.session
                self.session = self.session if is_first else entry.session or self.session
                self.project = self.project or entry.project
            case ForeignInput(source="human") | ForeignOutput():
                yield from self._take_message(entry, offset)
            case _:
                # What a program put in on its own was said by nobody.
                pass

    def _take_message(self, entry: ForeignInput | ForeignOutput, offset: int) -> Iterator[SessionPassage]:
        self.first_at, self.last_at = self.first_at or entry.at, entry.at or self.last_at
        prompt = _prompt_text(entry)
        turns_before = dict(self._turns)
        if prompt:
            self._turns[entry.conversation] = self._turns.get(entry.conversation, 0) + 1
            self.title = self.title or " ".join(prompt[:TITLE_CHARS].split())
        passage = self._open.get(entry.conversation)
        if passage and (prompt or passage.chars > PASSAGE_CHARS):
            yield from (
                self._close_all()
                if entry.conversation == MAIN_CONVERSATION
                else self._close(entry.conversation)
            )
            passage = None
        if passage is None:
            passage = _OpenPassage(
                offset=offset,
                turn=max(self._turns.get(entry.conversation, 0), 1),
                turns_before=turns_before,
                at=entry.at,
            )
            self._open[entry.conversation] = passage
        passage.add(passage.prompt, prompt)
        is_answer = isinstance(entry, ForeignOutput)
        for block in entry.blocks:
            if isinstance(block, Text):
                passage.add(passage.answer, block.text[:SAID_CHARS] if is_answer else "")
            else:
                passage.add(passage.tools, _tool_text(block))

    def _close_all(self) -> Iterator[SessionPassage]:
        for conversation in list(self._open):
            yield from self._close(conversation)

    def _close(self, conversation: ConversationId) -> Iterator[SessionPassage]:
        passage = self._open.pop(conversation).close(conversation)
        if passage:
            yield passage


def _prompt_text(entry: ForeignInput | ForeignOutput) -> str:
    if isinstance(entry, ForeignOutput) or entry.role != "user":
        return ""
    return "\n".join(block.text for block in entry.blocks if isinstance(block, Text))[:SAID_CHARS].strip()


def _tool_text(block: Block) -> str:
    match block:
        case ToolUse():
            return " ".join([block.name, *(text[:INPUT_CHARS] for text in iterate_texts(block.input))])
        case ToolResult():
            content = block.content or ""
            text = (
                content
                if isinstance(content, str)
                else "\n".join(item.text for item in content if isinstance(item, Text))
            )
            if len(text) <= RESULT_HEAD_CHARS + RESULT_TAIL_CHARS:
                return text
            return f"{text[:RESULT_HEAD_CHARS]}\n…\n{text[-RESULT_TAIL_CHARS:]}"
        case _:
            return ""
