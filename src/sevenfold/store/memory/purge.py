"""Erasing: versions of memories by where they came from, out of the history too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.json import replace_lone_surrogates, write_json
from sevenfold.core.memories import CHANGE_AUTHORS, INDEX_FILE, Origin, read_memory
from sevenfold.store.files.locks import mutex
from sevenfold.store.memory.changes import WAITING_KINDS, PurgeReport
from sevenfold.store.memory.history import HISTORY_MUTEX, MemoryStore
from sevenfold.store.memory.index_text import drop_index_entries
from sevenfold.store.memory.records import (
    FileSnapshot,
    LoggedChange,
    LoggedTransaction,
    UpkeepRecord,
    format_log_line,
    hash_text,
    is_upkeep,
    make_first_entry,
    new_transaction_id,
)

ERASED = LoggedChange(key="", before=None, after=None)
"""In place of a change that is gone: it counts, so that the order of all others stays."""

LEAST_WORDS = 4
"""Of a sentence that tells where it came from."""

SyncKeys: TypeAlias = Callable[[Collection[str]], None]

_INDEX = write_json(INDEX_FILE)


@dataclass(frozen=True, slots=True)
class PurgeSource:
    """Which versions are meant: exactly one of these is set."""

    session: str = ""
    key: str = ""
    who: str = ""

    def check(self) -> None:
        if sum(map(bool, (self.session, self.key, self.who))) != 1:
            raise InputError("name one source to purge: a session, a key, or who wrote it")
        if self.who and self.who not in CHANGE_AUTHORS:
            raise InputError(f"nobody writes as {self.who!r}; there are {', '.join(CHANGE_AUTHORS)}")

    @property
    def kind(self) -> str:
        """What kind of source it is, and not which."""
        return "a session" if self.session else "a key" if self.key else f"who: {self.who}"

    @property
    def needle(self) -> bytes:
        """What stands in every line that has to do with it."""
        return write_json(self.session or self.key or self.who)[1:-1]

    def is_meant(self, key: str, origin: Origin) -> bool:
        if self.key:
            return key == self.key
        return origin.session == self.session if self.session else origin.who == self.who


@dataclass(slots=True, kw_only=True)
class _Erased:
    transactions: set[str]
    versions: int
    keys: set[str]
    said: set[str]
    """Their sentences."""
    repeating: set[str]
    """Keys of other texts, written later, that hold one of them."""


def purge_history(
    store: MemoryStore, source: PurgeSource, now: datetime, placed: Mapping[str, FileSnapshot], sync: SyncKeys
) -> PurgeReport:
    """Take every version of that source out of the history, at once and for good. Files follow.

    The caller holds the mutex of the files, knows what is `placed` there, and brings them up to date
    afterwards. They are synced before: what a power cut leaves of them must not look like somebody's edit.
    """
    source.check()
    with mutex(store.folder, HISTORY_MUTEX):
        store.refresh()
        erased = _Erased(transactions=set(), versions=0, keys=set(), said=set(), repeating=set())
        lines = list(_without(store, source, erased))
        if erased.transactions:
            sync((*erased.keys, INDEX_FILE))
            why = Origin(who="user", why=f"{erased.versions} versions erased by {source.kind}")
            last = LoggedTransaction(id=new_transaction_id(), at=now, kind="purge", origin=why, changes=())
            kept = (_without_lines(store, line, erased.keys) for line in lines)
            store.log.replace(
                [
                    format_log_line(make_first_entry(now)),
                    *kept,
                    format_log_line(last),
                    *_upkeep(store, now, placed),
                ]
            )
            store.reload()
    repeating = tuple(sorted(erased.repeating))
    return PurgeReport(len(erased.transactions), erased.versions, tuple(sorted(erased.keys)), repeating)


def forget_upkeep(store: MemoryStore, now: datetime) -> None:
    """Drop what the history tells of files that were put in place before: their names are in it."""
    with mutex(store.folder, HISTORY_MUTEX):
        store.refresh()
        lines = [line for line in store.log.read_lines() if not is_upkeep(line)]
        store.log.replace(
            [format_log_line(make_first_entry(now)), *lines, *_upkeep(store, now, store.state.placed)]
        )
        store.reload()


def _upkeep(store: MemoryStore, now: datetime, placed: Mapping[str, FileSnapshot]) -> Iterator[bytes]:
    """What is known of the files, so that nothing of ours is taken for somebody else's."""
    yield format_log_line(UpkeepRecord(upto=0, at=now, files=placed, boot=store.state.boot))
    yield from (
        format_log_line(UpkeepRecord(upto=0, at=now, files={}, boot="", intends=sha256))
        for sha256 in sorted(store.state.intended)
    )


