"""The team's server over HTTP, and how a project joins it.

Every request is bounded in time and size, and none is retried here. Joining needs to know whom a token
belongs to, which repository is meant, and how a device signs in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from importlib.util import find_spec
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import urlsplit

from sevenfold.core import __version__
from sevenfold.core.errors import InputError, TeamOffline, TeamRefused, WireError, describe_missing
from sevenfold.core.events import Emit, TeamEntryRefused, ignore_event
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object
from sevenfold.team.client.local_state import Membership
from sevenfold.team.client.ports import (
    MissingBodies,
    RemoteListing,
    read_applied,
    read_body_text,
    read_conflicts,
    read_listed_texts,
    read_missing,
    read_remote_entries,
    read_server_problem,
    read_unknown,
)
from sevenfold.team.protocol import (
    MAX_TOTAL_BYTES,
    Checksum,
    Commit,
    CommitApplied,
    CommitConflicts,
    RepoId,
    TeamEntry,
    TeamKey,
)

if TYPE_CHECKING:
    import httpx2


_T = TypeVar("_T")

_API = "/api/v1"
_MEMORY = f"{_API}/memory"

MAX_ANSWER_BYTES = 3 * MAX_TOTAL_BYTES
"""All that a repository may hold, with room for how JSON spells it."""
MAX_SINGLE_PULLS = 20
"""Up to so many texts are asked for singly; for more, all at once is less to wait for."""
MAX_BAD_NAMES = 20
"""Names that are none, of one listing: a server may have thousands of them."""
SLOWEST_BYTES_PER_SECOND = 10_000
"""Who sends less than a line of the nineties carries is keeping us busy, a byte at a time."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResponse:
    status: int
    body: JsonObject
    etag: str = ""
    retry_after: timedelta | None = None
    location: str = ""


