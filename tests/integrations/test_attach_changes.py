"""Callers who change what they said before, on models that sign their thinking over it: no call fails."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from sevenfold.core.models import MODELS
from sevenfold.integrations.anthropic_sdk import attach
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
