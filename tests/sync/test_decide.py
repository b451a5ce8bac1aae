"""The three-way rule, line by line as docs/sync-protocol.md has it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.sync.decide import (
    Decision,
    Delete,
    Drop,
    KeyFacts,
    Leave,
    Meet,
    Policy,
    Push,
    Settle,
    Take,
    decide,
)
from sevenfold.sync.protocol import NOTHING, Entry, checksum_of

OLD, MINE, THEIRS = (checksum_of(text) for text in ("old", "mine", "theirs"))
BASE, NEWER, GONE = Entry(3, OLD), Entry(5, THEIRS), Entry(5, None)

TABLE: list[tuple[str, KeyFacts, Decision]] = [
    ("nothing anywhere", KeyFacts(None, None), Leave()),
    ("all as agreed", KeyFacts(BASE, OLD, BASE), Leave()),
    ("newer there", KeyFacts(BASE, OLD, NEWER), Take(NEWER)),
    ("deleted there", KeyFacts(BASE, OLD, GONE), Drop(GONE)),
    ("forgotten there", KeyFacts(BASE, OLD), Push(0, OLD, "lost by the server, kept here")),
    ("changed here", KeyFacts(BASE, MINE, BASE), Push(3, MINE)),
    ("new here", KeyFacts(None, MINE), Push(0, MINE)),
    (
        "new here, deleted there once",
        KeyFacts(None, MINE, GONE),
        Push(5, MINE, "deleted elsewhere, new here"),
    ),
    ("new there", KeyFacts(None, None, NEWER), Take(NEWER)),
    ("the same change on both ends", KeyFacts(BASE, THEIRS, NEWER), Settle(NEWER)),
    ("the same text, new on both ends", KeyFacts(None, THEIRS, NEWER), Settle(NEWER)),
    ("changed on both ends", KeyFacts(BASE, MINE, NEWER), Meet(NEWER)),
    ("new on both ends", KeyFacts(None, MINE, NEWER), Meet(NEWER)),
    (
        "changed here, deleted there",
        KeyFacts(BASE, MINE, GONE),
        Push(5, MINE, "deleted elsewhere, changed here"),
    ),
    ("changed here, forgotten there", KeyFacts(BASE, MINE), Push(0, MINE, "lost by the server, kept here")),
    ("removed by hand", KeyFacts(BASE, None, BASE), Take(BASE)),
    ("gone on both ends", KeyFacts(BASE, None, GONE), Settle(None)),
    ("to be deleted", KeyFacts(BASE, None, BASE, OLD), Delete(3)),
    ("to be deleted, with a change that was not sent", KeyFacts(BASE, None, BASE, MINE), Delete(3)),
    ("to be deleted, and sent meanwhile", KeyFacts(BASE, None, Entry(9, MINE), MINE), Delete(9)),
    (
        "to be deleted, and changed there",
        KeyFacts(BASE, None, NEWER, OLD),
        Take(NEWER, "deleted here, changed elsewhere"),
    ),
    ("to be deleted, and gone there", KeyFacts(BASE, None, GONE, OLD), Settle(None)),
    ("to be deleted, and written anew", KeyFacts(BASE, MINE, BASE, OLD), Push(3, MINE)),
    ("older there", KeyFacts(BASE, OLD, Entry(2, THEIRS)), Meet(Entry(2, THEIRS), is_older=True)),
    (
        "as old there and another",
        KeyFacts(BASE, OLD, Entry(3, THEIRS)),
        Meet(Entry(3, THEIRS), is_older=True),
    ),
    (
        "older there, changed here",
        KeyFacts(BASE, MINE, Entry(2, THEIRS)),
        Meet(Entry(2, THEIRS), is_older=True),
    ),
    (
        "deleted there before it was agreed on",
        KeyFacts(BASE, OLD, Entry(2, None)),
        Push(2, OLD, "lost by the server, kept here"),
    ),
    ("older there, and the same text", KeyFacts(BASE, OLD, Entry(2, OLD)), Settle(Entry(2, OLD))),
]


@pytest.mark.parametrize(("facts", "decision"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_each_case_has_its_step(facts: KeyFacts, decision: Decision) -> None:
    assert decide(facts) == decision


@pytest.mark.parametrize(
    ("policy", "facts", "decision"),
    [
        ("server wins", KeyFacts(BASE, MINE, NEWER), Take(NEWER)),
        ("server wins", KeyFacts(BASE, MINE, GONE), Drop(GONE)),
        ("server wins", KeyFacts(BASE, MINE, BASE), Push(3, MINE)),
        ("local wins", KeyFacts(BASE, MINE, NEWER), Push(5, MINE)),
        ("local wins", KeyFacts(BASE, OLD, NEWER), Take(NEWER)),
        ("server wins", KeyFacts(BASE, OLD, Entry(2, None)), Push(2, OLD, "lost by the server, kept here")),
    ],
)
def test_the_mirror_policy_lets_one_side_win(policy: Policy, facts: KeyFacts, decision: Decision) -> None:
    assert decide(facts, policy) == decision


CHECKSUMS = st.sampled_from([None, OLD, MINE, THEIRS])
ENTRIES = st.builds(Entry, st.integers(1, 6), CHECKSUMS)


@given(st.none() | ENTRIES.filter(lambda entry: entry.checksum is not None), CHECKSUMS, ENTRIES, CHECKSUMS)
def test_a_text_that_nobody_else_has_is_never_overwritten(
    base: Entry | None, local: None, remote: Entry, doomed: None
) -> None:
    step = decide(KeyFacts(base, local, remote, doomed))
    is_new_here = local is not None and (base is None or base.checksum != local) and remote.checksum != local
    if is_new_here:
        assert isinstance(step, Push | Meet)


def test_what_was_done_leaves_nothing_to_do() -> None:
    """After a step both ends agree, whatever they were before."""
    for base, local, remote in product((None, BASE), (None, OLD, MINE), (NOTHING, BASE, NEWER, GONE)):
        match decide(KeyFacts(base, local, remote)):
            case Take(entry):
                after = KeyFacts(entry, entry.checksum, entry)
            case Drop(entry):
                after = KeyFacts(None, None, entry)
            case Settle(agreed):
                after = KeyFacts(agreed, local, remote)
            case Push(_, checksum):
                after = KeyFacts(Entry(9, checksum), local, Entry(9, checksum))
            case Meet(entry):
                after = KeyFacts(entry, entry.checksum, entry)
            case _:
                after = KeyFacts(base, local, remote)
        assert decide(after) == Leave()
