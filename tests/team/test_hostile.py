"""A server that lies, floods or stumbles: nothing of it reaches a file, and everything is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.errors import InputError, TeamOffline, TeamRefused
from sevenfold.core.events import Event, TeamEntryRefused
from sevenfold.core.memories import is_team_key
from sevenfold.team.client import server_client
from sevenfold.team.client.ports import MissingBodies, RemoteListing
from sevenfold.team.client.server_client import MAX_ANSWER_BYTES, MAX_BAD_NAMES, ServerClient, check_server
from sevenfold.team.protocol import (
    Commit,
    CommitApplied,
    CommitConflicts,
    CommitId,
    RepoId,
    TeamChange,
    TeamEntry,
    TeamKey,
    compute_checksum,
)
from tests.examples import up_to

URL = "https://memory.example.org"
ONE = compute_checksum("one")
COMMIT = Commit(CommitId("c"), (TeamChange(TeamKey("a.md"), 0, ONE),))


class Told(ServerClient):
    """A link to a server that gives one answer."""

    def __init__(self, response: httpx2.Response | Exception, emit: Callable[[Event], None]) -> None:
        ServerClient.__init__(self, URL, "token", RepoId("r"), emit=emit)
        self.asked: list[httpx2.Request] = []
        self._response = response
        self._client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        if isinstance(self._response, Exception):
            raise self._response
        # As a stream, which is what a network gives; a body that is there at once cannot be read in pieces.
        told = self._response
        return httpx2.Response(told.status_code, headers=told.headers, content=_pieces(told.content))


async def _pieces(content: bytes) -> AsyncGenerator[bytes]:
    for at in range(0, len(content), 64 * 1024):
        yield content[at : at + 64 * 1024]


class Bench:
    def __init__(self, response: httpx2.Response | Exception) -> None:
        self.events: list[Event] = []
        self.link = Told(response, self.events.append)

    def list(self, etag: str = "") -> RemoteListing | None:
        return asyncio.run(self._with(self.link.pull_entries(etag)))

    async def _with(self, work: Awaitable[RemoteListing | None]) -> RemoteListing | None:
        async with self.link:
            return await work


def answer(body: object, status: int = 200, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json=body, headers=named)


def listing(entries: object, deleted: object | None = None, seq: object = 3) -> httpx2.Response:
    return answer(
        {"repo": "r", "seq": seq, "floor": 0, "entries": entries, "deleted": deleted or {}}, etag='"3"'
    )


def test_a_listing_is_read_with_its_tombstones_and_asked_for_with_token_and_repository() -> None:
    bench = Bench(listing({"a.md": {"version": 1, "checksum": ONE}}, {"b.md": {"version": 3}}))
    assert bench.list('"2"') == RemoteListing(
        etag='"3"', seq=3, entries={TeamKey("a.md"): TeamEntry(1, ONE), TeamKey("b.md"): TeamEntry(3, None)}
    )
    (request,) = bench.link.asked
    assert request.headers["authorization"] == "Bearer token"
    assert request.headers["if-none-match"] == '"2"'
    assert request.url.params["repo"] == "r"


def test_nothing_new_is_nothing() -> None:
    assert Bench(httpx2.Response(304)).list('"3"') is None


HOSTILE = [
    "../a.md",
    "/etc/passwd",
    "a.md\0",
    "A.md",
    "con.md",
    "a/b/c/d.md",
    "a\u202e.md",
    "%2e%2e/a.md",
    ".md",
    "a",
]


@given(st.text() | st.sampled_from(HOSTILE))
@settings(max_examples=up_to(60))
def test_a_name_that_no_memory_may_have_is_left_out_and_said(key: str) -> None:
    bench = Bench(listing({key: {"version": 1, "checksum": ONE}}))
    found = bench.list()
    assert found is not None
    assert all(is_team_key(name) for name in found.entries)
    assert [type(event) for event in bench.events] == ([] if is_team_key(key) else [TeamEntryRefused])


def test_of_very_many_names_that_are_none_the_first_are_told_and_how_many_there_are() -> None:
    bench = Bench(listing({f"Bad {at}": {"version": 1, "checksum": ONE} for at in range(5_000)}))
    bench.list()
    assert len(bench.events) == MAX_BAD_NAMES + 1
    assert "4,980 more" in repr(bench.events[-1])


@pytest.mark.parametrize(
    "response",
    [
        listing({"a.md": {"version": 1, "checksum": "sha256:short"}}),
        listing({"a.md": {"version": -1, "checksum": ONE}}),
        listing({"a.md": {"version": True, "checksum": ONE}}),
        listing({"a.md": "what"}),
        listing([]),
        listing({}, seq="three"),
        answer([]),
        httpx2.Response(200, content=b"<html>not JSON</html>"),
        listing({f"k{at}.md": {"version": 1, "checksum": ONE} for at in range(20_001)}),
    ],
)
def test_a_listing_that_is_none_is_refused_and_nothing_is_taken(response: httpx2.Response) -> None:
    with pytest.raises(TeamRefused):
        Bench(response).list()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, TeamRefused),
        (403, TeamRefused),
        (404, TeamRefused),
        (500, TeamOffline),
        (503, TeamOffline),
    ],
)
def test_every_other_answer_is_an_error_of_the_right_kind(status: int, error: type[Exception]) -> None:
    body = {"error": {"kind": "x", "message": "the reason", "try": "the advice", "retry": False}}
    with pytest.raises(error, match="the reason; the advice"):
        Bench(answer(body, status)).list()
    with pytest.raises(error, match=str(status)):
        Bench(httpx2.Response(status)).list()


def test_a_server_that_is_busy_says_for_how_long() -> None:
    with pytest.raises(TeamOffline) as caught:
        Bench(answer({}, 429, retry_after="7")).list()
    assert caught.value.retry_after == timedelta(seconds=7)
    with pytest.raises(TeamOffline) as caught:
        Bench(answer({}, 503, retry_after="soon")).list()
    assert caught.value.retry_after is None


def test_nobody_is_followed_elsewhere_with_the_token() -> None:
    bench = Bench(httpx2.Response(307, headers={"location": "https://evil.example/api"}))
    with pytest.raises(TeamRefused, match=r"points to 'https://evil\.example/api', where the token is not"):
        bench.list()
    assert [request.url.host for request in bench.link.asked] == ["memory.example.org"]


@pytest.mark.parametrize(
    "environ",
    [
        {"SSL_CERT_FILE": "/nowhere/at/all.pem"},
        {"HTTPS_PROXY": "garbage://proxy.example"},
        {"ALL_PROXY": "socks5://proxy.example:1080"},
    ],
)
def test_certificates_and_proxies_that_are_none_are_the_users_to_mend(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="SSL_CERT_FILE"):
        asyncio.run(ServerClient(URL, "token", RepoId("r")).pull_entries(""))


@pytest.mark.parametrize("error", [httpx2.ConnectError("no route"), httpx2.ReadTimeout("slow")])
def test_no_answer_is_offline(error: Exception) -> None:
    with pytest.raises(TeamOffline, match="cannot be reached"):
        Bench(error).list()


def test_an_answer_that_is_compressed_or_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = httpx2.Response(200, content=b"x", headers={"content-encoding": "br"})
    with pytest.raises(TeamOffline, match="compresses"):
        Bench(packed).list()
    assert MAX_ANSWER_BYTES == 30_000_000
    monkeypatch.setattr(server_client, "MAX_ANSWER_BYTES", 1_000)
    with pytest.raises(TeamRefused, match="more than"):
        Bench(httpx2.Response(200, content=b"x" * 1_001)).list()


@pytest.mark.parametrize(
    "told",
    [
        {"checksum": ONE, "content": "another text"},
        {"checksum": ONE, "content": None},
        {"checksum": compute_checksum("x" * 250_001), "content": "x" * 250_001},
        {},
    ],
)
def test_a_text_that_is_not_what_its_checksum_says_is_left_out(told: object) -> None:
    link = Bench(answer(told)).link
    assert asyncio.run(link.pull_bodies([ONE])) == {}


def test_half_a_character_is_no_text() -> None:
    body = json.dumps({"checksum": ONE, "content": "\ud800"}).encode()
    assert asyncio.run(Bench(httpx2.Response(200, content=body)).link.pull_bodies([ONE])) == {}


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (answer({"seq": 4, "versions": {"a.md": 4}}), CommitApplied(4, {TeamKey("a.md"): TeamEntry(4, ONE)})),
        (
            answer({"error": {}, "conflicts": {"a.md": {"version": 2, "checksum": None}}}, 409),
            CommitConflicts({TeamKey("a.md"): TeamEntry(2, None)}),
        ),
        (answer({"error": {}, "missing": [ONE, "junk", 3]}, 422), MissingBodies((ONE,))),
    ],
)
def test_a_commit_is_applied_or_refused_or_wants_its_texts(
    response: httpx2.Response, outcome: object
) -> None:
    assert asyncio.run(Bench(response).link.push_commit(COMMIT)) == outcome


def test_what_the_server_blames_is_told_by_key_without_the_value() -> None:
    found = {"rule": "aws", "name": "AWS key", "line": 3, "fingerprint": "abc"}
    body = {
        "error": {"kind": "secret", "message": "a secret", "try": "", "retry": False},
        "secrets": {ONE: [found]},
    }
    with pytest.raises(TeamRefused) as caught:
        asyncio.run(Bench(answer(body, 422)).link.push_bodies(["one"]))
    assert caught.value.keys == {ONE: "line 3: AWS key (found by the server, fingerprint abc)"}
    assert caught.value.was_never_applied
    with pytest.raises(TeamRefused) as caught:
        asyncio.run(
            Bench(answer({"error": {"message": "bad name"}, "keys": ["a.md"]}, 422)).link.push_commit(COMMIT)
        )
    assert caught.value.keys == {"a.md": "bad name"}


def test_an_answer_to_a_commit_that_leaves_a_key_out_is_no_answer() -> None:
    with pytest.raises(TeamRefused) as caught:
        asyncio.run(Bench(answer({"seq": 4, "versions": {}})).link.push_commit(COMMIT))
    assert not caught.value.was_never_applied, "it may have been applied"


@pytest.mark.parametrize("url", ["https://a.example/", "http://localhost:8070", "http://127.0.0.1:1"])
def test_an_address_is_https_or_this_machine(url: str) -> None:
    assert check_server(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.example", "http://a.example", "https://", "https://a:b@c.example", "x"),
        *(
            "https://:b@c.example",
            "https://a.example/#b",
            "http://localhost.a.example",
            "http://127.0.0.1@a.example",
        ),
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(InputError):
        check_server(url)
