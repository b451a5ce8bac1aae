"""A server that is restored from a backup, or recovered to a point in time, has lost acknowledged texts.

`python -m tests.torture --only sync --long` plays many more schedules.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from sevenfold.cli.team.serve import open_database
from sevenfold.core.events import TeamConflicted, TeamDeletionLost, TeamTextKept, TeamVersionLost
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.team.protocol import TeamKey
from sevenfold.team.server.backup import restore_backup, write_backup
from sevenfold.team.server.database import Database, OrgId, Tx
from tests.team.client.sim_set_back import SET_BACK_FAULTS, SetBackFault
from tests.team.client.sim_stored import copy_database, set_back_in
from tests.team.laptops import Laptop, Office
from tests.team.live import serving
from tests.team.sim_world import World, play
from tests.team.team import Team

T = TypeVar("T")

KEY = TeamKey("deploy.md")
OLD = "one\ntwo\nthree\nfour\n"
LATER = 1_900_000_000_000
HOW = ["restored", "recovered"]


class Replaceable:
    """A database in whose place another one is put while its server runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.inner: Database = open_database(f"sqlite:///{self.place}")

    @property
    def place(self) -> Path:
        return self.folder / f"{self.number}.db"

    def read(self, org: OrgId | None, work: Callable[[Tx], T], /, *, quick: bool = False) -> Future[T]:
        return self.inner.read(org, work, quick=quick)

    def write(self, org: OrgId | None, work: Callable[[Tx], T], /) -> Future[T]:
        return self.inner.write(org, work)

    def close(self) -> None:
        self.inner.close()

    def save(self) -> None:
        write_backup(self.inner, self.folder / "backup", LATER)
        copy_database(self.place, self.folder / "copy")

    def set_back(self, how: str) -> None:
        self.close()
        self.number += 1
        if how == "recovered":
            shutil.copy(self.folder / "copy", self.place)
        self.inner = open_database(f"sqlite:///{self.place}")
        if how == "restored":
            restore_backup(self.inner, self.folder / "backup", LATER + self.number)


@pytest.fixture
def stored(tmp_path: Path) -> Generator[Replaceable]:
    database = Replaceable(tmp_path)
    yield database
    database.close()


@pytest.fixture
def place(stored: Replaceable, tmp_path: Path) -> Generator[Office]:
    with serving(stored) as live, ExitStack() as exits:
        yield Office(live, Team(stored), tmp_path, exits)


def sync(*laptops: Laptop) -> None:
    for laptop in laptops:
        asyncio.run(laptop.team.exchange())


def begin(stored: Replaceable, place: Office) -> tuple[Laptop, Laptop]:
    """Two laptops with the same text, and a backup of it."""
    ada, bob = place.laptop("ada"), place.laptop("bob")
    ada.write(KEY, OLD)
    sync(ada, bob)
    stored.save()
    return ada, bob


def lines_of(*laptops: Laptop) -> list[set[str]]:
    return [{line for text in laptop.texts().values() for line in text.splitlines()} for laptop in laptops]


@pytest.mark.parametrize("how", HOW)
def test_a_line_that_the_server_lost_is_kept_beside_a_colleagues_change_and_that_is_said(
    stored: Replaceable, place: Office, how: str
) -> None:
    ada, bob = begin(stored, place)
    ada.write(KEY, OLD + "from ada\n")
    sync(ada)
    stored.set_back(how)
    for text in ("ONE\ntwo\nthree\nfour\n", "ONE\nTWO\nthree\nfour\n"):
        bob.write(KEY, text)
        sync(bob)
    sync(ada, bob)
    assert all({"from ada", "ONE", "TWO"} <= lines for lines in lines_of(ada, bob))
    assert ada.texts() == bob.texts()
    assert [type(event) for event in ada.events if isinstance(event, TeamVersionLost | TeamConflicted)] == [
        TeamVersionLost,
        TeamConflicted,
    ]
    assert not bob.told(TeamVersionLost)


@pytest.mark.parametrize("how", HOW)
def test_an_unsent_change_of_a_lost_text_is_not_merged_over_it(
    stored: Replaceable, place: Office, how: str
) -> None:
    """Over the lost text, a colleague's change would look like the deletion of what was lost."""
    ada, bob = begin(stored, place)
    ada.write(KEY, OLD + "from ada\n")
    sync(ada)
    stored.set_back(how)
    for text in ("ONE\ntwo\nthree\nfour\n", "ONE\nTWO\nthree\nfour\n"):
        bob.write(KEY, text)
        sync(bob)
    ada.write(KEY, OLD + "from ada\nmore\n")
    sync(ada, bob)
    assert all({"from ada", "more", "ONE", "TWO"} <= lines for lines in lines_of(ada, bob))
    assert len(ada.told(TeamVersionLost)) == 1


