"""When something goes wrong inside: one shape of answer, nobody's words in it, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from sevenfold.core.clock import ManualClock, SystemClock
from sevenfold.core.errors import DatabaseFailed
from sevenfold.team.server import http_api, http_server
from sevenfold.team.server.app_state import ApiRequest, ApiResponse, AppState
from sevenfold.team.server.database import Database, OrgId, Tx
from sevenfold.team.server.http_api import ServerMetrics
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.policy import ServerLimits
from sevenfold.team.server.repos import fetch_over_http
from tests.team.live import LOOSE, MEMORY, Live, serving
from tests.team.server.conftest import opened
from tests.team.team import Team

T = TypeVar("T")


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with opened(f"sqlite:///{tmp_path}/team.db") as database:
        yield database


class Flaky:
    """A database that fails when it is told to."""

    def __init__(self, inner: Database) -> None:
        self._inner, self.is_down = inner, False

    def read(self, org: OrgId | None, work: Callable[[Tx], T], /, *, quick: bool = False) -> Future[T]:
        return self._fail(work) if self.is_down else self._inner.read(org, work, quick=quick)

    def write(self, org: OrgId | None, work: Callable[[Tx], T], /) -> Future[T]:
        return self._fail(work) if self.is_down else self._inner.write(org, work)

    def close(self) -> None:
        self._inner.close()

    def _fail(self, work: Callable[[Tx], T]) -> Future[T]:
        future = Future[T]()
        future.set_exception(DatabaseFailed("the disk said: /srv/acme is full"))
        return future


def test_a_database_that_does_not_answer_is_503_and_may_be_asked_again(database: Database) -> None:
    flaky, clock = Flaky(database), ManualClock()
    team = Team(flaky, now_ms=int(clock.now().timestamp() * 1000))
    with serving(flaky, clock=clock) as live:
        assert live.ask("GET", "/readyz").status_code == 200
        flaky.is_down = True
        # It is not asked more often than once a second, whoever wants to know.
        assert live.ask("GET", "/readyz").status_code == 200
        clock.pass_time(timedelta(seconds=1))
        for method, path in (("GET", f"{MEMORY}?repo={team.repo}"), ("GET", "/readyz")):
            got = live.ask(method, path, team.token)
            assert (got.status_code, got.headers["retry-after"], got.json()["error"]["retry"]) == (
                503,
                "1",
                True,
            )
            assert "acme" not in got.text
        assert live.ask("GET", "/healthz").status_code == 200
        flaky.is_down = False
        assert live.ask("GET", MEMORY, team.token, repo=team.repo).status_code == 200
        assert any("database failed" in line for line in live.lines)


def test_a_bug_is_500_with_a_number_to_report_and_tells_no_words(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stumble(desk: AppState, call: ApiRequest) -> ApiResponse:
        raise RuntimeError("the words of somebody's memory")

    monkeypatch.setattr(http_api, "ENDPOINTS", {**http_api.ENDPOINTS, "whoami": stumble})
    team = Team(database, now_ms=int(time.time() * 1000))
    with serving(database) as live:
        got = live.ask("GET", "/api/v1/whoami", team.token)
        assert (got.status_code, got.json()["error"]["kind"]) == (500, "server")
        assert got.headers["x-request-id"] in got.json()["error"]["try"]
        told = "".join([got.text, *live.lines])
        assert "RuntimeError" in told
        assert "test_trouble.py:" in told
        assert "words of somebody" not in told


def connected(live: Live) -> socket.socket:
    address = urlsplit(live.url)
    connection = socket.socket()
    connection.settimeout(30)
    # Else the kernel may let the buffer grow until it holds a whole answer that nobody takes.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    connection.connect((address.hostname or "", address.port or 0))
    return connection


def send_part(live: Live, team: Team) -> socket.socket:
    """A request that says that more of its body comes."""
    connection = connected(live)
    head = (
        f"PUT {MEMORY}?repo={team.repo} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {team.token}\r\n"
        "content-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    )
    connection.sendall(f'{head}{{"entries"'.encode())
    return connection


def served(live: Live, operation: str) -> list[dict[str, object]]:
    return [told for line in live.lines if (told := json.loads(line)).get("operation") == operation]


def test_a_client_that_hangs_up_half_way_is_no_bug(database: Database) -> None:
    team = Team(database, now_ms=int(time.time() * 1000))
    with serving(database) as live:
        send_part(live, team).close()
        while not served(live, "put_memory"):
            assert live.ask("GET", "/healthz").status_code == 200
        [told] = served(live, "put_memory")
        assert (told["status"], told["kind"]) == (400, "cut off")
        assert not any('"bug"' in line for line in live.lines)


def test_a_body_that_never_ends_is_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "BODY_TIME", timedelta(milliseconds=50))
    team = Team(database, now_ms=int(time.time() * 1000))
    with serving(database) as live, send_part(live, team) as connection:
        with connection.makefile("rb") as answer:
            told = answer.read().decode()  # to the end: the connection is closed
        assert told.startswith("HTTP/1.1 408 ")
        assert '"kind":"cut off"' in told


@pytest.mark.parametrize(("whole", "part"), [(0, b""), (0, b"G"), (1, b"GET /healthz HTTP/1.1\r\nhost:")])
def test_who_connects_and_does_not_say_what_they_want_is_hung_up_on(
    database: Database, monkeypatch: pytest.MonkeyPatch, whole: int, part: bytes
) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIME", timedelta(milliseconds=50))
    with serving(database) as live, connected(live) as connection, connection.makefile("rb") as answer:
        for _ in range(whole):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
        connection.sendall(part)
        assert b"HTTP/1.1" not in answer.read()  # to the end: the connection is closed
        assert live.ask("GET", "/healthz").status_code == 200


def test_who_has_asked_and_may_ask_again_is_not_hurried(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = timedelta(milliseconds=50)
    monkeypatch.setattr(http_server, "HEAD_TIME", span)
    request = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    with serving(database) as live, connected(live) as connection, connection.makefile("rb") as answer:
        for _ in range(2):
            connection.sendall(request)
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
            while answer.readline() != b"\r\n":
                pass
            assert answer.read(15) == b'{"status":"ok"}'
            ends = time.monotonic() + 3 * span.total_seconds()
            while time.monotonic() < ends:
                assert live.ask("GET", "/healthz").status_code == 200


def test_an_answer_that_nobody_takes_is_not_kept_for_ever(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "TAKE_TIME", timedelta())
    team = Team(database, now_ms=int(time.time() * 1000))
    for number in range(40):
        team.put({f"k{number}.md": f"{number:02}" * 120_000})
    head = f"GET {MEMORY}?repo={team.repo} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {team.token}\r\n\r\n"
    with serving(database) as live, connected(live) as connection, connection.makefile("rb") as answer:
        connection.sendall(head.encode())
        while not served(live, "read_memory"):
            assert live.ask("GET", "/healthz").status_code == 200
        taken = 0
        with suppress(ConnectionError):
            while part := answer.read(10_000):
                taken += len(part)
        [told] = served(live, "read_memory")
        assert told["status"] == 200
        assert taken < 9_000_000 < int(str(told["bytes_out"]))


def test_a_head_without_an_end_is_refused(database: Database) -> None:
    with serving(database) as live, connected(live) as connection, connection.makefile("rb") as answer:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nx-long: ")
        with suppress(ConnectionError):
            for _ in range(1_000):
                connection.sendall(b"x" * 10_000)
        with suppress(ConnectionError):
            assert answer.read().startswith(b"HTTP/1.1 400 ")


def test_what_is_no_http_is_told_in_the_same_shape(database: Database) -> None:
    with serving(database) as live, connected(live) as connection, connection.makefile("rb") as answer:
        connection.sendall(b"hello\r\n\r\n")
        head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["kind"] == "bad request"


def test_beyond_what_can_wait_a_request_is_sent_away_at_once(database: Database) -> None:
    team = Team(database, now_ms=int(time.time() * 1000))
    with serving(database, limits=ServerLimits(waiting=0)) as live:
        got = live.ask("GET", MEMORY, team.token, repo=team.repo)
        assert (got.status_code, got.headers["retry-after"]) == (503, "2")


def test_one_organisation_cannot_take_all_places_of_those_who_wait(database: Database) -> None:
    desk = AppState(database, ServerLimits(at_once=2, org_waiting=5, waiting=100), ManualClock())

    async def crowd() -> tuple[int, int]:
        ending, begun = asyncio.Event(), list[str]()

        async def ask(line: str) -> None:
            async with desk.acquire_slot(line):
                begun.append(line)
                await ending.wait()

        asked = [asyncio.create_task(ask("noisy")) for _ in range(50)]
        asked += [asyncio.create_task(ask(f"quiet {number}")) for number in range(10)]
        for _ in asked:  # each gets as far as it can
            await asyncio.sleep(0)
        running = list(begun)
        ending.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        refused = [one for one in ended if isinstance(one, ApiError)]
        assert {one.status for one in refused} == {503}
        assert sorted(set(running)) == ["noisy", *(f"quiet {number}" for number in range(10))]
        return running.count("noisy"), len(refused)

    assert asyncio.run(crowd()) == (2, 45)


def ask_at_once(live: Live, team: Team, count: int) -> list[int]:
    def put(number: int) -> int:
        entries = {"entries": {f"k{number}.md": "x"}}
        return live.ask("PUT", MEMORY, team.token, json=entries, repo=team.repo).status_code

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(put, range(count)))


def test_more_at_once_than_may_run_wait_their_turn_and_all_are_served(database: Database) -> None:
    team = Team(database, now_ms=int(time.time() * 1000))
    loose = ServerLimits(at_once=1, token_rate=1000, org_rate=1000)
    with serving(database, limits=loose) as live:
        assert ask_at_once(live, team, 12) == [200] * 12
    assert len(team.contents().entries) == 12


def test_a_transaction_that_fails_as_a_whole_fails_all_in_it_and_the_next_succeeds(
    database: Database,
) -> None:
    held, free = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        held.set()
        assert free.wait(30)

    def break_off(tx: Tx) -> None:
        tx.rows("ROLLBACK")

    def insert(tx: Tx) -> None:
        tx.rows("INSERT INTO meta VALUES ('a', 'b')")

    first = database.write(None, hold)
    assert held.wait(30)
    broken, beside, gone = (database.write(None, work) for work in (break_off, insert, insert))
    assert gone.cancel()
    free.set()
    first.result()
    for future in (broken, beside):
        assert isinstance(future.exception(), DatabaseFailed)
    database.write(None, insert).result()
    assert len(database.read(None, lambda tx: tx.rows("SELECT * FROM meta")).result()) == 1


def test_a_forge_that_does_not_answer_may_be_asked_later() -> None:
    with pytest.raises(ApiError) as refused:
        asyncio.run(fetch_over_http("http://127.0.0.1:1/repos/a/b", "x"))
    assert (refused.value.status, refused.value.retry) == (503, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_server_waits_for_one_ends_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    lines: list[str] = []
    app = AppState(database, LOOSE, SystemClock(), None)
    server = http_server.TeamServer(app, ServerMetrics(lines.append), address="127.0.0.1", port=0)
    run = asyncio.run

    def signal_first(work: Coroutine[object, object, None]) -> None:
        signal.raise_signal(number)
        run(work)

    monkeypatch.setattr(asyncio, "run", signal_first)
    before = signal.getsignal(number)
    server.run()
    assert signal.getsignal(number) == before
    assert "ended" in lines[-1]
