"""One request to an OpenAI endpoint and its response: the same `Brain` and ledger, another cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from sevenfold.core.canonical import digest
from sevenfold.core.errors import WireError
from sevenfold.core.events import Event
from sevenfold.core.json import Json, JsonObject, read_object
from sevenfold.core.messages import Block, ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.prices import compute_cost, compute_uncached_cost
from sevenfold.core.usage import Usage
from sevenfold.simulator.checks.thinking_check import render_block_wire
from sevenfold.simulator.openai.chat import iter_chat_chunks, parse_chat_request, render_chat_completion
from sevenfold.simulator.openai.conversation import OpenAIReply, OpenAIRequest, make_too_long_refusal
from sevenfold.simulator.openai.responses import (
    iter_response_events,
    parse_responses_request,
    render_response,
)
from sevenfold.simulator.reply_generation import LimitedReply, OutputRoom, compute_billed_tokens, fit_reply
from sevenfold.simulator.responders.brain_protocol import Prompt, Reply
from sevenfold.simulator.state.faults import SimulatedFault, StatusFault, StreamFault, find_first_delay
from sevenfold.simulator.state.ledger import Entry
from sevenfold.simulator.state.simulator_state import CachePart, SimulatorState, make_part_counter
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused
from sevenfold.simulator.wire.messages_request import find_model_name

OpenAIEndpoint: TypeAlias = Literal["chat", "responses"]

OPENAI_ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    429: "rate_limit_error",
    404: "not_found_error",
}
"""The type in the body of an error; of the client's others `invalid_request_error`, else `server_error`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIResponse:
    """What the HTTP application has to send."""

    status: int
    body: JsonObject
    headers: Mapping[str, str]
    events: tuple[JsonObject, ...] | None = None
    """Of an answer that is streamed."""
    fault: SimulatedFault | None = None


@dataclass(slots=True, kw_only=True)
class _Visit:
    """A request on its way through, as far as it is known."""

    endpoint: OpenAIEndpoint
    suffix: str
    body: bytes
    entry: Entry
    fault: SimulatedFault | None
    events: list[Event] = field(default_factory=list[Event])


