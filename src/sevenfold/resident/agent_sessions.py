"""Sessions of other agents: what their conversations say, and what each has been shown.

A conversation is read from the agent's own transcript, a piece at a time as it grows. What a hook showed
(memories, rules) is kept in a file of the project's control folder, so that a restart of the resident process
shows nothing twice.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, SevenfoldError, WireError
from sevenfold.core.fields import NonNegative, read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.core.messages import Block, Message, Text, ToolResult, ToolUse
from sevenfold.layers.memory.extraction.drafts import ConversationSnapshot, RecordedMessage
from sevenfold.layers.memory.extraction.writer import ExtractionWriter
from sevenfold.resident.learning_model import LearningModel
from sevenfold.store.files.folder import Folder
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ForeignAgent,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
)
from sevenfold.store.foreign.transcripts import (
    FOREIGN_READERS,
    ForeignReader,
    TranscriptFile,
    detect_agent,
    hash_ends,
    scan_lines,
)

SESSIONS_FOLDER = "agents"
"""In the control folder of a project: a folder for each session of another agent."""

MAX_KEPT_PROMPTS = 20
MAX_PROMPT_CHARS = 4_000
"""Of what a person said last, for a transcript that is written late."""

MAX_TAIL_BYTES = 8 * 1024 * 1024
"""Of a long transcript, read at first: some hundred rounds. What is older was looked through before."""

_STATE_FILE = "state.json"
_MAX_STATE_BYTES = 256 * 1024
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", re.ASCII)
_T = TypeVar("_T")


@dataclass(slots=True, kw_only=True)
class ShownRule:
    """A rule that a session was shown."""

    digest: str
    """Of its text: a rule that changed is shown again."""
    tool_use: str
    """The call that was stopped, or that it came with."""
    at: timedelta
    """Of uptime."""
    times: NonNegative = 1
    is_pending: bool = True
    """The call that was stopped was not repeated yet."""
    is_acknowledged: bool = False


@dataclass(slots=True, kw_only=True)
class AgentSession:
    """What a session of another agent was shown since its last compaction, and what it said last."""

    session: str
    transcript: str = ""
    cwd: str = ""
    recalled: Mapping[str, int] = field(default_factory=dict[str, int])
    """Memories by key, and how many bytes of each."""
    rules: Mapping[str, ShownRule] = field(default_factory=dict[str, ShownRule])
    """By memory."""
    prompts: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    """Where foreign words in it came from: `web`, `mcp`."""
    has_index: bool = False
    late: str = ""
    """Context that was found too late for its own hook, for the next one."""

    def forget_view(self) -> None:
        """The agent has compacted or cleared its context: nothing of what was shown is there any more."""
        self.recalled, self.rules, self.has_index, self.late = {}, {}, False, ""

    def add_prompt(self, prompt: str) -> None:
        self.prompts = (*self.prompts[1 - MAX_KEPT_PROMPTS :], prompt[:MAX_PROMPT_CHARS])


def name_session_folder(session: str) -> str:
    """A folder name for an id that another program chose."""
    if _PLAIN_ID.fullmatch(session):
        return session
    return f"id-{hashlib.sha256(session.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def read_agent_session(folder: Folder, session: str) -> AgentSession:
    """What was written last; an empty one where there is nothing that can be read."""
    try:
        found = read_fields(AgentSession, read_object(folder.read(_STATE_FILE, max_bytes=_MAX_STATE_BYTES)))
    except (FileMissing, FileDamaged, NotRegular, WireError):
        return AgentSession(session=session)
    return found


def write_agent_session(folder: Folder, session: AgentSession) -> None:
    # Not synced: after a power cut a memory is shown once more, and that is all.
    folder.replace(_STATE_FILE, write_json(write_fields(session)), durable=False)


class RecentlyUsed(Generic[_T]):
    """A few things by key; the one that was not used for longest goes first. For any thread."""

    def __init__(self, limit: int, drop: Callable[[_T], None] | None = None) -> None:
        self._limit, self._drop = limit, drop
        self._items: OrderedDict[str, _T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str, make: Callable[[], _T]) -> _T:
        dropped: list[_T] = []
        with self._lock:
            if key not in self._items:
                self._items[key] = make()
            self._items.move_to_end(key)
            found = self._items[key]
            while len(self._items) > self._limit:
                dropped.append(self._items.popitem(last=False)[1])
        for item in dropped:
            if self._drop:
                self._drop(item)
        return found

    def values(self) -> list[_T]:
        """The last used one last."""
        with self._lock:
            return list(self._items.values())


class AgentConversation:
    """The main conversation of one transcript, as far as it was read. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.messages: list[RecordedMessage] = []
        self.cwd = ""
        """The folder that the session was started in."""
        self._view_start = 0
        self._agent: ForeignAgent | None = None
        self._reader: ForeignReader | None = None
        self._offset, self._ends, self._call = 0, b"", ""

    def move_to(self, path: Path) -> None:
        """Read another file from now on: some agents name their transcript late, or begin a new one."""
        if path != self.path:
            self.path = path
            self._forget()

    def update(self) -> None:
        """Read what was added. A transcript that was rewritten is read anew, and a missing one is empty."""
        try:
            size = os.stat(self.path).st_size
            if self._offset and (size < self._offset or hash_ends(self.path, self._offset) != self._ends):
                self._forget()
            if self._reader is None:
                self._agent = detect_agent(self.path)
                if self._agent is None:
                    return
                self._reader = FOREIGN_READERS[self._agent]()
                self._offset = _find_line(self.path, size - MAX_TAIL_BYTES)
            if size > self._offset:
                self._read(self._reader)
        except (OSError, SevenfoldError):
            return

    @property
    def snapshot(self) -> ConversationSnapshot:
        view = [one.message for one in self.messages[self._view_start :]]
        hidden = frozenset(one.id for one in self.messages[: self._view_start])
        return ConversationSnapshot(tuple(self.messages), tuple(view), hidden)

    def has_result(self, tool_use: str) -> bool:
        """Whether the model has been answered to this call."""
        return any(
            isinstance(block, ToolResult) and block.tool_use_id == tool_use
            for one in reversed(self.messages)
            for block in one.message.blocks
        )

    def find_words(self, tool_use: str) -> str:
        """What the model said beside this call; the last thing it said where the call is not written yet."""
        said = [one.message for one in self.messages if one.message.role == "assistant"]
        with_call = (
            message
            for message in reversed(said)
            if any(isinstance(block, ToolUse) and block.id == tool_use for block in message.blocks)
        )
        found = next(with_call, said[-1] if said else None)
        blocks: Iterable[Block] = found.blocks if found else ()
        return "\n".join(block.text for block in blocks if isinstance(block, Text))

    def _forget(self) -> None:
        self.messages, self._view_start = [], 0
        self._reader, self._offset, self._call = None, 0, ""

    def _read(self, reader: ForeignReader) -> None:
        end = self._offset
        for line in scan_lines(self.path, self._offset):
            if line.fault == "half-written":
                break
            end = line.offset + line.length_bytes
            for number, entry in enumerate(reader.read(line.fields) if line.fault is None else ()):
                self._add(entry, f"{line.offset}.{number}")
        self._offset, self._ends = end, hash_ends(self.path, end)

    def _add(self, entry: ForeignEntry, id_: str) -> None:
        match entry:
            case ForeignInput() if entry.conversation == MAIN_CONVERSATION and entry.blocks:
                # What the program put there, hooks of ours included, is nobody's own word.
                role = entry.role if entry.source == "human" or entry.role == "assistant" else "system"
                self.messages.append(RecordedMessage(id_, Message(role, entry.blocks)))
                self._call = ""
            case ForeignOutput() if entry.conversation == MAIN_CONVERSATION and entry.blocks:
                self._add_output(entry, id_)
            case ForeignSession() if entry.project and not self.cwd:
                self.cwd = entry.project
            case ForeignCompaction() if entry.conversation == MAIN_CONVERSATION:
                self._view_start, self._call = len(self.messages), ""
            case _:
                pass

    def _add_output(self, entry: ForeignOutput, id_: str) -> None:
        """Some agents write an answer as one line for each block."""
        last = self.messages[-1] if self.messages else None
        if last is not None and entry.call and entry.call == self._call:
            blocks = (*last.message.blocks, *entry.blocks)
            self.messages[-1] = RecordedMessage(last.id, Message("assistant", blocks))
        else:
            self.messages.append(RecordedMessage(id_, Message("assistant", entry.blocks)))
        self._call = entry.call


MAX_LOOKED_AT = 8
"""Transcripts, to find those of one project."""


def read_recent_messages(files: Sequence[TranscriptFile], root: str, oldest: datetime) -> list[Message]:
    """What was said in the newest transcripts of sessions in this folder or below it."""
    messages: list[Message] = []
    recent = [one for one in files if one.modified_ns >= oldest.timestamp() * 1e9]
    for file in recent[:MAX_LOOKED_AT]:
        conversation = AgentConversation(file.path)
        conversation.update()
        if conversation.cwd == root or conversation.cwd.startswith(f"{root}/"):
            messages += conversation.snapshot.view
    return messages


def _find_line(path: Path, start: int) -> int:
    """Where the first whole line from `start` on begins."""
    if start <= 0:
        return 0
    with path.open("rb") as file:
        file.seek(start)
        file.readline()
        return file.tell()


@dataclass(slots=True)
class SessionWriter:
    """The extraction of one session, with its folder open."""

    writer: ExtractionWriter
    folder: Folder
    model: LearningModel | None = None
    """None: learning works by rules."""

    def close(self) -> None:
        self.folder.close()
