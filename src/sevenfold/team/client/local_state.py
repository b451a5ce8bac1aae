"""What is kept on disk: what a device knows of its exchanges, which server a project has joined, and tokens.

The ledger and the membership are in the project's control folder, where agents cannot write. Tokens are in
the user's home, readable by the user alone, and never in a repository.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sevenfold.core.errors import FileDamaged, FileMissing, InputError, TeamLeft, WireError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files.disk import run_blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import edit_file, mutex
from sevenfold.team.client.sync_policy import PendingWrite, RefusedText, RetryState, SyncState
from sevenfold.team.protocol import Checksum, Commit, CommitId, RepoId, TeamChange, TeamEntry, TeamKey

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
        await run_blocking(lambda: self._folder.replace(SYNC_STATE_FILE, write_json(_written(state))))

    def read_state(self) -> SyncState:
        """As it was written last. Blocks on the disk."""
        try:
            return _read(read_object(self._folder.read(SYNC_STATE_FILE, max_bytes=_MAX_STATE_BYTES)))
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
            return _pace(read_object(self._folder.read(RETRY_FILE, max_bytes=_MAX_STATE_BYTES)))
        except (FileMissing, WireError):
            return RetryState()

    def write_retry(self, pace: RetryState) -> None:
        self._folder.replace(
            RETRY_FILE,
            write_json(
                freeze_object(
                    {
                        "failures": [moment.isoformat() for moment in pace.failures],
                        "in_a_row": pace.in_a_row,
                        "not_before": pace.not_before.isoformat() if pace.not_before else None,
                        "refusal": pace.refusal,
                        "mark": pace.mark,
                    }
                )
            ),
        )


def _written(state: SyncState) -> JsonObject:
    pending, incoming = state.pending, state.incoming
    return freeze_object(
        {
            "device": state.device,
            "etag": state.etag,
            "remote": _entries(state.remote),
            "bases": _entries(state.bases),
            "incoming": None
            if incoming is None
            else {
                "mark": incoming.mark,
                "entries": _entries(incoming.entries),
                "doomed": dict(incoming.doomed),
            },
            "doomed": dict(state.doomed),
            "refused": {key: [one.checksum, one.reason] for key, one in state.refused.items()},
            "pending": None
            if pending is None
            else {
                "id": pending.id,
                "changes": [[one.key, one.expected, one.checksum] for one in pending.changes],
            },
        }
    )


def _entries(entries: Mapping[TeamKey, TeamEntry]) -> dict[str, list[int | str | None]]:
    return {key: [entry.version, entry.checksum] for key, entry in entries.items()}


def _read(value: JsonObject) -> SyncState:
    pending, incoming = value.get("pending"), value.get("incoming")
    return SyncState(
        device=_text(value.get("device")),
        etag=_text(value.get("etag")),
        remote=_read_entries(value.get("remote")),
        bases=_read_entries(value.get("bases")),
        incoming=_arrival(_object(incoming)) if incoming else None,
        doomed=_doomed(value.get("doomed")),
        refused={TeamKey(key): _refused(one) for key, one in _object(value.get("refused")).items()},
        pending=None if pending is None else _commit(_object(pending)),
    )


def _read_entries(value: Json) -> dict[TeamKey, TeamEntry]:
    return {TeamKey(key): _entry(one) for key, one in _object(value).items()}


def _arrival(value: JsonObject) -> PendingWrite:
    return PendingWrite(
        _text(value.get("mark")), _read_entries(value.get("entries")), _doomed(value.get("doomed"))
    )


def _doomed(value: Json) -> dict[TeamKey, Checksum]:
    return {TeamKey(key): Checksum(_text(one)) for key, one in _object(value).items()}


def _entry(value: Json) -> TeamEntry:
    version, checksum = _items(value, 2)
    return TeamEntry(_whole(version), None if checksum is None else Checksum(_text(checksum)))


def _refused(value: Json) -> RefusedText:
    checksum, reason = _items(value, 2)
    return RefusedText(Checksum(_text(checksum)), _text(reason))


def _commit(value: JsonObject) -> Commit:
    changes = value.get("changes")
    listed = changes if isinstance(changes, tuple) else ()
    return Commit(CommitId(_text(value.get("id"))), tuple(_change(one) for one in listed))


def _change(value: Json) -> TeamChange:
    key, expected, checksum = _items(value, 3)
    return TeamChange(
        TeamKey(_text(key)), _whole(expected), None if checksum is None else Checksum(_text(checksum))
    )


def _pace(value: JsonObject) -> RetryState:
    failures, not_before = value.get("failures"), value.get("not_before")
    return RetryState(
        failures=tuple(_moment(one) for one in failures) if isinstance(failures, tuple) else (),
        in_a_row=_whole(value.get("in_a_row")),
        not_before=None if not_before is None else _moment(not_before),
        refusal=_text(value.get("refusal")),
        mark=_text(value.get("mark")),
    )


def _moment(value: Json) -> datetime:
    try:
        found = datetime.fromisoformat(_text(value))
    except ValueError as error:
        raise WireError(f"{value!r:.80} is no time") from error
    if found.tzinfo is None:
        raise WireError(f"{value!r:.80} has no zone")
    return found


def _object(value: Json) -> JsonObject:
    if not isinstance(value, JsonObject):
        raise WireError(f"expected an object in {SYNC_STATE_FILE}, found {type(value).__name__}")
    return value


def _items(value: Json, count: int) -> tuple[Json, ...]:
    if not isinstance(value, tuple) or len(value) != count:
        raise WireError(f"expected a list of {count} in {SYNC_STATE_FILE}, found {value!r:.80}")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise WireError(f"expected a text in {SYNC_STATE_FILE}, found {value!r:.80}")
    return value


def _whole(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError(f"expected a number in {SYNC_STATE_FILE}, found {value!r:.80}")
    return value


TEAM_FOLDER = "team"
"""In a project's control folder."""
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
    repo_name: str
    org: str
    member: str


@dataclass(frozen=True, slots=True)
class TeamAccess:
    """A place, and the right to it."""

    membership: Membership
    token: str = field(repr=False)


def read_membership(folder: Folder) -> Membership | None:
    """None: the project has joined nothing."""
    try:
        value = read_object(folder.read(MEMBER_FILE, max_bytes=_MAX_BYTES))
    except FileMissing:
        return None
    except WireError as error:
        raise InputError(f"{folder.path}/{MEMBER_FILE} cannot be read: {error}; join again") from error
    url, repo, name, org, member = (
        str(value.get(part, "")) for part in ("url", "repo", "repo_name", "org", "member")
    )
    return Membership(url=url, repo=RepoId(repo), repo_name=name, org=org, member=member)


def write_membership(folder: Folder, joined: Membership, *, wait: timedelta = timedelta(0)) -> None:
    """What was agreed with another server is forgotten: there all of it is new, and nothing is deleted."""
    told = {"url": joined.url, "repo": joined.repo, "repo_name": joined.repo_name}
    told |= {"org": joined.org, "member": joined.member}
    with mutex(folder, EXCHANGE_MUTEX, wait=wait):
        if not _is_at(folder, joined):
            _forget(folder)
        folder.replace(MEMBER_FILE, write_json(freeze_object(told)))


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
