"""What a sentence is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.text.stems import (
    find_content_stems,
    find_exact_words,
    find_stems_uncached,
    is_negated,
    make_slug,
    split_clauses,
    split_sentences,
    truncate_words,
)
from sevenfold.store.files.folder import check_memory_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("running tests", "run the test"),
        ("capped retries", "cap each retry"),
        ("parse_header", "parseHeader"),
        ("Deploying policies", "deploy policy"),
        ("ｄｅｐｌｏｙ", "deploy"),
        ("de\u200bploy", "deploys"),
    ],
)
def test_the_same_word_in_another_form_is_the_same(one: str, other: str) -> None:
    assert find_content_stems(one) == find_content_stems(other)


def test_what_must_be_the_same_to_the_letter_is_found() -> None:
    text = "Run --fast on src/app.py with parse_flag at https://x.example/a, v1.2, 30 s, #duty, a@b.example."
    assert find_exact_words(text) == {
        *("--fast", "src/app.py", "parse_flag", "https://x.example/a", "v1.2", "30", "#duty", "a@b.example")
    }
    assert find_exact_words("Since 2026-11-15 it is so.") == frozenset()


@pytest.mark.parametrize(
    ("text", "is_no"),
    [
        ("Never push.", True),
        ("Don’t push.", True),
        ("Push without review.", True),
        ("Push.", False),
        ("Notify.", False),
    ],
)
def test_a_no_is_heard(text: str, is_no: bool) -> None:
    assert is_negated(text) is is_no


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Keep lines below 100. Describe why in a comment.", 2),
        ("We are on Python 3. Mark slow tests.", 2),
        ("Use node 20. Separate the tests.", 2),
        ("Ab dem 3. März gilt das.", 1),
        ("Senast den 12. augusti är det klart.", 1),
        ("Termin to 1. maja 2027.", 1),
    ],
)
def test_a_number_before_a_month_ends_no_sentence_and_before_other_words_it_does(
    text: str, count: int
) -> None:
    assert len(split_sentences(text)) == count


def test_sentences_lose_bullets_and_labels() -> None:
    assert split_sentences("- one thing\n\n**Why:** it broke. Twice!\n> quoted\n---") == (
        *("one thing", "it broke.", "Twice!", "quoted"),
    )
    assert split_clauses("run it, then stop and look") == ("run it", "stop", "look")


@given(st.text())
def test_any_text_makes_a_name_that_a_memory_can_have(text: str) -> None:
    assert check_memory_key(f"{make_slug(text)}.md")


@given(st.text(), st.integers(10, 200))
def test_a_cut_text_fits(text: str, limit: int) -> None:
    assert len(truncate_words(text, limit)) <= limit


def test_a_text_that_is_looked_at_once_has_the_same_stems() -> None:
    text = "Run the tests before you push."
    assert find_stems_uncached(text)
    assert find_stems_uncached(text) == find_content_stems(text)
