"""What the provider sees of random sessions: each change is a registered cut, and a restart changes nothing.

A session goes through rounds, pauses, other models, edits of the caller's own, compactions, rewinds, forks
and restarts. What a request makes the provider see is worked out here, apart from the engine.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.core.events import ProviderClearingEnded, ResultsCleared
from sevenfold.core.json import JsonObject, freeze, write_json
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId, write_message
from sevenfold.core.models import Model
from sevenfold.core.requests import (
    WHOLE_PROMPT,
    Capabilities,
    Cut,
    Dialect,
    ModelRequest,
    ModelResponse,
    PreparedRequest,
    RequestParams,
    choose_capabilities,
)
from sevenfold.layers.compaction.job import Part
from sevenfold.providers.provider import OnDelta
from sevenfold.session import Session, pipeline
from sevenfold.simulator.simulator_state import VirtualClock
from sevenfold.store.transcript.transcript import SessionId
from tests.examples import up_to
from tests.session.talk import Listener, reply

SIGNED, UNSIGNED, ELSEWHERE = "claude-opus-5-5", "claude-opus-4-5", "gpt-5.2"
ALSO_SIGNED = "claude-sonnet-5-5"
MODELS = (SIGNED, ALSO_SIGNED, UNSIGNED, ELSEWHERE)
TOOLS = ("Read", "Bash", "deploy")
OWN_EDIT = freeze(
    {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 900_000},
            }
        ]
    }
)


class Everywhere:
    """Two providers: one of them cannot clear. It answers nothing: replies are made by hand."""

    dialect: Dialect = "anthropic"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, "openai" if model.name == ELSEWHERE else "anthropic")

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        return reply(Message("assistant", "A summary of what was said."), 10_000)

    async def close(self) -> None: ...


def see(request: ModelRequest) -> list[bytes]:
    """What stands in the prompt, message by message, once the provider has made its edits."""
    management = request.frame.params.get("context_management")
    edits = management["edits"] if isinstance(management, JsonObject) else ()
    assert isinstance(edits, tuple)
    gone: set[str] = set()
    blocks = [block for message in request.messages for block in message.blocks]
    names = {block.id: block.name for block in blocks if isinstance(block, ToolUse)}
    uses = [block.tool_use_id for block in blocks if isinstance(block, ToolResult)]
    for edit in edits:
        assert isinstance(edit, JsonObject)
        trigger, keep, spared = edit["trigger"], edit.get("keep"), edit.get("exclude_tools", ())
        assert isinstance(trigger, JsonObject)
        assert isinstance(spared, tuple)
        if trigger["type"] == "input_tokens" or len(uses) <= 1:
            continue
        assert isinstance(keep, JsonObject)
        count = keep["value"]
        assert isinstance(count, int)
        gone |= {use for use in uses[: len(uses) - count] if names[use] not in spared}
    return [write_json(freeze(write_message(_cleared(message, gone)))) for message in request.messages]


def _cleared(message: Message, gone: set[str]) -> Message:
    if not any(isinstance(block, ToolResult) and block.tool_use_id in gone for block in message.blocks):
        return message
    blocks = (
        replace(block, content="(cleared)")
        if isinstance(block, ToolResult) and block.tool_use_id in gone
        else block
        for block in message.blocks
    )
    return Message(message.role, tuple(blocks))


def find_change(before: Sequence[bytes], after: Sequence[bytes]) -> int | None:
    """The first message that is not as it was; None: what was there before only goes on."""
    for place, one in enumerate(before):
        if place >= len(after) or after[place] != one:
            return place
    return None


@dataclass
class Life:
    """One session over all its processes."""

    home: Path
    frame: RequestParams = field(
        default_factory=lambda: RequestParams(model=SIGNED, max_tokens=1_000, system="You read.")
    )
    clock: VirtualClock = field(default_factory=VirtualClock)
    heard: Listener = field(default_factory=Listener)
    said: list[Message] = field(default_factory=lambda: [Message("user", "Begin.")])
    seen: list[bytes] = field(default_factory=list[bytes])
    last: PreparedRequest | None = None
    prepared: datetime | None = None
    cuts: list[Cut] = field(default_factory=list[Cut])
    """Of layer 2."""
    restarts: bool = True
    has_other_models: bool = False
    sent: list[list[bytes]] = field(default_factory=list[list[bytes]])
    """What each request showed, unless it showed what the last one did."""
    _numbers: int = 0

    async def open(self, session: str | None = None) -> Session:
        return await Session.open(
            self.frame,
            project=self.home,
            session=session,
            provider=Everywhere(),
            environ={"HOME": str(self.home)},
            clock=self.clock,
            emit=self.heard,
            settings={
                "recall": {"enabled": False},
                "context": {"enabled": False},
                "models": {model: {"window_tokens": 900_000} for model in MODELS},
            },
        )

    async def send(self, session: Session) -> ModelRequest:
        """Prepare a request, and compare what it shows with what the last one showed."""
        heard = len(self.heard.events)
        view = await session.prepare(self.said, frame=self.frame)
        if view is self.last:
            return view.request
        now, self.last, self.prepared = see(view.request), view, self.clock.now()
        change = find_change(self.seen, now)
        is_first = not self.seen
        own = [cut for cut in view.cuts if cut.layer == 2]
        told = [
            event
            for event in self.heard.events[heard:]
            if isinstance(event, (ResultsCleared, ProviderClearingEnded))
        ]
        assert len(own) == len(told)
        assert all(cut.reason for cut in own)
        firsts = [cut.first for cut in view.cuts if cut.first != WHOLE_PROMPT]
        if change is not None:
            assert firsts
            assert min(firsts) <= change
        else:
            assert is_first or not own
        self.cuts += own
        self.seen = now
        if now not in self.sent[-1:]:
            self.sent.append(now)
        return view.request

    async def answer(self, session: Session, calls: int, tool: str, lines: int) -> None:
        """A round: the model calls tools, and they answer."""
        request = await self.send(session)
        self._numbers += 1
        uses = tuple(
            ToolUse(ToolUseId(f"t{self._numbers}-{at}"), tool, JsonObject({"file_path": f"/{at}.py"}))
            for at in range(calls)
        )
        thought = (Thinking("hm", f"signed {self._numbers}"),) if self.frame.model == SIGNED else ()
        size = 3_000 + sum(map(len, see(request))) // 4
        said = reply(Message("assistant", (*thought, Text("I look."), *uses)), self._numbers, size)
        await session.record(said)
        self.said.append(said.message)
        if uses:
            text = f"{self._numbers}: a line of output\n" * lines
            self.said.append(Message("user", tuple(ToolResult(use.id, text) for use in uses)))
        else:
            self.said.append(Message("user", "Go on."))

    async def restart(self, session: Session) -> Session:
        """The restored session goes on from the very bytes that were sent last."""
        sent = await self.send(session)
        await session.close()
        again = await self.open(session.id)
        restored = again.parent
        assert restored.frame == sent.frame
        assert tuple(restored.messages) == tuple(sent.messages)
        if self.prepared == self.clock.now() and not self.has_other_models:
            # Later the cache may be cold, and then a cut is free. After a change of models estimates differ.
            followed = await again.prepare(self.said, frame=self.frame)
            assert tuple(followed.request.messages) == tuple(sent.messages)
            assert not followed.cuts
            self.last = followed
        return again

    async def renew(self, session: Session, kind: str) -> Session:
        if self.last is None:
            return session
        if kind == "restart":
            return await self.restart(session)
        if kind == "send":
            await self.send(session)
        elif self.restarts:
            # The process ends after an answer, whatever no request has carried yet.
            await session.close()
            self.seen = []
            session = await self.open(session.id)
        return session

    async def rewind(self, share: float) -> None:
        """The caller goes back to some message of the user's, and says something else after it."""
        places = [at for at, message in enumerate(self.said) if message.role == "user"]
        del self.said[places[int(share * (len(places) - 1))] + 1 :]
        self.said.append(Message("user", f"Rather do this, after {self._numbers}."))

    async def compact(self, session: Session, share: float | None) -> None:
        messages = len(session.parent.messages)
        part = Part("from", max(1, int(share * messages))) if share is not None else None
        with suppress(InputError):  # there may be nothing to compact yet
            await session.compact(part=part)


