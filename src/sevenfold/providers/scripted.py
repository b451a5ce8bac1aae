"""A provider without a model: it gives scripted answers, and raises for any other request.

    with ScriptedProvider([say("Hello."), Overloaded("busy"), say(calls={"read": {"path": "a"}})]) as models:
        ...

Leaving the block raises if a request came that no step answers, or if a step was not used.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TypeAlias

from sevenfold.core.errors import CallUnexpected, StepsUnused
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze, write_json
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, choose_capabilities
from sevenfold.core.tokens.estimation import CALIBRATED_ESTIMATOR, estimate_message
from sevenfold.core.usage import NO_USAGE, Usage
from sevenfold.providers.provider import Delta, ListMemo, OnDelta, TextDelta, ThinkingDelta, ToolDelta

ScriptedAnswer: TypeAlias = "ModelResponse | str | Exception"
ScriptedStep: TypeAlias = (
    "ScriptedAnswer | Callable[[ModelRequest], ScriptedAnswer | Awaitable[ScriptedAnswer]]"
)
"""What a request is answered with: a reply, text alone, an error to raise, or a function that says."""
ScriptedSteps: TypeAlias = (
    "Sequence[ScriptedStep] | Callable[[ModelRequest], ScriptedAnswer | Awaitable[ScriptedAnswer]]"
)
"""In the order they are asked for; a function answers every request."""


class ScriptedProvider:
    """Answers from a script, and keeps every request it was sent.

    `by_purpose` maps the `purpose` of a request to steps of its own; `steps` answers all other requests.
    `lanes` is the former name of `by_purpose`.
    """

    def __init__(
        self,
        steps: ScriptedSteps = (),
        *,
        by_purpose: Mapping[str, ScriptedSteps] | None = None,
        lanes: Mapping[str, ScriptedSteps] | None = None,
        dialect: Dialect = "anthropic",
        capabilities: Capabilities | None = None,
    ) -> None:
        self._dialect: Dialect = dialect
        self._capabilities = capabilities
        own = {**(lanes or {}), **(by_purpose or {})}
        self._by_purpose = {purpose: _StepQueue(its) for purpose, its in own.items()}
        self._others = _StepQueue(steps)
        self._weights = ListMemo[Message, int](estimate_message)
        self._unexpected: list[str] = []
        self.requests: list[ModelRequest] = []
        """Every request in order, the refused ones included."""

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def capabilities(self, model: Model) -> Capabilities:
        return self._capabilities or choose_capabilities(model, self._dialect)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self.requests.append(request)
        number = len(self.requests)
        step = self._by_purpose.get(request.purpose, self._others).next()
        if step is None:
            raise self._refusal(request, number)
        said = step(request) if callable(step) else step
        answer = await said if inspect.isawaitable(said) else said
        if isinstance(answer, Exception):
            raise answer
        reply = self._finish(make_response(answer) if isinstance(answer, str) else answer, request, number)
        for delta in _deltas(reply) if on_delta else ():
            if on_delta is not None:
                on_delta(delta)
        return reply

    async def close(self) -> None:
        """There is nothing to let go of."""

    def check_done(self) -> None:
        """Raise what was not expected, or what is still waited for."""
        for trouble in self._unexpected:
            raise CallUnexpected(trouble)
        queues = {"any": self._others, **self._by_purpose}
        left = [f"{queue.left} for {purpose}" for purpose, queue in queues.items() if queue.left]
        if left:
            came = len(self.requests)
            raise StepsUnused(f"steps that nobody asked for: {', '.join(left)}; {came} requests came")

    def __enter__(self) -> ScriptedProvider:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A test that failed already keeps its own error.
        if error is None:
            self.check_done()

    def _refusal(self, request: ModelRequest, number: int) -> CallUnexpected:
        last = request.messages[-1] if request.messages else None
        shown = "no message" if last is None else f"a {last.role} message that says {_shown(last)!r}"
        trouble = (
            f"request {number}, of {request.purpose!r}, ends with {shown}, and no step is left for it; "
            "add one, or find out why it was sent"
        )
        # Kept as well as raised: a writer may turn any error into an event and carry on.
        self._unexpected.append(trouble)
        return CallUnexpected(trouble)

    def _finish(self, reply: ModelResponse, request: ModelRequest, number: int) -> ModelResponse:
        """A reply that says nothing of its own about usage, id or model gets what a provider would say."""
        usage, wire = reply.usage, reply.usage_wire
        if not usage.requests:
            usage = self._estimate(request, reply)
            wire = _usage_wire(usage)
        blocks = _with_ids(reply.message.blocks, number)
        return replace(
            reply,
            message=replace(reply.message, content=blocks),
            usage=usage,
            usage_wire=wire,
            id=reply.id or f"msg_scripted_{number}",
            model=reply.model or request.frame.model,
            dialect=self._dialect,
        )

    def _estimate(self, request: ModelRequest, reply: ModelResponse) -> Usage:
        frame = request.frame
        system = frame.system if isinstance(frame.system, str) else write_json(frame.system).decode()
        around = CALIBRATED_ESTIMATOR.weigh(Text(system + write_json(frame.tools).decode()))
        return Usage(
            fresh=round(around) + sum(self._weights.of(request.messages)),
            output=estimate_message(reply.message),
        )


def make_response(
    text: str = "",
    *,
    think: str = "",
    calls: Mapping[str, Mapping[str, object]] | None = None,
    stop_reason: str | None = None,
    usage: Usage = NO_USAGE,
    extra: JsonObject = EMPTY_OBJECT,
) -> ModelResponse:
    """A reply made of thinking, text and tool requests, in that order; `calls` is input by tool name.

    Without `usage`, the provider that sends it estimates one.
    """
    blocks: list[Block] = [Thinking(think, "scripted")] if think else []
    blocks += [Text(text)] if text else []
    for name, value in (calls or {}).items():
        wire = JsonObject({key: freeze(item) for key, item in value.items()})
        blocks.append(ToolUse(ToolUseId(""), name, wire))
    natural = "tool_use" if calls else "end_turn"
    message = Message("assistant", tuple(blocks))
    wire = _usage_wire(usage) if usage.requests else EMPTY_OBJECT
    return ModelResponse(
        message=message, usage=usage, usage_wire=wire, stop_reason=stop_reason or natural, extra=extra
    )


class _StepQueue:
    """The steps of one kind of request."""

    def __init__(self, steps: ScriptedSteps) -> None:
        self._always = steps if callable(steps) else None
        self._steps = deque[ScriptedStep](() if callable(steps) else steps)

    @property
    def left(self) -> int:
        return len(self._steps)

    def next(self) -> ScriptedStep | None:
        if self._always is not None:
            return self._always
        return self._steps.popleft() if self._steps else None


def _usage_wire(usage: Usage) -> JsonObject:
    split = {
        "ephemeral_5m_input_tokens": usage.written_5m,
        "ephemeral_1h_input_tokens": usage.written_1h,
    }
    return JsonObject(
        {
            "input_tokens": usage.fresh,
            "cache_read_input_tokens": usage.read,
            "cache_creation_input_tokens": usage.written,
            "cache_creation": JsonObject(split),
            "output_tokens": usage.output,
        }
    )


def _with_ids(blocks: Sequence[Block], number: int) -> tuple[Block, ...]:
    return tuple(
        replace(block, id=ToolUseId(f"toolu_scripted_{number}_{at}"))
        if isinstance(block, ToolUse) and not block.id
        else block
        for at, block in enumerate(blocks)
    )


def _deltas(reply: ModelResponse) -> Iterator[Delta]:
    for block in reply.message.blocks:
        match block:
            case Text():
                yield TextDelta(block.text)
            case Thinking():
                yield ThinkingDelta(block.thinking)
            case ToolUse():
                yield ToolDelta(block.id, block.name)
                yield ToolDelta(block.id, block.name, write_json(block.input).decode())
            case _:
                pass


def _shown(message: Message) -> str:
    """The beginning of what a message says, for an error."""
    said = " ".join(block.text for block in message.blocks if isinstance(block, Text))
    return said if len(said) <= 80 else f"{said[:80]}…"
