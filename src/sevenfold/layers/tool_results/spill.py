"""Spills: whole tool results on disk, so that a preview can replace them.

`SpillLayer` runs layer 1: it decides once for each result. `SpillStore` writes the file, which is durable
before the preview exists, so no prompt can point at a result that is not there. A result that cannot be
stored stays in the context whole, and an event says so. `read_stored_result` reads a spill a part
at a time, for other agents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.core.canonical import Digest, digest
from sevenfold.core.errors import (
    AccessDenied,
    DiskFull,
    FileDamaged,
    FileExists,
    FileMissing,
    InputError,
    KeyRefused,
    NotRegular,
    SevenfoldError,
)
from sevenfold.core.events import Emit, ResultSpilled, SpillFailed, ignore_event
from sevenfold.core.json import freeze, write_json
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId, write_block
from sevenfold.core.spills import SpillDecision
from sevenfold.core.system import run_blocking
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.tool_results.policy import (
    FreshResult,
    ToolResultSettings,
    apply_spill_decision,
    choose_inline,
    choose_spilled,
    count_result_chars,
    render_preview,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import DecisionRecord

SPILL_FOLDER = "tool-results"
MAX_SPILL_BYTES = 256 * 1024 * 1024
"""Beyond what a tool returns by accident; a larger result has to be cut by the tool itself."""

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Content:
    """A result in the form it is stored in, and the text that its preview is cut from."""

    text: str
    data: bytes
    suffix: str


class SpillStore:
    """The spills of one session, in its folder."""

    def __init__(self, session: Folder, settings: ToolResultSettings, *, emit: Emit = ignore_event) -> None:
        self._folder = session.subfolder(SPILL_FOLDER)
        self._settings = settings
        self._emit = emit
        self._sizes: dict[str, int] = {}

    def close(self) -> None:
        self._folder.close()

    def store(self, result: ToolResult) -> SpillDecision:
        """Store the result and decide for its preview; where storing fails, decide to leave it alone."""
        size = 0
        try:
            content = _stored_form(result)
            size = len(content.data)
            name = self._write(result.tool_use_id, content)
        except SevenfoldError as error:
            self._emit(SpillFailed(result.tool_use_id, size, str(error)))
            return SpillDecision(tool_use_id=result.tool_use_id)
        path = f"{self._folder.path}/{name}"
        self._emit(ResultSpilled(result.tool_use_id, path, size))
        preview = render_preview(content.text, path, size, self._settings)
        return SpillDecision(
            tool_use_id=result.tool_use_id,
            preview=preview,
            spill=f"{SPILL_FOLDER}/{name}",
            digest=digest(content.data),
            size_bytes=size,
        )

    def path_of(self, decision: SpillDecision) -> str | None:
        """Where its file is; None where the result was left in the context."""
        return None if decision.spill is None else f"{self._folder.path}/{_name_of(decision)}"

    def read(self, decision: SpillDecision) -> bytes:
        """The whole result again, checked against what was stored."""
        name = _name_of(decision)
        data = self._folder.read(name, max_bytes=MAX_SPILL_BYTES)
        if digest(data) != decision.digest:
            raise FileDamaged(
                f"{self._folder.path}/{name} is no longer what was stored for {decision.tool_use_id}; "
                "run the tool again"
            )
        return data

    def _write(self, use: ToolUseId, content: _Content) -> str:
        size = len(content.data)
        if size > MAX_SPILL_BYTES:
            raise DiskFull(f"a result of {size:,} bytes is over the limit of {MAX_SPILL_BYTES:,}")
        for name in _candidates(use, content):
            if self._has_same(name, content.data):
                return name
            used_bytes = self._count_bytes()
            if used_bytes + size > self._settings.session_quota_bytes:
                raise DiskFull(
                    f"{size:,} bytes on top of {used_bytes:,} are over the session's quota of "
                    f"{self._settings.session_quota_bytes:,}; raise tool_results.session_quota_bytes"
                )
            try:
                self._folder.create(name, content.data)
            except (FileExists, KeyRefused):
                continue
            return name
        raise FileExists(f"other results are stored under every name for {use!r}")

    def _has_same(self, name: str, data: bytes) -> bool:
        """Whether an earlier try, or a retry of the same request, has stored exactly this."""
        try:
            entry = self._folder.stat(name)
            if entry is None or entry.size_bytes != len(data):
                return False
            if self._folder.read(name, max_bytes=len(data)) != data:
                return False
        except (FileMissing, KeyRefused, NotRegular):
            return False
        self._folder.sync_name(name)
        return True

    def _count_bytes(self) -> int:
        """What all spills take, those of the session's other processes too. A stored file never changes."""
        names = self._folder.names()
        self._sizes = {name: self._sizes[name] if name in self._sizes else self._size(name) for name in names}
        return sum(self._sizes.values())

    def _size(self, name: str) -> int:
        try:
            entry = self._folder.stat(name)
        except (NotRegular, AccessDenied):
            return 0  # not one of ours
        return entry.size_bytes if entry else 0


