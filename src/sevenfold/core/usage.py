"""What a request used, as the provider billed it: one value for every provider's way of counting.

Here `fresh`, `read` and `written` never overlap, and the prompt is their sum, as with Anthropic; OpenAI's
counting, where the whole includes its parts, is turned into this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sevenfold.core.errors import WireError
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze

MAX_COUNT = 10**12
"""A million times the largest window: what is larger is no count of tokens."""

UNTOTALED_KINDS = frozenset({"compaction", "advisor_message"})
"""Kinds of iteration that the totals leave out, though they are billed."""

_SIMULATED_ID = re.compile(r"(?:msg_|resp_|chatcmpl-|toolu_|call_)(?:[0-9a-f]{6})?0{8}\d{8,10}")


def is_simulated_id(name: str) -> bool:
    """Whether an answer or a tool call with this id is one of our simulator's, for which nobody is billed.
    A provider's ids hold random letters."""
    return _SIMULATED_ID.fullmatch(name) is not None


_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Tokens of one model run, by what became of them."""

    fresh: int = 0
    """Prompt tokens that touched no cache."""
    read: int = 0
    """Prompt tokens that came from the cache."""
    written_5m: int = 0
    """Prompt tokens that went into the cache for its short life (OpenAI's 30-minute writes count here)."""
    written_1h: int = 0
    output: int = 0
    thinking: int = 0
    """The part of `output` that was thinking."""

    @property
    def written(self) -> int:
        return self.written_5m + self.written_1h

    @property
    def prompt(self) -> int:
        return self.fresh + self.read + self.written


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration(TokenCounts):
    """One model run inside a request that took several."""

    kind: str = "message"
    """`message`, `compaction`, `advisor_message`, `fallback_message`, or one we do not know yet."""
    model: str | None = None
    """Where it ran on another model than the request's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(TokenCounts):
    """What one request used, or several together."""

    iterations: tuple[Iteration, ...] = ()
    web_searches: int = 0
    web_fetches: int = 0
    service_tier: str | None = None
    speed: str | None = None
    geo: str | None = None
    requests: int = 1
    """How many were added up. A sum cannot be priced: tiers and multipliers hold for each request alone."""

    @property
    def untotaled(self) -> tuple[Iteration, ...]:
        """The runs that were billed on top of the totals."""
        return tuple(item for item in self.iterations if item.kind in UNTOTALED_KINDS)

    @property
    def billed(self) -> Usage:
        """All tokens that were billed, those of untotaled runs included, without the list of runs."""
        if not self.iterations:
            return self
        beside = (
            Usage(
                fresh=run.fresh,
                read=run.read,
                written_5m=run.written_5m,
                written_1h=run.written_1h,
                output=run.output,
            )
            for run in self.untotaled
        )
        whole = sum(beside, replace(self, iterations=()))
        return replace(whole, requests=self.requests)

    @property
    def last_run(self) -> TokenCounts | None:
        """The model run whose prompt was the context: with several, the last that was no compaction."""
        if not self.iterations:
            return self
        return next((item for item in reversed(self.iterations) if item.kind == "message"), None)

    @property
    def context_tokens(self) -> int | None:
        """The size of the context after the answer; None when the usage does not tell it."""
        last = self.last_run
        return None if last is None else last.prompt + last.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            fresh=self.fresh + other.fresh,
            read=self.read + other.read,
            written_5m=self.written_5m + other.written_5m,
            written_1h=self.written_1h + other.written_1h,
            output=self.output + other.output,
            thinking=self.thinking + other.thinking,
            iterations=self.iterations + other.iterations,
            web_searches=self.web_searches + other.web_searches,
            web_fetches=self.web_fetches + other.web_fetches,
            service_tier=_shared(self, other, self.service_tier, other.service_tier),
            speed=_shared(self, other, self.speed, other.speed),
            geo=_shared(self, other, self.geo, other.geo),
            requests=self.requests + other.requests,
        )


NO_USAGE = Usage(requests=0)
"""Where a sum starts."""


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """All of them together, for counting; price them one by one and add the costs."""
    return sum(usages, NO_USAGE)


def _shared(one: Usage, other: Usage, left: str | None, right: str | None) -> str | None:
    """What both have in common; an empty sum agrees with everything."""
    if not one.requests:
        return right
    return left if left == right or not other.requests else None


def read_usage(wire: object) -> Usage:
    """Usage from the wire form of the Messages API. Absent and null counts are zero."""
    usage = _object("usage", wire)
    if "prompt_tokens" in usage or "input_tokens_details" in usage:
        raise WireError(
            "usage counts the OpenAI way (prompt_tokens or input_tokens_details); use read_openai_usage"
        )
    if not any(key in usage for key in (*_COUNTS, "cache_creation", "iterations")):
        raise WireError(f"usage names no count; expected some of {', '.join(_COUNTS)}, got {_keys(usage)}")
    tools = _inner("usage", usage, "server_tool_use")
    return Usage(
        **_read_counts("usage", usage),
        iterations=_read_iterations(usage),
        web_searches=_count("usage.server_tool_use", tools, "web_search_requests"),
        web_fetches=_count("usage.server_tool_use", tools, "web_fetch_requests"),
        service_tier=_word("usage", usage, "service_tier"),
        speed=_word("usage", usage, "speed"),
        geo=_word("usage", usage, "inference_geo"),
    )


def read_stored_usage(wire: object, dialect: str) -> Usage:
    """Usage from a bill as it was kept: in the words of the provider that sent it."""
    return read_openai_usage(wire) if dialect == "openai" else read_usage(wire)


def read_openai_usage(wire: object) -> Usage:
    """Usage from chat completions (`prompt_tokens`), responses (`input_tokens`) or a Codex log.

    Reasoning is a part of the output. Some compatible servers count it apart, which shows when it is the
    larger of the two: then the output is their sum, so that the bill is neither lost nor too small.
    """
    usage = _object("usage", wire)
    prompt_key, output_key = (
        ("prompt_tokens", "completion_tokens")
        if "prompt_tokens" in usage
        else ("input_tokens", "output_tokens")
    )
    if prompt_key not in usage:
        raise WireError(f"usage names no count; expected prompt_tokens or input_tokens, got {_keys(usage)}")
    details = _inner("usage", usage, f"{prompt_key}_details")
    spent = _inner("usage", usage, f"{output_key}_details")
    prompt, output = _count("usage", usage, prompt_key), _count("usage", usage, output_key)
    cached = _count(f"usage.{prompt_key}_details", details, "cached_tokens") or _count(
        "usage", usage, "cached_input_tokens"
    )
    written = _count(f"usage.{prompt_key}_details", details, "cache_write_tokens")
    thinking = _count(f"usage.{output_key}_details", spent, "reasoning_tokens") or _count(
        "usage", usage, "reasoning_output_tokens"
    )
    if cached + written > prompt:
        raise WireError(
            f"usage.{prompt_key} is {prompt}, less than its cached ({cached}) and written ({written}) parts"
        )
    if thinking > output:
        output += thinking
    return Usage(
        fresh=prompt - cached - written,
        read=cached,
        written_5m=written,
        written_1h=0,
        output=output,
        thinking=thinking,
    )


def _read_counts(path: str, wire: JsonObject) -> dict[str, int]:
    """The fields of `TokenCounts`."""
    output = _count(path, wire, "output_tokens")
    details = _inner(path, wire, "output_tokens_details")
    thinking = _count(f"{path}.output_tokens_details", details, "thinking_tokens")
    return {
        "fresh": _count(path, wire, "input_tokens"),
        "read": _count(path, wire, "cache_read_input_tokens"),
        **_read_written(path, wire),
        "output": output,
        "thinking": _part(f"{path}.output_tokens", thinking, output),
    }


def _read_written(path: str, wire: JsonObject) -> dict[str, int]:
    """Writes by lifetime. Older answers give the sum alone: then it is all of the default, five minutes."""
    split = _inner(path, wire, "cache_creation")
    short = _count(f"{path}.cache_creation", split, "ephemeral_5m_input_tokens")
    long = _count(f"{path}.cache_creation", split, "ephemeral_1h_input_tokens")
    if wire.get("cache_creation_input_tokens") is None:
        return {"written_5m": short, "written_1h": long}
    total = _count(path, wire, "cache_creation_input_tokens")
    if short + long > total:
        raise WireError(
            f"{path}.cache_creation adds up to {short + long}, over cache_creation_input_tokens, {total}"
        )
    return {"written_5m": total - long, "written_1h": long}


def _read_iterations(usage: JsonObject) -> tuple[Iteration, ...]:
    items = usage.get("iterations")
    if items is None:
        return ()
    if not isinstance(items, tuple):
        raise WireError(f"usage.iterations must be a list, not {type(items).__name__}")
    return tuple(_read_iteration(f"usage.iterations[{index}]", item) for index, item in enumerate(items))


def _read_iteration(path: str, item: object) -> Iteration:
    wire = _object(path, item)
    kind = _word(path, wire, "type")
    if kind is None:
        raise WireError(f"{path}.type is missing; expected message, compaction or another kind")
    return Iteration(**_read_counts(path, wire), kind=kind, model=_word(path, wire, "model"))


def _object(path: str, wire: object) -> JsonObject:
    frozen = freeze(wire)
    if not isinstance(frozen, JsonObject):
        raise WireError(f"{path} must be an object, not {type(wire).__name__}")
    return frozen


def _inner(path: str, wire: JsonObject, key: str) -> JsonObject:
    value = wire.get(key)
    return EMPTY_OBJECT if value is None else _object(f"{path}.{key}", value)


def _count(path: str, wire: JsonObject, key: str) -> int:
    value = wire.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise WireError(f"{path}.{key} must be a count from 0 to {MAX_COUNT:,}, not {str(value)[:40]!r}")
    return value


def _part(path: str, part: int, whole: int) -> int:
    if part > whole:
        raise WireError(f"{path} is {whole}, less than the thinking that it includes ({part})")
    return part


def _word(path: str, wire: JsonObject, key: str) -> str | None:
    value = wire.get(key)
    if value is not None and not isinstance(value, str):
        raise WireError(f"{path}.{key} must be text or null, not {type(value).__name__}")
    return value


def _keys(wire: JsonObject) -> str:
    return ", ".join(list(wire)[:8]) or "an empty object"
