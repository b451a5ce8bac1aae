"""What to do, on a terminal: the advice with the most dollars first, its evidence and its command."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from textwrap import wrap

from sevenfold.cli.screen import Screen, format_share, format_time, format_usd, shorten_text
from sevenfold.replay.advice import Advice

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
