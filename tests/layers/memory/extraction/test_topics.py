"""Statements become memories: alone, or as what a conversation decided."""

from __future__ import annotations

from sevenfold.core.memories import read_memory, write_memory
from sevenfold.layers.memory.extraction.policy import (
    AGREED_LABEL,
    EARLIER_LABEL,
    Topic,
    UserTurn,
    apply_turn,
    render_topic,
    retarget_topic,
)

PROBLEM = "The nightly export drops the leading zeros of part numbers."
PROPOSAL = "I will quote every field of the export, so that part numbers stay text."
CORRECTION = (
    "No — only digit strings with leading zeros. Rows of the export must end with CRLF. "
    "Quotes have to be doubled."
)


def decided() -> Topic:
    first = apply_turn(Topic(), UserTurn("", PROBLEM, PROPOSAL))
    return apply_turn(first.topic, UserTurn(PROPOSAL, CORRECTION)).topic


def test_a_rule_is_a_memory_of_its_own() -> None:
    found = apply_turn(Topic(), UserTurn("", "Fix the login. And please always run make lint first."))
    (draft,) = found.alone
    assert (draft.kind, draft.body) == ("feedback", "And please always run make lint first.")
    assert draft.key == "run-lint-first.md"
    assert found.topic.key == ""


def test_what_somebody_asks_to_remember_is_of_the_kind_it_is() -> None:
    said = "Remember that I'm a data scientist. Remember that bugs live in Linear. Remember the code is 7 4."
    kinds = [draft.kind for draft in apply_turn(Topic(), UserTurn("", said)).alone]
    assert kinds == ["user", "reference", "project"]


def test_a_problem_alone_decides_nothing() -> None:
    found = apply_turn(Topic(), UserTurn("", PROBLEM, PROPOSAL))
    assert (found.alone, found.has_decided) == ((), False)
    assert found.topic.opening == PROBLEM


def test_answers_decide_under_the_problem_they_answer() -> None:
    topic = decided()
    draft = render_topic(topic)
    assert draft.key == "nightly-export-drops-leading-zeros-part.md"
    assert draft.description == PROBLEM
    assert "- No — only digit strings with leading zeros." in draft.body
    assert f"**Why:** {PROBLEM}" in draft.body


def test_the_next_answer_goes_into_the_same_memory_once() -> None:
    topic = decided()
    recap = "Settled: digit strings with leading zeros become text, rows of the export end with CRLF."
    said = "Rows of the export must end with CRLF. The export must keep its header row."
    found = apply_turn(topic, UserTurn("And the header of the export?", said, recap))
    assert found.has_decided
    draft = render_topic(found.topic)
    assert draft.key == topic.key
    assert draft.body.count("CRLF") == 2
    assert f"{AGREED_LABEL}{recap}" in draft.body
    assert "header row" in draft.body


def test_another_matter_is_another_memory() -> None:
    topic = decided()
    other = apply_turn(topic, UserTurn("Done.", "Now the login page: sessions expire while people type."))
    assert other.topic.key == ""
    proposal = "Sessions of the login page could be renewed on every key."
    found = apply_turn(
        other.topic,
        UserTurn(proposal, "No — sessions must renew once a minute. We decided so with the ops team."),
    )
    assert found.has_decided
    assert found.topic.key == "login-page-sessions-expire-people-type.md"


def test_an_amendment_stands_above_what_it_amends() -> None:
    old = read_memory("export.md", write_memory("export", "x", "project", render_topic(decided()).body))
    said = "Amendment to the export rule: part numbers must be quoted, the importer was replaced."
    found = apply_turn(Topic(), UserTurn("", said))
    assert found.amends
    topic = retarget_topic(found.topic, old)
    draft = render_topic(topic)
    assert draft.key == "export.md"
    assert draft.body.index("must be quoted") < draft.body.index(EARLIER_LABEL) < draft.body.index("CRLF")


def test_a_full_recap_takes_the_place_of_what_was_said_before() -> None:
    old = read_memory("export.md", write_memory("export", "x", "project", render_topic(decided()).body))
    said = "Amendment to the export rule: part numbers must be quoted, the importer was replaced."
    recap = "Amended rule, superseding the old one: part numbers are quoted, rows end with CRLF."
    draft = render_topic(retarget_topic(apply_turn(Topic(), UserTurn("", said, recap)).topic, old))
    assert EARLIER_LABEL not in draft.body
    assert recap in draft.body


def test_one_answer_about_the_task_decides_nothing_yet() -> None:
    first = apply_turn(Topic(), UserTurn("", PROBLEM, PROPOSAL))
    found = apply_turn(first.topic, UserTurn(PROPOSAL, "No — only run the tests of the export."))
    assert not found.has_decided
    sure = apply_turn(found.topic, UserTurn("All right.", "We decided to keep the header row of the export."))
    assert sure.has_decided
    assert "header row" in render_topic(sure.topic).body
