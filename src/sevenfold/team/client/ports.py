"""What an exchange works with: the server, folder and ledger as protocols, and the report that it returns.

Also parsing of the server's answers, with names, counts, sizes and checksums checked before use; batches of
texts; and conflicts: the keys of conflict copies, and a line merge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from hashlib import sha256
from itertools import count, islice, pairwise
from typing import Protocol, TypeAlias

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, replace_lone_surrogates
from sevenfold.core.memories import MAX_KEY_PART_CHARS, is_team_key
from sevenfold.team.client.sync_policy import LocalText, SyncState
from sevenfold.team.protocol import (
    MAX_REQUEST_BYTES,
    MAX_TEAM_FILE_BYTES,
    Checksum,
    Commit,
    CommitApplied,
    CommitConflicts,
    CommitOutcome,
    TeamEntry,
    TeamKey,
    VersionRange,
    compute_checksum,
    is_checksum,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteListing:
    """What a server says it has."""

    etag: str
    seq: int
    entries: Mapping[TeamKey, TeamEntry]
    """Tombstones too."""
    lost: tuple[VersionRange, ...] = ()
    """Versions that were acknowledged once and that a restored server does not have any more."""
    authors: Mapping[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    """Who wrote each, as the server knows them; an older one tells none."""


@dataclass(frozen=True, slots=True)
class MissingBodies:
    """Bodies that a commit names and the server does not have; nothing was applied."""

    checksums: tuple[Checksum, ...]


class SyncRemote(Protocol):
    """The server. `TeamUnreached` when it is not there, `TeamRefused` when it does not want to."""

    async def pull_entries(self, etag: str) -> RemoteListing | None:
        """None: as it was at `etag`."""
        ...

    async def pull_bodies(self, checksums: Sequence[Checksum]) -> Mapping[Checksum, str]:
        """Those that came whole; what does not match its checksum is left out."""
        ...

    async def push_bodies(self, texts: Sequence[str]) -> None: ...

    async def push_commit(self, commit: Commit) -> CommitOutcome | MissingBodies: ...

    async def pull_unknown(self, entries: Mapping[TeamKey, TeamEntry]) -> Collection[TeamKey]:
        """The keys whose entries the server has no record of, now or in the past."""
        ...


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file to write or, without a text, to remove; unless it is not as it was compared."""

    key: TeamKey
    before: Checksum | None
    text: str | None = field(repr=False)
    author: str = ""
    """Who wrote the text, as the server knows them."""


class LocalFiles(Protocol):
    """The team's folder on this device."""

    async def scan(self) -> Mapping[TeamKey, LocalText]: ...

    async def body(self, checksum: Checksum) -> str | None:
        """A text that was in the folder once, for merging; None: it is not kept any more."""
        ...

    async def write(self, changes: Sequence[FileChange], mark: str) -> bool:
        """All of them and the mark, durable on return; or none, and False: a file was not as compared."""
        ...

    async def was_written(self, mark: str) -> bool:
        """Whether that came to pass, whatever became of the files since."""
        ...


class SyncLedger(Protocol):
    """Where a device keeps what it knows, whole or not at all."""

    async def read(self) -> SyncState: ...

    async def write(self, state: SyncState) -> None: ...


ScreenTexts: TypeAlias = Callable[[Mapping[TeamKey, str]], Awaitable[Mapping[TeamKey, str]]]
"""What may not leave among the texts, and why."""


async def allow_all_texts(_: Mapping[TeamKey, str]) -> Mapping[TeamKey, str]:
    """A screen that finds nothing."""
    return {}


@dataclass(frozen=True, slots=True)
class SyncConflict:
    key: TeamKey
    copy: TeamKey