Step = tuple[object, ...]


async def play(home: Path, steps: Sequence[Step], *, restarts: bool = True) -> Life:
    life = Life(home, restarts=restarts)
    session = await life.open()
    try:
        for step in steps:
            life.clock.advance(timedelta(seconds=10))
            match step:
                case ("round", int(calls), str(tool), int(lines)):
                    await life.answer(session, calls, tool, lines)
                case ("pause",):
                    life.clock.advance(timedelta(hours=2))
                case ("model", str(model)):
                    life.has_other_models = True
                    life.frame = replace(life.frame, model=model)
                case ("edit", bool(is_own)):
                    own = {"context_management": OWN_EDIT} if is_own else {}
                    life.frame = replace(life.frame, params=JsonObject(own))
                case ("rewind", float(share)):
                    await life.rewind(share)
                case ("compact", share) if share is None or isinstance(share, float):
                    await life.compact(session, share)
                case ("send" | "reopen" | "restart",):
                    session = await life.renew(session, str(step[0]))
                case _:
                    raise AssertionError(step)
        await life.send(session)
        assert see(session.parent) == life.seen
    finally:
        await session.close()
    return life


def live(*steps: Step) -> Life:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(play(Path(folder), steps))


def live_twice(*steps: Step) -> tuple[Life, Life]:
    """The same session with and without its restarts, under one name: markers have it."""
    lives: list[Life] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(pipeline, "new_session_id", lambda: SessionId("a" * 32)),
    ):
        for restarts in (True, False):
            home = Path(folder, "home")
            home.mkdir()
            lives.append(asyncio.run(play(home, steps, restarts=restarts)))
            shutil.rmtree(home)
    return lives[0], lives[1]


