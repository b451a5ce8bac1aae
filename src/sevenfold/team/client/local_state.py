"""What is kept on disk: what a device knows of its exchanges, which server a project has joined, and tokens.

The ledger and the membership are in the state of the memory directory, where agents cannot write. Tokens are
in the user's home, readable by the user alone, and never in a repository.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from sevenfold.core.errors import FileDamaged, FileMissing, InputError, TeamLeft, WireError
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.core.system import run_blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import edit_file, mutex
from sevenfold.team.client.sync_policy import RetryState, SyncState
from sevenfold.team.protocol import RepoId

SYNC_STATE_FILE = "state.json"
RETRY_FILE = "pace.json"
_MAX_STATE_BYTES = 32 * 1024 * 1024


class FolderLedger:
    """Whole or not at all. A damaged file is an error: guessing what it said would cost texts."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    async def read(self) -> SyncState:
        return await run_blocking(self.read_state)

    async def write(self, state: SyncState) -> None:
        await run_blocking(lambda: self._folder.replace(SYNC_STATE_FILE, write_json(write_fields(state))))

    def read_state(self) -> SyncState:
        """As it was written last. Blocks on the disk."""
        try:
            wire = read_object(self._folder.read(SYNC_STATE_FILE, max_bytes=_MAX_STATE_BYTES))
            return read_fields(SyncState, wire)
        except FileMissing:
            return SyncState(device=secrets.token_hex(16))
        except WireError as error:
            raise FileDamaged(
                f"{self._folder.path}/{SYNC_STATE_FILE} cannot be read: {error}; `sevenfold team "
                f"leave` and join "
                "again, by which no text is lost"
            ) from error

    def read_retry(self) -> RetryState:
        """One that cannot be read is as good as none: at worst it is tried once more."""
        try:
            wire = read_object(self._folder.read(RETRY_FILE, max_bytes=_MAX_STATE_BYTES))
            return read_fields(RetryState, wire)
        except (FileMissing, WireError):
            return RetryState()

    def write_retry(self, pace: RetryState) -> None:
        self._folder.replace(RETRY_FILE, write_json(write_fields(pace)))


MEMBER_FILE = "member.json"
EXCHANGE_MUTEX = "exchange"
"""Held by whoever exchanges, joins or leaves."""
TOKENS_FILE = "team-tokens.json"
_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """One project's place on a server."""

    url: str
    repo: RepoId
    repo_name: str = ""
    org: str = ""
    member: str = ""


@dataclass(frozen=True, slots=True)
class TeamAccess:
    """A place, and the right to it."""

    membership: Membership
    token: str = field(repr=False)


def read_membership(folder: Folder) -> Membership | None:
    """None: the project has joined nothing."""
    try:
        return read_fields(Membership, read_object(folder.read(MEMBER_FILE, max_bytes=_MAX_BYTES)))
    except FileMissing:
        return None
    except WireError as error:
        raise InputError(f"{folder.path}/{MEMBER_FILE} cannot be read: {error}; join again") from error


def write_membership(folder: Folder, joined: Membership, *, wait: timedelta = timedelta(0)) -> None:
    """What was agreed with another server is forgotten: there all of it is new, and nothing is deleted."""
    with mutex(folder, EXCHANGE_MUTEX, wait=wait):
        if not _is_at(folder, joined):
            _forget(folder)
        folder.replace(MEMBER_FILE, write_json(write_fields(joined)))


def forget_membership(folder: Folder, *, wait: timedelta = timedelta(0)) -> None:
    """The files stay, and so does what was allowed."""
    with mutex(folder, EXCHANGE_MUTEX, wait=wait):
        _forget(folder)


def check_membership(folder: Folder, place: Membership) -> None:
    """`TeamLeft` unless the project has still joined that: a session may outlast it, and what belongs to one
    team must not be sent to another."""
    if not _is_at(folder, place):
        raise TeamLeft(
            f"this project has left {place.repo_name} on {place.url} meanwhile, or joined another; a new "
            "session exchanges again"
        )


def _is_at(folder: Folder, place: Membership) -> bool:
    try:
        now = read_membership(folder)
    except InputError:
        return False
    return now is not None and (now.url, now.repo) == (place.url, place.repo)


def _forget(folder: Folder) -> None:
    for name in (MEMBER_FILE, SYNC_STATE_FILE, RETRY_FILE):
        if folder.stat(name) is not None:
            folder.remove(name)


def find_team_access(folder: Folder, home: Folder) -> TeamAccess | None:
    """What `sevenfold team join` has left: the place in the project's folder, the token in our home."""
    place = read_membership(folder)
    if place is None:
        return None
    token = TokenStore(home).find(place.url, place.org)
    if not token:
        raise InputError(f"there is no token for {place.url}; `sevenfold team join {place.url}` asks for one")
    return TeamAccess(place, token)


def check_token(text: str) -> str:
    """The token; `InputError` for what cannot be one, before it is sent anywhere."""
    if not _is_token(text):
        raise InputError("that is no token; paste the one that the server's admin gave you, in one line")
    return text


def _is_token(text: str) -> bool:
    return 0 < len(text) <= 1_000 and text.isascii() and text.isprintable() and " " not in text


class TokenStore:
    """The tokens of this person, by server and organisation: one server may have several.

    `home` is ours alone: its files are made for their owner only."""

    def __init__(self, home: Folder) -> None:
        self._home = home

    def find(self, url: str, org: str = "") -> str:
        """Of the organisation, or else the last one for that server; empty where there is none."""
        known = self._read()
        token = known.get(_place(url, org), known.get(url, ""))
        return token if isinstance(token, str) and _is_token(token) else ""

    def write(self, url: str, org: str, token: str) -> None:
        check_token(token)
        self._edit(lambda known: JsonObject({**known, url: token, _place(url, org): token}))

    def forget(self, url: str, org: str) -> None:
        """Another organisation's stays."""
        gone = self.find(url, org)

        def left(known: JsonObject) -> JsonObject:
            places = (url, _place(url, org))
            return JsonObject({key: one for key, one in known.items() if key not in places or one != gone})

        self._edit(left)

    def _edit(self, change: Callable[[JsonObject], JsonObject]) -> None:
        def changed(before: bytes | None) -> bytes:
            return write_json(change(read_object(before) if before else JsonObject()))

        edit_file(self._home, TOKENS_FILE, changed, control=self._home, max_bytes=_MAX_BYTES)

    def _read(self) -> JsonObject:
        try:
            return read_object(self._home.read(TOKENS_FILE, max_bytes=_MAX_BYTES))
        except FileMissing:
            return JsonObject()


def _place(url: str, org: str) -> str:
    """No address has a space in it."""
    return f"{url} {org}"
