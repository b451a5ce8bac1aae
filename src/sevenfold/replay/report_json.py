"""The report as plain JSON data. `docs/replay.md` describes it; `FORMAT` grows when readers would break."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from sevenfold.core.events import describe_event
from sevenfold.core.prices import Cost
from sevenfold.core.usage import TokenCounts
from sevenfold.replay.bills import BillTotals, ModelBill
from sevenfold.replay.breaks import CacheBreak, group_breaks
from sevenfold.replay.context_fill import ContextFill
from sevenfold.replay.report import LineCounts, ReplayReport, SessionReport
from sevenfold.replay.result_costs import CostlyResult

REPORT_FORMAT = 1

_Plain: TypeAlias = dict[str, object]


def describe_replay_report(report: ReplayReport) -> _Plain:
    """Everything in the report; times are ISO 8601 in UTC, dollars and seconds are numbers."""
    return {
        "format": REPORT_FORMAT,
        "origin": report.origin,
        "repriced": report.repriced,
        "files": report.files,
        "lines": _lines(report.lines),
        "total": _totals(report.totals),
        "models": [_bill(bill) for bill in report.bills],
        "breaks": _break_groups(report.breaks),
        "fill": _fill(report.fill),
        "repeated_reads": [asdict(item) for item in report.repeated_reads],
        "costly_results": [_result(item) for item in report.costly_results],
        "sessions": [describe_session_report(session) for session in report.sessions],
        "unreadable": [{"path": str(item.path), "reason": item.reason} for item in report.unreadable],
        "events": [describe_event(event) for event in report.events],
    }


def describe_session_report(session: SessionReport) -> _Plain:
    return {
        "id": session.id,
        "sub_agent": session.sub_agent,
        "agent": session.agent,
        "path": str(session.path),
        "project": session.project or None,
        "version": session.version or None,
        "first_at": _time(session.first_at),
        "last_at": _time(session.last_at),
        "total": _totals(session.totals),
        "unbilled_calls": session.unbilled_calls,
        "uncounted_calls": session.uncounted_calls,
        "models": [_bill(bill) for bill in session.bills],
        "breaks": [_break(item) for item in session.breaks],
        "compactions": [
            {"at": _time(item.at), "before_tokens": item.before_tokens, "after_tokens": item.after_tokens}
            for item in session.compactions
        ],
        "clearings": [
            {"at": _time(item.at), "results": item.results, "saved_tokens": item.saved_tokens}
            for item in session.clearings
        ],
        "largest_prompt_tokens": session.largest_prompt_tokens,
        "series": [
            {
                "call": point.call,
                "at": _time(point.at),
                "prompt_tokens": point.prompt_tokens,
                "read_tokens": point.read_tokens,
                "mark": point.mark or None,
            }
            for point in session.series
        ],
        "fill": _fill(session.fill),
        "repeated_reads": [asdict(item) for item in session.repeated_reads],
        "costly_results": [_result(item) for item in session.costly_results],
    }


def _totals(totals: BillTotals) -> _Plain:
    return {
        "calls": totals.calls,
        "tokens": _counts(totals.tokens),
        "hit_rate": totals.hit_rate,
        "usd": _cost(totals.cost),
        "uncached_usd": float(totals.uncached_usd),
        "saved_usd": float(totals.saved_usd),
        "estimated": {"output_tokens": totals.estimated_output_tokens, "usd": float(totals.estimated_usd)},
        "unpriced": {"calls": totals.unpriced_calls, "tokens": totals.unpriced_tokens},
    }


def _bill(bill: ModelBill) -> _Plain:
    return {
        "model": bill.model,
        "calls": bill.calls,
        "tokens": _counts(bill.tokens),
        "usd": _cost(bill.cost) if bill.cost else None,
        "uncached_usd": _usd(bill.uncached_usd),
        "unpriced": bill.gap,
        "estimated": {
            "calls": bill.estimated_calls,
            "output_tokens": bill.estimated_output_tokens,
            "usd": float(bill.estimated_usd),
        },
    }


def _break_groups(breaks: Iterable[CacheBreak]) -> _Plain:
    groups = group_breaks(breaks)
    return {
        "count": sum(group.count for group in groups),
        "lost_tokens": sum(group.lost_tokens for group in groups),
        "lost_usd": float(sum((group.lost_usd or Decimal(0) for group in groups), Decimal(0))),
        "by_cause": [{**asdict(group), "lost_usd": _usd(group.lost_usd)} for group in groups],
    }


def _break(item: CacheBreak) -> _Plain:
    return {
        "at": _time(item.at),
        "cause": item.cause,
        "lost_tokens": item.lost_tokens,
        "lost_usd": _usd(item.lost_usd),
        "gap_s": _seconds(item.gap),
        "life_s": _seconds(item.life),
        "model": item.model,
        "prompt_tokens": item.prompt_tokens,
        "read_tokens": item.read_tokens,
    }


def _fill(fill: ContextFill) -> _Plain:
    carried = fill.carried_tokens
    return {
        "carried_tokens": carried,
        "shares": [
            {**asdict(share), "share": share.carried_tokens / carried if carried else 0.0}
            for share in fill.shares
        ],
        "repeated_reads": {
            "entered_tokens": fill.repeated_entered_tokens,
            "carried_tokens": fill.repeated_carried_tokens,
        },
    }


def _result(item: CostlyResult) -> _Plain:
    return {**asdict(item), "at": _time(item.at), "usd": _usd(item.usd)}


def _lines(lines: LineCounts) -> _Plain:
    return {
        "read": lines.lines,
        "bytes": lines.length_bytes,
        "unknown": dict(lines.unknown),
        "faults": dict(lines.faults),
    }


def _counts(tokens: TokenCounts) -> _Plain:
    return {**asdict(tokens), "prompt": tokens.prompt}


def _cost(cost: Cost) -> _Plain:
    parts: dict[str, Decimal] = asdict(cost)
    return {**{name: float(usd) for name, usd in parts.items()}, "total": float(cost.total)}


def _usd(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _seconds(span: timedelta | None) -> float | None:
    return span.total_seconds() if span is not None else None
