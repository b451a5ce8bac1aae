"""Deleting for all, and commits that come late: steps in an order that a schedule seldom has."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from random import Random
from typing import TypeVar

import pytest

from sevenfold.core.errors import InputError, TeamOffline
from sevenfold.team.client.memory import delete_for_all
from sevenfold.team.client.sync_policy import PendingWrite, SyncState
from sevenfold.team.protocol import CommitApplied, TeamEntry, TeamKey, compute_checksum
from tests.team.laptops import Laptop
from tests.team.sim_device import Chronicle, Device
from tests.team.sim_server import Network, SimServer

T = TypeVar("T")
A = TeamKey("a.md")
ONE = compute_checksum("one\n")


class Leaky(Network):
    """Texts get lost on the way; what is small arrives."""

    async def push_bodies(self, texts: Sequence[str]) -> None:
        raise TeamOffline(f"{len(texts)} texts are lost on the way")


def run(work: Coroutine[object, object, T]) -> T:
    while True:
        try:
            work.send(None)
        except StopIteration as end:
            return end.value


def device(server: SimServer, name: str = "laptop") -> Device:
    return Device(
        name, Network(server=server, random=Random(1), delayed=[], is_quiet=True), Chronicle(), Random(1)
    )


def exchange(*devices: Device) -> None:
    for each in devices:
        each.start()
        each.finish()


def test_a_file_that_a_cut_off_pull_has_written_can_be_deleted_for_all() -> None:
    server = SimServer()
    ada, bob = device(server, "ada"), device(server, "bob")
    ada.files.put(A, "one\n")
    exchange(ada)
    bob.files.put(A, "one\n")
    bob.files.marks.add("m")
    bob.ledger.state = SyncState(device="bob", incoming=PendingWrite("m", {A: TeamEntry(1, ONE)}))
    run(delete_for_all(A, bob.files, bob.ledger))
    assert bob.ledger.state.bases == {A: TeamEntry(1, ONE)}
    bob.files.put(A, "two\n")
    exchange(bob, ada)
    assert server.texts() == ada.files.texts == {A: "two\n"}, "what was deleted is not kept beside it"


@pytest.mark.parametrize("steps", range(12))
def test_a_deletion_that_is_cut_off_brings_back_nothing_that_was_deleted_before(steps: int) -> None:
    server = SimServer()
    ada = device(server)
    ada.files.put(A, "one\n")
    exchange(ada)
    run(delete_for_all(A, ada.files, ada.ledger))
    ada.files.put(A, "two\n")
    ada.start(sends=False)
    ada.finish()
    cut_off = delete_for_all(A, ada.files, ada.ledger)
    for _ in range(steps):
        try:
            cut_off.send(None)
        except StopIteration:
            break
    cut_off.close()
    is_gone = A not in ada.files.texts
    exchange(ada)
    assert server.texts() == ada.files.texts == ({} if is_gone else {A: "two\n"})


def test_a_commit_that_lacked_its_texts_is_completed_and_not_given_up() -> None:
    server = SimServer()
    ada = device(server)
    ada.files.put(A, "one\n")

    ada.network = Leaky(server=server, random=Random(1), delayed=[], is_quiet=True)
    exchange(ada)
    pending = ada.ledger.state.pending
    assert pending is not None
    ada.network = Network(server=server, random=Random(1), delayed=[], is_quiet=True)
    run(delete_for_all(A, ada.files, ada.ledger))
    exchange(ada)
    assert isinstance(server.commit(pending), CommitApplied), "late, it is an old answer and no new change"
    assert server.entries == {A: TeamEntry(2, None)}


def test_a_file_that_is_not_there_cannot_be_deleted() -> None:
    ada = device(SimServer())
    with pytest.raises(InputError, match=r"no 'a\.md'"):
        run(delete_for_all(A, ada.files, ada.ledger))


def test_a_shared_file_deleted_past_the_engine_comes_back_on_a_pull(ada: Laptop, bob: Laptop) -> None:
    ada.write("deploy.md", "one\n")
    ada.write("other.md", "two\n")
    for laptop in (ada, bob):
        asyncio.run(laptop.team.exchange())
    bob.write("unsent.md", "mine\n")
    for name in ("deploy.md", "unsent.md"):
        (bob.memory.path / "team" / name).unlink()
    report = asyncio.run(bob.team.exchange(sends=False))
    assert (bob.memory.path / "team" / "deploy.md").read_text() == "one\n"
    assert list(report.held) == ["unsent.md"]  # nobody else has it: a person decides
    assert [change.key for one in bob.memory.waiting() for change in one.changes] == ["team/unsent.md"]
    asyncio.run(ada.team.exchange())
    assert ada.texts() == {"deploy.md": "one\n", "other.md": "two\n"}
