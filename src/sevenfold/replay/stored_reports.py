"""Reports of transcripts, kept between runs: a transcript that has not changed is not read again.

A report is kept under a key made of everything that it depends on: prices, options, the calls that other
files count, and the code that computes it. It is written as JSON lists, by the types of its fields: reading
them takes a tenth of the time that objects with names take, and a stored report belongs to the code that
wrote it, so the order of fields is all that is needed.
"""

from __future__ import annotations

import json
import sqlite3
import time
import typing
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Event, ModelUnknown, PriceUnknown
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.context_fill import SeriesPoint
from sevenfold.replay.report import FileReport, LineCounts, PlayedSaving, SessionReport
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.transcripts import FileCalls, TranscriptFile
from sevenfold.store.session_index.database import DerivedValues

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Form:
    write: Callable[[Any], Any] | None
    """None: JSON has the value as it is."""
    read: Callable[[Any], Any] | None


_PLAIN = _Form(None, None)
_FORMS: dict[object, _Form] = {
    Decimal: _Form(str, Decimal),
    datetime: _Form(datetime.isoformat, datetime.fromisoformat),
    timedelta: _Form(timedelta.total_seconds, lambda seconds: timedelta(seconds=seconds)),
    Path: _Form(str, Path),
}


def write_plain(value: object) -> Any:
    """A dataclass as lists, numbers and texts."""
    write = _dataclass_form(type(value)).write
    assert write is not None
    return write(value)


def read_plain(kind: type[_T], wire: Any) -> _T:
    """The dataclass that `write_plain` made these of; `TypeError` or `ValueError` for anything else."""
    read = _dataclass_form(kind).read
    assert read is not None
    return read(wire)


@cache
def _dataclass_form(kind: type) -> _Form:
    hints = typing.get_type_hints(kind)
    names = [item.name for item in fields(kind)]
    forms = [_form(hints[name]) for name in names]
    writes = [(name, form.write) for name, form in zip(names, forms, strict=True)]
    reads = [(place, form.read) for place, form in enumerate(forms) if form.read]

    def write(value: object) -> list[Any]:
        return [
            convert(getattr(value, name)) if convert else getattr(value, name) for name, convert in writes
        ]

    def read(wire: list[Any]) -> object:
        for place, convert in reads:
            wire[place] = convert(wire[place])
        return kind(**dict(zip(names, wire, strict=True)))

    return _Form(write, read)


def _form(hint: Any) -> _Form:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (typing.Union, UnionType):
        return _optional_form(_form(next(item for item in arguments if item is not NoneType)))
    if origin is tuple:
        return _tuple_form(_form(arguments[0]))
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass_form(hint)
    return _FORMS.get(cast("object", hint), _PLAIN)


def _optional_form(inner: _Form) -> _Form:
    write, read = inner.write, inner.read
    if write is None or read is None:
        return _PLAIN
    return _Form(
        lambda value: None if value is None else write(value),
        lambda wire: None if wire is None else read(wire),
    )


def _tuple_form(inner: _Form) -> _Form:
    write, read = inner.write, inner.read
    if write is None or read is None:
        return _Form(list, tuple)
    return _Form(
        lambda values: [write(value) for value in values], lambda wire: tuple(read(item) for item in wire)
    )


CODE_PACKAGES = ("sevenfold.core", "sevenfold.store.foreign", "sevenfold.replay")
"""The code that a report depends on."""
SAVING_PACKAGES = ("sevenfold.layers.microcompact",)
"""What an estimate of a saving depends on besides."""
_CALLS, _REPORT, _SAVING = "replay-calls", "replay-report", "replay-saving"


@dataclass(frozen=True, slots=True)
class ScannedCalls:
    agent: ForeignAgent | None
    """None: no transcript."""
    calls: FileCalls


