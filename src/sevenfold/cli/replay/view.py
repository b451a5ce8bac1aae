"""The replay report on a terminal of 80 columns: the bill first, then where the cache broke.

`show_advice` says what to do: the advice with the most dollars first, its evidence and its command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from textwrap import wrap

from sevenfold.cli.replay.contents import (
    show_context_chart,
    show_context_fill,
    show_costly_results,
    show_sessions,
)
from sevenfold.cli.screen import (
    Screen,
    TableCell,
    Tone,
    format_count,
    format_duration,
    format_share,
    format_time,
    format_tokens,
    format_usd,
    render_bar,
    shorten_text,
)
from sevenfold.core.events import ModelUnknown
from sevenfold.replay.advice import Advice
from sevenfold.replay.bills import UNNAMED_MODEL, BillTotals, ModelBill
from sevenfold.replay.calls import CacheBreak, group_breaks
from sevenfold.replay.report import ReplayReport, SessionReport

_BAR_CHARS = 20
MAX_BREAK_ROWS = 8

CAUSE_LABELS = {
    "idle": "idle longer than the cache lives",
    "compaction": "compaction",
    "clearing": "old tool results cleared",
    "model switch": "model switched",
    "unexplained": "unexplained by the log",
    "system prompt": "system prompt changed",
    "tools": "tools changed",
    "parameters": "parameters changed",
    "history": "earlier messages changed",
}


@dataclass(frozen=True, slots=True)
class _Kind:
    label: str
    tokens: int
    usd: Decimal
    mark: str = ""


def show_replay_report(
    report: ReplayReport, screen: Screen, remarks: Iterable[str] = (), advice: Sequence[Advice] = ()
) -> None:
    """All of it, what follows from it, and what the caller has to remark."""
    show_replay_header(report, screen)
    show_advice(advice, report.totals.cost.total, screen)
    if report.totals.calls:
        show_token_kinds(report.totals, screen)
        show_model_bills(report, screen)
        show_breaks(report.sessions, screen)
        show_context_fill(report, screen)
        show_costly_results(report, screen)
        show_context_chart(report.sessions, screen)
        show_sessions(report.sessions, screen)
    show_replay_remarks(report, remarks, screen)


def show_replay_header(report: ReplayReport, screen: Screen) -> None:
    subs = sum(1 for session in report.sessions if session.sub_agent)
    counts = [format_count(len(report.sessions) - subs, "session")]
    counts += [format_count(subs, "sub-agent")] if subs else []
    counts += [format_count(report.totals.calls, "call")]
    screen.show_line(", ".join(counts) + _period(report.sessions), "strong")
    if report.origin == "sample":
        screen.show_line(
            "No session of yours was found, so this is the sample that comes with Sevenfold.", "warning"
        )
    if simulated := report.describe_simulated():
        screen.show_line(simulated, "warning")
    if report.repriced:
        screen.show_line(f"Every call at the prices that {report.repriced} has today.", "warning")
    screen.show("")
    screen.show_table(
        [
            TableCell(f"  {line.label}", "faint"),
            TableCell(f"{line.value:>11}", "strong"),
            TableCell(line.remark, "faint"),
        ]
        for line in _headlines(report)
    )


def show_token_kinds(totals: BillTotals, screen: Screen) -> None:
    """Tokens and dollars by what became of them."""
    tokens, cost = totals.tokens, totals.cost
    approx = "~" if totals.estimated_output_tokens else ""
    rows = (
        _Kind("cache read", tokens.read, cost.read),
        _Kind("cache write, 5 min", tokens.written_5m, cost.written_5m),
        _Kind("cache write, 1 h", tokens.written_1h, cost.written_1h),
        _Kind("fresh", tokens.fresh, cost.fresh),
        _Kind("output", tokens.output, cost.output, approx),
    )
    is_priced = cost.total > 0
    whole = float(cost.total) if is_priced else float(tokens.prompt + tokens.output)
    _title("Where it went", screen)
    screen.show_table(
        [
            TableCell(f"  {row.label}"),
            TableCell(f"{row.mark + format_tokens(row.tokens):>8}"),
            TableCell(f"{row.mark + format_usd(row.usd) if is_priced else 'unpriced':>11}"),
            TableCell(f"{format_share(part, whole):>6}"),
            TableCell(render_bar(part / whole if whole else 0.0, _BAR_CHARS, has_unicode=screen.has_unicode)),
        ]
        for row in rows
        if row.tokens
        for part in (float(row.usd) if is_priced else float(row.tokens),)
    )
    if is_priced and totals.unpriced_calls:
        screen.show_line("  Tokens are those of all calls, dollars those of calls with a price.", "faint")


def show_model_bills(report: ReplayReport, screen: Screen) -> None:
    """By model; then which of them have no price, why not, and what to do about it."""
    _title("By model", screen)
    heading = _faint("  model", "  calls", " prompt", "   hit", " output", "     dollars")
    screen.show_table([heading, *(_model_row(bill) for bill in report.bills)])
    unknown = {event.model for event in report.events if isinstance(event, ModelUnknown)}
    unpriced = [bill for bill in report.bills if bill.cost is None]
    for bill in unpriced:
        screen.show_line(f"  {_spell_gap(bill, is_known=bill.model not in unknown)}", "faint")
    nameable = [bill.model for bill in unpriced if bill.gap == "model"]
    if nameable:
        name = shorten_text(nameable[0], 25)
        screen.show_line(f'  Set one in ~/.sevenfold/settings.toml, [models."{name}"]:', "faint")
        screen.show_line("  input_usd_per_mtok and output_usd_per_mtok.", "faint")


def show_breaks(sessions: Iterable[SessionReport], screen: Screen) -> None:
    """By cause, then the worst of them."""
    found = [(item, session) for session in sessions for item in session.breaks]
    _title("Cache breaks: paid again for what was cached", screen)
    if not found:
        screen.show_line("  none", "faint")
        return
    screen.show_table(
        [
            TableCell(f"  {CAUSE_LABELS[group.cause]}"),
            TableCell(f"{group.count:>5,}"),
            TableCell(f"{format_tokens(group.lost_tokens):>8}"),
            TableCell(f"{format_usd(group.lost_usd):>10}", _cause_tone(group.cause)),
        ]
        for group in group_breaks(item for item, _ in found)
    )
    unpriced = sum(1 for item, _ in found if item.lost_usd is None)
    if 0 < unpriced < len(found):
        screen.show_line(f"  {format_count(unpriced, 'break')} of these are in no dollar figure.", "faint")
    worst = sorted(
        found, key=lambda pair: (pair[0].lost_usd or Decimal(0), pair[0].lost_tokens), reverse=True
    )
    screen.show("")
    heading = _faint("  the worst", "session", "cause", "      idle", "    lost", "   dollars")
    screen.show_table(
        [
            heading,
            *(
                [
                    TableCell(f"  {format_time(item.at)}"),
                    TableCell(session.id[:8], "faint"),
                    TableCell(item.cause, _cause_tone(item.cause)),
                    TableCell(f"{format_duration(item.gap):>10}"),
                    TableCell(f"{format_tokens(item.lost_tokens):>8}"),
                    TableCell(f"{format_usd(item.lost_usd):>10}"),
                ]
                for item, session in worst[:MAX_BREAK_ROWS]
            ),
        ]
    )
    if len(worst) > MAX_BREAK_ROWS:
        screen.show_line(f"  and {len(worst) - MAX_BREAK_ROWS:,} more; --json lists them all", "faint")


def show_replay_remarks(report: ReplayReport, remarks: Iterable[str], screen: Screen) -> None:
    """What stands between this report and the truth."""
    lines = [*remarks, *_remarks(report)]
    if lines:
        _title("Remarks", screen)
    for line in lines:
        screen.show_line(f"  {line}", "faint")
    for item in report.unreadable[:MAX_BREAK_ROWS]:
        screen.show_line(f"  not read: {shorten_text(str(item.path), 66, is_path=True)}", "warning")
        screen.show_line(f"    {item.reason}", "faint")
    if len(report.unreadable) > MAX_BREAK_ROWS:
        screen.show_line(
            f"  and {len(report.unreadable) - MAX_BREAK_ROWS:,} more files; --json lists them", "warning"
        )


@dataclass(frozen=True, slots=True)
class _Headline:
    label: str
    value: str
    remark: str = ""


def _headlines(report: ReplayReport) -> Iterable[_Headline]:
    totals = report.totals
    cost, approx = totals.cost.total, "~" if totals.estimated_usd else ""
    remark = f"{format_usd(totals.estimated_usd)} of it is estimated output" if approx else ""
    if totals.calls > totals.unpriced_calls:
        yield _Headline("spent", f"{approx}{format_usd(cost)}", remark)
    if totals.unpriced_calls:
        calls = format_count(totals.unpriced_calls, "call")
        yield _Headline("not priced", format_tokens(totals.unpriced_tokens), f"tokens in {calls}")
    if totals.hit_rate is not None:
        yield _Headline("cache hit rate", f"{totals.hit_rate:.1%}", "of prompt tokens came from the cache")
    if totals.uncached_usd:
        saved = format_share(float(totals.saved_usd), float(totals.uncached_usd))
        uncached = f"{approx}{format_usd(totals.uncached_usd)}"
        yield _Headline("without a cache", uncached, f"so the cache saved {saved}")
    if report.breaks:
        yield _lost_headline(report.breaks, cost)


def _lost_headline(breaks: Sequence[CacheBreak], spent: Decimal) -> _Headline:
    prices = [item.lost_usd for item in breaks if item.lost_usd is not None]
    lost, count = sum(prices, Decimal(0)), format_count(len(prices), "break")
    if not lost:
        tokens = format_tokens(sum(item.lost_tokens for item in breaks))
        return _Headline(
            "lost to breaks", tokens, f"tokens not read again, in {format_count(len(breaks), 'break')}"
        )
    share = format_share(float(lost), float(spent))
    if len(prices) == len(breaks):
        return _Headline("lost to breaks", format_usd(lost), f"{share} of what was spent, in {count}")
    rest = format_count(len(breaks) - len(prices), "unpriced break")
    return _Headline("lost to breaks", format_usd(lost), f"{share} of what was spent; {rest}")


def _model_row(bill: ModelBill) -> list[TableCell]:
    approx = "~" if bill.estimated_calls else ""
    usd = f"{approx}{format_usd(bill.cost.total)}" if bill.cost else "unpriced"
    return [
        TableCell(f"  {shorten_text(bill.model, 25)}"),
        TableCell(f"{bill.calls:>7,}"),
        TableCell(f"{format_tokens(bill.tokens.prompt):>7}"),
        TableCell(f"{format_share(bill.tokens.read, bill.tokens.prompt):>6}"),
        TableCell(f"{approx + format_tokens(bill.tokens.output):>7}"),
        TableCell(f"{usd:>12}", "strong" if bill.cost else "warning"),
    ]


def _spell_gap(bill: ModelBill, *, is_known: bool) -> str:
    if bill.gap == "speed":
        return f"{shorten_text(bill.model, 45)}: that speed has no known price."
    if bill.gap == "runs":
        return f"{shorten_text(bill.model, 45)}: not all runs have a price."
    if bill.model == UNNAMED_MODEL:
        return "The log names no model for these calls, so they have no price."
    model = shorten_text(bill.model, 38)
    return f"Settings give {model} no price." if is_known else f"No table knows {model}, so it has no price."


def _remarks(report: ReplayReport) -> Iterable[str]:
    lines = report.lines
    size = f"{lines.length_bytes / 1e6:,.1f} MB"
    yield f"read {format_count(report.files, 'file')}, {size}, {format_count(lines.lines, 'line')}"
    unbilled = sum(session.unbilled_calls for session in report.sessions)
    if unbilled:
        yield f"{format_count(unbilled, 'call')} without usage in the log: in no figure"
    uncounted = sum(session.uncounted_calls for session in report.sessions)
    if uncounted:
        yield f"{format_count(uncounted, 'call')} not counted here: repeated by another file, or too early"
    if lines.unknown:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in list(lines.unknown.items())[:6])
        yield f"lines of a type not known here: {kinds}"
    if lines.faults:
        yield "lines that could not be read: " + ", ".join(
            f"{fault} {count:,}" for fault, count in lines.faults.items()
        )


def _period(sessions: Iterable[SessionReport]) -> str:
    times = [at for session in sessions for at in (session.first_at, session.last_at) if at]
    if not times:
        return ""
    first, last = f"{min(times).astimezone():%Y-%m-%d}", f"{max(times).astimezone():%Y-%m-%d}"
    return f", {first}" if first == last else f", {first} to {last}"


def _title(text: str, screen: Screen) -> None:
    screen.show("")
    screen.show_line(text, "strong")


def _faint(*words: str) -> list[TableCell]:
    return [TableCell(word, "faint") for word in words]


def _cause_tone(cause: str) -> Tone:
    return "warning" if cause in ("idle", "unexplained") else "plain"


_WIDTH = 80
MAX_TERMINAL_ADVICE = 5


def show_advice(advice: Sequence[Advice], spent: Decimal, screen: Screen, *, is_short: bool = False) -> None:
    """A few lines each; in short, one line each."""
    if not advice:
        return
    screen.show("")
    screen.show_line("What to do: the amounts overlap, so do not add them up", "strong")
    for place, item in enumerate(advice[:MAX_TERMINAL_ADVICE], 1):
        screen.show_line(f"  {place}. {shorten_text(item.title, _WIDTH - 5)}", "strong")
        share = format_share(float(item.high_usd), float(spent))
        screen.show_line(f"     saves {_amount(item)}, {share} of what was spent", "warning")
        if not is_short:
            _show_details(item, screen)
    if len(advice) > MAX_TERMINAL_ADVICE:
        screen.show_line(f"  and {len(advice) - MAX_TERMINAL_ADVICE} more; --html shows them", "faint")


def _show_details(item: Advice, screen: Screen) -> None:
    for line in wrap(f"{item.why} {item.action}", _WIDTH - 5):
        screen.show_line(f"     {line}", "faint")
    for line in item.command.splitlines():
        screen.show_line(f"       {line}")
    for evidence in item.evidence:
        when = f"{format_time(evidence.at)} " if evidence.at else ""
        usd = format_usd(evidence.usd) if evidence.usd is not None else ""
        lead = f"     · {usd:>8}  {when}{evidence.session[:8]}  "
        text = shorten_text(evidence.text, _WIDTH - len(lead), is_path="/" in evidence.text)
        screen.show_line(f"{lead}{text}", "faint")


def _amount(item: Advice) -> str:
    about = "~" if item.is_estimated else ""
    if item.low_usd is None or not item.low_usd:
        return f"up to {about}{format_usd(item.high_usd)}"
    if item.low_usd == item.high_usd:
        return f"{about}{format_usd(item.high_usd)}"
    return f"{about}{format_usd(item.low_usd)} to {format_usd(item.high_usd)}"
