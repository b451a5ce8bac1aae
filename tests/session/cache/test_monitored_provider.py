"""The provider of forks: each call is written down before it is sent, and billed when it was answered."""

from __future__ import annotations

from typing import cast

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import Overloaded
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.layers.conversation_state import NoJournal
from sevenfold.providers.provider import OnDelta
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.cache.monitor import CacheMonitor, MonitoredProvider, RequestLog
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import RecordBody, SentRecord, UsageRecord
from tests.session.talk import FRAME

pytestmark = pytest.mark.anyio
ASKED = ModelRequest(FRAME, (Message("user", "go"),), purpose="notes")


class Journal(NoJournal):
    """Keeps what happened, in order."""

    def __init__(self) -> None:
        self.seen: list[RecordBody | str] = []

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002
        self.seen.append(body)
        return super().add(body, id)

    async def flush(self) -> None:
        self.seen.append("flushed")


class Monitor:
    """Stands in for the monitor of the cache."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def check(self, request: ModelRequest, _now: object) -> None:
        assert request is ASKED
        self.journal.seen.append("checked")

    def settle(self, request: ModelRequest, _reply: ModelResponse, _now: object) -> None:
        assert request is ASKED
        self.journal.seen.append("settled")


class Sender(ScriptedProvider):
    journal: Journal

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self.journal.seen.append("sent")
        return await super().send(request, on_delta)


class Asked:
    """A monitored provider with these answers."""

    def __init__(self, *steps: ModelResponse | Exception) -> None:
        self.journal = Journal()
        self.log = RequestLog(self.journal)
        sender = Sender(list(steps))
        sender.journal = self.journal
        monitor = cast("CacheMonitor", Monitor(self.journal))
        self.provider = MonitoredProvider(sender, monitor, self.journal, ManualClock(), self.log)


async def test_a_call_is_on_the_disk_before_it_is_sent_and_billed_afterwards() -> None:
    asked = Asked(make_response("Done."))
    reply = await asked.provider.send(ASKED)
    assert reply.text == "Done."
    assert asked.journal.seen == [
        *("checked", SentRecord(FRAME.model, "notes"), "flushed", "sent", "settled"),
        UsageRecord(model=FRAME.model, who="notes", wire=reply.usage_wire, dialect=reply.dialect),
    ]
    assert asked.log.unbilled == 0


async def test_a_call_that_was_refused_is_written_off_and_raised() -> None:
    asked = Asked(Overloaded("busy"))
    with pytest.raises(Overloaded):
        await asked.provider.send(ASKED)
    assert asked.journal.seen == [
        *("checked", SentRecord(FRAME.model, "notes"), "flushed", "sent"),
        SentRecord(FRAME.model, "notes", is_refused=True),
    ]
    assert asked.log.unbilled == 0
