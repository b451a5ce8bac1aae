"""Follows the history of the caller: our own append-only one, or any list of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sevenfold.core.messages import (
    Message,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
    is_same_message,
    without_message_thinking,
)
from sevenfold.core.requests import ENGINE_ENTRY, with_result_texts
from sevenfold.layers.conversation import Conversation, RecordedReply
from sevenfold.layers.microcompact.facts import is_cleared_marker
from sevenfold.layers.tool_results.spill import SpillLayer
from sevenfold.session.cache.breakpoints import RequestBuilder
from sevenfold.session.history import (
    CallerBreakpoint,
    History,
    MessageListTracker,
    SharedCount,
    SyncResult,
)

HISTORY_CHANGED_REASON = "the caller changed or dropped messages that were there before"


@dataclass(slots=True, kw_only=True)
class HistorySync:
    """One caller's history and how much of it has been taken."""

    conversation: Conversation
    spilling: SpillLayer
    requests: RequestBuilder
    _taken: int = 0
    _tracker: MessageListTracker = field(default_factory=MessageListTracker)
    _answers: list[RecordedReply] = field(default_factory=list[RecordedReply])
    """Replies that were recorded and that the caller's own list has not shown yet."""
    _is_resumed: bool = False
    _is_rewritten: bool = False
    """The caller changed something, and what follows it has not been taken again yet."""

    async def sync(self, history: History | Sequence[object]) -> None:
        """Take in what is new, or changed, since the last time."""
        if isinstance(history, History):
            self._settle(None)
            seen = len(history)
            await self.spilling.add(self.conversation, history[self._taken : seen])
            # Not before: a caller who is cancelled asks again, and must get all of it then.
            self._taken = seen
        else:
            await self._follow_list(history)

    def count_shared(self, messages: Sequence[object]) -> SharedCount:
        """How much of a list seems to be what was followed so far.

        Nothing where it goes another way before the end of what a summary stands for: another conversation
        may begin alike, and would be sent what this one said.
        """
        shared = self._tracker.count_shared(messages)
        is_other_way = shared.prefix == shared.total < len(self._tracker)
        return SharedCount(0, 0) if is_other_way and shared.total < self._summed_up else shared

    @property
    def _summed_up(self) -> int:
        """Messages up to the last one that stands in a summary alone; 0 without a compaction."""
        conversation = self.conversation
        if not conversation.boundaries and not self._is_resumed:
            return 0
        place_of = conversation.places.place_of
        shown = {place_of(item.entry) for item in conversation.shown if item.entry != ENGINE_ENTRY}
        return next(
            (at for at in range(place_of(len(conversation.entries)), 0, -1) if at - 1 not in shown), 0
        )

    @property
    def followed(self) -> int:
        """Messages of the caller's own list that were taken."""
        return len(self._tracker)

    def has_taken(self, history: History) -> None:
        """The conversation, which was resumed, has all of this already."""
        self._taken, self._is_resumed = len(history), True

    def answered(self, answer: RecordedReply, history: History | None) -> None:
        """A reply was recorded: the next message of the history, or of the caller's list in its own words."""
        if history is None:
            self._answers.append(answer)
        else:
            self.conversation.take_reply(answer, answer.entry.message)
            history.append(answer.entry.message)
            self._taken = len(history)

    async def _follow_list(self, messages: Sequence[object]) -> None:
        is_first = not self._tracker
        synced = self._tracker.sync(messages)
        self.requests.set_marks(tuple(self._known_marks(synced.marks)))
        if is_first and self._is_resumed:
            synced = self._joined(synced)
        added, taken = synced.added, synced.kept
        if self._settle(added[0] if added and not synced.dropped else None):
            added, taken = added[1:], taken + 1
        if synced.dropped:
            self.conversation.drop_from(synced.kept, HISTORY_CHANGED_REASON)
            self._is_rewritten = True
        if self._is_rewritten and not self.conversation.capabilities.rewrites_history:
            added = tuple(without_message_thinking(message) for message in added)
        try:
            await self.spilling.add(self.conversation, added)
        except BaseException:
            self._tracker.forget(taken)
            raise
        self._is_rewritten = False

    def _settle(self, written: Message | None) -> bool:
        """The recorded replies join the view, if the caller goes on with the last of them; whether so.

        Most callers write a reply down in a form of their own: text alone, other fields, no thinking.
        """
        answers, self._answers = self._answers, []
        for answer in answers[:-1]:
            self.conversation.take_reply(answer, None)
        if not answers:
            return False
        is_kept = written is not None and has_same_words(written, answers[-1].entry.message)
        self.conversation.take_reply(answers[-1], written if is_kept else None)
        return is_kept

    def _joined(self, synced: SyncResult) -> SyncResult:
        """Match a first list with a resumed session: messages that both have are not added twice."""
        entries, places, self._taken = self.conversation.entries, self.conversation.places, 0
        both = 0
        for at, entry in enumerate(entries):
            place = places.place_of(at)
            shown = self.spilling.rendered(synced.added[place]) if place < len(synced.added) else None
            if shown is not None:
                # A boundary wrote kept messages as they were shown then. What was cleared is not compared.
                shown = with_result_texts(shown, _cleared_texts(entry.message))
            if shown is None or not (
                is_same_message(entry.message, shown)
                or is_same_message(entry.message, without_message_thinking(shown))
            ):
                break
            both += 1
        kept, dropped = places.place_of(both), len(entries) - both
        if kept > len(synced.added):
            # The caller went back to before the boundary. Only the summary says what was there, so all that
            # is certainly new is the last turn.
            kept, dropped = _last_turn(synced.added), max(1, dropped)
        return SyncResult(kept, dropped, synced.added[kept:], synced.marks)

    def _known_marks(self, marks: Iterable[CallerBreakpoint]) -> Iterator[CallerBreakpoint]:
        """The caller's breakpoints at messages that were read when the session was resumed."""
        places = self.conversation.places
        for mark in marks:
            entry = places.entry_at(mark.message)
            if places.place_of(entry) == mark.message:
                yield replace(mark, message=entry)


def _cleared_texts(message: Message) -> dict[ToolUseId, str]:
    return {
        block.tool_use_id: block.content
        for block in message.blocks
        if isinstance(block, ToolResult)
        and isinstance(block.content, str)
        and is_cleared_marker(block.content)
    }


def _last_turn(messages: Sequence[Message]) -> int:
    """Where the last turn begins: with words of the user, not with a result alone."""
    begins = (
        at
        for at in reversed(range(len(messages)))
        if messages[at].role == "user" and not all(isinstance(b, ToolResult) for b in messages[at].blocks)
    )
    return next(begins, len(messages))


def has_same_words(one: Message, other: Message) -> bool:
    """Whether two messages hold the same words and calls, whatever else is with them."""
    return one == other or (one.role == other.role and _said(one) == _said(other))


def _said(message: Message) -> list[str]:
    texts = "".join(block.text for block in message.blocks if isinstance(block, Text))
    return [texts, *(block.id for block in message.blocks if isinstance(block, ToolUse))]
