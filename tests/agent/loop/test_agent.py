"""The loop: what a turn is, and how it goes on when it is cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from sevenfold.agent.loop.turn import DeltaReceived, RoundEnded, ToolEnded, ToolStarted, TurnEvent
from sevenfold.core.errors import Overloaded, PromptTooLong, ReplyBroken
from sevenfold.core.events import AnswerTruncated
from sevenfold.core.messages import Message, Text, ToolResult
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.providers.provider import OnDelta, TextDelta
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.workshop import Plain, Shop


def said(messages: Sequence[Message]) -> list[str]:
    """Texts and results, each with who said it."""
    found: list[str] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text):
                found.append(f"{message.role}: {block.text}")
            elif isinstance(block, ToolResult):
                found.append(f"result: {block.content}")
    return found


def test_a_call_that_may_be_cut_short_is_not_run(tmp_path: Path) -> None:
    async def tell() -> None:
        cut = make_response(calls={"look": {"n": 1}}, stop_reason="max_tokens")
        refused = make_response("I cannot.", calls={"look": {"n": 2}}, stop_reason="refusal")
        with ScriptedProvider([cut, make_response("Shorter."), refused, make_response("Well.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            ran: list[TurnEvent] = []
            assert (await agent.run_turn("Write it all.", ran.append)).reason == "answered"
            assert (await agent.run_turn("Now this.", ran.append)).reason == "refused"
            assert (await agent.run_turn("And now?", ran.append)).reason == "answered"
            await agent.close()
        assert not [one for one in ran if isinstance(one, ToolStarted)]
        results = [line for line in said(models.requests[-1].messages) if line.startswith("result")]
        assert ["not run" in line for line in results] == [True, True]

    asyncio.run(tell())


def test_a_turn_goes_from_a_prompt_over_tools_to_an_answer(tmp_path: Path) -> None:
    async def tell() -> None:
        steps = [make_response("I look.", calls={"look": {"n": 1}}), make_response("Done.")]
        with ScriptedProvider(steps) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            seen: list[TurnEvent] = []
            end = await agent.run_turn("Please look.", seen.append)
            await agent.close()
        assert (end.text, end.rounds, end.reason) == ("Done.", 2, "answered")
        assert "result: look 1" in said(models.requests[-1].messages)
        kinds = [type(one) for one in seen]
        assert kinds.index(DeltaReceived) < kinds.index(ToolStarted) < kinds.index(ToolEnded)
        assert kinds.count(RoundEnded) == 2

    asyncio.run(tell())


def test_a_prompt_that_is_too_long_is_compacted_and_sent_once_more(tmp_path: Path) -> None:
    async def tell() -> None:
        steps = [make_response("One."), PromptTooLong(tokens=300_000, limit=200_000), make_response("Two.")]
        with ScriptedProvider(
            steps, by_purpose={"summary": lambda _: make_response("<summary>all</summary>")}
        ) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            await agent.run_turn("word " * 3_000)
            end = await agent.run_turn("More.")
            await agent.close()
        assert (end.text, end.reason) == ("Two.", "answered")

    asyncio.run(tell())


def test_a_provider_that_fails_ends_the_turn_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([Overloaded("busy"), make_response("Now.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            first = await agent.run_turn("Hello.")
            second = await agent.run_turn("Again.")
            await agent.close()
        assert first.reason == "failed"
        assert isinstance(first.error, Overloaded)
        assert second.text == "Now."

    asyncio.run(tell())


def test_what_is_posted_in_a_turn_is_heard_when_its_next_round_begins(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response(calls={"look": {"n": 1}}), make_response("Heard.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()

            def watch(seen: TurnEvent) -> None:
                if isinstance(seen, ToolStarted):
                    agent.post("a word from elsewhere")

            await agent.run_turn("Go.", watch)
            await agent.close()
        last = said(models.requests[-1].messages)
        assert last.index("result: look 1") < last.index("user: a word from elsewhere")

    asyncio.run(tell())


def test_what_is_posted_between_turns_can_start_one(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response("Read.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            waiting = asyncio.create_task(agent.inbox.wait())
            agent.post("mail")
            await waiting
            end = await agent.run_turn(None)
            await agent.close()
        assert end.text == "Read."
        assert "user: mail" in said(models.requests[-1].messages)

    asyncio.run(tell())


def test_a_turn_ends_when_its_rounds_are_used_up(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response(calls={"look": {}}), make_response(calls={"look": {}})]
        ) as models:
            agent = await Shop(home=tmp_path, provider=models).open(max_rounds=2)
            end = await agent.run_turn("Go.")
            await agent.close()
        assert (end.reason, end.rounds) == ("out of rounds", 2)

    asyncio.run(tell())


def test_an_interrupt_answers_open_calls_and_keeps_what_was_done(tmp_path: Path) -> None:
    async def tell() -> None:
        calls = make_response(calls={"look": {"n": 1}, "dig": {"n": 2}})
        with ScriptedProvider([calls, make_response("On.")]) as models:
            shop = Shop(
                home=tmp_path,
                provider=models,
                tools=[Plain(), Plain(name="dig", is_parallel=False, waits=10_000)],
            )
            agent = await shop.open()

            def watch(seen: TurnEvent) -> None:
                if isinstance(seen, ToolStarted) and seen.use.name == "dig":
                    asyncio.get_running_loop().call_soon(agent.interrupt)

            first = await agent.run_turn("Go.", watch)
            second = await agent.run_turn("Go on.")
            await agent.close()
        assert (first.reason, second.reason) == ("interrupted", "answered")
        told = said(models.requests[-1].messages)
        assert "result: look 1" in told
        assert "result: [interrupted by the user]" in told
        assert shop.noted.of("TurnInterrupted")
        assert not shop.noted.of("HistoryRepaired")

    asyncio.run(tell())


def test_an_answer_that_was_cut_short_goes_on_but_not_for_ever(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response("Half", stop_reason="max_tokens"), make_response("and half.")]
        ) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open()
            end = await agent.run_turn("Write.")
            await agent.close()
        assert (end.text, end.rounds) == ("and half.", 2)
        assert "Go on from where it broke off" in said(models.requests[-1].messages)[-1]
        assert not shop.noted.of("HistoryRepaired")
        with ScriptedProvider([make_response("More", stop_reason="max_tokens")] * 4) as models:
            again = Shop(home=tmp_path / "again", provider=models)
            agent = await again.open()
            assert (await agent.run_turn("Write.")).rounds == 4
            await agent.close()
        assert not shop.noted.of("AnswerTruncated")
        assert again.noted.of("AnswerTruncated") == [AnswerTruncated(3)]

    asyncio.run(tell())


def test_a_model_that_refuses_ends_the_turn(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response("I cannot.", stop_reason="refusal")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            assert (await agent.run_turn("Do it.")).reason == "refused"
            await agent.close()

    asyncio.run(tell())


def test_a_provider_that_wants_to_be_asked_again_is(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response("Wait.", stop_reason="pause_turn"), make_response("Now.")]
        ) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            assert (await agent.run_turn("Go.")).text == "Now."
            await agent.close()

    asyncio.run(tell())


def test_an_answer_that_breaks_off_keeps_what_had_come_of_it(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response("Whole.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()

            class Breaking(ScriptedProvider):
                async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
                    if on_delta is not None:
                        on_delta(TextDelta("The first half of"))
                    raise ReplyBroken("the line went dead")

            whole, agent.provider = agent.provider, Breaking()
            first = await agent.run_turn("Tell me.")
            agent.provider = whole
            await agent.run_turn("Go on.")
            await agent.close()
        assert isinstance(first.error, ReplyBroken)
        told = said(models.requests[-1].messages)
        assert "assistant: The first half of\n\n[no more of the answer came]" in told

    asyncio.run(tell())
