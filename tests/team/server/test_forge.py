"""A repository is claimed by an admin's word or the forge's, never by a string."""

from __future__ import annotations

import asyncio
import json
import time

import httpx2
import pytest

from sevenfold.team.server.database import Database
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.repos import Forge, fetch_over_http, read_remote
from tests.team.live import Live, serving
from tests.team.team import Team
from tests.torture.endpoint_stage import serve_harm


class FakeForge:
    """Knows one repository, and one credential that may push to it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.said: dict[str, bytes] = {
            "pusher": json.dumps({"id": 42, "full_name": "acme/app", "permissions": {"push": True}}).encode(),
            "reader": json.dumps(
                {"id": 42, "full_name": "acme/app", "permissions": {"push": False}}
            ).encode(),
            "odd": b"[]",
            "none": b"no json",
            "thin": b'{"id": "42"}',
        }

    async def fetch(self, url: str, credential: str) -> bytes | None:
        self.asked.append(url)
        return self.said.get(credential)


def prove(live: Live, team: Team, remote: str, credential: str) -> httpx2.Response:
    body = {"remote": remote, "credential": credential}
    return live.ask("POST", "/api/v1/repos/proof", team.token, json=body)


def test_who_may_push_claims_the_repository_under_the_forges_own_name_and_number(database: Database) -> None:
    forge, team = FakeForge(), Team(database, now_ms=int(time.time() * 1000))
    forge.said["new"] = json.dumps({"id": 7, "full_name": "acme/new", "permissions": {"push": True}}).encode()
    with serving(database, forge=Forge("git.example.org", forge.fetch)) as live:
        got = prove(live, team, "https://git.example.org/acme/old.git", "new")
        assert (got.status_code, got.json()["name"]) == (201, "acme/new")
        assert got.json()["proof"] == "git.example.org#7"
        # It has another name by now, and the forge's word counts.
        assert forge.asked == ["https://git.example.org/api/v1/repos/acme/old"]
        assert prove(live, team, "https://git.example.org/acme/old", "new").status_code == 409
        # Renamed once more, it is still the same, and its memory does not begin anew.
        forge.said["new"] = forge.said["new"].replace(b"acme/new", b"acme/newest")
        again = prove(live, team, "https://git.example.org/acme/newest", "new")
        assert (again.status_code, "claimed already, as acme/new" in again.text) == (409, True)


@pytest.mark.parametrize("credential", ["reader", "odd", "none", "thin", "unknown"])
def test_who_may_not_push_claims_nothing(database: Database, credential: str) -> None:
    forge, team = FakeForge(), Team(database, now_ms=int(time.time() * 1000))
    with serving(database, forge=Forge("github.com", forge.fetch)) as live:
        assert prove(live, team, "https://github.com/acme/app", credential).status_code == 422


def test_another_host_is_asked_nothing(database: Database) -> None:
    forge, team = FakeForge(), Team(database, now_ms=int(time.time() * 1000))
    with serving(database, forge=Forge("github.com", forge.fetch)) as live:
        assert prove(live, team, "https://evil.example/acme/app", "pusher").status_code == 422
    assert forge.asked == []


def test_without_a_forge_there_is_no_proof(live: Live, database: Database) -> None:
    team = Team(database, now_ms=int(time.time() * 1000))
    assert prove(live, team, "https://github.com/acme/app", "pusher").status_code == 422


@pytest.mark.parametrize(
    "remote",
    [
        *("", "github.com/a/b", "http://github.com/a/b", "https://github.com/a", "https://github.com/a/b/c"),
        *(
            "https://user:pw@github.com/a/b",
            "https://github.com/../b",
            "https://github.com/a/..",
            "file:///a/b",
        ),
        *("https://github.com/a/b?x=1", "https://github.com/a/b#c", "https://github.com/a/%2e%2e", "a\nb"),
    ],
)
def test_a_remote_with_a_trick_in_it_is_refused(remote: str) -> None:
    with pytest.raises(ApiError):
        read_remote(remote)


def test_a_claimed_name_is_taken_once_in_an_organisation_and_free_in_others(
    live: Live, database: Database
) -> None:
    now_ms = int(time.time() * 1000)
    ours, theirs = Team(database, now_ms=now_ms), Team(database, now_ms=now_ms)
    claim = {"name": "acme/tool", "remote": "git@github.com:acme/tool.git"}
    first = live.ask("POST", "/api/v1/repos", ours.token, json=claim)
    assert (first.status_code, first.json()["proof"]) == (201, "admin")
    assert live.ask("POST", "/api/v1/repos", ours.token, json=claim).status_code == 409
    second = live.ask("POST", "/api/v1/repos", theirs.token, json=claim)
    assert second.status_code == 201
    assert second.json()["id"] != first.json()["id"]
    listed = live.ask("GET", "/api/v1/repos", ours.token).json()["repos"]
    assert {one["name"]: one["remote"] for one in listed}["acme/tool"] == claim["remote"]


@pytest.mark.parametrize("harm", ["bomb", "endless-text", "one-line", "redirect", "brotli"])
def test_a_forge_that_sends_without_end_proves_nothing(harm: str) -> None:
    async def ask() -> tuple[bytes | None, int, int]:
        async with serve_harm() as endpoint:
            got = await fetch_over_http(endpoint.url(harm), "credential")
            return got, endpoint.sent_bytes[harm], len(endpoint.strayed)

    got, sent, strayed = asyncio.run(ask())
    assert got is None
    assert sent < 20_000_000
    assert strayed == 0
