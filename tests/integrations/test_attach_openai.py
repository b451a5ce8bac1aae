"""The layers under a loop of the OpenAI SDK, over real HTTP: both APIs, both colours, streamed or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from sevenfold import MemoryDir, attach
from sevenfold.core.errors import ClientClosed, InputError
from sevenfold.core.events import Event, ModelUnknown, ReplyUnrecorded, RequestPassed, ResultSpilled
from sevenfold.core.messages import ToolResult
from sevenfold.integrations.reply_stream import STREAM_LEFT_REASON
from sevenfold.store.project.project import Project
from sevenfold.testing import DropFault, Prompt, Reply, Simulator, StatusFault, say
from tests.session.talk import Listener

MODEL = "gpt-5.5"
SYSTEM = "You help with a repository. " * 300
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}}


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator() as running:
        yield running


@dataclass
class KnownModels(Listener):
    """Keeps events, but for those that say that the model is not in our table."""

    def __call__(self, event: Event) -> None:
        if not isinstance(event, ModelUnknown):
            super().__call__(event)


@pytest.fixture
def listener() -> Listener:
    return KnownModels()


_made: list[OpenAI] = []


@pytest.fixture(autouse=True)
def _closing() -> Generator[None]:
    yield
    while _made:
        _made.pop().close()


def plain_client(sim: Simulator, **options: Any) -> OpenAI:
    http = openai.DefaultHttpxClient(trust_env=False, **options)
    _made.append(OpenAI(api_key="k", base_url=f"{sim.url}/v1", max_retries=2, http_client=http))
    return _made[-1]


def async_client(sim: Simulator) -> AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    return AsyncOpenAI(api_key="k", base_url=f"{sim.url}/v1", max_retries=2, http_client=http)


@dataclass
class ChatLoop:
    """A loop of Chat Completions, as people write it."""

    streams: bool = False
    listed: list[Any] = field(default_factory=lambda: [{"role": "system", "content": SYSTEM}])
    calls: list[str] = field(default_factory=list[str])

    def say(self, text: str) -> None:
        self.listed.append({"role": "user", "content": text})

    def answer_calls(self, text: str) -> None:
        self.listed += [{"role": "tool", "tool_call_id": name, "content": text} for name in self.calls]

    def fields(self) -> dict[str, Any]:
        tool = {"type": "function", "function": {"name": "Bash", "parameters": PARAMETERS}}
        return {"model": MODEL, "messages": self.listed, "tools": [tool]}

    def ask(self, client: OpenAI) -> str:
        if not self.streams:
            done = cast("Any", client.chat.completions).create(**self.fields())
            return self.take(done.choices[0].message)
        with client.chat.completions.stream(**self.fields()) as stream:
            for _ in stream:
                pass
            return self.take(stream.get_final_completion().choices[0].message)

    async def ask_async(self, client: AsyncOpenAI) -> str:
        if not self.streams:
            done = await cast("Any", client.chat.completions).create(**self.fields())
            return self.take(done.choices[0].message)
        async with client.chat.completions.stream(**self.fields()) as stream:
            async for _ in stream:
                pass
            return self.take((await stream.get_final_completion()).choices[0].message)

    def take(self, message: Any) -> str:
        self.listed.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        self.calls = [call.id for call in message.tool_calls or ()]
        return message.content or ""


@dataclass
class ResponsesLoop(ChatLoop):
    """The same with Responses."""

    listed: list[Any] = field(default_factory=list[Any])

    def answer_calls(self, text: str) -> None:
        self.listed += [
            {"type": "function_call_output", "call_id": name, "output": text} for name in self.calls
        ]

    def fields(self) -> dict[str, Any]:
        tool = {"type": "function", "name": "Bash", "parameters": PARAMETERS, "strict": False}
        return {
            "model": MODEL,
            "instructions": SYSTEM,
            "input": self.listed,
            "tools": [tool],
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "high"},
        }

    def ask(self, client: OpenAI) -> str:
        if not self.streams:
            return self.take(client.responses.create(**self.fields()))
        with client.responses.stream(**self.fields()) as stream:
            for _ in stream:
                pass
            return self.take(stream.get_final_response())

    async def ask_async(self, client: AsyncOpenAI) -> str:
        if not self.streams:
            return self.take(await client.responses.create(**self.fields()))
        async with client.responses.stream(**self.fields()) as stream:
            async for _ in stream:
                pass
            return self.take(await stream.get_final_response())

    def take(self, message: Any) -> str:
        self.listed += [_dumped(item) for item in message.output]
        self.calls = [item.call_id for item in message.output if item.type == "function_call"]
        return message.output_text


def _dumped(item: Any) -> dict[str, Any]:
    return item.model_dump(
        exclude_none=True, exclude={"parsed_arguments": True, "content": {"__all__": {"parsed"}}}
    )


@pytest.fixture(params=[ChatLoop, ResponsesLoop], ids=["chat", "responses"])
def make_loop(request: pytest.FixtureRequest) -> Callable[..., ChatLoop]:
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def loop(request: pytest.FixtureRequest, make_loop: Callable[..., ChatLoop]) -> ChatLoop:
    return make_loop(streams=bool(request.param))


def tooling(prompt: Prompt) -> Reply:
    """Thinks and calls a tool, then answers."""
    return say("done") if prompt.results else say("Look.", think="Hm.", calls={"Bash": {"command": "ls"}})


def run_turns(sim: Simulator, loop: ChatLoop, ask: Callable[[], str], result: str) -> None:
    sim.reset(tooling)
    for number in range(3):
        loop.say(f"step {number} " * 50)
        ask()
        loop.answer_calls(result)
        ask()


def test_every_request_reads_what_the_one_before_it_cached(
    sim: Simulator, listener: Listener, loop: ChatLoop
) -> None:
    attached = attach(plain_client(sim), project=None, emit=listener)
    with attached as client:
        assert type(client) is OpenAI
        run_turns(sim, loop, lambda: loop.ask(client), "a.py")
        (session,) = attached.sessions
        assert session.followed >= 9
        assert session.spent[0].usage.requests == 6
    assert listener.events == []
    assert [entry.status for entry in sim.ledger.entries] == [200] * 6
    assert all(entry.usage.read > 1_000 for entry in sim.ledger.entries[1:])
    assert [entry.difference for entry in sim.ledger.entries] == [None] * 6


def test_an_async_client_goes_the_same_way(sim: Simulator, listener: Listener, loop: ChatLoop) -> None:
    async def talk() -> None:
        sim.reset(tooling)
        async with async_client(sim) as own:
            attached = attach(own, project=None, emit=listener)
            async with attached as client:
                assert type(client) is AsyncOpenAI
                for number in range(3):
                    loop.say(f"step {number} " * 50)
                    await loop.ask_async(client)
                    loop.answer_calls("a.py")
                    await loop.ask_async(client)
                assert attached.sessions[0].spent[0].usage.requests == 6

    asyncio.run(talk())
    assert listener.events == []
    assert all(entry.usage.read > 1_000 for entry in sim.ledger.entries[1:])


def test_what_no_layer_touches_is_sent_as_the_caller_wrote_it(sim: Simulator, loop: ChatLoop) -> None:
    """Direct and attached, the model sees the same and the bill is the same."""
    seen: list[list[object]] = []
    for is_attached in (False, True):
        own, prompts = plain_client(sim), list[Prompt]()

        def brain(prompt: Prompt, prompts: list[Prompt] = prompts) -> Reply:
            prompts.append(prompt)
            return tooling(prompt)

        sim.reset(brain)
        fresh = type(loop)(streams=loop.streams)
        attached = attach(own, project=None) if is_attached else None
        client = attached.open() if attached else own
        for number in range(3):
            fresh.say(f"step {number} " * 50)
            fresh.ask(client)
            fresh.answer_calls("a.py")
            fresh.ask(client)
        seen.append([(prompt.system, prompt.tools, prompt.messages) for prompt in prompts])
        seen.append([entry.usage for entry in sim.ledger.entries])
        if attached:
            attached.close()
    assert seen[0] == seen[2]
    assert seen[1] == seen[3]


def test_a_large_result_is_stored_and_its_preview_sent_ever_after(
    sim: Simulator, listener: Listener, tmp_path: Path, loop: ChatLoop
) -> None:
    large = "line\n" * 50_000
    own = plain_client(sim)
    with attach(own, project=tmp_path, emit=listener, environ={"HOME": str(tmp_path)}) as client:
        run_turns(sim, loop, lambda: loop.ask(client), large)
    spilled = [event for event in listener.events if isinstance(event, ResultSpilled)]
    assert len(spilled) == 3
    assert Path(spilled[0].path).read_text() == large
    assert sim.last.usage.prompt < 12_000
    assert [entry.difference for entry in sim.ledger.entries] == [None] * 6
    assert all(entry.usage.read > 1_000 for entry in sim.ledger.entries[1:])


def test_a_full_window_is_compacted_and_the_loop_goes_on(
    sim: Simulator, listener: Listener, tmp_path: Path, make_loop: Callable[..., ChatLoop]
) -> None:
    loop = make_loop()
    settings = {"models": {MODEL: {"window_tokens": 80_000}}}
    asked: list[Prompt] = []

    def brain(prompt: Prompt) -> str:
        asked.append(prompt)
        return "a summary" if "summary" in prompt.last_text else "noted"

    sim.reset(brain)
    own = plain_client(sim)
    environ = {"HOME": str(tmp_path)}
    with attach(own, project=tmp_path, settings=settings, emit=listener, environ=environ) as client:
        for number in range(16):
            loop.say(f"fact {number}: " + "some words of a long story " * 500)
            assert loop.ask(client)
    assert "Compacted" in " ".join(listener.names())
    assert max(entry.usage.prompt for entry in sim.ledger.entries) < 80_000
    assert sim.ledger.entries[-1].status == 200


def test_a_prompt_that_the_provider_finds_too_long_is_compacted_and_sent_again(
    sim: Simulator, tmp_path: Path, make_loop: Callable[..., ChatLoop]
) -> None:
    loop = make_loop()
    sim.reset(lambda _: "noted")
    with attach(plain_client(sim), project=tmp_path, environ={"HOME": str(tmp_path)}) as client:
        for number in range(4):
            loop.say(f"fact {number}: " + "some words of a long story " * 500)
            loop.ask(client)
        told = (
            "This model's maximum context length is 9 tokens. However, your messages resulted in 10 tokens."
        )
        sim.fail(StatusFault(status=400, message=told, code="context_length_exceeded"))
        loop.say("and now?")
        assert loop.ask(client) == "noted"


def test_a_recalled_memory_is_appended_and_replayed(
    sim: Simulator, tmp_path: Path, make_loop: Callable[..., ChatLoop]
) -> None:
    environ = {"HOME": str(tmp_path)}
    with Project.open(tmp_path, home=tmp_path / ".sevenfold") as project, MemoryDir(project) as memory:
        memory.add("cobalt-release", "Always run the cobalt script before you tag a release.")
    seen: list[str] = []

    def brain(prompt: Prompt) -> str:
        seen.append(str(prompt.messages))
        return "noted"

    sim.reset(brain)
    loop = make_loop()
    with attach(plain_client(sim), project=tmp_path, environ=environ) as client:
        loop.say("Which script runs before we tag a release?")
        loop.ask(client)
        loop.say("Thanks.")
        loop.ask(client)
    assert "cobalt script before you tag" in seen[0]
    assert "cobalt script before you tag" in seen[1]
    assert sim.last.difference is None


def test_a_stream_shows_no_usage_that_was_not_asked_for_and_is_billed_all_the_same(sim: Simulator) -> None:
    attached = attach(plain_client(sim), project=None)
    with attached as client:
        fields: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
        chunks = list(client.chat.completions.create(**fields, stream=True))
        assert all(chunk.choices for chunk in chunks)
        assert attached.sessions[0].spent[0].usage.prompt > 0
        told = list(
            client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True})
        )
        assert told[-1].usage is not None
        assert told[-1].choices == []


def test_a_stream_left_half_way_or_broken_is_told(sim: Simulator, listener: Listener) -> None:
    sim.reset(lambda _: "words " * 200)
    with attach(plain_client(sim), project=None, emit=listener) as client:
        fields: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
        with client.chat.completions.create(**fields, stream=True) as stream:
            next(iter(stream))
        assert listener.events == [ReplyUnrecorded(STREAM_LEFT_REASON)]
        sim.fail(DropFault(after_events=2))
        with pytest.raises(openai.APIError):
            list(client.chat.completions.create(**fields, stream=True))
        done = cast("Any", client.chat.completions).create(**fields)
        assert done.choices


def test_a_retry_sends_the_same_and_errors_are_the_sdks(sim: Simulator, listener: Listener) -> None:
    loop = ChatLoop()
    with attach(plain_client(sim), project=None, emit=listener) as client:
        loop.say("hi")
        sim.fail(StatusFault(status=429, retry_after=timedelta(0)))
        loop.ask(client)
        loop.say("go on")
        sim.fail(StatusFault(status=400, message="nonsense"))
        with pytest.raises(openai.BadRequestError, match="nonsense"):
            client.chat.completions.create(**loop.fields())
    assert listener.events == []


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        ("responses", {"input": "hi", "previous_response_id": "resp_1"}, "kept by the provider"),
        ("responses", {"input": "hi", "background": True}, "in the background"),
        ("chat/completions", {"messages": []}, "no messages"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "x"}], "functions": [{"name": "f"}]},
            "older form",
        ),
    ],
)
def test_what_is_no_whole_conversation_passes_and_is_told(
    sim: Simulator, listener: Listener, path: str, fields: dict[str, Any], reason: str
) -> None:
    own = plain_client(sim)
    with attach(own, project=None, emit=listener) as client, suppress(openai.BadRequestError):
        client.post(f"/{path}", cast_to=object, body={"model": MODEL, **fields})
    (event,) = listener.events
    assert isinstance(event, RequestPassed)
    assert reason in event.reason


def test_fields_and_parts_that_we_do_not_know_reach_the_provider(sim: Simulator) -> None:
    bodies: list[Any] = []

    def keep(request: Any) -> None:
        bodies.append(json.loads(request.content))

    own = plain_client(sim, event_hooks={"request": [keep]})
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    messages: list[Any] = [
        {"role": "developer", "content": "Brief."},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "See"}, image]},
    ]
    with attach(own, project=None) as client:
        client.chat.completions.create(
            model=MODEL, messages=messages, seed=7, extra_body={"top_k": 3}, stream=True
        ).close()
    (body,) = bodies
    assert body["messages"] == messages
    assert (body["seed"], body["top_k"]) == (7, 3)


def test_repeated_call_ids_are_told_apart_and_sent_as_they_were(
    sim: Simulator, tmp_path: Path, listener: Listener
) -> None:
    prompts: list[Prompt] = []

    def brain(prompt: Prompt) -> str:
        prompts.append(prompt)
        return "ok"

    sim.reset(brain)
    messages: list[Any] = [{"role": "user", "content": "go"}]
    call = {"id": "0", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    for text in ("one\n" * 30_000, "two\n" * 30_000):
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "0", "content": text},
        ]
    own = plain_client(sim)
    with attach(own, project=tmp_path, environ={"HOME": str(tmp_path)}, emit=listener) as client:
        client.chat.completions.create(model=MODEL, messages=messages)
    results = [
        block for message in prompts[0].messages for block in message.blocks if isinstance(block, ToolResult)
    ]
    assert [result.tool_use_id for result in results] == ["0", "0"]
    assert "one" in str(results[0].content)
    assert "two" in str(results[1].content)
    spilled = [event for event in listener.events if isinstance(event, ResultSpilled)]
    assert len({event.path for event in spilled}) == 2


def test_an_attached_client_is_used_in_its_colour_until_it_is_closed(sim: Simulator) -> None:
    attached: Any = attach(plain_client(sim), project=None)
    attached.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hi"}])
    attached.close()
    with pytest.raises(ClientClosed):
        _ = attached.chat

    async def enter() -> None:
        async with attach(plain_client(sim), project=None):
            pass

    with pytest.raises(InputError, match="`with attach"):
        asyncio.run(enter())

    async def enter_plainly() -> None:
        async with async_client(sim) as own:
            with attach(own, project=None):
                pass

    with pytest.raises(InputError, match="`async with attach"):
        asyncio.run(enter_plainly())


def test_many_conversations_at_once_do_not_mix(sim: Simulator, make_loop: Callable[..., ChatLoop]) -> None:
    async def talk(client: AsyncOpenAI, name: str) -> str:
        loop = make_loop()
        for _ in range(3):
            loop.say(f"{name} " * 200)
            await loop.ask_async(client)
        return str(loop.listed)

    async def story() -> list[str]:
        async with async_client(sim) as own:
            attached = attach(own, project=None)
            async with attached as client:
                talks: list[Awaitable[str]] = [talk(client, name) for name in ("owl", "bee", "cat")]
                done = list(await asyncio.gather(*talks))
                assert len(attached.sessions) == 3
                return done

    sim.reset(lambda prompt: prompt.last_text[:3])
    for name, said in zip(("owl", "bee", "cat"), asyncio.run(story()), strict=True):
        assert {other for other in ("owl", "bee", "cat") if other in said} == {name}
