"""Asking a forge who may push to a repository: the proof that a remote string is not.

GitHub, its enterprise edition, Gitea and Forgejo answer alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from sevenfold.core.errors import InputError
from sevenfold.team.server.api_errors import ApiError

PUBLIC_APIS = {"github.com": "https://api.github.com"}
"""Whose API is not under its own name."""

_REMOTE = re.compile(
    r"(?:https://|ssh://git@|git@)([a-z0-9.-]{1,200})(?:/|:)"
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})/([A-Za-z0-9._-]{1,100}?)(?:\.git)?/?",
    re.ASCII,
)
TIMEOUT_SECONDS = 10
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ForgeRepo:
    number: int
    """The forge's own, which stays when the repository is renamed or moved."""
    name: str
    may_push: bool


@dataclass(frozen=True, slots=True)
class ForgePath:
    host: str
    owner: str
    name: str


FetchUrl: TypeAlias = Callable[[str, str], Awaitable[bytes | None]]
"""A URL and a credential; None where the forge does not show it."""


def read_remote(remote: str) -> ForgePath:
    found = _REMOTE.fullmatch(remote)
    if found is None or ".." in remote:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{remote[:120]!r} is no remote of a forge",
            advice="send it like https://HOST/OWNER/NAME or git@HOST:OWNER/NAME",
        )
    return ForgePath(found[1], found[2], found[3])


class Forge:
    """The one forge that this server trusts: a host that a client names is asked nothing."""

    def __init__(self, host: str, fetch: FetchUrl) -> None:
        self.host, self._fetch = host, fetch

    async def look_up(self, remote: str, credential: str) -> ForgeRepo:
        """`Refusal` 422 unless the credential's owner may push there."""
        path = read_remote(remote)
        if path.host != self.host:
            raise ApiError(
                status=422,
                kind="bad request",
                message=f"{path.host} is not the forge of this server",
                advice=f"use a remote of {self.host}",
            )
        api = PUBLIC_APIS.get(self.host, f"https://{self.host}/api/v1")
        said = await self._fetch(f"{api}/repos/{path.owner}/{path.name}", credential)
        repo = _read(said) if said is not None else None
        if repo is None or not repo.may_push:
            raise ApiError(
                status=422,
                kind="bad request",
                message="the forge does not say that this credential may push there",
                advice="check remote and credential, or have an admin claim the repository",
            )
        return repo


def _read(said: bytes) -> ForgeRepo | None:
    try:
        told: object = json.loads(said)
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    fields = cast("dict[str, object]", told)
    number, name, rights = fields.get("id"), fields.get("full_name"), fields.get("permissions")
    if not isinstance(number, int) or not isinstance(name, str) or not isinstance(rights, dict):
        return None
    return ForgeRepo(number, name, cast("dict[str, object]", rights).get("push") is True)


async def fetch_over_http(url: str, credential: str) -> bytes | None:
    import httpx2

    if not credential.isascii() or not credential.isprintable():
        raise InputError("the forge's credential has characters that no header can hold; copy it again")
    headers = {"authorization": f"Bearer {credential}", "accept": "application/json"}
    try:
        async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client:
            answer = await client.get(url, headers=headers)
    except httpx2.HTTPError as error:
        raise ApiError(
            status=503,
            kind="not ready",
            message=f"the forge did not answer ({type(error).__name__})",
            advice="ask again later, or have an admin claim the repository",
            retry=True,
            retry_after_seconds=30,
        ) from error
    return answer.content if answer.status_code == 200 and len(answer.content) <= _MAX_BYTES else None
