"""Kills `sevenfold chat -p` at random moments, and compares what `stats` counts with what was billed.

Every billed request must be counted: with its bill, or as one that no bill came for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.torture.rig import Orders, Outcome, outcome

ROUNDS = 3
MOST_SECONDS = 60.0
"""A run that nobody kills takes a second or two."""


def answer(prompt: Prompt) -> Reply:
    """A few rounds of tool calls, so that most kills meet a request."""
    if len(prompt.results) and prompt.number % ROUNDS == 0:
        return say("Done. " * 40)
    return say("I look. " * 40, calls={"glob": {"pattern": "*"}})


def run_bills(orders: Orders) -> list[Outcome]:
    random, kills = orders.random("bills"), orders.pick(1, 4, 120)
    with outcome("bills after kills", "runs") as line, orders.scratch("bills") as place:
        asked = threading.Semaphore(0)

        def brain(prompt: Prompt) -> Reply:
            asked.release()
            return answer(prompt)

        with Simulator(brain) as sim:
            environ = _environ(place, sim.url)
            for _ in range(kills):
                _run_and_kill(environ, place, random, asked)
                line.count += 1
                orders.progress(line.name, line.count, kills, line.unit)
            billed = [entry for entry in sim.ledger.entries if entry.cost is not None and entry.cost.total]
            compare_bills(_read_stats(environ, place), billed, line)
    return [line]


def _run_and_kill(environ: dict[str, str], place: Path, random: Random, asked: threading.Semaphore) -> None:
    """Kill it a moment after one of its requests came, or let it end."""
    while asked.acquire(blocking=False):
        pass
    command = [sys.executable, "-m", "sevenfold", "chat", "-p", "look around", "--mode", "bypass"]
    none = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=place / "project", env=environ, stdin=none, stdout=none, stderr=none
    ) as chat:
        for _ in range(random.randint(1, ROUNDS)):
            asked.acquire(timeout=MOST_SECONDS)
        with suppress(subprocess.TimeoutExpired):
            chat.wait(random.choice((0.0, 0.001, 0.01, 0.05, 0.2, 1.0)))
        chat.kill()


def compare_bills(stats: dict[str, Any], billed: list[Any], line: Outcome) -> None:
    """What is missing in a sum of `stats`, or too much in it."""
    spent: dict[str, dict[str, Any]] = stats["spent"]
    known = sum(one["calls"] for one in spent.values())
    unknown = stats["unbilled_requests"]
    if known + unknown < len(billed):
        line.wrong(f"{len(billed)} requests were billed; {known} are known and {unknown} shown as unknown")
    if known > len(billed):
        line.wrong(f"{known} bills are counted; {len(billed)} requests were billed")
    paid = sum((entry.cost.total for entry in billed), Decimal())
    told = sum((Decimal(one["usd"]) for one in spent.values() if one["usd"]), Decimal())
    if told > paid:
        line.wrong(f"{told} USD are counted and {paid} were billed")
    share = 100 * (1 - told / paid) if paid else Decimal()
    line.notes.append(
        f"{len(billed)} billed, {known} known, {unknown} without a bill; {share:.1f}% of the money is unknown"
    )


def _read_stats(environ: dict[str, str], place: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "sevenfold", "stats", "--json"]
    ran = subprocess.run(command, cwd=place / "project", env=environ, capture_output=True, check=True)
    return json.loads(ran.stdout)["total"]


def _environ(place: Path, url: str) -> dict[str, str]:
    (place / "project").mkdir()
    return {
        "HOME": str(place),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "k",
    }
