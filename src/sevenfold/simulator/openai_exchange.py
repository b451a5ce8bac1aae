"""A request of an OpenAI-shaped endpoint in, an answer out: the same brain and ledger, another cache."""

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
from sevenfold.core.prices import cost, cost_without_caching
from sevenfold.core.usage import Usage
from sevenfold.simulator.brain import Prompt, Reply
from sevenfold.simulator.call import named_model
from sevenfold.simulator.counting import counter
from sevenfold.simulator.faults import Fault, StatusFault, StreamFault, first_delay
from sevenfold.simulator.ledger import Entry
from sevenfold.simulator.openai_cache import Part
from sevenfold.simulator.openai_chat import chat_chunks, read_chat, write_chat
from sevenfold.simulator.openai_conversation import Answer, Conversation, too_long
from sevenfold.simulator.openai_responses import read_responses, response_events, write_response
from sevenfold.simulator.output import Output, Room, billed, fit
from sevenfold.simulator.refusals import Problem, Refusal
from sevenfold.simulator.thinking import to_wire
from sevenfold.simulator.world import World

Endpoint: TypeAlias = Literal["chat", "responses"]

KINDS: Mapping[int, str] = {401: "authentication_error", 429: "rate_limit_error", 404: "not_found_error"}
"""The type in the body of an error; of the client's others `invalid_request_error`, else `server_error`."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the front has to send."""

    status: int
    body: JsonObject
    headers: Mapping[str, str]
    events: tuple[JsonObject, ...] | None = None
    """Of an answer that is streamed."""
    fault: Fault | None = None


@dataclass(slots=True)
class _Visit:
    """A request on its way through, as far as it is known."""

    endpoint: Endpoint
    suffix: str
    body: bytes
    entry: Entry
    fault: Fault | None
    events: list[Event] = field(default_factory=list[Event])


