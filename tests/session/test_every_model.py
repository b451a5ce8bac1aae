"""The same histories on every model we know, in a small window: several compactions, processes that end in
between, and never a request that the provider refuses."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from anthropic import Anthropic

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.models import MODELS, Model
from sevenfold.core.requests import ModelResponse
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.testing import Prompt, Simulator, say
from sevenfold.testing import Reply as Said
from tests.kinds import every_model, traits_of
from tests.session.working import (
    CATALOGUE,
    SETTINGS,
    STRICTEST,
    SYSTEM,
    TOOLS,
    Moody,
    Work,
    brain,
    frame_of,
    results,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8BQDwAEgAF/QualzQAAAABJRU5ErkJggg=="
IMAGE = Image(JsonObject({"type": "base64", "media_type": "image/png", "data": PNG}))
TEXT_FILE = Document(JsonObject({"type": "text", "media_type": "text/plain", "data": "some text " * 50}))


@pytest.fixture(scope="module")
def running() -> Generator[Simulator]:
    """One for all tests here: starting it takes longer than any of them."""
    with Simulator(brain, choices=STRICTEST, catalog=CATALOGUE) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def client(running: Simulator) -> Anthropic:
    """One for all as well, and so a blocking one: an async one belongs to a loop."""
    return running.client(max_retries=0)


@pytest.fixture
def work(running: Simulator, client: Anthropic, tmp_path: Path) -> Work:
    running.reset(brain, choices=STRICTEST)
    return Work(
        home=tmp_path, simulator=running, provider=Moody(AnthropicProvider(client)), frame=frame_of(MODELS[0])
    )


def chat(_prompt: Prompt) -> Said:
    return brain(_prompt) if "<sevenfold-fork>" in _prompt.last_text else say("I see. " * 500)


def show_images(number: int, reply: ModelResponse) -> Sequence[Message]:
    shown = tuple(ToolResult(use.id, (Text("word " * 700), IMAGE)) for use in reply.tool_uses)
    return (Message("user", (*shown, IMAGE, TEXT_FILE, Text(f"Look at {number}."))),)


def read_much(number: int, reply: ModelResponse) -> Sequence[Message]:
    """Results that go to disk, and now and then a user who pastes a whole file."""
    words = "paste " * 6_000 if number % 4 == 3 else "go on"
    return (results(number, reply, words=30_000), Message("user", f"{number} {words}"))


def read_little(number: int, reply: ModelResponse) -> Sequence[Message]:
    return (results(number, reply, 200),)


def interrupt(number: int, reply: ModelResponse) -> Sequence[Message]:
    """The user speaks while tools run: some results never come, some come late, some are for nothing."""
    answered = results(number, reply)
    stop = Message("user", f"Stop, do {number} first. " + "word " * 500)
    if number % 3 == 0:
        return (stop,)
    if number % 3 == 1:
        return (replace(answered, content=answered.blocks[:1]), stop)
    return (stop, answered)


def assail(number: int, reply: ModelResponse) -> Sequence[Message]:
    """Whatever a broken loop might write down."""
    answered = results(number, reply)
    odd: Sequence[Sequence[Message]] = (
        (Message("user", (ToolResult(ToolUseId("nobody"), "orphan " * 300),)), answered),
        (Message("assistant", "And I say more."), Message("assistant", "And more."), answered),
        (answered, Message("system", "Be quick."), Message("system", "Be kind."), Message("user", "Well?")),
        (answered, Message("user", ""), Message("user", ()), Message("user", "half \ud800 a character")),
        (answered, Message("assistant", (Thinking("unsigned"),)), Message("user", "Well?")),
        (answered, Message("user", (Opaque(JsonObject({"type": "tool_result"})), Text("  "), Text("Well?")))),
        (answered, answered, Message("user", "Twice.")),
        (
            Message("assistant", (ToolUse(ToolUseId("again"), "Read", JsonObject({})),)),
            Message("assistant", (ToolUse(ToolUseId("again"), "Gone", JsonObject({})),)),
            Message("user", (ToolResult(ToolUseId("again"), None, extra=JsonObject({"odd": 1})),)),
        ),
        (Message("user", (IMAGE,), JsonObject({"name": "me"})), Message("system", "Late."), answered),
    )
    return odd[number % len(odd)]


def say_nothing(number: int, reply: ModelResponse) -> Sequence[Message]:
    """The caller sends again what ended with the assistant."""
    return () if not reply.tool_uses else (results(number, reply),)


Talk = tuple[Callable[[Prompt], Said], Callable[[int, ModelResponse], Sequence[Message]] | None]

TALKS: Mapping[str, Talk] = {
    "plain": (chat, None),
    "silent": (chat, say_nothing),
    "calls": (brain, None),
    "cleared": (partial(brain, tool="Read"), None),
    "parallel": (partial(brain, calls=7), read_little),
    "images": (brain, show_images),
    "long": (brain, read_much),
    "interrupted": (partial(brain, calls=2), interrupt),
    "hostile": (partial(brain, calls=2), assail),
}

LADDERS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "notes": {},
    "model": {"notes": {"compaction_enabled": False}},
    "own": {"notes": {"compaction_enabled": False}, "compact": {"blocks_enabled": False}},
    "none": {"notes": {"compaction_enabled": False}},
}
"""What a compaction may use: the notes, a model's block or summary, our own summary, no model at all."""


