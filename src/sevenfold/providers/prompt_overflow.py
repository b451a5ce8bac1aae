"""Telling from what a provider says that a prompt was too long, and by how much.

A code decides where there is one. The texts are those of the servers named beside them; each gives the
figures in its own way, and some count the output that was asked for against the same window.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
    told = _overflow_text(fields or {}) if is_named else None
    if told is not None:
        return told
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
