"""`sevenfold team`: join and leave a team, and manage its shared memories by hand."""

from __future__ import annotations

import asyncio
import platform
import sys
from argparse import Namespace
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import TypeAlias, cast

from sevenfold.cli.memory.change import show_diff_text
from sevenfold.cli.screen import Screen, ask_secret
from sevenfold.cli.team.context import (
    TEAM_LOCK_TIMEOUT,
    TeamContext,
    describe_sync_report,
    open_team_context,
    show_sync_report,
    show_sync_status,
)
from sevenfold.core.errors import InputError, TeamOffline, TeamRefused
from sevenfold.core.memories import TEAM_PREFIX
from sevenfold.team.client.local_state import (
    Membership,
    TokenStore,
    check_token,
    forget_membership,
    read_membership,
    write_membership,
)
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.client.ports import SyncConflict, SyncReport
from sevenfold.team.client.server_client import (
    ServerClient,
    check_server,
    choose_repository,
    make_membership,
    pull_person,
    pull_repositories,
    pull_token,
    start_device_login,
)
from sevenfold.team.client.status import (
    ResolvedConflict,
    choose_conflict_text,
    find_conflict,
    find_conflicts,
    settle_conflict,
)
from sevenfold.team.protocol import MAX_TEAM_FILE_BYTES


def join_team_repository(options: Namespace, context: TeamContext) -> int:
    url = check_server(cast("str", options.url))
    token = _token(options, context, url)
    place = asyncio.run(_placed(context, url, token, options))
    TokenStore(context.home).write(url, place.org, token)
    write_membership(context.folder, place, wait=TEAM_LOCK_TIMEOUT)
    report = asyncio.run(context.open_team().exchange(wait=TEAM_LOCK_TIMEOUT))
    if context.memory_context.is_json:
        context.screen.show_json(
            {"repo": place.repo, "repo_name": place.repo_name, **describe_sync_report(report)}
        )
        return 0
    context.screen.show_line(f"joined {place.repo_name} on {url} as {place.member} of {place.org}")
    show_sync_report(report, context.screen)
    context.screen.show_line(
        f"what is in {context.memory_context.project.memory.path}/team is shared from now on", "faint"
    )
    return 0


def leave_team_repository(options: Namespace, context: TeamContext) -> int:
    place = read_membership(context.folder)
    if place is None:
        raise InputError("this project has joined no server")
    forget_membership(context.folder, wait=TEAM_LOCK_TIMEOUT)
    if options.forget_token:
        TokenStore(context.home).forget(place.url, place.org)
    if context.memory_context.is_json:
        context.screen.show_json({"left": place.url})
    else:
        context.screen.show_line(f"left {place.repo_name} on {place.url}; the memories stay in team/")
    return 0


def _token(options: Namespace, context: TeamContext, url: str) -> str:
    if options.token_stdin:
        return check_token(sys.stdin.readline().strip())
    if options.code:
        return asyncio.run(_signed_in(context, url, cast("str", options.org)))
    known = TokenStore(context.home).find(url)
    if known and asyncio.run(_is_good(url, known)):
        return known
    if not context.memory_context.is_attended:
        raise InputError("nobody can be asked for a token here; pipe it in with --token-stdin, or use --code")
    pasted = ask_secret(f"token for {url} (nothing: sign in with a code): ").strip()
    return check_token(pasted) if pasted else asyncio.run(_signed_in(context, url, cast("str", options.org)))


async def _is_good(url: str, token: str) -> bool:
    try:
        async with ServerClient(url, token) as link:
            await pull_person(link)
    except TeamRefused:
        return False
    return True


async def _signed_in(context: TeamContext, url: str, org: str) -> str:
    async with ServerClient(url) as link:
        device = await start_device_login(link, platform.node(), org)
        context.screen.note(f"code {device.code}: ask an admin to approve it, with {device.advice}")
        return await pull_token(link, device, asyncio.sleep)


async def _placed(context: TeamContext, url: str, token: str, options: Namespace) -> Membership:
    wanted, org = cast("str", options.repo), cast("str", options.org)
    async with ServerClient(url, token) as link:
        person = await pull_person(link)
        if org and org not in (person.org, person.org_name):
            raise InputError(
                f"the token is of the organisation {person.org_name or person.org}, and --org is {org}; "
                "nothing was joined"
            )
        known = await pull_repositories(link)
        found = choose_repository(known, wanted, context.memory_context.project.root.name)
        return make_membership(link, person, found)