def spill_digest(result: ToolResult) -> Digest:
    """The digest that storing this result would give its decision."""
    return digest(_stored_form(result).data)


def _candidates(use: ToolUseId, content: _Content) -> tuple[str, ...]:
    """Names to try: the id itself, then one that no other id or content can have."""
    unique = f"id-{digest(use.encode('utf-8', 'surrogatepass') + b'/' + content.data)[:32]}{content.suffix}"
    return (f"{use}{content.suffix}", unique) if _PLAIN_ID.fullmatch(use) else (unique,)


def _stored_form(result: ToolResult) -> _Content:
    content = result.content
    if isinstance(content, tuple):
        text = "\n".join(item.text for item in content if isinstance(item, Text))
        return _Content(text, write_json(freeze([write_block(item) for item in content])), ".json")
    text = content or ""
    # A lone surrogate has no UTF-8; its escape keeps the rest of the result readable.
    return _Content(text, text.encode("utf-8", "backslashreplace"), ".txt")


def _name_of(decision: SpillDecision) -> str:
    if decision.spill is None:
        raise FileMissing(f"the result of {decision.tool_use_id} was left in the context, not stored")
    return decision.spill.removeprefix(f"{SPILL_FOLDER}/")


NO_DISK_REASON = "the session has no folder on disk; open it with a project to have large results stored"


