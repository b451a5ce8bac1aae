"""The memory over HTTP, on both databases: what a client in any language meets."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from sevenfold.team.protocol import compute_checksum
from sevenfold.team.server.database import Database
from tests.team.live import MEMORY, Live
from tests.team.team import Team


@pytest.fixture
def team(database: Database) -> Team:
    return Team(database, now_ms=int(time.time() * 1000))


def test_texts_that_were_put_come_back_with_versions_checksums_and_an_etag(live: Live, team: Team) -> None:
    put = live.ask(
        "PUT", MEMORY, team.token, json={"entries": {"a.md": "one", "b/c.md": "two"}}, repo=team.repo
    )
    assert (put.status_code, put.json(), put.headers["etag"]) == (
        200,
        {"seq": 1, "versions": {"a.md": 1, "b/c.md": 1}},
        '"1"',
    )
    got = live.ask("GET", MEMORY, team.token, repo=team.repo)
    assert got.headers["etag"] == '"1"'
    assert got.json() == {
        "repo": team.repo,
        "seq": 1,
        "floor": 0,
        "entries": {
            "a.md": {"version": 1, "checksum": compute_checksum("one"), "content": "one", "author": "ada"},
            "b/c.md": {"version": 1, "checksum": compute_checksum("two"), "content": "two", "author": "ada"},
        },
        "deleted": {},
        "lost": [],
        "tag": got.json()["tag"],
    }


def test_hashes_come_without_texts(live: Live, team: Team) -> None:
    team.put({"a.md": "one"})
    got = live.ask("GET", MEMORY, team.token, repo=team.repo, view="hashes")
    assert got.json()["entries"] == {
        "a.md": {"version": 1, "checksum": compute_checksum("one"), "author": "ada"}
    }


@pytest.mark.parametrize(
    ("tag", "status"), [('"1"', 304), ('W/"1"', 304), ('"0", "1"', 304), ('"0"', 200), ("x", 200)]
)
def test_who_has_seen_it_is_told_that_nothing_changed(live: Live, team: Team, tag: str, status: int) -> None:
    team.put({"a.md": "one"})
    got = live.ask("GET", MEMORY, team.token, headers={"if-none-match": tag}, repo=team.repo)
    assert (got.status_code, got.headers["etag"]) == (status, '"1"')
    assert (got.content == b"") == (status == 304)


def test_who_is_behind_gets_412_and_where_the_repository_is(live: Live, team: Team) -> None:
    team.put({"a.md": "one"})
    put = live.ask(
        "PUT",
        MEMORY,
        team.token,
        json={"entries": {"a.md": "two"}},
        headers={"if-match": '"0"'},
        repo=team.repo,
    )
    assert (put.status_code, put.json()["seq"], put.json()["error"]["kind"]) == (412, 1, "stale")
    put = live.ask(
        "PUT",
        MEMORY,
        team.token,
        json={"entries": {"a.md": "two"}},
        headers={"if-match": '"1"'},
        repo=team.repo,
    )
    assert put.status_code == 200


def test_bodies_then_a_commit_then_a_conflict(live: Live, team: Team) -> None:
    sent = live.ask("POST", f"{MEMORY}/bodies", team.token, json={"bodies": ["one", "two"]}, repo=team.repo)
    assert sent.json() == {"checksums": [compute_checksum("one"), compute_checksum("two")]}
    commit = {"id": "x1", "changes": [{"key": "a.md", "expected": 0, "checksum": compute_checksum("one")}]}
    for _ in range(2):
        made = live.ask("POST", f"{MEMORY}/commit", team.token, json=commit, repo=team.repo)
        assert (made.status_code, made.json()) == (200, {"seq": 1, "versions": {"a.md": 1}})
    late = {"id": "x2", "changes": [{"key": "a.md", "expected": 0, "checksum": compute_checksum("two")}]}
    refused = live.ask("POST", f"{MEMORY}/commit", team.token, json=late, repo=team.repo)
    assert refused.status_code == 409
    assert refused.json()["conflicts"] == {"a.md": {"version": 1, "checksum": compute_checksum("one")}}
    gone = {"id": "x3", "changes": [{"key": "a.md", "expected": 1, "checksum": None}]}
    assert live.ask("POST", f"{MEMORY}/commit", team.token, json=gone, repo=team.repo).json()["seq"] == 2
    assert live.ask("GET", MEMORY, team.token, repo=team.repo).json()["deleted"] == {"a.md": {"version": 2}}
    body = live.ask("GET", f"{MEMORY}/bodies/{compute_checksum('one')}", team.token, repo=team.repo)
    assert body.json() == {"checksum": compute_checksum("one"), "content": "one"}
    assert live.ask("GET", f"{MEMORY}/bodies/nothing", team.token, repo=team.repo).status_code == 404


def test_a_body_that_is_missing_is_named(live: Live, team: Team) -> None:
    commit = {"id": "x", "changes": [{"key": "a.md", "expected": 0, "checksum": compute_checksum("never")}]}
    refused = live.ask("POST", f"{MEMORY}/commit", team.token, json=commit, repo=team.repo)
    assert (refused.status_code, refused.json()["missing"]) == (422, [compute_checksum("never")])


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_a_secret_is_stopped_with_rule_and_line_and_its_value_is_nowhere(live: Live, team: Team) -> None:
    text = f"# notes\n\nuse {SECRET} for now\n"
    before = len(live.lines)
    put = live.ask(
        "PUT", MEMORY, team.token, json={"entries": {"a.md": text, "b.md": "fine"}}, repo=team.repo
    )
    assert (put.status_code, put.json()["error"]["kind"]) == (422, "secret")
    [found] = put.json()["secrets"]["a.md"]
    assert found["line"] == 3
    assert SECRET not in put.text
    assert all(SECRET not in line for line in live.lines[before:])
    sent = live.ask("POST", f"{MEMORY}/bodies", team.token, json={"bodies": [text]}, repo=team.repo)
    assert list(sent.json()["secrets"]) == [compute_checksum(text)]
    assert team.contents().entries == {}


def test_a_secret_in_two_halves_is_stopped_too(live: Live, team: Team) -> None:
    halves = [f"begin {SECRET[:20]}", f"{SECRET[20:]} end"]
    sent = live.ask("POST", f"{MEMORY}/bodies", team.token, json={"bodies": halves}, repo=team.repo)
    assert (sent.status_code, list(sent.json()["secrets"])) == (422, ["all together"])


def test_a_secret_in_words_that_are_no_memory_is_stopped_too(live: Live, team: Team) -> None:
    asked = [
        live.ask("POST", "/api/v1/repos", team.token, json={"name": "a/b", "remote": remote})
        for remote in (f"https://x:{SECRET}@github.com/a/b", "https://ada:hunter2hunter2@git.example/a/b")
    ]
    reason = {"fingerprint": "0" * 20, "reason": f"it is only {SECRET}"}
    asked.append(live.ask("POST", "/api/v1/allowances", team.token, json=reason))
    for one in asked:
        assert (one.status_code, one.json()["error"]["kind"]) == (422, "secret")
        assert SECRET not in one.text
    assert [one["name"] for one in live.ask("GET", "/api/v1/repos", team.token).json()["repos"]] == [
        "acme/app"
    ]


def test_a_secret_in_the_name_of_a_memory_is_stopped(live: Live, team: Team) -> None:
    key = "notes/shpat_" + "12f12fa5a2bcc9b86ad340c251bec1d1.md"
    put = live.ask("PUT", MEMORY, team.token, json={"entries": {key: "fine"}}, repo=team.repo)
    commit = {"id": "x", "changes": [{"key": key, "expected": 0, "checksum": compute_checksum("fine")}]}
    made = live.ask("POST", f"{MEMORY}/commit", team.token, json=commit, repo=team.repo)
    for one in (put, made):
        assert (one.status_code, list(one.json()["secrets"])) == (422, ["the names"])


def test_an_admin_allows_a_finding_with_a_reason(live: Live, team: Team) -> None:
    def put() -> dict[str, object]:
        return live.ask("PUT", MEMORY, team.token, json={"entries": {"a.md": SECRET}}, repo=team.repo).json()

    told = json.loads(json.dumps(put()))["secrets"]["a.md"][0]["fingerprint"]
    allowed = live.ask(
        "POST", "/api/v1/allowances", team.token, json={"fingerprint": told, "reason": "a vendor's example"}
    )
    assert allowed.status_code == 201
    assert put()["seq"] == 1


def test_a_large_file_travels_alone(live: Live, team: Team) -> None:
    large = "word " * 49_000
    alone = live.ask("PUT", MEMORY, team.token, json={"entries": {"a.md": large}}, repo=team.repo)
    assert alone.status_code == 200
    both = live.ask("PUT", MEMORY, team.token, json={"entries": {"a.md": large, "b.md": "x"}}, repo=team.repo)
    assert (both.status_code, both.json()["error"]["kind"]) == (413, "too large")
    huge = live.ask("PUT", MEMORY, team.token, json={"entries": {"a.md": "x" * 250_001}}, repo=team.repo)
    assert huge.status_code == 413


def test_a_body_may_be_gzipped_and_a_bomb_is_stopped(live: Live, team: Team) -> None:
    def send(raw: bytes, encoding: str = "gzip") -> int:
        headers = {"content-encoding": encoding, "content-type": "application/json"}
        return live.ask("PUT", MEMORY, team.token, content=raw, headers=headers, repo=team.repo).status_code

    plain = json.dumps({"entries": {"a.md": "one"}}).encode()
    assert send(gzip.compress(plain)) == 200
    assert send(gzip.compress(b"0" * 10_000_000)) == 413
    assert send(gzip.compress(plain)[:-4]) == 400
    assert send(gzip.compress(plain) + b"more") == 400
    assert send(b"no gzip") == 400
    assert send(plain, "br") == 415
    assert send(b"x" * 2_000_000, "identity") == 413


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"entries": {"a.md": "\\ud800"}}', 400),
        (b'{"entries": {"a.md": "\xff"}}', 400),
        (b"[" * 100_000, 400),
        (b'{"entries": {"a.md": 1}}', 422),
        (b'{"entries": []}', 422),
        (b"{}", 422),
        (b'{"entries": {}}', 422),
        (b'{"entries": {"A.md": "x"}}', 422),
    ],
)
def test_what_cannot_be_read_is_refused_and_not_a_bug(
    live: Live, team: Team, raw: bytes, status: int
) -> None:
    got = live.ask(
        "PUT", MEMORY, team.token, content=raw, headers={"content-type": "application/json"}, repo=team.repo
    )
    assert got.status_code in ({status, 422} if status == 400 else {status}), got.text
    assert set(got.json()["error"]) == {"kind", "message", "try", "retry"}


def test_other_content_is_not_read(live: Live, team: Team) -> None:
    got = live.ask(
        "PUT", MEMORY, team.token, content=b"a: b", headers={"content-type": "text/yaml"}, repo=team.repo
    )
    assert got.status_code == 415


def test_requests_without_a_repository_or_with_a_strange_one(live: Live, team: Team) -> None:
    assert live.ask("GET", MEMORY, team.token).status_code == 400
    for repo in ("nothing", "../x", "a\0b", "Ä", "x" * 1000):
        assert live.ask("GET", MEMORY, team.token, repo=repo).status_code == 404
    for view in ("all", ""):
        assert live.ask("GET", MEMORY, team.token, repo=team.repo, view=view).status_code == 400


def test_paths_and_methods_that_are_not_there_are_told_in_the_same_shape(live: Live) -> None:
    assert live.ask("GET", "/api/v2").json()["error"]["kind"] == "not found"
    deleted = live.ask("DELETE", MEMORY)
    assert (deleted.status_code, deleted.json()["error"]["kind"]) == (405, "method")
    assert "GET" in deleted.headers["allow"] or "PUT" in deleted.headers["allow"]


def test_health_and_metrics_need_no_token_and_name_nobody(live: Live, team: Team) -> None:
    team.put({"a.md": "one"})
    live.ask("GET", MEMORY, team.token, repo=team.repo)
    assert live.ask("GET", "/healthz").json() == {"status": "ok"}
    assert live.ask("GET", "/readyz").json() == {"status": "ok"}
    told = live.ask("GET", "/metrics").text
    assert 'sevenfold_requests_total{operation="read_memory",status="200"}' in told
    assert team.repo not in told
    assert team.org.id not in told


def test_each_request_leaves_a_line_that_says_who_and_what_but_not_which_words(
    live: Live, team: Team
) -> None:
    entries = {"entries": {"plan-to-buy-globex.md": "the words of a memory"}}
    got = live.ask("PUT", MEMORY, team.token, json=entries, repo=team.repo)
    line = next(line for line in live.lines if got.headers["x-request-id"] in line)
    told = json.loads(line)
    assert (told["operation"], told["status"], told["repo"]) == ("put_memory", 200, team.repo)
    assert (told["org"], told["member"], told["token"]) == (team.org.id, team.owner.member, team.owner.token)
    assert "words" not in line
    assert "globex" not in line
    assert team.token not in line


def test_the_audit_says_who_changed_how_much_and_not_which_words(live: Live, team: Team) -> None:
    live.ask("PUT", MEMORY, team.token, json={"entries": {"a.md": "secret words"}}, repo=team.repo)
    got = live.ask("GET", "/api/v1/audit", team.token, limit="1")
    [line] = got.json()["lines"]
    assert (line["verb"], line["repo"], line["member"]) == ("memory.upsert", team.repo, team.owner.member)
    assert line["detail"] == "1 changed, 0 of them deleted, at 1"
    assert "secret words" not in got.text
    assert live.ask("GET", "/api/v1/audit", team.token, limit="0").status_code == 400


def test_the_audit_is_read_page_by_page_with_no_line_left_out(live: Live, database: Database) -> None:
    team = Team(database)  # all of it in one millisecond
    for number in range(5):
        team.put({"a.md": f"text {number}"})
    whole = live.ask("GET", "/api/v1/audit", team.token).json()["lines"]
    paged, before = [], str(team.now_ms + 1)
    while page := live.ask("GET", "/api/v1/audit", team.token, limit="3", before=before).json()["lines"]:
        paged += page
        before = page[-1]["id"]
    assert paged == whole
    assert len({line["at"] for line in whole}) == 1
    assert live.ask("GET", "/api/v1/audit", team.token, before=str(team.now_ms)).json()["lines"] == []
    for wrong in ("0", "x", "-1", "1" * 16, before.upper() + "0"):
        assert live.ask("GET", "/api/v1/audit", team.token, before=wrong).status_code == 400


def test_the_name_of_a_device_shows_as_it_is_on_a_terminal(live: Live, team: Team) -> None:
    name = "Ada's\x1b[2J\x00 laptop\n" + "x" * 100
    started = live.ask("POST", "/api/v1/device", json={"name": name, "org": team.name}).json()
    approval = {"user_code": started["user_code"], "member": "ada"}
    assert live.ask("POST", "/api/v1/device/approve", team.token, json=approval).status_code == 200
    [line] = live.ask("GET", "/api/v1/audit", team.token, limit="1").json()["lines"]
    assert line["detail"].startswith("Ada's??2J? laptop?xxx")
    assert len(line["detail"]) == 80 + len(" for ada")


def test_a_request_without_texts_is_small(live: Live, team: Team) -> None:
    for path, token in (("/api/v1/device", None), ("/api/v1/repos", team.token)):
        got = live.ask("POST", path, token, json={"name": "x" * 33_000})
        assert (got.status_code, got.json()["error"]["kind"]) == (413, "too large")
