"""Requests without a bill, counted by whoever sent them."""

from __future__ import annotations

import pytest

from sevenfold.core.errors import Overloaded, ProviderError, ProviderUnreachable, ReplyBroken
from sevenfold.layers.conversation_state import NoJournal
from sevenfold.session.cache.monitor import RequestLog
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import RecordBody, SentRecord


class Kept(NoJournal):
    """Keeps what is added."""

    def __init__(self) -> None:
        self.bodies: list[RecordBody] = []

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002
        self.bodies.append(body)
        return super().add(body, id)


def test_requests_without_a_bill_are_counted_by_whoever_sent_them() -> None:
    kept = Kept()
    log = RequestLog(kept)
    log.sent("opus", "main")
    log.sent("opus", "fork")
    assert log.unbilled == 2
    log.billed("main")
    log.billed("main")
    assert log.unbilled == 1, "a bill that nothing waits for counts for nobody"
    log.billed("fork")
    assert log.unbilled == 0
    assert kept.bodies == [SentRecord("opus", "main"), SentRecord("opus", "fork")]


@pytest.mark.parametrize(
    ("error", "may_be_billed"),
    [(Overloaded("busy"), False), (ReplyBroken("cut"), True), (ProviderUnreachable("gone"), True)],
)
def test_a_request_that_failed_is_written_off_where_nothing_can_have_been_billed(
    error: ProviderError, may_be_billed: bool
) -> None:
    kept = Kept()
    log = RequestLog(kept)
    log.refused("opus", "main", error)
    assert kept.bodies == []
    log.sent("opus", "main")
    log.refused("opus", "main", error)
    assert log.unbilled == may_be_billed
    assert kept.bodies[1:] == ([] if may_be_billed else [SentRecord("opus", "main", is_refused=True)])


def test_a_request_that_is_sent_again_counts_anew_only_after_a_refusal_or_an_answer() -> None:
    kept = Kept()
    log = RequestLog(kept)
    log.sent("opus", "main")
    log.resent("opus", "main")
    assert (log.unbilled, len(kept.bodies)) == (1, 1)
    log.refused("opus", "main", Overloaded("busy"))
    log.resent("opus", "main")
    assert log.unbilled == 1
    assert kept.bodies[-1] == SentRecord("opus", "main")
