"""Answers of the server, with names, counts, sizes and checksums checked before use; and batches of texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.memories import is_team_key
from sevenfold.core.text.safe_text import replace_lone_surrogates
from sevenfold.team.client.ports import MissingBodies
from sevenfold.team.protocol import (
    MAX_REQUEST_BYTES,
    MAX_TEAM_FILE_BYTES,
    Checksum,
    Commit,
    CommitApplied,
    CommitConflicts,
    TeamEntry,
    TeamKey,
    compute_checksum,
    is_checksum,
)

_MAX_LISTED = 20_000
"""Entries and tombstones: a team of 500 memories that deletes fifty a day for a year."""


@dataclass(frozen=True, slots=True)
class RemoteEntries:
    seq: int
    entries: Mapping[TeamKey, TeamEntry]
    refused: Mapping[str, str]
    """What is left out of it, and why."""


@dataclass(frozen=True, slots=True)
class ServerProblem:
    """Why the server did not do it."""

    kind: str = ""
    message: str = ""
    advice: str = ""
    keys: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return "; ".join(part for part in (self.message, self.advice) if part)


def read_remote_entries(answer: JsonObject) -> RemoteEntries:
    living, deleted = _object(answer, "entries"), _object(answer, "deleted")
    if len(living) + len(deleted) > _MAX_LISTED:
        raise WireError(
            f"the server lists {len(living) + len(deleted):,} keys; at most {_MAX_LISTED:,} are read"
        )
    entries: dict[TeamKey, TeamEntry] = {}
    refused: dict[str, str] = {}
    for key, value in (*living.items(), *deleted.items()):
        if not is_team_key(key):
            refused[key[:100]] = "its name is none that a shared memory may have"
            continue
        entries[TeamKey(key)] = _entry(value, is_living=key in living)
    return RemoteEntries(_whole(answer, "seq"), entries, refused)


def read_listed_texts(answer: JsonObject) -> Mapping[Checksum, str]:
    """The texts of a full listing that are what their checksums say."""
    texts = (_text(value) for value in _object(answer, "entries").values())
    return {found.checksum: found.text for found in texts if found}


def read_body_text(answer: JsonObject) -> Mapping[Checksum, str]:
    found = _text(answer)
    return {found.checksum: found.text} if found else {}


def read_applied(answer: JsonObject, commit: Commit) -> CommitApplied:
    versions = _object(answer, "versions")
    entries = {one.key: TeamEntry(_whole(versions, one.key), one.checksum) for one in commit.changes}
    return CommitApplied(_whole(answer, "seq"), entries)


def read_conflicts(answer: JsonObject) -> CommitConflicts:
    found = _object(answer, "conflicts")
    return CommitConflicts({TeamKey(key): _entry(value, is_living=False) for key, value in found.items()})


def read_missing(answer: JsonObject) -> MissingBodies:
    found = answer.get("missing")
    named = found if isinstance(found, tuple) else ()
    return MissingBodies(tuple(Checksum(one) for one in named if isinstance(one, str) and is_checksum(one)))


def read_server_problem(answer: JsonObject) -> ServerProblem:
    error = answer.get("error")
    said = error if isinstance(error, JsonObject) else JsonObject()
    kind, message, advice = (_words(said.get(name)) for name in ("kind", "message", "try"))
    return ServerProblem(kind, message, advice, dict(_blamed(answer, message)))


def _blamed(answer: JsonObject, message: str) -> Iterator[tuple[str, str]]:
    keys, secrets = answer.get("keys"), answer.get("secrets")
    if isinstance(keys, tuple):
        yield from ((one, message) for one in keys if isinstance(one, str))
    if isinstance(secrets, JsonObject):
        for name, found in secrets.items():
            yield name, "; ".join(_finding(one) for one in found) if isinstance(found, tuple) else message


def _finding(value: Json) -> str:
    one = value if isinstance(value, JsonObject) else JsonObject()
    fingerprint = _words(one.get("fingerprint"))
    named = f"line {_words(one.get('line'))}: {_words(one.get('name'))} (found by the server"
    return f"{named}, fingerprint {fingerprint})" if fingerprint else f"{named})"


@dataclass(frozen=True, slots=True)
class _Text:
    checksum: Checksum
    text: str


def _text(value: Json) -> _Text | None:
    one = value if isinstance(value, JsonObject) else JsonObject()
    text, told = one.get("content"), one.get("checksum")
    # What is no sound text would be another one by the time it is in a file.
    if (
        not isinstance(text, str)
        or replace_lone_surrogates(text) != text
        or len(text.encode()) > MAX_TEAM_FILE_BYTES
    ):
        return None
    checksum = compute_checksum(text)
    return _Text(checksum, text) if checksum == told else None


def _entry(value: Json, *, is_living: bool) -> TeamEntry:
    one = value if isinstance(value, JsonObject) else JsonObject()
    version, checksum = _whole(one, "version"), one.get("checksum")
    if isinstance(checksum, str) and is_checksum(checksum):
        return TeamEntry(version, Checksum(checksum))
    if checksum is not None or is_living:
        raise WireError(
            f"{_words(checksum)!r} is no checksum; the server and this program do not fit together"
        )
    return TeamEntry(version, None)


def _object(answer: JsonObject, name: str) -> JsonObject:
    found = answer.get(name)
    if not isinstance(found, JsonObject):
        raise WireError(f"the server's answer has no {name!r}; is this a Sevenfold server?")
    return found


def _whole(answer: JsonObject, name: str) -> int:
    found = answer.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise WireError(f"the server's answer has no number {name!r}; is this a Sevenfold server?")
    return found


def _words(value: Json) -> str:
    return "" if value is None else str(value)[:500]


_FRAME_BYTES = len('{"bodies":[]}')


def split_batches(texts: Sequence[str], max_bytes: int = MAX_REQUEST_BYTES) -> Iterator[tuple[str, ...]]:
    """As many a request as fit; one that is too large for any travels alone."""
    batch: list[str] = []
    size = _FRAME_BYTES
    for text in texts:
        added = wire_bytes(text) + 1
        if batch and size + added > max_bytes:
            yield tuple(batch)
            batch, size = [], _FRAME_BYTES
        batch.append(text)
        size += added
    if batch:
        yield tuple(batch)


def wire_bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())
