"""What we assume of the prompt cache where the provider's documents leave a question open.

Every field is a choice that may turn out wrong, so each can be turned; the defaults are argued for in
`docs/simulator-contract.md`, under "Prompt cache".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

PromptLevel: TypeAlias = Literal["tools", "system", "messages"]
PROMPT_LEVELS: tuple[PromptLevel, ...] = ("tools", "system", "messages")
"""The order in which a request is rendered, and so in which one change spoils what comes after it."""

RefreshRule: TypeAlias = Literal["hit", "found", "prefix"]

FIVE_MINUTES = timedelta(minutes=5)
ONE_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheChoices:
    thinking_level: PromptLevel = "messages"
    """Where thinking config and effort are rendered: "model-specific", say the documents, naming no model."""

    output_level: PromptLevel = "messages"
    """Where output format and task budget are rendered: they break the cache, at a tier nobody names."""

    key_order_counts: bool = True
    """Whether the order of keys in tool inputs and schemas is hashed. The documents warn of languages that
    shuffle them; a model that looked away would promise hits that do not come."""

    renders_deferred: bool = False
    """Whether a tool with `defer_loading` is in the prefix before anything refers to it."""

    collapses_runs: bool = True
    """Whether a run of tool requests, or of results, is one position of the look-back: so on the provider's
    own API, not said of other platforms."""

    hit_needs_ttl: bool = False
    """Whether a marker reads only entries written with its own TTL."""

    refresh: RefreshRule = "found"
    """Which entries a request keeps alive: the one it was billed for (`hit`), what each of its markers found
    (`found`), or every entry on the prefix it read (`prefix`). System prompts are read again after hours of
    conversation, so `hit` alone is unlikely."""

    writes_below_hit: bool = True
    """Whether a marker before the hit writes its entry too, free of charge, when none is alive there."""

    gates_each_marker: bool = True
    """Whether the model's minimum holds for each marker's own prefix, or for the last marker's alone."""

    full_auto_fails: bool = False
    """Whether automatic caching is refused when the fourth marker already stands where it would put its own:
    two documented sentences disagree."""


DEFAULT_CACHE_CHOICES = CacheChoices()
"""The defaults."""