class OpenAIExchange:
    def __init__(self, world: World) -> None:
        self.world = world

    async def serve(self, endpoint: Endpoint, headers: Mapping[str, str], data: bytes) -> Served:
        """Answer a request; whatever goes wrong is an answer too."""
        world, suffix = self.world, self.world.next_request()
        entry = Entry(0, world.clock.now(), endpoint, f"req_{suffix}", "", "")
        visit = _Visit(endpoint, suffix, data, entry, world.faults.take())
        try:
            return await self._serve(visit, headers, data)
        except Refusal as refusal:
            return self._refused(visit, refusal.problem)
        except WireError as error:
            return self._refused(
                visit, Problem(400, f"We could not parse the JSON body of your request: {error}")
            )
        except Exception as error:
            # The brain's failure or ours: told to the client, and kept for whoever runs the simulator.
            world.failures.append(error)
            return self._refused(visit, Problem(500, f"{type(error).__name__}: {error}", should_retry=False))

    async def _serve(self, visit: _Visit, headers: Mapping[str, str], data: bytes) -> Served:
        world, fault = self.world, visit.fault
        workspace = read_key(headers)
        visit.entry = replace(visit.entry, workspace=workspace)
        if isinstance(fault, StatusFault):
            raise Refusal(fault.problem)
        world.meter.admit(workspace, world.clock.now())
        body = read_object(data)
        talk = read_chat(body) if visit.endpoint == "chat" else read_responses(body)
        visit.entry = replace(visit.entry, model=talk.model)
        if isinstance(fault, StreamFault) and not talk.streams:
            raise Refusal(Problem(fault.status, fault.message))
        answer = await self._answer(visit, talk, workspace)
        headers = {"x-request-id": visit.entry.request_id}
        if visit.endpoint == "chat":
            events = tuple(chat_chunks(answer, tells_usage=talk.tells_usage)) if talk.streams else None
            return Served(200, write_chat(answer), headers, events, fault)
        events = tuple(response_events(answer)) if talk.streams else None
        return Served(200, write_response(answer), headers, events, fault)

    async def _answer(self, visit: _Visit, talk: Conversation, workspace: str) -> Answer:
        world, started = self.world, self.world.clock.now()
        model = world.catalog.find(talk.model, visit.events.append)
        parts = self._parts(model, talk)
        prompt = sum(part.tokens for part in parts)
        if prompt > model.window_tokens:
            raise too_long(prompt, model.window_tokens)
        hit = world.prefixes.look_up(workspace, talk.model, parts, started)
        reply = await self._ask(model, talk)
        room = Room(talk.max_tokens or model.max_output_tokens, model.window_tokens - prompt)
        output = fit(reply, room, talk.stops, counter(world.tokenizer, model))
        await world.arrivals.pause(first_delay(visit.fault))
        world.prefixes.keep(workspace, talk.model, hit, world.clock.now())
        usage = self._usage(model, output, room, prompt, hit.cached_tokens)
        prefix = "chatcmpl-" if visit.endpoint == "chat" else "resp_"
        answer = Answer(
            f"{prefix}{visit.suffix}",
            int(started.timestamp()),
            talk.model,
            _with_ids(output.blocks, visit.suffix),
            output.stop_reason,
            usage,
        )
        self._note(visit, model, answer)
        return answer

    async def _ask(self, model: Model, talk: Conversation) -> Reply:
        world = self.world
        names = tuple(name for tool in talk.tools if isinstance(name := tool.get("name"), str))
        most = talk.max_tokens or model.max_output_tokens
        prompt = Prompt(
            world.next_question(), talk.model, talk.system, names, talk.messages, most, thinks=talk.thinks
        )
        return await world.brain.reply(prompt)

    def _parts(self, model: Model, talk: Conversation) -> tuple[Part, ...]:
        count = counter(self.world.tokenizer, model)
        parts = [Part(tool, count("tools", tool)) for tool in talk.tools]
        if talk.system:
            wire = JsonObject({"type": "text", "text": talk.system})
            parts.append(Part(wire, count("system", wire)))
        for message in talk.messages:
            for block in message.blocks:
                wire = to_wire(block)
                placed = JsonObject({"role": message.role, "block": wire})
                parts.append(Part(placed, count("messages", wire)))
        return tuple(parts)

    def _usage(self, model: Model, output: Output, room: Room, prompt: int, cached: int) -> Usage:
        count = partial(self.world.tokenizer, model, "messages")
        wires = [to_wire(block) for block in output.blocks]
        thought = sum(count(wire) for wire in wires if wire.get("type") == "thinking")
        tokens = billed(output, room, sum(count(wire) for wire in wires), thought)
        return Usage(prompt - cached, cached, output=tokens.output, thinking=tokens.thinking)

    def _note(self, visit: _Visit, model: Model, answer: Answer) -> None:
        world, usage, when = self.world, answer.usage, visit.entry.at
        world.meter.charge(visit.entry.workspace, usage, world.clock.now())
        self._write(
            visit,
            replace(
                visit.entry,
                message_id=answer.id,
                stop_reason=answer.stop_reason,
                usage=usage,
                cost=cost(usage, model, when=when, catalog=world.catalog),
                cost_without_caching=cost_without_caching(usage, model, when=when, catalog=world.catalog),
            ),
        )

    def _refused(self, visit: _Visit, problem: Problem) -> Served:
        model = visit.entry.model or named_model(visit.body)
        self._write(visit, replace(visit.entry, model=model, status=problem.status, error=problem.message))
        headers = {"x-request-id": visit.entry.request_id, **problem.headers()}
        return Served(problem.status, error_body(problem), headers)

    def _write(self, visit: _Visit, entry: Entry) -> None:
        ledger = self.world.ledger
        met = None if visit.fault is None else type(visit.fault).__name__
        ledger.add(replace(entry, number=ledger.next_number, fault=met, events=tuple(visit.events)))


def error_body(problem: Problem) -> JsonObject:
    """An error in OpenAI's shape."""
    usual = "server_error" if problem.status >= 500 else "invalid_request_error"
    fields: dict[str, Json] = {
        "message": problem.message,
        "type": KINDS.get(problem.status, usual),
        "param": None,
        "code": problem.code,
    }
    return JsonObject({"error": JsonObject(fields)})


def read_key(headers: Mapping[str, str]) -> str:
    """Whose request it is: the cache and the limits are by key."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        told = "You didn't provide an API key: send an Authorization: Bearer header, with any value."
        raise Refusal(Problem(401, told))
    return f"proj_{digest(key.strip().encode())[:24]}"


def _with_ids(blocks: tuple[Block, ...], suffix: str) -> tuple[Block, ...]:
    """Tool requests that came without an id get one made from the answer's."""
    return tuple(
        replace(block, id=ToolUseId(f"call_{suffix}{at:02d}"))
        if isinstance(block, ToolUse) and not block.id
        else block
        for at, block in enumerate(blocks)
    )
