"""Admin actions on the database of a server: people, tokens, repositories, the audit log, backups."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

from sevenfold.cli.screen import Screen, TableCell
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError
from sevenfold.team.server.admin_endpoints import approve_device
from sevenfold.team.server.app_state import format_ms_time
from sevenfold.team.server.backup import restore_backup, write_backup
from sevenfold.team.server.database import Database, OrgId, Tx
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import (
    NewToken,
    Org,
    add_member,
    add_org,
    add_token,
    change_role,
    find_org,
    list_members,
    list_orgs,
    list_tokens,
    new_row_id,
    remove_member,
    revoke_token,
)
from sevenfold.team.server.policy import TOKEN_SCOPES, ServerLimits, read_audit
from sevenfold.team.server.repos import claim_repo, list_repos
from sevenfold.team.server.scanning import allow_finding

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """One action with its words."""

    database: Database
    words: tuple[str, ...]
    options: Namespace
    screen: Screen
    now_ms: int

    def org(self) -> Org:
        return self.database.read(None, lambda tx: find_org(tx, self.words[0])).result()

    def write(self, org: Org, work: Callable[[Tx], _T]) -> _T:
        return self.database.write(org.id, work).result()

    def show(self, rows: Sequence[Mapping[str, object]]) -> None:
        """A table, or JSON for programs."""
        if self.options.json:
            self.screen.show_json(rows)
        elif rows:
            head = [TableCell(name, "strong") for name in rows[0]]
            self.screen.show_table(
                [
                    head,
                    *([TableCell("" if one is None else str(one)) for one in row.values()] for row in rows),
                ]
            )


AdminHandler: TypeAlias = Callable[[_Order], None]


@dataclass(frozen=True, slots=True)
class _Action:
    words: str
    act: AdminHandler


def run_admin_action(database: Database, options: Namespace, screen: Screen) -> int:
    words = [cast("str", options.action), *cast("list[str]", options.words)]
    name = words[0]
    if f"{name} {words[1] if len(words) > 1 else ''}" in ADMIN_ACTIONS:
        name = f"{name} {words[1]}"
    given = tuple(words[len(name.split()) :])
    action = ADMIN_ACTIONS.get(name)
    if action is None:
        known = ", ".join(one for one in ADMIN_ACTIONS if one.partition(" ")[0] == words[0])
        raise InputError(f"`serve {' '.join(words)}` is no action; expected one of {known}")
    if len(given) != len(action.words.split()):
        raise InputError(
            f"`serve {name}` takes {action.words or 'no words'}, not {' '.join(given) or 'none'}"
        )
    now_ms = int(SystemClock().now().timestamp() * 1000)
    try:
        action.act(_Order(database=database, words=given, options=options, screen=screen, now_ms=now_ms))
    except ApiError as refusal:
        raise InputError(f"{refusal.message}; {refusal.advice}") from refusal
    return 0


def show_role_warning(database: Database, screen: Screen) -> None:
    """PostgreSQL alone has roles."""
    warning = cast("str", getattr(database, "role_warning", ""))
    if warning:
        screen.show_line(warning, "warning")


def _init(order: _Order) -> None:
    name, owner = order.words
    org, lasts = Org(OrgId(new_row_id()), name), _lasts(order)

    def make(tx: Tx) -> NewToken:
        add_org(tx, org.id, name, order.now_ms)
        add_member(tx, org.id, owner, "owner", order.now_ms)
        return add_token(tx, org.id, owner, TOKEN_SCOPES, order.now_ms, lasts=lasts)

    token = order.write(org, make)
    if order.options.json:
        order.screen.show_json({"org": org.id, "member": owner, "token": token.text})
        return
    order.screen.show_line(f"{name} ({org.id}) is there, and {owner} owns it. The token, shown once:")
    order.screen.show_line(token.text, "strong")
    order.screen.show_line(f"Next: sevenfold serve repo claim {name} OWNER/REPO", "faint")
    show_role_warning(order.database, order.screen)


def _add_org(order: _Order) -> None:
    id_ = OrgId(new_row_id())
    org = order.database.write(id_, lambda tx: add_org(tx, id_, order.words[0], order.now_ms)).result()
    order.show([{"id": org.id, "name": org.name}])


def _list_orgs(order: _Order) -> None:
    order.show([{"id": one.id, "name": one.name} for one in order.database.read(None, list_orgs).result()])


def _add_member(order: _Order) -> None:
    org, role = order.org(), cast("str", order.options.role)
    member = order.write(org, lambda tx: add_member(tx, org.id, order.words[1], role, order.now_ms))
    order.show([{"id": member.id, "name": member.name, "role": member.role}])


def _list_members(order: _Order) -> None:
    org = order.org()
    members = order.database.read(org.id, lambda tx: list_members(tx, org.id)).result()
    order.show([{"id": one.id, "name": one.name, "role": one.role} for one in members])


def _change_role(order: _Order) -> None:
    org, role = order.org(), cast("str", order.options.role)
    member = order.write(org, lambda tx: change_role(tx, org.id, order.words[1], role, order.now_ms))
    order.show([{"id": member.id, "name": member.name, "role": member.role}])


def _remove_member(order: _Order) -> None:
    org = order.org()
    member = order.write(org, lambda tx: remove_member(tx, org.id, order.words[1], order.now_ms))
    order.screen.show_line(f"{member.name} is no member any more; the tokens have ended.")


def _add_token(order: _Order) -> None:
    org = order.org()
    scopes = cast("list[str] | None", order.options.scope) or ["memory:read", "memory:write"]
    token = order.write(
        org, lambda tx: add_token(tx, org.id, order.words[1], scopes, order.now_ms, lasts=_lasts(order))
    )
    if order.options.json:
        order.screen.show_json({"id": token.id, "token": token.text})
        return
    order.screen.show_line("The token, shown once:")
    order.screen.show_line(token.text, "strong")


def _list_tokens(order: _Order) -> None:
    org = order.org()
    tokens = order.database.read(org.id, lambda tx: list_tokens(tx, org.id)).result()
    names = {
        one.id: one.name for one in order.database.read(org.id, lambda tx: list_members(tx, org.id)).result()
    }
    order.show(
        [
            {
                "id": one.id,
                "member": names.get(one.member, one.member),
                "scopes": " ".join(one.scopes),
                "expires": None if one.expires_ms is None else format_ms_time(one.expires_ms),
                "revoked": one.is_revoked,
            }
            for one in tokens
        ]
    )


def _revoke_token(order: _Order) -> None:
    org = order.org()
    order.write(org, lambda tx: revoke_token(tx, org.id, order.words[1], order.now_ms))
    order.screen.show_line(f"{order.words[1]} has ended.")


def _claim_repo(order: _Order) -> None:
    org, remote = order.org(), cast("str", order.options.remote)
    repo = order.write(
        org,
        lambda tx: claim_repo(
            tx, org.id, order.words[1], remote, "operator", now_ms=order.now_ms, limits=ServerLimits()
        ),
    )
    order.show([{"id": repo.id, "name": repo.name, "remote": repo.remote}])


def _list_repos(order: _Order) -> None:
    org = order.org()
    repos = order.database.read(org.id, lambda tx: list_repos(tx, org.id)).result()
    order.show(
        [
            {
                "id": one.id,
                "name": one.name,
                "remote": one.remote,
                "proof": one.proof,
                "seq": one.seq,
                "entries": one.entries,
                "bytes": one.bytes,
            }
            for one in repos
        ]
    )


def _approve(order: _Order) -> None:
    org = order.org()
    _, code, name = order.words
    member = order.write(org, lambda tx: approve_device(tx, org.id, code, name, order.now_ms))
    order.screen.show_line(f"The device is signed in as {member.name} as soon as it asks again.")


def _allow(order: _Order) -> None:
    org, reason = order.org(), cast("str", order.options.reason)
    order.write(org, lambda tx: allow_finding(tx, org.id, order.words[1], reason, order.now_ms))
    order.screen.show_line(f"{order.words[1]} may be shared in {org.name}.")


def _audit(order: _Order) -> None:
    org, limit = order.org(), cast("int", order.options.limit)
    lines = order.database.read(org.id, lambda tx: read_audit(tx, org.id, max(1, limit))).result()
    order.show(
        [
            {
                "at": format_ms_time(one.at_ms),
                "member": one.member,
                "verb": one.verb,
                "repo": one.repo,
                "detail": one.detail,
            }
            for one in lines
        ]
    )


def _backup(order: _Order) -> None:
    path = Path(order.words[0])
    rows = write_backup(order.database, path, order.now_ms)
    order.screen.show_line(
        f"{rows:,} rows are in {path}. It holds every memory: keep it as safe as the database."
    )


def _restore(order: _Order) -> None:
    rows = restore_backup(order.database, Path(order.words[0]), order.now_ms)
    order.screen.show_line(f"{rows:,} rows are back.")


def _lasts(order: _Order) -> timedelta:
    days = cast("int", order.options.days)
    if not 1 <= days <= 3_650:
        raise InputError(f"--days is {days}; expected 1 to 3650")
    return timedelta(days=days)


ADMIN_ACTIONS: Mapping[str, _Action] = {
    "init": _Action("ORG OWNER", _init),
    "org add": _Action("NAME", _add_org),
    "org list": _Action("", _list_orgs),
    "member add": _Action("ORG NAME", _add_member),
    "member list": _Action("ORG", _list_members),
    "member role": _Action("ORG NAME", _change_role),
    "member remove": _Action("ORG NAME", _remove_member),
    "token add": _Action("ORG MEMBER", _add_token),
    "token list": _Action("ORG", _list_tokens),
    "token revoke": _Action("ORG ID", _revoke_token),
    "repo claim": _Action("ORG NAME", _claim_repo),
    "repo list": _Action("ORG", _list_repos),
    "device approve": _Action("ORG CODE MEMBER", _approve),
    "allow": _Action("ORG FINGERPRINT", _allow),
    "audit": _Action("ORG", _audit),
    "backup": _Action("FILE", _backup),
    "restore": _Action("FILE", _restore),
}