class OpenAIExchange:
    def __init__(self, world: SimulatorState) -> None:
        self.world = world

    async def serve(
        self, endpoint: OpenAIEndpoint, headers: Mapping[str, str], data: bytes
    ) -> OpenAIResponse:
        """Answer a request; whatever goes wrong is an answer too."""
        world, suffix = self.world, self.world.next_request()
        entry = Entry(
            number=0,
            at=world.clock.now(),
            endpoint=endpoint,
            request_id=f"req_{suffix}",
            workspace="",
            model="",
        )
        visit = _Visit(endpoint=endpoint, suffix=suffix, body=data, entry=entry, fault=world.faults.take())
        try:
            return await self._serve(visit, headers, data)
        except RequestRefused as refusal:
            return self._refused(visit, refusal.problem)
        except WireError as error:
            return self._refused(
                visit,
                ErrorResponse(
                    status=400, message=f"We could not parse the JSON body of your request: {error}"
                ),
            )
        except Exception as error:
            # A bug in the `Brain` or here: reported to the client, and kept for the user of the simulator.
            world.failures.append(error)
            return self._refused(
                visit,
                ErrorResponse(status=500, message=f"{type(error).__name__}: {error}", should_retry=False),
            )

    async def _serve(self, visit: _Visit, headers: Mapping[str, str], data: bytes) -> OpenAIResponse:
        world, fault = self.world, visit.fault
        workspace = parse_api_key(headers)
        visit.entry = replace(visit.entry, workspace=workspace)
        if isinstance(fault, StatusFault):
            raise RequestRefused(fault.problem)
        world.meter.admit(workspace, world.clock.now())
        body = read_object(data)
        talk = parse_chat_request(body) if visit.endpoint == "chat" else parse_responses_request(body)
        visit.entry = replace(visit.entry, model=talk.model)
        if isinstance(fault, StreamFault) and not talk.streams:
            raise RequestRefused(ErrorResponse(status=fault.status, message=fault.message))
        answer = await self._answer(visit, talk, workspace)
        headers = {"x-request-id": visit.entry.request_id}
        if visit.endpoint == "chat":
            events = tuple(iter_chat_chunks(answer, tells_usage=talk.tells_usage)) if talk.streams else None
            return OpenAIResponse(
                status=200, body=render_chat_completion(answer), headers=headers, events=events, fault=fault
            )
        events = tuple(iter_response_events(answer)) if talk.streams else None
        return OpenAIResponse(
            status=200, body=render_response(answer), headers=headers, events=events, fault=fault
        )

    async def _answer(self, visit: _Visit, talk: OpenAIRequest, workspace: str) -> OpenAIReply:
        world, started = self.world, self.world.clock.now()
        model = world.catalog.find(talk.model, visit.events.append)
        parts = self._parts(model, talk)
        prompt = sum(part.tokens for part in parts)
        if prompt > model.window_tokens:
            raise make_too_long_refusal(prompt, model.window_tokens)
        hit = world.prefixes.look_up(workspace, talk.model, parts, started)
        reply = await self._ask(model, talk)
        room = OutputRoom(talk.max_tokens or model.max_output_tokens, model.window_tokens - prompt)
        output = fit_reply(reply, room, talk.stops, make_part_counter(world.tokenizer, model))
        await world.arrivals.pause(find_first_delay(visit.fault))
        world.prefixes.keep(workspace, talk.model, hit, world.clock.now())
        usage = self._usage(model, output, room, prompt, hit.cached_tokens)
        prefix = "chatcmpl-" if visit.endpoint == "chat" else "resp_"
        answer = OpenAIReply(
            id=f"{prefix}{visit.suffix}",
            created=int(started.timestamp()),
            model=talk.model,
            blocks=_with_ids(output.blocks, visit.suffix),
            stop_reason=output.stop_reason,
            usage=usage,
        )
        self._note(visit, model, answer)
        return answer

    async def _ask(self, model: Model, talk: OpenAIRequest) -> Reply:
        world = self.world
        names = tuple(name for tool in talk.tools if isinstance(name := tool.get("name"), str))
        most = talk.max_tokens or model.max_output_tokens
        prompt = Prompt(
            number=world.next_question(),
            model=talk.model,
            system=talk.system,
            tools=names,
            messages=talk.messages,
            max_tokens=most,
            thinks=talk.thinks,
        )
        return await world.brain.reply(prompt)

    def _parts(self, model: Model, talk: OpenAIRequest) -> tuple[CachePart, ...]:
        count = make_part_counter(self.world.tokenizer, model)
        parts = [CachePart(tool, count("tools", tool)) for tool in talk.tools]
        if talk.system:
            wire = JsonObject({"type": "text", "text": talk.system})
            parts.append(CachePart(wire, count("system", wire)))
        for message in talk.messages:
            for block in message.blocks:
                wire = render_block_wire(block)
                placed = JsonObject({"role": message.role, "block": wire})
                parts.append(CachePart(placed, count("messages", wire)))
        return tuple(parts)

    def _usage(self, model: Model, output: LimitedReply, room: OutputRoom, prompt: int, cached: int) -> Usage:
        count = partial(self.world.tokenizer, model, "messages")
        wires = [render_block_wire(block) for block in output.blocks]
        thought = sum(count(wire) for wire in wires if wire.get("type") == "thinking")
        tokens = compute_billed_tokens(output, room, sum(count(wire) for wire in wires), thought)
        return Usage(fresh=prompt - cached, read=cached, output=tokens.output, thinking=tokens.thinking)

    def _note(self, visit: _Visit, model: Model, answer: OpenAIReply) -> None:
        world, usage, when = self.world, answer.usage, visit.entry.at
        world.meter.charge(visit.entry.workspace, usage, world.clock.now())
        self._write(
            visit,
            replace(
                visit.entry,
                message_id=answer.id,
                stop_reason=answer.stop_reason,
                usage=usage,
                cost=compute_cost(usage, model, when=when, catalog=world.catalog),
                cost_without_caching=compute_uncached_cost(usage, model, when=when, catalog=world.catalog),
            ),
        )

    def _refused(self, visit: _Visit, problem: ErrorResponse) -> OpenAIResponse:
        model = visit.entry.model or find_model_name(visit.body)
        self._write(visit, replace(visit.entry, model=model, status=problem.status, error=problem.message))
        headers = {"x-request-id": visit.entry.request_id, **problem.headers()}
        return OpenAIResponse(status=problem.status, body=render_openai_error(problem), headers=headers)

    def _write(self, visit: _Visit, entry: Entry) -> None:
        ledger = self.world.ledger
        met = None if visit.fault is None else type(visit.fault).__name__
        ledger.add(replace(entry, number=ledger.next_number, fault=met, events=tuple(visit.events)))


def render_openai_error(problem: ErrorResponse) -> JsonObject:
    """An error in OpenAI's shape."""
    usual = "server_error" if problem.status >= 500 else "invalid_request_error"
    fields: dict[str, Json] = {
        "message": problem.message,
        "type": OPENAI_ERROR_TYPES.get(problem.status, usual),
        "param": None,
        "code": problem.code,
    }
    return JsonObject({"error": JsonObject(fields)})


def parse_api_key(headers: Mapping[str, str]) -> str:
    """Whose request it is: the cache and the limits are by key."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        told = "You didn't provide an API key: send an Authorization: Bearer header, with any value."
        raise RequestRefused(ErrorResponse(status=401, message=told))
    return f"proj_{digest(key.strip().encode())[:24]}"


def _with_ids(blocks: tuple[Block, ...], suffix: str) -> tuple[Block, ...]:
    """Tool requests that came without an id get one made from the answer's."""
    return tuple(
        replace(block, id=ToolUseId(f"call_{suffix}{at:02d}"))
        if isinstance(block, ToolUse) and not block.id
        else block
        for at, block in enumerate(blocks)
    )