def check_server(url: str) -> str:
    """The address of a server, without a slash at its end; in the clear only to this machine."""
    try:
        parts = urlsplit(url.rstrip("/"))
        parts.port  # noqa: B018 - a wrong one is found when it is asked for
    except ValueError as error:
        raise InputError(f"{url!r:.200} is no address of a server: {error}") from error
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise InputError(
            f"{url!r:.200} is no address of a server; expected one like https://memory.example.org"
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise InputError(f"{url!r:.200} would send the token in the clear; use https://")
    return url.rstrip("/")


class ServerClient:
    """One repository on one server, as one member. Close it after use."""

    def __init__(
        self,
        url: str,
        token: str = "",
        repo: RepoId | None = None,
        *,
        timeout: timedelta = timedelta(seconds=20),
        emit: Emit = ignore_event,
    ) -> None:
        self.url = check_server(url)
        self._token, self._repo, self._emit = token, repo, emit
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def pull_entries(self, etag: str) -> RemoteListing | None:
        headers = {"if-none-match": etag} if etag else {}
        answer = await self.request("GET", _MEMORY, query={"view": "hashes"}, headers=headers)
        if answer.status == HTTPStatus.NOT_MODIFIED:
            return None
        found = _read(lambda: read_remote_entries(_checked(answer).body))
        for key, reason in islice(found.refused.items(), MAX_BAD_NAMES):
            self._emit(TeamEntryRefused(key, reason))
        if len(found.refused) > MAX_BAD_NAMES:
            more = len(found.refused) - MAX_BAD_NAMES
            self._emit(
                TeamEntryRefused(f"{more:,} more", "their names are none that a shared memory may have")
            )
        # The number alone comes again after a point-in-time recovery, with other texts.
        etag = f'"{found.seq}.{found.tag}"' if found.tag else answer.etag
        return RemoteListing(
            etag=etag, seq=found.seq, entries=found.entries, lost=found.lost, authors=found.authors
        )

    async def pull_bodies(self, checksums: Sequence[Checksum]) -> Mapping[Checksum, str]:
        texts: dict[Checksum, str] = {}
        if len(checksums) > MAX_SINGLE_PULLS:
            answer = _checked(await self.request("GET", _MEMORY))
            texts |= _read(lambda answer=answer: read_listed_texts(answer.body))
        # Somebody may have replaced a few since they were listed: the old ones can still be had singly.
        for checksum in [one for one in checksums if one not in texts][:MAX_SINGLE_PULLS]:
            answer = await self.request("GET", f"{_MEMORY}/bodies/{checksum}")
            if answer.status == HTTPStatus.OK:
                texts |= _read(lambda answer=answer: read_body_text(answer.body))
            elif answer.status != HTTPStatus.NOT_FOUND:
                _checked(answer)
        return texts

    async def push_bodies(self, texts: Sequence[str]) -> None:
        _checked(await self.request("POST", f"{_MEMORY}/bodies", body={"bodies": list(texts)}))

    async def push_commit(self, commit: Commit) -> CommitApplied | CommitConflicts | MissingBodies:
        changes = [
            {"key": one.key, "expected": one.expected, "checksum": one.checksum}
            | ({"seen": commit.seen[one.key]} if one.key in commit.seen else {})
            for one in commit.changes
        ]
        answer = await self.request("POST", f"{_MEMORY}/commit", body={"id": commit.id, "changes": changes})
        if answer.status == HTTPStatus.CONFLICT and "conflicts" in answer.body:
            return _read(lambda: read_conflicts(answer.body))
        if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY and "missing" in answer.body:
            return read_missing(answer.body)
        return _read(lambda: read_applied(_checked(answer).body, commit))

    async def pull_unknown(self, entries: Mapping[TeamKey, TeamEntry]) -> Collection[TeamKey]:
        listed = [
            {"key": key, "version": entry.version, "checksum": entry.checksum}
            for key, entry in entries.items()
        ]
        answer = await self.request("POST", f"{_MEMORY}/known", body={"entries": listed})
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return frozenset()  # an older server
        return read_unknown(_checked(answer).body, entries)

    async def call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> JsonObject:
        """Any other operation of the server; its answer, or the error that it is."""
        return _checked(await self.request(method, f"{_API}{path}", body=body, is_of_repo=False)).body

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        is_of_repo: bool = True,
    ) -> ServerResponse:
        _check_client()
        import httpx2

        own = {"authorization": f"Bearer {self._token}"} if self._token else {}
        repo = {"repo": self._repo} if is_of_repo and self._repo else {}
        # As text and not as ASCII: what a batch was measured by.
        content = (
            None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        )
        kind = {} if body is None else {"content-type": "application/json"}
        seconds = self._timeout.total_seconds() + len(content or b"") / SLOWEST_BYTES_PER_SECOND
        client = self._opened()
        try:
            async with (
                asyncio.timeout(seconds) as limit,
                client.stream(
                    method,
                    f"{self.url}{path}",
                    params={**repo, **(query or {})},
                    content=content,
                    headers={**own, **kind, **(headers or {})},
                ) as response,
            ):
                return await _read_answer(response, limit)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise TeamOffline(f"{self.url} cannot be reached: {reason}") from error
        except TimeoutError as error:
            raise TeamOffline(f"{self.url} took too long for one answer") from error

    def _opened(self) -> httpx2.AsyncClient:
        import httpx2

        if self._client is None:
            try:
                self._client = httpx2.AsyncClient(
                    timeout=self._timeout.total_seconds(),
                    follow_redirects=False,
                    # To this machine the token goes in the clear, so no proxy may stand between.
                    trust_env=urlsplit(self.url).hostname not in _LOOPBACK,
                    # What is packed may unpack to a thousand times its size: so nothing may be.
                    headers={"accept-encoding": "identity", "user-agent": f"sevenfold/{__version__}"},
                )
            except (OSError, ValueError, ImportError) as error:
                raise InputError(
                    f"no connection can be made with these certificates and proxies: {error}; look at "
                    "SSL_CERT_FILE, SSL_CERT_DIR, HTTPS_PROXY and ALL_PROXY"
                ) from error
        return self._client


