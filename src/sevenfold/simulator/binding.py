"""What a thinking block is bound to (API.md §1.10): a chain of hashes over everything before it but thinking.

The chain overlooks what the API overlooks: cache markers, the order of tools, text written as a string or as
a block, white space around a text, the order of keys, and tools that are declared for later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sevenfold.core.canonical import START, Digest, block_bytes, canonical, chain, unmarked
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.prompt_blocks import Placed
from sevenfold.simulator.seals import NO_PREDECESSOR, CompactionSeal, read_compaction_seal, signature_digest
from sevenfold.simulator.view import is_thinking, word


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """How far the chain has got."""

    frame: Digest
    """Of the system prompt and the tools: where the chain starts."""
    prefix: Digest
    predecessor: Digest = NO_PREDECESSOR
    last_role: str = ""


class Binding:
    """Follows one conversation block by block."""

    __slots__ = ("_deferred", "_pending", "end")

    def __init__(self, body: JsonObject) -> None:
        tools = _tools(body)
        self._deferred = {name: tool for name, tool in tools.items() if tool.get("defer_loading") is True}
        ready = {name: tool for name, tool in tools.items() if name not in self._deferred}
        frame = chain(START, canonical({"system": _system(body.get("system")), "tools": ready}))
        self.end = ChainEnd(frame, frame)
        self._pending: CompactionSeal | None = None

    def advance(self, block: Placed) -> None:
        """Go past a block."""
        if self._pending is not None:
            self._adopt(self._pending, block)
        if is_thinking(block):
            seen = signature_digest(signature_of(block.wire))
            self.end = replace(self.end, predecessor=seen, last_role=block.role)
            return
        if block.kind == "compaction":
            self._restart(block)
            return
        data = block_bytes(block.role, _normal(block.wire))
        prefix = chain(self.end.prefix, data + self._introduced(block.wire))
        self.end = replace(self.end, prefix=prefix, last_role=block.role)

    def _restart(self, block: Placed) -> None:
        """Nothing before a summary counts, except that a signed one can vouch for the turns kept after it."""
        if block.wire.get("content") is None:
            return
        frame = self.end.frame
        self.end = ChainEnd(frame, chain(frame, block_bytes(block.role, _normal(block.wire))), last_role="")
        seal = read_compaction_seal(word(block.wire.get("signature")))
        self._pending = seal if seal is not None and seal.carries and seal.frame == frame else None

    def _adopt(self, seal: CompactionSeal, following: Placed) -> None:
        self._pending = None
        if following.role not in {seal.last_role, "system"}:
            self.end = replace(self.end, prefix=seal.prefix, last_role=seal.last_role)

    def _introduced(self, wire: JsonObject) -> bytes:
        """The definition of a tool that was declared for later and is referred to here."""
        tool = wire.get("tool")
        name = tool.get("name") if isinstance(tool, JsonObject) else None
        late = self._deferred.get(name) if isinstance(name, str) else None
        return b"" if late is None else b"\n" + canonical(late)


def signature_of(wire: JsonObject) -> str:
    """What seals a thinking block: its signature, or the whole of a redacted one."""
    return word(wire.get("signature" if wire.get("type") == "thinking" else "data"))


def _system(system: Json) -> Json:
    if isinstance(system, str):
        return (system.strip(),) if system.strip() else ()
    blocks = system if isinstance(system, tuple) else ()
    return tuple(word(block.get("text")).strip() for block in blocks if isinstance(block, JsonObject))


def _tools(body: JsonObject) -> Mapping[str, JsonObject]:
    tools = body.get("tools")
    rows = [unmarked(tool) for tool in tools] if isinstance(tools, tuple) else []
    return {word(row.get("name") or row.get("type")): row for row in rows if isinstance(row, JsonObject)}


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
