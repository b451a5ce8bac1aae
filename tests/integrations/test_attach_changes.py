"""Callers who change what they said before, on models that sign their thinking over it: no call fails."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import anthropic
import pytest

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
