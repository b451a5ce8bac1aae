"""The history in a shape that the provider accepts: repairs what it would refuse, and reports each repair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sevenfold.core.events import Emit, HistoryRepaired
from sevenfold.core.flatten import INSERTED, Flattened, Flattener, FlattenRules
from sevenfold.core.messages import Message
from sevenfold.request.view import OWN


@dataclass(frozen=True, slots=True)
class Shaped:
    """A message as it goes into the view."""

    message: Message
    entry: int
    """Which message of the history it shows; `OWN` for the engine's."""
    source: int
    """Which of the messages handed in, from the last start; `INSERTED` where it was none."""


class Shaping:
    """Shapes one view as it grows."""

    def __init__(self, rules: FlattenRules, emit: Emit) -> None:
        self.rules, self._emit = rules, emit
        self._flattener = Flattener(rules)
        self._entries: list[int] = []

    @property
    def last(self) -> int:
        """The source of the message that was handed in last."""
        return len(self._entries) - 1

    def add(self, message: Message, entry: int) -> list[Shaped]:
        """The next message; what it becomes, and what has to stand before it."""
        self._entries.append(entry)
        return list(self._told(self._flattener.add((message,))))

    def finish(self) -> list[Shaped]:
        """What has to follow for a request to be sent now."""
        return list(self._told(self._flattener.finish()))

    def start_over(self, messages: Sequence[Message], entries: Sequence[int]) -> list[Shaped]:
        """Another view, from its beginning."""
        self._flattener, self._entries = Flattener(self.rules), list(entries)
        return list(self._told(self._flattener.add(messages)))

    def _told(self, flat: Flattened) -> Iterator[Shaped]:
        for repair in flat.repairs:
            self._emit(HistoryRepaired(repair.message, repair.kind, repair.detail))
        for message, source in zip(flat.messages, flat.sources, strict=True):
            yield Shaped(message, OWN if source == INSERTED else self._entries[source], source)
