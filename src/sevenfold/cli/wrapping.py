"""Lines that were laid out for 80 columns, on a terminal that has fewer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

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
