"""The history of a session: everything that happened, in order, never shortened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

from sevenfold.core.errors import InputError
from sevenfold.core.messages import Message
from sevenfold.core.tokens import TextOrigin
from sevenfold.core.usage import Usage
from sevenfold.store.transcript.records import RecordId, new_record_id


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One message of the history."""

    message: Message
    """Without cache markers: where they stand is no part of what was said."""
    id: RecordId = field(default_factory=new_record_id)
    origin: TextOrigin = "human"


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply that was recorded and is not in the view yet."""

    entry: HistoryMessage
    usage: Usage | None


class History(Sequence[Message]):
    """Messages that can be added to and nothing else: what is old need not be looked at again."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._messages = list(messages)

    def append(self, message: Message) -> None:
        """Refused here if it is none: nothing can be taken out again, and no view could be made with it."""
        _refuse_if_none(message)
        self._messages.append(message)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)


def _refuse_if_none(said: object) -> None:
    if not isinstance(said, Message):
        raise InputError(
            f"a history takes a Message, not a {type(said).__name__}; read_message of sevenfold.core.wire "
            "makes one of a dict, and prepare takes a list of dicts as it is"
        )
    content: object = getattr(said, "content")  # noqa: B009 - what its type says is what is in doubt
    if not isinstance(content, (str, tuple)):
        found = type(content).__name__
        raise InputError(f"a message's content is text or a tuple of blocks, not a {found}")
