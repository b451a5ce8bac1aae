"""A history as messages that the API accepts: what it would refuse is repaired, visibly, and nothing that was
shown once is changed later.

Messages are added as they come, in any portions, with the same result. A tool request at the end is no orphan
yet, and a system message may still turn out to stand where it may; `finish` decides about both, just before a
request is sent. What it adds was then said, and belongs into the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from sevenfold.core.events import Emit, HistoryRepaired
from sevenfold.core.messages import (
    Block,
    Compaction,
    Message,
    Role,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.normalize_blocks import (
    SERVER_TOOL_RESULTS,
    FlawKind,
    block_type,
    repair_message,
    unwrap_result,
)
from sevenfold.core.requests import ENGINE_ENTRY

NO_SOURCE = -1
"""The source of a message that stands in no history."""

LOST_RESULT = "[No result: the tool call was interrupted, or its result was lost.]"
NO_OPENING = "[The beginning of the conversation is not available.]"
NO_REPLY = "[No reply: it was interrupted.]"
CONTINUE_TEXT = "[Continue.]"

RepairKind: TypeAlias = (
    FlawKind
    | Literal[
        "opening", "ending", "no reply", "lost result", "stray result", "result order", "same id", "system"
    ]
)


@dataclass(frozen=True, slots=True)
class Repair:
    message: int
    """Of the history, from 0; for something inserted, the message that it was inserted before."""
    kind: RepairKind
    detail: str


@dataclass(frozen=True, slots=True)
class NormalizedMessages:
    messages: tuple[Message, ...]
    """To append to what was shown before. A message that was in order is the same object."""
    sources: tuple[int, ...]
    """For each, which message of the history it shows, or `NO_SOURCE`."""
    repairs: tuple[Repair, ...]


@dataclass(frozen=True, slots=True)
class NormalizeRules:
    """What the model takes."""

    takes_system_role: bool = False
    takes_prefill: bool = False
    """A conversation may end with the assistant's words."""


@dataclass(slots=True)
class _Out:
    """What one call makes."""

    messages: list[Message] = field(default_factory=list[Message])
    sources: list[int] = field(default_factory=list[int])
    repairs: list[Repair] = field(default_factory=list[Repair])

    def done(self) -> NormalizedMessages:
        return NormalizedMessages(tuple(self.messages), tuple(self.sources), tuple(self.repairs))


@dataclass(frozen=True, slots=True)
class _PendingMessage:
    """A system message of which it is not known yet whether it may stand where it stands."""

    index: int
    message: Message


