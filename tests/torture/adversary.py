"""The adversary: whoever writes what an agent reads. `ADVERSARIES` has a line for each class of attack."""

from __future__ import annotations

from collections.abc import Mapping

from tests.torture.adversary_repository import run_repository
from tests.torture.adversary_terminal import run_terminal
from tests.torture.endpoint import run_endpoint
from tests.torture.poisoning import run_poisoning
from tests.torture.rig import Orders, Outcome, Rig

ADVERSARIES: Mapping[str, Rig] = {
    "repository": run_repository,
    "terminal": run_terminal,
    "endpoint": run_endpoint,
    "poisoning": run_poisoning,
}


def run_adversary(orders: Orders) -> list[Outcome]:
    return [line for rig in ADVERSARIES.values() for line in rig(orders)]
