"""Exchanges that were cut off at any step: who goes on from there makes no conflict of their own work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sevenfold.core.errors import TeamRefused
from sevenfold.team.client.exchange import SyncExchange
from sevenfold.team.client.memory import delete_for_all
from sevenfold.team.client.ports import MissingBodies
from sevenfold.team.client.sync_policy import SyncState
from sevenfold.team.protocol import (
    MAX_TEAM_FILE_BYTES,
    Commit,
    CommitOutcome,
    TeamEntry,
    TeamKey,
    compute_checksum,
)
from tests.team.client.test_deletions import device, exchange, run
from tests.team.sim_device import Device, SimLedger
from tests.team.sim_server import Network, SimServer
from tests.team.sim_world import play

A, B = TeamKey("a.md"), TeamKey("b.md")
OLD, THEIRS, OURS = "one\ntwo\nthree\n", "one\ntwo\nTHREE\n", "ONE\ntwo\nthree\n"


def cut_off(bob: Device) -> Iterator[int]:
    """Bob's exchange, cut off after one step, then after two, until it comes to its end."""
    for steps in range(1, 100):
        bob.start()
        bob.go_on(steps)
        if not bob.running:
            return
        bob.crash()
        yield steps


def begun(before: str | None, mine: str | None) -> tuple[SimServer, Device, Device]:
    """Ada has sent a change that Bob has not seen; he may have one of his own."""
    server = SimServer()
    ada, bob = device(server, "ada"), device(server, "bob")
    if before is not None:
        ada.files.put(A, before)
        exchange(ada, bob)
    ada.files.put(A, THEIRS)
    exchange(ada)
    if mine is not None:
        bob.files.put(A, mine)
    return server, ada, bob


@pytest.mark.parametrize(("before", "mine"), [(None, None), (OLD, None), (OLD, OURS)])
def test_what_a_cut_off_pull_has_written_can_be_edited_without_a_conflict(
    before: str | None, mine: str | None
) -> None:
    for steps in cut_off(begun(before, mine)[2]):
        server, ada, bob = begun(before, mine)
        bob.start()
        bob.go_on(steps)
        bob.crash()
        text = bob.files.texts.get(A, "")
        has_theirs = "THREE\n" in text
        if has_theirs:
            bob.files.put(A, text.replace("THREE\n", "THREE\nfour\n"))
        exchange(bob, ada)
        assert set(server.texts()) == {A}, f"cut off after {steps} steps"
        assert ada.files.texts == bob.files.texts == server.texts()
        assert ("four\n" in server.texts()[A]) == has_theirs


def test_what_a_cut_off_pull_has_written_and_somebody_removed_again_is_no_wish_to_delete_it() -> None:
    for steps in cut_off(begun(OLD, None)[2]):
        server, ada, bob = begun(OLD, None)
        bob.start()
        bob.go_on(steps)
        bob.crash()
        bob.files.texts.pop(A)
        exchange(bob, ada)
        assert server.texts() == bob.files.texts == {A: THEIRS}


class ReadOnly(Network):
    """The token may read and no more."""

    async def push_commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        raise TeamRefused(f"{len(commit.changes)} changes, and this token may only read", status=403)


def test_who_may_not_send_any_more_still_gets_the_news_and_is_told() -> None:
    server = SimServer()
    ada, bob = device(server, "ada"), device(server, "bob")
    bob.files.put(B, "from bob\n")
    with pytest.raises(TeamRefused):
        run(SyncExchange(_read_only(bob), bob.files, bob.ledger).run())
    assert bob.ledger.state.pending is not None
    ada.files.put(A, THEIRS)
    exchange(ada)
    report = run(SyncExchange(_read_only(bob), bob.files, bob.ledger).run(sends=False))
    assert (report.taken, list(report.held)) == ([A], [B])
    with pytest.raises(TeamRefused, match="may only read"):
        run(SyncExchange(_read_only(bob), bob.files, bob.ledger).run())
    assert bob.files.texts == {A: THEIRS, B: "from bob\n"}
    exchange(bob)
    assert server.texts() == bob.files.texts, "with the right to send it goes on"


def _read_only(bob: Device) -> Network:
    return ReadOnly(server=bob.network.server, random=bob.random, delayed=[], is_quiet=True)


class Full(Network):
    """There is room for what is there, and for nothing new."""

    async def push_commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        if any(one.expected == 0 for one in commit.changes):
            raise TeamRefused("500 is the limit", status=422, kind="quota")
        return await Network.push_commit(self, commit)


def test_where_there_is_no_room_for_more_what_is_there_is_still_changed_and_deleted() -> None:
    server = SimServer()
    ada = device(server)
    ada.files.put(A, OLD)
    ada.files.put(B, OLD)
    exchange(ada)
    network = Full(server=server, random=ada.random, delayed=[], is_quiet=True)
    ada.files.put(A, THEIRS)
    ada.files.put(TeamKey("new.md"), "new\n")
    run(delete_for_all(B, ada.files, ada.ledger))
    report = run(SyncExchange(network, ada.files, ada.ledger).run())
    assert (report.sent, report.deleted, report.held) == ([A], [B], {"new.md": "500 is the limit"})
    with pytest.raises(TeamRefused, match="500"):
        run(SyncExchange(network, ada.files, ada.ledger).run())
    assert server.texts() == {A: THEIRS}
    exchange(ada)
    assert server.texts() == {A: THEIRS, "new.md": "new\n"}


