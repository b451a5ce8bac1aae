"""When to try again: not at once after a failure, and not at all after a refusal until something changes.

Pure. A clock that was set back or forward delays nothing for good: what lies in the future never happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sevenfold.core.errors import SevenfoldError, TeamOffline, TeamRefused

FAILURE_WINDOW = timedelta(hours=1)
MAX_FAILURES = 60
"""In an hour, whatever changes meanwhile: an agent that writes a file a second is no reason."""
_FIRST_WAIT = timedelta(seconds=5)
LONGEST_RETRY_WAIT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryState:
    """What went wrong lately."""

    failures: tuple[datetime, ...] = ()
    """Of the last hour, oldest first."""
    in_a_row: int = 0
    not_before: datetime | None = None
    refusal: str = ""
    """What the server refused for good, in words; empty: nothing."""
    mark: str = ""
    """What files and token were like then: as long as they are the same, so is the answer."""


def choose_wait(pace: RetryState, now: datetime, mark: str) -> str:
    """Why not to try now; empty: do."""
    if pace.refusal and pace.mark == mark:
        return f"the server refused: {pace.refusal}; nothing is sent until a file or the token changes"
    if len(_recent(pace.failures, now)) >= MAX_FAILURES:
        return f"{MAX_FAILURES} attempts have failed within the hour; the next one waits"
    if pace.not_before is not None and now < pace.not_before <= now + LONGEST_RETRY_WAIT:
        return f"the last attempt failed; the next one is at {pace.not_before:%H:%M:%S} UTC"
    return ""


def after_failure(pace: RetryState, now: datetime, error: SevenfoldError, mark: str) -> RetryState:
    failures = (*_recent(pace.failures, now), now)
    in_a_row = pace.in_a_row + 1
    wait = min(LONGEST_RETRY_WAIT, _FIRST_WAIT * 2 ** min(in_a_row - 1, 10))
    if isinstance(error, TeamOffline) and error.retry_after is not None:
        wait = min(LONGEST_RETRY_WAIT, max(wait, error.retry_after))
    is_final = isinstance(error, TeamRefused)
    failed = replace(pace, failures=failures, in_a_row=in_a_row, not_before=now + wait)
    return replace(failed, refusal=str(error) if is_final else "", mark=mark if is_final else "")


def after_success(pace: RetryState, now: datetime) -> RetryState:
    return RetryState(failures=_recent(pace.failures, now))


def _recent(moments: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
    return tuple(moment for moment in moments if now - FAILURE_WINDOW < moment <= now)[-MAX_FAILURES:]
