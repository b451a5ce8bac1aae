"""What is asked of a summariser, and which of its answers count."""

from __future__ import annotations

import pytest

from sevenfold.core.messages import Message, Text
from sevenfold.layers.compaction.policy import COMPACTION_STRATEGIES, CompactionStrategy
from sevenfold.layers.compaction.summary import (
    SummaryHead,
    UserQuote,
    find_carried_summary,
    is_summary_head,
    parse_summary,
    render_summary_directive,
    render_summary_head,
    render_summary_scope,
)
from sevenfold.layers.compaction.summary_methods import read_summary_prompts

BODY = "The user wants the parser mended. It reads a line and splits it at the first colon, which fails."


@pytest.mark.parametrize(
    "answer",
    [
        f"<analysis>First this.</analysis>\n<summary>\n{BODY}\n</summary>",
        f"<summary>{BODY}</summary>",
        f"Here it is.\n<summary>{BODY}</summary>\nGood luck.",
        f"<analysis>It goes into <summary> tags.</analysis><summary>{BODY}</summary>",
    ],
    ids=["whole", "no scratchpad", "with talk", "tag in the scratchpad"],
)
def test_the_summary_is_found_and_the_scratchpad_dropped(answer: str) -> None:
    parsed = parse_summary(answer)
    assert (parsed.summary, parsed.problem) == (BODY, "")


def test_a_summary_that_quotes_its_own_tags_is_kept_whole() -> None:
    body = f"{BODY} The prompt ends with </summary> and </analysis>, which broke the parser."
    assert parse_summary(f"<analysis>x</analysis><summary>{body}</summary>").summary == body


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        (BODY, "no <summary>"),
        (f"<analysis>{BODY}", "broke off before"),
        (f"<analysis>x</analysis><summary>{BODY}", "not closed"),
        ("<summary></summary>", "had 0 characters"),
        ("<summary>All done.</summary>", "had 9 characters"),
        (f"{BODY}</summary>", "no <summary>"),
    ],
    ids=["nothing", "blank", "no tags", "scratchpad alone", "cut off", "no text", "too short", "no opening"],
)
def test_an_answer_that_is_not_whole_is_no_summary(answer: str, problem: str) -> None:
    parsed = parse_summary(answer)
    assert parsed.summary == ""
    assert problem in parsed.problem


def test_the_directive_asks_for_nine_sections_and_no_tools() -> None:
    directive = render_summary_directive(read_summary_prompts().summary)
    for number in range(1, 10):
        assert f"## {number}. " in directive
    assert "<analysis>" in directive
    assert "</summary>" in directive
    assert "Call no tool" in directive
    assert "{" not in directive


def test_a_users_instructions_are_added_as_they_are() -> None:
    for template in (read_summary_prompts().summary, read_summary_prompts().block):
        directive = render_summary_directive(template, instructions="Focus on {scope} and \\1 of the tests.")
        assert "Focus on {scope} and \\1 of the tests." in directive


def test_a_part_is_named_by_the_message_it_begins_with() -> None:
    assert "“Now the tests.”" in render_summary_directive(
        read_summary_prompts().summary, scope=render_summary_scope("Now  the\ntests.")
    )
    assert render_summary_scope("") == ""


@pytest.mark.parametrize("rung", COMPACTION_STRATEGIES)
def test_every_rung_has_its_own_opening_that_is_known_again(rung: CompactionStrategy) -> None:
    head = render_summary_head(
        SummaryHead(
            strategy=rung,
            summary=BODY,
            said=(UserQuote("Mend it."),),
            transcript="/t.jsonl",
            remark="Two rounds are missing.",
        )
    )
    assert is_summary_head(head)
    text = "\n".join(block.text for block in head.blocks if isinstance(block, Text))
    for part in ("/t.jsonl", "Mend it.", "Two rounds are missing.", "Go on with the work"):
        assert part in text
    assert find_carried_summary([head]) == ("" if rung == "block" else BODY)


def test_what_is_restored_stands_between_the_words_and_the_last_line() -> None:
    head = render_summary_head(
        SummaryHead(strategy="summary", summary=BODY, said=(UserQuote("Mend it."),)), [Text("restored")]
    )
    texts = [block.text for block in head.blocks if isinstance(block, Text)]
    assert texts[2] == "restored"
    assert texts[3].startswith("Go on")


def test_other_messages_are_no_heads() -> None:
    assert not is_summary_head(Message("user", "Hello."))
    assert not is_summary_head(
        Message("assistant", render_summary_head(SummaryHead(strategy="summary", summary=BODY)).content)
    )
    assert find_carried_summary([Message("user", "Hello.")]) == ""
