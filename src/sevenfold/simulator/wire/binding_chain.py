"""What a thinking block is bound to: a chain of hashes over everything before it except thinking.

The chain overlooks what the API overlooks: cache markers, the order of tools, text written as a string or as
a block, white space around a text, the order of keys, and tools that are declared for later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sevenfold.core.cache.prompt_blocks import PromptBlock
from sevenfold.core.canonical import (
    EMPTY_DIGEST,
    Digest,
    block_bytes,
    canonical_bytes,
    chain_digest,
    strip_cache_control,
)
from sevenfold.core.json import Json, JsonObject
from sevenfold.simulator.wire.message_cache import MessageCache
from sevenfold.simulator.wire.request_blocks import as_word, is_thinking_block
from sevenfold.simulator.wire.signatures import (
    NO_PREDECESSOR,
    CompactionSeal,
    hash_signature,
    parse_compaction_seal,
)


@dataclass(frozen=True, slots=True)
class ChainState:
    """How far the chain has got."""

    frame: Digest
    """Of the system prompt and the tools: where the chain starts."""
    prefix: Digest
    predecessor: Digest = NO_PREDECESSOR
    last_role: str = ""


class BindingChain:
    """Follows one conversation block by block. Nothing is hashed before somebody asks: most requests hold no
    thinking, and get none back."""

    __slots__ = ("_body", "_deferred", "_end", "_knowledge", "_passed", "_pending")

    def __init__(self, body: JsonObject, knowledge: MessageCache) -> None:
        self._body, self._knowledge = body, knowledge
        self._passed: list[PromptBlock] = []
        self._deferred: Mapping[str, JsonObject] = {}
        self._end: ChainState | None = None
        self._pending: CompactionSeal | None = None

    def advance(self, *blocks: PromptBlock) -> None:
        """Go past some blocks."""
        self._passed.extend(blocks)

    @property
    def end(self) -> ChainState:
        """The chain over all blocks passed so far."""
        end = self._end or self._start()
        for block in self._passed:
            end = self._after(end, block)
        self._passed.clear()
        self._end = end
        return end

    def _start(self) -> ChainState:
        tools = _tools(self._body)
        self._deferred = {name: tool for name, tool in tools.items() if tool.get("defer_loading") is True}
        ready = {name: tool for name, tool in tools.items() if name not in self._deferred}
        frame = chain_digest(
            EMPTY_DIGEST, canonical_bytes({"system": _system(self._body.get("system")), "tools": ready})
        )
        return ChainState(frame, frame)

    def _after(self, end: ChainState, block: PromptBlock) -> ChainState:
        seal, self._pending = self._pending, None
        if seal is not None and block.role not in {seal.last_role, "system"}:
            end = replace(end, prefix=seal.prefix, last_role=seal.last_role)
        if is_thinking_block(block):
            seen = hash_signature(get_signature(block.wire))
            return ChainState(end.frame, end.prefix, seen, block.role)
        if block.kind == "compaction":
            return self._restarted(end, block)
        return ChainState(end.frame, self._linked(end.prefix, block), end.predecessor, block.role)

    def _linked(self, prefix: Digest, block: PromptBlock) -> Digest:
        # What a tool introduces stands elsewhere in the body, so its block alone does not tell.
        introduces = "tool" in block.wire
        known = None if introduces else self._knowledge.link(prefix, block)
        if known is not None:
            return known
        data = block_bytes(block.role, _normal(block.wire))
        after = chain_digest(prefix, data + self._introduced(block.wire))
        if not introduces:
            self._knowledge.add_link(prefix, block, after)
        return after

    def _restarted(self, end: ChainState, block: PromptBlock) -> ChainState:
        """Nothing before a summary counts, except that a signed one can vouch for the turns kept after it."""
        if block.wire.get("content") is None:
            return end
        seal = parse_compaction_seal(as_word(block.wire.get("signature")))
        self._pending = seal if seal is not None and seal.carries and seal.frame == end.frame else None
        return ChainState(end.frame, chain_digest(end.frame, block_bytes(block.role, _normal(block.wire))))

    def _introduced(self, wire: JsonObject) -> bytes:
        """The definition of a tool that was declared for later and is referred to here."""
        tool = wire.get("tool")
        name = tool.get("name") if isinstance(tool, JsonObject) else None
        late = self._deferred.get(name) if isinstance(name, str) else None
        return b"" if late is None else b"\n" + canonical_bytes(late)


def get_signature(wire: JsonObject) -> str:
    """What seals a thinking block: its signature, or the whole of a redacted one."""
    return as_word(wire.get("signature" if wire.get("type") == "thinking" else "data"))


def _system(system: Json) -> Json:
    if isinstance(system, str):
        return (system.strip(),) if system.strip() else ()
    blocks = system if isinstance(system, tuple) else ()
    return tuple(as_word(block.get("text")).strip() for block in blocks if isinstance(block, JsonObject))


def _tools(body: JsonObject) -> Mapping[str, JsonObject]:
    tools = body.get("tools")
    rows = [strip_cache_control(tool) for tool in tools] if isinstance(tools, tuple) else []
    return {as_word(row.get("name") or row.get("type")): row for row in rows if isinstance(row, JsonObject)}


def _normal(block: JsonObject) -> JsonObject:
    plain: dict[str, Json] = {key: value for key, value in block.items() if value is not None}
    text = plain.get("text")
    if isinstance(text, str):
        plain["text"] = text.strip()
    content = plain.get("content")
    if plain.get("type") == "tool_result" and isinstance(content, str):
        content = (JsonObject({"type": "text", "text": content}),)
    if isinstance(content, tuple):
        plain["content"] = tuple(_normal(item) if isinstance(item, JsonObject) else item for item in content)
    return JsonObject(plain)
