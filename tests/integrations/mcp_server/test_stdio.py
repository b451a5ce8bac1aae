"""The server on standard input and output."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from sevenfold.integrations.mcp_server.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_INPUT_BYTES,
    PARSE_ERROR,
)
from sevenfold.integrations.mcp_server.stdio import MAX_QUEUED_REQUESTS
from tests.integrations.mcp_server.talking import ALL_VERSIONS, FakeClient, make_request

PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


def recall(rpc_id: object, version: str = "2025-11-25", **meta: object) -> dict[str, object]:
    params: dict[str, object] = {"name": "recall", "arguments": {"query": f"question {rpc_id}"}}
    return make_request("tools/call", version, rpc_id, **params, **({"_meta": meta} if meta else {}))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_session_is_answered_request_by_request(version: str) -> None:
    answers = FakeClient(version).serve(
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        make_request("tools/list", version, 1),
        recall(2, version),
        make_request("resources/list", version, "three"),
    )
    assert {answer["id"] for answer in answers} == {1, 2, "three"}
    assert all("result" in answer for answer in answers)


@pytest.mark.parametrize(
    ("line", "rpc_id", "code"),
    [
        (b"{", None, PARSE_ERROR),
        (b"\xff\xfe", None, PARSE_ERROR),
        (b"[" * 100_000, None, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b"}", None, PARSE_ERROR),
        (b"7", None, INVALID_REQUEST),
        (b'{"id":3,"method":"ping"}', 3, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":3}', 3, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}', 3, INVALID_PARAMS),
        (
            b'{"jsonrpc":"2.0","id":3,"method":"ping","x":"' + b"x" * MAX_INPUT_BYTES + b'"}',
            None,
            INVALID_REQUEST,
        ),
        (b"[]", None, INVALID_REQUEST),
    ],
)
def test_a_line_that_is_no_message_is_refused_and_the_next_one_answered(
    line: bytes, rpc_id: object, code: int
) -> None:
    refused, pong = FakeClient().serve(line, PING)
    assert (refused["id"], refused["error"]["code"]) == (rpc_id, code)
    assert pong == {"jsonrpc": "2.0", "id": "ping", "result": {}}


def test_blank_lines_responses_and_unknown_notifications_are_not_answered() -> None:
    quiet: list[object] = [
        b"",
        b"  ",
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
    ]
    assert FakeClient().serve(*quiet) == []


def test_a_cancelled_call_is_not_answered_and_others_are() -> None:
    client, started, cancelled = FakeClient(), Event(), Event()

    def wait(operation: str) -> None:
        if operation == "recall":
            started.set()
            assert cancelled.wait(30)

    client.operations.before = wait
    cancel = client.dispatcher
    taken = cancel.answer

    def answer(message: Any, state: Any) -> Any:
        if message.method == "ping":  # the reader is past the cancellation by now
            cancelled.set()
        return taken(message, state)

    cancel.answer = answer
    answers = client.serve(
        recall("slow"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}},
        PING,
    )
    assert answers == [{"jsonrpc": "2.0", "id": "ping", "result": {}}]


def test_a_slow_call_holds_up_neither_a_ping_nor_other_calls() -> None:
    client, ponged = FakeClient(), Event()

    def wait(operation: str) -> None:
        if operation == "recall":
            assert ponged.wait(30)

    client.operations.before = wait
    taken = client.dispatcher.answer

    def answer(message: Any, state: Any) -> Any:
        if message.method == "ping":
            ponged.set()
        return taken(message, state)

    client.dispatcher.answer = answer
    answers = client.serve(recall(1), PING)
    assert [found["id"] for found in answers] == ["ping", 1]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_progress_is_shown_while_a_call_runs_and_never_after_it(version: str) -> None:
    client, shown = FakeClient(version), Event()
    steps = iter([False, False])

    def pause(done: Event) -> bool:
        if not next(steps, True):
            return False
        shown.set()
        return done.wait(30)

    client.operations.before = lambda _operation: assert_true(shown.wait(30))
    *progress, answer = client.serve(recall(1, version, progressToken="p"), pause=pause)
    assert [found["params"]["progress"] for found in progress] == [0, 1, 2]
    assert {found["params"]["progressToken"] for found in progress} == {"p"}
    assert answer["id"] == 1


def assert_true(value: bool) -> None:
    assert value


def test_an_id_that_is_in_use_is_refused_and_free_again_after_its_answer() -> None:
    client, refused = FakeClient(), Event()
    client.operations.before = lambda _operation: assert_true(refused.wait(30))
    taken = client.dispatcher.answer

    def answer(message: Any, state: Any) -> Any:
        if message.method == "ping":
            refused.set()
        return taken(message, state)

    client.dispatcher.answer = answer
    first, _pong, second = client.serve(recall(1), recall(1), PING)
    assert (first["id"], first["error"]["code"]) == (1, INVALID_REQUEST)
    assert second["result"]
    assert all("result" in one for one in client.serve(recall(1)))


def test_more_requests_than_can_wait_are_told_to_come_again() -> None:
    client, last = FakeClient(), Event()
    client.operations.before = lambda _operation: assert_true(last.wait(30))
    taken = client.dispatcher.answer

    def answer(message: Any, state: Any) -> Any:
        if message.method == "ping":
            last.set()
        return taken(message, state)

    client.dispatcher.answer = answer
    answers = client.serve(*(recall(number) for number in range(MAX_QUEUED_REQUESTS + 3)), PING)
    busy = [found["id"] for found in answers if "error" in found]
    assert busy == [MAX_QUEUED_REQUESTS, MAX_QUEUED_REQUESTS + 1, MAX_QUEUED_REQUESTS + 2]
    assert {found["error"]["code"] for found in answers if "error" in found} == {INTERNAL_ERROR}
    assert len(answers) == MAX_QUEUED_REQUESTS + 4


def test_a_batch_is_answered_in_one_line_in_the_version_that_has_batches() -> None:
    batch = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        recall(1),
        make_request("tools/list", "2025-03-26", 2),
        make_request("initialize", "2025-03-26", 3),
        {"jsonrpc": "2.0", "id": 4},
        recall(1),
    ]
    (answers,) = FakeClient("2025-03-26").serve(batch)
    assert sorted((found["id"], "result" in found) for found in answers) == [
        (1, False),
        (1, True),
        (2, True),
        (3, False),
        (4, False),
    ]
    assert FakeClient("2025-03-26").serve([batch[0]]) == []


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if version != "2025-03-26"])
def test_a_batch_is_refused_in_every_other_version(version: str) -> None:
    (refused,) = FakeClient(version).serve([make_request("tools/list", version)])
    assert (refused["id"], refused["error"]["code"]) == (None, INVALID_REQUEST)


def test_a_batch_that_is_empty_or_too_long_is_refused() -> None:
    for batch in ([], [PING] * 51):
        (refused,) = FakeClient("2025-03-26").serve(batch)
        assert refused["error"]["code"] == INVALID_REQUEST