@pytest.mark.parametrize("how", HOW)
def test_a_lost_text_that_a_colleague_deleted_unseen_stays(
    stored: Replaceable, place: Office, how: str
) -> None:
    ada, bob = begin(stored, place)
    ada.write(KEY, OLD + "from ada\n")
    sync(ada)
    stored.set_back(how)
    bob.write("other.md", "x\n")
    sync(bob)
    asyncio.run(bob.team.delete(KEY))
    sync(bob, ada, bob)
    assert "from ada" in lines_of(bob)[0]
    assert ada.told(TeamTextKept) == [TeamTextKept(KEY, "lost by the server, kept here")]


@pytest.mark.parametrize("how", HOW)
def test_a_file_that_was_removed_by_hand_comes_back_with_what_the_server_lost(
    stored: Replaceable, place: Office, how: str
) -> None:
    ada, bob = begin(stored, place)
    ada.write(KEY, OLD + "from ada\n")
    sync(ada)
    ada.remove(KEY)
    stored.set_back(how)
    sync(bob, ada, bob)
    assert bob.texts() == ada.texts() == {KEY: OLD + "from ada\n"}


def test_after_a_recovery_to_the_same_number_others_texts_come_all_the_same(
    stored: Replaceable, place: Office
) -> None:
    ada, bob = begin(stored, place)
    ada.write("note.md", "from ada\n")
    sync(ada, ada)
    stored.set_back("recovered")
    bob.write("plan.md", "from bob\n")
    sync(bob, ada)
    assert "from bob" in lines_of(ada)[0]


def test_a_pull_that_lets_the_server_win_says_what_it_lost(stored: Replaceable, place: Office) -> None:
    ada, bob = begin(stored, place)
    ada.team.settings = SyncSettings(policy="mirror")
    ada.write(KEY, OLD + "from ada\n")
    sync(ada)
    stored.set_back("restored")
    bob.write(KEY, "ONE\n" + OLD)
    sync(bob)
    asyncio.run(ada.team.exchange(sends=False))
    assert len(ada.told(TeamVersionLost)) == 1


@pytest.mark.parametrize("how", HOW)
def test_a_lost_deletion_is_told_to_all_who_had_seen_it_and_not_done_again(
    stored: Replaceable, place: Office, how: str
) -> None:
    ada, bob = begin(stored, place)
    asyncio.run(ada.team.delete(KEY))
    sync(ada, bob)
    assert ada.texts() == bob.texts() == {}
    stored.set_back(how)
    for laptop in (ada, bob):
        sync(laptop, laptop)
        assert laptop.texts() == {KEY: OLD}
        assert laptop.told(TeamDeletionLost) == [TeamDeletionLost(KEY, 2)]


def test_a_listing_tells_which_versions_a_restore_has_lost(stored: Replaceable, place: Office) -> None:
    team, live = place.people, place.live
    team.put({KEY: "one"})
    stored.save()
    team.put({KEY: "two"})
    stored.set_back("restored")
    seq = LATER + 1
    for path in ("/api/v1/memory", "/api/v1/memory?view=hashes"):
        told = live.ask("GET", f"{path}{'&' if '?' in path else '?'}repo={team.repo}", team.token).json()
        assert (told["seq"], told["lost"]) == (seq, [{"first": 2, "last": seq}])
    stored.save()
    stored.set_back("restored")
    told = live.ask("GET", "/api/v1/memory", team.token, repo=team.repo).json()
    assert [one["first"] for one in told["lost"]] == [2, seq + 1]


def test_nothing_is_lost_on_servers_that_are_set_back() -> None:
    wrong = {seed: found for seed in range(120) if (found := play(seed, is_set_back=True))}
    assert wrong == {}


def test_nor_with_the_servers_own_backups_and_files(tmp_path: Path) -> None:
    with set_back_in(tmp_path) as server:
        wrong = {seed: found for seed in range(4) if (found := play(seed, server=server, is_set_back=True))}
    assert wrong == {}


def test_the_schedules_hold_backups_that_are_used() -> None:
    restored = 0
    for seed in range(60):
        world = World(seed, is_set_back=True)
        world.run()
        world.settle()
        restored += world.server.highest >= 1_000
    assert restored > 30


@pytest.mark.parametrize("fault", SET_BACK_FAULTS, ids=lambda fault: fault.kind.__name__)
def test_each_rule_for_a_server_that_was_set_back_is_missed_when_it_is_left_out(fault: SetBackFault) -> None:
    assert any(fault.play(seed) for seed in range(fault.first_seed, fault.first_seed + 100))