def choose_settings(ladder: str) -> dict[str, dict[str, object]]:
    own = LADDERS[ladder]
    return {name: {**SETTINGS.get(name, {}), **own.get(name, {})} for name in {*SETTINGS, *own}}


COMES_AND_GOES = pytest.mark.moves_prefix(
    reason="a user's words on a model that then leaves out old thinking change the prompt"
)


HARD = frozenset({"calls", "interrupted", "hostile"})
"""Talks whose thinking, calls and results each kind of model takes in its own way. The others are always run
on every second kind, each on another half of them."""


def choose_cases() -> set[tuple[str, str]]:
    """Names of models and talks that are always run. The models of a kind take turns."""
    kinds: dict[tuple[object, ...], list[str]] = {}
    for model in MODELS:
        kinds.setdefault(traits_of(model), []).append(model.name)
    return {
        (name, talk)
        for at, names in enumerate(kinds.values())
        for name, talk in zip(
            cycle(names),
            (talk for turn, talk in enumerate(TALKS) if talk in HARD or (at + turn) % 2 == 0),
            strict=False,
        )
    }


ALWAYS = choose_cases()
CASES = [
    pytest.param(
        model,
        talk,
        id=f"{talk}-{model.name}",
        marks=[
            *([COMES_AND_GOES] if model.drops_thinking or talk == "hostile" else ()),
            *([] if (model.name, talk) in ALWAYS else [pytest.mark.story]),
        ],
    )
    for talk in TALKS
    for model in MODELS
]


def test_every_model_and_every_talk_is_among_those_that_are_always_run() -> None:
    kinds = {model.name: traits_of(model) for model in MODELS}
    assert {name for name, _ in ALWAYS} == set(kinds)
    for talk in TALKS:
        met = {kinds[name] for name, one in ALWAYS if one == talk}
        assert len(met) >= len(set(kinds.values())) // (1 if talk in HARD else 2)
    for kind in kinds.values():
        assert len({talk for name, talk in ALWAYS if kinds[name] == kind}) >= len(TALKS) // 2 + len(HARD) // 2


@pytest.mark.parametrize(("model", "talk"), CASES)
def test_no_history_is_refused(work: Work, model: Model, talk: str) -> None:
    thinks, respond = TALKS[talk]
    work.simulator.reset(thinks, choices=STRICTEST)
    ladder = tuple(LADDERS)[(MODELS.index(model) + tuple(TALKS).index(talk)) % len(LADDERS)]
    work.frame, work.settings, work.fails = frame_of(model), choose_settings(ladder), ladder == "none"
    work.respond = respond or work.respond
    work.leave_after = frozenset({4})
    work.run(7)
    assert work.refusals == []
    assert work.rungs or talk == "cleared"


@every_model
@pytest.mark.moves_prefix(reason="another model reads another cache")
def test_switching_the_model_and_back_is_never_refused(work: Work, model: Model) -> None:
    """Each model of the table in turn with this one, a compaction now and then."""
    others = [other for other in MODELS if other is not model][MODELS.index(model) % 3 :: 3]

    def switch(number: int, work: Work) -> None:
        work.frame = frame_of(model if number % 2 else others[number // 2 % len(others)])

    work.before_round, work.respond = switch, remind
    work.leave_after = frozenset({4, 9})
    work.run(12)
    assert work.refusals == []
    assert work.rungs


def remind(number: int, reply: ModelResponse) -> Sequence[Message]:
    """Results, and a word of the system's after them."""
    return (results(number, reply, 600), Message("system", f"This is round {number}."))


@every_model
@pytest.mark.moves_prefix(reason="the caller changes the frame")
def test_a_frame_that_changes_is_never_refused(work: Work, model: Model) -> None:
    def vary(number: int, work: Work) -> None:
        if number in (2, 5):
            work.frame = replace(work.frame, system=f"It is day {number}. {SYSTEM}")
        if number in (3, 6):
            work.frame = replace(work.frame, tools=TOOLS[: number % 2 + 1])

    work.frame, work.before_round = frame_of(model), vary
    work.respond = lambda number, reply: (results(number, reply, 300),)
    work.leave_after = frozenset({4})
    work.run(8)
    assert work.refusals == []


@every_model
@pytest.mark.moves_prefix(reason="the caller changes the frame")
def test_a_session_taken_up_with_another_frame_is_never_refused(work: Work, model: Model) -> None:
    def vary(number: int, work: Work) -> None:
        if number == 3:
            work.frame = replace(work.frame, system=f"It is another day. {SYSTEM}")

    work.frame, work.after_round = frame_of(model), vary
    work.respond = lambda number, reply: (results(number, reply, 300),)
    work.leave_after = frozenset({3})
    work.run(5)
    assert work.refusals == []
