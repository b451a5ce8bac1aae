"""`sevenfold team join` and `leave`."""

from __future__ import annotations

import asyncio
import platform
import sys
from argparse import Namespace
from getpass import getpass
from typing import cast

from sevenfold.cli.team.context import TEAM_LOCK_TIMEOUT, TeamContext
from sevenfold.cli.team.view import describe_sync_report, show_sync_report
from sevenfold.core.errors import InputError, TeamRefused
from sevenfold.team.client.joining import (
    choose_repository,
    make_membership,
    pull_person,
    pull_repositories,
    pull_token,
    start_device_login,
)
from sevenfold.team.client.membership import (
    Membership,
    TokenStore,
    check_token,
    forget_membership,
    read_membership,
    write_membership,
)
from sevenfold.team.client.server_client import ServerClient, check_server


def join_team_repository(options: Namespace, desk: TeamContext) -> int:
    url = check_server(cast("str", options.url))
    token = _token(options, desk, url)
    place = asyncio.run(_placed(desk, url, token, cast("str", options.repo)))
    TokenStore(desk.home).write(url, place.org, token)
    write_membership(desk.folder, place, wait=TEAM_LOCK_TIMEOUT)
    report = asyncio.run(desk.open_team().exchange(wait=TEAM_LOCK_TIMEOUT))
    if desk.desk.is_json:
        desk.screen.show_json(
            {"repo": place.repo, "repo_name": place.repo_name, **describe_sync_report(report)}
        )
        return 0
    desk.screen.show_line(f"joined {place.repo_name} on {url} as {place.member} of {place.org}")
    show_sync_report(report, desk.screen)
    desk.screen.show_line(f"what is in {desk.desk.project.memory.path}/team is shared from now on", "faint")
    return 0


def leave_team_repository(options: Namespace, desk: TeamContext) -> int:
    place = read_membership(desk.folder)
    if place is None:
        raise InputError("this project has joined no server")
    forget_membership(desk.folder, wait=TEAM_LOCK_TIMEOUT)
    if options.forget_token:
        TokenStore(desk.home).forget(place.url, place.org)
    if desk.desk.is_json:
        desk.screen.show_json({"left": place.url})
    else:
        desk.screen.show_line(f"left {place.repo_name} on {place.url}; the memories stay in team/")
    return 0


def _token(options: Namespace, desk: TeamContext, url: str) -> str:
    if options.token_stdin:
        return check_token(sys.stdin.readline().strip())
    if options.code:
        return asyncio.run(_signed_in(desk, url))
    known = TokenStore(desk.home).find(url)
    if known and asyncio.run(_is_good(url, known)):
        return known
    if not desk.desk.is_attended:
        raise InputError("nobody can be asked for a token here; pipe it in with --token-stdin, or use --code")
    pasted = getpass(f"token for {url} (nothing: sign in with a code): ").strip()
    return check_token(pasted) if pasted else asyncio.run(_signed_in(desk, url))


async def _is_good(url: str, token: str) -> bool:
    try:
        async with ServerClient(url, token) as link:
            await pull_person(link)
    except TeamRefused:
        return False
    return True


async def _signed_in(desk: TeamContext, url: str) -> str:
    async with ServerClient(url) as link:
        device = await start_device_login(link, platform.node())
        desk.screen.note(f"code {device.code}: ask an admin to approve it, with {device.advice}")
        return await pull_token(link, device, asyncio.sleep)


async def _placed(desk: TeamContext, url: str, token: str, wanted: str) -> Membership:
    async with ServerClient(url, token) as link:
        person = await pull_person(link)
        known = await pull_repositories(link)
        found = choose_repository(known, wanted, desk.desk.project.root.name)
        return make_membership(link, person, found)
