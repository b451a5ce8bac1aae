"""`sevenfold spend`: what background work spent against its caps, and the switch over it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import cast

from sevenfold.agent.local_file import read_agreed
from sevenfold.cli.figures import spell_count, spell_share, spell_time, spell_tokens, spell_usd
from sevenfold.cli.render import Cell, Screen
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event, SpendStateLost
from sevenfold.run.governor import Governor
from sevenfold.run.spend import CENT, DAY, HOUR, MICRO, Expense, SpendSettings, SpendState
from sevenfold.store.places import PlaceSettings
from sevenfold.store.settings_files import find_user_home
from sevenfold.store.spend_book import Charge, SpendBook


def run(options: Namespace, screen: Screen) -> int:
    action, kind = cast("str", options.action), cast("str | None", options.kind)
    if (action == "forgive") != (kind is not None):
        raise InputError(
            "`sevenfold spend forgive KIND` names a kind of work, such as notes; no other action does"
        )
    settings = read_agreed(Path(), os.environ)
    home = settings.of(PlaceSettings).home_folder(find_user_home(os.environ))
    rules = settings.of(SpendSettings)
    book = SpendBook.open(home, emit=lambda event: _warn(event, screen))
    governor = Governor(book, rules, emit=lambda event: _warn(event, screen))
    now = SystemClock().now()
    try:
        _act(governor, action, kind, now)
        state = governor.state()
        charges = tuple(book.charges((now - DAY).date(), now.date()))
    finally:
        book.close()
    recent = [charge for charge in charges if charge.at > now - DAY]
    if options.json:
        screen.show_json(_described(state, recent, rules, now))
    else:
        _show(state, recent, rules, now, screen)
    return 0


def _act(governor: Governor, action: str, kind: str | None, now: datetime) -> None:
    if action == "stop":
        governor.stop(f"by hand on {spell_time(now)}")
    elif action == "resume":
        governor.resume()
    elif kind is not None:
        if kind not in governor.state().strikes:
            known = ", ".join(sorted(governor.state().strikes)) or "none"
            raise InputError(f"{kind!r} has no failures to forgive; those that have: {known}")
        governor.forgive(kind)


def _show(
    state: SpendState, recent: list[Charge], rules: SpendSettings, now: datetime, screen: Screen
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
                Cell("background work", "strong"),
                Cell("spent", "strong"),
                Cell("cap", "strong"),
                Cell("tokens", "strong"),
            ],
            _cap_row("the last hour", state.used(now, HOUR), rules.cents_per_hour, rules.tokens_per_hour),
            _cap_row("the last day", state.used(now, DAY), rules.cents_per_day, rules.tokens_per_day),
        ]
    )
    if recent:
        screen.show_line("")
        screen.show_table(
            [[Cell(name, "strong") for name in ("the last day by kind", "calls", "spent", "cached")]]
            + [
                [Cell(name), Cell(f"{len(calls):,}"), Cell(_usd(calls)), Cell(_cached(calls))]
                for name, calls in _by_kind(recent).items()
            ]
        )
    for kind, strikes in sorted(state.strikes.items()):
        rests = f"rests until {spell_time(strikes.until)}" if strikes.until > now else "still tried"
        screen.show_line(
            f"{kind}: {spell_count(strikes.count, 'failure')} in a row, {rests} ({strikes.reason})", "warning"
        )


def _cap_row(name: str, used: Expense, cents: int, tokens: int) -> list[Cell]:
    over = used.micro_usd >= cents * CENT or used.tokens >= tokens
    share = spell_share(used.micro_usd, cents * CENT)
    return [
        Cell(name),
        Cell(spell_usd(Decimal(used.micro_usd) / MICRO), "warning" if over else "plain"),
        Cell(f"{spell_usd(Decimal(cents) / 100)} ({share} used)"),
        Cell(f"{spell_tokens(used.tokens)} of {spell_tokens(tokens)}"),
    ]


def _by_kind(charges: Iterable[Charge]) -> dict[str, list[Charge]]:
    kinds: dict[str, list[Charge]] = {}
    for charge in charges:
        kinds.setdefault(charge.kind, []).append(charge)
    return kinds


def _usd(charges: list[Charge]) -> str:
    known = [charge.micro_usd for charge in charges if charge.micro_usd is not None]
    if not known:
        return spell_usd(None)
    text = spell_usd(Decimal(sum(known)) / MICRO)
    return text if len(known) == len(charges) else f"{text} and {len(charges) - len(known)} unpriced"


def _cached(charges: list[Charge]) -> str:
    return spell_share(sum(charge.read for charge in charges), sum(charge.tokens for charge in charges))


def _described(
    state: SpendState, recent: list[Charge], rules: SpendSettings, now: datetime
) -> dict[str, object]:
    def cap(span: timedelta, cents: int, tokens: int) -> dict[str, object]:
        used = state.used(now, span)
        caps = {"cap_micro_usd": cents * CENT, "cap_tokens": tokens}
        return {"micro_usd": used.micro_usd, "tokens": used.tokens, **caps}

    return {
        "background": rules.background and not state.stopped,
        "stopped": state.stopped,
        "hour": cap(HOUR, rules.cents_per_hour, rules.tokens_per_hour),
        "day": cap(DAY, rules.cents_per_day, rules.tokens_per_day),
        "kinds": {
            kind: {
                "calls": len(calls),
                "tokens": sum(call.tokens for call in calls),
                "cached_tokens": sum(call.read for call in calls),
                "micro_usd": sum(call.micro_usd or 0 for call in calls),
                "unpriced_calls": sum(call.micro_usd is None for call in calls),
            }
            for kind, calls in _by_kind(recent).items()
        },
        "strikes": {
            kind: {"count": each.count, "until": each.until.isoformat(), "reason": each.reason}
            for kind, each in sorted(state.strikes.items())
        },
    }


def _warn(event: Event, screen: Screen) -> None:
    if isinstance(event, SpendStateLost):
        screen.note(f"note: {event.where}: {event.reason}; what the ledger says is used instead")
