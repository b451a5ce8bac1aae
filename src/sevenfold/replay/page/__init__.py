"""The report as an HTML page: builds it from a template, styles, scripts and a payload, and writes the file.

`describe_page` makes the payload: the figures of `replay/report.py` as compact rows, because a page of many
sessions is sent by mail. `assets/` holds the template, styles and scripts.
"""

from __future__ import annotations

import json
import os
import secrets
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from importlib.resources import files
from pathlib import Path, PurePath
from string import Template
from typing import TypeAlias

from sevenfold.core import __version__
from sevenfold.core.errors import InputError
from sevenfold.core.events import ModelUnknown
from sevenfold.core.prices import Cost
from sevenfold.core.system import map_os_errors
from sevenfold.core.usage import TokenCounts
from sevenfold.replay.advice import Advice, ReplayFindings
from sevenfold.replay.bills import UNNAMED_MODEL, BillTotals, CostlyResult, ModelBill
from sevenfold.replay.calls import BREAK_CAUSES, CacheBreak
from sevenfold.replay.context_fill import MAX_SERIES_POINTS, ContextFill, PointMark, SeriesPoint, thin_points
from sevenfold.replay.report import DayBill, LineCounts, ReplayReport, SavingRange, SessionReport
from sevenfold.store.foreign.transcripts import UnreadableFile

# The format of the rows belongs to `assets/*.js` and changes with it. The docstring of each function gives
# the order of the values in its rows.

MAX_PAGE_POINTS = 100_000
"""Of all sessions together: two megabytes. A plot is some 700 pixels wide, so fewer are missed by nobody."""
MIN_SESSION_POINTS = 20
MAX_UNREADABLE_ROWS = 200
"""Names of files nobody reads on to the end of; their number is always told."""

_Plain: TypeAlias = dict[str, object]
_Row: TypeAlias = list[object]


def describe_page(
    report: ReplayReport,
    *,
    made_at: datetime,
    remarks: Iterable[str] = (),
    findings: ReplayFindings | None = None,
) -> _Plain:
    """Everything that the page shows; `findings` are what follows from the same report."""
    sessions = report.sessions
    most_points = _most_points(sessions)
    places = {session.name: place for place, session in reversed(list(enumerate(sessions)))}
    return {
        "version": __version__,
        "made_at": _seconds(made_at),
        "origin": report.origin,
        "is_anonymous": report.is_anonymous,
        "repriced": report.repriced,
        "simulated": report.describe_simulated(),
        "remarks": list(remarks),
        "advice": [_advice(item, places) for item in findings.advice] if findings else [],
        "saving": _saving(findings.saving, report) if findings and findings.saving else None,
        "files": report.files,
        "lines": _lines(report.lines),
        "causes": list(BREAK_CAUSES),
        "total": _totals(report.totals),
        "models": [_bill(bill) for bill in report.bills],
        "unknown_models": [event.model for event in report.events if isinstance(event, ModelUnknown)],
        "fill": _fill(report.fill),
        "repeated_reads": [[item.path, item.times, item.tokens] for item in report.repeated_reads],
        "costly_results": [_result(item, places) for item in report.costly_results],
        "sessions": [describe_page_session(session, most_points) for session in sessions],
        "unreadable": [_unreadable(item) for item in report.unreadable[:MAX_UNREADABLE_ROWS]],
        "unreadable_count": len(report.unreadable),
    }


def describe_page_session(session: SessionReport, most_points: int = MAX_SERIES_POINTS) -> _Plain:
    """One session as the scripts of a page read it."""
    line = _Line(session.series)
    return {
        "id": session.id,
        "sub_agent": session.sub_agent,
        "prompt": session.title,
        "agent": session.agent,
        "version": session.version,
        "project": session.project,
        "folder": PurePath(session.project).name,
        "path": str(session.path),
        "first_at": _seconds(session.first_at),
        "last_at": _seconds(session.last_at),
        "largest": session.largest_prompt_tokens,
        "unbilled": session.unbilled_calls,
        "uncounted": session.uncounted_calls,
        "models": [bill.model for bill in session.bills],
        "total": _totals(session.totals),
        "series": _series(session.series, most_points, session.first_at),
        "breaks": [_break(item, line) for item in session.breaks],
        "cuts": list(_cuts(session)),
        "fill": _kinds(session.fill),
        "days": [_day(item) for item in session.days],
    }


