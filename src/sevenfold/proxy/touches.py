"""What the layers did to one request, for the ledger, the headers of the response and the receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sevenfold.core.json import Json, JsonObject, freeze_object

HEADER_PREFIX = "x-sevenfold-"
"""Of every header that the proxy adds to a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTouch:
    conversation: str = ""
    """As its state is filed."""
    is_changed: bool = False
    """Whether other bytes were sent than came."""
    acted: tuple[str, ...] = ()
    """Layers that decided something new."""
    saved: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens that were left out, by layer."""
    newly_saved: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of those, what would have been sent for the first time."""
    added: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens that were added, by layer; in the first request that has them."""
    cuts: tuple[str, ...] = ()
    """Changes of what was sent before that are meant."""
    failures: tuple[str, ...] = ()
    """Layers that failed, and why; what they would have done was left undone."""
    notes: tuple[str, ...] = ()
    """What else a person may want to know."""

    def to_json(self) -> JsonObject:
        fields: dict[str, object] = {
            "state": self.conversation,
            "changed": self.is_changed,
            "acted": self.acted,
            "saved": dict(self.saved),
            "added": dict(self.added),
            "cuts": self.cuts,
            "failures": self.failures,
            "notes": self.notes,
        }
        return freeze_object({key: value for key, value in fields.items() if value})

    def make_headers(self) -> list[tuple[bytes, bytes]]:
        """For the response: clients pass them on to whoever looks."""
        named: dict[str, Json] = {
            "conversation": self.conversation,
            "changed": "yes" if self.is_changed else "no",
            "layers": ", ".join(self.acted),
            "saved-tokens": str(sum(self.saved.values()) or ""),
            "cut": "; ".join(self.cuts),
            "failed": "; ".join(self.failures),
        }
        return [
            (f"{HEADER_PREFIX}{name}".encode(), _plain(str(value))) for name, value in named.items() if value
        ]


NO_TOUCH = RequestTouch()


def _plain(text: str) -> bytes:
    """As a header may hold it."""
    return " ".join(text.split()).encode("ascii", "replace")[:500]
