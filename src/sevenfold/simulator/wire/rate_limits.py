"""Rate limits by the minute: the headers, and a 429 over a limit that was set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sevenfold.core.usage import TokenCounts
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused

RATE_WINDOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RateLimits:
    """A minute's allowance of one workspace. The defaults are wide: a test that wants a 429 sets its own."""

    requests: int = 4_000
    input_tokens: int = 10_000_000
    """Fresh and written tokens; what is read from the cache is free."""
    output_tokens: int = 2_000_000


DEFAULT_RATE_LIMITS = RateLimits()


@dataclass(slots=True)
class _Window:
    opened: datetime
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class RateMeter:
    """Counts each workspace's use in fixed windows of a minute, by whatever clock the caller tells."""

    __slots__ = ("_limits", "_windows")

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._windows: dict[str, _Window] = {}

    def admit(self, workspace: str, now: datetime) -> None:
        """Let a request in, or refuse it with the time until the next window."""
        window, limits = self._window(workspace, now), self._limits
        over = [
            name
            for name, used, limit in (
                ("requests", window.requests, limits.requests),
                ("input tokens", window.input_tokens, limits.input_tokens),
                ("output tokens", window.output_tokens, limits.output_tokens),
            )
            if used >= limit
        ]
        if over:
            message = f"This request would exceed your workspace's rate limit of {over[0]} per minute."
            raise RequestRefused(
                ErrorResponse(status=429, message=message, retry_after=window.opened + RATE_WINDOW - now)
            )
        window.requests += 1

    def charge(self, workspace: str, counts: TokenCounts, now: datetime) -> None:
        window = self._window(workspace, now)
        window.input_tokens += counts.fresh + counts.written
        window.output_tokens += counts.output

    def headers(self, workspace: str, now: datetime) -> dict[str, str]:
        """What is left, as every answer says."""
        window, limits = self._window(workspace, now), self._limits
        reset = (window.opened + RATE_WINDOW).strftime("%Y-%m-%dT%H:%M:%SZ")
        rows = {
            "requests": (limits.requests, window.requests),
            "tokens": (
                limits.input_tokens + limits.output_tokens,
                window.input_tokens + window.output_tokens,
            ),
            "input-tokens": (limits.input_tokens, window.input_tokens),
            "output-tokens": (limits.output_tokens, window.output_tokens),
        }
        told: dict[str, str] = {}
        for name, (limit, used) in rows.items():
            told[f"anthropic-ratelimit-{name}-limit"] = str(limit)
            told[f"anthropic-ratelimit-{name}-remaining"] = str(max(0, limit - used))
            told[f"anthropic-ratelimit-{name}-reset"] = reset
        return told

    def _window(self, workspace: str, now: datetime) -> _Window:
        window = self._windows.get(workspace)
        if window is None or now >= window.opened + RATE_WINDOW:
            window = self._windows[workspace] = _Window(now)
        return window
