"""What goes over the wire, as values; and `ApiError`, the one form of every refusal.

`docs/openapi.json` describes these values, and `http_api` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class EntriesSent:
    entries: dict[str, str]


@dataclass(frozen=True, slots=True)
class BodiesSent:
    bodies: list[str]


@dataclass(frozen=True, slots=True)
class ChangeSent:
    key: str
    expected: int
    checksum: str | None
    seen: str = ""
    """The checksum at that version, or `deleted`; empty: not told."""


@dataclass(frozen=True, slots=True)
class CommitSent:
    id: str
    changes: list[ChangeSent]


@dataclass(frozen=True, slots=True)
class VersionSent:
    """What a device and the server agreed on once."""

    key: str
    version: int
    checksum: str | None


@dataclass(frozen=True, slots=True)
class VersionsSent:
    entries: list[VersionSent]


@dataclass(frozen=True, slots=True)
class ClaimSent:
    name: str
    remote: str = ""


@dataclass(frozen=True, slots=True)
class ProofSent:
    remote: str
    credential: str
    """A token of the forge, used once and kept nowhere."""


@dataclass(frozen=True, slots=True)
class MemberSent:
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class RoleSent:
    role: str


@dataclass(frozen=True, slots=True)
class TokenSent:
    member: str
    scopes: list[str]
    days: int = 90


@dataclass(frozen=True, slots=True)
class DeviceSent:
    name: str = ""
    org: str = ""
    """The organisation that may take the device in, by name or id."""


@dataclass(frozen=True, slots=True)
class PollSent:
    device_code: str


@dataclass(frozen=True, slots=True)
class ApprovalSent:
    user_code: str
    member: str


@dataclass(frozen=True, slots=True)
class AllowanceSent:
    fingerprint: str
    reason: str


@dataclass(frozen=True, slots=True)
class EntryTold:
    version: int
    checksum: str
    content: str
    author: str | None = None
    """The member who wrote this version, by the token that it came with; null where that is not known."""


@dataclass(frozen=True, slots=True)
class HashTold:
    version: int
    checksum: str
    author: str | None = None
    """As in `EntryTold`."""


@dataclass(frozen=True, slots=True)
class DeletedTold:
    version: int


@dataclass(frozen=True, slots=True)
class LostTold:
    """Versions, the first and the last included, that were acknowledged before a backup was restored and are
    in no record any more."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTold:
    repo: str
    seq: int
    floor: int
    entries: Mapping[str, EntryTold]
    deleted: Mapping[str, DeletedTold]
    lost: Sequence[LostTold] = ()
    tag: str = ""
    """Tells this state from another with the same `seq`, which a database that was set back may come to.
    `If-None-Match: "SEQ.TAG"` asks for both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashesTold:
    """The same without the texts."""

    repo: str
    seq: int
    floor: int
    entries: Mapping[str, HashTold]
    deleted: Mapping[str, DeletedTold]
    lost: Sequence[LostTold] = ()
    tag: str = ""


@dataclass(frozen=True, slots=True)
class UnknownTold:
    unknown: Sequence[str]
    """Keys whose entries are in no record here."""


@dataclass(frozen=True, slots=True)
class ChecksumsTold:
    checksums: Sequence[str]


@dataclass(frozen=True, slots=True)
class BodyTold:
    checksum: str
    content: str


@dataclass(frozen=True, slots=True)
class AppliedTold:
    seq: int
    versions: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoTold:
    org: str
    org_name: str
    member: str
    role: str
    scopes: Sequence[str]
    token: str
    expires: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoTold:
    id: str
    name: str
    remote: str
    proof: str
    seq: int
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ReposTold:
    repos: Sequence[RepoTold]


@dataclass(frozen=True, slots=True)
class MemberTold:
    id: str
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class MembersTold:
    members: Sequence[MemberTold]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTold:
    id: str
    member: str
    scopes: Sequence[str]
    created: str
    expires: str | None
    revoked: bool


@dataclass(frozen=True, slots=True)
class TokensTold:
    tokens: Sequence[TokenTold]


@dataclass(frozen=True, slots=True)
class NewTokenTold:
    id: str
    token: str
    """Told once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTold:
    device_code: str
    user_code: str
    verify: str
    interval: int
    expires_in: int


@dataclass(frozen=True, slots=True)
class SignedInTold:
    token: str
    org: str
    member: str
    scopes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTold:
    id: str
    at: str
    member: str
    token: str
    verb: str
    repo: str
    detail: str


@dataclass(frozen=True, slots=True)
class AuditTold:
    lines: Sequence[LineTold]


@dataclass(frozen=True, slots=True)
class HealthTold:
    status: str


@dataclass(frozen=True, slots=True)
class DoneTold:
    done: bool = True


# Every error says what to try next.

ApiErrorKind: TypeAlias = Literal[
    "bad request",
    "commit reused",
    "conflict",
    "cut off",
    "exists",
    "expired",
    "forbidden",
    "key",
    "method",
    "missing",
    "not found",
    "not ready",
    "pending",
    "quota",
    "rate",
    "secret",
    "server",
    "stale",
    "too large",
    "unauthorised",
    "unsupported",
]

ErrorExtra: TypeAlias = "int | list[str] | Mapping[str, object]"


@dataclass(eq=False, kw_only=True)  # not frozen: Python itself writes the traceback into it
class ApiError(Exception):
    """Raised where it is found, answered in one place. It never holds a body, a token or a secret."""

    status: int
    kind: ApiErrorKind
    message: str
    advice: str
    retry: bool = False
    """Whether the same request may succeed later."""
    retry_after_seconds: int | None = None
    extras: Mapping[str, ErrorExtra] = field(default_factory=dict[str, ErrorExtra])

    def __str__(self) -> str:
        return f"{self.status} {self.kind}: {self.message}; {self.advice}"

    def body(self) -> dict[str, object]:
        error = {"kind": self.kind, "message": self.message, "try": self.advice, "retry": self.retry}
        return {"error": error, **self.extras}

    def headers(self) -> dict[str, str]:
        headers = {"www-authenticate": "Bearer"} if self.status == 401 else {}
        if self.status == 408:
            headers["connection"] = "close"  # what comes late is not waited for
        if self.retry_after_seconds is not None:
            headers["retry-after"] = str(self.retry_after_seconds)
        return headers


def make_not_found(what: str) -> ApiError:
    """The same words for what is not there and for what is somebody else's."""
    return ApiError(
        status=404,
        kind="not found",
        message=f"there is no {what}",
        advice="list what your organisation has: GET /api/v1/repos",
    )
