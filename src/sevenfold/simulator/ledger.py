"""Every request and its cost, in the order of the responses: as values, JSON, and lines in a file.

`RequestRecords` keeps earlier requests, to find where a new one differs from its predecessor, and why.
"""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from itertools import chain
from operator import eq
from pathlib import Path
from typing import BinaryIO

from sevenfold.core.cache.prompt_cache import PromptDifference, RenderedPrompt, find_first_difference
from sevenfold.core.canonical import CACHE_CONTROL, Digest
from sevenfold.core.events import Event, describe_event
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, write_json
from sevenfold.core.prices import Cost, sum_costs
from sevenfold.core.system import map_os_errors
from sevenfold.core.usage import NO_USAGE, Iteration, Usage, sum_usage
from sevenfold.simulator.wire.message_cache import CachedMessage
from sevenfold.simulator.wire.messages_request import MessagesRequest
from sevenfold.simulator.wire.signatures import hash_json

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
            "beside": tuple(_counts(run.kind, run) for run in usage.untotaled) or None,
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
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._stream: BinaryIO = os.fdopen(fd, "ab")

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
            "beside": _by_kind(usage.untotaled),
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


_KEPT = 256
"""Requests remembered for diagnostics; the API forgets too."""
MAX_COMPARED_REQUESTS = 64
"""Recent requests among which a conversation's last one is looked for."""
MAX_WHOLE_REQUESTS = 8
"""Requests kept with all their blocks, so that the next one of a conversation is rendered from where it
differs. Not more, since a long conversation takes megabytes."""

_PARAMS = ("tool_choice", "thinking", "context_management", "output_config")
"""What can spoil a cache without being model, system, tools or a message."""


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """What a request is known again by: its message blocks, each by itself, under its own key."""

    workspace: str
    blocks: tuple[int, ...]
    conversation: str = ""
    """Of a client that names its sessions. A request without tools, such as for a title, is not of the
    conversation that has them."""

    @classmethod
    def of(cls, call: MessagesRequest) -> RequestTrace:
        keys = chain.from_iterable(_keys(known) for known in call.listing.messages)
        envelope = call.envelope
        has_tools = bool(call.body.get("tools"))
        return cls.name(envelope.workspace, tuple(keys), envelope.conversation, has_tools=has_tools)

    @classmethod
    def name(cls, workspace: str, blocks: tuple[int, ...], named: str, *, has_tools: bool) -> RequestTrace:
        """`named` is the conversation in the headers; empty where they name none."""
        kind = "tools" if has_tools else "no tools"
        return cls(workspace, blocks, f"{named} {kind}" if named else "")

    def may_be_one_conversation(self, other: RequestTrace) -> bool:
        """Whether both may be of one conversation."""
        return (self.workspace, self.conversation) == (other.workspace, other.conversation)

    def opening(self, other: RequestTrace) -> int:
        """With how many blocks both begin."""
        pairs = enumerate(map(eq, self.blocks, other.blocks))
        shorter = min(len(self.blocks), len(other.blocks))
        return next((index for index, same in pairs if not same), shorter)


NO_TRACE = RequestTrace("", ())


