"""Each request is booked under its conversation, with what it lost of the cache and why."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.usage import Usage
from sevenfold.proxy.ledger import ProxyEntry, ProxyLedger, RequestTarget, find_break
from sevenfold.proxy.receipt import (
    CLIENT_LEFT,
    list_ledgers,
    read_proxy_ledger,
    render_ledger_line,
    render_receipt,
)
from sevenfold.proxy.requests import UNREAD_REQUEST, RequestFacts
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.files.folder import Folder

NOW = datetime(2026, 11, 16, tzinfo=UTC)
FACTS = RequestFacts(
    wire="messages", purpose="turn", model="claude-opus-4-5", system="s", tools="t", messages=("a", "b")
)
LONGER = replace(FACTS, messages=("a", "b", "c"))


def book(
    ledger: ProxyLedger,
    facts: RequestFacts,
    *,
    read: int = 0,
    written: int = 0,
    later: float = 0,
    who: str = "me",
) -> ProxyEntry:
    return ledger.add(
        at=NOW + timedelta(minutes=later),
        agent="claude",
        client=who,
        facts=facts,
        status=200,
        usage=Usage(read=read, written_5m=written, fresh=10, output=5),
    )


def test_a_conversation_is_known_by_what_it_goes_on_from() -> None:
    ledger = ProxyLedger()
    first, second = book(ledger, FACTS), book(ledger, LONGER)
    other, stranger = book(ledger, replace(FACTS, system="x")), book(ledger, LONGER, who="you")
    assert first.conversation == second.conversation
    assert len({first.conversation, other.conversation, stranger.conversation}) == 3


def test_a_session_header_joins_what_has_nothing_in_common() -> None:
    ledger = ProxyLedger()
    one = book(ledger, replace(FACTS, session="s1"))
    other = book(ledger, replace(FACTS, session="s1", messages=("z",)))
    third = book(ledger, replace(FACTS, session="s2"))
    assert one.conversation == other.conversation != third.conversation


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        (LONGER, ""),
        (replace(LONGER, model="claude-sonnet-4-5"), "the model changed"),
        (replace(LONGER, tools="u"), "the tools changed"),
        (replace(LONGER, system="u"), "the system prompt changed"),
        (replace(LONGER, messages=("a", "x", "c")), "message 2 of 3 changed"),
        (replace(FACTS, messages=("a",)), "messages were left out"),
    ],
)
def test_where_a_request_leaves_the_one_before(changed: RequestFacts, cause: str) -> None:
    assert find_break(FACTS, changed).startswith(cause)
    assert bool(find_break(FACTS, changed)) == bool(cause)


def test_a_break_names_its_cause_and_what_was_lost() -> None:
    ledger = ProxyLedger()
    session = replace(FACTS, session="s")
    book(ledger, session, written=50_000)
    kept = book(ledger, replace(LONGER, session="s"), read=50_000)
    lost = book(ledger, replace(LONGER, session="s", tools="u"), written=50_000)
    cold = book(ledger, replace(LONGER, session="s", tools="u"), written=50_000, later=30)
    assert kept.cache_break is None
    assert lost.cache_break is not None
    assert (lost.cache_break.cause, lost.cache_break.lost_tokens) == ("the tools changed", 50_000)
    assert cold.cache_break is not None
    assert cold.cache_break.cause == "30 minutes passed"


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"tools": "u"}, "the tools changed"),
        ({"system": "u"}, "the system prompt changed"),
        ({"messages": ("a", "b", "x", "y")}, "message 3 of 4 changed"),
    ],
)
def test_a_break_is_seen_where_no_header_names_the_conversation(changed: dict[str, Any], cause: str) -> None:
    ledger = ProxyLedger()
    first = book(ledger, LONGER, written=50_000)
    later = replace(LONGER, messages=("a", "b", "c", "d"))
    lost = book(ledger, replace(later, **changed), written=50_000)
    assert lost.cache_break is not None
    assert (lost.conversation, lost.cache_break.cause) == (first.conversation, cause)


def test_another_session_with_the_same_prompt_is_no_break() -> None:
    ledger = ProxyLedger()
    book(ledger, LONGER, written=50_000)
    again = book(ledger, replace(FACTS, messages=("a", "z")), written=50_000)
    elsewhere = book(ledger, replace(FACTS, messages=("a",), tools="u"), written=50_000)
    assert again.cache_break is elsewhere.cache_break is None
    assert len({"c1", again.conversation, elsewhere.conversation}) == 3


def test_a_provider_that_caches_by_itself_need_not_say_what_it_keeps() -> None:
    ledger = ProxyLedger()
    facts = replace(FACTS, wire="responses", session="s")
    given: dict[str, Any] = {
        "at": NOW,
        "agent": "codex",
        "client": "me",
        "status": 200,
    }
    ledger.add(facts=facts, usage=Usage(fresh=20_000, output=5), **given)
    lost = ledger.add(facts=replace(facts, tools="u"), usage=Usage(fresh=20_000, output=5), **given)
    assert lost.cache_break is not None
    assert (lost.cache_break.cause, lost.cache_break.lost_tokens) == ("the tools changed", 20_000)


def test_a_pause_is_measured_against_how_long_the_prompt_was_to_stay() -> None:
    ledger = ProxyLedger()
    session = replace(FACTS, session="s")
    given: dict[str, Any] = {"agent": "claude", "client": "me", "status": 200}
    ledger.add(at=NOW, facts=session, usage=Usage(written_1h=50_000), **given)
    ledger.add(at=NOW, facts=session, usage=Usage(read=50_000), **given)
    for minutes, cause in ((12, "unexplained"), (90, "78 minutes passed")):
        at = NOW + timedelta(minutes=minutes)
        lost = ledger.add(at=at, facts=session, usage=Usage(written_1h=50_000), **given)
        assert lost.cache_break is not None
        assert lost.cache_break.cause == cause


def test_a_title_request_is_no_part_of_the_conversation() -> None:
    ledger = ProxyLedger()
    turn = replace(FACTS, session="s")
    book(ledger, turn, written=50_000)
    title = book(ledger, replace(turn, purpose="side request", tools="", messages=("t",)), written=10)
    again = book(ledger, replace(LONGER, session="s"), read=50_000)
    assert title.cache_break is None
    assert again.cache_break is None


def test_each_request_is_a_line_in_a_file_without_its_contents(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        ledger = ProxyLedger(folder=folder, name="l.jsonl")
        book(ledger, FACTS, written=1_000_000)
        book(ledger, LONGER)
    lines = [json.loads(line) for line in tmp_path.joinpath("l.jsonl").read_text().splitlines()]
    assert lines[0]["written_5m"] == 1_000_000
    assert lines[0]["dollars"].startswith("6.25")
    assert lines[1]["break"] == {"cause": "unexplained", "lost_tokens": 1_000_000}
    assert "messages" not in lines[0]


def test_a_ledger_that_cannot_be_written_says_so_and_goes_on(tmp_path: Path) -> None:
    tmp_path.joinpath("l.jsonl").mkdir()
    with Folder.open(tmp_path) as folder:
        ledger = ProxyLedger(folder=folder, name="l.jsonl")
        book(ledger, FACTS)
    assert len(ledger.entries) == 1
    assert ledger.write_error


def test_a_receipt_sums_up_by_purpose_and_names_the_breaks() -> None:
    ledger = ProxyLedger()
    book(ledger, FACTS, written=50_000)
    book(ledger, LONGER, written=50_000)
    receipt = "\n".join(render_receipt(ledger.entries))
    assert "2 model calls in 1 conversation," in receipt
    assert "cache break in c1: 50,000 tokens: unexplained" in receipt
    assert "$0.6" in receipt
    silent = [*ledger.entries, replace(ledger.entries[0], usage=None, cost=None)]
    assert "1 response without usage: the sums above leave out their cost" in render_receipt(silent)
    assert render_receipt([]) == ["no requests"]


def test_a_receipt_says_why_requests_failed() -> None:
    ledger = ProxyLedger()
    entry = book(ledger, FACTS)
    gone = "127.0.0.1:9 cannot be reached: ConnectError: no"
    unreached = replace(
        entry,
        usage=None,
        status=502,
        target=RequestTarget(method="POST", path="/v1/messages", host="127.0.0.1:9", error=gone),
    )
    assert render_receipt([unreached] * 8) == [
        "8 requests; no response reported its usage",
        f"8 requests failed: {gone}",
    ]
    assert unreached.to_json()["error"] == gone
    probe = replace(
        unreached,
        facts=UNREAD_REQUEST,
        status=404,
        target=RequestTarget(method="HEAD", path="/", host="127.0.0.1:9"),
    )
    told = "1 request that asked no model got an error: HEAD / at 127.0.0.1:9 answered 404"
    assert told in render_receipt([entry, probe])
    assert {"method": "HEAD", "path": "/", "host": "127.0.0.1:9"}.items() <= dict(probe.to_json()).items()


def test_a_first_bill_says_why_the_cache_costs_more() -> None:
    ledger = ProxyLedger()
    book(ledger, FACTS, written=50_000)
    assert "the first request pays for writing the cache" in render_receipt(ledger.entries)[1]
    book(ledger, LONGER, read=50_000)
    assert "the first request" not in render_receipt(ledger.entries)[1]


def test_a_full_disk_is_told_and_costs_no_later_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Folder.open(tmp_path / "proxy", create=True) as folder:
        ledger = ProxyLedger(folder=folder, name="a.jsonl")
        with monkeypatch.context() as patched:
            patched.setattr(SystemDisk, "write", _write_a_part)
            book(ledger, FACTS)
        assert "No space left" in ledger.write_error
        assert len(ledger.entries) == 1, "it is in the bill"
        book(ledger, LONGER)
        assert "No space left" in ledger.write_error, "the file stays without it"
        assert len(read_proxy_ledger(folder, "a.jsonl")) == 1


def test_a_request_that_was_sent_and_has_no_bill_is_told(tmp_path: Path) -> None:
    """A proxy that was killed has written no answer down."""
    with Folder.open(tmp_path / "proxy", create=True) as folder:
        ledger = ProxyLedger(folder=folder, name="a.jsonl")
        first, second, third = (ledger.send(NOW, "claude") for _ in range(3))
        assert first == 1
        booked: dict[str, Any] = {"at": NOW, "agent": "claude", "client": "me", "facts": FACTS}
        ledger.add(**booked, status=200, usage=Usage(fresh=10, output=5), target=RequestTarget(number=second))
        ledger.add(**booked, status=400, usage=None, target=RequestTarget(number=third))
        fourth = RequestTarget(number=ledger.send(NOW, "claude"))
        ledger.add(**booked, status=CLIENT_LEFT, usage=None, target=fourth)
        lines = read_proxy_ledger(folder, "a.jsonl")
        (summary,) = list_ledgers(folder)
    assert [line.get("sent", line.get("request")) for line in lines] == [1, 2, 3, 4]
    assert "its cost is unknown" in render_ledger_line(lines[0])
    assert (summary.requests, summary.unbilled) == (4, 2), "what was refused cost nothing"
    assert "and 2 requests without a bill" in summary.render()
    assert summary.to_json()["unbilled_requests"] == 2


def _write_a_part(_: SystemDisk, fd: int, data: memoryview) -> int:
    if len(data) > 10:
        return os.write(fd, data[:10])
    raise OSError(errno.ENOSPC, "No space left on device")
