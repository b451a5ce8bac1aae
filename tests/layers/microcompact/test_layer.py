"""Layer 2 over a conversation: what goes, what is announced for it, and the same again after a resume."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from sevenfold.core.events import ClearingRefused, ProviderClearingEnded, ResultsCleared
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze_object
from sevenfold.core.messages import Message, ToolResult, ToolUseId
from sevenfold.core.requests import Capabilities
from sevenfold.core.tokens import Thresholds
from sevenfold.layers.microcompact.facts import BARE_MARKER, MicrocompactSettings
from sevenfold.layers.microcompact.layer import (
    CLEARED_KEY,
    DEPTH_KEY,
    MEMORIES_KEY,
    ClearingTools,
    MicrocompactLayer,
)
from sevenfold.layers.microcompact.server_clearing import CONTEXT_MANAGEMENT_PARAM, ServerEditSettings
from tests.layers.conversations import HAIKU, OPUS, Kept, params
from tests.session.talk import call, result

HOUR, FIVE_MINUTES = timedelta(hours=1), timedelta(minutes=5)
TEXT = "a line of output\n" * 400
BY_TIME = MicrocompactSettings(policy="fixed", idle_minutes=60, idle_keep=2)
BY_PRESSURE = MicrocompactSettings(
    policy="fixed", pressure_tokens=1_000, pressure_keep=2, pressure_saves_tokens=1_000
)
THRESHOLDS = Thresholds(
    effective=100_000, auto_compact=80_000, warning=60_000, blocking=95_000, is_automatic=True
)
PRESSED = replace(THRESHOLDS, warning=10)
MARKER = Message("user", "[memories]")


class Clearing:
    """A conversation with the layer on it."""

    def __init__(self, settings: MicrocompactSettings = BY_TIME, model: str = HAIKU, **edits: object) -> None:
        capabilities = None if model == OPUS else Capabilities(rewrites_history=True)
        self.talk = Kept(params(model), capabilities)
        self.stored: list[ToolResult] = []
        self.refuses: set[str] = set()
        self.layer = MicrocompactLayer(
            self.talk,
            ClearingTools(
                settings=settings,
                server_edits=replace(ServerEditSettings(), **edits),
                ttl=FIVE_MINUTES,
                clock=self.talk.clock,
                emit=self.talk.heard,
                store_result=self.store,
                clear_memories=lambda message: MARKER if message != MARKER else None,
            ),
        )

    def store(self, one: ToolResult) -> str | None:
        if one.tool_use_id in self.refuses:
            return None
        self.stored.append(one)
        return f"/results/{one.tool_use_id}.txt"

    def work(self, rounds: int, tool: str = "Bash", start: int = 0) -> Clearing:
        for number in range(start, start + rounds):
            asked = self.talk.record_reply(
                call(number, tool, tokens=2_000 * (number + 1)), self.talk.clock.now()
            )
            self.talk.take_reply(asked, asked.entry.message)
            self.talk.add(result(number, TEXT))
            self.talk.clock.pass_time(timedelta(seconds=10))
        return self

    def run(self, thresholds: Thresholds = THRESHOLDS) -> list[str]:
        asyncio.run(self.layer.run(thresholds))
        return self.cleared()

    def cleared(self) -> list[str]:
        """The results that are no longer whole."""
        shown = [
            block
            for item in self.talk.shown
            for block in item.message.blocks
            if isinstance(block, ToolResult)
        ]
        return [str(block.tool_use_id) for block in shown if block.content != TEXT]

    def reports(self) -> list[ResultsCleared]:
        return [event for event in self.talk.heard.events if isinstance(event, ResultsCleared)]


def opened(settings: MicrocompactSettings = BY_TIME, model: str = HAIKU, **edits: object) -> Clearing:
    found = Clearing(settings, model, **edits)
    found.talk.add(Message("user", "go"))
    return found


def test_after_a_pause_all_but_the_last_results_give_way_to_where_they_are() -> None:
    clearing = opened().work(5)
    assert clearing.run() == []
    clearing.talk.clock.pass_time(HOUR)
    before = clearing.talk.tokens
    assert clearing.run() == ["t0", "t1", "t2"]
    assert sorted(one.tool_use_id for one in clearing.stored) == ["t0", "t1", "t2"]
    (cut,) = clearing.talk.cuts
    assert (cut.layer, cut.first) == (2, 2)
    markers = cut.detail[CLEARED_KEY]
    assert isinstance(markers, JsonObject)
    assert set(markers.values()) == {BARE_MARKER}
    assert sorted(markers) == ["t0", "t1", "t2"]
    assert MEMORIES_KEY not in cut.detail
    (report,) = clearing.reports()
    assert (report.results, report.memories) == (3, 0)
    assert before - clearing.talk.tokens == pytest.approx(report.tokens, rel=0.3)
    assert clearing.layer.oldest == "t3"
    assert clearing.run() == ["t0", "t1", "t2"], "nothing is left to clear"
    assert len(clearing.reports()) == 1


def test_a_result_that_cannot_be_stored_stays_and_is_not_tried_again() -> None:
    clearing = opened().work(4)
    clearing.refuses = {"t0"}
    clearing.talk.clock.pass_time(HOUR)
    assert clearing.run() == ["t1"]
    clearing.refuses = set()
    assert clearing.run() == ["t1"]
    clearing = opened().work(4)
    clearing.refuses = {"t0", "t1"}
    clearing.talk.clock.pass_time(HOUR)
    assert clearing.run() == []
    assert clearing.reports() == clearing.talk.cuts == []


def test_results_of_tools_that_may_not_be_asked_again_stay() -> None:
    clearing = opened().work(4, tool="deploy")
    clearing.talk.clock.pass_time(HOUR)
    assert clearing.run() == []
    named = opened(replace(BY_TIME, clearable=("dep*",))).work(4, tool="deploy")
    named.talk.clock.pass_time(HOUR)
    assert named.run() == ["t0", "t1"]
    spared = opened(replace(BY_TIME, never_clear=("Bash",))).work(4)
    spared.talk.clock.pass_time(HOUR)
    assert spared.run() == []


def test_near_the_end_of_the_window_memories_before_the_results_go_too() -> None:
    clearing = opened(BY_PRESSURE)
    clearing.talk.inject(Message("user", "an old memory"), "memory")
    clearing.work(4)
    clearing.talk.inject(Message("user", "a new memory"), "memory")
    clearing.work(2, start=4)
    assert clearing.run() == []
    assert clearing.run(PRESSED) == ["t0", "t1", "t2", "t3"]
    assert "/results/t0.txt" in str(clearing.talk.shown.result(ToolUseId("t0")))
    texts = clearing.talk.texts()
    assert "an old memory" not in texts
    assert "a new memory" in texts
    (cut,) = clearing.talk.cuts
    assert (cut.first, cut.detail[MEMORIES_KEY]) == (1, 1)
    (report,) = clearing.reports()
    assert (report.results, report.memories) == (4, 1)
    assert report.by == "pressure"


def test_a_resumed_session_clears_the_same_without_being_asked() -> None:
    clearing = opened(BY_PRESSURE)
    clearing.talk.inject(Message("user", "an old memory"), "memory")
    clearing.work(6)
    clearing.run(PRESSED)
    (cut,) = clearing.talk.cuts
    for is_kept in (False, True):
        again = opened(BY_PRESSURE)
        again.talk.inject(Message("user", "an old memory"), "memory")
        again.work(6)
        again.layer.restore(cut.detail, is_kept=is_kept)
        assert again.cleared() == clearing.cleared()
        assert ("an old memory" in again.talk.texts()) is is_kept
        assert again.layer.oldest == clearing.layer.oldest
        assert again.reports() == []
    untouched = opened(BY_PRESSURE).work(3)
    untouched.layer.restore(EMPTY_OBJECT, is_kept=False)
    assert untouched.cleared() == []


def test_where_old_turns_may_not_be_rewritten_the_provider_is_told_to_clear() -> None:
    clearing = opened(model=OPUS, trigger_tokens=4_000, keep_results=2).work(6, tool="Read")
    before = clearing.talk.tokens
    assert clearing.run() == [], "what we hold stays as it is"
    (cut,) = clearing.talk.cuts
    assert (cut.layer, cut.first, cut.detail[DEPTH_KEY]) == (2, 2, 4)
    assert clearing.talk.tokens < before
    assert clearing.layer.oldest == "t4"
    assert CONTEXT_MANAGEMENT_PARAM in clearing.layer.apply(clearing.talk.frame).params
    size, again = clearing.talk.tokens, opened(model=OPUS, trigger_tokens=4_000, keep_results=2)
    again.work(6, tool="Read").layer.restore(cut.detail, is_kept=False)
    assert (again.talk.tokens, again.layer.oldest) == (size, "t4")


def test_a_provider_that_cleared_is_quoted_once_for_each_number() -> None:
    clearing = opened(model=OPUS)

    def said(edits: object) -> None:
        applied = JsonObject({"applied_edits": edits})  # pyright: ignore[reportArgumentType]
        extra = JsonObject({"context_management": applied})
        clearing.layer.read_back(replace(call(1), extra=extra))

    edit = JsonObject({"cleared_tool_uses": 4, "cleared_input_tokens": 900})
    said((edit,))
    said((edit,))
    for odd in (
        None,
        (1, JsonObject({"cleared_tool_uses": 0})),
        (JsonObject({"cleared_tool_uses": True}),),
        "x",
    ):
        said(odd)
    clearing.layer.read_back(call(1))
    said((JsonObject({"cleared_tool_uses": 6, "cleared_input_tokens": "many"}),))
    assert [(one.by, one.results, one.tokens) for one in clearing.reports()] == [
        ("provider", 4, 900),
        ("provider", 6, 0),
    ]


def test_cache_edits_are_refused_once() -> None:
    clearing = opened(cache_edits=True)
    clearing.run()
    clearing.run()
    refused = [event for event in clearing.talk.heard.events if isinstance(event, ClearingRefused)]
    assert [event.setting for event in refused] == ["server_edits.cache_edits"]


@pytest.mark.parametrize(
    ("settings", "model", "is_active"),
    [
        (MicrocompactSettings(), HAIKU, True),
        (MicrocompactSettings(policy="keep"), HAIKU, False),
        (MicrocompactSettings(enabled=False), HAIKU, False),
        (MicrocompactSettings(enabled=False), OPUS, False),
        (MicrocompactSettings(policy="keep"), OPUS, True),
    ],
)
def test_whether_anything_is_ever_cleared_is_known(
    settings: MicrocompactSettings, model: str, is_active: bool
) -> None:
    assert opened(settings, model).layer.is_active is is_active
    assert opened(settings, OPUS, clear_results="never").layer.is_active is False


def test_after_a_view_was_rewritten_its_results_can_still_be_cleared() -> None:
    clearing = opened().work(5)
    clearing.talk.rewrite(clearing.talk.shown.items[3:], keeps_beginning=False)
    clearing.work(1, start=5).talk.clock.pass_time(HOUR)
    assert clearing.run() == ["t1", "t2", "t3"]


def cleared_there() -> Clearing:
    """Six results, of which the provider clears the first four."""
    clearing = opened(model=OPUS, trigger_tokens=4_000, keep_results=2).work(6, tool="Read")
    clearing.run()
    assert clearing.layer.oldest == "t4"
    clearing.talk.cuts.clear()
    return clearing


def test_what_the_provider_cleared_is_cleared_here_on_a_model_that_is_not_told_to() -> None:
    clearing = cleared_there()
    before = clearing.talk.tokens
    clearing.talk.use(params(HAIKU), Capabilities(rewrites_history=True))
    assert clearing.run() == ["t0", "t1", "t2", "t3"]
    cut, *_ = clearing.talk.cuts[-1:]
    assert (cut.layer, cut.first) == (2, 2)
    assert HAIKU in cut.reason
    markers = cut.detail[CLEARED_KEY]
    assert isinstance(markers, JsonObject)
    assert set(markers) == {"t0", "t1", "t2", "t3"}
    (event,) = (one for one in clearing.talk.heard.events if isinstance(one, ProviderClearingEnded))
    assert (event.cleared, event.restored, event.tokens) == (4, 0, 0)
    assert clearing.talk.tokens == pytest.approx(before, rel=0.3)
    assert clearing.layer.apply(clearing.talk.frame) == clearing.talk.frame
    assert clearing.run() == ["t0", "t1", "t2", "t3"]


def test_a_result_that_cannot_be_stored_is_whole_again_when_the_provider_stops_clearing() -> None:
    clearing = cleared_there()
    clearing.refuses = {"t1"}
    clearing.talk.use(params(HAIKU), Capabilities(rewrites_history=True))
    assert clearing.run() == ["t0", "t2", "t3"]
    (event,) = (one for one in clearing.talk.heard.events if isinstance(one, ProviderClearingEnded))
    assert (event.cleared, event.restored) == (3, 1)
    assert event.tokens > 1_000


def test_a_caller_with_edits_of_its_own_gets_its_results_back() -> None:
    clearing = cleared_there()
    before = clearing.talk.tokens
    own = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    frame = replace(params(OPUS), params=freeze_object({CONTEXT_MANAGEMENT_PARAM: own}))
    clearing.talk.use(frame, clearing.talk.capabilities)
    assert clearing.run() == []
    (event,) = (one for one in clearing.talk.heard.events if isinstance(one, ProviderClearingEnded))
    assert event.reason == "the caller sends edits of tool results itself"
    assert (event.cleared, event.restored) == (0, 4)
    assert clearing.talk.tokens == pytest.approx(before + event.tokens, rel=0.05)
    assert clearing.layer.apply(frame) == frame
