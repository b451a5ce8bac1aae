"""The one place where errors of an SDK, or of HTTP itself, become errors of ours.

The SDKs name their classes alike and share none, so the status and the body decide. `read_overflow` tells
from what a provider says that a prompt was too long, and by how much. A test walks the SDKs' error classes to
see that none is unmapped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import urlsplit

from sevenfold.core.errors import (
    Overloaded,
    PromptTooLong,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
    SignInRefused,
    ThinkingRefused,
    WireError,
)

# A code decides where there is one. The texts are those of the servers named beside them; each gives its
# figures in its own way, and some count the requested output against the same window.

TOO_LONG_CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI, and most that are compatible with it
        "exceed_context_size_error",  # llama.cpp, as the type
        "request_too_large",  # Anthropic's 413: too many bytes
    }
)

LONGEST_TEXT = 4_000
"""An error that goes on for longer says its reason first; the rest may quote the prompt itself."""

_NUMBER = "[0-9][0-9,]{0,15}"
_TEXTS = (
    # Anthropic; older models of it
    "prompt is too long: <tokens> tokens > <limit> maximum",
    "input length and `max_tokens` exceed context limit: <tokens> \\+ <output> > <limit>",
    # OpenAI, by age; vLLM once said the same
    "maximum context length is <limit> tokens.{0,40}resulted in <tokens> tokens",
    "maximum context length is <limit> tokens.{0,40}requested [0-9]+ tokens? \\(<tokens> in (?:the|your) "
    "(?:messages|prompt)[,;] <output> (?:in|for) the completion",
    # vLLM, newest first
    "maximum context length is <limit> tokens.{0,40}requested <output> output tokens and your prompt "
    "contains (?:at least )?<tokens> input tokens",
    "too large: <output>\\. .{0,20}maximum context length is <limit> tokens.{0,40}request has <tokens> input",
    "maximum context length is <limit> tokens.{0,40}request has <tokens> (?:input )?tokens",
    "prompt \\((?:total )?length <tokens>\\) is (?:longer than|too long).{0,60}length(?: of)? <limit>",
    # llama.cpp; its Python server
    "request \\(<tokens> tokens\\) exceeds the available context size \\(<limit> tokens\\)",
    "[Rr]equested tokens \\(<tokens>\\) exceed context window of <limit>",
    # LM Studio, by engine
    "keep the first <tokens> tokens when.{0,60}context length of only <limit> tokens",
    "n_keep \\(<tokens>\\) >= n_ctx \\(<limit>\\)",
)
_FIGURES = tuple(re.compile(re.sub(r"<(\w+)>", rf"(?P<\1>{_NUMBER})", text), re.DOTALL) for text in _TEXTS)
_WORDS = re.compile(
    r"prompt (?:is )?too long"
    r"|maximum context length is"
    r"|exceed(?:s|ed)? (?:the |its )?(?:model's )?(?:available |max |maximum )?context (?:length|size|window)"
    r"|context (?:length|size|window) (?:has been |was )?exceeded"
    r"|initial prompt is greater than the context length",
    re.IGNORECASE,
)
"""The same with no figure to read: Ollama, the second engine of LM Studio, gateways."""


@dataclass(frozen=True, slots=True)
class PromptOverflow:
    """How long the prompt was, and might have been; None where it was not said."""

    tokens: int | None = None
    limit: int | None = None


def read_overflow(
    message: str, names: frozenset[str] = frozenset(), fields: Mapping[str, object] | None = None
) -> PromptOverflow | None:
    """What an error says of a prompt that was too long; None when it says something else.

    `names` are the type and the code it came with, `fields` what else stood beside them.
    """
    text = message[:LONGEST_TEXT]
    is_named = bool(names & TOO_LONG_CODES)
    overflow = _overflow_text(fields or {}) if is_named else None
    if overflow is not None:
        return overflow
    for pattern in _FIGURES:
        match = pattern.search(text)
        if match:
            return _read(match.groupdict())
    return PromptOverflow() if is_named or _WORDS.search(text) else None


def _read(figures: Mapping[str, str]) -> PromptOverflow | None:
    """None when the output alone fills the window: no shorter prompt would help."""
    number = {name: int(text.replace(",", "")) for name, text in figures.items()}
    room = number["limit"] - number.get("output", 0)
    return PromptOverflow(number["tokens"], room) if room > 0 else None


def _overflow_text(fields: Mapping[str, object]) -> PromptOverflow | None:
    """The figures that llama.cpp gives as fields."""
    tokens, limit = fields.get("n_prompt_tokens"), fields.get("n_ctx")
    return PromptOverflow(tokens, limit) if isinstance(tokens, int) and isinstance(limit, int) else None


SIGN_IN = (401, 403)
_TOO_LARGE = 413
"""Too many bytes, or, on some servers, tokens: shortening the prompt mends both."""
TOO_MANY = 429
TIMED_OUT = 408
_REDIRECT, _CLIENT = 300, 400
"""From the first to the second an answer leads elsewhere."""
SERVER = 500
"""From here on the fault is the server's."""

_MOST_SECONDS = 30 * 86_400
"""A month: a longer wait is a mistake, and one that no timer takes."""

_THINKING = re.compile(r"signature.{1,40}thinking|thinking.{1,80}cannot be modified")
"""How the Messages API says that thinking came back changed, or after something else than before."""

KEY_HINT = "give the provider a client with a key, or set the environment variable that the SDK reads"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFault:
    """What a provider said, in no SDK's words."""

    message: str
    status: int | None = None
    kind: str = ""
    code: str = ""
    retry_after: timedelta | None = None
    should_retry: bool | None = None
    location: str = ""
    """Where a redirect leads to."""
    overflow: PromptOverflow | None = None