class StoredReports:
    """The kept reports. What cannot be read or decoded counts as not kept; the first failure is told to
    `on_failure`, and then nothing is kept."""

    def __init__(
        self, values: DerivedValues, terms: ReplayTerms, on_failure: Callable[[str], None] | None = None
    ) -> None:
        self._values, self._terms, self._on_failure = values, terms, on_failure
        self.saving_key = f"{_SAVING} {hash_code(*SAVING_PACKAGES)} {_hash(repr(terms).encode())}"
        self._is_broken = False
        self.calls_key = f"{_CALLS} {hash_code()}"
        # Days are those of the user's zone.
        zone = (time.tzname, time.timezone, time.altzone)
        self.report_key = f"{_REPORT} {hash_code()} {_hash(repr((terms, zone)).encode())}"

    def read_calls(self, found: Sequence[TranscriptFile]) -> dict[TranscriptFile, ScannedCalls]:
        """Which agent wrote each file and which calls it holds, where that is known."""
        known = self._read(self.calls_key, found)
        decoded = ((item, _decode_calls(known[item.path])) for item in found if item.path in known)
        return {item: calls for item, calls in decoded if calls is not None}

    def write_calls(self, calls: Iterable[tuple[TranscriptFile, ScannedCalls]]) -> None:
        values = {item: _encode_calls(scanned) for item, scanned in calls}
        self._try(lambda: self._values.write(self.calls_key, values))

    def read_reports(self, wanted: Sequence[tuple[TranscriptFile, frozenset[int]]]) -> dict[int, FileReport]:
        """The reports of files, each with the calls that others count, by the place in the list."""
        known = self._read(self.report_key, [item for item, _ in wanted])
        decoded = (
            (place, self._decode(item.path, known[item.path], foreign))
            for place, (item, foreign) in enumerate(wanted)
            if item.path in known
        )
        return {place: report for place, report in decoded if report is not None}

    def write_reports(self, reports: Iterable[tuple[TranscriptFile, frozenset[int], FileReport]]) -> None:
        """Keep these, and delete what belongs to transcripts that are gone or was computed otherwise."""
        values = {item: _encode(report, foreign) for item, foreign, report in reports}
        self._try(lambda: self._values.write(self.report_key, values))
        self._try(lambda: self._values.forget_others(_CALLS, [self.calls_key]))
        self._try(lambda: self._values.forget_others(_REPORT, [self.report_key]))

    def read_savings(self, found: Sequence[TranscriptFile]) -> dict[Path, PlayedSaving | None]:
        """What earlier runs played; None where a log was not enough for it."""
        known = self._read(self.saving_key, found)
        return {path: _decode_saving(stored) for path, stored in known.items()}

    def write_savings(self, played: Mapping[TranscriptFile, PlayedSaving | None]) -> None:
        values = {
            file: json.dumps([saving.keep_cost, saving.cost] if saving else []).encode()
            for file, saving in played.items()
        }
        self._try(lambda: self._values.write(self.saving_key, values))
        self._try(lambda: self._values.forget_others(_SAVING, [self.saving_key]))

    def _read(self, key: str, found: Sequence[TranscriptFile]) -> dict[Path, bytes]:
        known: dict[Path, bytes] = {}
        self._try(lambda: known.update(self._values.read(key, found)))
        return known

    def _try(self, work: Callable[[], None]) -> None:
        """A full disk or a locked file costs time in the next run, and no report."""
        if self._is_broken:
            return
        try:
            work()
        except (SevenfoldError, sqlite3.Error) as error:
            self._is_broken = True
            if self._on_failure:
                self._on_failure(str(error))

    def _decode(self, path: Path, stored: bytes, foreign: frozenset[int]) -> FileReport | None:
        try:
            wire = cast("dict[str, Any]", json.loads(stored))
            if wire["foreign"] != _hash_calls(foreign):
                return None
            sessions = zip(wire["sessions"], wire["series"], strict=True)
            return FileReport(
                path=path,
                agent=wire["agent"],
                lines=LineCounts(**wire["lines"]),
                sessions=tuple(_decode_session(path, session, points) for session, points in sessions),
                events=self._repeat_events(wire["models"]),
            )
        except (SevenfoldError, ArithmeticError, KeyError, TypeError, ValueError):
            return None

    def _repeat_events(self, models: Iterable[str]) -> tuple[Event, ...]:
        events: list[Event] = []
        for model in models:
            self._terms.catalog.find(model, events.append)
        return tuple(events)


def _encode(report: FileReport, foreign: frozenset[int]) -> bytes:
    models = [event.model for event in report.events if isinstance(event, (ModelUnknown, PriceUnknown))]
    wire = {
        "foreign": _hash_calls(foreign),
        "agent": report.agent,
        "lines": asdict(report.lines),
        "models": models,
        "sessions": [write_plain(replace(item, series=())) for item in report.sessions],
        # Most of a report: as lists, they are read ten times as fast.
        "series": [[_encode_point(point) for point in item.series] for item in report.sessions],
    }
    return json.dumps(wire, separators=(",", ":")).encode()


def _encode_point(point: SeriesPoint) -> list[object]:
    at = point.at.timestamp() if point.at else None
    return [point.call, at, point.prompt_tokens, point.read_tokens, point.mark]


def _decode_session(path: Path, session: list[Any], points: Iterable[list[Any]]) -> SessionReport:
    series = tuple(
        SeriesPoint(
            call=call,
            at=None if at is None else datetime.fromtimestamp(at, UTC),
            prompt_tokens=prompt,
            read_tokens=read,
            mark=mark,
        )
        for call, at, prompt, read, mark in points
    )
    return replace(read_plain(SessionReport, session), path=path, series=series)


def _decode_saving(stored: bytes) -> PlayedSaving | None:
    try:
        keep_cost, cost = cast("list[float]", json.loads(stored))
        return PlayedSaving(keep_cost, cost)
    except (ValueError, TypeError):
        return None


def _encode_calls(scanned: ScannedCalls) -> bytes:
    own, mirrored = list(scanned.calls.own), list(scanned.calls.mirrored)
    return json.dumps([scanned.agent, own, mirrored]).encode()


def _decode_calls(stored: bytes) -> ScannedCalls | None:
    try:
        agent, own, mirrored = cast("list[Any]", json.loads(stored))
        return ScannedCalls(agent, FileCalls(array("Q", own), array("Q", mirrored)))
    except (ValueError, TypeError, OverflowError):
        return None


def _hash_calls(calls: frozenset[int]) -> str:
    return _hash(array("Q", sorted(calls)).tobytes())


@cache
def hash_code(*packages: str) -> str:
    """A digest of the code that a report depends on, and of other packages: an edited or newer version
    computes it anew."""
    digest = blake2b(digest_size=16)
    for package in (*CODE_PACKAGES, *packages):
        for path, content in sorted(list_code(package).items()):
            digest.update(path.encode() + content)
    return digest.hexdigest()


def list_code(package: str) -> dict[str, bytes]:
    """The modules of a package and its data, by path."""
    return dict(_walk(files(package), package.replace(".", "/")))


def _walk(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _walk(item, f"{name}/{item.name}")
        elif item.name.endswith((".py", ".json")):
            yield f"{name}/{item.name}", item.read_bytes()


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
