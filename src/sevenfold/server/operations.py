"""Every operation there is: where it is asked for, which right it takes, what it takes and gives.

One table, from which routes, rights and the OpenAPI document are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.server import messages as wire
from sevenfold.server.rights import Verb

_API = "/api/v1"
_MEMORY = f"{_API}/memory"

Method: TypeAlias = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Operation:
    name: str
    method: Method
    path: str
    summary: str
    gives: type | None
    """None: text."""
    verb: Verb | None = None
    """None: it takes no token."""
    takes: type | None = None
    refuses: tuple[int, ...] = ()
    """Beside 400, 429, 500 and 503; 401 and 403 where a token is needed; 408, 413 and 415 where a body is."""
    status: int = 200
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name and what it means. `repo` alone is required."""
    or_gives: type | None = None
    """Another form of the answer, where a query asks for it."""
    conditional: Literal["", "if-none-match", "if-match"] = ""

    @property
    def needs_repo(self) -> bool:
        return "repo" in self.query

    @property
    def places(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


_REPO = {"repo": "the repository's id, as GET /api/v1/repos lists it"}

OPERATIONS = (
    Operation(
        "read_memory",
        "GET",
        _MEMORY,
        "All of a repository's shared memory, or the checksums alone. The ETag is its sequence number.",
        wire.MemoryTold,
        "memory.read",
        refuses=(404,),
        query={**_REPO, "view": "`hashes`: without the texts"},
        or_gives=wire.HashesTold,
        conditional="if-none-match",
    ),
    Operation(
        "put_memory",
        "PUT",
        _MEMORY,
        "Put texts over what is there, for simple clients. Nothing is deleted; If-Match may guard it.",
        wire.AppliedTold,
        "memory.write",
        wire.EntriesSent,
        refuses=(404, 412, 422),
        query=_REPO,
        conditional="if-match",
    ),
    Operation(
        "send_bodies",
        "POST",
        f"{_MEMORY}/bodies",
        "Send texts ahead of the commit that will name them. Nobody sees them before.",
        wire.ChecksumsTold,
        "memory.write",
        wire.BodiesSent,
        refuses=(404, 422),
        query=_REPO,
    ),
    Operation(
        "read_body",
        "GET",
        _MEMORY + "/bodies/{checksum}",
        "One text that a commit has named, now or in the past.",
        wire.BodyTold,
        "memory.read",
        refuses=(404,),
        query=_REPO,
    ),
    Operation(
        "commit",
        "POST",
        f"{_MEMORY}/commit",
        "Change keys together or not at all. Sent again with the same id, it has the same answer.",
        wire.AppliedTold,
        "memory.write",
        wire.CommitSent,
        refuses=(404, 409, 422),
        query=_REPO,
    ),
    Operation("whoami", "GET", f"{_API}/whoami", "Whom the token speaks for.", wire.WhoTold, "whoami"),
    Operation(
        "list_repos", "GET", f"{_API}/repos", "The organisation's repositories.", wire.ReposTold, "repo.list"
    ),
    Operation(
        "claim_repo",
        "POST",
        f"{_API}/repos",
        "Claim a repository on an admin's word.",
        wire.RepoTold,
        "repo.claim",
        wire.ClaimSent,
        refuses=(409, 422),
        status=201,
    ),
    Operation(
        "prove_repo",
        "POST",
        f"{_API}/repos/proof",
        "Claim a repository by showing the forge's credential of somebody who may push to it.",
        wire.RepoTold,
        "repo.prove",
        wire.ProofSent,
        refuses=(409, 422),
        status=201,
    ),
    Operation(
        "list_members",
        "GET",
        f"{_API}/members",
        "The organisation's members.",
        wire.MembersTold,
        "member.list",
    ),
    Operation(
        "add_member",
        "POST",
        f"{_API}/members",
        "Add a member.",
        wire.MemberTold,
        "member.change",
        wire.MemberSent,
        refuses=(409, 422),
        status=201,
    ),
    Operation(
        "change_member",
        "PATCH",
        _API + "/members/{member}",
        "Give a member another role.",
        wire.MemberTold,
        "member.change",
        wire.RoleSent,
        refuses=(404, 422),
    ),
    Operation(
        "remove_member",
        "DELETE",
        _API + "/members/{member}",
        "Remove a member. The tokens end at once; what was written stays.",
        wire.DoneTold,
        "member.change",
        refuses=(404, 422),
    ),
    Operation(
        "list_tokens",
        "GET",
        f"{_API}/tokens",
        "The organisation's tokens, without their texts.",
        wire.TokensTold,
        "token.list",
    ),
    Operation(
        "add_token",
        "POST",
        f"{_API}/tokens",
        "Make a token for a member. Its text is told once.",
        wire.NewTokenTold,
        "token.change",
        wire.TokenSent,
        refuses=(404, 422),
        status=201,
    ),
    Operation(
        "revoke_token",
        "DELETE",
        _API + "/tokens/{id}",
        "End a token.",
        wire.DoneTold,
        "token.change",
        refuses=(404, 422),
    ),
    Operation(
        "start_device",
        "POST",
        f"{_API}/device",
        "Begin to sign a device in: it shows `user_code` to a person, and asks with `device_code`.",
        wire.DeviceTold,
        takes=wire.DeviceSent,
        refuses=(422,),
        status=201,
    ),
    Operation(
        "poll_device",
        "POST",
        f"{_API}/device/token",
        "Ask whether the device was approved; its token is told once. 400 `pending` until then.",
        wire.SignedInTold,
        takes=wire.PollSent,
        refuses=(404, 422),
    ),
    Operation(
        "approve_device",
        "POST",
        f"{_API}/device/approve",
        "Approve a device for a member.",
        wire.MemberTold,
        "device.approve",
        wire.ApprovalSent,
        refuses=(404, 422),
    ),
    Operation(
        "allow_finding",
        "POST",
        f"{_API}/allowances",
        "Say that a finding, by its fingerprint, is no secret or may be shared.",
        wire.DoneTold,
        "secret.allow",
        wire.AllowanceSent,
        refuses=(422,),
        status=201,
    ),
    Operation(
        "read_audit",
        "GET",
        f"{_API}/audit",
        "Who did what, the newest first.",
        wire.AuditTold,
        "audit.read",
        query={
            "limit": "how many lines, 1 to 1000 (100)",
            "before": "older than the line with this id, or than this time in milliseconds",
        },
    ),
    Operation("is_alive", "GET", "/healthz", "Whether the process answers.", wire.HealthTold),
    Operation(
        "is_ready",
        "GET",
        "/readyz",
        "Whether the database answers and the server is not ending.",
        wire.HealthTold,
    ),
    Operation("metrics", "GET", "/metrics", "Figures for Prometheus.", None),
)
