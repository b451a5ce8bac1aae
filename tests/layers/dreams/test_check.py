"""What a dream may publish: no fact lost without a reason, none out of nowhere, nothing over the budget."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sevenfold.core.memories import Origin, read_memory, write_memory
from sevenfold.layers.dreams.check import (
    DreamCheck,
    RemovalReason,
    check_dream,
    explain_over_budget,
    find_memory_fault,
    restrict_descriptions,
)
from sevenfold.layers.dreams.policy import DreamMemory, DreamSettings

DAY = date(2026, 11, 15)
PORT = "The staging database listens on port 5432."
TAGS = "Release tags are signed by Ann."
VPN = "Staging is reached by VPN only."


def text(body: str, name: str = "topic") -> str:
    return write_memory(name, f"about {name}", "project", body)


def kept(**bodies: str) -> dict[str, DreamMemory]:
    return {
        f"{name}.md": DreamMemory(
            read_memory(f"{name}.md", text(body, name)), DAY, Origin(who="user", why="test")
        )
        for name, body in bodies.items()
    }


def after(**bodies: str) -> dict[str, str]:
    return {f"{name}.md": text(body, name) for name, body in bodies.items()}


def check(
    before: dict[str, DreamMemory],
    then: dict[str, str],
    *reasons: RemovalReason,
    logs: dict[str, str] | None = None,
) -> DreamCheck:
    return check_dream(before, then, reasons, DAY, logs or {})


def test_a_fact_that_another_memory_still_says_may_go() -> None:
    found = check(kept(a=PORT, b=f"{PORT} {TAGS}"), after(b=f"{PORT} {TAGS}"))
    assert (found.changed, found.refused, found.losses) == (("a.md",), {}, ())
    assert found.sources == {"a.md": {"b.md"}}


def test_a_fact_that_vanishes_without_a_reason_is_refused() -> None:
    found = check(kept(a=f"{PORT} {TAGS}"), after(a=PORT))
    assert "signed by Ann" in found.refused["a.md"]
    assert found.without(found.refused) == frozenset()


def test_a_number_that_changes_is_a_fact_that_vanishes() -> None:
    assert check(kept(a=PORT), after(a=PORT.replace("5432", "6543"))).refused


@pytest.mark.parametrize(
    ("reason", "refusal"),
    [
        (RemovalReason(key="a.md", why="stale", note="moved in 2025"), ""),
        (RemovalReason(key="a.md", why="stale"), "and not why"),
        (RemovalReason(key="a.md", why="contradicted", of="b.md", fact=PORT), ""),
        (RemovalReason(key="a.md", why="contradicted", of="c.md", fact=PORT), "on another matter"),
        (RemovalReason(key="a.md", why="contradicted", of="gone.md", fact=PORT), "no such memory"),
        (RemovalReason(key="a.md", why="duplicate", of="b.md", fact=PORT), "does not say it"),
        (RemovalReason(key="a.md", why="reworded", of="d.md", fact=PORT), ""),
        (RemovalReason(key="a.md", why="stale", fact=TAGS, note="another fact"), "no reason was given"),
        (RemovalReason(key="b.md", why="stale", note="another memory"), "no reason was given"),
    ],
)
def test_a_reason_has_to_hold(reason: RemovalReason, refusal: str) -> None:
    others = {
        "b": "The staging database listens on port 6543.",
        "c": TAGS,
        "d": "For the staging database use port 5432 as the others do.",
    }
    found = check(kept(a=PORT, **others), after(**others), reason)
    assert refusal in found.refused.get("a.md", "")
    assert bool(found.refused) == bool(refusal)


def test_only_what_is_really_lost_counts_as_a_loss() -> None:
    before = kept(a=PORT, b=TAGS)
    assert (
        check(before, after(b=TAGS), RemovalReason(key="a.md", why="stale", note="gone")).losses[0].fact
        == PORT
    )
    assert not check(
        kept(a=PORT, b=PORT), after(b=PORT), RemovalReason(key="a.md", why="duplicate", of="b.md")
    ).losses


def test_a_fact_out_of_nowhere_is_told_and_one_from_a_log_is_not() -> None:
    found = check(kept(a=PORT), after(a=f"{PORT} Deploy keys live in the vault of Bob."))
    assert found.gained == {"a.md": ("Deploy keys live in the vault of Bob.",)}
    told = check(kept(a=PORT), after(a=f"{PORT} {TAGS}"), logs={"logs/a.md": f"- 10:00 {TAGS}"})
    assert told.gained == {}
    assert told.sources == {"a.md": {"logs/a.md"}}


def test_facts_in_other_words_of_what_was_merged_are_not_new() -> None:
    merged = "The staging database (port 5432) is reached by VPN only."
    reasons = (
        RemovalReason(key="a.md", why="reworded", of="b.md"),
        RemovalReason(key="b.md", why="reworded", of="b.md"),
    )
    found = check(kept(a=PORT, b=VPN), after(b=merged), *reasons)
    assert (found.gained, found.refused) == ({}, {})
    assert found.sources["b.md"] == {"a.md"}


def test_a_not_cannot_be_taken_out_as_other_words() -> None:
    never, always = "Never push to main without a review.", "Push to main without a review."
    found = check(
        kept(a=never), after(a=always), RemovalReason(key="a.md", why="reworded", of="a.md", fact=never)
    )
    assert "does not say it" in found.refused["a.md"]
    assert found.gained == {"a.md": (always,)}


def test_what_stands_in_quite_other_words_counts_as_let_go_of() -> None:
    before = kept(a=PORT, b=VPN)
    reason = RemovalReason(key="a.md", why="reworded", of="b.md")
    said = "Staging is reached by VPN only, its data at port 5432."
    assert [loss.key for loss in check(before, after(b=said), reason).losses] == ["a.md"]


def test_what_is_put_aside_speaks_for_itself_alone() -> None:
    before = kept(a=PORT, b=f"{PORT} {TAGS}")
    aside = {"archive/b.md": before["b.md"].memory.text}
    assert "would be gone" in check(before, aside).refused["a.md"]
    assert "b.md" not in check(before, {**after(a=PORT), **aside}).refused


def test_dates_made_absolute_lose_and_gain_nothing() -> None:
    found = check(kept(a="We moved to Postgres yesterday."), after(a="We moved to Postgres on 2026-11-14."))
    assert (found.changed, found.refused, found.gained) == (("a.md",), {}, {})


def test_a_rule_that_would_no_longer_apply_is_a_fact_that_vanishes() -> None:
    ruled = write_memory("a", "d", "feedback", PORT, applies_to=("tool:shell",))
    before = {"a.md": DreamMemory(read_memory("a.md", ruled), DAY, Origin(who="user", why="test"))}
    assert "tool:shell" in check(before, after(a=PORT)).refused["a.md"]


def test_files_between_which_facts_moved_stay_together() -> None:
    before = kept(a=PORT, b=TAGS, c=VPN, d=VPN, e="Bob is on call in December.")
    then = after(b=f"{TAGS} {PORT}", d=VPN, e="Bob is on call in December!")
    found = check(before, then)
    assert found.without(["a.md"]) == {"c.md", "e.md"}
    assert found.without(["b.md"]) == {"c.md", "e.md"}
    # d.md is not changed, and c.md may only go while d.md says what it said.
    assert found.without(["d.md"]) == {"a.md", "b.md", "e.md"}
    assert found.find_sources(["c.md"]) == {"d.md"}


def test_letting_go_of_more_than_the_budget_is_refused_as_a_whole() -> None:
    bodies = {f"m{number}": f"Service number {number} is owned by team {number}." for number in range(10)}
    before, settings = kept(**bodies), DreamSettings(drop_percent=20)
    gone = [f"m{number}" for number in range(3)]
    reasons = [RemovalReason(key=f"{name}.md", why="stale", note="closed") for name in gone]
    found = check(
        before, after(**{name: body for name, body in bodies.items() if name not in gone}), *reasons
    )
    assert not found.refused
    assert "3 of 10 facts" in explain_over_budget(found, found.without(()), settings)
    assert explain_over_budget(found, found.without(["m0.md"]), settings) == ""


def test_what_is_put_aside_counts_as_let_go_of() -> None:
    before = kept(a=PORT, b=TAGS, c=VPN)
    then = {f"archive/{key}": item.memory.text for key, item in before.items()}
    found = check(before, then)
    assert not found.refused
    assert "3 of 3 memories" in explain_over_budget(found, found.without(()), DreamSettings())


def test_one_may_always_go_however_few_there_are() -> None:
    found = check(kept(a=PORT, b=TAGS), after(b=TAGS), RemovalReason(key="a.md", why="stale", note="gone"))
    assert explain_over_budget(found, found.without(()), DreamSettings()) == ""


@pytest.mark.parametrize(
    ("key", "content", "fault"),
    [
        ("a.md", text(PORT), ""),
        ("MEMORY.md", text(PORT), "kept by the engine"),
        ("a.md", PORT, "lacks a name"),
        ("a.md", write_memory("a", "d", "poem", PORT), "its type is 'poem'"),
        ("a.md", text("x" * 70_000), "split it by topic"),
        ("a.md", write_memory("a", "d" * 500, "user", PORT), "no line of at most"),
        ("a.md", "---\nname: a\n" + PORT, "does not end with ---"),
    ],
)
def test_a_file_that_is_no_memory_is_refused(key: str, content: str, fault: str) -> None:
    assert fault in find_memory_fault(key, content)
    assert bool(find_memory_fault(key, content)) == bool(fault)


def test_what_belongs_to_the_team_is_left_alone() -> None:
    shared = {
        "team/a.md": DreamMemory(read_memory("team/a.md", text(PORT)), DAY, Origin(who="sync", why="test"))
    }
    assert "belongs to the team" in check(shared, {}).refused["team/a.md"]


SENTENCES = (PORT, TAGS, VPN, "Bob is on call in December.", "Use tabs.", "Never use tabs.")
bodies = some.dictionaries(
    some.sampled_from("abcd"), some.lists(some.sampled_from(SENTENCES), min_size=1, max_size=4).map(" ".join)
)


@given(bodies, bodies)
def test_whatever_is_published_without_reasons_every_fact_is_still_said(
    old: dict[str, str], new: dict[str, str]
) -> None:
    before, then = kept(**old), after(**new)
    found = check(before, then)
    published = found.without(found.refused)
    texts = {key: item.memory.text for key, item in before.items()}
    for key in published:
        texts.pop(key, None)
        texts |= {key: then[key]} if key in then else {}
    said = "\n".join(texts.values())
    assert all(sentence in said for body in old.values() for sentence in SENTENCES if sentence in body)


TYPOS = "Skip the review for typo fixes."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TYPOS, "Skip the review."),
        ("If Anna agrees, deploy on Fridays.", "Deploy on Fridays."),
        ("Maybe we skip the review.", "We skip the review."),
        ("Eve says that we skip the review.", "We skip the review."),
        ("Ada reviews the changes of Bob.", "Bob reviews the changes of Ada."),
        ("Run the migration before the backup.", "Run the backup before the migration."),
    ],
)
def test_a_dream_that_drops_a_condition_or_exchanges_two_things_says_something_new(
    old: str, new: str
) -> None:
    reason = RemovalReason(key="a.md", why="reworded", of="a.md", fact=old)
    found = check(kept(a=old), after(a=new), reason)
    assert found.gained == {"a.md": (new,)} or "a.md" in found.refused


def test_a_dream_may_move_a_condition_to_the_front() -> None:
    found = check(kept(a=TYPOS), after(a="For typo fixes, skip the review."))
    assert found.gained == {}


def test_a_description_of_a_dream_says_no_more_than_the_body() -> None:
    texts = {"a.md": write_memory("a", "Skip the review", "project", TYPOS)}
    made = restrict_descriptions(kept(a=TYPOS), texts)
    assert read_memory("a.md", made["a.md"]).description == TYPOS
    known = {"a.md": kept(a=TYPOS)["a.md"].memory.text}
    assert restrict_descriptions(kept(a=TYPOS), known) == known
