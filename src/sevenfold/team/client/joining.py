"""How a project comes to a place on a server: whom a token speaks for, and which repository is meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sevenfold.core.errors import InputError, TeamRefused
from sevenfold.core.json import Json, JsonObject
from sevenfold.team.client.membership import Membership
from sevenfold.team.client.server_client import ServerClient
from sevenfold.team.protocol import RepoId

_MAX_NAME_CHARS = 200

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """Whom a token speaks for."""

    org: str
    org_name: str
    member: str
    role: str


@dataclass(frozen=True, slots=True)
class TeamRepository:
    id: RepoId
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLogin:
    """What a person has to say to an admin, and what is asked with until they have."""

    code: str
    advice: str
    device_code: str = field(repr=False)
    interval: timedelta
    polls: int
    """How often it is worth asking before the code is over."""


async def pull_person(link: ServerClient) -> TokenOwner:
    told = await link.call("GET", "/whoami")
    org, name, member, role = (_name(told, part) for part in ("org", "org_name", "member", "role"))
    return TokenOwner(org, name, member, role)


async def pull_repositories(link: ServerClient) -> tuple[TeamRepository, ...]:
    told = (await link.call("GET", "/repos")).get("repos")
    rows = [row for row in told if isinstance(row, JsonObject)] if isinstance(told, tuple) else []
    return tuple(TeamRepository(RepoId(_name(row, "id")), _name(row, "name")) for row in rows)


def choose_repository(known: Sequence[TeamRepository], wanted: str, folder_name: str) -> TeamRepository:
    """The one that is meant: by its name or id, the only one, or the one that is called as the folder."""
    named = [one for one in known if wanted and wanted in (one.name, one.id)]
    alike = [one for one in known if one.name.rpartition("/")[2] == folder_name]
    for found in (named, [] if wanted else list(known), [] if wanted else alike):
        if len(found) == 1:
            return found[0]
    listed = (
        ", ".join(one.name for one in known[:20]) or "none: an admin claims one with `sevenfold serve repo`"
    )
    said = f"there is no repository {wanted!r}" if wanted else "more than one repository can be meant"
    raise InputError(
        f"{said if known else 'the server has no repository yet'}; name one with --repo: {listed}"
    )


async def start_device_login(link: ServerClient, name: str) -> DeviceLogin:
    told = await link.call("POST", "/device", {"name": name})
    interval = max(1, _whole(told, "interval"))
    return DeviceLogin(
        code=_text(told, "user_code"),
        advice=_text(told, "verify"),
        device_code=_text(told, "device_code"),
        interval=timedelta(seconds=interval),
        polls=max(1, _whole(told, "expires_in") // interval),
    )


async def pull_token(link: ServerClient, device: DeviceLogin, sleep: Sleep) -> str:
    """The device's token, once somebody has approved it."""
    for _ in range(device.polls):
        try:
            told = await link.call("POST", "/device/token", {"device_code": device.device_code})
            return _text(told, "token")
        except TeamRefused as error:
            if error.kind != "pending":
                raise
        await sleep(device.interval.total_seconds())
    raise TeamRefused(f"nobody approved {device.code} in time; begin again")


def make_membership(link: ServerClient, person: TokenOwner, repository: TeamRepository) -> Membership:
    return Membership(
        url=link.url,
        repo=repository.id,
        repo_name=repository.name,
        org=person.org_name or person.org,
        member=person.member,
    )


def _text(value: JsonObject, name: str) -> str:
    found: Json = value.get(name)
    if not isinstance(found, str):
        raise TeamRefused(f"the server's answer has no {name!r}; is this a Sevenfold server?")
    return found


def _name(value: JsonObject, part: str) -> str:
    """A text that is a name: it is shown to people, and to the model beside its first prompt."""
    found = _text(value, part)
    if len(found) > _MAX_NAME_CHARS or not found.isprintable():
        raise TeamRefused(
            f"the server's {part!r} is no name: {found[:_MAX_NAME_CHARS]!r}; nothing was joined"
        )
    return found


def _whole(value: JsonObject, name: str) -> int:
    found = value.get(name)
    return found if isinstance(found, int) else 0
