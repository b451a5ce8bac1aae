"""One request to the Messages API and its response, recorded in the ledger.

Knows nothing of HTTP except headers and status. Also computes where a broken stream ends, and what is billed
for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES
from sevenfold.core.cache.prompt_cache import PromptDifference, RenderedPrompt, find_first_difference
from sevenfold.core.errors import WireError
from sevenfold.core.events import Event
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.prices import compute_cost, compute_uncached_cost
from sevenfold.core.usage import Iteration, Usage
from sevenfold.simulator.checks.blocks import needs_transformations
from sevenfold.simulator.checks.validate import validate_request
from sevenfold.simulator.faults import DropFault, SimulatedFault, StatusFault, StreamFault, find_first_delay
from sevenfold.simulator.ledger import NO_TRACE, Entry, RequestRecord, RequestTrace
from sevenfold.simulator.prepare import PreparedPrompt, prepare_prompt
from sevenfold.simulator.reply_generation import GeneratedReply, ReplyGenerator
from sevenfold.simulator.simulator_state import SimulatorState
from sevenfold.simulator.wire.answer import compute_request_usage, iter_stream_events, render_usage
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused
from sevenfold.simulator.wire.messages_request import (
    MessagesEndpoint,
    MessagesRequest,
    as_word,
    find_model_name,
    parse_envelope,
    parse_messages_request,
)

# Broken streams: how far they get, and what that part of an answer is billed as.


def find_break_event(message: JsonObject, fault: SimulatedFault | None, *, pings: bool) -> int | None:
    """How many events go out before the fault; None when there is none.

    A fault planned for later than the stream ends takes its last event: one that is planned is always met.
    """
    if not isinstance(fault, (StreamFault, DropFault)):
        return None
    last = sum(1 for _ in iter_stream_events(message, pings=pings)) - 1
    return min(fault.after_events, last)


def compute_sent_usage(
    message: JsonObject, usage: Usage, events: int, count: Callable[[JsonObject], int], *, pings: bool
) -> Usage:
    """The usage of an answer of which so many events were sent: a block by the share of its deltas."""
    sent = tuple(islice(iter_stream_events(message, pings=pings), events))
    if not sent:
        return _limited(usage, 0, 0)
    content = message.get("content")
    blocks = (
        [block for block in content if isinstance(block, JsonObject)] if isinstance(content, tuple) else []
    )
    wholes, parts = _deltas(tuple(iter_stream_events(message, pings=pings))), _deltas(sent)
    shares = [_share(count(block), parts[at], wholes[at]) for at, block in enumerate(blocks)]
    thought = sum(
        share
        for share, block in zip(shares, blocks, strict=True)
        if as_word(block.get("type")) in THINKING_TYPES
    )
    # `message_start` has told of a first token already.
    return _limited(usage, max(1, sum(shares)), thought)


def _deltas(events: Sequence[JsonObject]) -> Counter[Json]:
    """How many pieces of each block are among these events; its end is one too."""
    kinds = ("content_block_delta", "content_block_stop")
    return Counter(event.get("index") for event in events if event.get("type") in kinds)


def _share(tokens: int, part: int, whole: int) -> int:
    return -(-tokens * part // whole) if whole else 0


def _limited(usage: Usage, output: int, thinking: int) -> Usage:
    output = min(usage.output, output)
    thinking = min(usage.thinking, thinking, output)
    runs: tuple[Iteration, ...] = usage.iterations
    if runs and runs[-1].kind == "message":
        runs = (*runs[:-1], replace(runs[-1], output=output, thinking=thinking))
    return replace(usage, output=output, thinking=thinking, iterations=runs)


ORGANIZATION_ID = "org_sevenfold_simulator"
"""One simulator is one organisation; its keys are workspaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesResponse:
    """What the HTTP application has to send."""

    status: int
    body: JsonObject
    headers: Mapping[str, str]
    streams: bool = False
    fault: SimulatedFault | None = None
    """One that happens while it is sent."""
    breaks_after: int | None = None
    """The events of a stream that are sent before its fault; None: all of them."""


class _FaultMet(RequestRefused):
    """The request is refused because a fault says so."""


