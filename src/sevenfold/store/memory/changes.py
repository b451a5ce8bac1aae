"""Changes to memories and what is reported about them, as values; changes that a person writes by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NewType, TypeAlias, get_args

from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.memories import (
    ACKNOWLEDGE_GATE,
    MEMORY_KINDS,
    Memory,
    MemoryKey,
    Origin,
    change_field,
    parse_conditions,
    write_memory,
)

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

UndoStep: TypeAlias = Literal["", "undo", "redo"]
UNDO_STEPS: tuple[UndoStep, ...] = get_args(UndoStep)
"""What a `revert` is a step of; empty: of nothing, it is a change like any other."""


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
    step: UndoStep = ""
    reopens: tuple[str, ...] = ()
    """What had been accepted, rejected or overtaken, and waits again by it."""


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
class SettledReview:
    """What became of a person's answers."""

    transaction: Transaction
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]
    clashing: Mapping[str, SevenfoldError]
    """What was agreed to and waits on, and why it cannot be accepted as it is."""


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


MAX_TYPED_DESCRIPTION = 500
"""Three times what the index shows of it."""


def make_memory_key(name: str) -> MemoryKey:
    """Of a memory by its topic, or by its file."""
    return MemoryKey(f"{name.removesuffix('.md')}.md")


def plan_new_memory(
    name: str,
    text: str,
    *,
    description: str = "",
    kind: str = "project",
    applies_to: Sequence[str] = (),
    is_gate: bool = False,
) -> Write:
    """A memory that is not there yet. Without a description, the first line of its text serves as one; it is
    not written down twice."""
    if kind not in MEMORY_KINDS:
        raise InputError(f"{kind!r} is no type of memory; expected one of {', '.join(MEMORY_KINDS)}")
    refused = parse_conditions(applies_to).refused
    if refused:
        raise InputError(f"{refused[0].text!r} is no condition: {refused[0].reason}")
    if not text.strip():
        raise InputError("there is nothing to remember; give a text")
    if len(description) > MAX_TYPED_DESCRIPTION:
        raise InputError(
            f"a description of {len(description):,} characters is too long: it is one line of at most "
            f"{MAX_TYPED_DESCRIPTION:,}; give the text itself as the memory"
        )
    for part in (text, description):  # before they are put together: a finding names a line as it was typed
        check_written(part)
    written = write_memory(name.removesuffix(".md"), description, kind, text, applies_to=applies_to)
    if is_gate:
        written = change_field(written, "gate", ACKNOWLEDGE_GATE)
    check_written(written)
    return Write(make_memory_key(name), written, None)


def check_written(text: str) -> None:
    """Refuse what a person wrote with a secret in it."""
    # Not at the top: who only reads memories needs none of the rules for secrets.
    from sevenfold.core.secrets import refuse_secrets

    refuse_secrets(text)


def describe_transaction(change: Transaction) -> dict[str, object]:
    """A change of the history as JSON."""
    return {
        "id": change.id,
        "at": change.at.isoformat(),
        "kind": change.kind,
        "of": change.of,
        "step": change.step,
        **describe_origin(change.origin),
        "changes": [
            {"key": one.key, "before": one.before, "after": one.after, **describe_origin(one.origin)}
            for one in change.changes
        ],
    }


def describe_origin(origin: Origin) -> dict[str, object]:
    """Whose words a text is, as JSON."""
    return {
        "who": origin.who,
        "why": origin.why,
        "session": origin.session,
        "messages": list(origin.messages),
        "said_by": origin.said_by,
        "taint": sorted(origin.taint),
        "evidence": list(origin.evidence),
    }
