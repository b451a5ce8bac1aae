"""The three-way rule, line by line as docs/sync-protocol.md has it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.team.client.sync_policy import (
    DeleteRemote,
    DoNothing,
    KeyFacts,
    LostFacts,
    MergeTexts,
    PullText,
    PushText,
    RecordAgreement,
    RecoverFile,
    RemoveFile,
    SyncPolicy,
    SyncStep,
    choose_sync_step,
)
from sevenfold.team.protocol import NO_ENTRY, TeamEntry, compute_checksum

OLD, MINE, THEIRS = (compute_checksum(text) for text in ("old", "mine", "theirs"))
BASE, NEWER, GONE = TeamEntry(3, OLD), TeamEntry(5, THEIRS), TeamEntry(5, None)

TABLE: list[tuple[str, KeyFacts, SyncStep]] = [
    ("nothing anywhere", KeyFacts(None, None), DoNothing()),
    ("all as agreed", KeyFacts(BASE, OLD, BASE), DoNothing()),
    ("newer there", KeyFacts(BASE, OLD, NEWER), PullText(NEWER)),
    ("deleted there", KeyFacts(BASE, OLD, GONE), RemoveFile(GONE)),
    ("forgotten there", KeyFacts(BASE, OLD), PushText(0, OLD, "lost by the server, kept here")),
    ("changed here", KeyFacts(BASE, MINE, BASE), PushText(3, MINE)),
    ("new here", KeyFacts(None, MINE), PushText(0, MINE)),
    (
        "new here, deleted there once",
        KeyFacts(None, MINE, GONE),
        PushText(5, MINE, "deleted elsewhere, new here"),
    ),
    ("new there", KeyFacts(None, None, NEWER), PullText(NEWER)),
    ("the same change on both ends", KeyFacts(BASE, THEIRS, NEWER), RecordAgreement(NEWER)),
    ("the same text, new on both ends", KeyFacts(None, THEIRS, NEWER), RecordAgreement(NEWER)),
    ("changed on both ends", KeyFacts(BASE, MINE, NEWER), MergeTexts(NEWER)),
    ("new on both ends", KeyFacts(None, MINE, NEWER), MergeTexts(NEWER)),
    (
        "changed here, deleted there",
        KeyFacts(BASE, MINE, GONE),
        PushText(5, MINE, "deleted elsewhere, changed here"),
    ),
    (
        "changed here, forgotten there",
        KeyFacts(BASE, MINE),
        PushText(0, MINE, "lost by the server, kept here"),
    ),
    ("removed by hand", KeyFacts(BASE, None, BASE), PullText(BASE)),
    ("gone on both ends", KeyFacts(BASE, None, GONE), RecordAgreement(None)),
    ("to be deleted", KeyFacts(BASE, None, BASE, OLD), DeleteRemote(3)),
    ("to be deleted, with a change that was not sent", KeyFacts(BASE, None, BASE, MINE), DeleteRemote(3)),
    ("to be deleted, and sent meanwhile", KeyFacts(BASE, None, TeamEntry(9, MINE), MINE), DeleteRemote(9)),
    (
        "to be deleted, and changed there",
        KeyFacts(BASE, None, NEWER, OLD),
        PullText(NEWER, "deleted here, changed elsewhere"),
    ),
    ("to be deleted, and gone there", KeyFacts(BASE, None, GONE, OLD), RecordAgreement(None)),
    ("to be deleted, and written again", KeyFacts(BASE, MINE, BASE, OLD), PushText(3, MINE)),
    ("newer there, base lost", LostFacts(BASE, OLD, NEWER), MergeTexts(NEWER, is_lost=True)),
    (
        "newer there, base lost, changed here",
        LostFacts(BASE, MINE, NEWER),
        MergeTexts(NEWER, is_lost=True),
    ),
    (
        "deleted there, base lost",
        LostFacts(BASE, OLD, GONE),
        PushText(5, OLD, "lost by the server, kept here"),
    ),
    ("removed by hand, base lost", LostFacts(BASE, None, NEWER), RecoverFile(BASE)),
    ("removed by hand, older there", KeyFacts(BASE, None, TeamEntry(2, THEIRS)), RecoverFile(BASE)),
    ("removed by hand, nothing there", KeyFacts(BASE, None), RecordAgreement(None)),
    ("removed by hand, nothing there, base lost", LostFacts(BASE, None), RecoverFile(BASE)),
    (
        "the same text, base lost",
        LostFacts(BASE, OLD, TeamEntry(9, OLD)),
        RecordAgreement(TeamEntry(9, OLD)),
    ),
    (
        "older there",
        KeyFacts(BASE, OLD, TeamEntry(2, THEIRS)),
        MergeTexts(TeamEntry(2, THEIRS), is_older=True),
    ),
    (
        "as old there and another",
        KeyFacts(BASE, OLD, TeamEntry(3, THEIRS)),
        MergeTexts(TeamEntry(3, THEIRS), is_older=True),
    ),
    (
        "older there, changed here",
        KeyFacts(BASE, MINE, TeamEntry(2, THEIRS)),
        MergeTexts(TeamEntry(2, THEIRS), is_older=True),
    ),
    (
        "deleted there before it was agreed on",
        KeyFacts(BASE, OLD, TeamEntry(2, None)),
        PushText(2, OLD, "lost by the server, kept here"),
    ),
    (
        "older there, and the same text",
        KeyFacts(BASE, OLD, TeamEntry(2, OLD)),
        RecordAgreement(TeamEntry(2, OLD)),
    ),
]


@pytest.mark.parametrize(("facts", "decision"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_each_case_has_its_step(facts: KeyFacts, decision: SyncStep) -> None:
    assert choose_sync_step(facts) == decision


@pytest.mark.parametrize(
    ("policy", "facts", "decision"),
    [
        ("server wins", KeyFacts(BASE, MINE, NEWER), PullText(NEWER)),
        ("server wins", KeyFacts(BASE, MINE, GONE), RemoveFile(GONE)),
        ("server wins", KeyFacts(BASE, MINE, BASE), PushText(3, MINE)),
        ("local wins", KeyFacts(BASE, MINE, NEWER), PushText(5, MINE)),
        ("local wins", KeyFacts(BASE, OLD, NEWER), PullText(NEWER)),
        (
            "server wins",
            KeyFacts(BASE, OLD, TeamEntry(2, None)),
            PushText(2, OLD, "lost by the server, kept here"),
        ),
    ],
)
def test_the_mirror_policy_lets_one_side_win(policy: SyncPolicy, facts: KeyFacts, decision: SyncStep) -> None:
    assert choose_sync_step(facts, policy) == decision


CHECKSUMS = st.sampled_from([None, OLD, MINE, THEIRS])
ENTRIES = st.builds(TeamEntry, st.integers(1, 6), CHECKSUMS)


@given(st.none() | ENTRIES.filter(lambda entry: entry.checksum is not None), CHECKSUMS, ENTRIES, CHECKSUMS)
def test_a_text_that_nobody_else_has_is_never_overwritten(
    base: TeamEntry | None, local: None, remote: TeamEntry, deleting: None
) -> None:
    step = choose_sync_step(KeyFacts(base, local, remote, deleting))
    is_new_here = local is not None and (base is None or base.checksum != local) and remote.checksum != local
    if is_new_here:
        assert isinstance(step, PushText | MergeTexts)


def test_what_was_done_leaves_nothing_to_do() -> None:
    """After a step both ends agree, whatever they were before."""
    for base, local, remote in product((None, BASE), (None, OLD, MINE), (NO_ENTRY, BASE, NEWER, GONE)):
        match choose_sync_step(KeyFacts(base, local, remote)):
            case PullText(entry):
                after = KeyFacts(entry, entry.checksum, entry)
            case RemoveFile(entry):
                after = KeyFacts(None, None, entry)
            case RecordAgreement(agreed):
                after = KeyFacts(agreed, local, remote)
            case PushText(_, checksum):
                after = KeyFacts(TeamEntry(9, checksum), local, TeamEntry(9, checksum))
            case MergeTexts(entry):
                after = KeyFacts(entry, entry.checksum, entry)
            case _:
                after = KeyFacts(base, local, remote)
        assert choose_sync_step(after) == DoNothing()
