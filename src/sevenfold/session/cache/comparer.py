"""Finds where a request differs from the one before it, in time that grows with what is new.

A message that is the same object at the same place needs no comparison. Otherwise the rest is rendered as the
provider's cache sees it (`core/cache/prompt_cache.py`) and compared part by part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import is_

from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    PromptDifference,
    PromptLevel,
    RenderedPrompt,
    find_first_difference,
    render_prompt,
)
from sevenfold.core.cache.rendered_prompt import PromptParam, read_prompt_params
from sevenfold.core.json import JsonObject, freeze, write_json
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    has_user_text,
    read_block,
    write_message,
)
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.requests import ListPrefix, ModelRequest, RequestParams
from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.estimation import START_FACTOR


@dataclass(frozen=True, slots=True)
class PromptTraits:
    """What some message of a view has, and what its whole prompt depends on."""

    has_citations: bool = False
    """A document that may be cited: the first one, and the last one that goes, change what the cache is found
    by."""
    has_transient: bool = False
    """Something that leaves the prompt when a user speaks: thinking on a model that drops it, a message for
    one turn."""
    has_compaction: bool = False
    """A compaction block, before which nothing is read."""

    def __or__(self, other: PromptTraits) -> PromptTraits:
        return PromptTraits(
            self.has_citations or other.has_citations,
            self.has_transient or other.has_transient,
            self.has_compaction or other.has_compaction,
        )


_PLAIN = PromptTraits()


@dataclass(frozen=True, slots=True)
class RequestOutline:
    """A request, and what is remembered of it so that the next one need not look through it again."""

    request: ModelRequest
    traits: PromptTraits
    params: tuple[PromptParam, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestComparison:
    """A request after another one."""

    outline: RequestOutline
    difference: PromptDifference | None
    """Where it leaves that one; None when it only goes on from it, or stops short of it."""
    is_longer: bool
    """All of that one is in it, and can be read."""
    shared: int
    """With how many messages both begin that are the same objects."""
    is_trimmed: bool = False
    """What was sent only goes on: the difference is something that the provider leaves out now."""


class RequestComparer:
    """Compares requests, on the models of one catalog."""

    def __init__(self, catalog: Catalog = CATALOG) -> None:
        self._catalog = catalog

    def outline(self, request: ModelRequest) -> RequestOutline:
        """Look through a whole request."""
        return self._outline(request, _PLAIN, 0, self._read_params(request.frame))

    def compare(self, previous: RequestOutline, request: ModelRequest) -> RequestComparison:
        """Look at what is new in a request, and compare the rest."""
        before = previous.request
        shared = count_same_messages(before.messages, request.messages)
        goes_on = shared == len(before.messages)
        params = previous.params if before.frame is request.frame else self._read_params(request.frame)
        known = previous.traits if goes_on else _PLAIN
        outline = self._outline(request, known, shared if goes_on else 0, params)
        difference = self._compare(previous, outline, shared)
        is_longer = goes_on or _blocks(request, shared) >= _blocks(before, shared)
        is_trimmed = goes_on and difference is not None and _is_set_alike(previous, outline)
        return RequestComparison(
            outline=outline,
            difference=difference,
            is_longer=difference is None and is_longer,
            shared=shared,
            is_trimmed=is_trimmed,
        )

    def _compare(
        self, previous: RequestOutline, current: RequestOutline, shared: int
    ) -> PromptDifference | None:
        before, after = previous.request, current.request
        if not _is_set_alike(previous, current):
            return self._compare_whole(before, after)
        if shared == len(before.messages):
            new = after.messages[shared:]
            return self._compare_whole(before, after) if _trims(previous.traits, new) else None
        if current.traits != _PLAIN or previous.traits != _PLAIN:
            return self._compare_whole(before, after)
        if shared == len(after.messages):
            return None
        return self._compare_from(shared, before, after)

    def _outline(
        self, request: ModelRequest, known: PromptTraits, looked_at: int, params: tuple[PromptParam, ...]
    ) -> RequestOutline:
        drops = self._catalog.find(request.frame.model).drops_thinking
        traits = _traits(request.messages[looked_at:], drops_thinking=drops)
        return RequestOutline(request, known | traits, params)

    def _compare_whole(self, before: ModelRequest, after: ModelRequest) -> PromptDifference | None:
        earlier = self._render(before.frame, before.messages)
        return find_first_difference(earlier, self._render(after.frame, after.messages, earlier))

    def _compare_from(self, first: int, before: ModelRequest, after: ModelRequest) -> PromptDifference | None:
        """The same where all before a message is known to be equal, and nothing there can vanish."""
        bare = RequestParams(model=after.frame.model, max_tokens=0)
        earlier = self._render(bare, before.messages[first:])
        found = find_first_difference(earlier, self._render(bare, after.messages[first:], earlier))
        if found is None or not found.path.startswith("messages."):
            return found
        _, index, rest = found.path.split(".", 2)
        return replace(found, path=f"messages.{int(index) + first}.{rest}")

    def _render(
        self, frame: RequestParams, messages: Sequence[Message], after: RenderedPrompt | None = None
    ) -> RenderedPrompt:
        model = self._catalog.find(frame.model)
        scale = START_FACTOR * (NEWER_TOKENIZER_SCALE if model.tokenizer == "newer" else 1.0)

        def count(level: PromptLevel, block: JsonObject) -> int:
            read = read_block(block) if level != "tools" and block.get("type") is not None else None
            if read is None or isinstance(read, Opaque):
                read = Text(write_json(block).decode())
            return max(1, round(CALIBRATED_ESTIMATOR.weigh(read) * scale))

        return render_prompt(render_cache_body(frame, messages), count, catalog=self._catalog, after=after)

    def _read_params(self, frame: RequestParams) -> tuple[PromptParam, ...]:
        return read_prompt_params(frame.params, (), self._catalog.find(frame.model), DEFAULT_CACHE_CHOICES)


def render_cache_body(frame: RequestParams, messages: Iterable[Message]) -> JsonObject:
    """A request as a body of the Messages API, as far as the cache looks at it."""
    wires = tuple(freeze(write_message(message)) for message in messages)
    return JsonObject(
        {
            **frame.params,
            "model": frame.model,
            "system": frame.system,
            "tools": frame.tools,
            "messages": wires,
        }
    )


def count_same_messages(before: Sequence[Message], after: Sequence[Message]) -> int:
    """With how many messages both begin that are the same objects."""
    length = min(len(before), len(after))
    if isinstance(before, ListPrefix) and before.shares_list_with(after):
        return length
    # One pass in C finds out that all are the same, which is nearly always so. Not by `==`, which looks past
    # the order of keys.
    if all(map(is_, before, after)):
        return length
    return next(index for index in range(length) if before[index] is not after[index])


def _blocks(request: ModelRequest, first: int) -> int:
    return sum(len(message.blocks) for message in request.messages[first:])


def _is_set_alike(before: RequestOutline, after: RequestOutline) -> bool:
    """Whether all that both prompts depend on beside their blocks is the same."""
    one, other = before.traits, after.traits
    if one.has_citations != other.has_citations or before.params != after.params:
        return False
    return _is_same_frame(before.request.frame, after.request.frame)


def _trims(traits: PromptTraits, new: Iterable[Message]) -> bool:
    """Whether these messages take something out of a prompt with such traits."""
    for message in new:
        if traits.has_transient and has_user_text(message):
            return True
        if any(isinstance(block, Compaction) for block in message.blocks):
            return True
    return False


def _is_same_frame(before: RequestParams, after: RequestParams) -> bool:
    """Whether model, system and tools are the same to the byte; other parameters are compared as `params`."""
    if before is after:
        return True
    if before.model != after.model:
        return False
    return _is_same_json(before.system, after.system) and _is_same_json(before.tools, after.tools)


def _is_same_json(before: str | tuple[JsonObject, ...], after: str | tuple[JsonObject, ...]) -> bool:
    if before is after:
        return True
    # Equality looks past the order of keys, which the cache does not.
    return before == after and write_json(before) == write_json(after)


def _traits(messages: Iterable[Message], *, drops_thinking: bool) -> PromptTraits:
    cites = expires = compacts = False
    for message in messages:
        expires = expires or "clear_at" in message.extra
        for block in message.blocks:
            inner = block.content if isinstance(block, ToolResult) else None
            for item in inner if isinstance(inner, tuple) else (block,):
                cites = cites or _is_cited(item)
                expires = expires or (drops_thinking and isinstance(item, (Thinking, RedactedThinking)))
                compacts = compacts or isinstance(item, Compaction)
    return PromptTraits(cites, expires, compacts)


def _is_cited(block: Block) -> bool:
    if isinstance(block, Document):
        citations = block.extra.get("citations")
    elif isinstance(block, Opaque) and block.type == "search_result":
        citations = block.wire.get("citations")
    else:
        return False
    return isinstance(citations, JsonObject) and citations.get("enabled") is True