@dataclass(slots=True, kw_only=True)
class SyncReport:
    """What an exchange did."""

    taken: list[TeamKey] = field(default_factory=list[TeamKey])
    dropped: list[TeamKey] = field(default_factory=list[TeamKey])
    merged: list[TeamKey] = field(default_factory=list[TeamKey])
    sent: list[TeamKey] = field(default_factory=list[TeamKey])
    deleted: list[TeamKey] = field(default_factory=list[TeamKey])
    conflicts: list[SyncConflict] = field(default_factory=list[SyncConflict])
    kept: dict[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    held: dict[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    """What is not exchanged for now, and why."""
    lost: dict[TeamKey, int] = field(default_factory=dict[TeamKey, int])
    """Versions that the server had acknowledged and has no record of any more."""
    is_settled: bool = False
    """Whether it came to its end: nothing is left that it could have done."""

    @property
    def has_news(self) -> bool:
        return bool(self.taken or self.dropped or self.merged or self.sent or self.deleted)


# Answers of the server, and batches of texts.

_MAX_LISTED = 20_000
"""Entries and tombstones: a team of 500 memories that deletes fifty a day for a year."""
_MAX_LOST = 1_000
"""Ranges of lost versions: each restore of a backup adds one."""
_MAX_AUTHOR_CHARS = 80
_NO_NAME = frozenset('<>`"')
_TAG = re.compile(r"[0-9a-f]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEntries:
    seq: int
    entries: Mapping[TeamKey, TeamEntry]
    refused: Mapping[str, str]
    """What is left out of it, and why."""
    lost: tuple[VersionRange, ...] = ()
    tag: str = ""
    """Tells this state from another with the same number; empty from an older server."""
    authors: Mapping[TeamKey, str] = field(default_factory=dict[TeamKey, str])


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
    tag = answer.get("tag")
    authors = {TeamKey(key): _author(value) for key, value in living.items() if is_team_key(key)}
    return RemoteEntries(
        seq=_whole(answer, "seq"),
        entries=entries,
        refused=refused,
        lost=_ranges(answer.get("lost")),
        tag=tag if isinstance(tag, str) and _TAG.fullmatch(tag) else "",
        authors={key: name for key, name in authors.items() if name},
    )


def _author(value: Json) -> str:
    """The name that a server has for who wrote an entry: one line, nothing in it that a terminal or a prompt
    would take for more than a name. Empty where it tells none."""
    name = value.get("author") if isinstance(value, JsonObject) else None
    text = name if isinstance(name, str) else ""
    plain = "".join(char if char.isprintable() and char not in _NO_NAME else " " for char in text)
    return " ".join(plain.split())[:_MAX_AUTHOR_CHARS]


def _ranges(value: Json) -> tuple[VersionRange, ...]:
    """Of the newest restores; an older server tells none."""
    listed = value if isinstance(value, tuple) else ()
    objects = (one for one in listed[-_MAX_LOST:] if isinstance(one, JsonObject))
    return tuple(VersionRange(_whole(one, "first"), _whole(one, "last")) for one in objects)


def read_unknown(answer: JsonObject, asked: Collection[TeamKey]) -> frozenset[TeamKey]:
    found = answer.get("unknown")
    named = found if isinstance(found, tuple) else ()
    return frozenset(key for key in asked if key in named)


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
    text, stated = one.get("content"), one.get("checksum")
    # What is no sound text would be another one by the time it is in a file.
    if (
        not isinstance(text, str)
        or replace_lone_surrogates(text) != text
        or len(text.encode()) > MAX_TEAM_FILE_BYTES
    ):
        return None
    checksum = compute_checksum(text)
    return _Text(checksum, text) if checksum == stated else None


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


# Conflict copies: every device can tell one from its key.

_COPY = re.compile(r"(.+)-conflict-[0-9a-f]{8}\.md", re.ASCII)


_MOST_RENAMED = 20
"""How often a name may have held another text already when a copy was made."""


def is_conflict_copy(key: str) -> bool:
    return _COPY.fullmatch(key) is not None


def is_copy_of_text(key: str, checksum: Checksum) -> bool:
    """Whether the name follows from the text, as that of a kept copy does. Anybody can name a file like one;
    and one that somebody has edited since is a memory of its own."""
    names = islice(_names(original_key(key), checksum), _MOST_RENAMED)
    return is_conflict_copy(key) and key.rpartition("-")[2] in {name.rpartition("-")[2] for name in names}


def original_key(key: str) -> TeamKey:
    """The key beside which a copy was kept; as far as a very long name allows."""
    match = _COPY.fullmatch(key)
    return TeamKey(f"{match[1]}.md" if match else key)


def choose_copy_key(key: TeamKey, checksum: Checksum, here: Mapping[TeamKey, LocalText]) -> TeamKey:
    """Where the text is kept: under a name that follows from it, unless that holds another text by now."""
    for name in _names(original_key(key), checksum):
        there = here.get(name)
        if name != key and (there is None or there.checksum == checksum):
            return name
    raise AssertionError("the names never end")


def _names(key: TeamKey, checksum: Checksum) -> Iterator[TeamKey]:
    above, slash, name = key.removesuffix(".md").rpartition("/")
    digits = checksum.removeprefix("sha256:")
    for turn in count():
        mark = f"-conflict-{digits[:8]}"
        yield TeamKey(f"{above}{slash}{name[: MAX_KEY_PART_CHARS - len(mark)]}{mark}.md")
        digits = sha256(f"{digits} {turn}".encode()).hexdigest()


# The merge is pure and bounded by counts, because texts from others must not keep a device busy.
MAX_PAIRS = 300_000
"""Pairs of equal lines that the comparison may meet: a file of 500 equal lines, or any ordinary one."""
MAX_MERGE_LINES = 20_000


def merge_lines(base: str, ours: str, theirs: str) -> str | None:
    """Both changes of `base` in one text; None where they touch the same or neighbouring lines.

    Neighbours count as the same place: two people who each add a line at the end mean an order that nobody
    can tell from here.
    """
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    old = base.splitlines(keepends=True)
    mine, other = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    if not (_is_bounded(old, mine) and _is_bounded(old, other)):
        return None
    edits = sorted({*_edits(old, mine), *_edits(old, other)}, key=lambda edit: (edit.start, edit.end))
    for before, after in pairwise(edits):
        if after.start <= before.end:
            return None
    merged = list(old)
    for edit in reversed(edits):
        merged[edit.start : edit.end] = edit.lines
    return "".join(merged)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    lines: tuple[str, ...]
    """What stands in place of the lines from `start` to before `end`."""


def _edits(old: Sequence[str], new: Sequence[str]) -> list[_Edit]:
    return [
        _Edit(start, end, tuple(new[first:last]))
        for tag, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]


def _is_bounded(old: Sequence[str], new: Sequence[str]) -> bool:
    if max(len(old), len(new)) > MAX_MERGE_LINES:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) <= MAX_PAIRS