def _without(store: MemoryStore, source: PurgeSource, erased: _Erased) -> Iterator[bytes]:
    for line in store.log.read_lines():
        if is_upkeep(line):
            continue
        entry = store.log.parse(line) if source.needle in line or erased.said else None
        if not isinstance(entry, LoggedTransaction) or not _concerns(entry, source):
            _note_repeating(entry.changes if isinstance(entry, LoggedTransaction) else (), erased)
            yield line
            continue
        erased.transactions.add(entry.id)
        kept = tuple(_kept(entry, change, source, erased) for change in entry.changes)
        _note_repeating(kept, erased)
        if entry.kind not in WAITING_KINDS or any(change.key for change in kept):
            yield format_log_line(
                replace(entry, changes=kept, origin=_without_trace(entry, source), reason="")
            )


def _without_lines(store: MemoryStore, line: bytes, keys: Collection[str]) -> bytes:
    """A line of the history, in whose texts of the index nothing is said of these memories any more."""
    entry = store.log.parse(line) if _INDEX in line else None
    if not isinstance(entry, LoggedTransaction):
        return line
    return format_log_line(replace(entry, changes=tuple(_scrubbed(change, keys) for change in entry.changes)))


def _scrubbed(change: LoggedChange, keys: Collection[str]) -> LoggedChange:
    if change.key != INDEX_FILE or change.text is None:
        return change
    text = drop_index_entries(change.text, keys)
    return replace(change, text=text, after=hash_text(text))


def _concerns(entry: LoggedTransaction, source: PurgeSource) -> bool:
    own = not source.key and source.is_meant("", entry.origin)
    return own or any(source.is_meant(item.key, entry.origin_of(item)) for item in entry.changes)


def _kept(
    entry: LoggedTransaction, change: LoggedChange, source: PurgeSource, erased: _Erased
) -> LoggedChange:
    if not source.is_meant(change.key, entry.origin_of(change)):
        # What was the transaction's alone is written down with the change, for the transaction loses it.
        return replace(change, origin=entry.origin_of(change))
    erased.versions += change.text is not None
    erased.keys.add(change.key)
    erased.said |= _sentences(change)
    return ERASED


def _without_trace(entry: LoggedTransaction, source: PurgeSource) -> Origin:
    if source.key or not source.is_meant("", entry.origin):
        return entry.origin
    return Origin(who=entry.origin.who, why="erased")


def _note_repeating(kept: Iterable[LoggedChange], erased: _Erased) -> None:
    """A dream may have merged it into another memory, and somebody may have written it down again."""
    for change in kept if erased.said else ():
        if change.key not in ("", INDEX_FILE) and not erased.said.isdisjoint(_sentences(change)):
            erased.repeating.add(change.key)


def _sentences(change: LoggedChange) -> set[str]:
    """Of a text, those that are long enough not to be said by chance."""
    if change.text is None:
        return set()
    from sevenfold.core.text.stems import split_sentences

    memory = read_memory(change.key, replace_lone_surrogates(change.text))
    texts = (*split_sentences(memory.body), memory.description)
    return {text.casefold() for text in texts if len(text.split()) >= LEAST_WORDS}
