"""Seeded schedules in their short form; `python -m tests.torture --only sync --long` runs many more."""

from __future__ import annotations

from contextlib import closing

import pytest

from sevenfold.cli.team.serve import open_database
from tests.team.client.sim_broken import DEVICES, SERVERS, Broken
from tests.team.client.sim_stored import stored_on
from tests.team.sim_world import World, play

SCHEDULES = 400


def test_nothing_is_lost_nothing_is_back_and_all_agree() -> None:
    wrong = {seed: found for seed in range(SCHEDULES) if (found := play(seed))}
    assert wrong == {}


def test_what_once_went_wrong_does_not_again() -> None:
    """A deletion after a pull that was cut off; a commit without its texts, given up, that came late."""
    assert [play(seed) for seed in (10_027_392, 10_028_958, 10_048_815, 10_052_314)] == [()] * 4


def test_the_servers_own_transactions_hold_to_it_too() -> None:
    with closing(open_database("sqlite:///:memory:")) as database:
        server = stored_on(database)
        wrong = {seed: found for seed in range(30) if (found := play(seed, server=server))}
    assert wrong == {}


def test_the_schedules_are_worth_playing() -> None:
    """There is enough in them to go wrong: conflicts, deletions, answers that were lost."""
    conflicts = deletions = replays = 0
    for seed in range(100):
        world = World(seed)
        world.run()
        replays += sum(1 for device in world.devices if device.ledger.state.pending)
        world.settle()
        conflicts += len(world.chronicle.copies)
        deletions += len(world.chronicle.deleted)
    assert min(conflicts / 100, deletions / 50, replays / 10) > 1


def test_a_schedule_is_the_same_every_time() -> None:
    first, second = World(7), World(7)
    for world in (first, second):
        world.run()
        world.settle()
    assert first.server == second.server


@pytest.mark.story
@pytest.mark.parametrize("broken", [*SERVERS, *DEVICES], ids=lambda broken: broken.kind.__name__)
def test_each_rule_is_missed_when_it_is_left_out(broken: Broken) -> None:
    seeds = range(broken.first_seed, broken.first_seed + 100)
    assert any(broken.play(seed) for seed in seeds)
