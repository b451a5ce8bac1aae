"""The rigs in their shortest form: nothing is wrong with the store, and something with every broken one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from anthropic.types import MessageParam

from sevenfold.testing import Simulator
from tests.store.faults import Operation
from tests.torture import paths, power, syscalls
from tests.torture.bills import compare_bills, run_bills
from tests.torture.broken import (
    BYPASS,
    FollowingDisk,
    Plant,
    WaitingDisk,
    acknowledge_before_writing,
    acknowledge_on_receipt,
    count_crashes_as_success,
    dream_over_edits,
    forget_what_was_told,
    hold_no_mutex,
    leave_tails_open,
    let_errors_out,
    move_in_two_steps,
    name_by_slug,
    never_sync,
    publish_without_fencing,
    replace_in_place,
    sync_files_alone,
)
from tests.torture.contention import run_edits, run_rounds
from tests.torture.cuts import run_cuts
from tests.torture.dreams import run_dreams
from tests.torture.faults import DEATHS, LACKING_DISK, Make, run_calm, run_faults, stands_in
from tests.torture.kills import run_kills
from tests.torture.leases import run_leases
from tests.torture.paths import Way, run_identity, run_paths
from tests.torture.play_dream import Dreams
from tests.torture.play_files import Edits, Files
from tests.torture.play_lock import Leases
from tests.torture.play_transcript import Transcripts
from tests.torture.post import run_mail
from tests.torture.power import run_loops
from tests.torture.races import run_races
from tests.torture.rig import Orders, Outcome, Progress, outcome
from tests.torture.stage import QuickDisk
from tests.torture.syscalls import LOOKS, match_port, points_of, run_syscalls

pytestmark = pytest.mark.torture


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders("tiny", 1, tmp_path, Progress(quiet=True))


def expect_nothing(found: Sequence[Outcome]) -> None:
    """Everything was tried, and nothing was wrong."""
    for line in found:
        if line.skipped:
            pytest.skip(line.skipped)
        assert line.shown == []
        assert line.violations == 0
        assert line.count > 0


def expect_something(found: Sequence[Outcome], what: str) -> None:
    shown = [text for line in found for text in line.shown]
    assert any(what in text for text in shown), shown


def expect_in_time(run: Callable[[Orders], Sequence[Outcome]], orders: Orders, what: str) -> None:
    """What depends on when a kill comes is missed five times in six by a fast machine, not sixty times."""
    shown: list[str] = []
    for seed in range(1, 61):
        shown += [text for line in run(replace(orders, seed=seed)) for text in line.shown]
        if any(what in text for text in shown):
            return
    pytest.fail(f"{what!r} was never seen; seen: {shown}")


def test_no_accident_at_any_operation_loses_or_tears_anything(orders: Orders) -> None:
    expect_nothing(run_faults(orders))


@pytest.mark.parametrize(
    ("plant", "scenario", "what"),
    [
        (replace_in_place, Files, "a state that nobody made"),
        (replace_in_place, Edits, "lines [0"),
        (leave_tails_open, Transcripts, "joined"),
        (move_in_two_steps, Files, "has 2 names (hard links)"),
        (let_errors_out, Files, "none of ours came out: OSError"),
        (count_crashes_as_success, Leases, "but nothing was published then"),
        (publish_without_fencing, Leases, "could publish"),
    ],
)
def test_accidents_show_what_is_wrong_with_a_broken_store(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, plant: Plant, scenario: Make, what: str
) -> None:
    plant(monkeypatch)
    expect_something(run_faults(orders, [scenario], points=80), what)


def test_no_system_call_that_fails_or_kills_loses_or_tears_anything(orders: Orders) -> None:
    expect_nothing(run_syscalls(orders))


def test_looking_at_files_and_closing_them_are_among_the_calls_that_are_struck(tmp_path: Path) -> None:
    expect_tools(syscalls.why_not())
    struck = {(point.call, point.injection) for point in points_of(Files, 1, tmp_path / "files")}
    for injection in ("signal=SIGKILL", "error=EIO"):
        assert ("close", injection) in struck
        assert any((call, injection) in struck for call in LOOKS)


def operations_of(make: Make, orders: Orders) -> list[Operation]:
    return run_calm(make(orders.seed), orders.place / "calm", LACKING_DISK).operations


def test_a_death_in_the_middle_of_every_move_is_always_tried(orders: Orders) -> None:
    """However few points there are: on a file system that cannot move without replacing in one step."""
    operations = operations_of(Files, orders)
    standing = [at for at in range(1, len(operations) + 1) if stands_in(operations, at)]
    assert "rename" in {operations[at - 1] for at in standing}
    (found,) = run_faults(orders, [Files], points=1)
    assert found.count == len(DEATHS) * len(standing)
    assert found.violations == 0


def test_system_calls_show_that_a_file_is_replaced_in_place(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect_tools(syscalls.why_not())
    replace_in_place(monkeypatch)
    expect_something(run_syscalls(orders, [Files])[1:], "a state that nobody made")


def test_a_write_that_bypasses_the_port_is_found(orders: Orders) -> None:
    expect_tools(syscalls.why_not())
    with outcome("planted", "calls") as found, orders.scratch("bypass") as place:
        match_port(found, place, 1, ("-c", BYPASS))
    expect_something([found], "the port was asked to write")


def test_killed_writers_lose_nothing_that_was_acknowledged(orders: Orders) -> None:
    expect_nothing(run_kills(orders))


def test_after_a_kill_each_billed_request_is_counted(orders: Orders) -> None:
    expect_nothing(run_bills(orders))


def test_a_bill_that_is_missing_is_found() -> None:
    with Simulator() as sim, sim.client() as client, outcome("planted", "runs") as found:
        said: MessageParam = {"role": "user", "content": "hi"}
        client.messages.create(model="claude-opus-5", max_tokens=50, messages=[said])
        compare_bills({"spent": {}, "unbilled_requests": 0}, list(sim.ledger.entries), found)
    expect_something([found], "1 requests were billed; 0 are known and 0 shown as unknown")


def test_kills_show_that_records_are_acknowledged_before_they_are_written(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledge_before_writing(monkeypatch)
    expect_something(run_kills(orders), "records acknowledged and")


def test_messages_between_killed_agents_come_into_each_history_exactly_once(orders: Orders) -> None:
    expect_nothing(run_mail(orders))


@pytest.mark.parametrize(
    ("plant", "what"), [(acknowledge_on_receipt, "never came to"), (forget_what_was_told, "was told")]
)
def test_kills_show_that_mail_is_lost_or_told_twice(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, plant: Plant, what: str
) -> None:
    plant(monkeypatch)
    expect_in_time(run_mail, orders, what)


def test_one_holds_the_lock_at_a_time_and_late_holders_publish_nothing(orders: Orders) -> None:
    expect_nothing([*run_leases(orders), *run_rounds(orders)])


def test_a_lock_without_fencing_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_without_fencing(monkeypatch)
    # Which of its faults shows first is a matter of which process was late.
    found = run_leases(orders)
    assert sum(line.violations for line in found) > 0
    assert any(line.shown for line in found)


def test_a_lock_that_two_can_take_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    hold_no_mutex(monkeypatch)
    expect_something(run_rounds(orders), "took a dead holder's lock")


def test_concurrent_edits_of_a_file_lose_no_line(orders: Orders) -> None:
    expect_nothing(run_edits(orders))


def test_edits_that_lose_lines_are_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    hold_no_mutex(monkeypatch)
    expect_in_time(run_edits, orders, "is lost")


def test_dreams_that_are_struck_or_killed_lose_no_edit_and_publish_all_or_nothing(orders: Orders) -> None:
    expect_nothing(run_dreams(orders))


def test_a_dream_that_writes_over_edits_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    dream_over_edits(monkeypatch)
    expect_something(run_faults(orders, [Dreams], points=1), "the edit that was made meanwhile is lost")


def test_no_hostile_key_gets_out_and_no_two_roots_share_a_name(orders: Orders) -> None:
    expect_nothing(run_paths(orders))


def test_a_folder_that_follows_links_is_found(orders: Orders) -> None:
    found = run_paths(orders, [Way("planted", FollowingDisk())])
    expect_something(found, "brought in what is outside")
    expect_something(found, "something outside was changed")


def test_a_folder_that_hangs_on_a_fifo_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LONGEST_SECONDS", 1)
    expect_something(run_paths(orders, [Way("planted", WaitingDisk())]), "hung")


def test_a_name_that_two_roots_share_is_found(orders: Orders) -> None:
    expect_something([run_identity(orders, name_by_slug)], "shares its name")


def test_no_rename_race_gets_out(orders: Orders) -> None:
    expect_nothing(run_races(orders))


def test_a_folder_that_loses_rename_races_is_found(orders: Orders) -> None:
    expect_something(run_races(orders, [Way("planted", FollowingDisk())]), "got outside")


def test_no_simulated_power_cut_loses_or_tears_anything(orders: Orders) -> None:
    expect_nothing(run_cuts(orders))


@pytest.mark.parametrize("plant", [never_sync, sync_files_alone, replace_in_place])
def test_simulated_power_cuts_show_what_was_not_synced(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    expect_something(run_cuts(orders), "cut at moment")


def test_a_file_system_whose_power_is_cut_keeps_what_was_acknowledged(orders: Orders) -> None:
    expect_nothing(run_loops(orders))


def test_a_power_cut_shows_that_nothing_was_synced(orders: Orders) -> None:
    expect_tools(power.why_not())
    expect_something(run_loops(orders, QuickDisk()), "records acknowledged and")


def expect_tools(missing: str | None) -> None:
    if missing:
        pytest.skip(missing)
