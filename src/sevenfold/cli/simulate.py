"""`sevenfold simulate`: a Messages API on this machine, until Ctrl-C."""

from __future__ import annotations

import secrets
import signal
import threading
from argparse import Namespace
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

from sevenfold.cli.render import Screen, Tone
from sevenfold.core.clock import SystemClock
from sevenfold.core.prices import Cost, add_costs
from sevenfold.core.usage import add_up
from sevenfold.simulator.brains.load import load_brain
from sevenfold.simulator.choices import PREFIX_CHECK_SINCE, Choices
from sevenfold.simulator.clock import VirtualClock
from sevenfold.simulator.ledger import Entry, Ledger, LedgerFile
from sevenfold.simulator.server import Host
from sevenfold.simulator.world import World

LONG_AGO = date.min
"""When an account of `--account-age old` was made: any day before the check was."""


def run(options: Namespace, screen: Screen) -> int:
    choices = Choices(
        strict=options.strict,
        account_created=PREFIX_CHECK_SINCE if options.account_age == "new" else LONG_AGO,
        cache_edits=options.cache_edits,
        foreign_signatures="keep" if options.keep_signatures else "refuse",
    )
    brain = load_brain(options.brain)
    file = LedgerFile(Path(options.ledger)) if options.ledger else None
    watch = None if options.quiet else _Watch(screen).show
    world = World(
        brain,
        choices,
        VirtualClock(SystemClock()),
        ledger=Ledger(file, watch=watch),
        salt=secrets.token_hex(3),
    )
    host = Host(lambda: world, port=options.port)
    host.start()
    try:
        _introduce(screen, host.url)
        _wait_for_interrupt()
    finally:
        host.stop()
        if file is not None:
            file.close()
    _sum_up(screen, world.ledger)
    for failure in world.failures:
        raise failure
    brain.check_done()
    return 0


def _introduce(screen: Screen, url: str) -> None:
    screen.show_line(f"export ANTHROPIC_BASE_URL={url}")
    screen.show_line("export ANTHROPIC_API_KEY=simulated")
    screen.show_line(f"# the ledger: {url}/_sevenfold/ledger · Ctrl-C ends it", "faint")
    screen.flush()


def _wait_for_interrupt() -> None:
    """Sleep until Ctrl-C, or until somebody asks the process to end."""

    def stop(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True, slots=True)
class _Watch:
    """One line a request, as they come."""

    screen: Screen

    def show(self, entry: Entry) -> None:
        usage = entry.usage
        told = [f"{entry.number:>4}  {entry.status}  {entry.model or '-'}"]
        if entry.message_id is not None:
            told.append(
                f"read {usage.read:,} written {usage.written:,} fresh {usage.fresh:,} out {usage.output:,}"
            )
            told.append(_dollars(entry.cost))
        remark = _remark(entry)
        tone: Tone = "error" if entry.error else "warning" if remark else "plain"
        self.screen.show_line("  ".join([*told, remark]).rstrip(), tone)
        self.screen.flush()


def _remark(entry: Entry) -> str:
    """What a person would want to look at."""
    if entry.error is not None:
        return entry.error
    if entry.difference is not None:
        return f"{entry.difference.cause} changed at {entry.difference.path}"
    return f"expired at {entry.expired}" if entry.expired else ""


def _sum_up(screen: Screen, ledger: Ledger) -> None:
    billed = ledger.billed
    usage = add_up(entry.usage for entry in billed)
    refused = sum(entry.status != 200 for entry in ledger.entries)
    plain = add_costs(entry.cost_without_caching for entry in billed)
    screen.show_line("")
    screen.show_line(
        f"{len(ledger.entries)} requests, {refused} refused; read {usage.read:,}, written {usage.written:,}, "
        f"fresh {usage.fresh:,}, output {usage.output:,} tokens; {_dollars(ledger.total_cost())}, "
        f"without caching {_dollars(plain)}"
    )


def _dollars(cost: Cost | None) -> str:
    if cost is None:
        return "unpriced"
    return f"${cost.total.quantize(Decimal('0.0001')):,}"
