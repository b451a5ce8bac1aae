"""What a repository does, on both databases."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import pytest

from sevenfold.team.protocol import Commit, CommitApplied, CommitId, RepoId, compute_checksum
from sevenfold.team.server.commits import CHANGE_BYTES, WriteContext
from sevenfold.team.server.database import Database, Tx
from sevenfold.team.server.memory import (
    apply_writer_commit,
    read_body,
    read_contents,
    read_tags,
    upsert_texts,
)
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.policy import ServerLimits
from sevenfold.team.server.repos import collect_garbage
from tests.team.team import Team, change

DAY_MS = 24 * 3_600_000


@pytest.fixture
def team(database: Database) -> Team:
    return Team(database)


def test_a_new_repository_is_empty_and_at_0(team: Team) -> None:
    found = team.contents()
    assert (found.seq, found.floor, found.entries, found.deleted) == (0, 0, {}, {})


def test_a_commit_stores_bodies_that_were_sent_before(team: Team) -> None:
    team.send("one\n", "two\0\n")
    assert team.contents().entries == {}
    applied = team.commit(change("a.md", 0, "one\n"), change("b.md", 0, "two\0\n"))
    assert applied.seq == 1
    assert team.texts() == {"a.md": "one\n", "b.md": "two\0\n"}
    assert {entry.version for entry in team.contents().entries.values()} == {1}


def test_each_entry_has_the_member_whose_token_it_came_with(team: Team) -> None:
    team.put({"a.md": "ours\n", "b.md": "ours too\n"})
    mallory = replace(team.writer, principal=team.add("mallory", "writer"))
    claim = "---\nauthor: ada\n---\nWritten by ada.\n"
    team.write(lambda tx: upsert_texts(tx, mallory, {"b.md": claim}, None))
    for bodies in (True, False):
        found = team.read(lambda tx: read_contents(tx, team.owner, team.repo, bodies=bodies))  # noqa: B023
        assert {key: one.author for key, one in found.entries.items()} == {"a.md": "ada", "b.md": "mallory"}


def test_a_commit_sent_again_has_the_same_answer_and_no_second_effect(team: Team) -> None:
    team.send("one", "two")
    first = team.commit(change("a.md", 0, "one"))
    team.commit(change("a.md", 1, "two"))
    assert team.commit(change("a.md", 0, "one")) == first
    assert team.texts() == {"a.md": "two"}


def test_an_id_of_another_commit_is_refused(team: Team) -> None:
    team.send("one", "two")
    team.commit(change("a.md", 0, "one"), id_="x")
    with pytest.raises(ApiError, match="another commit") as refused:
        team.commit(change("a.md", 1, "two"), id_="x")
    assert refused.value.status == 422


def test_a_key_that_moved_stops_the_whole_commit_and_is_told(team: Team) -> None:
    team.send("one", "two", "three")
    team.commit(change("a.md", 0, "one"))
    with pytest.raises(ApiError) as refused:
        team.commit(change("a.md", 0, "two"), change("b.md", 0, "three"))
    assert refused.value.status == 409
    assert refused.value.extras["conflicts"] == {"a.md": {"version": 1, "checksum": compute_checksum("one")}}
    assert team.texts() == {"a.md": "one"}


def test_a_body_that_was_never_sent_is_named_and_nothing_is_applied(team: Team) -> None:
    team.send("one")
    with pytest.raises(ApiError) as refused:
        team.commit(change("a.md", 0, "one"), change("b.md", 0, "two"))
    assert (refused.value.status, refused.value.extras["missing"]) == (422, [compute_checksum("two")])
    assert team.contents().seq == 0


def test_a_deleted_memory_leaves_a_tombstone_that_counts(team: Team) -> None:
    team.send("one", "two")
    team.commit(change("a.md", 0, "one"))
    team.commit(change("a.md", 1, None))
    assert team.texts() == {}
    assert dict(team.contents().deleted) == {"a.md": 2}
    with pytest.raises(ApiError, match="changed since"):
        team.commit(change("a.md", 0, "two"))
    assert team.commit(change("a.md", 2, "two")).seq == 3


def test_tombstones_are_forgotten_after_their_time_and_the_floor_says_so(team: Team) -> None:
    team.send("one", "two")
    team.commit(change("a.md", 0, "one"), change("b.md", 0, "two"))
    team.commit(change("a.md", 1, None))
    late = team.now_ms + 90 * DAY_MS + 1
    early = team.write(lambda tx: collect_garbage(tx, team.org.id, team.repo, late - 2, team.limits))
    assert early.tombstones == 0
    gone = team.write(lambda tx: collect_garbage(tx, team.org.id, team.repo, late, team.limits))
    assert gone.tombstones == 1
    found = team.contents()
    assert (found.floor, dict(found.deleted), set(found.entries)) == (2, {}, {"b.md"})
    # A version is never the same twice: what was expected before the deletion does not fit now.
    with pytest.raises(ApiError, match="changed since"):
        team.commit(change("a.md", 1, "two"))


def test_bodies_that_no_commit_named_are_forgotten_and_others_are_not(team: Team) -> None:
    team.send("one", "two")
    team.commit(change("a.md", 0, "one"))
    team.commit(change("a.md", 1, None))
    later = team.now_ms + DAY_MS + 1
    assert team.write(lambda tx: collect_garbage(tx, team.org.id, team.repo, later, team.limits)).bodies == 1
    assert team.read(lambda tx: read_body(tx, team.owner, team.repo, compute_checksum("one"))) == b"one"


def test_a_body_is_read_by_nobody_before_its_commit(team: Team) -> None:
    team.send("one")
    with pytest.raises(ApiError, match="no body"):
        team.read(lambda tx: read_body(tx, team.owner, team.repo, compute_checksum("one")))


def test_a_simple_client_puts_texts_over_what_is_there(team: Team) -> None:
    assert team.put({"a.md": "one", "b.md": "two"}).seq == 1
    again = team.put({"a.md": "one", "b.md": "three"})
    assert again.seq == 2
    assert {str(key): entry.version for key, entry in again.entries.items()} == {"a.md": 1, "b.md": 2}
    assert team.put({"a.md": "one"}).seq == 2


def test_a_simple_client_that_is_behind_is_told_where_the_repository_is(team: Team) -> None:
    team.put({"a.md": "one"}, frozenset({'"0"'}))
    with pytest.raises(ApiError) as refused:
        team.put({"a.md": "two"}, frozenset({'"0"', 'W/"1"'}))
    assert (refused.value.status, refused.value.extras["seq"]) == (412, 1)
    assert team.put({"a.md": "two"}, frozenset({"*"})).seq == 2


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (ServerLimits(entries=2), "3 memories; 2 is the limit"),
        (ServerLimits(total_bytes=10), "15 bytes of memories; 10"),
        (ServerLimits(kept_bytes=10), "915 bytes with history; 10"),
        (ServerLimits(names=2), "3 names, deleted ones included; 2 is the limit"),
    ],
)
def test_a_quota_is_told_with_its_figures_and_nothing_is_applied(
    database: Database, limits: ServerLimits, told: str
) -> None:
    team = Team(database, limits=limits)
    with pytest.raises(ApiError, match=told) as refused:
        team.put({"a.md": "x" * 5, "b.md": "y" * 5, "c.md": "z" * 5})
    assert (refused.value.kind, team.contents().entries) == ("quota", {})


def test_names_that_come_and_go_do_not_make_a_listing_grow_for_ever(database: Database) -> None:
    team = Team(database, limits=ServerLimits(names=3))
    for number in range(3):
        made = team.put({f"k{number}.md": "x"}).seq
        team.commit(change(f"k{number}.md", made, None))
    with pytest.raises(ApiError, match="4 names") as refused:
        team.put({"k3.md": "x"})
    assert refused.value.kind == "quota"
    assert team.put({"k1.md": "back"}).seq == 7
    assert len(team.contents().deleted) == 2


def test_changes_without_new_texts_use_up_what_history_may_have(database: Database) -> None:
    team = Team(database, limits=ServerLimits(kept_bytes=5 * CHANGE_BYTES))
    for text in ("x", "y", "x", "y"):
        team.put({"a.md": text})
    with pytest.raises(ApiError, match="bytes with history"):
        team.put({"a.md": "x"})
    assert team.contents().seq == 4


def test_an_organisation_has_a_quota_over_all_its_repositories(database: Database) -> None:
    team = Team(database, limits=ServerLimits(org_bytes=1_500_000, total_bytes=10**9))
    for name in ("acme/two", "acme/three"):
        team.put({f"k{number}.md": f"{number}" * 200_000 for number in range(4)})
        team.repo = team.claim(name)
    with pytest.raises(ApiError, match="1,602,400 bytes in all repositories"):
        team.put({f"k{number}.md": f"{number}" * 200_000 for number in range(6)})


def test_what_makes_room_is_allowed_over_the_quota(database: Database) -> None:
    team = Team(database)
    team.put({"a.md": "x" * 50, "b.md": "y" * 50})
    tight = WriteContext(team.owner, team.repo, team.now_ms, ServerLimits(total_bytes=10))
    gone = Commit(CommitId("gone"), (change("a.md", 1, None),))
    assert team.write(lambda tx: apply_writer_commit(tx, tight, gone)).seq == 2


def test_bodies_that_wait_have_a_quota(database: Database) -> None:
    team = Team(database, limits=ServerLimits(waiting_bytes=8))
    team.send("12345")
    with pytest.raises(ApiError, match="10 bytes of bodies wait"):
        team.send("67890")
    team.commit(change("a.md", 0, "12345"))
    team.send("67890")
    assert team.commit(change("b.md", 0, "67890")).seq == 2


@pytest.mark.parametrize("key", ["../a.md", "A.md", "a", "con.md", "a\0.md"])
def test_a_hostile_key_is_refused(team: Team, key: str) -> None:
    team.send("one")
    for attempt in (lambda: team.commit(change(key, 0, "one")), lambda: team.put({key: "one"})):
        with pytest.raises(ApiError) as refused:
            attempt()
        assert (refused.value.status, refused.value.kind) == (422, "key")


def test_an_unknown_repository_and_a_foreign_one_are_the_same(database: Database) -> None:
    ours, theirs = Team(database), Team(database)
    theirs.put({"a.md": "theirs"})
    for repo in (RepoId("nothing"), theirs.repo):
        with pytest.raises(ApiError) as refused:
            ours.read(lambda tx, repo=repo: read_contents(tx, ours.owner, repo, bodies=True))
        assert (refused.value.status, refused.value.message) == (404, "there is no such repository")
        replaced = WriteContext(ours.owner, repo, ours.now_ms, ours.limits)
        wanted = Commit(CommitId("x"), (change("a.md", 0, "theirs"),))
        with pytest.raises(ApiError, match="no such repository"):
            ours.write(lambda tx, writer=replaced, wanted=wanted: apply_writer_commit(tx, writer, wanted))


def test_commits_at_the_same_time_lose_nothing_and_every_number_is_given_once(team: Team) -> None:
    texts = [f"text {number}" for number in range(40)]
    team.send(*texts)

    def start(number: int) -> Future[CommitApplied]:
        wanted = Commit(CommitId(f"c{number}"), (change(f"k{number}.md", 0, texts[number]),))
        return team.database.write(team.org.id, lambda tx: apply_writer_commit(tx, team.writer, wanted))

    applied = [future.result() for future in [start(number) for number in range(40)]]
    assert sorted(one.seq for one in applied) == list(range(1, 41))
    assert sorted(team.texts()) == sorted(f"k{number}.md" for number in range(40))


def test_of_two_that_write_the_same_key_one_is_told_of_the_other(team: Team) -> None:
    texts = [f"text {number}" for number in range(10)]
    team.send(*texts)

    def start(number: int) -> Future[CommitApplied]:
        wanted = Commit(CommitId(f"c{number}"), (change("k.md", 0, texts[number]),))
        return team.database.write(team.org.id, lambda tx: apply_writer_commit(tx, team.writer, wanted))

    errors = [future.exception() for future in [start(number) for number in range(10)]]
    refusals = [one for one in errors if isinstance(one, ApiError)]
    assert len(refusals) == 9
    assert {one.status for one in refusals} == {409}
    assert team.contents().seq == 1


def test_the_sequence_alone_can_be_asked_for(team: Team) -> None:
    team.put({"a.md": "one"})
    assert team.read(lambda tx: read_tags(tx, team.owner, team.repo)).seq == 1


def test_two_states_with_one_number_have_different_tags(team: Team) -> None:
    team.put({"a.md": "one"})
    other = team.claim("acme/other")
    team.write(lambda tx: upsert_texts(tx, replace(team.writer, repo=other), {"a.md": "two"}, None))
    tags = [team.read(lambda tx, repo=repo: read_tags(tx, team.owner, repo)) for repo in (team.repo, other)]
    assert tags[0].seq == tags[1].seq
    assert tags[0].known & tags[1].known == {'"1"', 'W/"1"', "*"}


def test_a_reader_sees_one_state_while_others_write(team: Team) -> None:
    team.put({"a.md": "one"})

    def look(tx: Tx) -> tuple[int, int]:
        first = read_contents(tx, team.owner, team.repo, bodies=False).seq
        team.put({"a.md": "two"})
        return first, read_contents(tx, team.owner, team.repo, bodies=False).seq

    assert team.read(look) == (1, 1)
    assert team.contents().seq == 2


def test_a_stranger_principal_of_another_organisation_reaches_nothing(database: Database) -> None:
    ours, theirs = Team(database), Team(database)
    ours.put({"a.md": "ours"})
    forged = replace(theirs.owner, org=theirs.org.id)
    with pytest.raises(ApiError, match="no such repository"):
        theirs.read(lambda tx: read_contents(tx, forged, ours.repo, bodies=True))
