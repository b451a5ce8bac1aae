"""The guard over all tests finds a prefix that was moved, in a view, in a request and on the wire."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.core.cache.prompt_cache import PromptDifference
from sevenfold.core.messages import Image, Message
from sevenfold.core.requests import Breakpoint, Cut, ModelRequest, RequestParams
from sevenfold.layers.conversation import Conversation
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.anthropic.wire import MessagesBodyWriter
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session import Session
from sevenfold.testing import Simulator
from tests.contracts.source_tree import ROOT, run
from tests.prefix import PrefixGuard, is_announced, provider_classes
from tests.providers.asking import PROSE, assistant, frozen, tool, user

pytestmark = pytest.mark.moves_prefix(reason="plants the violations that the guard must find")

FRAME = RequestParams(model="claude-opus-5", max_tokens=1_000, system="Be brief.", tools=(tool("look"),))
FIRST, YES, NO, NEXT = user(PROSE), assistant("Yes."), assistant("No."), user("And?")
PICTURE = Image(frozen({"type": "base64", "media_type": "image/png", "data": "aGk="}))


def request(
    *messages: Message, who: str = "main", frame: RequestParams = FRAME, marked: int = 0
) -> ModelRequest:
    return ModelRequest(frame, messages, (Breakpoint("messages", marked),), who)


def moved(*requests: ModelRequest) -> list[str]:
    """What the guard says of requests that go through one provider."""
    guard = PrefixGuard()

    async def send_all() -> None:
        provider = ScriptedProvider([make_response("Yes.") for _ in requests])
        for item in requests:
            await provider.send(item)

    with guard.installed():
        asyncio.run(send_all())
    return guard.violations()


LONG = request(FIRST, YES, NEXT, assistant("So."), user("More?"))
FINE: dict[str, Sequence[ModelRequest]] = {
    "going on": (request(FIRST), request(FIRST, YES, NEXT), LONG),
    "again": (LONG, LONG),
    "back and on another way": (LONG, request(FIRST), request(FIRST, NO, NEXT)),
    "another conversation": (LONG, request(user("Else.")), request(user("Else."), YES, NEXT)),
    "a fork": (LONG, request(*LONG.messages, user("Sum up."), who="summary")),
    "parallel forks": (LONG, *(request(*LONG.messages, user(at), who="notes") for at in "ab")),
    "a fork while the other went on": (
        request(FIRST),
        LONG,
        request(FIRST, YES, user("Sum up."), who="summary"),
        request(FIRST, YES, user("Sum up."), YES, NEXT, who="summary"),
    ),
    "the first picture": (request(FIRST), request(FIRST, YES, Message("user", (PICTURE,)))),
    "a side call that reads nothing": (
        LONG,
        replace(request(FIRST, user("Sum up."), frame=replace(FRAME, tools=()), who="s"), breakpoints=()),
    ),
}
MOVED: dict[str, Sequence[ModelRequest]] = {
    "a message": (request(FIRST, YES, NEXT), request(FIRST, NO, NEXT, YES, NEXT)),
    "the first message": (LONG, request(user("Hm."), *LONG.messages[1:])),
    "a message left out": (LONG, request(FIRST, NEXT, assistant("So."), user("More?"))),
    "the tools": (request(FIRST), request(FIRST, YES, NEXT, frame=replace(FRAME, tools=()))),
    "the system prompt": (request(FIRST), request(FIRST, frame=replace(FRAME, system="Be long."))),
    "the model": (request(FIRST), request(FIRST, frame=replace(FRAME, model="claude-opus-4-8"))),
    "a setting": (
        request(FIRST),
        request(FIRST, frame=replace(FRAME, params=frozen({"tool_choice": {"type": "none"}}))),
    ),
    "a fork with other tools": (
        LONG,
        request(*LONG.messages, user("Sum up."), who="summary", frame=replace(FRAME, tools=())),
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_requests_that_only_go_on_pass(name: str) -> None:
    assert moved(*FINE[name]) == []


@pytest.mark.parametrize("name", MOVED)
def test_a_request_that_moves_the_prefix_is_found(name: str) -> None:
    (told,) = moved(*MOVED[name])
    assert "moved the prefix" in told


def played(play: Callable[[Session], Coroutine[None, None, None]]) -> list[str]:
    """What the guard says of a session."""
    guard = PrefixGuard()

    async def run_session() -> None:
        async with await Session.open(FRAME, project=None) as session:
            session.history.append(FIRST)
            await session.prepare()
            await play(session)

    with guard.installed():
        asyncio.run(run_session())
    return guard.violations()


def conversation_of(session: Session) -> Conversation:
    return session._conversation  # pyright: ignore[reportPrivateUsage]


def test_a_view_that_was_changed_behind_the_engines_back_is_found() -> None:
    async def change(session: Session) -> None:
        conversation = conversation_of(session)
        conversation.shown.swap(0, user("Else."), 1.0)
        session.history.append(user("More?"))
        await session.prepare()

    (told,) = played(change)
    assert told.startswith("a view of 'main' moved the prefix at messages.0.content.0")


def test_a_view_that_was_cut_with_a_notice_passes() -> None:
    async def cut(session: Session) -> None:
        conversation = conversation_of(session)
        conversation.shown.swap(0, user("Else."), 1.0)
        conversation.announce(Cut(2, "cleared", 0))
        session.history.append(user("More?"))
        await session.prepare()
        session.history.append(user("And more?"))
        await session.prepare()

    assert played(cut) == []


def test_a_cut_after_the_change_explains_nothing() -> None:
    async def cut(session: Session) -> None:
        conversation = conversation_of(session)
        session.history.append(user("More?"))
        await session.prepare()
        conversation.shown.swap(0, user("Else."), 1.0)
        conversation.announce(Cut(2, "cleared", 1))
        session.history.append(user("And more?"))
        await session.prepare()

    assert len(played(cut)) == 1


def test_a_body_that_differs_on_the_wire_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = PrefixGuard()
    write = MessagesBodyWriter.write
    bodies: list[bytes] = []

    def shuffled(self: MessagesBodyWriter, request: ModelRequest, *, streams: bool) -> bytes:
        body = write(self, request, streams=streams)
        bodies.append(body.replace(b"Be brief.", b"Be brief!") if bodies else body)
        return bodies[-1]

    async def send_all(sim: Simulator) -> None:
        async with sim.async_client(max_retries=0) as client:
            provider = AnthropicProvider(client)
            await provider.send(request(FIRST))
            await provider.send(request(FIRST, YES, NEXT))

    monkeypatch.setattr(MessagesBodyWriter, "write", shuffled)
    with guard.installed(), Simulator() as sim:
        asyncio.run(send_all(sim))
    (told,) = guard.violations()
    assert told.startswith("a body on the wire of 'main' moved the prefix at system.0")


def test_every_provider_is_watched() -> None:
    names = {provider.__name__ for provider in provider_classes()}
    assert {"AnthropicProvider", "ScriptedProvider"} <= names
    assert "Provider" not in names


def test_no_cut_explains_nothing() -> None:
    guard = PrefixGuard()
    assert guard.violations() == []
    found = PromptDifference("tools", "tools.0", 0, 0)
    assert not is_announced(found, ())
    assert not is_announced(found, (Cut(4, "cut", 0),))
    assert is_announced(found, (Cut(4, "cut", -1),))


PLANTED = """
import asyncio
import pytest
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.providers.scripted import ScriptedProvider, make_response