class MessageNormalizer:
    """Flattens one history, in time that grows with what is added."""

    def __init__(self, rules: NormalizeRules | None = None) -> None:
        self._rules = rules or NormalizeRules()
        self._count = 0
        self._last: Message | None = None
        """The last message that was shown."""
        self._turn: Role | None = None
        """Whose turn it is, system messages apart."""
        self._has_user_text = False
        """The user's turn has more than results by now, so that no result may follow."""
        self._open: dict[ToolUseId, ToolUseId] = {}
        """Requests of the assistant's last turn that have no result yet: the id they were shown with, and the
        one in the history."""
        self._seen: set[ToolUseId] = set()
        self._pending: list[_PendingMessage] = []
        self._out = _Out()

    def add(self, messages: Iterable[Message]) -> NormalizedMessages:
        """More of the history."""
        self._out = _Out()
        for message in messages:
            self._add(message)
        return self._out.done()

    def add_before_system(self, message: Message) -> NormalizedMessages:
        """A message of the user's side that is no part of the history. System messages that came last stay
        last: they may stand after it, and not before it."""
        self._out, pending = _Out(), self._pending
        self._pending = []
        self._add(message)
        self._pending = pending
        return self._out.done()

    def _add(self, message: Message) -> None:
        mended = repair_message(message)
        for item in mended.flaws:
            self._repair(item.flaw, item.detail)
        if not mended.is_empty:
            self._take(mended.message)
        self._count += 1

    def finish(self) -> NormalizedMessages:
        """What is still missing for a request to be sent now. Again adds nothing."""
        self._out = _Out()
        self._release_before_assistant()
        self._answer_open()
        if self._turn is None and self._count:
            self._insert(Message("user", NO_OPENING), "opening", "no message was left to send")
        if self._needs_user():
            self._insert(Message("user", CONTINUE_TEXT), "ending", "the conversation ends with the assistant")
        return self._out.done()

    def _take(self, message: Message) -> None:
        match message.role:
            case "user":
                self._take_user(message)
            case "assistant":
                self._take_assistant(message)
            case "system":
                self._pending.append(_PendingMessage(self._count, message))

    def _take_user(self, message: Message) -> None:
        if self._last is not None and self._last.role == "system":
            self._insert(
                Message("assistant", (Text(NO_REPLY),)), "no reply", "a user speaks after the system"
            )
        message = self._with_results_first(message)
        is_told = any(not isinstance(block, ToolResult) for block in message.blocks)
        answered = _answered(message)
        if is_told:
            self._answer_open(but=answered)
        if not answered:
            self._release_as_text()
        self._show(message, self._count)
        self._open = {own: original for own, original in self._open.items() if own not in answered}
        if answered and not self._open:
            self._release_as_text()

    def _with_results_first(self, message: Message) -> Message:
        """The message with its results in front, each under the id that its request was shown with, and those
        that answer nothing as text."""
        results: list[Block] = []
        rest: list[Block] = []
        waiting = {} if self._has_user_text else dict(self._open)
        is_changed = False
        for block in message.blocks:
            if not isinstance(block, ToolResult):
                rest.append(block)
                continue
            own = next((own for own, original in waiting.items() if original == block.tool_use_id), None)
            if own is None:
                self._repair("stray result", f"no open tool call has the id {block.tool_use_id}")
                rest += unwrap_result(block, f"Result of a tool call that is not open, {block.tool_use_id}")
                is_changed = True
                continue
            del waiting[own]
            if rest and not is_changed:
                self._repair("result order", "a tool result after something else")
            is_changed = is_changed or bool(rest) or own != block.tool_use_id
            results.append(block if own == block.tool_use_id else replace(block, tool_use_id=own))
        return replace(message, content=(*results, *rest)) if is_changed else message

    def _take_assistant(self, message: Message) -> None:
        self._release_before_assistant()
        if self._turn == "user":
            self._answer_open()
        if self._turn is None and not _opens(message):
            self._insert(Message("user", NO_OPENING), "opening", "the conversation begins with the assistant")
        message = self._with_own_ids(message)
        self._show(message, self._count)

    def _with_own_ids(self, message: Message) -> Message:
        """The message with no id that was used before; its requests are open from now on."""
        if not any(isinstance(block, ToolUse) for block in message.blocks):
            return message
        blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ToolUse):
                own = self._unused(block.id)
                if own != block.id:
                    self._repair("same id", f"{block.id} was used before; it is sent as {own}")
                self._seen.add(own)
                self._open[own] = block.id
                blocks.append(block if own == block.id else replace(block, id=own))
            else:
                blocks.append(block)
        is_same = all(one is other for one, other in zip(blocks, message.blocks, strict=True))
        return message if is_same else replace(message, content=tuple(blocks))

    def _unused(self, wanted: ToolUseId) -> ToolUseId:
        own, number = wanted, 2
        while own in self._seen:
            own, number = ToolUseId(f"{wanted}_{number}"), number + 1
        return own

    def _answer_open(self, but: Set[ToolUseId] = frozenset()) -> None:
        """Give every request that is still open, but for these, the result that it never had."""
        missing = [own for own in self._open if own not in but]
        if missing:
            results = tuple(ToolResult(own, LOST_RESULT, is_error=True) for own in missing)
            self._insert(Message("user", results), "lost result", ", ".join(missing))
        self._open = {own: original for own, original in self._open.items() if own in but}

    def _release_before_assistant(self) -> None:
        """System messages that the assistant, or nobody, answers: they may stand after a user's turn."""
        if not self._pending:
            return
        self._answer_open()
        if not (self._rules.takes_system_role and self._follows_user()):
            self._release_as_text()
            return
        for item in self._pending:
            self._show(item.message, item.index)
        self._pending = []

    def _release_as_text(self) -> None:
        pending, self._pending = self._pending, []
        for item in pending:
            texts = tuple(block for block in item.message.blocks if isinstance(block, Text))
            self._repair("system", "a system message where it may not stand", item.index)
            if texts:
                self._show(Message("user", texts), item.index)

    def _follows_user(self) -> bool:
        if self._last is None:
            return False
        if self._turn == "user" or self._last.role == "system":
            return True
        return block_type(self._last.blocks[-1]) in SERVER_TOOL_RESULTS

    def _needs_user(self) -> bool:
        if self._turn != "assistant" or self._last is None or self._last.role == "system":
            return False
        end = self._last.blocks[-1]
        if isinstance(end, Compaction) or block_type(end) in SERVER_TOOL_RESULTS:
            return False
        return not self._rules.takes_prefill or not isinstance(end, Text) or end.text != end.text.rstrip()

    def _insert(self, message: Message, kind: RepairKind, detail: str) -> None:
        self._repair(kind, detail)
        self._show(message, NO_SOURCE)

    def _show(self, message: Message, source: int) -> None:
        self._out.messages.append(message)
        self._out.sources.append(source)
        self._last = message
        if message.role == "system":
            return
        has_more = any(not isinstance(block, ToolResult) for block in message.blocks)
        self._has_user_text = message.role == "user" and (
            has_more or (self._turn == "user" and self._has_user_text)
        )
        self._turn = message.role

    def _repair(self, kind: RepairKind, detail: str, message: int | None = None) -> None:
        self._out.repairs.append(Repair(self._count if message is None else message, kind, detail))


