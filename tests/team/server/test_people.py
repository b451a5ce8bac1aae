"""Organisations, members, tokens and devices, over HTTP and on both databases."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.secrets import find_secrets
from sevenfold.team.server.admin_endpoints import LETTERS
from sevenfold.team.server.database import Database, OrgId
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import add_org, find_principal, hash_token, list_tokens, read_token_org
from sevenfold.team.server.policy import ServerLimits
from tests.team.live import MEMORY, Live, serving
from tests.team.team import Team


@pytest.fixture
def team(database: Database) -> Team:
    return Team(database, now_ms=int(time.time() * 1000))


def test_a_token_is_shown_once_and_kept_as_a_hash(team: Team) -> None:
    made = team.add_token("ada", "memory:read")
    rows = team.read(lambda tx: tx.rows("SELECT * FROM token WHERE org = ?", team.org.id))
    assert hash_token(made) in {row[3] for row in rows}
    assert all(made not in str(row) for row in rows)
    assert read_token_org(made) == team.org.id


def test_the_scan_finds_every_credential_that_the_server_makes(live: Live, team: Team) -> None:
    started = live.ask("POST", "/api/v1/device", json={"name": "laptop"})
    asked = {"member": "ada", "scopes": ["memory:read"]}
    made = live.ask("POST", "/api/v1/tokens", team.token, json=asked).json()["token"]
    texts = (f"Use {team.token} here.", f"Use {made} here.", started.text)
    found = [[one.rule for one in find_secrets(text, key=bytes(16)).findings] for text in texts]
    assert found == [["sevenfold-token"], ["sevenfold-token"], ["sevenfold-device-code"]]


def test_a_token_ends_at_its_time(database: Database) -> None:
    clock = ManualClock()
    team = Team(database, now_ms=int(clock.now().timestamp() * 1000))
    with serving(database, clock=clock) as live:
        made = live.ask(
            "POST", "/api/v1/tokens", team.token, json={"member": "ada", "scopes": ["memory:read"], "days": 2}
        ).json()["token"]
        assert live.ask("GET", "/api/v1/whoami", made).status_code == 200
        clock.pass_time(timedelta(days=2) - timedelta(seconds=1))
        assert live.ask("GET", "/api/v1/whoami", made).json()["scopes"] == ["memory:read"]
        clock.pass_time(timedelta(seconds=1))
        assert live.ask("GET", "/api/v1/whoami", made).status_code == 401


def test_a_revoked_token_is_not_taken_any_more(live: Live, team: Team) -> None:
    made = live.ask(
        "POST", "/api/v1/tokens", team.token, json={"member": "ada", "scopes": ["memory:read"]}
    ).json()
    assert live.ask("GET", "/api/v1/repos", made["token"]).status_code == 200
    assert live.ask("DELETE", f"/api/v1/tokens/{made['id']}", team.token).json() == {"done": True}
    assert live.ask("GET", "/api/v1/repos", made["token"]).status_code == 401
    listed = live.ask("GET", "/api/v1/tokens", team.token)
    assert {one["id"]: one["revoked"] for one in listed.json()["tokens"]}[made["id"]]
    assert made["token"] not in listed.text


def test_whoever_is_removed_is_out_at_once_and_the_name_is_free_again(live: Live, team: Team) -> None:
    added = live.ask("POST", "/api/v1/members", team.token, json={"name": "bob", "role": "writer"})
    assert (added.status_code, added.json()["role"]) == (201, "writer")
    token = team.add_token("bob")
    assert live.ask("GET", MEMORY, token, repo=team.repo).status_code == 200
    assert (
        live.ask("POST", "/api/v1/members", team.token, json={"name": "bob", "role": "reader"}).status_code
        == 409
    )
    assert live.ask("DELETE", "/api/v1/members/bob", team.token).status_code == 200
    assert live.ask("GET", MEMORY, token, repo=team.repo).status_code == 401
    assert (
        live.ask("POST", "/api/v1/members", team.token, json={"name": "bob", "role": "reader"}).status_code
        == 201
    )
    names = [one["name"] for one in live.ask("GET", "/api/v1/members", team.token).json()["members"]]
    assert names == ["ada", "bob"]


def test_a_changed_role_holds_at_once(live: Live, team: Team) -> None:
    team.add("bob", "writer")
    token = team.add_token("bob")
    assert live.ask("PUT", MEMORY, token, json={"entries": {"a.md": "x"}}, repo=team.repo).status_code == 200
    assert live.ask("PATCH", "/api/v1/members/bob", team.token, json={"role": "reader"}).status_code == 200
    assert live.ask("PUT", MEMORY, token, json={"entries": {"a.md": "y"}}, repo=team.repo).status_code == 403


def test_an_admin_makes_no_owner_and_touches_none(live: Live, team: Team) -> None:
    team.add("eve", "admin")
    eve = team.add_token("eve")
    asked = [
        live.ask("POST", "/api/v1/members", eve, json={"name": "mallory", "role": "owner"}),
        live.ask("PATCH", "/api/v1/members/eve", eve, json={"role": "owner"}),
        live.ask("PATCH", "/api/v1/members/ada", eve, json={"role": "reader"}),
        live.ask("DELETE", "/api/v1/members/ada", eve),
        live.ask("POST", "/api/v1/tokens", eve, json={"member": "ada", "scopes": ["admin"]}),
        live.ask("DELETE", f"/api/v1/tokens/{team.owner.token}", eve),
    ]
    assert [one.status_code for one in asked] == [403] * 6
    assert live.ask("GET", "/api/v1/whoami", team.token).json()["role"] == "owner"


def test_the_last_owner_stays(live: Live, team: Team) -> None:
    assert live.ask("DELETE", "/api/v1/members/ada", team.token).status_code == 422
    assert live.ask("PATCH", "/api/v1/members/ada", team.token, json={"role": "admin"}).status_code == 422
    team.add("bob", "owner")
    assert live.ask("PATCH", "/api/v1/members/ada", team.token, json={"role": "admin"}).status_code == 200


def test_names_and_scopes_that_are_none_are_refused(live: Live, team: Team) -> None:
    for name in ("", " x", "a\nb", "a\0b", "ä", "x" * 81):
        asked = live.ask("POST", "/api/v1/members", team.token, json={"name": name, "role": "reader"})
        assert asked.status_code == 422
    for scopes in ([], ["root"]):
        asked = live.ask("POST", "/api/v1/tokens", team.token, json={"member": "ada", "scopes": scopes})
        assert asked.status_code == 422
    for days in (0, -1, 5_000):
        asked = live.ask(
            "POST", "/api/v1/tokens", team.token, json={"member": "ada", "scopes": ["admin"], "days": days}
        )
        assert asked.status_code == 422
    assert live.ask("DELETE", "/api/v1/members/no%00body", team.token).status_code in (404, 422)


def test_an_organisations_name_is_taken_once(database: Database, team: Team) -> None:
    with pytest.raises(ApiError, match="already"):
        database.write(None, lambda tx: add_org(tx, OrgId("x"), team.name, 0)).result()


def test_a_token_of_one_organisation_is_looked_for_there_alone(database: Database, team: Team) -> None:
    other = Team(database)
    found = other.read(lambda tx: find_principal(tx, other.org.id, hash_token(team.token), 0))
    assert found is None
    assert [one.member for one in other.read(lambda tx: list_tokens(tx, other.org.id))] == [
        other.owner.member
    ]


def test_a_device_is_signed_in_by_an_admin_and_once(live: Live, team: Team) -> None:
    team.add("bob", "writer")
    started = live.ask("POST", "/api/v1/device", json={"name": "laptop", "org": team.name}).json()
    assert set(started["user_code"]) <= {*LETTERS, "-"}
    poll = {"device_code": started["device_code"]}
    waiting = live.ask("POST", "/api/v1/device/token", json=poll)
    assert (waiting.status_code, waiting.json()["error"]["kind"]) == (400, "pending")
    told = started["user_code"].lower().replace("-", " ")
    approved = live.ask(
        "POST", "/api/v1/device/approve", team.token, json={"user_code": told, "member": "bob"}
    )
    assert approved.json()["name"] == "bob"
    again = live.ask("POST", "/api/v1/device/approve", team.token, json={"user_code": told, "member": "ada"})
    assert again.status_code == 404
    done = live.ask("POST", "/api/v1/device/token", json=poll).json()
    who = live.ask("GET", "/api/v1/whoami", done["token"]).json()
    assert (who["member"], who["scopes"]) == ("bob", ["memory:read", "memory:write"])
    assert live.ask("POST", "/api/v1/device/token", json=poll).json()["error"]["kind"] == "expired"


def test_a_devices_code_ends_and_a_guess_finds_nothing(database: Database) -> None:
    clock = ManualClock()
    team = Team(database, now_ms=int(clock.now().timestamp() * 1000))
    with serving(database, clock=clock) as live:
        started = live.ask("POST", "/api/v1/device", json={"org": team.name}).json()
        assert live.ask("POST", "/api/v1/device/token", json={"device_code": "x"}).status_code == 400
        clock.pass_time(timedelta(minutes=10))
        approved = live.ask(
            "POST",
            "/api/v1/device/approve",
            team.token,
            json={"user_code": started["user_code"], "member": "ada"},
        )
        assert approved.status_code == 404


def test_who_asks_too_often_waits_and_others_do_not(database: Database) -> None:
    clock = ManualClock()
    limits = ServerLimits(token_rate=1, org_rate=100, stranger_rate=1, burst_seconds=3, delay=timedelta())
    noisy, quiet = Team(database), Team(database)
    with serving(database, clock=clock, limits=limits) as live:
        statuses = [live.ask("GET", "/api/v1/whoami", noisy.token).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        refused = live.ask("GET", "/api/v1/whoami", noisy.token)
        assert (refused.headers["retry-after"], refused.json()["error"]["retry"]) == ("1", True)
        assert live.ask("GET", "/api/v1/whoami", quiet.token).status_code == 200
        clock.pass_time(timedelta(seconds=1))
        assert live.ask("GET", "/api/v1/whoami", noisy.token).status_code == 200
        guesses = [live.ask("GET", "/api/v1/whoami", f"{noisy.token[:-1]}!").status_code for _ in range(4)]
        assert guesses == [401, 401, 401, 429]
        assert live.ask("GET", "/api/v1/whoami", quiet.token).status_code == 200


def test_an_organisation_shares_a_limit(database: Database) -> None:
    clock = ManualClock()
    team = Team(database)
    second = team.add_token("ada")
    with serving(database, clock=clock, limits=ServerLimits(org_rate=2, delay=timedelta())) as live:
        statuses = [
            live.ask("GET", "/api/v1/whoami", token).status_code for token in (team.token, second, second)
        ]
        assert statuses == [200, 200, 429]