def _check_client() -> None:
    if find_spec("httpx2") is None:
        raise TeamRefused(describe_missing("sevenfold team", ["httpx2"], "team"))


async def _read_answer(response: httpx2.Response, limit: asyncio.Timeout) -> ServerResponse:
    """All of it, with more time the more of it comes."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise TeamOffline(
            f"{response.url.host} compresses what was asked for plain; check what stands before it"
        )
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        limit.reschedule((limit.when() or 0) + len(chunk) / SLOWEST_BYTES_PER_SECOND)
        if len(data) > MAX_ANSWER_BYTES:
            raise TeamRefused(
                f"{response.url.host} answers with more than {MAX_ANSWER_BYTES:,} bytes; nothing was taken"
            )
    wait = response.headers.get("retry-after", "")
    return ServerResponse(
        status=response.status_code,
        body=_object(bytes(data)),
        etag=response.headers.get("etag", ""),
        retry_after=timedelta(seconds=int(wait))
        if wait.isascii() and wait.isdigit() and len(wait) < 6
        else None,
        location=response.headers.get("location", ""),
    )


def _object(data: bytes) -> JsonObject:
    """What is no JSON, from something that stands before the server say, has a status all the same."""
    try:
        return read_object(data) if data else EMPTY_OBJECT
    except WireError:
        return EMPTY_OBJECT


def _checked(answer: ServerResponse) -> ServerResponse:
    """The answer, if it is what was asked for."""
    status = answer.status
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return answer
    if status < HTTPStatus.BAD_REQUEST:
        raise TeamRefused(
            f"it answered {status} and points to {answer.location!r:.200}, where the token is not sent; join "
            "the server at its own address",
            status=status,
        )
    complaint = read_server_problem(answer.body)
    said = str(complaint) or f"it answered {status} without a word; is this a Sevenfold server?"
    if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS) or status >= 500:
        raise TeamOffline(f"the server cannot now: {said}", retry_after=answer.retry_after)
    raise TeamRefused(said, status=status, kind=complaint.kind, keys=complaint.keys)


def _read(read: Callable[[], _T]) -> _T:
    try:
        return read()
    except WireError as error:
        raise TeamRefused(str(error)) from error


# Joining a server.

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
    reply = await link.call("GET", "/whoami")
    org, name, member, role = (_name(reply, part) for part in ("org", "org_name", "member", "role"))
    return TokenOwner(org, name, member, role)


async def pull_repositories(link: ServerClient) -> tuple[TeamRepository, ...]:
    repos = (await link.call("GET", "/repos")).get("repos")
    rows = [row for row in repos if isinstance(row, JsonObject)] if isinstance(repos, tuple) else []
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


async def start_device_login(link: ServerClient, name: str, org: str = "") -> DeviceLogin:
    reply = await link.call("POST", "/device", {"name": name} | ({"org": org} if org else {}))
    interval = max(1, _whole(reply, "interval"))
    return DeviceLogin(
        code=_text(reply, "user_code"),
        advice=_text(reply, "verify"),
        device_code=_text(reply, "device_code"),
        interval=timedelta(seconds=interval),
        polls=max(1, _whole(reply, "expires_in") // interval),
    )


async def pull_token(link: ServerClient, device: DeviceLogin, sleep: Sleep) -> str:
    """The device's token, once somebody has approved it."""
    for _ in range(device.polls):
        try:
            reply = await link.call("POST", "/device/token", {"device_code": device.device_code})
            return _text(reply, "token")
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
            f"the server's {part!r} is not a name: {found[:_MAX_NAME_CHARS]!r}; nothing was joined"
        )
    return found


def _whole(value: JsonObject, name: str) -> int:
    found = value.get(name)
    return found if isinstance(found, int) else 0
