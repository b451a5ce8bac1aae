"""What a memory states, and whether another text states it too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sevenfold.core.text.facts import FactIndex, covers_fact, parse_fact, split_facts


def says(said: str, fact: str, *, is_strict: bool = False) -> bool:
    return covers_fact(parse_fact(said), parse_fact(fact), is_strict=is_strict)


def test_sentences_items_code_and_rows_are_facts_and_headings_are_not() -> None:
    body = (
        "# Release\n\nWe release on\nThursdays. The branch is main; tags are signed.\n\n"
        "- Run `make check`.\n  It takes a minute.\n* **Why:** it broke once\n---\n"
        "```sh\ngit push --tags\n```\n| step | who |\n|---|---|\n| tag | Ann |\n"
    )
    assert [fact.text for fact in split_facts(body)] == [
        "We release on Thursdays.",
        "The branch is main;",
        "tags are signed.",
        "Run `make check`.",
        "It takes a minute.",
        "**Why:** it broke once",
        "git push --tags",
        "step | who",
        "tag | Ann",
    ]


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Always run `make check` before you push.", "always run `make check` before pushing"),
        ("The staging server is reached by VPN, as all others are.", "Staging servers are reached by VPN"),
        ("On Fridays never deploy to production.", "Do not deploy to production on Fridays."),
        ("We decided on 2026-11-14 to use SQLite.", "On 2026-11-14 we decided to use SQLite"),
        ("The on-call engineer deploys the billing service from main on Thursdays by hand",
         "The on-call engineer deploys the billing service from main on Thursdays manually"),
    ],
)  # fmt: skip
def test_a_fact_in_nearly_the_same_words_is_covered(said: str, fact: str) -> None:
    assert says(said, fact)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("The port is 9090.", "The port is 8080."),
        ("Do not use tabs.", "Use tabs."),
        ("Use tabs.", "Never use tabs."),
        ("Push without a review.", "Never push without a review."),
        ("Always deploy without a review.", "Never deploy."),
        ("Push to main, and never wait.", "Never push to main."),
        ("Deploy to production with helm.", "Deploy to staging with helm."),
        ("Run the linter after the tests.", "Run the linter before the tests."),
        ("See `src/a.py`.", "See `src/b.py`."),
        ("The server calls the client.", "The client calls the server."),
        ("The index is rebuilt by parseHeader.", "The index is rebuilt by parseBody."),
    ],
)
def test_a_number_a_name_or_a_not_that_differs_is_another_fact(said: str, fact: str) -> None:
    assert not says(said, fact)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Use tabs, not spaces.", "Use spaces, not tabs."),
        ("Use `pnpm`, not `npm`.", "Use `npm`, not `pnpm`."),
        ("Retry 5 times after 10 seconds.", "Retry 10 times after 5 seconds."),
        ("Retry 5 times after 10 seconds.", "Retry 5 times after 5 seconds."),
        ("Deploy staging before production.", "Deploy production before staging."),
        ("Move from mysql to postgres.", "Move from postgres to mysql."),
        ("The API replaces the SDK.", "The SDK replaces the API."),
        ("Never push to main without a tag.", "Never push a tag without main."),
    ],
)
def test_the_same_words_the_other_way_round_are_another_fact(said: str, fact: str) -> None:
    assert not says(said, fact)
    assert not says(fact, said)
    assert says(said, said)


def test_what_was_at_the_end_may_come_first() -> None:
    assert says(
        "Do not deploy the billing service on Fridays.", "On Fridays do not deploy the billing service."
    )
    assert says("Retry 5 times after 10 seconds.", "After 10 seconds retry 5 times.")


def test_strictly_no_word_may_be_missing() -> None:
    said = "The on-call engineer deploys the billing service from main on Thursdays by hand"
    fact = "The on-call engineer deploys the billing service from main on Thursdays manually"
    assert says(said, fact)
    assert not says(said, fact, is_strict=True)


def test_the_shelf_says_which_memories_state_a_fact() -> None:
    shelf = FactIndex()
    shelf.add("a.md", split_facts("Tags are signed. The branch is main."))
    shelf.add("b.md", split_facts("- the branch is main"))
    assert shelf.find(parse_fact("The branch is main.")) == ("a.md", "b.md")
    assert shelf.find(parse_fact("The branch is not main.")) == ()
    assert shelf.find(parse_fact("Nobody knows.")) == ()


TOKENS = (
    "use",
    "port",
    "8080",
    "not",
    "deploy",
    "server",
    "`x`",
    "before",
    "client",
    "daily",
    ".",
    "\n- ",
    "it",
)


@given(some.lists(some.sampled_from(TOKENS), max_size=25).map(" ".join))
def test_every_text_covers_its_own_facts_and_a_shelf_finds_them(text: str) -> None:
    facts = split_facts(text)
    shelf = FactIndex()
    shelf.add("it.md", facts)
    for fact in facts:
        assert covers_fact(fact, fact, is_strict=True)
        assert shelf.find(fact, is_strict=True) == ("it.md",)


@given(some.lists(some.sampled_from(TOKENS), max_size=25).map(" ".join), some.sampled_from(TOKENS))
def test_the_shelf_finds_whatever_a_look_at_all_would_find(text: str, word: str) -> None:
    facts = split_facts(text)
    shelf = FactIndex()
    for number, fact in enumerate(facts):
        shelf.add(str(number), [fact])
    asked = parse_fact(f"deploy {word} server")
    expected = {str(number) for number, fact in enumerate(facts) if covers_fact(fact, asked)}
    assert asked.is_empty or set(shelf.find(asked)) == expected
