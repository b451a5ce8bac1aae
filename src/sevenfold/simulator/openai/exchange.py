"""The OpenAI endpoints: one request and its response, and the HTTP routes.

`OpenAIExchange` uses the same `Brain` and ledger as the Messages API, with another cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from sevenfold.core.canonical import digest
from sevenfold.core.errors import WireError
from sevenfold.core.events import Event
from sevenfold.core.json import Json, JsonObject, read_object, write_json
from sevenfold.core.messages import Block, ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.prices import compute_cost, compute_uncached_cost
from sevenfold.core.usage import Usage
from sevenfold.simulator.brain import Prompt, Reply
from sevenfold.simulator.checks.blocks import render_block_wire
from sevenfold.simulator.faults import (
    DropFault,
    SimulatedFault,
    SlowFault,
    StatusFault,
    StreamFault,
    find_first_delay,
)
from sevenfold.simulator.ledger import Entry
from sevenfold.simulator.openai.chat import (
    OpenAIReply,
    OpenAIRequest,
    iter_chat_chunks,
    make_too_long_refusal,
    parse_chat_request,
    render_chat_completion,
)
from sevenfold.simulator.openai.prompt import (
    find_difference,
    list_parts,
    list_tool_schemas,
    make_record,
    trace_request,
)
from sevenfold.simulator.openai.responses import (
    iter_response_events,
    parse_responses_request,
    render_response,
)
from sevenfold.simulator.reply_generation import LimitedReply, OutputRoom, compute_billed_tokens, fit_reply
from sevenfold.simulator.simulator_state import CachePart, PrefixHit, SimulatorState, make_part_counter
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused
from sevenfold.simulator.wire.messages_request import find_model_name, read_conversation

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute


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
    conversation: str = ""
    """What the headers name."""
    events: list[Event] = field(default_factory=list[Event])


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A prompt, and what the cache had of it."""

    parts: tuple[CachePart, ...]
    hit: PrefixHit


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
        visit.conversation = read_conversation(headers)
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
        parts = list_parts(talk, make_part_counter(world.tokenizer, model))
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
        self._note(visit, talk, model, answer, _Lookup(parts, hit))
        return answer

    async def _ask(self, model: Model, talk: OpenAIRequest) -> Reply:
        world = self.world
        schemas = dict(list_tool_schemas(talk.tools))
        most = talk.max_tokens or model.max_output_tokens
        prompt = Prompt(
            number=world.next_question(),
            model=talk.model,
            system=talk.system,
            tools=tuple(schemas),
            messages=talk.messages,
            max_tokens=most,
            thinks=talk.thinks,
            tool_schemas=schemas,
        )
        return await world.brain.reply(prompt)

    def _usage(self, model: Model, output: LimitedReply, room: OutputRoom, prompt: int, cached: int) -> Usage:
        count = partial(self.world.tokenizer, model, "messages")
        wires = [render_block_wire(block) for block in output.blocks]
        thought = sum(count(wire) for wire in wires if wire.get("type") == "thinking")
        tokens = compute_billed_tokens(output, room, sum(count(wire) for wire in wires), thought)
        return Usage(fresh=prompt - cached, read=cached, output=tokens.output, thinking=tokens.thinking)

    def _note(
        self, visit: _Visit, talk: OpenAIRequest, model: Model, answer: OpenAIReply, looked: _Lookup
    ) -> None:
        world, usage, when = self.world, answer.usage, visit.entry.at
        parts, hit = looked.parts, looked.hit
        # The endpoints write tools in different ways, so a conversation stays on one of them.
        owner = f"{visit.entry.workspace} {visit.endpoint}"
        trace = trace_request(talk, parts, owner, visit.conversation)
        previous = world.records.predecessor(trace, talk.model)
        record = make_record(world.ledger.next_number, trace, talk.model, parts, hit)
        world.records.add(answer.id, record)
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
                previous=previous.number if previous else None,
                difference=find_difference(previous, record, usage.fresh) if previous else None,
                expired=None if hit.expired is None else parts[hit.expired].path,
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
        message = "You didn't provide an API key: send an Authorization: Bearer header, with any value."
        raise RequestRefused(ErrorResponse(status=401, message=message))
    return f"proj_{digest(key.strip().encode())[:24]}"


def _with_ids(blocks: tuple[Block, ...], suffix: str) -> tuple[Block, ...]:
    """Tool requests that came without an id get one made from the answer's."""
    return tuple(
        replace(block, id=ToolUseId(f"call_{suffix}{at:02d}"))
        if isinstance(block, ToolUse) and not block.id
        else block
        for at, block in enumerate(blocks)
    )


