"""Markdown in pieces comes out as the same blocks, each as soon as it is complete."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.agent.tui.render.markdown_stream import (
    MAX_CODE_LINES,
    CodeBlock,
    MarkdownBlock,
    MarkdownStream,
    ProseBlock,
)
from sevenfold.agent.tui.text_renderer import TextRenderer
from tests.examples import up_to

LINES = st.sampled_from(
    [
        "",
        "a word",
        "# head",
        "- item",
        "  more of it",
        "```python",
        "```",
        "~~~",
        "x = 1",
        "| a | b |",
        "1. one",
    ]
)
TEXTS = st.lists(LINES, max_size=40).map("\n".join)


def cut(text: str) -> tuple[MarkdownBlock, ...]:
    stream = MarkdownStream()
    return (*stream.feed(text), *stream.end())


def words(text: str) -> list[str]:
    """The lines that say something, fences apart."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("```", "~~~"))]


@given(TEXTS, st.lists(st.integers(1, 9), max_size=60))
def test_blocks_do_not_depend_on_the_pieces_they_came_in(text: str, sizes: list[int]) -> None:
    stream, at, got = MarkdownStream(), 0, list[MarkdownBlock]()
    for size in sizes:
        got += stream.feed(text[at : at + size])
        at += size
    got += [*stream.feed(text[at:]), *stream.end()]
    assert tuple(got) == cut(text)


@given(TEXTS)
def test_no_line_is_lost_and_none_changes_its_place(text: str) -> None:
    # A fence inside code of the other kind is code: texts that mix them are told apart elsewhere.
    single = text.replace("~~~", "```")
    told = [line for block in cut(single) for line in words(block.text)]
    assert told == words(single)


def test_a_paragraph_is_complete_with_its_empty_line() -> None:
    stream = MarkdownStream()
    assert stream.feed("The cat sat") == ()
    assert stream.growing(80) == ProseBlock("The cat")
    assert stream.feed(" down.\n\nThen") == (ProseBlock("The cat sat down."),)
    assert stream.growing(80) == ProseBlock("Then")


def test_a_list_with_gaps_stays_one_block() -> None:
    assert cut("- one\n\n- two\n\n  still two\n\nover") == (
        ProseBlock("- one\n\n- two\n\n  still two"),
        ProseBlock("over"),
    )


def test_a_fence_inside_a_longer_fence_is_code() -> None:
    assert cut("````md\n```\nx\n```\n````\nend") == (CodeBlock("```\nx\n```", "md"), ProseBlock("end"))


def test_long_code_comes_in_parts_that_say_so() -> None:
    lines = [f"line {number}" for number in range(MAX_CODE_LINES + 2)]
    first, last = cut("```\n" + "\n".join(lines) + "\n```")
    assert isinstance(first, CodeBlock)
    assert isinstance(last, CodeBlock)
    assert (first.is_first, first.is_last, last.is_first, last.is_last) == (True, False, False, True)
    assert first.text.splitlines() + last.text.splitlines() == lines


def test_code_that_never_ends_is_shown_at_the_end() -> None:
    assert cut("```py\nx = 1") == (CodeBlock("x = 1", "py"),)


def test_code_that_is_growing_is_known_as_code() -> None:
    stream = MarkdownStream()
    stream.feed("```py\nx = 1\ny")
    assert stream.growing(80) == CodeBlock("x = 1\ny", "py", is_last=False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The ca", "The"),
        ("The cat ", "The cat"),
        ("The cat\nsa", "The cat"),
        ("- ca", "-"),
        ("T", "T"),
        ("See " + "x" * 21, "See " + "x" * 21),
        ("他说 世界和平", "他说 世界和平"),
        ("```\nx = on", "x ="),
        ("```\nx", "x"),
    ],
)
def test_half_a_word_is_shown_only_where_it_cannot_move(text: str, shown: str) -> None:
    stream = MarkdownStream()
    stream.feed(text)
    growing = stream.growing(20)
    assert growing is not None
    assert growing.text.rstrip() == shown


PHRASES = st.sampled_from(
    ["word", "**two words**", "`some code`", "[a link](http://a.b)", "- x", "so it is."]
)


@given(st.lists(PHRASES, min_size=60, max_size=90), st.sampled_from([20, 40]))
@settings(max_examples=up_to(15))
def test_a_long_paragraph_settles_by_rows_and_reads_as_in_one_piece(phrases: list[str], columns: int) -> None:
    text, renderer, most = " ".join(["It", *phrases]), TextRenderer(columns), 12
    stream, shown = MarkdownStream(), list[str]()
    for at in range(0, len(text), 7):
        stream.feed(text[at : at + 7])
        if settled := stream.settle(renderer, most):
            shown.append(renderer.markdown(settled))
            growing = stream.growing(columns)
            assert growing is None or renderer.markdown(growing).count("\n") < most
    shown += [renderer.markdown(block) for block in stream.end()]
    assert len(shown) > 1
    assert "\n".join(shown) == renderer.markdown(ProseBlock(text))


def test_a_long_list_settles_by_items() -> None:
    stream, renderer = MarkdownStream(), TextRenderer(40)
    stream.feed("".join(f"- item {number}\n" for number in range(20)))
    settled = stream.settle(renderer, 12)
    assert settled is not None
    assert settled.text.endswith("item 18")
    assert stream.end() == (ProseBlock("- item 19", is_first=False),)


def test_a_long_table_waits_for_its_end() -> None:
    stream = MarkdownStream()
    stream.feed("| a |\n|---|\n" + "| 1 |\n" * 30)
    assert stream.settle(TextRenderer(40), 12) is None


def test_single_line_breaks_are_kept() -> None:
    assert TextRenderer().markdown(ProseBlock("one\ntwo  \nthree")).split("\n") == ["one", "two", "three"]