@dataclass(slots=True, kw_only=True)
class _Visit:
    """A request on its way through, as far as it is known."""

    endpoint: MessagesEndpoint
    suffix: str
    body: bytes
    entry: Entry
    fault: SimulatedFault | None
    """The one it meets, until it turns out that it cannot."""
    meter_key: str = ""
    trace: RequestTrace = NO_TRACE
    previous: RequestRecord | None = None
    """The last request of the same conversation."""
    events: list[Event] = field(default_factory=list[Event])


class MessagesExchange:
    """Serves requests of one `SimulatorState`, one after another or interleaved on one loop."""

    def __init__(self, world: SimulatorState) -> None:
        self.world = world

    async def serve(
        self, endpoint: MessagesEndpoint, headers: Mapping[str, str], data: bytes
    ) -> MessagesResponse:
        """Answer a request; whatever goes wrong is an answer too."""
        world = self.world
        suffix = world.next_request()
        visit = _Visit(
            endpoint=endpoint,
            suffix=suffix,
            body=data,
            entry=self._first_entry(endpoint, suffix),
            fault=world.faults.take(),
        )
        try:
            return await self._serve(visit, headers, data)
        except _FaultMet as met:
            return self._refused(visit, met.problem, meets=True)
        except RequestRefused as refusal:
            return self._refused(visit, refusal.problem)
        except WireError as error:
            return self._refused(visit, ErrorResponse(status=400, message=str(error)))
        except Exception as error:
            # A bug in the `Brain` or here: reported to the client, and kept for the user of the simulator.
            world.failures.append(error)
            reason = f"{type(error).__name__}: {error}"
            return self._refused(visit, ErrorResponse(status=500, message=reason, should_retry=False))

    async def _serve(self, visit: _Visit, headers: Mapping[str, str], data: bytes) -> MessagesResponse:
        world = self.world
        now = world.clock.now()
        if len(data) > world.choices.request_limit_bytes:
            limit = world.choices.request_limit_bytes
            raise RequestRefused(
                ErrorResponse(status=413, message=f"Request exceeds the maximum size of {limit} bytes")
            )
        envelope = parse_envelope(headers, world.choices)
        visit.entry = replace(visit.entry, workspace=envelope.workspace)
        if isinstance(visit.fault, StatusFault):
            raise _FaultMet(visit.fault.problem)
        # Counting has a limit of its own, and so a window of its own.
        visit.meter_key = (
            envelope.workspace if visit.endpoint == "messages" else f"{envelope.workspace} counts"
        )
        world.meter.admit(visit.meter_key, now)
        call = parse_messages_request(
            visit.endpoint, envelope, data, world, started=now, emit=visit.events.append
        )
        visit.entry = replace(visit.entry, model=call.model_name)
        validate_request(call, world.choices)
        if isinstance(visit.fault, StreamFault) and not call.is_streaming:
            raise _FaultMet(ErrorResponse(status=visit.fault.status, message=visit.fault.message))
        visit.trace = RequestTrace.of(call)
        visit.previous = world.records.predecessor(visit.trace, call.model_name)
        prepared = prepare_prompt(call, world, visit.previous)
        if visit.endpoint == "count_tokens":
            await world.arrivals.pause(find_first_delay(visit.fault))
            return self._counted(visit, call, prepared)
        delay = find_first_delay(visit.fault)
        answered = await ReplyGenerator(call, prepared, world, visit.suffix, delay).answer()
        return self._answered(visit, call, prepared, answered)

    def _counted(self, visit: _Visit, call: MessagesRequest, prepared: PreparedPrompt) -> MessagesResponse:
        body: dict[str, Json] = {"input_tokens": prepared.tokens}
        if call.body.get("context_management") is not None:
            original = JsonObject({"original_input_tokens": prepared.sent.tokens})
            body["context_management"] = original
        self._note(visit, visit.entry)
        return MessagesResponse(
            status=200, body=JsonObject(body), headers=self._headers(visit), fault=visit.fault
        )

    def _answered(
        self, visit: _Visit, call: MessagesRequest, prepared: PreparedPrompt, answered: GeneratedReply
    ) -> MessagesResponse:
        world = self.world
        usage = compute_request_usage(call, answered.runs, answered.overrides)
        record = RequestRecord.of(call, world.ledger.next_number, visit.trace, prepared.sent, answered.seen)
        message_id = f"msg_{visit.suffix}"
        body = _message(message_id, call, prepared, answered, usage)
        if call.body.get("diagnostics") is not None:
            body = JsonObject({**body, "diagnostics": world.records.diagnose(call, record)})
        pings = world.choices.pings
        breaks_after = find_break_event(body, visit.fault, pings=pings) if call.is_streaming else None
        if breaks_after is not None and not world.choices.bills_unsent:
            count = partial(world.tokenizer, call.model, "messages")
            usage = compute_sent_usage(body, usage, breaks_after, count, pings=pings)
        previous = visit.previous
        world.records.add(message_id, record)
        world.meter.charge(visit.meter_key, usage, world.clock.now())
        self._note(
            visit,
            replace(
                visit.entry,
                message_id=message_id,
                stop_reason=answered.stop_reason if breaks_after is None else None,
                usage=usage,
                cost=compute_cost(usage, call.model, when=call.started, catalog=world.catalog),
                cost_without_caching=compute_uncached_cost(
                    usage, call.model, when=call.started, catalog=world.catalog
                ),
                previous=previous.number if previous else None,
                difference=_difference(previous, record, answered) if previous else None,
                expired=_expired(answered),
                applied_edits=prepared.applied,
                dropped_thinking=tuple(
                    item.path for item in prepared.transformations if item.fate == "thinking_dropped"
                ),
            ),
        )
        return MessagesResponse(
            status=200,
            body=body,
            headers=self._headers(visit),
            streams=call.is_streaming,
            fault=visit.fault,
            breaks_after=breaks_after,
        )

    def _refused(self, visit: _Visit, problem: ErrorResponse, *, meets: bool = False) -> MessagesResponse:
        if visit.fault is not None and not meets:
            # There was no answer for it to happen to: the next request meets it.
            self.world.faults.put_back(visit.fault)
            visit.fault = None
        model = visit.entry.model or find_model_name(visit.body)
        self._note(visit, replace(visit.entry, model=model, status=problem.status, error=problem.message))
        headers = {**self._headers(visit), **problem.headers()}
        return MessagesResponse(
            status=problem.status, body=problem.body(visit.entry.request_id), headers=headers
        )

    def _first_entry(self, endpoint: MessagesEndpoint, suffix: str) -> Entry:
        return Entry(
            number=0,
            at=self.world.clock.now(),
            endpoint=endpoint,
            request_id=f"req_{suffix}",
            workspace="",
            model="",
        )

    def _note(self, visit: _Visit, entry: Entry) -> None:
        ledger = self.world.ledger
        met = None if visit.fault is None else type(visit.fault).__name__
        ledger.add(replace(entry, number=ledger.next_number, fault=met, events=tuple(visit.events)))

    def _headers(self, visit: _Visit) -> dict[str, str]:
        entry = visit.entry
        headers = {"request-id": entry.request_id, "anthropic-organization-id": ORGANIZATION_ID}
        if entry.workspace:
            headers["anthropic-workspace-id"] = entry.workspace
            headers |= self.world.meter.headers(visit.meter_key or entry.workspace, self.world.clock.now())
        return headers


