"""What a token, a checksum or a code gives, and to whom: nobody gets more than was meant for them."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sevenfold.team.client.ports import choose_copy_key, is_copy_of_text
from sevenfold.team.protocol import Commit, TeamKey, compute_checksum, make_commit_id
from sevenfold.team.server.admin_endpoints import approve_device, start_device
from sevenfold.team.server.backup import restore_backup, write_backup
from sevenfold.team.server.database import Database
from sevenfold.team.server.memory import apply_writer_commit, store_bodies
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import list_orgs
from sevenfold.team.server.policy import AuditLine, read_audit
from sevenfold.team.server.repos import collect_garbage
from tests.team.live import MEMORY, Live
from tests.team.server.conftest import opened
from tests.team.team import NOON, Team, change

DAY_MS = 24 * 3_600_000


@pytest.fixture
def team(database: Database) -> Team:
    return Team(database)


@pytest.mark.parametrize(
    ("own", "wanted", "status"),
    [
        (["admin"], ["memory:read"], 403),
        (["admin"], ["admin", "memory:write"], 403),
        (["admin", "memory:read"], ["memory:read", "memory:write"], 403),
        (["admin"], ["admin"], 201),
        (["admin", "memory:read"], ["memory:read"], 201),
    ],
)
def test_a_token_gives_no_scope_that_it_has_not(
    live: Live, team: Team, own: list[str], wanted: list[str], status: int
) -> None:
    asked = live.ask(
        "POST", "/api/v1/tokens", team.add_token("ada", *own), json={"member": "ada", "scopes": wanted}
    )
    assert asked.status_code == status


def test_nor_through_a_device(live: Live, team: Team) -> None:
    code = team.database.write(None, lambda tx: start_device(tx, "laptop", NOON, team.org.id)).result()
    clerk = team.principal(team.add_token("ada", "admin"))
    with pytest.raises(ApiError, match="has not the scope"):
        team.write(lambda tx: approve_device(tx, clerk, code.user_code, "ada", NOON))
    team.write(lambda tx: approve_device(tx, team.owner, code.user_code, "ada", NOON))


def test_a_body_that_another_has_sent_and_not_committed_cannot_be_published(team: Team) -> None:
    """Its checksum may be guessed from what is likely in it, or be seen in a log."""
    team.send("unsent plan\n")
    other = replace(team.writer, principal=team.add("eve", "writer"))
    changes = (change("a.md", 0, "unsent plan\n"),)
    wanted = Commit(make_commit_id("eve", changes), changes)
    with pytest.raises(ApiError) as refused:
        team.write(lambda tx: apply_writer_commit(tx, other, wanted))
    assert (refused.value.kind, refused.value.extras["missing"]) == (
        "missing",
        [compute_checksum("unsent plan\n")],
    )
    team.write(lambda tx: store_bodies(tx, other, ["unsent plan\n"]))
    assert team.write(lambda tx: apply_writer_commit(tx, other, wanted)).seq == 1
    # What a commit has named is everybody's to name again.
    assert team.commit(change("b.md", 0, "unsent plan\n")).seq == 2
    assert team.read(lambda tx: tx.rows("SELECT * FROM waiting WHERE org = ?", team.org.id)) == []


def test_who_sent_a_body_is_forgotten_with_it(team: Team) -> None:
    team.send("never committed\n")
    later = NOON + 2 * DAY_MS
    team.write(lambda tx: collect_garbage(tx, team.org.id, team.repo, later, team.limits))
    for table in ("waiting", "blob"):
        assert (
            team.read(lambda tx, table=table: tx.rows(f"SELECT * FROM {table} WHERE org = ?", team.org.id))
            == []
        )


def test_two_tokens_in_one_request_are_refused(live: Live, team: Team) -> None:
    good, other = f"Bearer {team.token}", f"Bearer {team.add_token('ada', 'memory:read')}"
    for pair in ((good, other), (other, good), (good, good), ("", good)):
        asked = live.client.get(
            MEMORY, params={"repo": team.repo}, headers=[("authorization", one) for one in pair]
        )
        assert (asked.status_code, asked.json()["error"]["kind"]) == (400, "bad request")


def test_a_body_of_two_lengths_is_refused_and_what_follows_is_no_request(live: Live, team: Team) -> None:
    head = f"host: x\r\nauthorization: Bearer {team.token}\r\n"
    hidden = f"GET /api/v1/whoami HTTP/1.1\r\n{head}\r\n"
    address = urlsplit(live.url)
    body = f"0\r\n\r\n{hidden}"
    for lengths in (
        f"content-length: {len(body)}\r\ntransfer-encoding: chunked\r\n",
        f"transfer-encoding: chunked\r\ncontent-length: {len(body)}\r\n",
    ):
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as connection:
            connection.sendall(
                f"GET {MEMORY}?repo={team.repo} HTTP/1.1\r\n{head}{lengths}\r\n{body}".encode()
            )
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1


def test_two_repositories_in_one_request_are_refused(live: Live, team: Team) -> None:
    bearer = {"authorization": f"Bearer {team.token}"}
    for named in (f"{team.repo}&repo=other", f"other&repo={team.repo}", f"&repo={team.repo}"):
        asked = live.client.get(f"{MEMORY}?repo={named}", headers=bearer)
        assert (asked.status_code, asked.json()["error"]["kind"]) == (400, "bad request")


def test_a_device_is_taken_in_by_the_organisation_that_it_named_and_no_other(live: Live, team: Team) -> None:
    other = Team(team.database)
    begun = live.ask("POST", "/api/v1/device", json={"name": "laptop", "org": team.name}).json()
    approval = {"user_code": begun["user_code"], "member": "ada"}
    assert live.ask("POST", "/api/v1/device/approve", other.token, json=approval).status_code == 404
    assert live.ask("POST", "/api/v1/device/approve", team.token, json=approval).status_code == 200
    signed = live.ask("POST", "/api/v1/device/token", json={"device_code": begun["device_code"]}).json()
    assert signed["org"] == team.org.id


@pytest.mark.parametrize("named", ["", "no such organisation"])
def test_among_several_organisations_one_that_named_none_is_the_operators_to_place(
    live: Live, team: Team, named: str
) -> None:
    Team(team.database)
    begun = live.ask("POST", "/api/v1/device", json={"name": "laptop", "org": named})
    assert begun.status_code == 201
    code = begun.json()["user_code"]
    approval = {"user_code": code, "member": "ada"}
    assert live.ask("POST", "/api/v1/device/approve", team.token, json=approval).status_code == 404
    if named:
        with pytest.raises(ApiError, match="no device waits"):
            team.write(lambda tx: approve_device(tx, team.org.id, code, "ada", 0))
    else:
        assert team.write(lambda tx: approve_device(tx, team.org.id, code, "ada", 0)).name == "ada"


def test_on_a_server_of_one_organisation_a_device_need_not_name_it(empty_url: str) -> None:
    with opened(empty_url) as database:
        team = Team(database)
        code = database.write(None, lambda tx: start_device(tx, "laptop", NOON)).result()
        assert (
            team.write(lambda tx: approve_device(tx, team.owner, code.user_code, "ada", NOON)).name == "ada"
        )


def test_organisations_backups_and_restores_are_in_the_audit_log(empty_url: str, tmp_path: Path) -> None:
    with opened(empty_url) as database:
        teams = [Team(database), Team(database)]
        write_backup(database, tmp_path / "backup", NOON + 1)
        verbs = [[line.verb for line in _log(database, team)] for team in teams]
        assert all(one[0] == "server.backup" and "org.add" in one for one in verbs)
    with opened(f"sqlite:///{tmp_path}/other.db") as database:
        restore_backup(database, tmp_path / "backup", NOON + 2)
        assert len(database.read(None, list_orgs).result()) == 2
        for team in teams:
            lines = _log(database, team)
            assert [line.verb for line in lines[:2]] == ["server.restore", "server.backup"]
            assert {line.member for line in lines[:2]} == {"operator"}


def _log(database: Database, team: Team) -> list[AuditLine]:
    return database.read(team.org.id, lambda tx: read_audit(tx, team.org.id, 100)).result()


def test_a_file_that_is_only_named_like_a_conflict_copy_is_none() -> None:
    checksum = compute_checksum("mine\n")
    copy = choose_copy_key(TeamKey("deploy.md"), checksum, {})
    assert is_copy_of_text(copy, checksum)
    assert not is_copy_of_text("deploy-conflict-deadbeef.md", checksum)
    assert not is_copy_of_text(copy, compute_checksum("another text\n"))
    assert not is_copy_of_text("deploy.md", checksum)