TeamHandler: TypeAlias = Callable[[Namespace, TeamContext], int]


def run_team(options: Namespace, screen: Screen) -> int:
    with open_team_context(options, screen) as context:
        return _DOING[cast("str", options.action)](options, context)


def show_team_status(_: Namespace, context: TeamContext) -> int:
    show_sync_status(context)
    return 0


def pull_team_memories(_: Namespace, context: TeamContext) -> int:
    return _show_report(
        context, asyncio.run(context.open_team().exchange(sends=False, wait=TEAM_LOCK_TIMEOUT))
    )


def push_team_memories(_: Namespace, context: TeamContext) -> int:
    return _show_report(context, asyncio.run(context.open_team().push(wait=TEAM_LOCK_TIMEOUT)))


def show_team_conflicts(_: Namespace, context: TeamContext) -> int:
    team = context.open_team()
    files, found = team.files.read_all(), find_conflicts(team)
    if context.memory_context.is_json:
        context.screen.show_json([{"memory": one.key, "copy": one.copy} for one in found])
        return 0
    for one in found:
        texts = [files[key].text if key in files else "" for key in (one.key, one.copy)]
        old, new = (text.splitlines(keepends=True) for text in texts)
        show_diff_text(context.memory_context, "".join(unified_diff(old, new, one.key, one.copy)))
    if found:
        context.screen.show_line("`sevenfold team resolve MEMORY --take original|copy` settles one", "faint")
    else:
        context.screen.show_line("no conflicts", "faint")
    return 0


def resolve_team_conflict(options: Namespace, context: TeamContext) -> int:
    team = context.open_team()
    conflict = find_conflict(team, cast("str", options.memory))
    before = context.memory_context.memory.find(f"{TEAM_PREFIX}{conflict.key}")
    text = _chosen(options, team, conflict)
    resolved = ResolvedConflict(conflict, text, None if before is None else before.sha256)
    asyncio.run(settle_conflict(team, context.memory_context.memory, resolved, wait=TEAM_LOCK_TIMEOUT))
    return _exchanged(context, team, f"the conflict over {conflict.key} is resolved")


def delete_team_memory(options: Namespace, context: TeamContext) -> int:
    team = context.open_team()
    keys = [context.find_key(team, name) for name in cast("list[str]", options.memories)]
    for key in keys:
        asyncio.run(team.delete(key, wait=TEAM_LOCK_TIMEOUT))
    return _exchanged(context, team, f"{', '.join(keys)}: deleted here")


def allow_team_finding(options: Namespace, context: TeamContext) -> int:
    team = context.open_team()
    team.screen.allow(cast("str", options.fingerprint), cast("str", options.reason))
    return _exchanged(context, team, f"{options.fingerprint} may be shared")


def _chosen(options: Namespace, team: TeamMemory, conflict: SyncConflict) -> str | None:
    """The text to write under the memory's name; None: the one that is there."""
    path = cast("Path | None", options.text)
    if path is None:
        return choose_conflict_text(team, conflict, cast("str", options.take))
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text: {error}") from error
    if len(data) > MAX_TEAM_FILE_BYTES:
        raise InputError(f"{path} has {len(data):,} bytes; at most {MAX_TEAM_FILE_BYTES:,} can be shared")
    return text


def _exchanged(context: TeamContext, team: TeamMemory, done: str) -> int:
    """Tell the others at once if that can be; it is as good as done if not."""
    try:
        report = asyncio.run(team.exchange(wait=TEAM_LOCK_TIMEOUT))
    except TeamOffline as error:
        if context.memory_context.is_json:
            context.screen.show_json({"done": done, "sent": [], "waiting": str(error)})
        else:
            context.screen.show_line(f"{done}; the others are told once the server can be reached ({error})")
        return 0
    if not context.memory_context.is_json:
        context.screen.show_line(done)
    return _show_report(context, report)


def _show_report(context: TeamContext, report: SyncReport) -> int:
    """1 where something was held back that a person has to see to."""
    if context.memory_context.is_json:
        context.screen.show_json(describe_sync_report(report))
    else:
        show_sync_report(report, context.screen)
    return 1 if report.held or not report.is_settled else 0


_DOING: dict[str, TeamHandler] = {
    "join": join_team_repository,
    "status": show_team_status,
    "pull": pull_team_memories,
    "push": push_team_memories,
    "conflicts": show_team_conflicts,
    "resolve": resolve_team_conflict,
    "delete": delete_team_memory,
    "allow": allow_team_finding,
    "leave": leave_team_repository,
}