def _day(item: DayBill) -> _Row:
    """Day, model, calls, tokens, dollars (null without a price), estimated or not."""
    bill = item.bill
    tokens = bill.tokens
    return [
        item.day,
        bill.model,
        bill.calls,
        [tokens.read, tokens.prompt, tokens.output],
        _usd(bill.cost.total) if bill.cost else None,
        int(bool(bill.estimated_calls)),
    ]


def _advice(item: Advice, places: Mapping[str, int]) -> _Plain:
    """Evidence: text, the session's place, time, dollars."""
    return {
        "kind": item.kind,
        "cause": item.cause,
        "title": item.title,
        "why": item.why,
        "action": item.action,
        "command": item.command,
        "low": _usd(item.low_usd),
        "high": _usd(item.high_usd),
        "is_estimated": item.is_estimated,
        "evidence": [
            [row.text, places.get(row.session), _seconds(row.at), _usd(row.usd)] for row in item.evidence
        ],
    }


def _saving(saving: SavingRange, report: ReplayReport) -> _Row:
    """Least and most, as parts of what prompts cost; what they cost; of how many sessions, and of all."""
    return [saving.low, saving.high, round(saving.usd, 6), saving.sessions, report.priced_sessions]


class _Line:
    """The calls of a session by time: a break, a boundary and a clearing say when, a plot needs where."""

    def __init__(self, points: Sequence[SeriesPoint]) -> None:
        self._calls: list[int] = []
        self._times: list[datetime] = []
        for point in points:
            if point.at is not None:
                # A clock that was set back in mid-session must not put the list out of order.
                self._times.append(max(point.at, self._times[-1]) if self._times else point.at)
                self._calls.append(point.call)
        marks: tuple[PointMark, ...] = ("break", "compaction", "clearing")
        self._marked = {mark: iter([point.call for point in points if point.mark == mark]) for mark in marks}

    def call_at(self, at: datetime | None, mark: PointMark) -> int | None:
        """The first call then or later; in a log without times, the next one with that mark."""
        if at is None or not self._times:
            return next(self._marked[mark], None)
        return self._calls[min(bisect_left(self._times, at), len(self._calls) - 1)]


def _break(item: CacheBreak, line: _Line) -> _Row:
    """Call, time, cause, tokens and dollars lost, gap, life."""
    mark: PointMark = item.cause if item.cause in ("compaction", "clearing") else "break"
    return [
        line.call_at(item.at, mark),
        _seconds(item.at),
        BREAK_CAUSES.index(item.cause),
        item.lost_tokens,
        _usd(item.lost_usd),
        _span(item.gap),
        _span(item.life),
    ]


def _cuts(session: SessionReport) -> Iterator[_Row]:
    """Call, time, kind, then for a compaction tokens before and after, for a clearing results and tokens."""
    # Not the line of the breaks that they cause: without times, both go along the same marks.
    own = _Line(session.series)
    for item in session.compactions:
        call = own.call_at(item.at, "compaction")
        yield [call, _seconds(item.at), "compaction", item.before_tokens, item.after_tokens]
    for item in session.clearings:
        call = own.call_at(item.at, "clearing")
        yield [call, _seconds(item.at), "clearing", item.results, item.saved_tokens]