def _message(
    message_id: str, call: MessagesRequest, prepared: PreparedPrompt, answered: GeneratedReply, usage: Usage
) -> JsonObject:
    fields: dict[str, Json] = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": call.model_name,
        "content": answered.content,
        "stop_reason": answered.stop_reason,
        "stop_sequence": answered.stop_sequence,
        "stop_details": _stop_details(answered.stop_reason),
        "usage": render_usage(usage),
    }
    if call.body.get("context_management") is not None or prepared.deleted:
        fields["context_management"] = JsonObject({"applied_edits": prepared.applied})
    if needs_transformations(call):
        fields["input_transformations"] = tuple(item.wire for item in prepared.transformations)
    return JsonObject(fields)


def _stop_details(stop_reason: str) -> Json:
    if stop_reason != "refusal":
        return None
    return JsonObject({"type": "refusal", "category": None, "explanation": None})


def _difference(
    previous: RequestRecord, record: RequestRecord, answered: GeneratedReply
) -> PromptDifference | None:
    """Where a prompt leaves its predecessor's. Missed is never more than it then had to pay for."""
    found = find_first_difference(previous.seen, record.seen)
    if found is None:
        return None
    bill = answered.runs[-1].bill
    return replace(found, missed_tokens=min(found.missed_tokens, bill.total - bill.read))


def _expired(answered: GeneratedReply) -> str | None:
    last = answered.runs[-1].bill.expired
    parts: RenderedPrompt = answered.seen
    return None if last is None else parts.parts[last].path
