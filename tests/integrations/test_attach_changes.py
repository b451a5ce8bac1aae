"""Callers who change what they said before, on models that sign their thinking over it: no call fails."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anthropic
import pytest

from sevenfold.core.errors import InputError
from sevenfold.core.models import MODELS
from sevenfold.integrations.attached_client import attach
from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.session.talk import Listener

SIGNED = [model.name for model in MODELS if model.has_preserved_thinking]
ROUNDS = 5
TOOL: Any = {"name": "Look", "input_schema": {"type": "object"}}
THINKING: Any = {"type": "adaptive"}


def brain(prompt: Prompt) -> Reply:
    return say("I look.", think="Hm." if prompt.thinks else "", calls={"Look": {"at": prompt.number}})


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator(brain) as running:
        yield running


def edit_words(messages: list[Any]) -> None:
    messages[0]["content"] = "other words"


def edit_result(messages: list[Any]) -> None:
    messages[2]["content"][0]["content"] = "[cleared]"


def drop_oldest(messages: list[Any]) -> None:
    del messages[1:3]


def rewind(messages: list[Any]) -> None:
    del messages[-2:]


def drop_thinking(messages: list[Any]) -> None:
    messages[1]["content"] = [block for block in messages[1]["content"] if block.type != "thinking"]


def insert(messages: list[Any]) -> None:
    messages.insert(0, {"role": "user", "content": "before all"})


CHANGES: list[Callable[[list[Any]], None]] = [
    edit_words,
    edit_result,
    drop_oldest,
    rewind,
    drop_thinking,
    insert,
]


def work(client: anthropic.Anthropic, model: str, messages: list[Any], rounds: int) -> None:
    for _ in range(rounds):
        answer = client.messages.create(
            model=model, max_tokens=2_000, messages=messages, tools=[TOOL], thinking=THINKING
        )
        assert any(block.type == "thinking" for block in answer.content)
        messages.append({"role": "assistant", "content": list(answer.content)})
        uses = [block.id for block in answer.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": use, "content": f"seen {use}"} for use in uses]
        messages.append({"role": "user", "content": results})


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("model", [*SIGNED[:1], "claude-opus-5-5", "claude-opus-5"])
@pytest.mark.moves_prefix(reason="some changes begin another conversation")
def test_a_change_of_what_was_said_never_fails_a_call(
    sim: Simulator, tmp_path: Path, change: Callable[[list[Any]], None], model: str
) -> None:
    messages: list[Any] = [{"role": "user", "content": "go"}]
    listener = Listener()
    with attach(
        sim.client(max_retries=0), project=tmp_path, environ={"HOME": str(tmp_path)}, emit=listener
    ) as client:
        work(client, model, messages, ROUNDS)
        change(messages)
        work(client, model, messages, 2)
    # What is another conversation to us may hold thinking of the old one: that is found out by asking.
    refused = [entry.error for entry in sim.ledger.entries if entry.status != 200]
    assert len(refused) <= (change in (drop_oldest, insert) and model in SIGNED)
    assert len(sim.ledger.entries) - len(refused) == ROUNDS + 2


MARK: Any = {"type": "ephemeral"}
SYSTEM = "Be brief. " * 3_000


def as_sent(messages: list[Any]) -> list[Any]:
    """As some clients write a history: what is last is a list with a breakpoint, the rest is plain text."""
    *before, last = messages
    said: Any = last["content"]
    if isinstance(said, str):
        content: list[Any] = [{"type": "text", "text": said}]
    else:
        (result,) = said
        content = [result | {"content": [{"type": "text", "text": result["content"]}]}]
    content[-1]["cache_control"] = MARK
    return [*before, {"content": content, "role": last["role"]}]


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-4-5"])
def test_a_breakpoint_that_moves_changes_nothing(tmp_path: Path, model: str) -> None:
    """The whole history is kept, with all of its thinking, and read from the cache."""
    is_signed = model in SIGNED
    thoughts: list[int] = []
    messages: list[Any] = [{"role": "user", "content": "go"}]
    listener = Listener()

    def think(prompt: Prompt) -> Reply:
        thoughts.append(str(prompt.messages).count("Thinking("))
        return brain(prompt)

    with (
        Simulator(think) as sim,
        attach(
            sim.client(max_retries=0), project=tmp_path, environ={"HOME": str(tmp_path)}, emit=listener
        ) as client,
    ):
        for at in range(ROUNDS):
            block: Any = {"type": "text", "text": SYSTEM, "cache_control": MARK}
            answer = client.messages.create(
                model=model,
                max_tokens=2_000 + at,
                messages=as_sent(messages),
                tools=[TOOL],
                system=[block] if at % 2 else SYSTEM,
                thinking=THINKING if is_signed else {"type": "enabled", "budget_tokens": 1_024},
            )
            messages.append({"role": "assistant", "content": list(answer.content)})
            uses = [block.id for block in answer.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": use, "content": f"seen {use}"} for use in uses]
            messages.append({"role": "user", "content": results})
            if is_signed:
                messages.append({"role": "system", "content": f"A hook says {at}."})
    assert [entry.status for entry in sim.ledger.entries] == [200] * ROUNDS
    assert thoughts == list(range(ROUNDS))
    assert listener.events == []
    assert all(entry.usage.read > 0 for entry in sim.ledger.entries[1:] if entry.usage)


def test_a_list_that_leaves_another_inside_what_was_summed_up_is_a_session_of_its_own(
    tmp_path: Path,
) -> None:
    examples: list[Any] = [
        {"role": role, "content": f"example {number}"}
        for number in range(3)
        for role in ("user", "assistant")
    ]
    first = [*examples, {"role": "user", "content": "SECRET " + "words of a story " * 4_000}]
    with Simulator(lambda _: say("Noted.")) as sim:
        client: Any = attach(sim.client(), project=tmp_path, environ={"HOME": str(tmp_path)})
        client.messages.create(model=SIGNED[0], max_tokens=500, messages=first)
        client._run(client.sessions[0].compact())
        other = [*examples, {"role": "user", "content": "else"}]
        client.messages.create(model=SIGNED[0], max_tokens=500, messages=other)
        assert len(client.sessions) == 2
        assert sim.last.usage.prompt < 200
        client.close()


def test_a_restarted_client_keeps_a_summary_out_of_a_conversation_that_begins_alike(tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(prompt: Prompt) -> Reply:
        prompts.append(repr(prompt.messages))
        return say("Noted.")

    def open_client() -> Any:
        return attach(sim.client(), project=tmp_path, environ={"HOME": str(tmp_path)})

    def ask(messages: list[Any], *rest: str) -> None:
        reply = client.messages.create(model="claude-opus-4-5", max_tokens=500, messages=messages)
        messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
        messages += [{"role": "user", "content": text} for text in rest]

    shared: list[Any] = [
        {"role": "user", "content": "Read the story. " + "words of a story " * 4_000},
        {"role": "assistant", "content": "I read it."},
        {"role": "user", "content": "Who is in it?"},
        {"role": "assistant", "content": "A boy."},
        {"role": "user", "content": "And where is he?"},
        {"role": "assistant", "content": "At sea."},
    ]
    first = [*shared, {"role": "user", "content": "SECRET plans"}]
    other = [*shared, {"role": "user", "content": "Something else"}]
    with Simulator(answer) as sim:
        client = open_client()
        ask(first, "More of it.")
        ask(first, "And more.")
        client._run(client.sessions[0].compact())
        client.close()
        client = open_client()
        ask(first, "Go on.")
        assert "SECRET" in prompts[-1]
        assert sim.last.usage.prompt < 4_000
        ask(other)
        assert len(client.sessions) == 2
        assert "SECRET" not in prompts[-1]
        client.close()


def play_both(seed: int, model: str, home: Path, *, restarts: bool) -> int:
    """Two conversations of one client that begin alike take turns, with compactions between. Each answer and
    prompt names whose it is; no request may contain a name of the other conversation."""
    choices, whose = random.Random(seed), "A"

    def answer(prompt: Prompt) -> Reply:
        other = "B" if whose == "A" else "A"
        assert not re.findall(rf"{other}word\d+", repr(prompt.messages) + prompt.system)
        return say(f"{whose}word{choices.randrange(1_000)} noted. " + "x y z " * choices.choice([1, 50]))

    shared: list[Any] = []
    for number in range(choices.choice([1, 2, 3, 5])):
        shared.append({"role": "user", "content": f"Part {number}. " + "story " * choices.choice([5, 2_000])})
        shared.append({"role": "assistant", "content": f"ok {number}"})
    lists = {
        name: [*shared, {"role": "user", "content": f"{name}word0: begin. Always use {name}word7 here."}]
        for name in "AB"
    }
    compactions = 0
    with Simulator(answer) as sim:
        client: Any = attach(sim.client(), project=home, environ={"HOME": str(home)})
        for step in range(choices.randrange(6, 14)):
            whose = choices.choice("AB")
            reply = client.messages.create(model=model, max_tokens=500, messages=lists[whose])
            said = f"{whose}word{step + 1} go on. " + "words of it " * choices.choice([1, 1_500])
            lists[whose] += [
                {"role": "assistant", "content": [block.model_dump() for block in reply.content]},
                {"role": "user", "content": said},
            ]
            if choices.random() < 0.4:
                with suppress(InputError):  # there is not enough to compact
                    client._run(client.sessions[-1].compact())
                    compactions += 1
            if restarts and choices.random() < 0.4:
                client.close()
                client = attach(sim.client(), project=home, environ={"HOME": str(home)})
        client.close()
        assert {entry.status for entry in sim.ledger.entries} == {200}
    return compactions


@pytest.mark.story
@pytest.mark.moves_prefix(reason="two conversations share a client")
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("model", ["claude-opus-4-5", "claude-opus-5-5"])
def test_no_request_contains_what_another_conversation_that_begins_alike_has_said(
    tmp_path: Path, model: str, *, restarts: bool
) -> None:
    homes = [tmp_path / str(seed) for seed in range(16)]
    for home in homes:
        home.mkdir()
    assert sum(play_both(seed, model, home, restarts=restarts) for seed, home in enumerate(homes)) > 8