def _keys(known: CachedMessage) -> tuple[int, ...]:
    """What the blocks of a message are known again by."""
    if known.keys is None:
        # Python's own hash: it never leaves the process, and takes a tenth of the time of a real one.
        known.keys = tuple(hash((block.role, block.wire.without(CACHE_CONTROL))) for block in known.spoken)
    return known.keys


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    number: int
    """Of its entry in the ledger."""
    trace: RequestTrace
    sent: RenderedPrompt
    """As the client sent it."""
    seen: RenderedPrompt
    """As the model saw it."""
    params: Digest

    @classmethod
    def of(
        cls,
        call: MessagesRequest,
        number: int,
        trace: RequestTrace,
        sent: RenderedPrompt,
        seen: RenderedPrompt,
    ) -> RequestRecord:
        asked = {key: call.body.get(key) for key in _PARAMS}
        params = hash_json(JsonObject({**asked, "betas": tuple(sorted(call.envelope.betas))}))
        return cls(number=number, trace=trace, sent=sent, seen=seen, params=params)

    def without_blocks(self) -> RequestRecord:
        return replace(self, sent=replace(self.sent, blocks=()), seen=replace(self.seen, blocks=()))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An earlier request, and how much of it a new one has."""

    record: RequestRecord
    shared: int
    opening: int

    def rank(self) -> tuple[int, int, int]:
        return (self.shared, self.opening, self.record.number)

    def is_akin(self, best: _Candidate) -> bool:
        """Whether it is of the same conversation as the most alike: all of it is there, or half as much."""
        is_whole = 0 < self.opening == len(self.record.trace.blocks)
        return is_whole or 2 * self.shared >= best.shared


def _most_alike(trace: RequestTrace, records: Sequence[RequestRecord]) -> _Candidate | None:
    """The request that has most blocks in common with this one, if that is most of the shorter of the two."""
    blocks = frozenset(trace.blocks)
    best: _Candidate | None = None
    for record in reversed(records):
        # It cannot share more than it has, and of two alike the later one stands.
        if best is not None and len(record.trace.blocks) < best.shared:
            continue
        row = _Candidate(record, len(blocks.intersection(record.trace.blocks)), trace.opening(record.trace))
        # One opening text that two conversations share, such as a description of the project, is not enough.
        is_mostly_shared = 2 * row.shared > min(len(blocks), len(frozenset(record.trace.blocks)))
        if is_mostly_shared and (best is None or row.rank() > best.rank()):
            best = row
    return best


class RequestRecords:
    """The last requests, by the id of their answer."""

    __slots__ = ("_by_id", "_whole")

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, RequestRecord] = OrderedDict()
        self._whole: deque[str] = deque()

    def add(self, message_id: str, record: RequestRecord) -> None:
        self._by_id[message_id] = record
        self._whole.append(message_id)
        if len(self._whole) > MAX_WHOLE_REQUESTS:
            old = self._whole.popleft()
            self._by_id[old] = self._by_id[old].without_blocks()
        if len(self._by_id) > _KEPT:
            self._by_id.popitem(last=False)

    @property
    def latest(self) -> RequestRecord | None:
        return next(reversed(self._by_id.values()), None)

    def predecessor(self, trace: RequestTrace, model: str) -> RequestRecord | None:
        """The last request of the same conversation: of those with the same session in their headers, or with
        none, that with most blocks in common.

        Of several alike the one that begins most alike, and then the latest. Where little is shared, a new
        conversation has begun, unless the headers say otherwise. A conversation that comes back to a model
        goes on from its last request there, since each model has a cache of its own.
        """
        recent = [item for item in self._by_id.values() if item.trace.may_be_one_conversation(trace)]
        best = _most_alike(trace, recent[-MAX_COMPARED_REQUESTS:])
        if best is None:
            return recent[-1] if recent and trace.conversation else None
        if best.record.sent.model == model:
            return best.record
        own = [item for item in recent[-MAX_COMPARED_REQUESTS:] if item.sent.model == model]
        candidate = _most_alike(trace, own)
        return candidate.record if candidate is not None and candidate.is_akin(best) else best.record

    def diagnose(self, call: MessagesRequest, record: RequestRecord) -> Json:
        """The `diagnostics` of an answer: null when nothing diverged."""
        previous_id = call.part("diagnostics").get("previous_message_id")
        if not isinstance(previous_id, str):
            return None
        previous = self._by_id.get(previous_id)
        if previous is None or previous.trace.workspace != record.trace.workspace:
            return _reason("previous_message_not_found")
        found = find_first_difference(previous.sent, record.sent)
        if found is not None and _is_speed(found):
            return _reason("model_changed", previous.sent.tokens)
        if found is not None and found.cause != "params":
            return _reason(found.reason, found.missed_tokens)
        return _reason("unavailable") if found or previous.params != record.params else None


def _is_speed(found: PromptDifference) -> bool:
    """Speed is rendered as a parameter and diagnosed as a model."""
    return found.cause == "params" and found.path == "speed"


def _reason(kind: str, missed_tokens: int | None = None) -> JsonObject:
    counts = (
        EMPTY_OBJECT if missed_tokens is None else JsonObject({"cache_missed_input_tokens": missed_tokens})
    )
    return JsonObject({"cache_miss_reason": JsonObject({"type": kind, **counts})})