ROUND: Step = ("round", 1, "Read", 400)
COLD: tuple[Step, ...] = (*(ROUND,) * 8, ("pause",))
"""After it the provider is told to clear."""

ROUNDS = st.tuples(
    st.just("round"), st.integers(0, 3), st.sampled_from(TOOLS), st.sampled_from((1, 60, 400, 900))
)
SHARES = st.floats(0, 1)
STEPS = st.one_of(
    ROUNDS,
    ROUNDS,
    ROUNDS,
    st.just(("pause",)),
    st.tuples(st.just("model"), st.sampled_from(MODELS)),
    st.tuples(st.just("edit"), st.booleans()),
    st.tuples(st.just("rewind"), SHARES),
    st.tuples(st.just("compact"), st.none() | SHARES),
    st.just(("restart",)),
    st.just(("reopen",)),
)
ONE_MODEL = STEPS.filter(lambda step: step[0] not in ("model", "restart"))
"""A bill of one model says little of the tokens of another: estimates differ after a change of models."""


@pytest.mark.moves_prefix(reason="models, histories and edits change, and cuts are compared here")
@settings(max_examples=up_to(50))
@given(steps=st.lists(STEPS, max_size=25).map(lambda steps: [*COLD, *steps]))
@example(steps=[*COLD, ROUND, ("model", ELSEWHERE), ROUND, ("restart",), ROUND])
@example(steps=[*COLD, ("model", UNSIGNED), ("restart",)])
@example(steps=[*COLD, ROUND, ("compact", 0.9), ROUND, ("restart",), ROUND])
@example(steps=[*COLD, ROUND, ("rewind", 0.15), ROUND, ("restart",), ROUND])
@example(steps=[*COLD, ("compact", None), ROUND, ("rewind", 0.3), ROUND, ("restart",), ROUND])
@example(steps=[*COLD, ("model", ALSO_SIGNED), ("compact", None), ("restart",)])
def test_each_change_of_what_the_provider_sees_is_one_cut_and_a_restart_changes_nothing(
    steps: list[Step],
) -> None:
    live(*steps)


def with_sends(steps: Sequence[Step]) -> list[Step]:
    """The same steps, where a compaction has all that was said: a session that runs on has not taken its last
    answer before the caller sends it back."""
    return [one for step in steps for one in ((("send",), step) if step[0] == "compact" else (step,))]


@pytest.mark.moves_prefix(reason="models, histories and edits change, and cuts are compared here")
@settings(max_examples=up_to(50))
@given(steps=st.lists(ONE_MODEL, max_size=25).map(with_sends).map(lambda steps: [*COLD, *steps]))
@example(steps=with_sends([*(ROUND,) * 8, ("compact", 0.8), ("reopen",), ROUND, ("compact", None), ROUND]))
@example(steps=[*COLD, ("rewind", 0.875), ("reopen",)])
@example(steps=[*(ROUND,) * 8, ("send",), ("pause",), ROUND, ("reopen",), ROUND])
def test_a_restored_session_clears_and_counts_as_the_one_that_ran_on_does(steps: list[Step]) -> None:
    restored, ran_on = live_twice(*steps)
    assert [(cut.reason, cut.detail) for cut in restored.cuts] == [
        (cut.reason, cut.detail) for cut in ran_on.cuts
    ]
    assert restored.sent == ran_on.sent
    assert restored.last is not None
    assert ran_on.last is not None
    assert restored.last.tokens == ran_on.last.tokens


def ended(life: Life) -> list[ProviderClearingEnded]:
    return [event for event in life.heard.events if isinstance(event, ProviderClearingEnded)]


