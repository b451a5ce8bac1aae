"""Names of conflict copies, batches, and the ledger on disk."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import FileDamaged, InputError
from sevenfold.core.team_keys import is_team_key
from sevenfold.store.folder import Folder
from sevenfold.sync.batches import split_batches
from sevenfold.sync.conflicts import copy_key, is_copy, original_of
from sevenfold.sync.ledger import STATE, FolderLedger
from sevenfold.sync.membership import Membership, Tokens, read_membership, write_membership
from sevenfold.sync.pace import Pace
from sevenfold.sync.protocol import (
    MAX_BODY_BYTES,
    Change,
    Commit,
    CommitId,
    Entry,
    RepoId,
    TeamKey,
    checksum_of,
)
from sevenfold.sync.state import Arrival, LocalText, Refused, SyncState

A = TeamKey("a.md")
PARTS = st.text("abz09_-", max_size=79).map("k".__add__)
KEYS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: TeamKey(f"{'/'.join(parts)}.md"))


@given(KEYS.filter(is_team_key), st.text())
def test_a_copy_has_a_name_that_may_be_shared_follows_from_its_text_and_is_known_as_one(
    key: TeamKey, text: str
) -> None:
    copy = copy_key(key, checksum_of(text), {})
    assert is_team_key(copy)
    assert is_copy(copy)
    assert copy == copy_key(key, checksum_of(text), {})
    assert copy != key


def test_a_copy_of_a_copy_lies_beside_the_original() -> None:
    first = copy_key(TeamKey("plans/a.md"), checksum_of("one"), {})
    second = copy_key(first, checksum_of("two"), {})
    assert original_of(first) == original_of(second) == "plans/a.md"
    assert first != second


def test_a_copy_takes_no_name_that_holds_another_text() -> None:
    first = copy_key(A, checksum_of("one"), {})
    edited = LocalText("edited", checksum_of("edited"))
    second = copy_key(A, checksum_of("one"), {first: edited})
    assert second not in (first, A)
    assert copy_key(A, checksum_of("one"), {first: LocalText("one", checksum_of("one"))}) == first
    assert copy_key(first, checksum_of("one"), {first: LocalText("one", checksum_of("one"))}) != first


TEXTS = st.lists(st.text(max_size=30) | st.integers(0, 90).map('"'.__mul__), max_size=20)


@given(TEXTS, st.integers(40, 120))
def test_batches_hold_all_texts_in_order_and_none_is_too_large_for_what_can_be_split(
    texts: list[str], limit: int
) -> None:
    batches = list(split_batches(texts, limit))
    assert [text for batch in batches for text in batch] == texts
    for batch in batches:
        body = json.dumps({"bodies": batch}, ensure_ascii=False, separators=(",", ":"))
        assert len(batch) == 1 or len(body.encode("utf-8", "surrogatepass")) <= limit


def test_a_batch_is_as_large_as_a_request_may_be() -> None:
    batches = list(split_batches(["x" * 90_000] * 5))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert MAX_BODY_BYTES == 200_000


STATES = [
    SyncState("laptop"),
    SyncState(
        "laptop",
        '"7"',
        {A: Entry(7, None)},
        {A: Entry(6, checksum_of("six"))},
        Arrival("m", {A: Entry(7, checksum_of("ä"))}),
        {A: checksum_of("gone")},
        {A: Refused(checksum_of("no"), "too large")},
        Commit(CommitId("c"), (Change(A, 6, checksum_of("x")), Change(TeamKey("b.md"), 3, None))),
    ),
]


@pytest.mark.parametrize("state", STATES)
def test_what_is_written_down_is_read_again(state: SyncState, tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        ledger = FolderLedger(folder)
        asyncio.run(ledger.write(state))
        assert asyncio.run(ledger.read()) == state
        pace = Pace((datetime(2026, 11, 15, tzinfo=UTC),), 2, datetime(2026, 11, 16, tzinfo=UTC), "no", "m")
        ledger.write_pace(pace)
        assert ledger.read_pace() == pace


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"device":1}', b'{"device":"d","etag":"","remote":{"a.md":[1]}}', b"\xff"],
)
def test_a_damaged_ledger_is_an_error_and_nothing_is_guessed(data: bytes, tmp_path: Path) -> None:
    (tmp_path / STATE).write_bytes(data)
    (tmp_path / "pace.json").write_bytes(data)
    with Folder.open(tmp_path) as folder:
        ledger = FolderLedger(folder)
        with pytest.raises(FileDamaged, match="sevenfold team leave"):
            ledger.read_state()
        assert ledger.read_pace() == Pace()


def test_joining_another_server_forgets_what_was_agreed_with_the_first(tmp_path: Path) -> None:
    first = Membership("https://one.example", RepoId("r"), "acme/app", "acme", "ada")
    second = Membership("https://two.example", RepoId("r"), "acme/app", "acme", "ada")
    with Folder.open(tmp_path) as folder:
        ledger = FolderLedger(folder)
        write_membership(folder, first)
        asyncio.run(ledger.write(STATES[1]))
        write_membership(folder, first)
        assert ledger.read_state() == STATES[1]
        write_membership(folder, second)
        assert ledger.read_state().bases == {}
        assert read_membership(folder) == second


@pytest.mark.parametrize("token", ["", "with\nbreak", "ü", "x" * 2_000])
def test_what_cannot_be_a_token_is_not_kept(token: str, tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        with pytest.raises(InputError, match="no token"):
            Tokens(folder).write("https://one.example", "acme", token)
        assert Tokens(folder).find("https://one.example") == ""


def test_a_damaged_membership_or_what_is_left_of_an_old_one_does_not_stand_in_the_way_of_joining(
    tmp_path: Path,
) -> None:
    place = Membership("https://one", RepoId("r"), "acme/app", "acme", "ada")
    for data in (b"{", None):
        (tmp_path / STATE).write_bytes(b"of another server")
        if data is None:
            (tmp_path / "member.json").unlink()
        else:
            (tmp_path / "member.json").write_bytes(data)
        with Folder.open(tmp_path) as folder:
            write_membership(folder, place)
            assert read_membership(folder) == place
        assert not (tmp_path / STATE).exists()


def test_two_organisations_on_one_server_have_a_token_each(tmp_path: Path) -> None:
    url = "https://one.example"
    with Folder.open(tmp_path) as folder:
        tokens = Tokens(folder)
        tokens.write(url, "acme", "first")
        tokens.write(url, "other", "second")
        assert [tokens.find(url, org) for org in ("acme", "other", "")] == ["first", "second", "second"]
        tokens.forget(url, "other")
        assert [tokens.find(url, org) for org in ("acme", "other", "")] == ["first", "", ""]
        tokens.forget(url, "acme")
        assert tokens.find(url, "acme") == ""
        assert tokens.find("https://two.example", "acme") == ""
