"""What is done to memories and what is told of it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NewType, TypeAlias, get_args

from sevenfold.core.memories import Memory
from sevenfold.core.provenance import Origin

TransactionId = NewType("TransactionId", str)
ReviewId: TypeAlias = TransactionId
"""What waits was recorded as a transaction too, and goes by its id."""

ANYTHING = "*"
"""As the base of a change: whatever is there."""

TransactionKind: TypeAlias = Literal[
    "adopt", "commit", "revert", "trust", "outside", "propose", "accept", "reject", "purge"
]
TRANSACTION_KINDS: tuple[TransactionKind, ...] = get_args(TransactionKind)
WAITING_KINDS: tuple[TransactionKind, ...] = ("outside", "propose")
"""Nothing that is shown changes by these until a person accepts."""


@dataclass(frozen=True, slots=True)
class Write:
    """Put this text there. With the text that is there already it is a guard: checked, and no change."""

    key: str
    text: str
    base: str | None
    """SHA-256 of what the writer saw; None: there must be nothing; `ANYTHING`."""
    origin: Origin | None = None
    """Of this text alone; None: the transaction's."""


@dataclass(frozen=True, slots=True)
class Remove:
    key: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """A memory as it was last accepted."""

    memory: Memory
    sha256: str
    modified: datetime
    origin: Origin
    transaction: TransactionId
    is_waiting: bool = False
    """Another text for it waits for a person."""

    @property
    def is_trusted(self) -> bool:
        return self.origin.is_trusted


@dataclass(frozen=True, slots=True)
class MemoryChange:
    key: str
    before: str | None
    """SHA-256 of the text; None: there was none."""
    after: str | None
    """None: it was removed."""
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Changes that happened together. Without an id nothing was recorded, for there was nothing to change."""

    id: TransactionId
    at: datetime
    kind: TransactionKind
    origin: Origin
    changes: tuple[MemoryChange, ...]
    of: str = ""
    """The transaction that it accepts, rejects or takes back."""


@dataclass(frozen=True, slots=True)
class ProposedChange:
    key: str
    text: str | None
    """None: it would be removed."""
    base: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReview:
    """Changes that a person has to look at."""

    id: ReviewId
    at: datetime
    origin: Origin
    reason: str
    changes: tuple[ProposedChange, ...]
    is_outside: bool = False
    """The files in the folder say so already; what is shown does not."""


@dataclass(frozen=True, slots=True)
class IndexText:
    """The index as a prompt gets it."""

    text: str
    cut_lines: int = 0
    warning: str = ""


@dataclass(frozen=True, slots=True)
class BlameLine:
    line: str
    transaction: TransactionId
    at: datetime
    origin: Origin


@dataclass(frozen=True, slots=True)
class PurgeReport:
    transactions: int
    versions: int
    keys: tuple[str, ...]
    """Memories that are gone, or back at an older text."""
    still_holding: tuple[str, ...] = ()
    """Memories of which a text that stays, now or in the history, repeats a sentence of what was erased."""
