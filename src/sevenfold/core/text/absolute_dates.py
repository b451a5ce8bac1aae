"""Makes relative dates absolute: "yesterday" in a memory means another day each time it is read.

Prose only: code, quoted words and addresses stay as they are, and so does a sentence that sets a habit
("always put today's date on top"), where no one day is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_COUNTS = {
    **{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7},
    **{"eight": 8, "nine": 9, "ten": 10, "a couple of": 2, "couple of": 2},
}
_SHIFTS = {
    "the day before yesterday": -2,
    **dict.fromkeys(("yesterday", "last night"), -1),
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening"), 0),
    "tomorrow": 1,
    "the day after tomorrow": 2,
}
_NEAR = {"last": -1, "this": 0, "next": 1}
_MOST = 400
"""Of whatever unit: who writes "9999 years ago" means no date."""

_count = "|".join(sorted((*_COUNTS, r"\d{1,3}"), key=len, reverse=True))
_RELATIVE = re.compile(
    r"\b(?:(?P<lead>since|by|until|till|before|after|from|on|as\ of|of)\ )?"
    rf"(?:(?P<shift>{'|'.join(sorted(_SHIFTS, key=len, reverse=True))})(?!['’]s|-)"
    rf"|(?P<count>{_count})\ (?P<unit>day|week|month|year)s?\ ago"
    rf"|(?<!the\ )(?<!each\ )(?<!every\ )(?P<near>last|this|next)\ "
    rf"(?P<span>week|month|year|{'|'.join(_DAYS)})(?!['’]s|-|\ of\b|\ \(said))\b",
    re.IGNORECASE,
)
_HINTS = ("yesterday", "today", "tonight", "tomorrow", "ago", "last ", "this ", "next ")
"""One of them is in each: most memories hold none, and need no closer look."""
_HABIT = re.compile(r"\b(?:always|never|every|each|whenever|usually|often)\b", re.IGNORECASE)
_KEPT = re.compile(
    r"(?P<fence>^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\2[^\n]*$|\Z))"
    r"|``.*?``|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|\bhttps?://\S+|^ {0,3}>[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?|\n")


def resolve_relative_dates(text: str, day: date) -> str:
    """The text as if it had been written with dates, on that day. What is absolute stays as it is."""
    low = text.lower()
    if not any(hint in low for hint in _HINTS) or not _RELATIVE.search(text):
        return text
    found: list[str] = []
    at = 0
    for kept in _KEPT.finditer(text):
        found += (_dated(text[at : kept.start()], day), kept[0])
        at = kept.end()
    return "".join((*found, _dated(text[at:], day)))


def _dated(prose: str, day: date) -> str:
    return _SENTENCE.sub(
        lambda sentence: sentence[0] if _HABIT.search(sentence[0]) else _spelled(sentence[0], day), prose
    )


def _spelled(sentence: str, day: date) -> str:
    return _RELATIVE.sub(lambda match: _replacement(match, day), sentence)


@dataclass(frozen=True, slots=True)
class _When:
    lead: str
    """What stands before it where no word does: on a day, in a month."""
    name: str


def _replacement(match: re.Match[str], day: date) -> str:
    if match["near"] and match["near"].lower() != "last" and match["span"].lower() in _DAYS:
        # This Friday or the one after: people mean either, so only the day it was said on is added.
        return f"{match[0]} (said on {day.isoformat()})"
    try:
        when = _find(match, day)
    except (OverflowError, ValueError):
        return match[0]
    lead = match["lead"] or ""
    if lead.lower() == "of" and when.lead == "in":
        return match[0]  # "the end of last week" says more than its week would
    text = f"{lead or when.lead} {when.name}"
    return text[0].upper() + text[1:] if match[0][0].isupper() else text


def _find(match: re.Match[str], day: date) -> _When:
    if match["shift"]:
        return _When("on", (day + timedelta(days=_SHIFTS[match["shift"].lower()])).isoformat())
    if match["count"]:
        said = match["count"].lower()
        count = _COUNTS.get(said) or int(said)
        return _UNITS[match["unit"].lower()](day, -min(count, _MOST))
    near, span = _NEAR[match["near"].lower()], match["span"].lower()
    if span in _DAYS:
        back = (day.weekday() - _DAYS.index(span) - 1) % 7 + 1
        return _When("on", (day - timedelta(days=back)).isoformat())
    return _UNITS[span](day, near)


def _week(day: date, shift: int) -> _When:
    monday = day - timedelta(days=day.weekday()) + timedelta(weeks=shift)
    return _When("in", f"the week of {monday.isoformat()}")


def _month(day: date, shift: int) -> _When:
    year, month = divmod(day.year * 12 + day.month - 1 + shift, 12)
    return _When("in", f"{_MONTHS[month]} {date(year, 1, 1).year}")


def _year(day: date, shift: int) -> _When:
    return _When("in", str(date(day.year + shift, 1, 1).year))


_UNITS: dict[str, Callable[[date, int], _When]] = {
    "day": lambda day, shift: _When("on", (day + timedelta(days=shift)).isoformat()),
    "week": _week,
    "month": _month,
    "year": _year,
}
