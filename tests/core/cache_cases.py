"""Requests small enough to reckon by hand: a block of text is as many tokens as it has characters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    CacheChoices,
    CacheScope,
    PromptBill,
    PromptCache,
    PromptLevel,
    PromptPart,
    RenderedPrompt,
    render_prompt,
)
from sevenfold.core.json import JsonObject, freeze, write_json
from sevenfold.core.prices import CATALOG

OPUS = "claude-opus-5"
"""Caches from 512 tokens on, and keeps its thinking."""
STRIPS = "claude-haiku-4-5"
"""Caches from 4,096 tokens on, and drops earlier thinking when a user speaks."""

HERE = CacheScope("here")
START = datetime(2026, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

Wire = dict[str, object]
SHORT: Wire = {"type": "ephemeral"}
LONG: Wire = {"type": "ephemeral", "ttl": "1h"}


def text(content: str, size: int = 0, **fields: object) -> Wire:
    """A text block, filled up to a size."""
    return {"type": "text", "text": content.ljust(size, "."), **fields}


def ask(name: str, **fields: object) -> Wire:
    return {"type": "tool_use", "id": f"use_{name}", "name": "look", "input": {"at": name}, **fields}


def result(name: str, content: object = "seen", **fields: object) -> Wire:
    return {"type": "tool_result", "tool_use_id": f"use_{name}", "content": content, **fields}


def thought(content: str) -> Wire:
    return {"type": "thinking", "thinking": content, "signature": "signed"}


def tool(name: str, **fields: object) -> Wire:
    return {"name": name, "input_schema": {"type": "object", "properties": {"at": {}}}, **fields}


def user(*blocks: object, **fields: object) -> Wire:
    return {"role": "user", "content": list(blocks), **fields}


def assistant(*blocks: object) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def request(*messages: object, model: object = OPUS, **fields: object) -> JsonObject:
    """A request body; fields that are None are left out."""
    told = {key: value for key, value in fields.items() if value is not None}
    body = freeze({"model": model, "max_tokens": 100, "messages": list(messages), **told})
    assert isinstance(body, JsonObject)
    return body


def size(level: PromptLevel, block: JsonObject) -> int:
    content = block.get("text")
    return len(content) if isinstance(content, str) else 10


def by_bytes(level: PromptLevel, block: JsonObject) -> int:
    return len(write_json(block))


def rendered(
    body: JsonObject, choices: CacheChoices = DEFAULT_CACHE_CHOICES, after: RenderedPrompt | None = None
) -> RenderedPrompt:
    return render_prompt(body, size, choices=choices, after=after)


def parts(body: JsonObject, choices: CacheChoices = DEFAULT_CACHE_CHOICES) -> tuple[PromptPart, ...]:
    return rendered(body, choices).parts


def hashes(body: JsonObject, choices: CacheChoices = DEFAULT_CACHE_CHOICES) -> list[str]:
    return [part.digest for part in parts(body, choices)]


class CacheSetup:
    """Sends requests to one cache, a minute apart unless told otherwise."""

    def __init__(self, choices: CacheChoices = DEFAULT_CACHE_CHOICES) -> None:
        self.choices = choices
        self.cache = PromptCache(choices)
        self.now = START

    def start(self, body: JsonObject, scope: CacheScope = HERE, model: str | None = None) -> PromptBill:
        """The request starts and its answer does not begin."""
        named = model or str(body["model"])
        return self.cache.look_up(scope, CATALOG.find(named), parts(body, self.choices), self.now)

    def send(self, body: JsonObject, wait: timedelta = MINUTE, scope: CacheScope = HERE) -> PromptBill:
        """Wait, send, and let the answer begin at once."""
        self.now += wait
        bill = self.start(body, scope)
        self.cache.begin_response(bill, self.now)
        return bill


def counts(bill: PromptBill) -> tuple[int, int, int, int]:
    """Read, written for an hour, written for five minutes, fresh."""
    return (bill.read, bill.written_1h, bill.written_5m, bill.fresh)
