"""The layers under a loop of the official SDK, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool

from sevenfold.core.errors import InputError, ReplyBroken, WireError
from sevenfold.core.events import CutRegistered, HistoryChanged, ReplyUnrecorded, ResultSpilled
from sevenfold.integrations import anthropic_sdk, conversations
from sevenfold.integrations.attached_client import attach
from sevenfold.integrations.reply_stream import STREAM_LEFT_REASON, StreamedReplyReader
from sevenfold.providers.anthropic.wire import MessagesAssembler
from sevenfold.testing import Prompt, Reply, Simulator, StatusFault, say
from tests.session.talk import Listener

MODEL = "claude-opus-5"
SYSTEM = "You help with a repository. " * 100


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def listener() -> Listener:
    return Listener()


def ask(text: str = "hello") -> list[Any]:
    return [{"role": "user", "content": text}]


def go_on(messages: list[Any], answer: Any, text: str = "go on") -> None:
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": text}]


def create(client: anthropic.Anthropic, messages: list[Any]) -> anthropic.types.Message:
    return client.messages.create(model=MODEL, max_tokens=500, messages=messages, system=SYSTEM)


def reads(sim: Simulator) -> list[int]:
    return [entry.usage.read for entry in sim.ledger.entries if entry.usage]


def fresh(sim: Simulator) -> list[int]:
    return [entry.usage.fresh for entry in sim.ledger.entries if entry.usage]


def test_the_client_that_comes_back_is_of_the_same_type(sim: Simulator) -> None:
    with attach(sim.client(), project=None) as client:
        assert type(client) is anthropic.Anthropic
        assert create(client, ask()).role == "assistant"


def test_every_request_reads_what_the_one_before_it_wrote(sim: Simulator) -> None:
    messages = ask("hello " * 500)
    with attach(sim.client(), project=None) as client:
        for _ in range(4):
            go_on(messages, create(client, messages))
    assert reads(sim)[0] == 0
    assert all(later > earlier for earlier, later in zip(reads(sim), reads(sim)[1:], strict=False))
    assert fresh(sim) == [0, 0, 0, 0]


def test_a_stream_is_passed_on_and_recorded(sim: Simulator) -> None:
    messages = ask("hello " * 500)
    attached = attach(sim.client(), project=None)
    with attached as client:
        with client.messages.stream(model=MODEL, max_tokens=500, messages=messages, system=SYSTEM) as stream:
            text = "".join(stream.text_stream)
            answer = stream.get_final_message()
        assert text == "".join(block.text for block in answer.content if block.type == "text")
        go_on(messages, answer)
        create(client, messages)
        (session,) = attached.sessions
        assert session.followed == 3
    assert reads(sim)[1] > 0


def test_a_stream_of_raw_events_is_passed_on_whole(sim: Simulator) -> None:
    with attach(sim.client(), project=None) as client:
        events = list(client.messages.create(model=MODEL, max_tokens=50, messages=ask(), stream=True))
    assert events[0].type == "message_start"
    assert events[-1].type == "message_stop"


def test_a_stream_left_half_way_leaves_a_session_that_goes_on_and_is_told(
    sim: Simulator, listener: Listener
) -> None:
    messages = ask("hello " * 500)
    with attach(sim.client(), project=None, emit=listener) as client:
        with client.messages.stream(model=MODEL, max_tokens=500, messages=messages, system=SYSTEM) as stream:
            next(iter(stream))
        assert listener.events == [ReplyUnrecorded(STREAM_LEFT_REASON)]
        assert create(client, messages).role == "assistant"


def test_an_async_stream_left_half_way_is_told_too(sim: Simulator, listener: Listener) -> None:
    async def leave() -> None:
        async with (
            attach(sim.async_client(), project=None, emit=listener) as client,
            client.messages.stream(model=MODEL, max_tokens=500, messages=ask()) as stream,
        ):
            await anext(aiter(stream))

    asyncio.run(leave())
    assert listener.events == [ReplyUnrecorded(STREAM_LEFT_REASON)]


def test_an_answer_that_only_the_caller_can_read_reaches_the_caller(
    sim: Simulator, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: object) -> None:
        raise ReplyBroken("a block of the year 2031")

    monkeypatch.setattr(anthropic_sdk, "read_messages_response", unreadable)
    with attach(sim.client(), project=None, emit=listener) as client:
        assert create(client, ask()).role == "assistant"
    assert listener.events == [ReplyUnrecorded("ReplyBroken: a block of the year 2031")]


def test_a_stream_that_is_not_what_the_api_describes_is_told() -> None:
    told: list[str] = []
    reader = StreamedReplyReader(MessagesAssembler(), told.append)
    assert reader.feed(b'data: {"type": "message_stop"}\n') is None
    reader.end()
    reader.end()
    assert len(told) == 1
    assert "ReplyBroken" in told[0]


def test_a_raw_response_is_what_the_sdk_gives(sim: Simulator) -> None:
    with attach(sim.client(), project=None) as client:
        raw = client.messages.with_raw_response.create(model=MODEL, max_tokens=50, messages=ask())
        assert raw.headers["request-id"]
        assert raw.parse().role == "assistant"


def test_the_bytes_of_a_plain_answer_may_be_streamed(sim: Simulator) -> None:
    attached = attach(sim.client(), project=None)
    with (
        attached as client,
        client.messages.with_streaming_response.create(
            model=MODEL, max_tokens=50, messages=ask()
        ) as response,
    ):
        assert b"assistant" in b"".join(response.iter_bytes())
        assert attached.sessions[0].spent[0].usage.requests == 1


def test_the_bytes_of_a_plain_answer_may_be_streamed_by_an_async_client(sim: Simulator) -> None:
    async def read() -> str:
        async with (
            sim.async_client() as own,
            attach(own, project=None) as client,
            client.messages.with_streaming_response.create(
                model=MODEL, max_tokens=50, messages=ask()
            ) as response,
        ):
            return (await response.parse()).role

    assert asyncio.run(read()) == "assistant"


def test_beta_calls_go_the_same_way(sim: Simulator) -> None:
    messages = ask("hello " * 500)
    with attach(sim.client(), project=None) as client:
        go_on(messages, create(client, messages))
        client.beta.messages.create(
            model=MODEL,
            max_tokens=500,
            messages=messages,
            system=SYSTEM,
            betas=["context-management-2025-06-27"],
        )
    assert reads(sim)[1] > 0


def test_other_calls_pass_untouched(sim: Simulator) -> None:
    with attach(sim.client(), project=None) as client:
        assert client.messages.count_tokens(model=MODEL, messages=ask()).input_tokens > 0
        assert client.models.list().data


def test_a_retry_sends_the_same_bytes(sim: Simulator, listener: Listener) -> None:
    messages = ask("hello " * 500)
    with attach(sim.client(), project=None, emit=listener) as client:
        go_on(messages, create(client, messages))
        sim.fail(StatusFault(status=529, retry_after=timedelta(0)))
        create(client, messages)
    assert [entry.status for entry in sim.ledger.entries] == [200, 529, 200]
    assert reads(sim)[-1] > 0
    assert listener.events == []


def test_a_large_result_is_stored_and_its_preview_sent(
    sim: Simulator, listener: Listener, tmp_path: Path
) -> None:
    sim.reset(
        lambda prompt: say(calls={"Bash": {"command": "ls"}}) if len(prompt.messages) == 1 else say("done")
    )
    messages: list[Any] = [*ask()]
    with attach(sim.client(), project=tmp_path, emit=listener, environ={"HOME": str(tmp_path)}) as client:
        answer = client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=[BASH])
        use = next(block for block in answer.content if block.type == "tool_use")
        messages += [
            {"role": "assistant", "content": answer.content},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "line\n" * 50_000}],
            },
        ]
        client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=[BASH])
    (event,) = listener.events
    assert isinstance(event, ResultSpilled)
    assert Path(event.path).read_text() == "line\n" * 50_000
    usage = sim.last.usage
    assert usage is not None
    assert usage.prompt < 3_000


BASH: Any = {
    "name": "Bash",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}


def test_a_message_changed_in_place_is_noticed(sim: Simulator, listener: Listener) -> None:
    messages = ask("hello " * 500)
    with attach(sim.client(), project=None, emit=listener) as client:
        go_on(messages, create(client, messages))
        create(client, messages)
        messages[0]["content"] = "other"
        messages.append({"role": "user", "content": "more"})
        create(client, messages)
    assert [type(event) for event in listener.events] == [HistoryChanged, CutRegistered]


def test_two_conversations_of_one_client_are_kept_apart(sim: Simulator, listener: Listener) -> None:
    one, other = ask("one " * 600), ask("other " * 600)
    attached = attach(sim.client(), project=None, emit=listener)
    with attached as client:
        for _ in range(3):
            go_on(one, create(client, one))
            go_on(other, create(client, other))
        assert len(attached.sessions) == 2
    assert listener.events == []
    assert all(read > 0 for read in reads(sim)[2:])


def test_markers_of_the_callers_own_may_move_and_are_never_too_many(
    sim: Simulator, listener: Listener
) -> None:
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "hello " * 500}]}]
    with attach(sim.client(), project=None, emit=listener) as client:
        for _ in range(4):
            for message in messages[::2]:
                message["content"][-1].pop("cache_control", None)
            messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
            answer = create(client, messages)
            messages.append({"role": "assistant", "content": answer.content})
            messages.append({"role": "user", "content": [{"type": "text", "text": "go on"}]})
    assert [entry.status for entry in sim.ledger.entries] == [200] * 4
    assert all(read > 0 for read in reads(sim)[1:])
    assert listener.events == []


def test_the_tool_runner_works_through_the_layers(sim: Simulator) -> None:
    def brain(prompt: Prompt) -> Reply:
        return say("14") if len(prompt.messages) > 1 else say(calls={"double": {"number": 7}})

    @beta_tool
    def double(number: int) -> str:
        """Doubles a number.

        Args:
            number: Which.
        """
        return str(2 * number)

    sim.reset(brain)
    with attach(sim.client(), project=None) as client:
        runner = client.beta.messages.tool_runner(
            model=MODEL, max_tokens=500, messages=[{"role": "user", "content": "double 7"}], tools=[double]
        )
        final = runner.until_done()
    assert [block.text for block in final.content if block.type == "text"] == ["14"]
    assert len(sim.ledger.entries) == 2


def test_an_async_client_goes_the_same_way(sim: Simulator) -> None:
    async def talk() -> None:
        messages = ask("hello " * 500)
        async with sim.async_client() as own, attach(own, project=None) as client:
            assert type(client) is anthropic.AsyncAnthropic
            answer = await client.messages.create(
                model=MODEL, max_tokens=500, messages=messages, system=SYSTEM
            )
            go_on(messages, answer)
            async with client.messages.stream(
                model=MODEL, max_tokens=500, messages=messages, system=SYSTEM
            ) as stream:
                go_on(messages, await stream.get_final_message())
            await client.messages.create(model=MODEL, max_tokens=500, messages=messages, system=SYSTEM)

    asyncio.run(talk())
    assert all(read > 0 for read in reads(sim)[1:])
    assert len(reads(sim)) == 3


def test_many_conversations_at_once_do_not_mix(sim: Simulator, listener: Listener) -> None:
    async def talk(client: anthropic.AsyncAnthropic, name: str) -> None:
        messages = ask(f"{name} " * 600)
        for _ in range(3):
            answer = await client.messages.create(
                model=MODEL, max_tokens=500, messages=messages, system=SYSTEM
            )
            go_on(messages, answer)

    async def story() -> None:
        async with sim.async_client() as own, attach(own, project=None, emit=listener) as client:
            await asyncio.gather(*(talk(client, f"number{number}") for number in range(6)))

    asyncio.run(story())
    assert listener.events == []
    assert sum(1 for read in reads(sim) if read > 0) >= 12


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_no_conversation_is_let_go_of_before_it_is_answered(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    monkeypatch.setattr(conversations, "MAX_CONVERSATIONS", 2)

    async def talk(client: anthropic.AsyncAnthropic, name: str, everyone: asyncio.Barrier) -> None:
        if not streams:
            await client.messages.create(model=MODEL, max_tokens=50, messages=ask(name))
            return
        async with client.messages.stream(model=MODEL, max_tokens=50, messages=ask(name)) as stream:
            await everyone.wait()
            assert (await stream.get_final_message()).role == "assistant"

    async def story() -> int:
        everyone = asyncio.Barrier(8)
        async with sim.async_client() as own:
            attached = attach(own, project=None)
            client = await attached.__aenter__()
            await asyncio.gather(*(talk(client, f"number {number}", everyone) for number in range(8)))
            await client.messages.create(model=MODEL, max_tokens=50, messages=ask("one more"))
            held = len(attached.sessions)
            await attached.__aexit__()
            return held

    assert asyncio.run(story()) == 2


def test_conversations_that_go_on_alike_are_told_apart_by_how_they_began(
    sim: Simulator, listener: Listener
) -> None:
    sim.reset(lambda _: say("the same answer"))
    short, long = ask("short " * 600), ask("long " * 600)
    attached = attach(sim.client(), project=None, emit=listener)
    with attached as client:
        go_on(short, create(client, short))
        for _ in range(2):
            go_on(long, create(client, long))
        go_on(short, create(client, short))
        assert len(attached.sessions) == 2
    assert listener.events == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"max_tokens": "many"}, "max_tokens is 'many'"),
        ({"tools": ["hammer"]}, r"tools\[0\] is 'hammer'"),
        ({"system": [{"type": "text", "text": "Hi."}, 5]}, r"system\[1\] is 5"),
        ({"tools": [{"name": "x", "input_schema": {"a": b"x"}}]}, r"tools\[0\]\.input_schema\.a: a bytes"),
        ({"metadata": {"user_id": float("nan")}}, r"metadata\.user_id: nan has no JSON form"),
    ],
)
def test_what_no_provider_takes_is_named_and_not_dropped(
    sim: Simulator, given: dict[str, Any], named: str
) -> None:
    with attach(sim.client(), project=None) as client:
        wanted: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "messages": ask(), **given}
        with pytest.raises((InputError, WireError), match=named):
            client.messages.create(**wanted)
    assert not sim.ledger.entries


def test_the_wrong_colour_is_refused_with_the_right_one_named(sim: Simulator) -> None:
    with pytest.raises(InputError, match="`async with attach"):
        attach(anthropic.AsyncAnthropic(api_key="none"), project=None).__enter__()

    async def enter() -> None:
        await attach(sim.client(), project=None).__aenter__()

    with pytest.raises(InputError, match="`with attach"):
        asyncio.run(enter())
