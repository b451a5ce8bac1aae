"""The operations on people, tokens, repositories and the audit log."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from sevenfold.server import messages as wire
from sevenfold.server.audit import LINE_ID, read_audit
from sevenfold.server.desk import Answer, Call, Desk, spell_time
from sevenfold.server.devices import (
    LASTS,
    POLL,
    approve_device,
    finish_device,
    read_approval,
    start_device,
)
from sevenfold.server.people import (
    Member,
    add_member,
    add_token,
    change_role,
    list_members,
    list_tokens,
    remove_member,
    revoke_token,
)
from sevenfold.server.refusals import Refusal
from sevenfold.server.repos import Repo, claim_repo, list_repos
from sevenfold.server.scanning import allow_finding

MOST_DAYS = 3_650
MOST_LINES = 1_000


async def whoami(desk: Desk, call: Call) -> Answer:
    who = call.who
    await desk.look(who, lambda _tx: None)  # only whether it still holds
    expires = None if who.expires_ms is None else spell_time(who.expires_ms)
    told = wire.WhoTold(
        who.org, who.org_name, who.member_name, who.role, sorted(who.scopes), who.token, expires
    )
    return Answer(told)


async def list_all_repos(desk: Desk, call: Call) -> Answer:
    org = call.who.org
    repos = await desk.read(call.who, lambda tx: list_repos(tx, org))
    return Answer(wire.ReposTold([_repo(one) for one in repos]))


async def claim(desk: Desk, call: Call) -> Answer:
    sent, who, now = cast("wire.ClaimSent", call.body), call.who, desk.now_ms
    repo = await desk.write(
        who, lambda tx: claim_repo(tx, who, sent.name, sent.remote, "admin", now, desk.limits)
    )
    return Answer(_repo(repo), 201)


async def prove(desk: Desk, call: Call) -> Answer:
    sent, who, now = cast("wire.ProofSent", call.body), call.who, desk.now_ms
    if desk.forge is None:
        raise Refusal(
            422,
            "bad request",
            "this server asks no forge",
            "have an admin claim the repository, or start the server with --forge HOST",
        )
    found = await desk.forge.look_up(sent.remote, sent.credential)
    proof = f"{desk.forge.host}#{found.number}"
    repo = await desk.write(
        who, lambda tx: claim_repo(tx, who, found.name, sent.remote, proof, now, desk.limits)
    )
    return Answer(_repo(repo), 201)


async def list_all_members(desk: Desk, call: Call) -> Answer:
    org = call.who.org
    members = await desk.read(call.who, lambda tx: list_members(tx, org))
    return Answer(wire.MembersTold([_member(one) for one in members]))


async def add_one_member(desk: Desk, call: Call) -> Answer:
    sent, who, now = cast("wire.MemberSent", call.body), call.who, desk.now_ms
    member = await desk.write(who, lambda tx: add_member(tx, who, sent.name, sent.role, now))
    return Answer(_member(member), 201)


async def change_member(desk: Desk, call: Call) -> Answer:
    sent, who, now = cast("wire.RoleSent", call.body), call.who, desk.now_ms
    name = call.places["member"]
    return Answer(_member(await desk.write(who, lambda tx: change_role(tx, who, name, sent.role, now))))


async def remove_one_member(desk: Desk, call: Call) -> Answer:
    who, now, name = call.who, desk.now_ms, call.places["member"]
    await desk.write(who, lambda tx: remove_member(tx, who, name, now))
    return Answer(wire.DoneTold())


async def list_all_tokens(desk: Desk, call: Call) -> Answer:
    org = call.who.org
    tokens = await desk.read(call.who, lambda tx: list_tokens(tx, org))
    return Answer(
        wire.TokensTold(
            [
                wire.TokenTold(
                    *(one.id, one.member, one.scopes, spell_time(one.created_ms)),
                    None if one.expires_ms is None else spell_time(one.expires_ms),
                    one.is_revoked,
                )
                for one in tokens
            ]
        )
    )


async def add_one_token(desk: Desk, call: Call) -> Answer:
    sent, who, now = cast("wire.TokenSent", call.body), call.who, desk.now_ms
    if not 1 <= sent.days <= MOST_DAYS:
        raise Refusal(422, "bad request", f"a token cannot last {sent.days} days", f"say 1 to {MOST_DAYS}")
    lasts = timedelta(days=sent.days)
    token = await desk.write(who, lambda tx: add_token(tx, who, sent.member, sent.scopes, now, lasts=lasts))
    return Answer(wire.NewTokenTold(token.id, token.text), 201)


async def revoke_one_token(desk: Desk, call: Call) -> Answer:
    who, now, token = call.who, desk.now_ms, call.places["id"]
    await desk.write(who, lambda tx: revoke_token(tx, who, token, now))
    return Answer(wire.DoneTold())


async def begin_device(desk: Desk, call: Call) -> Answer:
    sent, now = cast("wire.DeviceSent", call.body), desk.now_ms
    code = await desk.write(None, lambda tx: start_device(tx, sent.name, now))
    verify = f"an admin runs: sevenfold serve device approve ORG {code.user_code} MEMBER"
    told = wire.DeviceTold(code.device_code, code.user_code, verify, POLL.seconds, LASTS.seconds)
    return Answer(told, 201)


async def poll_device(desk: Desk, call: Call) -> Answer:
    code, now = cast("wire.PollSent", call.body).device_code, desk.now_ms
    org = await desk.read(None, lambda tx: read_approval(tx, code, now))
    done = await desk.write(org, lambda tx: finish_device(tx, org, code, now))
    return Answer(wire.SignedInTold(done.token.text, done.org, done.member.name, done.scopes))


async def approve(desk: Desk, call: Call) -> Answer:
    sent, who, now = cast("wire.ApprovalSent", call.body), call.who, desk.now_ms
    member = await desk.write(who, lambda tx: approve_device(tx, who, sent.user_code, sent.member, now))
    return Answer(_member(member))


async def allow(desk: Desk, call: Call) -> Answer:
    sent, who, now = cast("wire.AllowanceSent", call.body), call.who, desk.now_ms
    await desk.write(who, lambda tx: allow_finding(tx, who, sent.fingerprint, sent.reason, now))
    return Answer(wire.DoneTold(), 201)


async def audit(desk: Desk, call: Call) -> Answer:
    org = call.who.org
    limit = _whole(call.query.get("limit", "100"), "limit", MOST_LINES)
    before = _before(call.query["before"]) if "before" in call.query else None
    lines = await desk.read(call.who, lambda tx: read_audit(tx, org, limit, before))
    return Answer(
        wire.AuditTold(
            [
                wire.LineTold(
                    one.id, spell_time(one.at_ms), one.member, one.token, one.verb, one.repo, one.detail
                )
                for one in lines
            ]
        )
    )


def _before(text: str) -> str:
    """The id of a line, or a time that stands before all ids of its millisecond."""
    return text if LINE_ID.fullmatch(text) else f"{_whole(text, 'before', 10**15 - 1):015d}"


def _whole(text: str, name: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= most):
        raise Refusal(
            400, "bad request", f"{name} is {text[:40]!r}", f"send a whole number from 1 to {most:,}"
        )
    return int(text)


def _repo(one: Repo) -> wire.RepoTold:
    return wire.RepoTold(one.id, one.name, one.remote, one.proof, one.seq, one.entries, one.bytes)


def _member(one: Member) -> wire.MemberTold:
    return wire.MemberTold(one.id, one.name, one.role)
