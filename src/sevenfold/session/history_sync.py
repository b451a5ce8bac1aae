"""Follows the history of the caller: a `History`, which only grows, or any list of messages."""

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
from sevenfold.core.requests import with_result_texts
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.conversation_state import HistoryMessage, RecordedReply
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
    """The history of one caller, and how much of it has been taken in."""

    conversation: Conversation
    spilling: SpillLayer
    requests: RequestBuilder
    _taken: int = 0
    _tracker: MessageListTracker = field(default_factory=MessageListTracker)
    _answers: list[RecordedReply] = field(default_factory=list[RecordedReply])
    """Replies that were recorded and are not in the list of the caller yet."""
    _is_resumed: bool = False
    _is_open: bool = False
    """The first reply in `_answers` was recorded before the session was resumed. It is not known yet whether
    the caller continues with our `History`, which has the reply, or with a list of its own."""
    _is_rewritten: bool = False
    """The caller changed a message, and the messages after it have not been taken in again yet."""

    async def sync(self, history: History | Sequence[object]) -> None:
        """Take in what is new or changed since the last call."""
        if isinstance(history, History):
            self.keep_resumed()
            self._settle(None)
            seen = len(history)
            await self.spilling.add(self.conversation, history[self._taken : seen])
            # Only now: a caller that was cancelled calls again and must get all of it.
            self._taken = seen
        else:
            await self._follow_list(history)

    def count_shared(self, messages: Sequence[object]) -> SharedCount:
        """How much of a list agrees with the list that was followed so far.

        Nothing if a summary may cover messages that are not in the list: another conversation may begin with
        the same messages, and must not be sent a summary of this one.
        """
        summed_up = self.conversation.summed_up
        is_short = len(messages) < min(summed_up, len(self._tracker))
        if summed_up and (is_short or not self._tracker.is_edited(messages, summed_up)):
            return SharedCount(0, 0)
        return self._tracker.count_shared(messages)

    @property
    def followed(self) -> int:
        """How many messages of the list were taken in."""
        return len(self._tracker)

    @property
    def said(self) -> Sequence[HistoryMessage]:
        """All messages since the last boundary, including replies that are not in the view yet."""
        return (*self.conversation.entries, *(answer.entry for answer in self._answers))

    def resume(self, answer: RecordedReply | None) -> History:
        """Continue a resumed conversation. `answer` is the last reply, if no request has sent it back yet."""
        self._answers, self._is_open = [answer] if answer else [], answer is not None
        history = History([entry.message for entry in self.said])
        self.has_taken(history)
        return history

    def has_taken(self, history: History) -> None:
        """All of this is in the resumed conversation already."""
        self._taken, self._is_resumed = len(history), True

    def keep_resumed(self) -> None:
        """The reply that was open when the session was resumed belongs to the history that continues."""
        if self._is_open:
            answer, *self._answers = self._answers
            self._is_open = False
            self.conversation.take_reply(answer, answer.entry.message)

    def answered(self, answer: RecordedReply, history: History | None) -> None:
        """A reply was recorded: the next message of the history, or, reworded, of the list of the caller."""
        if history is None:
            self._answers.append(answer)
        else:
            self.keep_resumed()
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
        """Add recorded replies to the view, if the caller continues with the last of them; returns whether.

        Most callers keep a reply in a form of their own: text only, other fields, no thinking.
        """
        answers, self._answers, self._is_open = self._answers, [], False
        for answer in answers[:-1]:
            self.conversation.take_reply(answer, None)
        if not answers:
            return False
        is_kept = written is not None and has_same_words(written, answers[-1].entry.message)
        self.conversation.take_reply(answers[-1], written if is_kept else None)
        return is_kept

    def _joined(self, synced: SyncResult) -> SyncResult:
        """Match the first list after a resume with the session, so that no message is added twice."""
        entries, places, self._taken = self.conversation.entries, self.conversation.places, 0
        both = 0
        for at, entry in enumerate(entries):
            place = places.place_of(at)
            shown = self.spilling.rendered(synced.added[place]) if place < len(synced.added) else None
            if shown is not None:
                # A boundary wrote kept messages as they were shown. Cleared results are not compared.
                shown = with_result_texts(shown, _cleared_texts(entry.message))
            if shown is None or not (
                is_same_message(entry.message, shown)
                or is_same_message(entry.message, without_message_thinking(shown))
            ):
                break
            both += 1
        kept, dropped = places.place_of(both), len(entries) - both
        if kept > len(synced.added):
            # The caller went back to before the boundary, and only the summary covers what was there. So
            # only the last turn is certainly new.
            kept, dropped = _last_turn(synced.added), max(1, dropped)
        return SyncResult(kept, dropped, synced.added[kept:], synced.marks)

    def _known_marks(self, marks: Iterable[CallerBreakpoint]) -> Iterator[CallerBreakpoint]:
        """Breakpoints of the caller at messages that the resumed session has."""
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
    """Where the last turn begins: at a message with text of the user, not only results."""
    begins = (
        at
        for at in reversed(range(len(messages)))
        if messages[at].role == "user" and not all(isinstance(b, ToolResult) for b in messages[at].blocks)
    )
    return next(begins, len(messages))


def has_same_words(one: Message, other: Message) -> bool:
    """Whether two messages have the same text and the same calls."""
    return one == other or (one.role == other.role and _said(one) == _said(other))


def _said(message: Message) -> list[str]:
    texts = "".join(block.text for block in message.blocks if isinstance(block, Text))
    return [texts, *(block.id for block in message.blocks if isinstance(block, ToolUse))]