@contextmanager
def map_transport() -> Generator[None]:
    """What HTTP raises itself, and an answer that cannot be read, as errors of ours."""
    import httpx2

    try:
        yield
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        # The SDKs wrap what happens before an answer; these come from the middle of one.
        raise make_broken_error(error) from error
    except httpx2.InvalidURL as error:
        raise make_unreachable_error(error) from error
    except (WireError, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise make_broken_error(error) from error
    except ValueError as error:
        # A number of more digits than Python reads.
        if "digits" not in str(error):
            raise
        raise make_broken_error(error) from error


def map_fault(fault: ProviderFault) -> ProviderError:
    """The error of ours for an answer that is an error."""
    error = _choose_error(fault)
    error.retry_after, error.should_retry = fault.retry_after, fault.should_retry
    return error


def _choose_error(fault: ProviderFault) -> ProviderError:
    message, status, kind, code = fault.message, fault.status, fault.kind, fault.code
    overflow = fault.overflow
    if overflow is not None:
        return PromptTooLong(
            message, tokens=overflow.tokens, limit=overflow.limit, status=status, kind=kind, code=code
        )
    if status is None or status < _CLIENT:
        is_redirect = status is not None and status >= _REDIRECT
        return _make_redirect_error(fault) if is_redirect else ReplyBroken(message, kind=kind, code=code)
    if status in SIGN_IN:
        return SignInRefused(message, status=status, kind=kind, code=code)
    if status == TOO_MANY:
        return RateLimited(message, status=status, kind=kind, code=code)
    if status >= SERVER or status == TIMED_OUT:
        return Overloaded(message, status=status, kind=kind, code=code)
    if status == _TOO_LARGE:
        return PromptTooLong(message, status=status, kind=kind, code=code)
    if _THINKING.search(message):
        return ThinkingRefused(message, status=status, kind=kind, code=code)
    return ProviderRefused(message, status=status, kind=kind, code=code)


def read_provider_fault(
    text: str, status: int | None, body: object, headers: Mapping[str, str]
) -> ProviderFault:
    """What a body says, whichever of the shapes in use it has; `text` is what the SDK made of it."""
    said = _inner(body)
    kind, code = _word(said.get("type")), _code(said)
    message = (_word(said.get("message")) or _word(said.get("detail")) or text)[:LONGEST_TEXT]
    if kind == "error":
        kind = ""
    return ProviderFault(
        message=message,
        status=status,
        kind=kind,
        code=code,
        retry_after=_retry_after(headers),
        should_retry={"true": True, "false": False}.get(headers.get("x-should-retry", "")),
        location=headers.get("location", ""),
        overflow=read_overflow(message, frozenset({kind, code}), said),
    )


def _make_redirect_error(fault: ProviderFault) -> ProviderRefused:
    """Nothing is sent there: a request holds the whole conversation, and the key."""
    try:
        where = urlsplit(fault.location).netloc
    except ValueError:
        where = ""
    return ProviderRefused(
        f"the endpoint answered {fault.status} and leads to {where or 'no address'!r:.120}, where the "
        "conversation is not sent; name the right address as the base URL",
        status=fault.status,
    )


def make_unreachable_error(error: BaseException) -> ProviderUnreachable:
    """With the address where the SDK's error names its request: that is what a reader checks first."""
    url = urlsplit(str(getattr(getattr(error, "request", None), "url", "")))
    if not url.hostname:
        return ProviderUnreachable(_describe_cause(error))
    cause = error.__cause__
    why = f"{type(cause).__name__}: {cause}" if cause is not None and str(cause) else str(error)
    address = url.netloc.rpartition("@")[2]  # without a password
    return ProviderUnreachable(f"{url.scheme}://{address} cannot be reached: {why}")


def make_broken_error(error: BaseException) -> ReplyBroken:
    return ReplyBroken(f"the answer broke off or cannot be read: {_describe_cause(error)}")


def make_sign_in_error(error: BaseException) -> SignInRefused:
    return SignInRefused(f"{_describe_cause(error)}; {KEY_HINT}")


def make_unsent_error(error: BaseException) -> ProviderRefused:
    return ProviderRefused(f"the SDK would not send the request: {_describe_cause(error)}")


def _describe_cause(error: BaseException) -> str:
    cause = error.__cause__
    is_news = cause is not None and str(cause) and str(cause) not in str(error)
    why = f" ({type(cause).__name__}: {cause})" if is_news else ""
    return f"{error or type(error).__name__}{why}"


def _inner(body: object) -> Mapping[str, object]:
    """The object that holds `message` and `type`: the body, or what its `error` is."""
    if not isinstance(body, Mapping):
        return {"message": body} if isinstance(body, str) else {}
    outer = cast("Mapping[str, object]", body)
    error = outer.get("error")
    if isinstance(error, Mapping):
        return cast("Mapping[str, object]", error)
    return {**outer, "message": error} if isinstance(error, str) else outer


def _code(said: Mapping[str, object]) -> str:
    details = said.get("details")
    if isinstance(details, Mapping):
        return _word(cast("Mapping[str, object]", details).get("error_code"))
    code = said.get("code")
    return str(code) if isinstance(code, (str, int)) else ""


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """How long to wait: in milliseconds, in seconds, or until a date, counted from the answer's own."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        wanted = _number(headers.get(name, ""))
        if wanted is not None:
            return _bounded(wanted * unit)
    try:
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return _bounded((until - now).total_seconds())
    except (TypeError, ValueError):
        return None


def _bounded(seconds: float) -> timedelta:
    return timedelta(seconds=min(max(0.0, seconds), _MOST_SECONDS))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value
