"""Who may do what: every tenant, role, set of scopes and operation, over HTTP, from the table itself."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import combinations

import pytest

from sevenfold.team.protocol import compute_checksum
from sevenfold.team.server.database import Database
from sevenfold.team.server.operations import OPERATIONS, Operation
from sevenfold.team.server.people import list_tokens
from sevenfold.team.server.policy import (
    ACCESS_RULES,
    MEMBER_ROLES,
    TOKEN_SCOPES,
    MemberRole,
    TokenScope,
    is_allowed,
)
from tests.team.live import Live, serving
from tests.team.team import Team

GUARDED = [one for one in OPERATIONS if one.verb is not None]
SCOPE_SETS = [frozenset(some) for size in (1, 2, 3) for some in combinations(TOKEN_SCOPES, size)]

ASKED: Mapping[str, object] = {
    "put_memory": {"entries": {"a.md": "text"}},
    "send_bodies": {"bodies": ["text"]},
    "commit": {"id": "x", "changes": [{"key": "z.md", "expected": 9, "checksum": None}]},
    "check_known": {"entries": [{"key": "z.md", "version": 9, "checksum": None}]},
    "claim_repo": {"name": "!"},
    "prove_repo": {"remote": "!", "credential": "x"},
    "add_member": {"name": "!", "role": "reader"},
    "change_member": {"role": "?"},
    "add_token": {"member": "nobody", "scopes": ["admin"]},
    "approve_device": {"user_code": "x", "member": "y"},
    "allow_finding": {"fingerprint": "x", "reason": "y"},
}
"""A body for each operation that takes one: understood, and mostly without effect."""

VALID: Mapping[str, object] = {**ASKED, "change_member": {"role": "reader"}}


@dataclass(frozen=True, slots=True)
class Crowd:
    live: Live
    team: Team
    stranger: Team
    tokens: Mapping[MemberRole, Mapping[frozenset[TokenScope], str]]


@pytest.fixture(scope="module")
def crowd(database: Database) -> Generator[Crowd]:
    now_ms = int(time.time() * 1000)
    team, stranger = Team(database, now_ms=now_ms), Team(database, now_ms=now_ms)
    tokens: dict[MemberRole, dict[frozenset[TokenScope], str]] = {}
    for role in MEMBER_ROLES:
        team.add(f"the {role}", role)
        tokens[role] = {scopes: team.add_token(f"the {role}", *scopes) for scopes in SCOPE_SETS}
    with serving(database) as live:
        yield Crowd(live, team, stranger, tokens)


def ask(crowd: Crowd, operation: Operation, token: str | None, repo: str) -> int:
    path = operation.path.format(checksum=compute_checksum("nothing"), member="nobody", id="nothing")
    path += f"?repo={repo}" if operation.needs_repo else ""
    return crowd.live.ask(operation.method, path, token, json=ASKED.get(operation.name)).status_code


@pytest.mark.parametrize("role", MEMBER_ROLES)
@pytest.mark.parametrize("operation", GUARDED, ids=lambda one: one.name)
def test_an_operation_is_refused_exactly_where_the_table_says_so(
    crowd: Crowd, operation: Operation, role: MemberRole
) -> None:
    assert operation.verb is not None
    for scopes, token in crowd.tokens[role].items():
        status = ask(crowd, operation, token, crowd.team.repo)
        assert (status == 403) == (not is_allowed(role, scopes, operation.verb)), (sorted(scopes), status)
        assert status != 401
        assert status < 500


@pytest.mark.parametrize("operation", GUARDED, ids=lambda one: one.name)
def test_without_a_good_token_nothing_is_told(crowd: Crowd, operation: Operation) -> None:
    good = crowd.team.token
    moved = good.replace(crowd.team.org.id, crowd.stranger.org.id)
    for token in (None, "x", good[:-1], f"{good}x", good.swapcase(), moved):
        assert ask(crowd, operation, token, crowd.team.repo) == 401


@pytest.mark.parametrize("operation", [one for one in GUARDED if one.needs_repo], ids=lambda one: one.name)
def test_another_organisations_repository_is_not_there_for_any_role(
    crowd: Crowd, operation: Operation
) -> None:
    for role in MEMBER_ROLES:
        status = ask(crowd, operation, crowd.tokens[role][frozenset(TOKEN_SCOPES)], crowd.stranger.repo)
        assert operation.verb is not None
        assert status == (404 if is_allowed(role, frozenset(TOKEN_SCOPES), operation.verb) else 403)
    assert crowd.stranger.contents().seq == 0


def foreign(crowd: Crowd) -> Mapping[str, str]:
    """What another organisation has, by the name that it has in a path, a query or a body."""
    return {
        "checksum": compute_checksum("theirs"),
        "member": crowd.stranger.owner.member,
        "id": crowd.stranger.owner.token,
        "repo": crowd.stranger.repo,
    }


ABSENT = {"checksum": compute_checksum("nobody's"), "member": "0" * 16, "id": "0" * 16, "repo": "0" * 16}


@pytest.mark.parametrize(
    "operation", [one for one in GUARDED if one.path_params or one.needs_repo], ids=lambda one: one.name
)
def test_what_another_organisation_has_is_answered_as_what_never_was(
    crowd: Crowd, operation: Operation
) -> None:
    crowd.stranger.put({"theirs.md": "theirs"})
    before = crowd.stranger.read(lambda tx: list_tokens(tx, crowd.stranger.org.id))

    def answer(names: Mapping[str, str]) -> tuple[int, str]:
        own = {**names, "repo": crowd.team.repo} if operation.path_params else names
        path = operation.path.format(**own)
        path += f"?repo={own['repo']}" if operation.needs_repo else ""
        got = crowd.live.ask(operation.method, path, crowd.team.token, json=VALID.get(operation.name))
        text = got.text
        for name in names.values():
            text = text.replace(name, "NAME")
        return got.status_code, text

    told = answer(foreign(crowd))
    assert told == answer(ABSENT)
    assert told[0] == 404
    assert crowd.stranger.read(lambda tx: list_tokens(tx, crowd.stranger.org.id)) == before
    assert crowd.stranger.texts() == {"theirs.md": "theirs"}


@pytest.mark.parametrize("name", ["add_token", "approve_device"])
def test_a_member_of_another_organisation_is_given_nothing(crowd: Crowd, name: str) -> None:
    [operation] = [one for one in OPERATIONS if one.name == name]
    code = crowd.live.ask("POST", "/api/v1/device", json={"org": crowd.team.name}).json()["user_code"]
    for member in (crowd.stranger.owner.member, ABSENT["member"]):
        body = {"member": member, "scopes": ["memory:read"], "user_code": code}
        got = crowd.live.ask(operation.method, operation.path, crowd.team.token, json=body)
        assert (got.status_code, got.json()["error"]["kind"]) == (404, "not found")


def test_each_operation_that_takes_a_body_is_asked_with_one() -> None:
    """A new operation has to be added to the table above before its rights count as tried."""
    assert set(ASKED) == {one.name for one in GUARDED if one.takes is not None}


def test_every_right_is_used_by_an_operation_and_every_operation_has_one() -> None:
    assert {one.verb for one in GUARDED} == set(ACCESS_RULES)
    assert [one.name for one in OPERATIONS if one.verb is None] == [
        *("start_device", "poll_device", "is_alive", "is_ready", "metrics")
    ]


def test_a_reader_never_writes_and_only_those_who_run_it_administer() -> None:
    everything = frozenset(TOKEN_SCOPES)
    assert not is_allowed("reader", everything, "memory.write")
    for verb, rule in ACCESS_RULES.items():
        if rule.scope == "admin":
            assert {role for role in MEMBER_ROLES if is_allowed(role, everything, verb)} == {"owner", "admin"}
            assert not is_allowed("owner", frozenset({"memory:read", "memory:write"}), verb)
