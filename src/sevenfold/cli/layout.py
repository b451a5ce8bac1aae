"""Formats numbers for people: short, aligned, the same everywhere. `wrap_lines` fits lines to narrow
terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from textwrap import wrap

_UNITS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K"))
_EIGHTHS = " ▏▎▍▌▋▊▉█"
ELLIPSIS = "..."


def format_tokens(tokens: int) -> str:
    """12, 3.4K, 56.7K, 890K, 1.2M: three digits at most."""
    for unit, letter in _UNITS:
        if abs(tokens) >= unit:
            value = tokens / unit
            return f"{value:.1f}{letter}" if abs(value) < 99.95 else f"{value:.0f}{letter}"
    return str(tokens)


def format_usd(amount: Decimal | None) -> str:
    """Cents from a dollar on; below, as many places as show something; no cents of tens of thousands."""
    if amount is None:
        return "unpriced"
    if abs(amount) >= 10_000:
        return f"${amount:,.0f}"
    if amount == 0 or abs(amount) >= 1:
        return f"${amount:,.2f}"
    return f"${amount:.3f}" if abs(amount) >= Decimal("0.1") else f"${amount:.4f}"


def format_share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def format_duration(span: timedelta | None) -> str:
    """The largest unit that fits, to one place: 12 s, 4.5 min, 3.0 h, 2.1 d."""
    if span is None:
        return "?"
    seconds = span.total_seconds()
    for unit, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= unit:
            return f"{seconds / unit:.1f} {word}"
    return f"{seconds:.0f} s"


def format_time(at: datetime | None) -> str:
    """Local to whoever reads it."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}" if at else "no time"


def format_count(number: int, thing: str) -> str:
    """1 call, 2 calls."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def shorten_text(text: str, width: int, *, is_path: bool = False) -> str:
    """At most so many characters; of a path its end is kept, for there is the file."""
    if len(text) <= width:
        return text
    room = width - len(ELLIPSIS)
    return ELLIPSIS + text[-room:] if is_path else text[:room] + ELLIPSIS


def render_bar(share: float, width: int, *, has_unicode: bool) -> str:
    """A bar that is full at 1; something is never nothing."""
    share = min(1.0, max(0.0, share))
    if not has_unicode:
        return "#" * max(round(share * width), 1 if share > 0 else 0)
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


# Lines laid out for 80 columns, on a terminal that has fewer.

DEFAULT_COLUMNS = 80
"""What everything is laid out for; a wider terminal shows it as it is."""
MIN_COLUMNS = 20

_PAINT = re.compile(r"\x1b\[[\d;]*m")
_BAR = re.compile(r"[█▉▊▋▌▍▎▏░#]{12,}")


def wrap_lines(text: str, columns: int) -> str:
    """The same lines, broken between words and set in; bars are drawn shorter. Paint stays on what fits."""
    if columns >= DEFAULT_COLUMNS:
        return text
    room = max(columns, MIN_COLUMNS)
    return "\n".join(part for line in text.split("\n") for part in _fitting(line, room))


def _fitting(line: str, columns: int) -> Iterator[str]:
    plain = _PAINT.sub("", line)
    if len(plain) <= columns:
        yield line
        return
    share = columns / DEFAULT_COLUMNS
    shorter = _BAR.sub(lambda bar: _sampled(bar.group(), share), plain)
    words = shorter.lstrip(" ")
    # What stands far to the right points at something above it, which is not there any more.
    indent = " " * min(len(shorter) - len(words), columns // 8)
    yield from wrap(words, columns, initial_indent=indent, subsequent_indent=f"{indent}  ") or [""]


def _sampled(bar: str, share: float) -> str:
    count = max(1, int(len(bar) * share))
    return "".join(bar[at * len(bar) // count] for at in range(count))