def _answered(message: Message) -> set[ToolUseId]:
    return {block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)}


def _opens(message: Message) -> bool:
    """Whether a conversation may begin with it: only the assistant's summary of an earlier one may."""
    return isinstance(message.blocks[0], Compaction)


# A view that grows message by message, and the event of each repair.


@dataclass(frozen=True, slots=True)
class NormalizedMessage:
    """A message as it goes into the view."""

    message: Message
    entry: int
    """Which message of the history it shows; `ENGINE_ENTRY` for one of our own."""
    source: int
    """Which of the messages handed in, from the last start; `NO_SOURCE` if it was none of them."""


class ViewNormalizer:
    """Shapes one view as it grows."""

    def __init__(self, rules: NormalizeRules, emit: Emit) -> None:
        self.rules, self._emit = rules, emit
        self._flattener = MessageNormalizer(rules)
        self._entries: list[int] = []

    @property
    def last(self) -> int:
        """The source of the message that was handed in last."""
        return len(self._entries) - 1

    def add(self, message: Message, entry: int) -> list[NormalizedMessage]:
        """The next message; what it becomes, and what has to stand before it.

        One of our own for the user's side goes before system messages that are not in the view yet.
        """
        self._entries.append(entry)
        if entry == ENGINE_ENTRY and message.role == "user":
            return list(self._reported(self._flattener.add_before_system(message)))
        return list(self._reported(self._flattener.add((message,))))

    def finish(self) -> list[NormalizedMessage]:
        """What has to follow for a request to be sent now."""
        return list(self._reported(self._flattener.finish()))

    def start_over(self, messages: Sequence[Message], entries: Sequence[int]) -> list[NormalizedMessage]:
        """Another view, from its beginning."""
        self._flattener, self._entries = MessageNormalizer(self.rules), list(entries)
        return list(self._reported(self._flattener.add(messages)))

    def _reported(self, flat: NormalizedMessages) -> Iterator[NormalizedMessage]:
        for repair in flat.repairs:
            self._emit(HistoryRepaired(repair.message, repair.kind, repair.detail))
        for message, source in zip(flat.messages, flat.sources, strict=True):
            yield NormalizedMessage(
                message, ENGINE_ENTRY if source == NO_SOURCE else self._entries[source], source
            )