RouteHandler = Callable[["Request"], Awaitable["Response"]]

JSON_MEDIA_TYPE = "application/json"
_SSE = "text/event-stream; charset=utf-8"
DONE_EVENT = b"data: [DONE]\n\n"


class StreamDropped(Exception):
    """Raised in mid-answer so that the server closes the connection, as a `DropFault` asks."""


class OpenAIRoutes:
    def __init__(self, find_world: Callable[[], SimulatorState]) -> None:
        self._find_world = find_world

    def routes(self) -> list[BaseRoute]:
        from starlette.routing import Route

        return [
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/responses", self.responses, methods=["POST"]),
        ]

    async def chat(self, request: Request) -> Response:
        return await self._serve(request, "chat")

    async def responses(self, request: Request) -> Response:
        return await self._serve(request, "responses")

    def models_or(self, other: RouteHandler) -> RouteHandler:
        """Both APIs list models at one address; Anthropic's clients name a version, OpenAI's do not."""

        async def models(request: Request) -> Response:
            if "anthropic-version" in request.headers or "authorization" not in request.headers:
                return await other(request)
            return self._models(request)

        return models

    def _models(self, request: Request) -> Response:
        world = self._find_world()
        try:
            parse_api_key({"authorization": request.headers.get("authorization", "")})
            asked = request.path_params.get("name")
            known = [model for model in world.catalog.models if asked is None or model.name == asked]
            if asked is not None and not known:
                raise RequestRefused(
                    ErrorResponse(
                        status=404, message=f"The model '{asked}' does not exist.", code="model_not_found"
                    )
                )
        except RequestRefused as refusal:
            return json_response(render_openai_error(refusal.problem), refusal.problem.status)
        listed = tuple(_model(model.name) for model in known)
        return json_response(
            listed[0] if asked is not None else JsonObject({"object": "list", "data": listed})
        )

    async def _serve(self, request: Request, endpoint: OpenAIEndpoint) -> Response:
        world = self._find_world()
        headers = {name.lower(): value for name, value in request.headers.items()}
        served = await OpenAIExchange(world).serve(endpoint, headers, await request.body())
        world.arrivals.mark_looked_up()
        if served.events is not None:
            from starlette.responses import StreamingResponse

            return StreamingResponse(_events(served, endpoint), 200, dict(served.headers), _SSE)
        if isinstance(served.fault, DropFault):
            return _half(served)
        return json_response(served.body, served.status, dict(served.headers))


def _model(name: str) -> JsonObject:
    return JsonObject({"id": name, "object": "model", "created": 0, "owned_by": "sevenfold"})


def json_response(body: JsonObject, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(write_json(body), status, headers, JSON_MEDIA_TYPE)


def _half(served: OpenAIResponse) -> Response:
    """An answer that breaks off in the middle of its body."""
    from starlette.responses import StreamingResponse

    data = write_json(served.body)

    async def broken() -> AsyncIterator[bytes]:
        yield data[: len(data) // 2]
        raise StreamDropped

    headers = {**served.headers, "content-length": str(len(data))}
    return StreamingResponse(broken(), served.status, headers, JSON_MEDIA_TYPE)


async def _events(served: OpenAIResponse, endpoint: OpenAIEndpoint) -> AsyncIterator[bytes]:
    """The stream, with what its fault does to it: one planned for later than its end takes the last event."""
    fault, events = served.fault, served.events or ()
    breaks = min(fault.after_events, len(events) - 1) if isinstance(fault, (StreamFault, DropFault)) else None
    for at, event in enumerate(events):
        if at == breaks:
            if isinstance(fault, StreamFault):
                yield _sse(endpoint, _stream_error(endpoint, fault))
                return
            raise StreamDropped
        if isinstance(fault, SlowFault):
            await asyncio.sleep(fault.each.total_seconds())
        yield _sse(endpoint, event)
    if endpoint == "chat":
        yield DONE_EVENT


def _stream_error(endpoint: OpenAIEndpoint, fault: StreamFault) -> JsonObject:
    body = render_openai_error(ErrorResponse(status=fault.status, message=fault.message))
    if endpoint == "chat":
        return body
    fields: dict[str, Json] = {
        "type": "error",
        "code": "server_error",
        "message": fault.message,
        "param": None,
    }
    return JsonObject(fields)


def _sse(endpoint: OpenAIEndpoint, event: JsonObject) -> bytes:
    """Events of the Responses API have names, chunks have none."""
    data = b"data: " + write_json(event) + b"\n\n"
    if endpoint == "chat":
        return data
    kind = event.get("type")
    return b"event: " + (kind if isinstance(kind, str) else "").encode() + b"\n" + data
