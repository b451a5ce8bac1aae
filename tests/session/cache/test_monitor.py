"""Breaks of the prefix are found before a request is sent, and misses when its bill comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from sevenfold.core.cache.prompt_cache import PromptDifference
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.events import CacheMissed, CutRegistered, Event, PrefixBroken
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import (
    Compaction,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.requests import WHOLE_PROMPT, Breakpoint, Cut, ModelRequest, ModelResponse, RequestParams
from sevenfold.core.usage import Iteration, Usage
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.session.cache.monitor import CacheMonitor, CacheOutcome
from sevenfold.testing import Simulator
from tests.core.cache_cases import MINUTE, START
from tests.providers.asking import PROSE, assistant, frozen, tool, user

MODEL = "claude-opus-5"
FRAME = RequestParams(
    model=MODEL, max_tokens=1_000, system="Be brief. " * 30, tools=(tool("look"), tool("walk"))
)
SAID = (user(PROSE), assistant("Yes."), user("And?"))
PICTURE = Image(frozen({"type": "base64", "media_type": "image/png", "data": "aGk="}))
NOTHING = ModelResponse(message=Message("assistant", ()), usage=Usage(), usage_wire=EMPTY_OBJECT)


@dataclass
class MonitorSetup:
    """A watch over one session whose requests are a minute apart."""

    sim: Simulator | None = None
    events: list[Event] = field(default_factory=list[Event])
    answered: dict[str, str] = field(default_factory=dict[str, str])
    """The id of the last answer, by who asked."""

    def __post_init__(self) -> None:
        self.watch = CacheMonitor(self.events.append)
        self.now = START

    def check(
        self, *messages: Message, frame: RequestParams = FRAME, who: str = "main", cuts: Sequence[Cut] = ()
    ) -> PromptDifference | None:
        self.now += MINUTE
        return self.watch.check(marked(messages, frame, who), self.now, cuts)

    def send(
        self,
        *messages: Message,
        frame: RequestParams = FRAME,
        who: str = "main",
        wait: timedelta = MINUTE,
        cuts: Sequence[Cut] = (),
    ) -> CacheOutcome:
        """Check, send to the simulator, ask it to compare with the last answer, settle."""
        assert self.sim is not None
        self.sim.advance(wait)
        self.now += wait
        previous = self.answered.get(who)
        asked = JsonObject({**frame.params, "diagnostics": frozen({"previous_message_id": previous})})
        request = marked(messages, replace(frame, params=asked), who)
        self.watch.check(request, self.now, cuts)
        reply = sent(self.sim, request)
        self.answered[who] = reply.id
        return self.watch.settle(request, reply, self.now)

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def sent(sim: Simulator, request: ModelRequest) -> ModelResponse:
    async def run() -> ModelResponse:
        async with sim.async_client(max_retries=0) as client:
            return await AnthropicProvider(client).send(request)

    return asyncio.run(run())


def marked(messages: Sequence[Message], frame: RequestParams = FRAME, who: str = "main") -> ModelRequest:
    end = Breakpoint("messages", len(messages) - 1, len(messages[-1].blocks) - 1)
    return ModelRequest(frame, tuple(messages), (end,), who)


def again(message: Message) -> Message:
    """The same content as another object."""
    return replace(message)


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def setup(running: Simulator) -> MonitorSetup:
    running.reset()
    return MonitorSetup(running)


def test_a_conversation_that_goes_on_says_nothing() -> None:
    setup = MonitorSetup()
    setup.check(*SAID)
    assert setup.check(*SAID, assistant("So."), user("More?")) is None
    assert setup.check(*map(again, SAID), assistant("So."), user("More?"), assistant("Ok.")) is None
    assert setup.check(*SAID[:1]) is None
    assert setup.events == []


def test_the_first_image_is_no_break(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    setup.send(*SAID, assistant("So."), Message("user", (PICTURE, Text("See?"))))
    assert [event for event in setup.events if isinstance(event, (PrefixBroken, CacheMissed))] == []


def test_how_one_roles_blocks_are_split_into_messages_is_no_break() -> None:
    setup = MonitorSetup()
    setup.check(user("a"), user("b"))
    assert setup.check(Message("user", (Text("a"), Text("b"))), assistant("c")) is None
    assert setup.events == []


CHANGES: dict[str, tuple[RequestParams, tuple[Message, ...], str, str]] = {
    "model": (replace(FRAME, model="claude-opus-4-8"), SAID, "model", "model"),
    "speed": (replace(FRAME, params=frozen({"speed": "fast"})), SAID, "model", "speed"),
    "fewer tools": (replace(FRAME, tools=FRAME.tools[:1]), SAID, "tools", "system.0"),
    "other order": (replace(FRAME, tools=FRAME.tools[::-1]), SAID, "tools", "tools.0"),
    "system": (replace(FRAME, system="Be long. " * 30), SAID, "system", "system.0"),
    "effort": (replace(FRAME, params=frozen({"output_config": {"effort": "low"}})), SAID, "params", "effort"),
    "choice": (
        replace(FRAME, params=frozen({"tool_choice": {"type": "none"}})),
        SAID,
        "params",
        "tool_choice",
    ),
    "message": (FRAME, (SAID[0], assistant("No."), SAID[2]), "message", "messages.1.content.0"),
    "first message": (FRAME, (user("Hm."), *SAID[1:]), "message", "messages.0.content.0"),
    "gone": (FRAME, (SAID[0], SAID[2]), "message", "messages.1.content.0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_unannounced_change_is_named_as_the_provider_names_it(setup: MonitorSetup, name: str) -> None:
    frame, said, cause, path = CHANGES[name]
    if name == "speed":
        # Only the newest Opus has a fast price.
        frame = replace(frame, model="claude-opus-5-5")
        first = setup.send(*SAID, frame=replace(FRAME, model="claude-opus-5-5"))
    else:
        first = setup.send(*SAID)
    assert first.expected_tokens == 0
    found = setup.send(*said, frame=frame)
    broken = [event for event in setup.events if isinstance(event, PrefixBroken)]
    assert [(event.cause, event.path) for event in broken] == [(cause, path)]
    reasons = {"params": "unavailable", "message": "messages_changed"}
    assert found.diagnostics == reasons.get(cause, f"{cause}_changed")
    missed = [event for event in setup.events if isinstance(event, CacheMissed)]
    assert [(event.cause, event.told) for event in missed] == [(cause, found.diagnostics)]
    assert missed[0].expected_tokens > found.read_tokens


def test_what_is_lost_is_about_what_the_provider_says(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    setup.send(SAID[0], assistant("No."), SAID[2])
    lost = [event.lost_tokens for event in setup.events if isinstance(event, PrefixBroken)]
    assert 0 < lost[0] < 30
    setup.send(*SAID, frame=replace(FRAME, system="Be long. " * 30))
    lost = [event.lost_tokens for event in setup.events if isinstance(event, PrefixBroken)]
    assert 700 < lost[1] < 1_500


def test_a_registered_cut_is_no_break_and_starts_the_reckoning_anew(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    cut = Cut(2, "old results cleared", 1)
    found = setup.send(SAID[0], assistant("(cleared)"), SAID[2], cuts=(cut,))
    assert setup.events == [CutRegistered("main", 2, "old results cleared", 1)]
    assert (found.expected_tokens, found.cause) == (0, None)
    after = setup.send(SAID[0], assistant("(cleared)"), SAID[2], assistant("So."), user("More?"))
    assert after.read_tokens == after.expected_tokens > 500
    assert setup.names == ["CutRegistered"]


@pytest.mark.parametrize(
    ("first", "frame", "is_explained"),
    [
        (0, FRAME, True),
        (1, FRAME, True),
        (2, FRAME, False),
        (0, replace(FRAME, system="Else."), False),
        (0, replace(FRAME, system="", tools=()), False),
        (WHOLE_PROMPT, replace(FRAME, system="Else."), True),
    ],
)
def test_a_cut_explains_what_comes_after_its_place(
    first: int, frame: RequestParams, is_explained: bool
) -> None:
    setup = MonitorSetup()
    setup.check(*SAID)
    assert setup.check(SAID[0], assistant("No."), SAID[2], frame=frame, cuts=(Cut(4, "cut", first),))
    assert ("PrefixBroken" not in setup.names) == is_explained


def test_a_cut_explains_that_the_last_image_went() -> None:
    setup = MonitorSetup()
    shown = Message("user", (ToolResult(ToolUseId("t"), (PICTURE,)),))
    setup.check(SAID[0], shown)
    setup.check(SAID[0], user("[image]"), cuts=(Cut(4, "compacted", 1),))
    assert setup.names == ["CutRegistered"]


def test_a_pause_longer_than_the_cache_lives_is_told_as_such(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    found = setup.send(*SAID, assistant("So."), user("More?"), wait=timedelta(minutes=6))
    assert found.cause == "idle"
    (missed,) = setup.events
    assert isinstance(missed, CacheMissed)
    assert (missed.idle_seconds, missed.read_tokens, missed.told) == (360, 0, "")


def test_a_clock_that_jumps_back_is_no_pause(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    setup.now -= timedelta(hours=5)
    assert setup.send(*SAID, assistant("So."), user("More?")).cause is None
    assert setup.events == []


def test_a_drop_that_nothing_explains_is_told(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    assert setup.sim is not None
    setup.sim.reset()
    found = setup.send(*SAID, assistant("So."), user("More?"))
    assert (found.cause, found.diagnostics) == ("unexplained", "previous_message_not_found")
    assert setup.names == ["CacheMissed"]


def test_a_request_that_failed_takes_nothing_away(setup: MonitorSetup) -> None:
    first = setup.send(*SAID)
    setup.check(*SAID, assistant("So."), user("More?"))
    after = setup.send(*SAID, assistant("So."), user("More?"))
    assert after.expected_tokens == after.read_tokens > first.read_tokens


EDITED: dict[str, Callable[[ModelResponse], ModelResponse]] = {
    "edits": lambda reply: replace(
        reply, extra=frozen({"context_management": {"applied_edits": [{"type": "clear_tool_uses_20250919"}]}})
    ),
    "dropped thinking": lambda reply: replace(
        reply, extra=frozen({"input_transformations": [{"type": "thinking_dropped"}]})
    ),
    "compaction": lambda reply: replace(
        reply, usage=replace(reply.usage, iterations=(Iteration(kind="compaction"), Iteration(fresh=10)))
    ),
    "another dialect": lambda reply: replace(reply, dialect="openai"),
}


@pytest.mark.parametrize("name", EDITED)
def test_what_the_provider_did_itself_is_no_miss(name: str) -> None:
    setup = MonitorSetup()
    first, later = marked(SAID), marked((*SAID, assistant("So."), user("More?")))
    wrote = replace(NOTHING, usage=Usage(fresh=5, written_5m=700))
    read_none = replace(NOTHING, usage=Usage(fresh=705))
    change = EDITED[name]
    setup.watch.check(first, START)
    setup.watch.settle(first, change(wrote) if name == "another dialect" else wrote, START)
    setup.watch.check(later, START + MINUTE)
    found = setup.watch.settle(later, change(read_none), START + MINUTE)
    assert found.cause is None
    assert setup.events == []


def test_an_answer_that_is_a_compaction_alone_has_read_what_its_run_says() -> None:
    setup = MonitorSetup()
    first, later = marked(SAID), marked((*SAID, assistant("So."), user("More?")), who="summary")
    setup.watch.check(first, START)
    setup.watch.settle(first, replace(NOTHING, usage=Usage(fresh=5, written_5m=700)), START)
    setup.watch.check(later, START + MINUTE)
    run = Iteration(fresh=30, read=700, output=90, kind="compaction")
    found = setup.watch.settle(later, replace(NOTHING, usage=Usage(iterations=(run,))), START + MINUTE)
    assert (found.read_tokens, found.cause) == (700, None)
    assert setup.events == []


def test_an_answer_to_a_request_that_nobody_checked_is_booked_all_the_same() -> None:
    setup = MonitorSetup()
    found = setup.watch.settle(marked(SAID), replace(NOTHING, usage=Usage(read=9)), START)
    assert (found.expected_tokens, found.read_tokens, found.cause) == (0, 9, None)
    assert setup.watch.ledger.total().calls == 1


def test_a_fork_goes_on_from_the_main_conversation(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    for directive in ("Take notes.", "Sum up."):
        found = setup.send(*SAID, assistant("So."), user(directive), who="notes")
        assert found.read_tokens == found.expected_tokens > 500
    longer = (*SAID, assistant("So."), user("More?"))
    setup.send(*longer)
    assert (
        setup.send(*SAID, assistant("So."), user("Sum up."), assistant("Hm."), user("?"), who="notes").cause
        is None
    )
    assert setup.send(*longer, user("Take notes."), who="notes").cause is None
    assert setup.events == []


def test_a_fork_with_other_tools_is_a_break(setup: MonitorSetup) -> None:
    setup.send(*SAID)
    setup.send(*SAID, user("Take notes."), frame=replace(FRAME, tools=()), who="notes")
    assert setup.names == ["PrefixBroken", "CacheMissed"]
    assert isinstance(setup.events[0], PrefixBroken)
    assert (setup.events[0].who, setup.events[0].cause) == ("notes", "tools")


def test_a_side_call_with_a_prompt_of_its_own_is_no_break() -> None:
    setup = MonitorSetup()
    setup.check(*SAID)
    setup.check(user("Which of these?"), who="recall")
    setup.check(*SAID, frame=replace(FRAME, model="claude-haiku-5-5"), who="progress")
    plain = replace(marked((SAID[0], user("Sum up.")), replace(FRAME, tools=()), "summary"), breakpoints=())
    setup.watch.check(plain, START)
    setup.check(user("And of these?"), who="recall")
    assert setup.events == []


def test_thinking_that_the_model_drops_when_the_user_speaks_is_told_and_is_no_break() -> None:
    setup = MonitorSetup()
    frame = replace(FRAME, model="claude-haiku-4-5")
    thought = Message("assistant", (Thinking("hm", "signed"), Text("Yes.")))
    result = Message("user", (ToolResult(ToolUseId("t"), "seen"),))
    setup.check(SAID[0], frame=frame)
    assert setup.check(SAID[0], thought, result, frame=frame) is None
    found = setup.check(SAID[0], thought, result, assistant("So."), user("More?"), frame=frame)
    assert found is not None
    assert (found.cause, found.path) == ("message", "messages.1.content.1")
    assert setup.names == ["PromptTrimmed"]
    gone_on = (SAID[0], thought, result, assistant("So."), user("More?"), assistant("And."))
    other = (SAID[0], thought, result, assistant("Else."), user("More?"), assistant("And."))
    assert setup.check(*gone_on, frame=frame) is None
    setup.check(*other, frame=frame)
    assert setup.names == ["PromptTrimmed", "PrefixBroken"]


def test_a_fork_that_leaves_the_conversation_earlier_is_no_break_and_one_of_a_shortened_view_neither() -> (
    None
):
    setup = MonitorSetup()
    longer = (*SAID, assistant("So."), user("More?"))
    setup.check(*longer)
    setup.check(*SAID, user("Sum up."), who="summary")
    shortened = marked((SAID[0], assistant("Left out."), user("Sum up.")), FRAME, "summary")
    setup.watch.check(replace(shortened, breakpoints=(Breakpoint("system", 0),)), START)
    assert setup.events == []
    setup.check(*SAID, assistant("Other."), user("Sum up."), who="summary")
    assert setup.names == ["PrefixBroken"]


@pytest.mark.parametrize(
    "block",
    [
        Document(frozen({"type": "text"}), frozen({"citations": {"enabled": True}})),
        Opaque(frozen({"type": "search_result", "citations": {"enabled": True}})),
    ],
    ids=["document", "search result"],
)
def test_the_first_block_that_may_be_cited_is_found(block: Document | Opaque) -> None:
    setup = MonitorSetup()
    setup.check(*SAID)
    found = setup.check(*SAID, assistant("So."), Message("user", (block,)))
    assert found is not None
    assert (found.cause, found.path) == ("params", "citations")
    assert (
        setup.check(*SAID, assistant("So."), Message("user", (block,)), assistant("Ok."), user("?")) is None
    )


def test_what_vanishes_is_compared_as_the_provider_sees_it() -> None:
    setup = MonitorSetup()
    soon = Message("system", (Text("soon gone"),), frozen({"clear_at": "next_user_message"}))
    setup.check(*SAID, soon)
    assert setup.check(*SAID, soon, assistant("So."), user("More?")) is not None
    other = MonitorSetup()
    other.check(*SAID)
    summary = Message("assistant", (Compaction("In short."),))
    assert other.check(*SAID, summary, user("More?")) is not None


def test_the_order_of_keys_in_a_tools_input_is_a_break() -> None:
    setup = MonitorSetup()

    def called(order: Sequence[str]) -> Message:
        use = ToolUse(ToolUseId("t"), "look", JsonObject(dict.fromkeys(order, 1)))
        return Message("assistant", (use,))

    setup.check(SAID[0], called("ab"), user("?"))
    assert setup.check(SAID[0], called("ab"), user("?"), assistant("!")) is None
    found = setup.check(SAID[0], called("ba"), user("?"), assistant("!"))
    assert found is not None
    assert found.path == "messages.1.content.0"
    schema = replace(FRAME, tools=(frozen(dict(reversed(list(FRAME.tools[0].items())))), FRAME.tools[1]))
    assert setup.check(SAID[0], called("ba"), user("?"), assistant("!"), frame=schema) is None


def test_markers_and_what_no_prompt_shows_are_no_break() -> None:
    setup = MonitorSetup()
    setup.check(*SAID)
    params = frozen(
        {"metadata": {"user_id": "me"}, "stop_sequences": ["x"], CACHE_CONTROL: {"type": "ephemeral"}}
    )
    assert setup.check(*SAID, frame=replace(FRAME, params=params, max_tokens=5)) is None
    assert setup.events == []


def test_only_new_messages_are_looked_into() -> None:
    class Sealed(Message):
        """Counts how often its blocks are asked for."""

        looked = 0

        @property
        def blocks(self) -> tuple[Text, ...]:
            Sealed.looked += 1
            return (Text("said"),)

    setup = MonitorSetup()
    said = tuple(Sealed("user", "said") for _ in range(500))
    setup.check(*said)
    assert Sealed.looked == 501
    assert setup.check(*said, user("More?")) is None
    assert Sealed.looked == 501
