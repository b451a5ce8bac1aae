"""`sevenfold spend`: what background work spent against its caps, and the switch that stops it."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime
from decimal import Decimal
from typing import cast

from sevenfold.cli.screen import (
    Screen,
    TableCell,
    format_count,
    format_share,
    format_time,
    format_tokens,
    format_usd,
)
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event, SpendStateLost
from sevenfold.session.budget import (
    MICROS_PER_CENT,
    MICROS_PER_USD,
    SPEND_DAY,
    SPEND_HOUR,
    Expense,
    SpendSettings,
    SpendState,
)
from sevenfold.session.governor import Governor, SpendCharge, SpendStore, describe_spend, group_charges


def run_spend(options: Namespace, screen: Screen) -> int:
    action, kind = cast("str", options.action), cast("str | None", options.kind)
    if (action == "forgive") != (kind is not None):
        raise InputError(
            "`sevenfold spend forgive KIND` names a kind of work, such as notes; no other action does"
        )
    workspace = open_workspace()
    rules = workspace.settings.of(SpendSettings)
    store = SpendStore.open(workspace.home, emit=lambda event: _warn(event, screen))
    governor = Governor(store, rules, emit=lambda event: _warn(event, screen))
    now = SystemClock().now()
    try:
        _act(governor, action, kind, now)
        state = governor.state()
        charges = tuple(store.charges((now - SPEND_DAY).date(), now.date()))
    finally:
        store.close()
    past = [charge for charge in charges if charge.at > now - SPEND_DAY]
    recent = [charge for charge in past if not charge.is_unbilled]
    unbilled = len(past) - len(recent) + len(state.held)
    if options.json:
        screen.show_json({**describe_spend(state, recent, rules, now), "unbilled_calls": unbilled})
        return 0
    _show(state, recent, rules, now, screen)
    if unbilled:
        screen.show_line(
            f"{format_count(unbilled, 'request')} without a bill, under way or lost: the caps count what was "
            "expected of each",
            "warning",
        )
    return 0


def _act(governor: Governor, action: str, kind: str | None, now: datetime) -> None:
    if action == "stop":
        governor.stop(f"by hand on {format_time(now)}")
    elif action == "resume":
        governor.resume()
    elif kind is not None:
        if kind not in governor.state().strikes:
            known = ", ".join(sorted(governor.state().strikes)) or "none"
            raise InputError(f"{kind!r} has no failures to forgive; those that have: {known}")
        governor.forgive(kind)


def _show(
    state: SpendState, recent: list[SpendCharge], rules: SpendSettings, now: datetime, screen: Screen
) -> None:
    if not rules.background:
        screen.show_line("Background work is switched off by spend.background.", "warning")
    if state.stopped:
        screen.show_line(
            f"Background work was stopped {state.stopped}; `sevenfold spend resume` lets it go on.", "warning"
        )
    screen.show_table(
        [
            [
                TableCell("background work", "strong"),
                TableCell("spent", "strong"),
                TableCell("cap", "strong"),
                TableCell("tokens", "strong"),
            ],
            _cap_row(
                "the last hour", state.used(now, SPEND_HOUR), rules.cents_per_hour, rules.tokens_per_hour
            ),
            _cap_row("the last day", state.used(now, SPEND_DAY), rules.cents_per_day, rules.tokens_per_day),
        ]
    )
    if recent:
        screen.show_line("")
        screen.show_table(
            [[TableCell(name, "strong") for name in ("the last day by kind", "calls", "spent", "cached")]]
            + [
                [
                    TableCell(name),
                    TableCell(f"{len(calls):,}"),
                    TableCell(_usd(calls)),
                    TableCell(_cached(calls)),
                ]
                for name, calls in group_charges(recent).items()
            ]
        )
    for kind, strikes in sorted(state.strikes.items()):
        rests = f"rests until {format_time(strikes.until)}" if strikes.until > now else "still tried"
        screen.show_line(
            f"{kind}: {format_count(strikes.count, 'failure')} in a row, {rests} ({strikes.reason})",
            "warning",
        )


def _cap_row(name: str, used: Expense, cents: int, tokens: int) -> list[TableCell]:
    over = used.micro_usd >= cents * MICROS_PER_CENT or used.tokens >= tokens
    share = format_share(used.micro_usd, cents * MICROS_PER_CENT)
    return [
        TableCell(name),
        TableCell(format_usd(Decimal(used.micro_usd) / MICROS_PER_USD), "warning" if over else "plain"),
        TableCell(f"{format_usd(Decimal(cents) / 100)} ({share} used)"),
        TableCell(f"{format_tokens(used.tokens)} of {format_tokens(tokens)}"),
    ]


def _usd(charges: list[SpendCharge]) -> str:
    known = [charge.micro_usd for charge in charges if charge.micro_usd is not None]
    if not known:
        return format_usd(None)
    text = format_usd(Decimal(sum(known)) / MICROS_PER_USD)
    return text if len(known) == len(charges) else f"{text} and {len(charges) - len(known)} unpriced"


def _cached(charges: list[SpendCharge]) -> str:
    prompts = sum(charge.tokens if charge.prompt is None else charge.prompt for charge in charges)
    return format_share(sum(charge.read for charge in charges), prompts)


def _warn(event: Event, screen: Screen) -> None:
    if isinstance(event, SpendStateLost):
        screen.note(f"note: {event.where}: {event.reason}; what the ledger says is used instead")
