"""A request of either OpenAI endpoint as the cache sees it, and its place in the ledger.

`list_parts` splits a request into the parts that are cached. `make_record` remembers it, so that the next
request of its conversation can be compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sevenfold.core.cache.prompt_cache import (
    PartCounter,
    PromptDifference,
    PromptPart,
    RenderedPrompt,
    find_first_difference,
)
from sevenfold.core.canonical import EMPTY_DIGEST
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.simulator.checks.blocks import render_block_wire
from sevenfold.simulator.ledger import RequestRecord, RequestTrace
from sevenfold.simulator.openai.chat import OpenAIRequest
from sevenfold.simulator.simulator_state import CachePart, PrefixHit

NAMESPACE_SEPARATOR = "."
"""Between a namespace and a tool in it. No name of a function has a dot."""


def list_parts(talk: OpenAIRequest, count: PartCounter) -> tuple[CachePart, ...]:
    """Tools, the system prompt, and the blocks of messages as the brain gets them."""
    return tuple(_parts(talk, count))


def _parts(talk: OpenAIRequest, count: PartCounter) -> Iterator[CachePart]:
    for at, tool in enumerate(talk.tools):
        yield CachePart(
            wire=tool, tokens=count("tools", tool), path=f"tools.{at}", level="tools", kind="tool"
        )
    if talk.system:
        wire = JsonObject({"type": "text", "text": talk.system})
        yield CachePart(wire=wire, tokens=count("system", wire), path="system.0", level="system", kind="text")
    for turn, message in enumerate(talk.messages):
        for at, block in enumerate(message.blocks):
            wire = render_block_wire(block)
            yield CachePart(
                wire=JsonObject({"role": message.role, "block": wire}),
                tokens=count("messages", wire),
                path=f"messages.{turn}.content.{at}",
                level="messages",
                kind=str(wire.get("type")),
            )


def trace_request(
    talk: OpenAIRequest, parts: tuple[CachePart, ...], owner: str, conversation: str
) -> RequestTrace:
    """`owner` is who shares a cache, `conversation` what the headers name."""
    # Python's own hash: it never leaves the process.
    blocks = tuple(hash(part.wire) for part in parts if part.level == "messages")
    return RequestTrace.name(owner, blocks, conversation, has_tools=bool(talk.tools))


def make_record(
    number: int, trace: RequestTrace, model: str, parts: tuple[CachePart, ...], hit: PrefixHit
) -> RequestRecord:
    rendered = tuple(
        PromptPart(
            path=part.path, level=part.level, kind=part.kind, digest=digest, tokens=part.tokens, ttl=None
        )
        for part, digest in zip(parts, hit.digests, strict=True)
    )
    prompt = RenderedPrompt(model=model, params=(), parts=rendered, blocks=())
    return RequestRecord(number=number, trace=trace, sent=prompt, seen=prompt, params=EMPTY_DIGEST)


def find_difference(previous: RequestRecord, record: RequestRecord, unread: int) -> PromptDifference | None:
    """Where a request leaves the one before it. Missed is never more than it then had to pay for."""
    found = find_first_difference(previous.seen, record.seen)
    return None if found is None else replace(found, missed_tokens=min(found.missed_tokens, unread))


def list_tool_schemas(tools: tuple[JsonObject, ...], space: str = "") -> Iterator[tuple[str, JsonObject]]:
    """What a model may call, with the schema of its arguments. A tool in a namespace, as Codex declares MCP
    servers, is `space.tool`; one that takes plain text has no schema."""
    for tool in tools:
        name, inner, schema = tool.get("name"), tool.get("tools"), tool.get("parameters")
        if not isinstance(name, str):
            continue
        if tool.get("type") == "namespace" and isinstance(inner, tuple):
            below = tuple(item for item in inner if isinstance(item, JsonObject))
            yield from list_tool_schemas(below, f"{space}{name}{NAMESPACE_SEPARATOR}")
        else:
            yield f"{space}{name}", schema if isinstance(schema, JsonObject) else EMPTY_OBJECT