def _series(points: Sequence[SeriesPoint], most: int, start: datetime | None) -> _Plain:
    """By column, packed; times are seconds since the session's first call."""
    kept = list(points)
    while len(kept) > max(most, 2):
        kept = thin_points(kept)
    return {
        "call": _packed(point.call for point in kept),
        "at": _packed(
            round((point.at - start).total_seconds()) if point.at and start else None for point in kept
        ),
        "prompt": _packed(point.prompt_tokens for point in kept),
        "read": _packed(point.read_tokens for point in kept),
    }


def _packed(values: Iterable[int | None]) -> str:
    """What each is more than the one before: half as long, and read only for a session that is looked at."""
    steps: list[str] = []
    last = 0
    for value in values:
        steps.append("-" if value is None else str(value - last))
        last = last if value is None else value
    return " ".join(steps)


def _most_points(sessions: Iterable[SessionReport]) -> int:
    """How many points a session may have, so that all together are not too many."""
    lengths = [len(session.series) for session in sessions]
    most = MAX_SERIES_POINTS
    while most > MIN_SESSION_POINTS and sum(min(length, most) for length in lengths) > MAX_PAGE_POINTS:
        most //= 2
    return most


def _totals(totals: BillTotals) -> _Plain:
    return {
        "calls": totals.calls,
        "tokens": _counts(totals.tokens),
        "usd": _cost(totals.cost),
        "uncached": _usd(totals.uncached_usd),
        "estimated_tokens": totals.estimated_output_tokens,
        "estimated_usd": _usd(totals.estimated_usd),
        "unpriced_calls": totals.unpriced_calls,
        "unpriced_tokens": totals.unpriced_tokens,
    }


def _bill(bill: ModelBill) -> _Plain:
    return {
        "model": bill.model,
        "is_named": bill.model != UNNAMED_MODEL,
        "gap": bill.gap,
        "calls": bill.calls,
        "tokens": _counts(bill.tokens),
        "usd": _cost(bill.cost) if bill.cost else None,
        "estimated_calls": bill.estimated_calls,
    }


def _fill(fill: ContextFill) -> _Plain:
    """Shares: kind, tool, tokens entered, tokens carried."""
    return {
        "shares": [
            [share.kind, share.tool, share.entered_tokens, share.carried_tokens] for share in fill.shares
        ],
        "repeated_entered": fill.repeated_entered_tokens,
        "repeated_carried": fill.repeated_carried_tokens,
    }


def _kinds(fill: ContextFill) -> dict[str, int]:
    """Tokens carried, by kind."""
    kinds: dict[str, int] = {}
    for share in fill.shares:
        kinds[share.kind] = kinds.get(share.kind, 0) + share.carried_tokens
    return kinds


def _result(item: CostlyResult, places: Mapping[str, int]) -> _Row:
    """The session's place, tool, what it was asked, time, tokens, times sent, dollars."""
    place = places.get(item.session)
    return [place, item.tool, item.label, _seconds(item.at), item.tokens, item.sent, _usd(item.usd)]


def _lines(lines: LineCounts) -> _Plain:
    return {
        "read": lines.lines,
        "bytes": lines.length_bytes,
        "unknown": list(lines.unknown.items()),
        "faults": list(lines.faults.items()),
    }


def _unreadable(item: UnreadableFile) -> _Row:
    return [str(item.path), item.reason]


def _counts(tokens: TokenCounts) -> _Row:
    """As `_cost`."""
    return [tokens.read, tokens.written_5m, tokens.written_1h, tokens.fresh, tokens.output]


def _cost(cost: Cost) -> _Row:
    """Read, written for 5 minutes, for 1 hour, fresh, output."""
    parts = (cost.read, cost.written_5m, cost.written_1h, cost.fresh, cost.output)
    return [_usd(part) for part in parts]


def _usd(amount: Decimal | None) -> float | None:
    # A millionth of a dollar is a hundredth of the least that is shown.
    return None if amount is None else round(float(amount), 6)


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp())


