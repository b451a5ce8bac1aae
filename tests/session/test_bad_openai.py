"""Histories that are wrong, on their way to servers that speak OpenAI's APIs: those take the view too."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Literal, TypeAlias

import openai
import pytest

from sevenfold.core.errors import WireError
from sevenfold.core.events import HistoryRepaired
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import Block, Message, Opaque, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import RequestParams
from sevenfold.core.system import LoopThread
from sevenfold.providers.openai import ChatProvider, ResponsesProvider
from sevenfold.providers.provider import Provider
from sevenfold.session.blocking import BlockingSession
from sevenfold.testing import Simulator
from tests.session.talk import Listener

Api: TypeAlias = Literal["chat", "responses"]

FRAME = RequestParams(model="gpt-5.6", max_tokens=1_000)
USE = ToolUse(ToolUseId("t1"), "look", EMPTY_OBJECT)
OTHER = ToolUse(ToolUseId("t2"), "look", EMPTY_OBJECT)
UNTYPED = Opaque(JsonObject({"text": "of no type"}))
GO = Message("user", "go")

pytestmark = pytest.mark.parametrize("api", ["chat", "responses"])


@pytest.fixture(scope="module")
def sim() -> Generator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def provider(sim: Simulator, api: Api) -> Generator[Provider]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(api_key="k", base_url=f"{sim.url}/v1", max_retries=0, http_client=http) as client:
        yield ChatProvider(client) if api == "chat" else ResponsesProvider(client)


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.stop()


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def assistant(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def answer(content: str | tuple[Block, ...]) -> ToolResult:
    return ToolResult(USE.id, content)


BAD: dict[str, tuple[str, list[Message]]] = {
    "a result of no call": ("stray result", [GO, user(answer("42 degrees"))]),
    "a call without result": ("lost result", [GO, assistant(USE), assistant(Text("and")), GO]),
    "calls in two messages": ("lost result", [GO, assistant(USE), assistant(OTHER), user(answer("it"))]),
    "half a character": ("text", [user(Text("half \ud83d of it"))]),
    "a block of no type": ("block", [user(Text("go"), UNTYPED)]),
    "one in a result": ("block", [GO, assistant(USE), user(answer((UNTYPED, Thinking("Hm.", "s"))))]),
    "the same id twice": ("same id", [GO, *(assistant(USE), user(answer("it"))) * 2]),
    "nobody asked": ("opening", [assistant(Text("Hello.")), GO]),
}


@pytest.mark.parametrize("wrong", BAD)
def test_what_was_mended_is_taken(provider: Provider, loop: LoopThread, wrong: str) -> None:
    repair, history = BAD[wrong]
    listener = Listener()
    with BlockingSession.open(FRAME, project=None, emit=listener) as session:
        for message in history:
            session.history.append(message)
        view = session.prepare()
    told = [event.repair for event in listener.events if isinstance(event, HistoryRepaired)]
    assert told == [repair]
    assert loop.run(provider.send(view.request)).message.blocks


def test_what_is_no_message_is_named_before_anything_is_sent(sim: Simulator, provider: Provider) -> None:
    asked = len(sim.ledger.entries)
    wrong = [{"role": "user", "content": [{"type": "text", "text": b"x"}]}]
    named = pytest.raises(WireError, match=r"messages\[0\]: content\[0\]\.text: a bytes")
    with BlockingSession.open(FRAME, project=None, provider=provider) as session, named:
        session.prepare(wrong)
    assert len(sim.ledger.entries) == asked
