"""Signatures of thinking and compaction blocks, which the simulator writes and checks when a block comes
back.

A thinking signature is base64 of a header as long as the real one's and of the thinking itself, so that
counting tokens by the length of the signature, as clients do where the text is withheld, gives the right
number.

`BindingChain` is what a thinking block is bound to: a chain of hashes over everything before it except
thinking.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sevenfold.core.cache.prompt_blocks import PromptBlock
from sevenfold.core.canonical import (
    EMPTY_DIGEST,
    Digest,
    block_bytes,
    canonical_bytes,
    chain_digest,
    digest,
    strip_cache_control,
)
from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, read_json
from sevenfold.core.models import Model
from sevenfold.core.tokens.estimation import SIGNATURE_BYTES
from sevenfold.simulator.wire.message_cache import MessageCache
from sevenfold.simulator.wire.messages_request import as_word, is_thinking_block

_KEY = b"sevenfold simulator"
"""No secret: it keeps apart what was made here from what was made up or edited, nothing more."""
_MAGIC = b"7th1"
_HASH_BYTES = 32
NO_PREDECESSOR = Digest("0" * 64)
MAX_KEPT_SEALS = 4_096
"""Signatures that need not be looked into again: a long conversation sends all of its own every time."""


@dataclass(frozen=True, slots=True)
class ThinkingSeal:
    """What a thinking block is bound to."""

    model: Digest
    """Of its name."""
    prefix: Digest
    """Of everything before it, thinking apart (see `BindingChain`)."""
    predecessor: Digest
    """Of the signature before it, or `NO_PREDECESSOR`."""
    thinking: str

    def write(self) -> str:
        head = _MAGIC + b"".join(map(bytes.fromhex, (self.model, self.prefix, self.predecessor)))
        padding = bytes(SIGNATURE_BYTES - len(head) - _HASH_BYTES)
        payload = head + padding + self.thinking.encode("utf-8", "surrogatepass")
        return base64.b64encode(_mac(payload) + payload).decode()


@lru_cache(maxsize=MAX_KEPT_SEALS)
def parse_thinking_seal(signature: str) -> ThinkingSeal | None:
    """What a signature says; None when it was not made here, or was changed since."""
    try:
        data = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, payload = data[:_HASH_BYTES], data[_HASH_BYTES:]
    if not hmac.compare_digest(mac, _mac(payload)) or not payload.startswith(_MAGIC):
        return None
    fields = [payload[start : start + _HASH_BYTES].hex() for start in range(len(_MAGIC), 100, _HASH_BYTES)]
    thinking = payload[SIGNATURE_BYTES - _HASH_BYTES :].decode("utf-8", "surrogatepass")
    return ThinkingSeal(Digest(fields[0]), Digest(fields[1]), Digest(fields[2]), thinking)


def make_model_key(model: Model) -> Digest:
    """How a seal knows the model that made it."""
    return digest(model.name.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSeal:
    """What an on-demand compaction block is bound to, and what kept turns need to stay valid after it."""

    content: Digest
    tool_changes: Digest
    frame: Digest
    """Of the system prompt and the tools it was made under."""
    prefix: Digest
    """Of everything it stands for: where the chain of kept turns goes on."""
    last_role: str
    """Of the last message it stands for: a kept message of the same role would have been merged with it."""
    carries: bool
    """Whether the model signs its thinking over the prefix, so that kept thinking can be vouched for."""

    def write(self) -> str:
        payload = canonical_bytes(
            {
                "content": self.content,
                "tool_changes": self.tool_changes,
                "frame": self.frame,
                "prefix": self.prefix,
                "last_role": self.last_role,
                "carries": self.carries,
            }
        )
        return base64.b64encode(_mac(payload) + payload).decode()


def parse_compaction_seal(signature: str) -> CompactionSeal | None:
    """What the signature of a compaction block says; None when it does not verify."""
    try:
        data = base64.b64decode(signature, validate=True)
        mac, payload = data[:_HASH_BYTES], data[_HASH_BYTES:]
        if not hmac.compare_digest(mac, _mac(payload)):
            return None
        fields = read_json(payload)
    except (binascii.Error, ValueError, WireError):
        return None
    if not isinstance(fields, JsonObject):
        return None
    return CompactionSeal(
        content=Digest(_word(fields.get("content"))),
        tool_changes=Digest(_word(fields.get("tool_changes"))),
        frame=Digest(_word(fields.get("frame"))),
        prefix=Digest(_word(fields.get("prefix"))),
        last_role=_word(fields.get("last_role")),
        carries=fields.get("carries") is True,
    )


def hash_json(value: Json) -> Digest:
    """The hash of a JSON value, by content."""
    return digest(canonical_bytes(value))


@lru_cache(maxsize=MAX_KEPT_SEALS)
def hash_signature(signature: str) -> Digest:
    return digest(signature.encode())


def _mac(payload: bytes) -> bytes:
    return hmac.new(_KEY, payload, hashlib.sha256).digest()


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""


# The chain ignores what the API ignores: cache markers, the order of tools, text as a string or as a block,
# white space around text, the order of keys, and tools that are declared for later.


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