def _span(span: timedelta | None) -> int | None:
    # Two calls of the same second have a gap of zero, which is no missing gap.
    return None if span is None else round(span.total_seconds())


PAGE_SCRIPTS = (
    *("figures.js", "nodes.js", "tooltip.js", "bars.js", "tables.js", "scales.js", "marks.js"),
    *("plot.js", "sessions.js", "roll.js", "periods.js", "breaks.js", "contents.js", "advice.js"),
    *("overview.js", "about.js", "main.js"),
)
"""In order: each uses only what stands before it."""
PAGE_STYLES = ("colours.css", "page.css", "parts.css", "sessions.css", "screens.css")
"""In order: a later rule of the same weight wins."""

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def build_page(
    report: ReplayReport,
    *,
    made_at: datetime,
    remarks: Iterable[str] = (),
    findings: ReplayFindings | None = None,
    refresh_seconds: int | None = None,
) -> str:
    """One page of HTML with everything in it. What the report quotes is in it as data and nowhere else.

    With `refresh_seconds` the page loads itself again, for a file that is written anew.
    """
    style, script = _assets(PAGE_STYLES), _assets(PAGE_SCRIPTS)
    payload = describe_page(report, made_at=made_at, remarks=remarks, findings=findings)
    payload["refresh_seconds"] = refresh_seconds
    return Template(_asset("template.html")).substitute(
        policy=_policy(style, script), style=style, script=script, payload=escape_html_json(payload)
    )


def escape_html_json(value: object) -> str:
    """JSON that ends no element and begins none, wherever in HTML it stands. ASCII, so that a name that is no
    Unicode text can be in it too."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _policy(style: str, script: str) -> str:
    """Our own style and script by their digest: anything else, even inline, a browser refuses."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {_source(style)}",
            f"script-src {_source(script)}",
            "img-src data:",  # the icon
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _assets(names: Iterable[str]) -> str:
    return "".join(map(_asset, names))


def _asset(name: str) -> str:
    return (files("sevenfold.replay.page") / "assets" / name).read_text(encoding="utf-8")


# The path is chosen by the user, so these are plain files outside the store.
PAGE_OPENING = b"<!doctype html>"
"""Of every page. Only what begins so, or is empty, is written over: a transcript named by mistake is not."""


def resolve_page_path(path: Path) -> Path:
    """Where a page of that name would go, links followed."""
    try:
        target = path.expanduser().resolve()
        if target.is_dir():
            raise InputError(f"--html {str(path)!r} is a folder; name a file in it, such as replay.html")
        if target.exists() and not target.is_file():
            raise InputError(f"--html {str(path)!r} is no plain file; name one, such as replay.html")
        if not target.parent.is_dir():
            raise InputError(
                f"--html {str(path)!r}: the folder {str(target.parent)!r} does not exist; make it first"
            )
        if target.exists() and not _is_page(target):
            raise InputError(
                f"--html {str(path)!r} is there and is no page, so it is not written over; "
                "name the page to write, such as replay.html"
            )
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name, ~nobody
        raise InputError(f"--html {str(path)!r} cannot be used: {error}") from error
    return target


def write_page(path: Path, page: str) -> Path:
    """Put the page there, whole or not at all; where it went."""
    return write_file_whole(resolve_page_path(path), page, "the page")


def write_file_whole(target: Path, text: str, what: str) -> Path:
    """Put a text there, whole or not at all; where it went."""
    draft = target.with_name(f".sevenfold-{secrets.token_hex(8)}.tmp")
    with map_os_errors(f"write {what} {str(target)!r}"):
        try:
            # In a folder of the user's alone, as ours is, the file is theirs alone too, whatever the umask.
            mode = 0o666 & target.parent.stat().st_mode
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(fd, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    return target


def _is_page(target: Path) -> bool:
    with target.open("rb") as file:
        beginning = file.read(len(PAGE_OPENING))
    return not beginning or beginning.lower() == PAGE_OPENING
