"""Errors as a person reads them: the status code, what the provider said, and what to do about it."""

from __future__ import annotations

from datetime import timedelta

from sevenfold.core.errors import (
    Overloaded,
    PromptTooLong,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
    SevenfoldError,
    SignInRefused,
)
from sevenfold.core.events import RetryScheduled

_OTHER_MODEL = "/model chooses another model"
_CHECK_NETWORK = "check the network, and the address in ANTHROPIC_BASE_URL, OPENAI_BASE_URL or agent.base_url"


def render_error(error: SevenfoldError | None, key_variable: str = "", retries: int = 0) -> str:
    """One line; `key_variable` is the environment variable that the key came from, and `retries` how often
    the request was sent again."""
    if not isinstance(error, ProviderError):
        return f"error: {error}"
    code = " ".join(str(part) for part in (error.status, error.kind) if part)
    attempts, remedy = f" ({retries + 1} attempts)" if retries else "", _find_remedy(error, key_variable)
    return f"error{f' {code}' if code else ''}: {error}{attempts}{f'; {remedy}' if remedy else ''}"


def _find_remedy(error: ProviderError, key_variable: str) -> str:
    """What helps, where something does that the error itself does not name."""
    match error:
        case SignInRefused():
            return render_key_remedy(key_variable)
        case RateLimited(retry_after=timedelta() as wait) if wait:
            return f"the provider asks to wait {wait.total_seconds():.0f} s; /model chooses another model"
        case (
            RateLimited() | Overloaded() | ReplyBroken(kind="overloaded_error") | ProviderRefused(status=404)
        ):
            return "/model chooses another model"
        case PromptTooLong():
            return "/compact cuts the context down"
        case ProviderUnreachable() if error.should_retry is not False:  # else it was reached, and silent
            return _CHECK_NETWORK
        case _:
            return ""


def render_key_remedy(key_variable: str) -> str:
    """What to do about a key that was refused, or is not there."""
    if not key_variable:
        return "no key was sent: set ANTHROPIC_API_KEY or OPENAI_API_KEY and start again"
    return f"the key from {key_variable} was refused: set {key_variable} to a valid key and start again"


def render_retry(event: RetryScheduled, left: timedelta) -> str:
    """What a turn waits for, while it counts down."""
    seconds = max(0, round(left.total_seconds()))
    # The countdown first: a narrow terminal cuts the end, and the reason is printed above.
    return f"retry {event.retry} of {event.of} in {seconds} s: {event.reason}"


def find_retry_remedy(event: RetryScheduled) -> str:
    """What to look at meanwhile, where no server answered: its answer would have a status code."""
    return "" if event.reason[:3].isdigit() else _CHECK_NETWORK
