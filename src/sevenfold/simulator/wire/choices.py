"""Switches for what the contract leaves open or to the account, and rate limits.

docs/simulator-contract.md lists the choices and says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

from sevenfold.core.cache.prompt_blocks import DEFAULT_CACHE_CHOICES, CacheChoices
from sevenfold.core.usage import TokenCounts
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused

# Rate limits per minute: the headers, and a 429 over a limit that was set.

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
        headers: dict[str, str] = {}
        for name, (limit, used) in rows.items():
            headers[f"anthropic-ratelimit-{name}-limit"] = str(limit)
            headers[f"anthropic-ratelimit-{name}-remaining"] = str(max(0, limit - used))
            headers[f"anthropic-ratelimit-{name}-reset"] = reset
        return headers

    def _window(self, workspace: str, now: datetime) -> _Window:
        window = self._windows.get(workspace)
        if window is None or now >= window.opened + RATE_WINDOW:
            window = self._windows[workspace] = _Window(now)
        return window


PREFIX_CHECK_SINCE = date(2026, 8, 31)
"""Accounts made from this day on have their thinking checked on every model that signs it."""

ForeignSignatures: TypeAlias = Literal["refuse", "keep"]
CutToolInput: TypeAlias = Literal["drop", "empty"]
UnsimulatedMode: TypeAlias = Literal["refuse", "ignore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    strict: bool = True
    """Refuse request fields that the API does not know, as it does; off, they are ignored."""

    account_created: date = date(2026, 11, 1)
    """A new account: what passes here passes on an old one too, and not the other way round."""

    cache_edits: bool = False
    """The `cache_edits` extension. No public provider offers it, so nobody should rely on it by accident."""

    cleared_text: str = "[tool result cleared]"
    """What a cleared tool result is replaced with. The real text is not documented."""

    sticky_clearing: bool = False
    """Whether results that an earlier request cleared stay cleared, and only new ones count for
    `clear_at_least`. Off: each request is looked at afresh, since no state is documented."""

    foreign_signatures: ForeignSignatures = "refuse"
    """A signature that was not made here is a forgery. `keep` takes it, for histories recorded elsewhere."""

    shows_thinking: bool | None = None
    """Whether thinking text is returned when a request does not say. None: by model, hidden from 4.7 on."""

    prefill_after_blocks: bool = True
    """Let a conversation end with an assistant message whose last block is a compaction or a server tool's
    result, on models that take no prefill."""

    opens_with_user: bool = True
    """The first message must be the user's, a compaction block apart."""

    first_token: timedelta = timedelta()
    """Real time before an answer begins that writes to the cache. Without any, it begins when every request
    that came with it has been looked up; with some, clients that are further apart all miss as well."""

    cut_tools: CutToolInput = "drop"
    """A tool request that `max_tokens` cuts off: left out, or returned with an empty input."""

    unsimulated: UnsimulatedMode = "refuse"
    """Fields that ask for what is not simulated, such as `mcp_servers`: a 400, or ignored."""

    fast_unpriced: bool = False
    """Let `speed: "fast"` pass on models for which no fast price is known; their cost is then unknown."""

    empty_text: bool = True
    """Take empty text blocks: the cache has rules for them. Public reports have a 400 for some."""

    bills_unsent: bool = False
    """Whether an answer whose stream breaks is billed whole, or only what was sent of it."""

    pings: bool = True
    """One `ping` after `message_start`. How often they really come is not documented."""

    extra_betas: frozenset[str] = field(default_factory=frozenset[str])
    """Beta names to know beside those of the SDK and of Claude Code."""

    limits: RateLimits = DEFAULT_RATE_LIMITS
    cache: CacheChoices = DEFAULT_CACHE_CHOICES

    request_limit_bytes: int = 32 * 2**20
    """As documented, for messages and for counting."""

    messages_limit: int = 100_000
    """As documented."""

    @property
    def is_new_account(self) -> bool:
        return self.account_created >= PREFIX_CHECK_SINCE


DEFAULT_CHOICES = Choices()
