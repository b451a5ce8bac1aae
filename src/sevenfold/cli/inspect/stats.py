"""`sevenfold stats`: what a project's sessions cost over time, and what the layers did.

A table by day or session, and sums below it.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import cast

from sevenfold.cli.inspect.stats_facts import (
    MAIN,
    MemoryQuality,
    ProjectFacts,
    RecallUse,
    SessionFacts,
    read_project_facts,
)
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
from sevenfold.core.prices import sum_costs
from sevenfold.core.usage import NO_USAGE
from sevenfold.layers import LAYERS
from sevenfold.session.cache.monitor import SpendSummary

_TROUBLES = (
    "PrefixBroken",
    "CacheMissed",
    "BreakerOpened",
    "RungFailed",
    "ToolDenied",
    "CallRefused",
    "WriterFailed",
)
"""Events of which the number says how well the layers do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTotals:
    """Sessions added up."""

    sessions: int
    rounds: int
    compactions: int
    cuts: dict[int, int]
    spent: tuple[SpendSummary, ...]
    events: dict[str, int]
    rules: dict[str, int]
    unread: int
    unbilled: int
    recalled: RecallUse

    @property
    def total_spent(self) -> SpendSummary:
        return _added("all", self.spent)

    @property
    def per_hundred(self) -> float | None:
        """Compactions in a hundred rounds."""
        return 100 * self.compactions / self.rounds if self.rounds else None


def sum_session_facts(sessions: Sequence[SessionFacts]) -> SessionTotals:
    shares: dict[str, list[SpendSummary]] = {}
    cuts: Counter[int] = Counter()
    events: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for session in sessions:
        rules.update(session.rules)
        cuts.update(session.cuts)
        events.update(session.events)
        for share in session.spent:
            shares.setdefault(share.who, []).append(share)
    return SessionTotals(
        sessions=len(sessions),
        rounds=sum(session.rounds for session in sessions),
        compactions=sum(session.compactions for session in sessions),
        cuts=dict(sorted(cuts.items())),
        spent=tuple(_added(who, spent) for who, spent in shares.items()),
        events=dict(events),
        rules=dict(rules),
        unread=sum(session.unread for session in sessions),
        unbilled=sum(session.unbilled for session in sessions),
        recalled=RecallUse(
            sum(session.recalled.judged for session in sessions),
            sum(session.recalled.unused for session in sessions),
        ),
    )


def show_stats(facts: ProjectFacts, since: date, screen: Screen, *, by_session: bool, fidelity: bool) -> None:
    if not facts.sessions:
        screen.show_line(f"No session of {facts.root} asked a model since {since}.")
        screen.show_line(
            "`sevenfold chat` starts one; `sevenfold replay` looks at those of other agents.", "faint"
        )
        return
    names = ("session", "began") if by_session else ("day", "sessions")
    titles = (*names, "rounds", "tokens", "cached", "cost", "uncached", "compactions", "cleared")
    rows = [[TableCell(title, "strong") for title in titles]]
    if by_session:
        rows += [
            _row(each.id[:8], format_time(each.started), sum_session_facts([each])) for each in facts.sessions
        ]
    else:
        days = _by_day(facts.sessions)
        rows += [_row(str(day), f"{len(found):,}", sum_session_facts(found)) for day, found in days.items()]
    total = sum_session_facts(facts.sessions)
    rows.append(_row("all", f"{total.sessions:,}", total))
    screen.show_table(rows)
    _show_sums(total, screen)
    _show_memory(facts.memory, total.recalled, screen)
    if fidelity:
        _show_fidelity(facts.sessions, screen)


def _row(name: str, second: str, total: SessionTotals) -> list[TableCell]:
    spent = total.total_spent
    return [
        TableCell(name),
        TableCell(second),
        TableCell(f"{total.rounds:,}"),
        TableCell(format_tokens(spent.usage.prompt + spent.usage.output)),
        TableCell(format_share(spent.usage.read, spent.usage.prompt)),
        TableCell(_usd(spent)),
        TableCell(format_usd(spent.cost_without_caching.total if spent.cost_without_caching else None)),
        TableCell(f"{total.compactions:,}"),
        TableCell(f"{sum(total.cuts.values()):,}"),
    ]


def _show_sums(total: SessionTotals, screen: Screen) -> None:
    screen.show_line("")
    if total.per_hundred is not None:
        screen.show_line(f"Compactions per 100 rounds: {total.per_hundred:.1f}")
    for share in total.spent:
        whose = "the conversation" if share.who == MAIN else share.who
        cached = format_share(share.usage.read, share.usage.prompt)
        screen.show_line(
            f"Spent by {whose}: {_usd(share)} in {format_count(share.calls, 'call')}, {cached} cached"
        )
    names = {layer.number: layer.name for layer in LAYERS}
    for layer, count in total.cuts.items():
        screen.show_line(f"Cuts by {names.get(layer, 'the caller')}: {count:,}")
    if shown := total.rules.get("shown"):
        became = ", ".join(f"{count:,} {kind}" for kind, count in total.rules.items() if kind != "shown")
        screen.show_line(f"Rules put before actions: {shown:,}" + (f"; then {became}" if became else ""))
    for name in _TROUBLES:
        if count := total.events.get(name):
            screen.show_line(f"{name}: {format_count(count, 'time')}", "warning")
    if total.unread:
        screen.show_line(
            f"{format_count(total.unread, 'bill')} could not be read and is in no sum", "warning"
        )
    if total.unbilled:
        screen.show_line(
            f"{format_count(total.unbilled, 'request')} without a bill: what they cost is in no sum",
            "warning",
        )


