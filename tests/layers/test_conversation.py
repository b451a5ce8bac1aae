"""The conversation of a session: one owner of the history, the view and its tokens, and no silent change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sevenfold.core.events import BillLost, HistoryChanged
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import (
    Compaction,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.normalize import CONTINUE_TEXT, LOST_RESULT, NO_REPLY
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import ENGINE_ENTRY, WHOLE_PROMPT, Capabilities, Cut, compute_thinking_binding
from sevenfold.core.usage import NO_USAGE
from sevenfold.layers.conversation import PARAMS_CHANGED
from sevenfold.layers.conversation_state import (
    COVERS_KEY,
    DROPPED_KEY,
    FIRST_KEY,
    FORGOTTEN_KEY,
    PLACES_KEY,
    STATE_KEY,
    RecordedReply,
)
from sevenfold.providers.provider import UNREADABLE_USAGE
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import CutRecord, InjectedRecord, MessageRecord, UsageRecord
from tests.layers.conversations import HAIKU, NOON, OPUS, SECOND, Kept, asked, params, takes
from tests.session.talk import call, reply, result

# The history.


def test_what_is_added_is_written_shown_and_told_in_order() -> None:
    talk = Kept()
    first, second = Message("user", "one"), Message("user", "two")
    before = talk.revision
    talk.add(first)
    talk.add(second, "attachment", id=RecordId("there"))
    assert talk.records(MessageRecord) == [MessageRecord(first)]
    assert (
        [entry.message for entry in talk.entries]
        == [first, second]
        == [e.message for e in talk.follower.added]
    )
    assert talk.entries[0].id == talk.kept.ids[0]
    assert talk.entries[1].id == "there"
    assert [(item.message, item.entry, item.origin) for item in talk.shown] == [
        (first, 0, "human"),
        (second, 1, "attachment"),
    ]
    assert talk.follower.shown == talk.shown.items
    assert talk.revision > before
    assert talk.said_tokens > 0


def test_tokens_and_said_tokens_follow_the_view_and_the_history() -> None:
    talk = Kept()
    empty = talk.tokens
    talk.add(Message("user", "word " * 500))
    said = talk.said_tokens
    assert talk.tokens > empty + 400
    assert said > 400
    talk.inject(Message("user", "a reminder " * 200), "attachment")
    assert talk.said_tokens == said
    talk.rewrite([])
    assert talk.said_tokens == said
    assert talk.tokens == empty


def test_a_tool_call_is_known_by_its_id_from_a_history_and_from_a_reply() -> None:
    talk = asked(Kept(), rounds=1)
    talk.add(call(7).message)
    assert {key: use.name for key, use in talk.tools.items()} == {"t0": "Bash", "t7": "Bash"}


def test_history_that_the_caller_dropped_leaves_the_view_and_is_announced() -> None:
    talk = asked(Kept())
    ids = [entry.id for entry in talk.entries]
    kept = talk.texts()[:3]
    talk.drop_from(3, "the caller changed it")
    assert talk.texts() == kept
    assert [entry.id for entry in talk.entries] == ids[:3]
    assert HistoryChanged(3, 3, "the caller changed it") in talk.heard.events
    assert talk.follower.rewritten == [True]
    assert talk.follower.cut == [3]
    detail = JsonObject({DROPPED_KEY: tuple(ids[3:]), COVERS_KEY: 3, PLACES_KEY: (0, 1, 2)})
    assert talk.cuts == [Cut(0, "the caller changed it", 3, detail)]
    (written,) = talk.records(CutRecord)
    assert isinstance(written, CutRecord)
    assert written.detail.without(FIRST_KEY, STATE_KEY) == detail


def test_nothing_dropped_is_no_change() -> None:
    talk = asked(Kept(), rounds=1)
    before = talk.revision
    talk.drop_from(len(talk.entries), "nothing")
    assert (talk.revision, talk.cuts, talk.follower.rewritten) == (before, [], [])
    assert not any(isinstance(event, HistoryChanged) for event in talk.heard.events)


def test_a_message_of_the_engine_before_the_first_entry_survives_a_history_that_starts_over() -> None:
    talk = Kept()
    talk.inject(Message("user", "context"), "attachment")
    talk.add(Message("user", "question"))
    talk.drop_from(0, "a new history")
    assert talk.texts() == ["context"]
    assert talk.follower.rewritten == [True]
    talk = asked(Kept(), rounds=1)
    talk.drop_from(0, "a new history")
    assert talk.texts() == []
    assert talk.follower.rewritten == [False]


# Replies.


def test_a_reply_is_billed_recorded_and_shown_once_it_is_in_the_callers_history() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    talk.clock.pass_time(3 * SECOND)
    response = call(1, tokens=5_000)
    given = talk.record_reply(response, NOON)
    assert talk.kept.bodies[1:] == [
        UsageRecord(
            model=OPUS, who="main", wire=response.usage_wire, dialect="anthropic", frame=talk.binding
        ),
        MessageRecord(response.message),
    ]
    assert given == RecordedReply(talk.follower.added[-1], response.usage, binding=talk.binding)
    assert (len(talk.entries), len(talk.shown), talk.rounds) == (1, 1, 1)
    assert (talk.last.tokens, talk.last.messages) == (5_000, 1)
    assert (talk.last.started, talk.last.ended) == (NOON, NOON + 3 * SECOND)
    talk.take_reply(given, response.message)
    assert talk.entries[-1] is given.entry
    assert talk.shown.items[-1].entry == 1
    assert talk.tokens == 5_020
    assert talk.records(CutRecord) == []


def test_the_model_of_the_reply_is_billed_before_that_of_the_request() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    talk.record_reply(replace(call(1), model=HAIKU), NOON)
    (bill,) = talk.records(UsageRecord)
    assert isinstance(bill, UsageRecord)
    assert bill.model == HAIKU


def test_a_listener_is_told_how_long_nothing_was_asked() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    for seconds in (0, 90, 100):
        talk.record_reply(call(seconds), NOON + seconds * SECOND)
    assert talk.follower.idle == [None, 90 * SECOND, 10 * SECOND]
    assert talk.rounds == 3


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (EMPTY_OBJECT, "none came"),
        (JsonObject({UNREADABLE_USAGE: "it was a list"}), "it was a list"),
        (JsonObject({UNREADABLE_USAGE: 3}), "none came"),
    ],
)
def test_a_reply_without_a_bill_is_reported_once_and_the_estimate_stands(
    extra: JsonObject, reason: str
) -> None:
    talk = Kept()
    talk.add(Message("user", "go " * 300))
    estimate = talk.tokens
    silent = replace(call(1), usage=NO_USAGE, extra=extra)
    given = talk.record_reply(silent, NOON)
    assert given.usage is None
    assert talk.last.tokens == estimate
    talk.record_reply(silent, NOON)
    assert [event for event in talk.heard.events if isinstance(event, BillLost)] == [BillLost(OPUS, reason)]
    talk.report_missing_usage(HAIKU, reason)
    assert talk.heard.events[-1] == BillLost(HAIKU, reason)


def test_a_reply_that_the_caller_wrote_in_other_words_is_kept_in_those() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    given = talk.record_reply(reply(Message("assistant", "As it was said."), 1, 3_000), NOON)
    other = Message("assistant", "In other words.")
    talk.take_reply(given, other)
    assert talk.texts() == ["go", "In other words."]
    assert talk.entries[-1].message == other
    assert talk.entries[-1].id == talk.kept.ids[-1] != given.entry.id
    assert talk.records(CutRecord) == [
        CutRecord(0, "the caller did not keep the reply", None, JsonObject({DROPPED_KEY: (given.entry.id,)}))
    ]
    assert talk.tokens >= 3_000


def test_the_size_of_the_prompt_is_known_from_a_reply_that_the_caller_dropped() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    given = talk.record_reply(call(1, tokens=3_000), NOON)
    talk.take_reply(given, None)
    assert talk.texts() == ["go"]
    assert len(talk.entries) == 1
    assert talk.tokens == 3_000
    silent = talk.record_reply(replace(call(2), usage=NO_USAGE), NOON)
    talk.take_reply(silent, None)
    assert talk.tokens == 3_000


def test_an_empty_reply_shows_nothing_and_its_bill_holds() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    given = talk.record_reply(reply(Message("assistant", ()), 1, 4_000), NOON)
    talk.take_reply(given, given.entry.message)
    assert talk.texts() == ["go"]
    assert len(talk.entries) == 2
    assert 4_000 <= talk.tokens <= 4_020


# The view.


def test_what_the_engine_injects_is_written_as_its_own_and_shows_no_entry() -> None:
    talk = Kept()
    talk.inject(Message("user", "remember this"), "memory")
    assert talk.kept.bodies == [InjectedRecord(Message("user", "remember this"), "memory")]
    (item,) = talk.shown
    assert (item.entry, item.origin) == (ENGINE_ENTRY, "memory")
    assert talk.entries == talk.follower.added == []


def test_what_has_to_stand_before_a_message_is_the_engines_and_the_message_keeps_its_origin() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    given = talk.record_reply(call(1, tokens=2_000), NOON)
    talk.take_reply(given, given.entry.message)
    talk.add(Message("user", "never mind"), "attachment")
    origins = [(item.entry, item.origin) for item in talk.shown]
    assert origins == [(0, "human"), (1, "human"), (ENGINE_ENTRY, "attachment"), (2, "attachment")]
    lost = talk.shown.items[2].message.blocks[0]
    assert isinstance(lost, ToolResult)
    assert lost.content == LOST_RESULT


def test_a_reply_after_something_inserted_still_brings_its_bill() -> None:
    """The user speaks after a system message: a reply that never came is put between."""
    talk = Kept()
    talk.add(Message("user", "go"))
    talk.add(Message("system", "a reminder"))
    talk.finish()
    talk.add(Message("user", "and?"))
    assert talk.shown.items[2].message.blocks == (Text(NO_REPLY),)
    given = talk.record_reply(reply(Message("assistant", "Done."), 1, 2_000), NOON)
    talk.take_reply(given, given.entry.message)
    assert talk.tokens == 2_020


@pytest.mark.parametrize("is_stored", [False, True])
def test_what_a_view_lacks_is_appended_before_it_is_sent_and_written_unless_it_is(is_stored: bool) -> None:
    talk = Kept(params(HAIKU), Capabilities(rewrites_history=True))
    talk.add(Message("user", "go"))
    talk.add(Message("assistant", "ends with a space "))
    before, size = talk.revision, talk.tokens
    talk.finish(is_stored=is_stored)
    last = talk.shown.items[-1]
    assert (last.message.content, last.entry, last.origin) == (CONTINUE_TEXT, ENGINE_ENTRY, "attachment")
    assert talk.records(InjectedRecord) == ([] if is_stored else [InjectedRecord(last.message, "attachment")])
    assert talk.revision > before
    assert talk.tokens > size
    after = talk.revision
    talk.finish()
    assert talk.revision == after


def test_a_system_message_that_waited_is_shown_as_the_entry_it_is() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    talk.add(Message("system", "a reminder"), "attachment")
    assert len(talk.shown) == 1
    talk.finish()
    last = talk.shown.items[-1]
    assert (last.entry, last.origin) == (1, "attachment")
    assert talk.records(InjectedRecord) == []


def test_a_rewritten_view_has_the_weights_of_what_it_shows() -> None:
    talk, straight = asked(Kept()), Kept()
    kept = talk.shown.items[3:]
    before = talk.revision
    talk.rewrite(kept, keeps_beginning=False)
    for item in kept:
        straight.show(item.message, item.origin, item.entry)
    assert talk.revision > before
    assert talk.follower.rewritten == [False]
    assert [(i.message, i.entry, i.origin, i.weight) for i in talk.shown] == [
        (i.message, i.entry, i.origin, i.weight) for i in straight.shown
    ]
    talk.rewrite(talk.shown.items)
    assert talk.follower.rewritten == [False, True]


def test_a_view_that_begins_with_the_assistant_gets_an_opening_of_the_engine() -> None:
    talk = Kept()
    talk.add(Message("user", "go"))
    talk.add(Message("assistant", "Done."))
    talk.rewrite(talk.shown.items[1:])
    assert [(item.message.role, item.entry, item.origin) for item in talk.shown] == [
        ("user", ENGINE_ENTRY, "attachment"),
        ("assistant", 1, "human"),
    ]


def test_replaced_results_change_their_places_the_tokens_and_whatever_is_shown_later() -> None:
    talk = asked(Kept())
    before, size = talk.revision, talk.tokens
    places = talk.replace_results({ToolUseId("t0"): "[cleared] " * 50, ToolUseId("t9"): "[gone]"})
    assert places == [2]
    assert talk.revision > before
    assert talk.tokens > size
    assert talk.texts()[2] == (ToolResult(ToolUseId("t0"), "[cleared] " * 50),)
    assert talk.texts()[5] == (ToolResult(ToolUseId("t1"), "made 1"),)
    assert talk.shown.items[2].origin == "attachment"
    talk.add(Message("assistant", (ToolUse(ToolUseId("t9"), "Bash", EMPTY_OBJECT),)))
    talk.add(result(9, "long"), "attachment")
    assert talk.texts()[-1] == (ToolResult(ToolUseId("t9"), "[gone]"),)
    assert talk.entries[-1].message == result(9, "long")


def test_places_of_replaced_results_come_in_order_and_once() -> None:
    talk = asked(Kept(), rounds=3)
    texts = {ToolUseId(f"t{number}"): "[cleared]" for number in (2, 0, 1)}
    assert talk.replace_results(texts) == [2, 5, 8]


@pytest.mark.parametrize(("first", "messages", "named"), [(1, 1, 1), (5, 5, 5), (6, 5, None)])
def test_a_cut_is_written_down_with_the_message_it_begins_at(
    first: int, messages: int, named: int | None
) -> None:
    talk = asked(Kept())
    talk.record_reply(call(9), NOON)
    talk.last = replace(talk.last, messages=5)
    before = talk.revision
    talk.announce(Cut(2, "cleared", first))
    assert talk.revision > before
    assert talk.follower.cut == [first]
    assert talk.last.messages == messages
    entry = talk.entries[named].id if named is not None else None
    assert talk.kept.bodies[-1] == CutRecord(2, "cleared", entry, JsonObject({FIRST_KEY: first}))


def test_a_cut_at_a_message_of_the_engine_names_no_record() -> None:
    talk = Kept()
    talk.inject(Message("user", "context"), "attachment")
    talk.add(Message("user", "go"))
    talk.announce(Cut(2, "cleared", 0))
    assert talk.kept.bodies[-1] == CutRecord(2, "cleared", None, JsonObject({FIRST_KEY: 0}))


# The parameters of a request.


def thought(talk: Kept) -> Kept:
    """A history with thinking in its second message and a compaction block of the engine before it."""
    talk.add(Message("user", "go"))
    talk.add(Message("assistant", (Thinking("Hm.", "signed"), Text("Done."))))
    talk.add(Message("user", "and?"))
    return talk


def has_thinking(talk: Kept) -> bool:
    return any(isinstance(block, Thinking) for item in talk.shown for block in item.message.blocks)


def test_the_same_parameters_change_nothing_but_the_revision() -> None:
    talk = thought(Kept())
    before, shown = talk.revision, talk.shown.messages()
    talk.use(params(), takes(OPUS))
    assert talk.revision > before
    assert talk.cuts == []
    assert talk.follower.rewritten == []
    assert talk.shown.messages().shares_list_with(shown)


def test_another_model_has_a_cache_of_its_own() -> None:
    talk = asked(Kept(params(HAIKU)))
    talk.record_reply(call(9), NOON)
    talk.use(params("claude-sonnet-4-5"), takes("claude-sonnet-4-5"))
    assert talk.cuts == [Cut(0, f"the model changed from {HAIKU} to claude-sonnet-4-5", WHOLE_PROMPT)]
    assert talk.last.messages == 0
    assert talk.model == CATALOG.find("claude-sonnet-4-5")
    assert talk.frame.model == "claude-sonnet-4-5"


def test_another_system_prompt_is_counted_and_bound_to() -> None:
    talk = thought(Kept(params(HAIKU)))
    size, bound = talk.tokens, talk.binding
    longer = params(HAIKU, "You are helpful. " * 200)
    talk.use(longer, takes(HAIKU))
    assert talk.tokens > size + 500
    assert talk.binding == compute_thinking_binding(longer) != bound
    assert has_thinking(talk)
    assert talk.cuts == []


def test_thinking_that_is_signed_over_the_parameters_goes_when_they_change() -> None:
    talk = thought(Kept(params(OPUS)))
    talk.use(params(OPUS, "You are brief."), takes(OPUS))
    assert not has_thinking(talk)
    assert talk.cuts == [Cut(0, PARAMS_CHANGED, 1, JsonObject({FORGOTTEN_KEY: True}))]
    assert talk.texts()[1] == (Text("Done."),)


def test_a_compaction_block_stays_only_where_the_model_reads_it() -> None:
    talk = Kept(params(OPUS))
    block = Message("assistant", (Compaction("what was said"),))
    talk.inject(block, "attachment")
    talk.add(Message("user", "go"))
    talk.betas = ("compact-1",)
    talk.use(params(OPUS, "You are brief."), takes(OPUS))
    assert talk.texts()[0] == block.content
    assert talk.betas == ("compact-1",)
    talk.use(params(HAIKU), takes(HAIKU))
    assert talk.betas == ()
    assert not any(isinstance(b, Compaction) for item in talk.shown for b in item.message.blocks)
    assert talk.cuts[-1] == Cut(0, f"the model changed from {OPUS} to {HAIKU}", 0)


def test_thinking_is_forgotten_on_request_from_its_first_message_on() -> None:
    talk = thought(Kept())
    talk.forget_thinking("the provider refused it")
    assert not has_thinking(talk)
    assert talk.follower.rewritten == [True]
    assert talk.cuts == [Cut(0, "the provider refused it", 1, JsonObject({FORGOTTEN_KEY: True}))]
    before = talk.revision
    talk.forget_thinking("again")
    assert talk.revision == before


def test_headers_that_the_view_needs_are_added_once() -> None:
    talk = Kept(params(betas=("mine", "both")))
    assert talk.request_params() is talk.frame
    talk.betas = ("both",)
    assert talk.request_params() is talk.frame
    talk.betas = ("both", "ours")
    assert talk.request_params().betas == ("mine", "both", "ours")


def test_what_thinking_is_bound_to_leaves_out_breakpoints_order_and_empty_texts() -> None:
    mark = JsonObject({"type": "ephemeral"})
    one, two = JsonObject({"name": "one"}), JsonObject({"name": "two", "cache_control": mark})
    server = JsonObject({"type": "web_search"})
    plain = params(system="Be brief.", tools=(one, two, server))
    blocks = (
        JsonObject({"type": "text", "text": " Be brief. ", "cache_control": mark}),
        JsonObject({"type": "text", "text": " "}),
    )
    other = params(tools=(server, JsonObject({"name": "two"}), one))
    assert compute_thinking_binding(plain) == compute_thinking_binding(replace(other, system=blocks))
    for changed in (
        replace(plain, model=HAIKU),
        replace(plain, system="Be long."),
        replace(plain, tools=(one, two)),
        replace(plain, tools=(one, JsonObject({"name": "two", "strict": True}), server)),
    ):
        assert compute_thinking_binding(changed) != compute_thinking_binding(plain)


def test_a_system_prompt_in_blocks_is_as_long_as_its_texts() -> None:
    blocks = tuple(JsonObject({"type": "text", "text": text}) for text in ("Be brief.", "Be kind."))
    assert Kept(params(system=blocks)).tokens == Kept(params(system="Be brief.\nBe kind.")).tokens
