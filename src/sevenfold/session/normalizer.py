"""The history in a shape that the provider accepts: repairs what it would refuse, and reports each repair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sevenfold.core.events import Emit, HistoryRepaired
from sevenfold.core.messages import Message
from sevenfold.core.normalize import NO_SOURCE, MessageNormalizer, NormalizedMessages, NormalizeRules
from sevenfold.core.view import ENGINE_ENTRY


@dataclass(frozen=True, slots=True)
class NormalizedMessage:
    """A message as it goes into the view."""

    message: Message
    entry: int
    """Which message of the history it shows; `OWN` for the engine's."""
    source: int
    """Which of the messages handed in, from the last start; `INSERTED` where it was none."""


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
        """The next message; what it becomes, and what has to stand before it."""
        self._entries.append(entry)
        return list(self._told(self._flattener.add((message,))))

    def finish(self) -> list[NormalizedMessage]:
        """What has to follow for a request to be sent now."""
        return list(self._told(self._flattener.finish()))

    def start_over(self, messages: Sequence[Message], entries: Sequence[int]) -> list[NormalizedMessage]:
        """Another view, from its beginning."""
        self._flattener, self._entries = MessageNormalizer(self.rules), list(entries)
        return list(self._told(self._flattener.add(messages)))

    def _told(self, flat: NormalizedMessages) -> Iterator[NormalizedMessage]:
        for repair in flat.repairs:
            self._emit(HistoryRepaired(repair.message, repair.kind, repair.detail))
        for message, source in zip(flat.messages, flat.sources, strict=True):
            yield NormalizedMessage(
                message, ENGINE_ENTRY if source == NO_SOURCE else self._entries[source], source
            )
