"""A right that was taken away is gone in the same moment, in every process: each transaction looks."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import cast

import pytest

from sevenfold.team.server import admin_endpoints
from sevenfold.team.server.app_state import ApiRequest, ApiResponse, AppState
from sevenfold.team.server.database import Database
from sevenfold.team.server.http_api import ENDPOINTS, RIGHTS_TRIES
from sevenfold.team.server.people import change_role, remove_member, revoke_token
from sevenfold.team.server.policy import RightsChanged, ServerLimits, TokenId
from tests.team.live import MEMORY, Live, serving
from tests.team.team import Team


@pytest.fixture
def team(database: Database) -> Team:
    return Team(database, now_ms=int(time.time() * 1000))


@pytest.fixture
def other(database: Database) -> Generator[Live]:
    """A second process, as far as the first can tell."""
    with serving(database) as other:
        yield other


def put(live: Live, team: Team, token: str) -> int:
    entries = {"entries": {"a.md": "x"}}
    return live.ask("PUT", MEMORY, token, json=entries, repo=team.repo).status_code


def test_a_token_revoked_in_one_process_is_refused_in_another_at_once(
    live: Live, other: Live, team: Team
) -> None:
    made = team.add_token("ada")
    id_ = TokenId(team.principal(made).token)
    assert [put(one, team, made) for one in (live, other)] == [200, 200]
    assert live.ask("DELETE", f"/api/v1/tokens/{id_}", team.token).status_code == 200
    for path in (f"{MEMORY}?repo={team.repo}", "/api/v1/whoami", "/api/v1/repos"):
        assert other.ask("GET", path, made).status_code == 401
    tagged = other.ask("GET", MEMORY, made, headers={"if-none-match": '"1"'}, repo=team.repo)
    assert tagged.status_code == 401
    assert [put(one, team, made) for one in (live, other)] == [401, 401]


def test_what_an_operator_does_beside_the_server_counts_at_once(live: Live, team: Team) -> None:
    team.add("bob", "writer")
    token = team.add_token("bob")
    assert put(live, team, token) == 200
    team.write(lambda tx: change_role(tx, team.org.id, "bob", "reader", team.now_ms))
    assert put(live, team, token) == 403
    assert live.ask("GET", "/api/v1/whoami", token).json()["role"] == "reader"
    team.write(lambda tx: change_role(tx, team.org.id, "bob", "writer", team.now_ms))
    assert put(live, team, token) == 200
    team.write(lambda tx: remove_member(tx, team.org.id, "bob", team.now_ms))
    assert put(live, team, token) == 401


def test_a_token_that_was_good_is_looked_up_though_others_of_its_address_guess(database: Database) -> None:
    """One broken laptop behind the same proxy must not lock the office out."""
    team = Team(database, now_ms=int(time.time() * 1000))
    with serving(database, limits=ServerLimits(stranger_rate=1, burst_seconds=2)) as live:
        assert put(live, team, team.token) == 200
        wrong = [live.ask("GET", "/api/v1/whoami", "x").status_code for _ in range(4)]
        assert wrong == [401, 401, 429, 429]
        assert put(live, team, team.token) == 200
        made = team.add_token("ada")
        team.write(lambda tx: revoke_token(tx, team.org.id, team.owner.token, team.now_ms))
        assert put(live, team, team.token) == 429  # unknown by now, so not looked for again
        assert put(live, team, made) == 429


@pytest.mark.parametrize(("moves", "status"), [(RIGHTS_TRIES - 1, 200), (RIGHTS_TRIES, 503)])
def test_rights_that_move_while_a_request_is_under_way_are_looked_up_anew(
    live: Live, team: Team, monkeypatch: pytest.MonkeyPatch, moves: int, status: int
) -> None:
    left = iter(range(moves))

    async def move_first(desk: AppState, call: ApiRequest) -> ApiResponse:
        if next(left, None) is not None:
            raise RightsChanged
        return await admin_endpoints.handle_whoami(desk, call)

    monkeypatch.setitem(cast("dict[str, object]", ENDPOINTS), "whoami", move_first)
    assert live.ask("GET", "/api/v1/whoami", team.token).status_code == status
