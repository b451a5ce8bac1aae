"""Prompts and answers that are too long."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.cache.prompt_blocks import PromptLevel
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Text
from sevenfold.core.models import Model
from sevenfold.core.usage import read_usage
from sevenfold.simulator.brain import FunctionBrain
from sevenfold.simulator.exchange import MessagesExchange
from sevenfold.simulator.simulator_state import SimulatorState
from sevenfold.simulator.wire.choices import CutToolInput
from sevenfold.testing import Choices, Reply, Simulator, say
from tests.simulator.asking import MARK, MODEL, NEWER, PROSE, Asker, text, tool, user

HEADERS = {"x-api-key": "k", "anthropic-version": NEWER}

WORDS = "word " * 400


def by_words(_model: Model, _level: PromptLevel, block: JsonObject) -> int:
    """A tokenizer that a test can count with: one token a word."""
    return len(str(block.get("text", "x")).split())


@pytest.mark.rule("overflow-1")
@pytest.mark.parametrize(("model", "window"), [("claude-haiku-4-5", 200_000), ("claude-opus-5-5", 1_000_000)])
def test_a_prompt_over_the_window_is_too_long(model: str, window: int) -> None:
    with Simulator(tokenizer=by_words) as sim:
        client = sim.client(max_retries=0)

        def status(words: int) -> str:
            messages = [{"role": "user", "content": "w " * words}]
            body = {"model": model, "max_tokens": 10, "messages": messages}
            response = client.post("/v1/messages", cast_to=object, body=body)
            return str(response)

        assert "model_context_window_exceeded" in status(window)
        with pytest.raises(Exception, match=f"prompt is too long: {window + 1} tokens > {window} maximum"):
            status(window + 1)


@pytest.mark.rule("overflow-1")
def test_the_text_is_the_one_that_agents_look_for(ask: Asker) -> None:
    answer = ask.create(*[PROSE * 60] * 12, model="claude-haiku-4-5")
    assert (answer.status, answer.at("error", "type")) == (400, "invalid_request_error")
    assert re.fullmatch(r"prompt is too long: \d{6} tokens > 200000 maximum", answer.message)


@pytest.mark.rule("overflow-2")
def test_an_answer_stops_where_the_window_ends() -> None:
    with Simulator(lambda _: WORDS, tokenizer=by_words) as sim:
        message = sim.client().messages.create(
            model="claude-haiku-4-5",
            max_tokens=1000,
            messages=[{"role": "user", "content": "w " * 199_900}],
        )
        assert message.stop_reason == "model_context_window_exceeded"
        assert message.usage.output_tokens == 100


@pytest.mark.rule("overflow-3")
@pytest.mark.parametrize(("most", "reason"), [(100, "max_tokens"), (399, "max_tokens"), (400, "end_turn")])
def test_an_answer_is_cut_at_max_tokens(most: int, reason: str) -> None:
    with Simulator(lambda _: WORDS, tokenizer=by_words) as sim:
        message = sim.client().messages.create(
            model="claude-haiku-4-5", max_tokens=most, messages=[{"role": "user", "content": "Hi"}]
        )
        assert message.stop_reason == reason
        assert message.usage.output_tokens == most


@pytest.mark.rule("overflow-3")
def test_thinking_counts_towards_max_tokens(ask: Asker) -> None:
    ask.sim.reset(lambda _: say("Yes.", think=PROSE))
    answer = ask.create("Hi", max_tokens=100, thinking={"type": "adaptive"})
    assert (answer.kinds, answer.at("stop_reason")) == ([], "max_tokens")


@pytest.mark.rule("overflow-4")
def test_what_was_refused_is_neither_billed_nor_cached(ask: Asker) -> None:
    said = user(text(PROSE, cache_control=MARK))
    refused = ask.create(said, max_tokens=10**9)
    assert refused.status == 400
    entry = ask.sim.last
    assert (entry.status, entry.usage.prompt, entry.cost, entry.error) == (400, 0, None, refused.message)
    assert ask.create(said).usage.read == 0


TEXTS = st.text(st.sampled_from("ab cé\n"), max_size=400)


def spoken(think: str, said: str, asked: str) -> Reply:
    return say(said, think=think, calls={"look": {"at": asked}} if asked else None)


SPOKEN = st.builds(spoken, TEXTS, TEXTS, TEXTS)


@pytest.mark.rule("overflow-3")
@pytest.mark.parametrize("cut_tools", ["drop", "empty"])
def test_output_never_exceeds_max_tokens_and_is_all_of_it_when_cut(cut_tools: CutToolInput) -> None:
    world = SimulatorState(brain=FunctionBrain(lambda _: "unset"), choices=Choices(cut_tools=cut_tools))

    @given(SPOKEN, st.integers(1, 300), st.sampled_from([MODEL, "claude-opus-5-5", "claude-haiku-4-5"]))
    def check(reply: Reply, most: int, model: str) -> None:
        world.brain = FunctionBrain(lambda _: reply)
        body = {
            "model": model,
            "max_tokens": most,
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [tool()],
        }
        served = asyncio.run(MessagesExchange(world).serve("messages", HEADERS, json.dumps(body).encode()))
        assert served.status == 200
        usage = read_usage(served.body["usage"])
        assert 1 <= usage.output <= most
        assert usage.thinking <= usage.output
        if served.body["stop_reason"] == "max_tokens":
            assert usage.output == most

    check()


def test_an_answer_cut_while_thinking_is_billed_as_thinking(ask: Asker) -> None:
    ask.sim.reset(lambda _: say("So.", think=PROSE))
    answer = ask.create("Hi", max_tokens=20, model="claude-opus-5-5")
    assert (answer.content, answer.at("stop_reason")) == ((), "max_tokens")
    assert (answer.usage.output, answer.usage.thinking) == (20, 20)


def test_a_scripted_max_tokens_is_billed_whole(ask: Asker) -> None:
    ask.sim.reset(lambda _: Reply((Text("And then"),), "max_tokens"))
    assert ask.create("Hi", max_tokens=77).usage.output == 77
