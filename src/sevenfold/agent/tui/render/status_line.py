"""The status line: context, mode, cost, model, cache and the last event, as far as the columns go.

Also the line that says what a turn is doing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.agent.tui.text_renderer import TextRenderer

_GAP = "  "
_ELLIPSIS = "…"
_LEAST_SAVED = 0.005
"""Dollars that round to a cent."""
_LEAST_NEWS = 16
"""Fewer columns than this would say nothing of what happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLine:
    """What the line is made of."""

    model: str = ""
    mode: str = ""
    context_tokens: int = 0
    limit_tokens: int = 0
    spent_usd: float | None = 0.0
    tasks: int = 0
    queued: int = 0
    """Messages that wait for the end of the round."""
    news: str = ""
    """What a layer did last."""
    is_working: bool = False
    cache: str = ""
    """How long the provider's cache stays warm, and what it costs to let it go cold."""
    has_unbilled: bool = False
    """Requests were interrupted before a bill came: what was spent is more."""
    saved_usd: float | None = None
    """Against the same conversation without cache and layers."""


def render_status_line(status: StatusLine, columns: int) -> str:
    """At most `columns` characters: details go first, then what matters least, and only the news is cut in
    mid-word."""
    parts = next(
        (parts for parts in _list_forms(status) if len(_GAP.join(parts)) <= columns),
        _parts(status, has_saved=False, has_price=False, has_model=True),
    )
    while parts and len(_GAP.join(parts)) > columns:
        parts.pop()
    line = _GAP.join(parts)
    room = columns - len(line) - len(_GAP)
    if not status.news or room < min(_LEAST_NEWS, len(status.news)):
        return line
    news = status.news if len(status.news) <= room else status.news[: room - 1] + _ELLIPSIS
    return f"{line}{_GAP}{news}" if line else news


def _list_forms(status: StatusLine) -> Iterator[list[str]]:
    """The line with less and less: words that say little, what was saved, what the next pause costs, the
    model."""
    for left in range(4):
        parts = _parts(status, has_saved=left < 1, has_price=left < 2, has_model=left < 3)
        yield parts
        yield [_WORDS.sub("", part) for part in parts]


_WORDS = re.compile(" context$|^cache |, then(?= )|: next prompt(?: up to)?(?= )")
"""Words that a narrow line does without."""


def _parts(status: StatusLine, *, has_saved: bool, has_price: bool, has_model: bool) -> list[str]:
    """The most important first."""
    parts = [_context(status)]
    parts += [f"{status.queued} queued"] if status.queued else []
    parts += [f"{status.tasks} task{'' if status.tasks == 1 else 's'}"] if status.tasks else []
    saved = status.saved_usd
    is_saved = has_saved and saved is not None and saved >= _LEAST_SAVED
    parts += [status.mode, _cost(status) + (f" (saved ${saved:.2f})" if is_saved else "")]
    parts += [status.model.removeprefix("claude-")] if has_model else []
    if not status.is_working:
        parts.append(status.cache if has_price else re.split(r"[,:]", status.cache)[0])
    return [part for part in parts if part]


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyLine:
    """What a turn is doing, in one line that moves."""

    phase: str
    elapsed: timedelta
    """Since the turn began."""
    tokens: int = 0
    """That the model wrote in this turn so far."""
    can_leave: bool = False
    """It runs a command that can go to the background."""

    def render(self, renderer: TextRenderer) -> str:
        """In a narrow terminal the tokens go first. Then what it does has two rows, and how to end it one of
        its own: that is always said."""
        frames = _FRAMES if renderer.has_unicode else _PLAIN_FRAMES
        frame = frames[int(self.elapsed / FRAME_TIME) % len(frames)]
        doing = f"{frame} working {int(self.elapsed.total_seconds())} s: {self.phase}"
        arrow = "↓ " if renderer.has_unicode else ""
        tokens = [f"{arrow}{self.tokens:,} tokens"] if self.tokens else []
        leaving = [_BACKGROUND_HINT] if self.can_leave else []
        for parts in (
            [doing, *tokens, _INTERRUPT_HINT, *leaving],
            [doing, _INTERRUPT_HINT, *leaving],
            [doing, _INTERRUPT_HINT],
        ):
            if len(_GAP.join(parts)) < renderer.columns:
                return renderer.line(_GAP.join(parts), "accent")
        doing = renderer.cut(doing, _NARROW_ROWS * (renderer.columns - len(_GAP)))
        return renderer.line(f"{doing}\n{_GAP}{_INTERRUPT_HINT}", "accent", hang=len(_GAP))


FRAME_TIME = timedelta(seconds=0.5)
"""Twice a second looks alive, and costs few bytes even over a slow line."""
_FRAMES, _PLAIN_FRAMES = "⠋⠙⠸⠴⠦⠇", "|/-\\"
_NARROW_ROWS = 2
"""That say what is done, where one has no room for it."""
_INTERRUPT_HINT = "Esc interrupts"
_BACKGROUND_HINT = "Ctrl-B: background"


WAITING = "waiting for the model"
_LONG_WAIT, _LONG_SILENCE = timedelta(seconds=15), timedelta(seconds=5)
"""Before an answer and within it, from which on it is said that nothing comes."""
_EARLY_SHARE = 8
"""Of a short limit: that part of it is a long wait too."""


def render_wait(doing: str, silence: timedelta, limit: timedelta | None) -> str:
    """What a turn waits for: in a long silence also since when, and how long it may last. A limit is that
    within an answer; a provider has twice as long to begin."""
    is_begun = doing != WAITING
    most = limit if limit is None or is_begun else 2 * limit
    long = _LONG_SILENCE if is_begun else _LONG_WAIT
    if silence < (long if most is None else min(long, most / _EARLY_SHARE)):
        return doing
    said = f"{doing}, nothing new" if is_begun else "no answer"
    end = f", waits at most {most.total_seconds():.0f} s" if most is not None else ""
    return f"{said} for {int(silence.total_seconds())} s{end}"


def _context(status: StatusLine) -> str:
    if not status.limit_tokens:
        return ""
    return f"{100 * status.context_tokens / status.limit_tokens:.0f}% context"


def _cost(status: StatusLine) -> str:
    if status.spent_usd is None:
        return "unpriced"
    return f"${status.spent_usd:.2f}{'+' if status.has_unbilled else ''}"
