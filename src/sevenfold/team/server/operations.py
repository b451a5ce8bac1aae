"""Every operation there is: where it is asked for, which right it takes, what it takes and gives.

One table, from which routes, rights and the OpenAPI document are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.team.server import messages
from sevenfold.team.server.policy import Verb

_API = "/api/v1"
_MEMORY = f"{_API}/memory"

Method: TypeAlias = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    def path_params(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


_REPO = {"repo": "the repository's id, as GET /api/v1/repos lists it"}

OPERATIONS = (
    Operation(
        name="read_memory",
        method="GET",
        path=_MEMORY,
        summary="All of a repository's shared memory, or the checksums alone. The ETag is its "
        "sequence number.",
        gives=messages.MemoryTold,
        verb="memory.read",
        refuses=(404,),
        query={**_REPO, "view": "`hashes`: without the texts"},
        or_gives=messages.HashesTold,
        conditional="if-none-match",
    ),
    Operation(
        name="put_memory",
        method="PUT",
        path=_MEMORY,
        summary="Put texts over what is there, for simple clients. Nothing is deleted; If-Match "
        "may guard it.",
        gives=messages.AppliedTold,
        verb="memory.write",
        takes=messages.EntriesSent,
        refuses=(404, 412, 422),
        query=_REPO,
        conditional="if-match",
    ),
    Operation(
        name="send_bodies",
        method="POST",
        path=f"{_MEMORY}/bodies",
        summary="Send texts ahead of the commit that will name them. Nobody sees them before.",
        gives=messages.ChecksumsTold,
        verb="memory.write",
        takes=messages.BodiesSent,
        refuses=(404, 422),
        query=_REPO,
    ),
    Operation(
        name="read_body",
        method="GET",
        path=_MEMORY + "/bodies/{checksum}",
        summary="One text that a commit has named, now or in the past.",
        gives=messages.BodyTold,
        verb="memory.read",
        refuses=(404,),
        query=_REPO,
    ),
    Operation(
        name="commit",
        method="POST",
        path=f"{_MEMORY}/commit",
        summary="Change keys together or not at all. Sent again with the same id, it has the same answer.",
        gives=messages.AppliedTold,
        verb="memory.write",
        takes=messages.CommitSent,
        refuses=(404, 409, 422),
        query=_REPO,
    ),
    Operation(
        name="check_known",
        method="POST",
        path=f"{_MEMORY}/known",
        summary="Which of these entries the repository has no record of, now or in the past. A database that "
        "was set back has lost them.",
        gives=messages.UnknownTold,
        verb="memory.read",
        takes=messages.VersionsSent,
        refuses=(404, 422),
        query=_REPO,
    ),
    Operation(
        name="whoami",
        method="GET",
        path=f"{_API}/whoami",
        summary="Whom the token speaks for.",
        gives=messages.WhoTold,
        verb="whoami",
    ),
    Operation(
        name="list_repos",
        method="GET",
        path=f"{_API}/repos",
        summary="The organisation's repositories.",
        gives=messages.ReposTold,
        verb="repo.list",
    ),
    Operation(
        name="claim_repo",
        method="POST",
        path=f"{_API}/repos",
        summary="Claim a repository on an admin's word.",
        gives=messages.RepoTold,
        verb="repo.claim",
        takes=messages.ClaimSent,
        refuses=(409, 422),
        status=201,
    ),
    Operation(
        name="prove_repo",
        method="POST",
        path=f"{_API}/repos/proof",
        summary="Claim a repository by showing the forge's credential of somebody who may push to it.",
        gives=messages.RepoTold,
        verb="repo.prove",
        takes=messages.ProofSent,
        refuses=(409, 422),
        status=201,
    ),
    Operation(
        name="list_members",
        method="GET",
        path=f"{_API}/members",
        summary="The organisation's members.",
        gives=messages.MembersTold,
        verb="member.list",
    ),
    Operation(
        name="add_member",
        method="POST",
        path=f"{_API}/members",
        summary="Add a member.",
        gives=messages.MemberTold,
        verb="member.change",
        takes=messages.MemberSent,
        refuses=(409, 422),
        status=201,
    ),
    Operation(
        name="change_member",
        method="PATCH",
        path=_API + "/members/{member}",
        summary="Give a member another role.",
        gives=messages.MemberTold,
        verb="member.change",
        takes=messages.RoleSent,
        refuses=(404, 422),
    ),
    Operation(
        name="remove_member",
        method="DELETE",
        path=_API + "/members/{member}",
        summary="Remove a member. The tokens end at once; what was written stays.",
        gives=messages.DoneTold,
        verb="member.change",
        refuses=(404, 422),
    ),
    Operation(
        name="list_tokens",
        method="GET",
        path=f"{_API}/tokens",
        summary="The organisation's tokens, without their texts.",
        gives=messages.TokensTold,
        verb="token.list",
    ),
    Operation(
        name="add_token",
        method="POST",
        path=f"{_API}/tokens",
        summary="Make a token for a member. Its text is told once.",
        gives=messages.NewTokenTold,
        verb="token.change",
        takes=messages.TokenSent,
        refuses=(404, 422),
        status=201,
    ),
    Operation(
        name="revoke_token",
        method="DELETE",
        path=_API + "/tokens/{id}",
        summary="End a token.",
        gives=messages.DoneTold,
        verb="token.change",
        refuses=(404, 422),
    ),
    Operation(
        name="start_device",
        method="POST",
        path=f"{_API}/device",
        summary="Begin to sign a device in: it shows `user_code` to a person, and asks with `device_code`.",
        gives=messages.DeviceTold,
        takes=messages.DeviceSent,
        refuses=(422,),
        status=201,
    ),
    Operation(
        name="poll_device",
        method="POST",
        path=f"{_API}/device/token",
        summary="Ask whether the device was approved; its token is told once. 400 `pending` until then.",
        gives=messages.SignedInTold,
        takes=messages.PollSent,
        refuses=(404, 422),
    ),
    Operation(
        name="approve_device",
        method="POST",
        path=f"{_API}/device/approve",
        summary="Approve a device for a member.",
        gives=messages.MemberTold,
        verb="device.approve",
        takes=messages.ApprovalSent,
        refuses=(404, 422),
    ),
    Operation(
        name="allow_finding",
        method="POST",
        path=f"{_API}/allowances",
        summary="Say that a finding, by its fingerprint, is no secret or may be shared.",
        gives=messages.DoneTold,
        verb="secret.allow",
        takes=messages.AllowanceSent,
        refuses=(422,),
        status=201,
    ),
    Operation(
        name="read_audit",
        method="GET",
        path=f"{_API}/audit",
        summary="Who did what, the newest first.",
        gives=messages.AuditTold,
        verb="audit.read",
        query={
            "limit": "how many lines, 1 to 1000 (100)",
            "before": "older than the line with this id, or than this time in milliseconds",
        },
    ),
    Operation(
        name="is_alive",
        method="GET",
        path="/healthz",
        summary="Whether the process answers.",
        gives=messages.HealthTold,
    ),
    Operation(
        name="is_ready",
        method="GET",
        path="/readyz",
        summary="Whether the database answers and the server is not ending.",
        gives=messages.HealthTold,
    ),
    Operation(name="metrics", method="GET", path="/metrics", summary="Figures for Prometheus.", gives=None),
)