@pytest.mark.moves_prefix(reason="the model changes")
@pytest.mark.parametrize("model", [UNSIGNED, ELSEWHERE])
def test_what_the_provider_cleared_is_cleared_here_on_another_model(model: str) -> None:
    life = live(*COLD, ROUND, ("model", model), ROUND, ("restart",))
    (event,) = ended(life)
    assert (event.cleared, event.restored, event.tokens) == (6, 0, 0)
    cut, *later = (cut for cut in life.cuts if "cleared" in cut.detail)
    assert (cut.first, cut.detail["depth"]) == (2, 0)
    assert model in cut.reason
    assert all("the cache is cold" in other.reason for other in later)
    assert sum(b"output cleared, kept in" in message for message in life.seen) >= 6


def cold_cuts(life: Life) -> int:
    return sum("the cache is cold" in cut.reason for cut in life.cuts)


@pytest.mark.moves_prefix(reason="the model changes")
@pytest.mark.parametrize("first", [SIGNED, UNSIGNED])
@pytest.mark.parametrize("other", [ALSO_SIGNED, "claude-opus-4-6", ELSEWHERE])
def test_old_results_go_with_a_change_of_models_since_nothing_is_cached_there(first: str, other: str) -> None:
    rounds = [("model", first), *(ROUND,) * 9]
    assert cold_cuts(live(*rounds, ROUND, ("restart",))) == 0
    assert cold_cuts(live(*rounds, ("model", other), ROUND, ("restart",))) == 1


@pytest.mark.moves_prefix(reason="the models change")
def test_a_model_that_was_asked_a_moment_ago_still_has_its_cache() -> None:
    rounds = [*(ROUND,) * 9, ("model", ALSO_SIGNED), ROUND]
    life = live(*rounds, *(ROUND,) * 4, ("model", SIGNED), ("send",))
    assert cold_cuts(life) == 1
    life = live(*rounds, *(ROUND,) * 4, ("model", SIGNED), ("pause",), ("send",))
    assert cold_cuts(life) == 2


@pytest.mark.moves_prefix(reason="the caller starts edits of its own")
def test_a_caller_with_edits_of_its_own_gets_all_results_back_with_a_cut() -> None:
    life = live(*COLD, ROUND, ("edit", True), ROUND, ("restart",), ("edit", False), ROUND)
    (event,) = ended(life)
    assert (event.cleared, event.restored) == (0, 6)
    assert event.tokens > 10_000
    (cut,) = (cut for cut in life.cuts if cut.detail["depth"] == 0)
    assert (cut.first, cut.reason.startswith("the caller sends edits")) == (2, True)


@pytest.mark.moves_prefix(reason="the caller goes back")
def test_a_single_use_that_is_left_is_whole_again_with_a_cut() -> None:
    life = live(*COLD, ROUND, ("rewind", 0.12), ROUND, ("restart",), ROUND)
    (event,) = ended(life)
    assert (event.cleared, event.restored) == (0, 1)


@pytest.mark.moves_prefix(reason="the caller goes back")
def test_a_caller_who_went_back_before_a_compaction_while_the_session_was_closed_is_heard() -> None:
    async def story(home: Path) -> None:
        life = Life(home)
        session = await life.open()
        for _ in range(6):
            await life.answer(session, 1, "Read", 20)
        await life.compact(session, None)
        await life.send(session)
        await session.close()
        life.said[3:] = [Message("user", "Do something else.")]
        session = await life.open(session.id)
        sent = await life.send(session)
        assert sent.messages[-1] == Message("user", "Do something else.")
        await life.answer(session, 1, "Read", 20)
        session = await life.restart(session)
        await session.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder)))


def test_a_fork_clears_what_the_conversation_clears_however_many_results_have_come_since() -> None:
    async def story(home: Path) -> None:
        life = Life(home)
        session = await life.open()
        session.history.append(Message("user", "Begin."))
        sent: list[bytes] = []
        for number in range(12):
            if number == 9:
                life.clock.advance(timedelta(hours=2))
            sent = see((await session.prepare()).request)
            use = ToolUse(ToolUseId(f"t{number}"), "Read", JsonObject({"file_path": f"/{number}.py"}))
            await session.record(reply(Message("assistant", (Text("I look."), use)), number, 9_000))
            session.history.append(Message("user", (ToolResult(use.id, "a line of output\n" * 400),)))
            await session.turn_ended()
            assert find_change(sent, see(session.parent)) is None
        assert any(b"(cleared)" in message for message in sent)
        await session.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder)))
