"""The bill as one picture to share: what was spent, what breaks cost, what would have been saved, and the
context of the most expensive session. SVG with nothing outside it, and no word from any session in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape

from sevenfold.replay.context_fill import SeriesPoint
from sevenfold.replay.report import ReplayReport, SavingRange, SessionReport

WIDTH, HEIGHT = 1200, 630
"""What most sites show of a link."""
_LEFT, _RIGHT, _TOP, _FLOOR = 64, 1136, 330, 560
_INK, _FAINT, _ACCENT, _READ, _PAID, _BREAK = "#1c2326", "#586369", "#0d6b64", "#7fbdb5", "#e2a93b", "#b8352a"
_SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class _Figure:
    label: str
    value: str
    remark: str


def draw_picture(report: ReplayReport, saving: SavingRange | None = None) -> str:
    """The picture as SVG."""
    session = next((item for item in report.sessions if len(item.series) > 1), None)
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f6f5f1"/>',
        '<rect x="24" y="24" width="1152" height="582" rx="20" fill="#ffffff" stroke="#e1ded6"/>',
        *_brand(report),
        *_columns(list(_figures(report, saving))),
        *(_chart(session) if session else ()),
        _text(
            _LEFT, 596, "Made by sevenfold replay. No prompt, path or name is in this picture.", 16, _FAINT
        ),
    ]
    title = escape(_sentence(report, saving))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-labelledby="title" font-family="{_SANS}">\n'
        f'<title id="title">{title}</title>\n{body}\n</svg>\n'
    )


def _brand(report: ReplayReport) -> Iterable[str]:
    yield f'<rect x="{_LEFT}" y="56" width="40" height="40" rx="10" fill="{_ACCENT}"/>'
    yield (
        f'<path transform="translate({_LEFT} 56) scale(2.5)" fill="#ffffff" '
        'd="M3.5 12V9h2v3zm3.5 0V6h2v6zm3.5 0V4h2v8z"/>'
    )
    yield _text(_LEFT + 56, 84, "What my coding agent cost", 26, _INK, weight=600)
    yield _text(_RIGHT, 84, _period(report), 18, _FAINT, anchor="end")


def _figures(report: ReplayReport, saving: SavingRange | None) -> Iterable[_Figure]:
    totals = report.totals
    spent = totals.cost.total
    about = "~" if totals.estimated_usd else ""
    counts = (
        f"{_count(len({item.id for item in report.sessions}), 'session')}, {_count(totals.calls, 'call')}"
    )
    yield _Figure(
        "Spent", f"{about}{_usd(spent)}" if spent else f"{_tokens(totals.tokens.prompt)} tokens", counts
    )
    lost = sum((item.lost_usd or Decimal(0) for item in report.breaks), Decimal(0))
    share = f"{lost / spent:.0%} of it, in " if spent else ""
    yield _Figure("Lost to cache breaks", _usd(lost), f"{share}{_count(len(report.breaks), 'break')}")
    if saving is not None and saving.high > 0:
        low, high = saving.low * saving.usd, saving.high * saving.usd
        part = f"{saving.low:.0%} to {saving.high:.0%}" if saving.low else f"up to {saving.high:.0%}"
        value = f"{_usd(low)} to {_usd(high)}" if saving.low else f"up to {_usd(high)}"
        yield _Figure("Sevenfold would have saved", value, f"{part} of {saving.describe_scope(report)}")
    elif totals.hit_rate is not None:
        yield _Figure("Cache hit rate", f"{totals.hit_rate:.0%}", "of prompt tokens came from the cache")


def _columns(figures: Sequence[_Figure]) -> Iterable[str]:
    step = (_RIGHT - _LEFT) / 3
    for place, figure in enumerate(figures):
        x = round(_LEFT + place * step)
        size = 52 if len(figure.value) < 12 else 34
        yield _text(x, 148, figure.label, 20, _FAINT)
        yield _text(x, 206, figure.value, size, _INK, weight=650)
        yield _text(x, 242, figure.remark, 18, _FAINT)


def _chart(session: SessionReport) -> Iterable[str]:
    """The prompt of each call: what the cache supplied below, what was paid for above."""
    points = session.series
    most = max(point.prompt_tokens for point in points) or 1
    calls = points[-1].call or 1
    yield _text(_LEFT, 302, "Context of the most expensive session", 18, _INK, weight=600)
    for x, colour, label in (
        (470, _READ, "from the cache"),
        (640, _PAID, "paid in full"),
        (790, _BREAK, "cache break"),
    ):
        yield f'<rect x="{x}" y="290" width="12" height="12" rx="3" fill="{colour}"/>'
        yield _text(x + 18, 302, label, 16, _FAINT)
    yield _text(_RIGHT, 302, f"up to {_tokens(most)} tokens", 16, _FAINT, anchor="end")

    def across(point: SeriesPoint) -> float:
        return _LEFT + (_RIGHT - _LEFT) * point.call / calls

    def up(tokens: int) -> float:
        return _FLOOR - (_FLOOR - _TOP) * tokens / most

    prompt = " ".join(f"L{across(point):.1f} {up(point.prompt_tokens):.1f}" for point in points)
    read = " ".join(f"L{across(point):.1f} {up(point.read_tokens):.1f}" for point in points)
    yield f'<path d="M{_LEFT} {_FLOOR} {prompt} L{_RIGHT} {_FLOOR}Z" fill="{_PAID}"/>'
    yield f'<path d="M{_LEFT} {_FLOOR} {read} L{_RIGHT} {_FLOOR}Z" fill="{_READ}"/>'
    yield f'<path d="M{_LEFT} {_FLOOR}H{_RIGHT}" stroke="{_FAINT}"/>'
    for point in points:
        if point.mark == "break":
            x, y = across(point), up(point.prompt_tokens)
            yield f'<path d="M{x:.1f} {y:.1f}V{_FLOOR}" stroke="{_BREAK}" stroke-dasharray="2 3"/>'
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_BREAK}" stroke="#ffffff"/>'


def _sentence(report: ReplayReport, saving: SavingRange | None) -> str:
    return "; ".join(
        f"{figure.label}: {figure.value}, {figure.remark}" for figure in _figures(report, saving)
    )


def _period(report: ReplayReport) -> str:
    days = sorted({row.day for session in report.sessions for row in session.days if row.day})
    if not days:
        return ""
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _text(
    x: float, y: float, text: str, size: int, fill: str, *, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _usd(amount: Decimal | float) -> str:
    return f"${amount:,.2f}"


def _tokens(count: int) -> str:
    return next(
        (
            f"{count / unit:.3g}{letter}"
            for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K"))
            if count >= unit
        ),
        str(count),
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
