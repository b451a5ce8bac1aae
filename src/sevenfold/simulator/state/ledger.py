"""Every request and its cost, in the order of the responses: as values, JSON, and lines in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from sevenfold.core.cache.prompt_cache import PromptDifference
from sevenfold.core.events import Event, describe_event
from sevenfold.core.json import Json, JsonObject, write_json
from sevenfold.core.os_errors import map_os_errors
from sevenfold.core.prices import Cost, sum_costs
from sevenfold.core.usage import NO_USAGE, Iteration, Usage, sum_usage

_NOTHING = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request."""

    number: int
    """From 1; refused requests and counts have one too."""
    at: datetime
    endpoint: str
    request_id: str
    workspace: str
    model: str
    """Empty where the request was refused before it could be read."""
    status: int = 200
    message_id: str | None = None
    stop_reason: str | None = None
    usage: Usage = _NOTHING
    cost: Cost | None = None
    """None when nothing was billed, or the model's price is not known."""
    cost_without_caching: Cost | None = None
    previous: int | None = None
    """The entry of the last request of the same conversation."""
    difference: PromptDifference | None = None
    """Where this prompt leaves that one's; None when it only goes on from it."""
    expired: str | None = None
    """The last part at which an entry was found too old: what a shorter pause would have read."""
    applied_edits: tuple[JsonObject, ...] = ()
    dropped_thinking: tuple[str, ...] = ()
    error: str | None = None
    fault: str | None = None
    events: tuple[Event, ...] = ()
    """What a person may want to know of: a model that nobody knows, or has no price."""

    def to_json(self) -> JsonObject:
        """The line that is written; absent where there is nothing to say."""
        usage = self.usage
        fields: dict[str, Json] = {
            "number": self.number,
            "at": self.at.isoformat(),
            "endpoint": self.endpoint,
            "request_id": self.request_id,
            "message_id": self.message_id,
            "workspace": self.workspace or None,
            "model": self.model or None,
            "status": self.status,
            "stop_reason": self.stop_reason,
            "read": usage.read,
            "written_5m": usage.written_5m,
            "written_1h": usage.written_1h,
            "fresh": usage.fresh,
            "output": usage.output,
            "thinking": usage.thinking,
            "beside": tuple(_counts(run.kind, run) for run in usage.beside) or None,
            "dollars": _dollars(self.cost),
            "dollars_without_caching": _total(self.cost_without_caching),
            "previous": self.previous,
            "difference": _difference(self.difference),
            "expired": self.expired,
            "applied_edits": self.applied_edits or None,
            "dropped_thinking": self.dropped_thinking or None,
            "error": self.error,
            "fault": self.fault,
            "events": tuple(JsonObject(describe_event(event)) for event in self.events) or None,
        }
        return JsonObject({key: value for key, value in fields.items() if value is not None})


class LedgerFile:
    """Lines added to a file, each flushed as soon as it is written so that `tail -f` shows it."""

    __slots__ = ("_stream", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        with map_os_errors(f"open the ledger {path}"):
            self._stream: BinaryIO = path.open("ab")

    def append(self, entry: Entry) -> None:
        with map_os_errors(f"write to the ledger {self.path}"):
            self._stream.write(write_json(entry.to_json()) + b"\n")
            self._stream.flush()

    def close(self) -> None:
        with map_os_errors(f"close the ledger {self.path}"):
            self._stream.close()


@dataclass(slots=True)
class BillingLedger:
    file: LedgerFile | None = None
    entries: list[Entry] = field(default_factory=list[Entry])
    watch: Callable[[Entry], None] | None = None
    """Told of each entry as it is made, on the thread that serves."""

    @property
    def next_number(self) -> int:
        return len(self.entries) + 1

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        if self.file is not None:
            self.file.append(entry)
        if self.watch is not None:
            self.watch(entry)

    @property
    def billed(self) -> tuple[Entry, ...]:
        """Requests that a model answered."""
        return tuple(entry for entry in self.entries if entry.message_id is not None)

    def total_cost(self) -> Cost | None:
        """What everything cost; None when the price of one of them is not known."""
        return sum_costs(entry.cost for entry in self.billed)

    def to_json(self, since: int = 0) -> JsonObject:
        """All entries after a number, and the totals over all of them."""
        usage = sum_usage(entry.usage for entry in self.billed)
        plain = sum_costs(entry.cost_without_caching for entry in self.billed)
        totals: dict[str, Json] = {
            "requests": len(self.entries),
            "answered": len(self.billed),
            "refused": sum(entry.status != 200 for entry in self.entries),
            **{key: value for key, value in _counts("message", usage).items() if key != "kind"},
            "beside": _by_kind(usage.beside),
            "dollars": _dollars(self.total_cost()),
            "dollars_without_caching": _total(plain),
        }
        shown = tuple(entry.to_json() for entry in self.entries[max(0, since) :])
        return JsonObject({"entries": shown, "totals": JsonObject(totals)})


def _counts(kind: str, usage: Usage | object) -> JsonObject:
    names = ("read", "written_5m", "written_1h", "fresh", "output")
    return JsonObject({"kind": kind, **{name: getattr(usage, name) for name in names}})


def _by_kind(runs: Iterable[Iteration]) -> tuple[JsonObject, ...]:
    """One row a kind: what is in the dollars and in no other count."""
    sums: dict[str, Usage] = {}
    for run in runs:
        counts = Usage(
            fresh=run.fresh,
            read=run.read,
            written_5m=run.written_5m,
            written_1h=run.written_1h,
            output=run.output,
        )
        sums[run.kind] = sums.get(run.kind, NO_USAGE) + counts
    return tuple(_counts(kind, sums[kind]) for kind in sorted(sums))


def _dollars(cost: Cost | None) -> Json:
    """By part, as decimal text: a float would round what is exact."""
    if cost is None:
        return None
    parts = ("read", "written_5m", "written_1h", "fresh", "output", "total")
    return JsonObject({name: _plain(getattr(cost, name)) for name in parts})


def _total(cost: Cost | None) -> Json:
    return None if cost is None else _plain(cost.total)


def _plain(amount: Decimal) -> str:
    return f"{amount.normalize():f}" if amount else "0"


def _difference(found: PromptDifference | None) -> Json:
    if found is None:
        return None
    return JsonObject({"cause": found.cause, "path": found.path, "missed_tokens": found.missed_tokens})
