"""A conversation by itself, with a journal, a clock, a listener and events to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sevenfold.core.clock import ManualClock
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Capabilities, RequestParams, ViewMessage, choose_capabilities
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.conversation_state import ConversationListener, HistoryMessage, NoJournal
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import RecordBody
from tests.session.talk import Listener, call, result

OPUS, HAIKU = "claude-opus-5-5", "claude-haiku-4-5"
"""The first signs its thinking over everything before it and compacts on demand; the second does neither."""
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class KeptJournal(NoJournal):
    """Keeps the bodies of its records."""

    def __init__(self) -> None:
        self.bodies: list[RecordBody] = []
        self.ids: list[RecordId] = []

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002
        self.bodies.append(body)
        self.ids.append(super().add(body, id))
        return self.ids[-1]


@dataclass
class Follower(ConversationListener):
    """Keeps what a listener is told."""

    added: list[HistoryMessage] = field(default_factory=list[HistoryMessage])
    shown: list[ViewMessage] = field(default_factory=list[ViewMessage])
    rewritten: list[bool] = field(default_factory=list[bool])
    cut: list[int] = field(default_factory=list[int])
    idle: list[timedelta | None] = field(default_factory=list[timedelta | None])

    def message_added(self, entry: HistoryMessage) -> None:
        self.added.append(entry)

    def message_shown(self, item: ViewMessage) -> None:
        self.shown.append(item)

    def view_rewritten(self, *, keeps_beginning: bool) -> None:
        self.rewritten.append(keeps_beginning)

    def view_cut(self, first: int) -> None:
        self.cut.append(first)

    def request_answered(self, idle: timedelta | None) -> None:
        self.idle.append(idle)


class Kept(Conversation):
    """A conversation with a journal, a clock, a listener and events to look at."""

    def __init__(self, frame: RequestParams | None = None, capabilities: Capabilities | None = None) -> None:
        frame = frame or params()
        self.kept, self.heard, self.follower = KeptJournal(), Listener(), Follower()
        self.clock = ManualClock(NOON)
        super().__init__(
            frame,
            capabilities or takes(frame.model),
            catalog=CATALOG,
            clock=self.clock,
            emit=self.heard,
            journal=self.kept,
        )
        self.listeners.append(self.follower)

    def texts(self) -> list[object]:
        return [item.message.content for item in self.shown]

    def records(self, kind: type[RecordBody]) -> list[RecordBody]:
        return [body for body in self.kept.bodies if isinstance(body, kind)]


def params(
    model: str = OPUS,
    system: str | tuple[JsonObject, ...] = "You are helpful.",
    *,
    tools: tuple[JsonObject, ...] = (),
    betas: tuple[str, ...] = (),
) -> RequestParams:
    return RequestParams(model=model, max_tokens=1_000, system=system, tools=tools, betas=betas)


def takes(model: str) -> Capabilities:
    return choose_capabilities(CATALOG.find(model), "anthropic")


def asked(conversation: Kept, rounds: int = 2) -> Kept:
    """Each round is a question, a tool call and its result."""
    for number in range(rounds):
        conversation.add(Message("user", f"question {number}"))
        given = conversation.record_reply(call(number, tokens=1_000 * (number + 1)), conversation.clock.now())
        conversation.take_reply(given, given.entry.message)
        conversation.add(result(number, f"made {number}"), "attachment")
    return conversation
