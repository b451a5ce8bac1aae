"""The user's words, word for word, through any number of compactions."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Document, Image, Message, Text, ToolResult, ToolUseId
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.compaction.summary import (
    MIN_QUOTE_TOKENS,
    SummaryHead,
    UserQuote,
    collect_user_quotes,
    extract_user_text,
    is_summary_head,
    plan_quotes,
    render_summary_head,
    shorten_quote,
)
from sevenfold.layers.forks.policy import FORK_MARK

SETTINGS = CompactSettings(said_tokens=100, said_total_tokens=1_000)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)


def count(text: str) -> int:
    return len(text) // 4 + 1


def collect(*messages: Message) -> tuple[UserQuote, ...]:
    return collect_user_quotes(messages, is_summary=[is_summary_head(message) for message in messages])


@given(st.lists(WORDS.filter(lambda text: not text.lstrip().startswith(("<system", FORK_MARK))), max_size=6))
def test_what_was_said_survives_two_compactions_unchanged(texts: list[str]) -> None:
    said = collect(*(Message("user", text) for text in texts))
    assert [item.text for item in said] == texts
    once = render_summary_head(SummaryHead(strategy="summary", summary="A summary of it all.", said=said))
    twice = render_summary_head(SummaryHead(strategy="structural", summary="Another.", said=collect(once)))
    assert collect(twice) == said


def test_a_pointer_to_a_long_message_is_carried_on() -> None:
    said = (UserQuote("It begins", 'only its beginning; all of it is in /a "b".txt'), UserQuote("Short."))
    assert collect(render_summary_head(SummaryHead(strategy="clip", summary="", said=said))) == said


def test_results_reminders_directives_and_attachments_are_nobodys_words() -> None:
    result = Message("user", (ToolResult(ToolUseId("a"), "output"), Text("Stop, look at this.")))
    reminder = Message("user", "<system-reminder>\nThe todo list is empty.\n</system-reminder>")
    directive = Message("user", f"{FORK_MARK}\nSum up.")
    spoken = [Message("user", "Hello."), Message("assistant", "Hi."), result, reminder, directive]
    assert [item.text for item in collect(*spoken)] == ["Hello.", "Stop, look at this."]
    attached = collect_user_quotes(spoken, is_summary=[False] * 5, attachments={0})
    assert [item.text for item in attached] == ["Stop, look at this."]


def test_media_in_a_message_is_named() -> None:
    source = JsonObject({"type": "url", "url": "https://example.org/a.png"})
    message = Message("user", (Text("See:"), Image(source), Document(source)))
    assert extract_user_text(message) == "See:\n[image]\n[document]"


def test_a_message_over_its_own_limit_is_shortened_to_it() -> None:
    said = (UserQuote("short"), UserQuote("word " * 200))
    plan = plan_quotes(said, count, SETTINGS)
    assert (plan.fold, plan.max_tokens, plan.long) == (0, 100, (1,))
    short = shorten_quote(said[1], plan.max_tokens, count, "all of it is in /s.txt")
    assert count(short.text) <= 101
    assert said[1].text.startswith(short.text)
    assert short.pointer == "all of it is in /s.txt"


def test_where_all_of_it_is_does_not_change_when_it_is_shortened_again() -> None:
    once = shorten_quote(UserQuote("word " * 500), 100, count, "in /first")
    assert shorten_quote(once, 20, count, "in /second").pointer == "in /first"


@given(st.lists(st.integers(1, 3_000), max_size=40))
def test_all_messages_together_stay_within_their_limit(sizes: list[int]) -> None:
    said = tuple(UserQuote("x" * size) for size in sizes)
    plan = plan_quotes(said, count, SETTINGS)
    shown = [
        min(count(item.text), plan.max_tokens) if at in plan.long else count(item.text)
        for at, item in enumerate(said)
    ][plan.fold :]
    assert sum(shown) <= SETTINGS.said_total_tokens
    assert all(size <= plan.max_tokens for size in shown)


def test_thousands_of_messages_are_folded_from_the_oldest() -> None:
    said = tuple(UserQuote(f"message {number} " * 10) for number in range(500))
    plan = plan_quotes(said, count, SETTINGS)
    assert plan.max_tokens == MIN_QUOTE_TOKENS
    assert 0 < plan.fold < 500
    assert min(plan.long) == plan.fold
    roomy = plan_quotes(said, count, replace(SETTINGS, said_total_tokens=100_000))
    assert roomy.fold == 0
