"""The last step of a request: built once for each state of the view, the same while nothing changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import Breakpoint, Cut, ViewMessage, ViewMessages
from sevenfold.core.tokens import WindowSettings
from sevenfold.layers.compaction.layer import WindowPlan
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.microcompact.facts import MicrocompactSettings
from sevenfold.layers.microcompact.layer import ClearingTools, MicrocompactLayer
from sevenfold.layers.microcompact.server_clearing import ServerEditSettings
from sevenfold.session.cache.breakpoints import RequestBuilder, find_clearing_breakpoint
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.session.history import CallerBreakpoint
from tests.layers.conversations import HAIKU, NOON, Kept, params
from tests.session.talk import call, result


class Built:
    """A builder over a conversation of one round."""

    def __init__(self) -> None:
        self.talk = Kept(params(HAIKU, "You are helpful. " * 2_000))
        tools = ClearingTools(
            settings=MicrocompactSettings(),
            server_edits=ServerEditSettings(),
            ttl=FIVE_MINUTES,
            clock=self.talk.clock,
            emit=self.talk.heard,
            store_result=None,
            clear_memories=lambda _: None,
        )
        self.window = WindowPlan(WindowSettings(), CompactSettings(), self.talk.frame, self.talk.model)
        self.builder = RequestBuilder(
            self.talk, self.window, MicrocompactLayer(self.talk, tools), CacheSettings(), self.talk.clock
        )
        self.talk.add(Message("user", "go"))

    def marked(self) -> list[tuple[str, int]]:
        return [(mark.level, mark.index) for mark in self.builder.build().request.breakpoints]

    def answer(self, number: int) -> None:
        self.builder.hand_out()
        started = self.builder.answered()
        given = self.talk.record_reply(call(number, tokens=5_000), started)
        self.talk.take_reply(given, given.entry.message)
        self.talk.add(result(number, "made"))


def test_a_request_is_built_once_for_each_state_of_the_conversation() -> None:
    built = Built()
    first = built.builder.build()
    assert built.builder.build() is first
    assert first.request.frame is built.talk.frame
    assert list(first.request.messages) == [Message("user", "go")]
    assert first.tokens == built.talk.tokens
    assert first.level == "fine"
    assert first.percent_left == built.window.thresholds.percent_left(first.tokens)
    built.talk.add(Message("user", "and this"))
    second = built.builder.build()
    assert second is not first
    assert len(second.request.messages) == 2
    assert len(first.request.messages) == 1
    assert second.request.frame is first.request.frame


def test_only_what_was_handed_out_is_sent_again_unchanged() -> None:
    built = Built()
    assert not built.builder.is_unchanged
    built.builder.build()
    assert not built.builder.is_unchanged, "it was only looked at"
    handed = built.builder.hand_out()
    assert built.builder.is_unchanged
    assert built.builder.build() is handed
    built.talk.add(Message("user", "more"))
    assert not built.builder.is_unchanged
    built.builder.build()
    assert not built.builder.is_unchanged


def test_cuts_are_announced_with_the_request_that_is_sent_and_not_again() -> None:
    built = Built()
    cut = Cut(2, "cleared", 0)
    built.talk.announce(cut)
    assert built.builder.build().cuts == (cut,)
    assert built.builder.build().cuts == (cut,)
    assert built.builder.hand_out().cuts == (cut,)
    built.talk.add(Message("user", "more"))
    assert built.builder.hand_out().cuts == ()


def test_breakpoints_of_the_caller_are_kept_and_a_change_of_them_builds_anew() -> None:
    built = Built()
    first = built.builder.build()
    built.builder.set_marks(())
    assert built.builder.build() is first
    mark = CallerBreakpoint(0, 0, timedelta(hours=1))
    built.builder.set_marks((mark,))
    assert Breakpoint("messages", 0, 0, timedelta(hours=1)) in built.builder.build().request.breakpoints
    assert built.builder.build() is not first


def test_an_answer_is_dated_by_its_request() -> None:
    built = Built()
    built.builder.hand_out()
    built.talk.clock.pass_time(timedelta(seconds=30))
    assert built.builder.answered() == NOON
    assert Built().builder.answered() == NOON


def test_the_place_that_was_written_is_marked_again_until_a_cut_or_other_parameters() -> None:
    built = Built()
    built.answer(1)
    again = built.marked()
    assert ("messages", 2) in again
    assert ("system", 0) in again
    built.talk.use(params(HAIKU, "You are brief. " * 2_000), built.talk.capabilities)
    built.builder.use_params()
    assert ("system", 0) in built.marked()
    short = Built()
    short.talk.use(params(HAIKU, "Short."), short.talk.capabilities)
    short.builder.use_params()
    assert short.marked() != again


def test_a_view_that_fills_the_window_is_told_to_be() -> None:
    built = Built()
    built.window.learn(built.talk.frame.model, 20_000)
    built.talk.add(Message("user", "word " * 60_000))
    full = built.builder.build()
    assert full.level == "blocked"
    assert full.percent_left == 0


# Where the next cut most likely begins.


def shown_of(*messages: Message) -> ViewMessages:
    shown = ViewMessages()
    for message in messages:
        shown.append(ViewMessage(message, 1.0))
    return shown


USE = ToolUseId("one")
CALL = Message("assistant", (Text("I look."), ToolUse(USE, "Bash", EMPTY_OBJECT), Thinking("Hm.", "s")))
RESULT = Message("user", (ToolResult(USE, "found"),))


@pytest.mark.parametrize(
    ("messages", "oldest", "found"),
    [
        ((Message("user", "go"), CALL, RESULT), USE, Breakpoint("messages", 1, 1)),
        ((CALL, RESULT), USE, Breakpoint("messages", 0, 1)),
        ((Message("user", "go"), CALL, RESULT), None, None),
        ((Message("user", "go"), CALL, RESULT), ToolUseId("other"), None),
        ((RESULT,), USE, None),
        ((replace(CALL, content=(Thinking("Hm.", "s"),)), RESULT), USE, None),
    ],
)
def test_a_clearing_breakpoint_stands_before_the_oldest_result_that_may_go(
    messages: tuple[Message, ...], oldest: ToolUseId | None, found: Breakpoint | None
) -> None:
    assert find_clearing_breakpoint(shown_of(*messages), oldest) == found
