"""Statements that are found without a model, and remarks that are none."""

from __future__ import annotations

import pytest

from sevenfold.layers.memory.extraction.statements import (
    MAX_STATEMENT_CHARS,
    find_answer,
    find_recap,
    find_statements,
    is_agreement,
)


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ("Remember that deploys happen on Tuesdays only.", "asked", "Deploys happen on Tuesdays only."),
        ("please remember: the API budget is 500 a day", "asked", "The API budget is 500 a day"),
        ("Also, keep in mind that Anna owns billing.", "asked", "Anna owns billing."),
        ("Always run make lint before a commit.", "rule", None),
        ("Please never push straight to main.", "rule", None),
        ("From now on, answer in German.", "rule", None),
        ("Use pnpm, not yarn.", "rule", None),
        ("Please stop adding comments to the tests.", "rule", None),
        ("Don't mock the database in integration tests.", "rule", None),
        ("I'm a data scientist who is new to Rust.", "about you", None),
        ("I prefer terse answers without a summary.", "about you", None),
        ("My time zone is CET.", "about you", None),
        ("Bugs live in the Linear project INGEST.", "pointer", None),
        ("The latency dashboard is at https://grafana.example.com/d/api.", "pointer", None),
        ("Ask in #payments-oncall, the runbooks are in Notion.", "pointer", None),
        ("We decided to keep Postgres 14 until March.", "decision", None),
        ("Let's go with the event queue.", "decision", None),
        ("Amendment to the retry policy: the cap is 30 seconds.", "amendment", None),
        ("Two updates to the retry policy we settled a while back.", "amendment", None),
    ],
)
def test_a_statement_is_found(said: str, kind: str, text: str | None) -> None:
    found = find_statements(f"Thanks for the change. {said}")
    assert [item.kind for item in found] == [kind]
    assert found[0].text == (text or said.strip())


@pytest.mark.parametrize(
    "said",
    [
        "It always fails on the second run.",
        "The server never answers.",
        "Never mind.",
        "Should we always squash?",
        "What does the rule say?",
        "Add a test for the parser and run it.",
        "The README says to always use npm.",
        "Maybe we should keep the old cache.",
        "I think it must have been the linter.",
        "Fix the crash in the login form.",
        "Always!",
        "I noticed `parse` always calls `read` instead of `load`.",
        "Do you remember the name of the flag?",
        "",
    ],
)
def test_a_remark_is_no_statement(said: str) -> None:
    assert find_statements(said) == ()


def test_an_answer_settles_what_was_proposed() -> None:
    said = "No — only the leading zeros. Rows must end with CRLF. Keep the header row as it is."
    assert find_statements(said) == ()
    kinds = [item.kind for item in find_statements(said, is_answer=True)]
    assert kinds == ["correction", "decision", "decision"]


def test_an_answer_that_asks_settles_nothing() -> None:
    assert find_statements("Only the zeros have to stay? What about blanks?", is_answer=True) == ()


@pytest.mark.parametrize(
    ("answer", "is_one"),
    [
        ("Settled: retry any 5xx plus 429, at most 4 attempts, backoff capped at 60 seconds.", True),
        ("Some words first.\n\nFinal: rows end with CRLF, digits with a leading zero are text.", True),
        ("I will look at retry.py now and run the tests.", False),
        ("Understood.", False),
        ("Agreed: retry 5xx and 429, cap at 60 seconds, four attempts in total?", False),
    ],
)
def test_a_recap_is_where_everything_settled_is_said(answer: str, is_one: bool) -> None:
    assert bool(find_recap(answer)) is is_one


@pytest.mark.parametrize(
    ("own", "is_yes"), [("Exactly.", True), ("Right, and merge them.", True), ("No.", False)]
)
def test_agreement_is_heard(own: str, is_yes: bool) -> None:
    assert is_agreement(own) is is_yes


def test_a_short_answer_is_kept_with_its_question() -> None:
    assert (
        find_answer("Done. Which port does it use?", "always  8443")
        == "Which port does it use? — always 8443"
    )
    assert find_answer("I am done.", "always 8443") == ""
    assert find_answer("Which port does it use?", "is it 8443?") == ""


def test_a_question_may_be_as_long_as_a_statement_and_no_longer() -> None:
    question = f"Which port {'x' * (MAX_STATEMENT_CHARS - len('Which port ?'))}?"
    assert len(question) == MAX_STATEMENT_CHARS
    assert find_answer(question, "always 8443") == f"{question} — always 8443"
    assert find_answer(f"{question[:-1]}x?", "always 8443") == ""