def _show_memory(memory: MemoryQuality, recalled: RecallUse, screen: Screen) -> None:
    if memory.written:
        parts = (
            f"{memory.contradicted:,} contradicted",
            f"{memory.reverted:,} reverted",
            f"{memory.broken:,} found broken",
        )
        share = format_share(memory.polluted, memory.written)
        screen.show_line(f"Memory pollution: {share} of {memory.written:,} written; {', '.join(parts)}")
    if recalled.judged:
        share = format_share(recalled.unused, recalled.judged)
        text = f"{share} of {recalled.judged:,}: no name or value of theirs came up in the turn"
        screen.show_line(f"Recalled memories not used: {text}")


def _show_fidelity(sessions: Sequence[SessionFacts], screen: Screen) -> None:
    screen.show_line("")
    rows = [
        [
            TableCell(title, "strong")
            for title in ("cut", "session", "used later", "in view", "one pointer away", "why")
        ]
    ]
    for session in sessions:
        rows += [
            [
                TableCell(format_time(cut.at)),
                TableCell(session.id[:8]),
                TableCell(f"{cut.used:,}"),
                TableCell(format_share(cut.in_view, cut.used)),
                TableCell(format_share(cut.pointed, cut.used)),
                TableCell(cut.reason),
            ]
            for cut in session.fidelity
        ]
    if len(rows) == 1:
        screen.show_line("Nothing was cut, so nothing can have been lost.")
    else:
        screen.show_table(rows)


def describe_stats(facts: ProjectFacts, since: date) -> dict[str, object]:
    return {
        "project": facts.root,
        "since": since.isoformat(),
        "total": _described(sum_session_facts(facts.sessions)),
        "memory": {
            "written": facts.memory.written,
            "contradicted": facts.memory.contradicted,
            "reverted": facts.memory.reverted,
            "broken": facts.memory.broken,
            "polluted": facts.memory.polluted,
            "pollution": facts.memory.pollution,
        },
        "days": {
            str(day): _described(sum_session_facts(found)) for day, found in _by_day(facts.sessions).items()
        },
        "sessions": [
            {
                "id": session.id,
                "started": session.started.isoformat(),
                **_described(sum_session_facts([session])),
                "fidelity": [
                    {
                        "at": cut.at.isoformat(),
                        "layer": cut.layer,
                        "reason": cut.reason,
                        "used": cut.used,
                        "in_view": cut.in_view,
                        "pointed": cut.pointed,
                    }
                    for cut in session.fidelity
                ],
            }
            for session in facts.sessions
        ],
    }


def _described(total: SessionTotals) -> dict[str, object]:
    return {
        "sessions": total.sessions,
        "rounds": total.rounds,
        "compactions": total.compactions,
        "compactions_per_100_rounds": total.per_hundred,
        "cuts": {str(layer): count for layer, count in total.cuts.items()},
        "hit_rate": total.total_spent.hit_rate,
        "spent": {share.who: _describe_share(share) for share in total.spent},
        "events": total.events,
        "rules": total.rules,
        "unread_bills": total.unread,
        "unbilled_requests": total.unbilled,
        "recalled": {"judged": total.recalled.judged, "unused": total.recalled.unused},
    }


def _describe_share(share: SpendSummary) -> dict[str, object]:
    plain = share.cost_without_caching
    return {
        "calls": share.calls,
        "prompt_tokens": share.usage.prompt,
        "cached_tokens": share.usage.read,
        "output_tokens": share.usage.output,
        "usd": str(share.cost.total) if share.cost else None,
        "usd_without_caching": str(plain.total) if plain else None,
    }


def _by_day(sessions: Iterable[SessionFacts]) -> dict[date, list[SessionFacts]]:
    days: dict[date, list[SessionFacts]] = {}
    for session in sessions:
        days.setdefault(session.started.astimezone().date(), []).append(session)
    return days


def _added(who: str, spent: Sequence[SpendSummary]) -> SpendSummary:
    return SpendSummary(
        who=who,
        calls=sum(share.calls for share in spent),
        usage=sum((share.usage for share in spent), NO_USAGE),
        cost=sum_costs(share.cost for share in spent),
        cost_without_caching=sum_costs(share.cost_without_caching for share in spent),
    )


def _usd(spent: SpendSummary) -> str:
    amount: Decimal | None = spent.cost.total if spent.cost else None
    return format_usd(amount)


DEFAULT_STATS_PERIOD = timedelta(days=30)


def run_stats(options: Namespace, screen: Screen) -> int:
    project, since = cast("Path", options.project), _read_since(cast("str | None", options.since))
    workspace = open_workspace(project)
    try:
        facts = read_project_facts(
            workspace,
            since,
            with_fidelity=bool(options.fidelity),
            on_progress=lambda share: screen.show_progress("reading", share),
        )
    finally:
        screen.clear_progress()
    if options.json:
        screen.show_json(describe_stats(facts, since))
    else:
        show_stats(facts, since, screen, by_session=bool(options.sessions), fidelity=bool(options.fidelity))
    return 0


def _read_since(text: str | None) -> date:
    if text is None:
        return (SystemClock().now() - DEFAULT_STATS_PERIOD).date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--since {text!r} is not a day; write it as 2026-11-15") from error
