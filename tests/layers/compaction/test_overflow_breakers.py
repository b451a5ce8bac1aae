"""What failed too often is not tried again, in this process or the next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.core.errors import CompactionStopped, DiskFull, Overloaded, ReplyBroken
from sevenfold.core.events import BreakerOpened, BreakerStateLost, Event, HistoryCompacted, RungSkipped
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest
from sevenfold.layers.compaction.compactor import COMPACT_STATE_FILE, CompactionStateFile
from sevenfold.layers.compaction.policy import BreakerState
from sevenfold.store.files.folder import Folder
from tests.layers.compaction.overflows import GOOD, Rig, job, talk


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(tmp_path / "session", create=True) as folder:
        yield folder


def failing(session: Folder | None = None) -> Rig:
    """A provider that is always busy, in a process that has just started."""

    def busy(_: ModelRequest) -> Exception:
        return Overloaded("busy")

    return Rig(steps=busy, state=CompactionStateFile(session))


def test_three_failed_summaries_are_the_last_in_this_session() -> None:
    rig = failing()
    rungs = [rig.compact(job(talk())).rung for _ in range(6)]
    assert rungs == ["structural"] * 6
    assert rig.calls == 3
    assert [event for event in rig.heard if isinstance(event, BreakerOpened)] == [
        BreakerOpened("summary", 3, "Overloaded: busy")
    ]


def test_a_restart_forgives_nothing(session: Folder) -> None:
    calls = 0
    for _ in range(6):
        rig = failing(session)
        assert rig.compact(job(talk())).rung == "structural"
        calls += rig.calls
    assert calls == 3


def test_broken_streams_are_retried_twice_and_then_never_again(session: Folder) -> None:
    rig = Rig(steps=[ReplyBroken("cut")] * 3, state=CompactionStateFile(session))
    assert rig.compact(job(talk())).rung == "structural"
    again = Rig(state=CompactionStateFile(session))
    assert again.compact(job(talk())).rung == "structural"
    assert (rig.calls, again.calls) == (3, 0)


def test_a_success_forgets_the_failures(session: Folder) -> None:
    rig = Rig(steps=[Overloaded("busy"), Overloaded("busy"), GOOD], state=CompactionStateFile(session))
    rungs = [rig.compact(job(talk())).rung for _ in range(3)]
    assert rungs == ["structural", "structural", "summary"]
    assert CompactionStateFile(session).read().failures_in_row == 0


def test_by_hand_a_summary_is_tried_again_and_closes_the_breaker(session: Folder) -> None:
    rig = failing(session)
    for _ in range(4):
        rig.compact(job(talk()))
    healed = Rig(steps=[GOOD, GOOD], state=CompactionStateFile(session))
    assert healed.compact(job(talk(), trigger="manual")).rung == "summary"
    assert healed.compact(job(talk())).rung == "summary"


def test_a_call_is_counted_before_it_is_made(session: Folder) -> None:
    """A process that is killed in mid-call leaves the count behind."""
    seen: list[BreakerState] = []

    def look(_: ModelRequest) -> str:
        seen.append(CompactionStateFile(session).read())
        return GOOD

    Rig(steps=look, state=CompactionStateFile(session)).compact(job(talk()))
    assert seen == [BreakerState(failures_in_row=1)]
    assert CompactionStateFile(session).read().failures_in_row == 0


def test_a_cancelled_summary_is_no_failure(session: Folder) -> None:
    async def run(rig: Rig, asked: asyncio.Event) -> None:
        task = asyncio.create_task(rig.overflow.compact(job(talk())))
        await asked.wait()
        task.cancel()
        await task

    async def main() -> None:
        asked = asyncio.Event()

        async def never(_: ModelRequest) -> str:
            asked.set()
            await asyncio.Event().wait()
            return ""

        await run(Rig(steps=never, state=CompactionStateFile(session)), asked)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert CompactionStateFile(session).read() == BreakerState()


def test_compactions_that_help_nothing_stop_the_automatic_ones(session: Folder) -> None:
    rig = Rig(steps=[GOOD] * 2, state=CompactionStateFile(session))
    for _ in range(2):
        wanted = job(talk())
        # The frame alone is over the target: whatever is cut, the view stays too large.
        result = rig.compact(replace(wanted, tokens_before=wanted.tokens_before + wanted.target))
        assert result.rung == "clip"
        assert result.tokens_after > wanted.target
    assert rig.overflow.is_stopped
    assert [event.breaker for event in rig.heard if isinstance(event, BreakerOpened)] == ["thrash"]
    restarted = Rig(state=CompactionStateFile(session))
    with pytest.raises(CompactionStopped, match="2 compactions in a row helped nothing"):
        restarted.compact(job(talk()))


def fill_at_once(rig: Rig) -> list[Message]:
    """Three compactions, each followed by a round that fills the view again."""
    view = talk()
    for _ in range(3):
        assert not rig.overflow.is_stopped
        view = [*rig.compact(job(view)).view, *talk(1, words=30_000)[1:]]
    return view


def test_a_view_that_is_full_again_at_once_counts_as_no_help() -> None:
    rig = Rig(steps=[GOOD] * 3)
    fill_at_once(rig)
    assert rig.overflow.is_stopped


def test_a_view_that_fills_up_slowly_may_be_compacted_for_ever() -> None:
    rig = Rig(steps=[GOOD] * 6)
    view = talk()
    for _ in range(6):
        view = [*rig.compact(job(view)).view, *talk(20)[1:]]
    assert not rig.overflow.is_stopped


def test_when_the_provider_insists_what_needs_no_model_is_still_done() -> None:
    rig = Rig(steps=[GOOD] * 3)
    view = fill_at_once(rig)
    result = rig.compact(job(view, trigger="reactive"))
    assert (result.rung, rig.calls) == ("structural", 3)
    reasons = {event.rung: event.reason for event in rig.heard if isinstance(event, RungSkipped)}
    assert "helped nothing" in reasons["trimmed"]


@pytest.mark.moves_prefix(reason="each summary is about another view, and no session announces the cuts")
def test_by_hand_a_compaction_that_helps_lets_automatic_ones_run_again() -> None:
    rig = Rig(steps=[GOOD] * 5)
    view = fill_at_once(rig)
    view = [*rig.compact(job(view, trigger="manual")).view, *talk()[1:]]
    assert not rig.overflow.is_stopped
    assert rig.compact(job(view)).rung == "summary"


def test_a_damaged_state_is_told_and_started_anew(session: Folder) -> None:
    session.replace(COMPACT_STATE_FILE, b'{"failures_in_row": "many"}')
    heard: list[Event] = []
    assert CompactionStateFile(session, emit=heard.append).read() == BreakerState()
    (told,) = heard
    assert isinstance(told, BreakerStateLost)
    assert told.path.endswith(COMPACT_STATE_FILE)


def test_a_disk_that_refuses_the_state_stops_no_compaction(
    session: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise DiskFull("no space left")

    monkeypatch.setattr(Folder, "replace", full)
    heard: list[Event] = []
    rig = Rig(steps=[GOOD], state=CompactionStateFile(session, emit=heard.append))
    assert rig.compact(job(talk())).rung == "summary"
    assert any(isinstance(event, BreakerStateLost) for event in heard)
    assert isinstance(rig.heard[-1], HistoryCompacted)
