"""`sevenfold simulate`: a Messages API on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import signal
from argparse import Namespace
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

from sevenfold.cli.screen import Screen, Tone
from sevenfold.core.clock import SystemClock
from sevenfold.core.events import Emit, Event, PriceUnknown, SettingRefused, describe_event
from sevenfold.core.prices import Catalog, Cost, ModelSettings, build_catalog, sum_costs
from sevenfold.core.usage import sum_usage
from sevenfold.simulator.ledger import BillingLedger, Entry, LedgerFile
from sevenfold.simulator.load_brain import load_brain
from sevenfold.simulator.server import SimulatorServer
from sevenfold.simulator.simulator_state import SimulatorState, VirtualClock
from sevenfold.simulator.wire.choices import PREFIX_CHECK_SINCE, Choices
from sevenfold.store.project.settings_files import find_checkout, read_settings

STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})
"""Ctrl-C, and what a supervisor sends."""

OLD_ACCOUNT_DATE = date.min
"""When an account of `--account-age old` was made: any day before the check was."""


def run_simulate(options: Namespace, screen: Screen) -> int:
    choices = Choices(
        strict=options.strict,
        account_created=PREFIX_CHECK_SINCE if options.account_age == "new" else OLD_ACCOUNT_DATE,
        cache_edits=options.cache_edits,
        foreign_signatures="keep" if options.keep_signatures else "refuse",
    )
    brain, events = load_brain(options.brain), list[Event]()
    catalog = _read_catalog(events.append)
    file = LedgerFile(Path(options.ledger)) if options.ledger else None
    watch = None if options.quiet else _Watch(screen).show
    world = SimulatorState(
        brain=brain,
        choices=choices,
        clock=VirtualClock(SystemClock()),
        catalog=catalog,
        ledger=BillingLedger(file, watch=watch),
        salt=secrets.token_hex(3),
    )
    host = SimulatorServer(lambda: world, port=options.port)
    try:
        # From here on a signal waits its turn: one that answers our very first line ends us as any other.
        with _blocked_signals():
            host.start()
            _introduce(screen, host.url, events)
            signal.sigwait(STOP_SIGNALS)
    finally:
        host.stop()
        if file is not None:
            file.close()
    _sum_up(screen, world.ledger)
    for failure in world.failures:
        raise failure
    brain.check_done()
    return 0


def _read_catalog(emit: Emit) -> Catalog:
    """The table with the user's own models over it; those without a price are reported at once."""
    settings = read_settings(
        [ModelSettings], root=find_checkout(Path()), environ=os.environ, is_part=True, emit=emit
    )
    catalog = build_catalog(settings)
    for name in settings.each(ModelSettings):
        catalog.find(name, emit)
    return catalog


def _introduce(screen: Screen, url: str, events: Iterable[Event]) -> None:
    screen.show_line(f"export ANTHROPIC_BASE_URL={url}")
    screen.show_line("export ANTHROPIC_API_KEY=simulated")
    screen.show_line(f"# the ledger: {url}/_sevenfold/ledger · Ctrl-C ends it", "faint")
    for event in events:
        screen.show_line(f"# {_described(event)}", "warning")
    screen.flush()


def _described(event: Event) -> str:
    match event:
        case PriceUnknown():
            return f"no price is known for {event.model}: what it costs is not counted"
        case SettingRefused():
            return f"{event.key} of {event.source} is not used: {event.reason}"
        case _:
            return ", ".join(f"{name} {value}" for name, value in describe_event(event).items())


@contextmanager
def _blocked_signals() -> Generator[None]:
    """Keep the signals that end us from interrupting anything; the threads started inside keep them too."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        # A second Ctrl-C, while the simulator stops, interrupts as usual.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class _Watch:
    """One line a request, as they come."""

    screen: Screen

    def show(self, entry: Entry) -> None:
        usage = entry.usage
        parts = [f"{entry.number:>4}  {entry.status}  {entry.model or '-'}"]
        if entry.message_id is not None:
            parts.append(
                f"read {usage.read:,} written {usage.written:,} fresh {usage.fresh:,} out {usage.output:,}"
            )
            parts.append(_dollars(entry.cost))
        remark = _remark(entry)
        tone: Tone = "error" if entry.error else "warning" if remark else "plain"
        self.screen.show_line("  ".join([*parts, remark]).rstrip(), tone)
        self.screen.flush()


def _remark(entry: Entry) -> str:
    """What a person would want to look at."""
    if entry.error is not None:
        return entry.error
    parts = [_described(event) for event in entry.events]
    if entry.difference is not None:
        parts.append(f"{entry.difference.cause} changed at {entry.difference.path}")
    elif entry.expired:
        parts.append(f"expired at {entry.expired}")
    return "; ".join(parts)


def _sum_up(screen: Screen, ledger: BillingLedger) -> None:
    billed = ledger.billed
    usage = sum_usage(entry.usage for entry in billed)
    refused = sum(entry.status != 200 for entry in ledger.entries)
    plain = sum_costs(entry.cost_without_caching for entry in billed)
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