def send_two():
    provider = ScriptedProvider([make_response("Yes."), make_response("Yes.")])
    frame = RequestParams(model="claude-opus-5", max_tokens=100)
    said = (Message("user", "One."), Message("user", "Two."))
    for first in (said[0], Message("user", "Changed.")):
        asyncio.run(provider.send(ModelRequest(frame, (first, said[1]))))


def test_moving():
    send_two()


@pytest.mark.moves_prefix(reason="on purpose")
def test_moving_on_purpose():
    send_two()


@pytest.mark.moves_prefix
def test_moving_without_a_reason():
    send_two()


def test_failing_for_another_reason():
    send_two()
    assert False, "its own"
"""


@pytest.mark.story
def test_a_planted_test_that_moves_the_prefix_fails(tmp_path: Path) -> None:
    planted = tmp_path / "test_planted.py"
    planted.write_text(PLANTED, encoding="utf-8")
    flags = ("-p", "tests.prefix", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "-q", "-n0")
    done = run([sys.executable, "-m", "pytest", *flags, f"--rootdir={tmp_path}", str(planted)])
    assert done.returncode == 1
    assert "3 failed, 1 passed" in done.stdout
    assert "a request of 'main' moved the prefix at messages.0.content.0 (message)" in done.stdout
    assert "moves_prefix needs a reason" in done.stdout
    assert "its own" in done.stdout
