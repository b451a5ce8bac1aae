"""Signatures: what the simulator writes into a thinking or compaction block and checks when it comes back.

A thinking signature is base64 of a header as long as the real one's and of the thinking itself, so that
counting tokens by the signature's length, as is done where the text is withheld, comes out right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache

from sevenfold.core.canonical import Digest, canonical_bytes, digest
from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, read_json
from sevenfold.core.models import Model
from sevenfold.core.tokens.estimators import SIGNATURE_BYTES

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
    """Of everything before it, thinking apart (see `binding`)."""
    predecessor: Digest
    """Of the signature before it, or `NO_PREDECESSOR`."""
    thinking: str

    def write(self) -> str:
        head = _MAGIC + b"".join(map(bytes.fromhex, (self.model, self.prefix, self.predecessor)))
        padding = bytes(SIGNATURE_BYTES - len(head) - _HASH_BYTES)
        told = head + padding + self.thinking.encode("utf-8", "surrogatepass")
        return base64.b64encode(_mac(told) + told).decode()


@lru_cache(maxsize=MAX_KEPT_SEALS)
def parse_thinking_seal(signature: str) -> ThinkingSeal | None:
    """What a signature says; None when it was not made here, or was changed since."""
    try:
        data = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, told = data[:_HASH_BYTES], data[_HASH_BYTES:]
    if not hmac.compare_digest(mac, _mac(told)) or not told.startswith(_MAGIC):
        return None
    fields = [told[start : start + _HASH_BYTES].hex() for start in range(len(_MAGIC), 100, _HASH_BYTES)]
    thinking = told[SIGNATURE_BYTES - _HASH_BYTES :].decode("utf-8", "surrogatepass")
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
        told = canonical_bytes(
            {
                "content": self.content,
                "tool_changes": self.tool_changes,
                "frame": self.frame,
                "prefix": self.prefix,
                "last_role": self.last_role,
                "carries": self.carries,
            }
        )
        return base64.b64encode(_mac(told) + told).decode()


def parse_compaction_seal(signature: str) -> CompactionSeal | None:
    """What the signature of a compaction block says; None when it does not verify."""
    try:
        data = base64.b64decode(signature, validate=True)
        mac, told = data[:_HASH_BYTES], data[_HASH_BYTES:]
        if not hmac.compare_digest(mac, _mac(told)):
            return None
        fields = read_json(told)
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


def _mac(told: bytes) -> bytes:
    return hmac.new(_KEY, told, hashlib.sha256).digest()


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""
