"""A compaction, rung by rung."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.errors import CompactionStopped, InputError, PromptTooLong
from sevenfold.core.events import CompactionStarted, HistoryCompacted, RungFailed, RungSkipped
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import (
    Compaction,
    Image,
    Message,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.requests import Breakpoint, ModelResponse, RequestParams
from sevenfold.core.usage import NO_USAGE
from sevenfold.layers.compaction.compactor import Compactor
from sevenfold.layers.compaction.job import CompactionNotes, Part
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.compaction.summary import collect_user_quotes, is_summary_head
from sevenfold.layers.compaction.summary_methods import COMPACTION_BLOCK_BETA
from sevenfold.layers.forks.policy import FORK_MARK
from sevenfold.layers.session_notes.policy import NotesSettings
from tests.layers.compaction.overflows import (
    FRAME_TOKENS,
    GOOD,
    NEWER,
    OLDER,
    STRUCTURAL,
    SUMMARY,
    TRANSCRIPT,
    Rig,
    count,
    has_thinking,
    job,
    talk,
    texts,
)

CLEARING = JsonObject({"type": "clear_tool_uses_20250919", "keep": JsonObject({"type": "tool_uses"})})
TEMPLATE = "# Title\n_nothing yet_\n"
BLOCK = Compaction("All that happened so far, in the provider's words.", JsonObject({"signature": "s"}))


def block_reply(block: Compaction = BLOCK) -> ModelResponse:
    return ModelResponse(
        message=Message("assistant", (block,)),
        usage=NO_USAGE,
        usage_wire=EMPTY_OBJECT,
        stop_reason="compaction",
    )


def test_a_summary_is_written_on_the_unchanged_prefix() -> None:
    rig, messages = Rig(steps=[GOOD]), talk()
    result = rig.compact(job(messages))
    (sent,) = rig.provider.requests
    assert sent.purpose == "summary"
    assert all(one is other for one, other in zip(sent.messages, messages, strict=False))
    assert texts(sent.messages[-1:]).startswith(FORK_MARK)
    assert sent.breakpoints == job(messages).request.breakpoints
    assert result.rung == "summary"
    assert result.summary == SUMMARY.strip()
    assert [reply.text for reply in result.replies] == [GOOD]


def test_the_new_view_holds_summary_words_transcript_and_the_newest_rounds_unchanged() -> None:
    messages = talk()
    result = Rig(steps=[GOOD]).compact(job(messages))
    (head,) = result.head
    assert is_summary_head(head)
    for part in (SUMMARY.strip(), "Please mend the parser, and keep its tests.", TRANSCRIPT):
        assert part in texts(result.head)
    assert "Please mend the parser" not in texts(result.kept), "what is kept need not be carried twice"
    assert result.kept == tuple(messages[result.kept_from :])
    assert all(one is other for one, other in zip(result.kept, messages[result.kept_from :], strict=True))
    assert result.kept_from < len(messages)
    assert result.tokens_after < result.tokens_before / 4
    assert result.tokens_after == pytest.approx(FRAME_TOKENS + sum(count(result.view)), rel=0.01)


def test_events_tell_what_was_skipped_and_what_served() -> None:
    rig = Rig(steps=[GOOD])
    result = rig.compact(job(talk()))
    assert isinstance(rig.heard[0], CompactionStarted)
    assert [event.rung for event in rig.heard if isinstance(event, RungSkipped)] == ["notes", "block"]
    done = rig.heard[-1]
    assert isinstance(done, HistoryCompacted)
    assert (done.rung, done.trigger, done.calls) == ("summary", "auto", 1)
    assert (done.tokens_before, done.tokens_after) == (result.tokens_before, result.tokens_after)
    assert done.kept_messages == len(result.kept)


def test_an_unanswered_question_stays_the_last_word() -> None:
    messages = [*talk(), Message("assistant", "Done."), Message("user", "And now the printer?")]
    result = Rig(steps=[GOOD]).compact(job(messages))
    assert result.view[-1] is messages[-1]
    assert "And now the printer?" not in texts(result.head)


@pytest.mark.parametrize("steps", [[GOOD], []], ids=["summary", "structural"])
def test_an_unanswered_question_is_kept_whole_where_there_is_room(steps: list[str]) -> None:
    image = Image(JsonObject({"type": "url", "url": "https://example.org"}))
    asked = Message("user", (Text("What is wrong here? " + "log line\n" * 3_000), image))
    messages = [*talk(), Message("assistant", "Done."), asked]
    rig = Rig(steps=steps)
    if not steps:
        rig.overflow = Compactor(None, rig.settings)
    assert rig.compact(job(messages)).view[-1] is asked
    words = Message("user", "What is wrong here? " + "log line\n" * 10_000)
    long = job([*messages[:-1], words])
    assert long.counts[-1] > long.target, "so much that it can only be told by its beginning"
    found = rig.compact(long) if not steps else Rig(steps=steps).compact(long)
    assert found.rung == ("summary" if steps else "structural")
    assert "What is wrong here?" in texts(found.head)


def test_kept_messages_lose_their_thinking_where_it_is_signed() -> None:
    messages = talk()
    assert has_thinking(Rig(steps=[GOOD]).compact(job(messages)).kept)
    assert not has_thinking(Rig(steps=[block_reply()]).compact(job(messages, NEWER)).view)
    no_blocks = Rig(steps=[GOOD], settings=CompactSettings(blocks_enabled=False))
    result = no_blocks.compact(job(messages, NEWER))
    assert result.rung == "summary"
    assert result.kept
    assert not has_thinking(result.view)


def test_notes_serve_before_any_model_is_asked() -> None:
    messages = talk()
    notes = CompactionNotes("# Title\nMending the parser.\n", noted=len(messages) - 3, template=TEMPLATE)
    settings = NotesSettings(keep_tokens=3_000, keep_messages=1)
    rig = Rig(notes=settings)
    result = rig.compact(job(messages, notes=notes))
    assert (result.rung, rig.calls) == ("notes", 0)
    assert "Mending the parser." in texts(result.head)
    assert "Please mend the parser, and keep its tests." in texts(result.head)
    assert result.kept_from <= len(messages) - 2
    assert result.kept[-1] is messages[-1]


@pytest.mark.parametrize(("target", "least", "most"), [(160_000, 10_000, 14_000), (20_000, 5_000, 8_000)])
def test_beside_notes_less_is_kept_in_a_small_window(target: int, least: int, most: int) -> None:
    messages = talk(60)
    notes = CompactionNotes("# Title\nMending the parser.\n", noted=len(messages) - 1, template=TEMPLATE)
    result = Rig(notes=NotesSettings(keep_messages=1)).compact(job(messages, notes=notes, target=target))
    assert result.rung == "notes"
    assert least <= sum(count(result.kept)) <= most


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        (CompactionNotes(), "no notes were written yet"),
        (CompactionNotes(TEMPLATE, 30, TEMPLATE), "the notes are still the empty template"),
        (CompactionNotes("# Title\nx", None, TEMPLATE), "the last noted message is not in the view"),
        (
            CompactionNotes("# Title\n" + "x " * 60_000, 30, TEMPLATE),
            "the result would still be over the limit",
        ),
    ],
    ids=["none", "blank", "lost place", "too large"],
)
def test_notes_that_cannot_serve_are_passed_over_with_the_reason(notes: CompactionNotes, reason: str) -> None:
    rig = Rig(steps=[GOOD])
    assert rig.compact(job(talk(), notes=notes)).rung == "summary"
    assert RungSkipped("notes", reason) in rig.heard


def test_an_instruction_goes_past_the_notes_into_the_directive() -> None:
    notes = CompactionNotes("# Title\nMending.", noted=38, template=TEMPLATE)
    rig = Rig(steps=[GOOD])
    wanted = job(talk(), notes=notes, trigger="manual", instructions="Focus on the tests.")
    assert rig.compact(wanted).rung == "summary"
    assert "Focus on the tests." in texts(rig.provider.requests[0].messages[-1:])


def test_a_block_of_the_providers_is_adopted_as_it_came() -> None:
    rig, messages = Rig(steps=[block_reply()]), talk()
    result = rig.compact(job(messages, NEWER))
    (sent,) = rig.provider.requests
    assert sent.frame.params["compaction"]
    assert COMPACTION_BLOCK_BETA in sent.frame.betas
    assert sent.messages == tuple(messages)
    assert result.rung == "block"
    assert result.head[0] == Message("assistant", (BLOCK,))
    assert is_summary_head(result.head[1])
    assert "Please mend the parser" in texts(result.head[1:])
    assert result.betas == (COMPACTION_BLOCK_BETA,)


def test_context_management_is_left_out_of_a_request_for_a_block() -> None:
    rig, wanted = Rig(steps=[block_reply()]), job(talk(), NEWER)
    keep_all = JsonObject({"type": "clear_thinking_20251015", "keep": "all"})
    params = JsonObject({"context_management": JsonObject({"edits": (keep_all,)}), "metadata": EMPTY_OBJECT})
    frame = replace(wanted.request.frame, params=params)
    rig.compact(replace(wanted, request=replace(wanted.request, frame=frame)))
    assert set(rig.provider.requests[0].frame.params) == {"metadata", "compaction"}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"stop_sequences": ("x",)}, "stop_sequences"),
        ({"context_management": JsonObject({"edits": (CLEARING,)})}, "clearing on the provider's side"),
        ({"thread": JsonObject({"type": "create"})}, "thread"),
        ({"tool_choice": JsonObject({"type": "any"})}, "tool_choice"),
        ({"output_config": JsonObject({"format": EMPTY_OBJECT})}, "output_config.format"),
        ({"output_config": JsonObject({"task_budget": JsonObject({"remaining": 5})})}, "task budget"),
    ],
    ids=["stop", "clearing", "thread", "forced", "format", "budget"],
)
def test_what_a_block_cannot_be_combined_with_leads_to_a_summary(
    params: dict[str, JsonObject], reason: str
) -> None:
    rig, wanted = Rig(steps=[GOOD]), job(talk(), NEWER)
    frame = RequestParams(model=NEWER, max_tokens=4_000, params=JsonObject(params))
    assert rig.compact(replace(wanted, request=replace(wanted.request, frame=frame))).rung == "summary"
    told = [event for event in rig.heard if isinstance(event, RungSkipped) and event.rung == "block"]
    assert reason in told[0].reason


def test_a_block_that_did_not_come_is_followed_by_a_summary() -> None:
    rig = Rig(steps=[block_reply(Compaction(None)), GOOD])
    result = rig.compact(job(talk(), NEWER))
    assert (result.rung, result.calls) == ("summary", 2)
    assert result.betas == ()


def test_a_cold_prefix_is_stripped_first() -> None:
    shot = ToolResult(ToolUseId("t0"), (Image(JsonObject({"type": "url", "url": "https://example.org"})),))
    messages = talk()
    messages[2] = Message("user", (shot,))
    rig = Rig(steps=[GOOD])
    rig.compact(job(messages, is_warm=False))
    sent = rig.provider.requests[0]
    assert not has_thinking(sent.messages)
    assert sent.messages[2].blocks[0] == ToolResult(ToolUseId("t0"), (Text("[image]"),))
    assert sent.breakpoints == ()


@pytest.mark.parametrize("model", [OLDER, NEWER])
@pytest.mark.parametrize("unsent", [0, 1])
def test_an_image_does_not_cost_the_warm_prefix(model: str, unsent: int) -> None:
    image = Image(JsonObject({"type": "url", "url": "https://example.org"}))
    messages = [*talk(), Message("assistant", "Well?"), Message("user", (Text("like this"), image))]
    rig = Rig(steps=[GOOD], settings=CompactSettings(blocks_enabled=False))
    rig.compact(job(messages, model, sent_messages=len(messages) - unsent))
    sent = rig.provider.requests[0]
    assert list(sent.messages[: len(messages)]) == messages
    assert sent.breakpoints


def test_a_part_that_is_cached_is_read_from_there_however_long_the_rest_is() -> None:
    rig = Rig(steps=[GOOD])
    rig.compact(job(talk(60), part=Part("up_to", 3), trigger="manual"))
    assert has_thinking(rig.provider.requests[0].messages), "the prefix as it is, and no stripped copy"


def test_a_cheaper_model_writes_the_summary_where_it_may() -> None:
    settings = CompactSettings(summary_models=("claude-haiku-5-5",))
    rig = Rig(steps=[GOOD], settings=settings)
    thread = JsonObject({"thinking": JsonObject({"type": "adaptive"})})
    wanted = job(talk(), is_warm=False)
    frame = replace(wanted.request.frame, params=thread)
    rig.compact(replace(wanted, request=replace(wanted.request, frame=frame)))
    sent = rig.provider.requests[0]
    assert sent.frame.model == "claude-haiku-5-5"
    assert sent.frame.params == EMPTY_OBJECT
    assert not has_thinking(sent.messages)


def test_the_oldest_rounds_are_dropped_to_cover_a_stated_overshoot() -> None:
    messages = talk()
    total = sum(count(messages))
    rig = Rig(steps=[PromptTooLong(tokens=total, limit=total * 3 // 4), GOOD])
    result = rig.compact(job(messages))
    assert (result.rung, result.calls) == ("trimmed", 2)
    first, second = rig.provider.requests
    assert sum(count(second.messages)) < total * 3 / 4
    assert second.messages[0].role == "user"
    assert second.messages[-2] is not messages[0]
    assert not has_thinking(second.messages), "thinking is signed over what is missing now"
    assert first.frame.system == second.frame.system
    assert "rounds did not fit" in texts(result.head)
    assert "Please mend the parser" in texts(result.head)


def test_without_a_figure_a_fifth_of_the_rounds_goes_each_time() -> None:
    rig = Rig(steps=[PromptTooLong(), PromptTooLong(), GOOD])
    assert rig.compact(job(talk())).rung == "trimmed"
    sizes = [len(request.messages) for request in rig.provider.requests]
    assert sizes[0] > sizes[1] > sizes[2]


def test_when_the_provider_insists_nobody_sends_the_whole_view_again() -> None:
    messages = talk()
    rig = Rig(steps=[GOOD])
    wanted = job(messages, trigger="reactive", overshoot=3_000)
    assert rig.compact(wanted).rung == "trimmed"
    assert sum(count(rig.provider.requests[0].messages)) < sum(count(messages)) - 3_000


def test_a_view_over_the_window_is_trimmed_before_it_is_sent() -> None:
    messages = talk()
    rig = Rig(steps=[GOOD])
    window = sum(count(messages)) - 4_000
    assert rig.compact(job(messages, window_tokens=window)).rung == "trimmed"
    assert sum(count(rig.provider.requests[0].messages)) < window


def test_a_trimmed_view_marks_its_frame_alone_since_nobody_goes_on_from_it() -> None:
    messages = talk()
    wanted = job(messages, window_tokens=sum(count(messages)) - 4_000)
    automatic = JsonObject({CACHE_CONTROL: JsonObject({"type": "ephemeral"})})
    marks = (Breakpoint("system", 0), Breakpoint("messages", len(messages) - 1))
    frame = replace(wanted.request.frame, params=automatic)
    rig = Rig(steps=[GOOD])
    rig.compact(replace(wanted, request=replace(wanted.request, frame=frame, breakpoints=marks)))
    (sent,) = rig.provider.requests
    assert sent.breakpoints == marks[:1]
    assert CACHE_CONTROL not in sent.frame.params


def test_without_a_provider_the_structural_notes_serve() -> None:
    heard = Rig()
    overflow = Compactor(None, CompactSettings(), emit=heard.heard.append)
    heard.overflow = overflow
    result = heard.compact(job(talk()))
    assert result.rung == "structural"
    assert STRUCTURAL.strip() in texts(result.head)
    assert result.kept


def test_a_summary_that_leaves_too_much_is_no_compaction() -> None:
    rig = Rig(steps=[f"<summary>{'far too many words ' * 9_000}</summary>"])
    result = rig.compact(job(talk()))
    assert result.rung == "structural"
    assert [event.rung for event in rig.heard if isinstance(event, RungFailed)] == ["summary"]


def test_a_round_that_fits_nowhere_is_clipped_with_its_results_shortened() -> None:
    messages = talk(3, words=30_000)
    result = Rig().compact(job(messages, structural=""))
    assert result.rung == "clip"
    assert result.tokens_after < 20_000
    assert isinstance(result.kept[0].blocks[-1], ToolUse)
    assert f"all of it is in {TRANSCRIPT}" in texts(result.kept)
    assert "were cut to fit the window" in texts(result.head)


def test_a_pasted_book_is_kept_as_its_beginning_and_a_file() -> None:
    stored: dict[str, str] = {}

    def spill(name: str, text: str) -> str | None:
        stored[name] = text
        return f"/spills/{name}"

    book = "It was a bright cold day. " * 8_000
    messages = [Message("user", book), *talk(4)[1:]]
    result = Rig(steps=[GOOD]).compact(job(messages, spill=spill))
    ((name, text),) = stored.items()
    assert text == book
    assert f"/spills/{name}" in texts(result.head)
    assert "It was a bright cold day." in texts(result.head)
    assert result.tokens_after < 20_000


def test_a_view_of_one_giant_message_can_still_be_made_to_fit() -> None:
    messages = [Message("user", "word " * 60_000)]
    result = Rig(steps=[PromptTooLong()]).compact(job(messages, structural=""))
    assert result.rung == "clip"
    assert result.tokens_after < 20_000
    assert result.kept == ()


def test_a_second_compaction_carries_on_what_the_first_carried() -> None:
    first = Rig(steps=[GOOD]).compact(job(talk()))
    more = [*first.view, Message("assistant", "On it."), Message("user", "Use tabs."), *talk(12)[1:]]
    second = Rig(steps=["<summary>" + "A second summary of all of it. " * 5 + "</summary>"]).compact(
        job(more)
    )
    said = collect_user_quotes(second.head, is_summary=[True])
    assert [item.text for item in said] == ["Please mend the parser, and keep its tests.", "Use tabs."]
    assert SUMMARY.strip() not in texts(second.head), "a new summary stands for the old one"


def test_a_clip_carries_the_last_summary_on() -> None:
    first = Rig(steps=[GOOD]).compact(job(talk()))
    more = [*first.view, *talk(20)[1:]]
    second = Rig(steps=[PromptTooLong()] * 3).compact(job(more, structural=""))
    assert second.rung == "clip"
    assert SUMMARY.strip() in texts(second.head)


def test_from_a_message_on_what_stands_before_it_is_unchanged() -> None:
    messages = talk()
    rig = Rig(steps=[GOOD])
    result = rig.compact(job(messages, part=Part("from", 10), trigger="manual"))
    assert result.head[:9] == tuple(messages[:9])
    assert all(one is other for one, other in zip(result.head[:9], messages[:9], strict=True))
    assert is_summary_head(result.head[9])
    assert result.before == 9
    assert result.kept == ()
    assert "only of the part that begins" in texts(rig.provider.requests[0].messages[-1:])
    assert "Please mend" not in texts(result.head[9:]), "those words are still in view"


def test_up_to_a_message_what_follows_is_kept() -> None:
    messages = talk()
    rig = Rig(steps=[GOOD])
    result = rig.compact(job(messages, part=Part("up_to", 31), trigger="manual"))
    assert result.kept == tuple(messages[31:])
    assert len(result.head) == 1
    assert len(rig.provider.requests[0].messages) == 32, "only what is summarised is sent, and the directive"


@pytest.mark.parametrize("index", [-1, 41, 99])
def test_a_part_must_lie_in_the_view(index: int) -> None:
    with pytest.raises(InputError, match="cannot part the view"):
        Rig().compact(job(talk(), part=Part("from", index)))


def test_nothing_before_the_first_round_can_be_summarised() -> None:
    with pytest.raises(InputError, match="nothing stands before"):
        Rig().compact(job(talk(), part=Part("up_to", 0)))


def test_by_hand_a_small_view_is_refused_before_a_model_is_asked() -> None:
    rig = Rig()
    with pytest.raises(InputError, match="nothing to compact yet: 17 tokens"):
        rig.compact(job(talk(0), trigger="manual"))
    assert rig.calls == 0


def test_a_compaction_never_makes_a_view_larger() -> None:
    messages = talk(12, words=60)
    rig = Rig(steps=[f"<summary>{'words upon words ' * 1_500}</summary>"])
    result = rig.compact(job(messages, trigger="manual"))
    assert result.rung == "structural"
    assert result.tokens_after < result.tokens_before


def test_what_is_switched_off_is_off_by_hand_too() -> None:
    with pytest.raises(CompactionStopped, match=r"compact\.enabled is off"):
        Rig(settings=CompactSettings(enabled=False)).compact(job(talk(), trigger="manual"))


@pytest.mark.parametrize(("window", "most"), [(None, 20_000), (64_000, 8_000), (16_000, 4_000)])
def test_a_summary_takes_no_more_than_its_share_of_the_window(window: int | None, most: int) -> None:
    rig = Rig(steps=[GOOD])
    rig.compact(job(talk(4), target=6_000, window_tokens=window))
    assert rig.provider.requests[0].frame.max_tokens == most


def test_a_fork_is_never_compacted() -> None:
    wanted = job(talk())
    with pytest.raises(InputError, match="a notes fork cannot be compacted"):
        Rig().compact(replace(wanted, request=replace(wanted.request, purpose="notes")))


def test_by_hand_a_view_with_nothing_new_is_refused() -> None:
    first = Rig(steps=[GOOD]).compact(job(talk()))
    with pytest.raises(InputError, match="nothing to compact"):
        Rig().compact(job(first.head, trigger="manual"))


def test_a_head_that_is_too_large_by_itself_is_made_shorter() -> None:
    first = Rig(steps=[f"<summary>{'many words ' * 5_000}</summary>"]).compact(job(talk(), target=30_000))
    rig = Rig()
    result = rig.compact(job(first.head, target=8_000, structural=""))
    assert (result.rung, rig.calls) == ("clip", 0)
    assert result.tokens_after < 8_000
    assert "Please mend the parser" in texts(result.head)


def test_counts_must_fit_the_view() -> None:
    with pytest.raises(InputError, match="3 counts for 41 messages"):
        Rig().compact(replace(job(talk()), counts=[1, 2, 3]))
