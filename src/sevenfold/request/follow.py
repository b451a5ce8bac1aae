"""Keeping in step with the caller's history: our own append-only one, or any list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sevenfold.core.messages import Message
from sevenfold.core.requests import Reply
from sevenfold.request.adapting import without_thought
from sevenfold.request.history import History
from sevenfold.request.mirror import Mirror
from sevenfold.request.pipeline import RequestPath

CHANGED = "the caller changed or dropped messages that were there before"


@dataclass(slots=True)
class Follower:
    """One caller's history and how much of it has been taken."""

    path: RequestPath
    _taken: int = 0
    _mirror: Mirror = field(default_factory=Mirror)
    _answers: list[Message] = field(default_factory=list[Message])
    """Replies that were recorded and that the caller's own list has not shown yet."""

    async def follow(self, history: History | Sequence[object]) -> None:
        """Take in what is new, or changed, since the last time."""
        if isinstance(history, History):
            news = history[self._taken :]
            self._taken = len(history)
            await self.path.add(news)
        else:
            await self._follow_list(history)

    def count_shared(self, messages: Sequence[object]) -> int:
        """How much of a list seems to be what was followed so far."""
        return self._mirror.count_shared(messages)

    @property
    def followed(self) -> int:
        """Messages of the caller's own list that were taken."""
        return len(self._mirror)

    def has_taken(self, history: History) -> None:
        """The path was filled with all of this already."""
        self._taken = len(history)

    def answered(self, reply: Reply, history: History | None) -> None:
        """A reply was recorded: it is the next message of the history."""
        if history is None:
            self._answers.append(reply.message)
        else:
            history.append(reply.message)
            self._taken = len(history)

    async def _follow_list(self, messages: Sequence[object]) -> None:
        synced = self._mirror.sync(messages)
        self.path.set_marks(synced.marks)
        answers, self._answers = self._answers, []
        added = synced.added
        if len(answers) == 1 and not synced.dropped and added[:1] == (answers[0],):
            added = added[1:]
        else:
            # Written down otherwise, or not at all. They were never sent: taking them back breaks nothing.
            self.path.forget_answers(len(answers))
        if synced.dropped:
            self.path.take_back(synced.kept, CHANGED)
            if not self.path.capabilities.rewrites_history:
                added = tuple(without_thought(message) for message in added)
        await self.path.add(added)
