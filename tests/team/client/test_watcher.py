"""What is new is sent a moment after its last change, and nothing echoes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import DiskFault, LockBusy
from sevenfold.core.events import Event, TeamStopped, TeamSynced
from sevenfold.core.memories import TEAM_PREFIX
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.team.client.memory import NOTICE_EVERY, TeamWatcher
from tests.team.laptops import PERSON, Laptop, Office

SECOND = timedelta(seconds=1)


def watch(laptop: Laptop) -> TeamWatcher:
    return TeamWatcher(laptop.team, laptop.memory, clock=laptop.clock)


def look(laptop: Laptop, watcher: TeamWatcher, times: int = 1) -> None:
    """As many seconds as looks."""
    for _ in range(times):
        asyncio.run(watcher.look())
        laptop.clock.pass_time(SECOND)


def test_a_change_is_sent_two_seconds_after_the_last_one(office: Office, ada: Laptop) -> None:
    watcher = watch(ada)
    ada.write("a.md", "one\n")
    look(ada, watcher, 2)
    ada.write("a.md", "two\n")
    look(ada, watcher, 2)
    assert office.people.texts() == {}
    look(ada, watcher)
    assert office.people.texts() == {"a.md": "two\n"}


def test_what_was_received_is_not_sent_back_and_private_memories_are_no_news(
    office: Office, ada: Laptop, bob: Laptop
) -> None:
    ada.write("a.md", "one\n")
    asyncio.run(ada.team.exchange())
    watcher = watch(bob)
    asyncio.run(bob.team.exchange(sends=False))
    asked = len(office.live.lines)
    look(bob, watcher, 5)
    bob.memory.commit([_private()], PERSON)
    look(bob, watcher, 5)
    assert len(office.live.lines) == asked
    assert len(bob.told(TeamSynced)) == 1


def _private() -> Write:
    return Write("mine.md", "private\n", None)


def test_what_cannot_be_sent_is_not_tried_again_and_again(office: Office, ada: Laptop) -> None:
    watcher = watch(ada)
    ada.write("a.md", "AKIA" + "Q3EGRIOZ7XKDWVTB\n")
    look(ada, watcher, 4)
    asked = len(office.live.lines)
    look(ada, watcher, 10)
    assert len(office.live.lines) == asked
    ada.write("b.md", "harmless\n")
    look(ada, watcher, 4)
    assert office.people.texts() == {"b.md": "harmless\n"}


def test_an_edit_past_the_engine_is_noticed_and_waits_for_a_person(office: Office, ada: Laptop) -> None:
    watcher = watch(ada)
    ada.write("a.md", "one\n")
    look(ada, watcher, 4)
    (Path(ada.memory.path) / TEAM_PREFIX / "a.md").write_text("two, with an editor\n")
    look(ada, watcher, NOTICE_EVERY + 4)
    assert office.people.texts() == {"a.md": "one\n"}
    (waiting,) = ada.memory.waiting()
    ada.memory.accept(waiting.id)
    look(ada, watcher, 4)
    assert office.people.texts() == {"a.md": "two, with an editor\n"}


@pytest.mark.parametrize("failures", [30])
def test_a_server_that_is_away_is_asked_less_and_less(office: Office, failures: int) -> None:
    away = office.laptop("away", url="http://127.0.0.1:9")
    watcher = watch(away)
    away.write("a.md", "one\n")
    look(away, watcher, 600)
    tried = len(away.team.ledger.read_retry().failures)
    assert 3 <= tried <= failures


def test_while_a_server_is_away_the_files_are_not_read_again_and_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = office.laptop("away", url="http://127.0.0.1:9")
    watcher = watch(away)
    away.write("a.md", "one\n")
    look(away, watcher, 20)
    reads: list[object] = []
    scan = away.team.files.read_all
    monkeypatch.setattr(away.team.files, "read_all", lambda: reads.append(1) or scan())
    look(away, watcher, 40)
    assert len(reads) <= 6


def test_a_private_memory_does_not_put_off_what_is_to_be_sent(office: Office, ada: Laptop) -> None:
    watcher = watch(ada)
    ada.write("a.md", "one\n")
    for at in range(4):
        look(ada, watcher)
        ada.memory.commit([Write(f"mine{at}.md", "private\n", None)], PERSON)
    assert office.people.texts() == {"a.md": "one\n"}


def test_a_ledger_that_cannot_be_read_ends_the_watch_and_is_said(ada: Laptop) -> None:
    (Path(ada.folder.path) / "state.json").write_text("{")
    heard: list[Event] = []
    asyncio.run(TeamWatcher(ada.team, ada.memory, clock=ada.clock, emit=heard.append).run())
    assert [type(event) for event in heard] == [TeamStopped]


def test_memories_that_others_are_busy_with_do_not_end_the_watch(
    ada: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Event] = []
    watcher = TeamWatcher(ada.team, ada.memory, clock=ada.clock, emit=heard.append)
    errors = iter([LockBusy("busy"), LockBusy("busy"), DiskFault("gone")])

    def fail(*_: object, **__: object) -> int:
        raise next(errors)

    monkeypatch.setattr(MemoryDir, "generation", fail)
    monkeypatch.setattr("sevenfold.team.client.memory.LOOK_SECONDS", 0)
    asyncio.run(watcher.run())
    assert heard == [TeamStopped("gone")]


def test_news_that_did_not_come_in_time_come_while_the_session_goes_on(
    office: Office, ada: Laptop, bob: Laptop
) -> None:
    ada.write("a.md", "one\n")
    asyncio.run(ada.team.exchange())
    watcher = TeamWatcher(bob.team, bob.memory, is_behind=True, clock=bob.clock)
    look(bob, watcher, 4)
    assert bob.texts() == {"a.md": "one\n"}
    asked = len(office.live.lines)
    look(bob, watcher, 5)
    assert len(office.live.lines) == asked


def test_what_is_new_at_the_end_of_a_session_is_sent_then(office: Office, ada: Laptop) -> None:
    watcher = watch(ada)
    look(ada, watcher)
    ada.write("a.md", "one\n")
    asyncio.run(watcher.finish())
    assert office.people.texts() == {"a.md": "one\n"}
    asked = len(office.live.lines)
    asyncio.run(watcher.finish())
    assert len(office.live.lines) == asked


def test_a_session_that_ends_without_its_ledger_says_so(ada: Laptop) -> None:
    (Path(ada.folder.path) / "state.json").write_text("{")
    heard: list[Event] = []
    asyncio.run(TeamWatcher(ada.team, ada.memory, clock=ada.clock, emit=heard.append).finish())
    assert [type(event) for event in heard] == [TeamStopped]