def set_back(server: SimServer, then: SimServer) -> None:
    """As an operator does who restores a backup."""
    server.seq, server.entries, server.answers = then.seq, dict(then.entries), dict(then.answers)


def test_a_server_that_was_set_back_gets_what_it_had_and_takes_nothing_from_anybody() -> None:
    server, ada, bob = begun(OLD, None)
    set_back(server, SimServer(1, {A: TeamEntry(1, compute_checksum(OLD))}))
    exchange(ada)
    assert server.texts() == ada.files.texts == {A: THEIRS}
    assert ada.report is not None
    assert ada.report.kept == {A: "lost by the server, kept here"}
    exchange(bob)
    assert bob.files.texts == {A: THEIRS}


def test_what_was_written_after_a_server_was_set_back_is_kept_beside_what_it_had_before() -> None:
    server, ada, bob = begun(OLD, None)
    exchange(bob)
    ada.files.put(A, "from ada, before\n")
    exchange(ada)
    set_back(server, SimServer(1, {A: TeamEntry(1, compute_checksum(OLD))}))
    carol = device(server, "carol")
    exchange(carol)
    carol.files.put(A, "from carol, after\n")
    exchange(carol, ada, bob, carol, ada)
    texts = server.texts()
    assert ada.files.texts == bob.files.texts == carol.files.texts == texts
    assert {"from ada, before\n", "from carol, after\n"} <= set(texts.values())


def test_a_server_that_came_to_the_same_number_again_is_not_overwritten() -> None:
    server, _, bob = begun(OLD, None)
    exchange(bob)
    set_back(server, SimServer(1, {A: TeamEntry(1, compute_checksum(OLD))}))
    carol = device(server, "carol")
    exchange(carol)
    carol.files.put(A, "from carol\n")
    exchange(carol)
    bob.files.put(A, f"{THEIRS}four\n")
    exchange(bob, carol)
    assert bob.files.texts == carol.files.texts == server.texts()
    assert set(server.texts().values()) == {"from carol\n", f"{THEIRS}four\n"}


def test_a_name_that_differs_in_case_from_one_here_holds_up_no_other() -> None:
    server = SimServer()
    ada, bob = device(server, "ada"), device(server, "bob")
    bob.files.put(TeamKey("Deploy.md"), "here alone\n")
    ada.files.put(TeamKey("deploy.md"), "from ada\n")
    ada.files.put(A, "one\n")
    exchange(ada)
    report = run(SyncExchange(bob.network, bob.files, bob.ledger).run(sends=False))
    assert report.taken == [A]
    assert "in case alone" in report.held[TeamKey("deploy.md")]


class Restored(Device):
    """Its ledger is lost now and then, or comes back from a backup."""

    def crash(self) -> None:
        Device.crash(self)
        chance = self.random.random()
        if chance < 0.3:
            self.kept.append(self.ledger.state)
        elif chance < 0.7:
            self.ledger.state = self.random.choice([*self.kept, SyncState(device=f"{self.name} {chance}")])

    def make_ledger(self) -> SimLedger:
        self.kept: list[SyncState] = []
        return Device.make_ledger(self)


def test_a_ledger_that_is_lost_or_set_back_costs_no_text() -> None:
    """What was deleted meanwhile may come back: nobody here knows any more that it was shared."""
    wrong = [what for seed in range(80) for what in play(seed, device=Restored)]
    assert [what for what in wrong if "it is back" not in what] == []


def test_what_is_sent_in_spite_of_a_deletion_that_nobody_here_knew_of_is_told() -> None:
    server, ada, bob = begun(None, None)
    exchange(bob)
    run(delete_for_all(A, ada.files, ada.ledger))
    exchange(ada)
    bob.ledger.state = SyncState(device="bob, anew")
    exchange(bob)
    assert server.texts() == {A: THEIRS}
    assert bob.report is not None
    assert bob.report.kept == {A: "deleted elsewhere, new here"}


def test_two_texts_that_are_too_large_for_one_are_kept_beside_each_other() -> None:
    """Merged they could neither be sent nor, much larger, be written: every pull would fail."""
    server = SimServer()
    ada, bob = device(server, "ada"), device(server, "bob")
    middle = "".join(f"{at}\n" for at in range(20_000))
    ada.files.put(A, middle)
    exchange(ada, bob)
    ada.files.put(A, f"{'a' * 100_000}\n{middle}")
    bob.files.put(A, f"{middle}{'b' * 100_000}\n")
    exchange(ada, bob)
    assert len(server.texts()) == 2
    assert all(len(text.encode()) <= MAX_TEAM_FILE_BYTES for text in server.texts().values())