@dataclass(slots=True, kw_only=True)
class SpillLayer:
    """The decisions of a session, each made once."""

    settings: ToolResultSettings
    spills: SpillStore | None
    emit: Emit
    decisions: dict[ToolUseId, SpillDecision] = field(default_factory=dict[ToolUseId, SpillDecision])
    _unreported: list[SpillDecision] = field(default_factory=list[SpillDecision])
    """Decisions whose caller was cancelled before it received them."""

    async def add(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Store the large results of new messages, and add the messages to the history with previews."""
        for message in messages:
            conversation.note_tools(message)
        decisions = await self.decide(messages, conversation.tools)
        for message in messages:
            conversation.add(self.rendered(message))
        for decision in decisions:
            conversation.journal.add(DecisionRecord(decision))

    def restore(self, decision: SpillDecision) -> None:
        """A decision that was made before the session was resumed."""
        self.decisions[decision.tool_use_id] = decision

    def store_whole(self, result: ToolResult) -> str | None:
        """Where the whole result is stored, from now on if not before; None where it is not. Blocks."""
        if self.spills is None:
            return None
        decision = self.decisions.get(result.tool_use_id)
        if decision is None or decision.spill is None:
            decision = self.spills.store(result)
        return self.spills.path_of(decision)

    async def decide(
        self, messages: Iterable[Message], tools: Mapping[ToolUseId, ToolUse]
    ) -> tuple[SpillDecision, ...]:
        """Decide for every result in these messages that has no decision yet; the new ones, in order."""
        for message in messages:
            fresh = [
                FreshResult(result, tools[result.tool_use_id].name if result.tool_use_id in tools else "")
                for result in iter_tool_results(message)
                if not self._is_decided(result)
            ]
            if fresh:
                await self._decide_round(fresh)
        made, self._unreported = tuple(self._unreported), []
        return made

    def list_decisions(self, messages: Iterable[Message]) -> list[SpillDecision]:
        """What was decided of the results in these messages."""
        results = (result for message in messages for result in iter_tool_results(message))
        found = (self.decisions.get(result.tool_use_id) for result in results)
        return [decision for decision in found if decision is not None]

    def rendered(self, message: Message) -> Message:
        """The message as its results' decisions have it."""
        if isinstance(message.content, str) or not any(
            isinstance(block, ToolResult) for block in message.content
        ):
            return message
        blocks = tuple(
            self._applied(block) if isinstance(block, ToolResult) else block for block in message.content
        )
        if all(one is other for one, other in zip(blocks, message.content, strict=True)):
            return message
        return Message(message.role, blocks, message.extra)

    async def _decide_round(self, fresh: Sequence[FreshResult]) -> None:
        spilled = choose_spilled(fresh, self.settings)
        if spilled:
            await run_blocking(lambda: self._keep(fresh, spilled))
        else:
            self._keep(fresh, spilled)

    def _keep(self, fresh: Sequence[FreshResult], spilled: frozenset[ToolUseId]) -> None:
        """Each as soon as it is made: whoever asked may be gone when all are."""
        for item in fresh:
            decision = self._decision(item.result, spilled)
            self.decisions[decision.tool_use_id] = decision
            self._unreported.append(decision)

    def _decision(self, result: ToolResult, spilled: frozenset[ToolUseId]) -> SpillDecision:
        if result.tool_use_id not in spilled:
            return choose_inline(result)
        if self.spills is None:
            self.emit(SpillFailed(result.tool_use_id, count_result_chars(result), NO_DISK_REASON))
            return choose_inline(result)
        return self.spills.store(result)

    def _is_decided(self, result: ToolResult) -> bool:
        """A caller may hand in other content under an old id: that is another result."""
        decision = self.decisions.get(result.tool_use_id)
        if decision is None or decision.spill is None or result.content == decision.preview:
            return decision is not None
        return spill_digest(result) == decision.digest

    def _applied(self, result: ToolResult) -> ToolResult:
        decision = self.decisions.get(result.tool_use_id)
        return result if decision is None else apply_spill_decision(result, decision)


def iter_tool_results(message: Message) -> Iterator[ToolResult]:
    if isinstance(message.content, str):
        return
    for block in message.content:
        if isinstance(block, ToolResult):
            yield block


MAX_RESULT_BYTES = 48 * 1024
"""Of a stored tool result at once: about 12,000 tokens."""

_RESULT_NAME = re.compile(r"[\w.-]{1,160}", re.ASCII)


def read_stored_result(path: Path, offset: int, limit: int) -> dict[str, object]:
    """A part of a result as text, and where the next one begins."""
    with path.open("rb") as file:
        total = os.fstat(file.fileno()).st_size
        file.seek(offset)
        data = file.read(limit)
    is_end = offset + len(data) >= total
    text = _decode_part(data, is_end=is_end)
    end = offset + (len(data) if is_end else len(text.encode()))
    return {
        "path": str(path),
        "text": text,
        "offset": offset,
        "next_offset": end if end < total else None,
        "total_bytes": total,
    }


def find_stored_result(sessions: Path, path: str, name: str) -> Path:
    """A stored result by its path or by the id of its call. Only what lies among a session's results."""
    root = os.path.realpath(sessions)
    if path:
        real = Path(os.path.realpath(path))
        is_stored = real.parent.name == SPILL_FOLDER and str(real.parent.parent.parent) == root
        if is_stored and real.is_file():
            return real
        raise FileMissing(f"{path!r:.300} is no stored tool result of this project")
    if not _RESULT_NAME.fullmatch(name):
        raise InputError("name a stored tool result by path or id")
    found = [
        file
        for end in ("", ".txt", ".json")
        for file in Path(root).glob(f"*/{SPILL_FOLDER}/{name}{end}")
        if file.is_file()
    ]
    if not found:
        raise FileMissing(f"no stored tool result of this project has the id {name!r}")
    return max(found, key=lambda file: file.stat().st_mtime_ns)


def _decode_part(data: bytes, *, is_end: bool) -> str:
    """A part of a text, without the beginning of a character that its end has cut in two."""
    for cut in range(0 if is_end else 4):
        try:
            return data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace")
