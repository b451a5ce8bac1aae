"""A team on a database: an organisation, its people and a repository, made as the commands make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from sevenfold.team.protocol import (
    Commit,
    CommitApplied,
    RepoId,
    TeamChange,
    TeamKey,
    compute_checksum,
    make_commit_id,
)
from sevenfold.team.server.commits import WriteContext
from sevenfold.team.server.database import Database, OrgId, Tx
from sevenfold.team.server.memory import (
    RepoContents,
    apply_writer_commit,
    read_contents,
    store_bodies,
    upsert_texts,
)
from sevenfold.team.server.people import (
    Org,
    add_member,
    add_org,
    add_token,
    find_principal,
    hash_token,
    new_row_id,
)
from sevenfold.team.server.policy import TOKEN_SCOPES, MemberRole, Principal, ServerLimits
from sevenfold.team.server.repos import claim_repo

T = TypeVar("T")

_NUMBERS = count(1)
"""Teams share a database, as they would."""

NOON = 1_800_000_000_000
"""Some moment, in milliseconds."""


@dataclass(slots=True)
class Team:
    database: Database
    name: str = field(default_factory=lambda: f"acme {next(_NUMBERS)}")
    limits: ServerLimits = field(default_factory=ServerLimits)
    now_ms: int = NOON
    org: Org = field(init=False)
    owner: Principal = field(init=False)
    repo: RepoId = field(init=False)
    token: str = field(init=False)

    def __post_init__(self) -> None:
        id_ = OrgId(new_row_id())
        self.org = self.database.write(id_, lambda tx: add_org(tx, id_, self.name, self.now_ms)).result()
        self.write(lambda tx: add_member(tx, self.org.id, "ada", "owner", self.now_ms))
        self.token = self.add_token("ada")
        self.owner = self.principal(self.token)
        self.repo = self.claim("acme/app")

    def write(self, work: Callable[[Tx], T]) -> T:
        return self.database.write(self.org.id, work).result()

    def read(self, work: Callable[[Tx], T]) -> T:
        return self.database.read(self.org.id, work).result()

    def add(self, name: str, role: MemberRole) -> Principal:
        self.write(lambda tx: add_member(tx, self.org.id, name, role, self.now_ms))
        return self.principal(self.add_token(name))

    def add_token(self, member: str, *scopes: str) -> str:
        wanted = scopes or TOKEN_SCOPES
        return self.write(lambda tx: add_token(tx, self.org.id, member, wanted, self.now_ms, lasts=None)).text

    def principal(self, token: str) -> Principal:
        found = self.read(lambda tx: find_principal(tx, self.org.id, hash_token(token), self.now_ms))
        assert found is not None
        return found

    def claim(self, name: str) -> RepoId:
        return self.write(
            lambda tx: claim_repo(tx, self.org.id, name, "", "admin", self.now_ms, self.limits)
        ).id

    @property
    def writer(self) -> WriteContext:
        return WriteContext(self.owner, self.repo, self.now_ms, self.limits)

    def send(self, *bodies: str) -> None:
        self.write(lambda tx: store_bodies(tx, self.writer, bodies))

    def commit(self, *changes: TeamChange, id_: str | None = None) -> CommitApplied:
        wanted = Commit(make_commit_id("laptop", changes), changes)
        if id_ is not None:
            wanted = Commit(type(wanted.id)(id_), changes)
        return self.write(lambda tx: apply_writer_commit(tx, self.writer, wanted))

    def put(self, texts: Mapping[str, str], if_match: frozenset[str] | None = None) -> CommitApplied:
        return self.write(lambda tx: upsert_texts(tx, self.writer, texts, if_match))

    def contents(self) -> RepoContents:
        return self.read(lambda tx: read_contents(tx, self.owner, self.repo, bodies=True))

    def texts(self) -> dict[str, str | None]:
        return {str(key): entry.content for key, entry in self.contents().entries.items()}


def change(key: str, expected: int, text: str | None) -> TeamChange:
    return TeamChange(TeamKey(key), expected, None if text is None else compute_checksum(text))
