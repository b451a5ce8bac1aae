"""Whatever rung a compaction ends on, every model takes the view that comes of it, and reads its thinking."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from sevenfold.core.errors import Overloaded, PromptTooLong
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import (
    Breakpoint,
    Capabilities,
    Dialect,
    ModelRequest,
    ModelResponse,
    RequestParams,
)
from sevenfold.layers.compaction.compactor import Compactor
from sevenfold.layers.compaction.job import Compacted, CompactionJob, Part
from sevenfold.layers.compaction.policy import CompactionStrategy, CompactSettings
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.provider import OnDelta
from sevenfold.testing import Prompt, Simulator, say
from sevenfold.testing import Reply as Said
from tests.kinds import every_model
from tests.layers.compaction.overflows import GOOD, STRUCTURAL, count, has_thinking

pytestmark = pytest.mark.moves_prefix(reason="swaps the view by hand, as a session does with a cut")

ROUNDS = 5
TOOL = JsonObject(
    {"name": "Read", "description": "Reads a file.", "input_schema": JsonObject({"type": "object"})}
)
SYSTEM = "You mend parsers. " * 300


def answer(prompt: Prompt) -> Said:
    """Reads on and on, thinking; asked for a summary, writes one."""
    if prompt.purpose == "summary":
        return say("The user wants the parser mended; five files were read and nothing was found.")
    if "<sevenfold-fork>" in prompt.last_text:
        return say(GOOD)
    return say(
        "I read on.", think="Where is it?" if prompt.thinks else "", calls={"Read": {"file_path": "/a"}}
    )


class Faulty:
    """The real provider, except that calls for summaries fail as planned."""

    def __init__(self, inner: AnthropicProvider, failures: Sequence[Exception]) -> None:
        self._inner, self._failures = inner, list(failures)

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    def capabilities(self, model: Model) -> Capabilities:
        return self._inner.capabilities(model)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if request.purpose == "summary" and self._failures:
            raise self._failures.pop(0)
        return await self._inner.send(request, on_delta)

    async def close(self) -> None:
        await self._inner.close()


def thinking(model: Model) -> JsonObject:
    if model.drops_thinking or model.name == "claude-opus-4-5":
        return JsonObject({"thinking": JsonObject({"type": "enabled", "budget_tokens": 1_024})})
    return JsonObject({"thinking": JsonObject({"type": "adaptive"})})


async def go_on(provider: Faulty, frame: RequestParams, messages: list[Message], rounds: int) -> None:
    """Let the agent work: each call is answered."""
    for _ in range(rounds):
        marks = (Breakpoint("system", 0), Breakpoint("messages", len(messages) - 1))
        reply = await provider.send(ModelRequest(frame, tuple(messages), marks))
        results = tuple(ToolResult(use.id, f"{len(messages)} " + "word " * 900) for use in reply.tool_uses)
        messages += [reply.message, Message("user", results)]


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    """One for all tests here: starting it takes longer than any of them."""
    with Simulator(answer) as running:
        yield running


@pytest.fixture
def session(simulator: Simulator) -> Session:
    simulator.reset(answer)
    return Session(simulator)


@dataclass(frozen=True, slots=True)
class Session:
    simulator: Simulator

    def compact(
        self, model: Model, failures: Sequence[Exception], settings: CompactSettings, **changes: object
    ) -> Compacted:
        """Works, is compacted, and works on; a second compaction follows."""
        return asyncio.run(self._run(model, failures, settings, changes))

    async def _run(
        self,
        model: Model,
        failures: Sequence[Exception],
        settings: CompactSettings,
        changes: Mapping[str, object],
    ) -> Compacted:
        async with self.simulator.async_client(max_retries=0) as client:
            provider = Faulty(AnthropicProvider(client), failures)
            frame = RequestParams(
                model=model.name, max_tokens=4_000, system=SYSTEM, tools=(TOOL,), params=thinking(model)
            )
            messages = [Message("user", "Please mend the parser.")]
            await go_on(provider, frame, messages, ROUNDS)
            overflow = Compactor(provider, settings)
            result = await overflow.compact(replace(job(frame, messages), **changes))
            framed = replace(frame, betas=result.betas)
            view = list(result.view)
            await go_on(provider, framed, view, 2)
            again = await overflow.compact(job(framed, view))
            await go_on(provider, replace(frame, betas=again.betas), list(again.view), 1)
            return result


def job(frame: RequestParams, messages: Sequence[Message]) -> CompactionJob:
    model = CATALOG.find(frame.model)
    counts = count(messages, model.name)
    marks = (Breakpoint("system", 0), Breakpoint("messages", len(messages) - 1))
    request = ModelRequest(frame, tuple(messages), marks)
    capabilities = AnthropicProvider().capabilities(model)
    return CompactionJob(
        request=request,
        tokens_before=sum(counts) + 1_500,
        target=9_000,
        counts=counts,
        capabilities=capabilities,
        structural=STRUCTURAL,
        transcript="/t.jsonl",
    )


every_family = pytest.mark.parametrize(
    "model",
    [
        CATALOG.find(name)
        for name in ("claude-fable-5-2", "claude-opus-5", "claude-opus-4-6", "claude-haiku-4-5")
    ],
    ids=lambda model: model.name,
)
"""One of each kind: signed thinking, unsigned, the older tokenizer, thinking dropped at every turn."""
OURS = CompactSettings(keep_tokens=2_500)
OWN_WORDS = replace(OURS, blocks_enabled=False)
LONG = PromptTooLong(tokens=10_000, limit=8_000)


@every_model
def test_a_summary_of_the_best_kind(session: Session, model: Model) -> None:
    result = session.compact(model, [], OURS)
    assert result.rung == ("block" if model.has_preserved_thinking else "summary")
    assert result.tokens_after < 9_000


@every_model
@pytest.mark.parametrize(
    ("rung", "failures"),
    [("summary", []), ("trimmed", [LONG]), ("structural", [Overloaded("busy")])],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_summary_of_ours_and_those_that_follow_its_failure(
    session: Session, model: Model, rung: CompactionStrategy, failures: list[Exception]
) -> None:
    result = session.compact(model, failures, OWN_WORDS)
    assert result.rung == rung
    assert result.kept
    assert not (model.has_preserved_thinking and has_thinking(result.view))


@every_family
def test_a_clip(session: Session, model: Model) -> None:
    result = session.compact(model, [Overloaded("busy")] * 2, OWN_WORDS, structural="")
    assert result.rung == "clip"


@every_family
@pytest.mark.parametrize("part", [Part("from", 5), Part("up_to", 7)], ids=lambda part: part.side)
def test_a_part(session: Session, model: Model, part: Part) -> None:
    result = session.compact(model, [], OWN_WORDS, part=part, trigger="manual")
    assert result.rung == "summary"
    assert result.tokens_after < result.tokens_before


@every_family
def test_a_cold_view(session: Session, model: Model) -> None:
    result = session.compact(model, [], OWN_WORDS, is_warm=False)
    assert result.rung == "summary"


def test_a_cheaper_model_can_read_the_stripped_view(session: Session) -> None:
    model = CATALOG.find("claude-fable-5-2")
    result = session.compact(
        model, [], replace(OWN_WORDS, summary_models=("claude-haiku-4-5",)), is_warm=False
    )
    assert result.rung == "summary"
    assert result.replies[0].model.startswith("claude-haiku-4-5")


def test_the_summary_reads_the_whole_cached_prefix(session: Session) -> None:
    result = session.compact(CATALOG.find("claude-opus-4-8"), [], OWN_WORDS)
    (reply,) = result.replies
    # The last answer and its result are new; everything before them was cached.
    assert reply.usage.read > 0.7 * reply.usage.prompt
