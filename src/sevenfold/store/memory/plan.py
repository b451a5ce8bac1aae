"""What a change of memories would record, given what is accepted now; or why it may not.

Also here: whether a person has been asked about a change before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sevenfold.core.errors import InputError, KeyRefused, MemoryConflict, SevenfoldError
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.memories import INDEX_FILE, Origin, read_memory
from sevenfold.store.files.folder import check_memory_key
from sevenfold.store.memory.changes import ANYTHING, Remove, TransactionKind, Write
from sevenfold.store.memory.files import MAX_MEMORY_FILE_BYTES
from sevenfold.store.memory.records import LoggedChange, LoggedTransaction, encode_text, hash_text
from sevenfold.store.memory.state import MemoryState


def check_changes(changes: Sequence[Write | Remove]) -> list[LoggedChange]:
    """The changes as they would be recorded, `before` being what the writer saw; `InputError` for others."""
    keys = [check_memory_key(change.key) for change in changes]
    twice = {key for key in keys if keys.count(key) > 1} if len(set(keys)) < len(keys) else set[str]()
    if twice:
        raise InputError(f"{', '.join(sorted(twice))}: changed twice in one transaction; make it one change")
    return [_checked(change) for change in changes]


def _checked(change: Write | Remove) -> LoggedChange:
    if isinstance(change, Remove):
        return LoggedChange(key=change.key, before=change.base, after=None)
    text = replace_lone_surrogates(change.text)
    size = len(encode_text(text))
    if size > MAX_MEMORY_FILE_BYTES:
        raise InputError(
            f"{change.key} would have {size:,} bytes; at most {MAX_MEMORY_FILE_BYTES:,} are kept; split it"
        )
    return LoggedChange(
        key=change.key, before=change.base, after=hash_text(text), text=text, origin=change.origin
    )


def plan_changes(
    state: MemoryState, changes: Sequence[LoggedChange], accepts: str = ""
) -> tuple[LoggedChange, ...]:
    """Those that change something, with what is really before them; `MemoryConflict` names all that clash.

    `accepts` is the edit that waits and is what these come from.
    """
    clashing = tuple(change.key for change in changes if _clashes(state, change, accepts))
    if clashing:
        edited = [key for key in clashing if key in state.held]
        waits = f" ({', '.join(edited)}: edited outside, and waiting for review)" if edited else ""
        raise MemoryConflict(
            f"{', '.join(clashing)}: not as the writer saw it{waits}; nothing was changed. Read it again, "
            "then make the change again",
            keys=clashing,
        )
    fresh = [change for change in changes if change.after is not None and not state.sha_of(change.key)]
    _refuse_duplicates(state, [change.key for change in fresh])
    return tuple(
        replace(item, before=state.sha_of(item.key), stamp=None)
        for item in changes
        if item.after != state.sha_of(item.key) or item.key in state.held or _gives_back(state, item)
    )


_NAMED_REASONS = 3
"""Of a hundred a person reads the first."""


@dataclass(frozen=True, slots=True)
class MergedProposals:
    """What several proposals change together."""

    changes: tuple[LoggedChange, ...] = ()
    accepted: tuple[str, ...] = ()
    clashing: Mapping[str, SevenfoldError] = field(default_factory=dict[str, SevenfoldError])
    why: str = ""


def merge_proposals(state: MemoryState, proposals: Sequence[LoggedTransaction]) -> MergedProposals:
    """Proposals as one change. One that clashes with what is there, or with one before it, is left out."""
    changes: list[LoggedChange] = []
    accepted: list[str] = []
    clashing: dict[str, SevenfoldError] = {}
    taken: dict[str, LoggedChange] = {}
    for one in proposals:
        if one.id not in state.waiting:
            raise InputError(f"{one.id} waits no longer; somebody else has seen to it")
        try:
            changed = plan_changes(state, one.changes, one.id)
            both = [item.key for item in one.changes if _is_other(taken.get(item.key.casefold()), item)]
            if both:
                names = ", ".join(both)
                raise MemoryConflict(f"{names}: accepted at once from another proposal", keys=tuple(both))
        except (MemoryConflict, KeyRefused) as error:
            clashing[one.id] = error
            continue
        accepted.append(one.id)
        changes += [item for item in changed if item.key.casefold() not in taken]
        taken |= {item.key.casefold(): item for item in one.changes}
    # The index first: it gets the lines of memories that change after it.
    changes.sort(key=lambda item: item.key != INDEX_FILE)
    reasons = [*dict.fromkeys(one.reason for one in proposals if one.id in accepted)]
    more = "; …" if len(reasons) > _NAMED_REASONS else ""
    why = f"accepted: {'; '.join(reasons[:_NAMED_REASONS])}{more}" if accepted else ""
    return MergedProposals(tuple(changes), tuple(accepted), clashing, why)


def _is_other(taken: LoggedChange | None, item: LoggedChange) -> bool:
    return taken is not None and (taken.key, taken.after) != (item.key, item.after)


def plan_review(
    state: MemoryState, answers: LoggedTransaction, merged: MergedProposals, vouched: Sequence[LoggedChange]
) -> list[LoggedTransaction]:
    """A person's answers as one transaction: `answers` says what they reject. None where nothing is done."""
    taken = {change.key for change in merged.changes}
    changes = (*merged.changes, *(change for change in vouched if change.key not in taken))
    ids = (*merged.accepted, *answers.rejects)
    if not ids and not changes:
        return []
    kind: TransactionKind = "accept" if merged.accepted else "trust" if vouched else "reject"
    of = "" if kind == "trust" else ids[0]
    settles = dict.fromkeys((*ids, *find_overtaken(state, merged.changes)))
    said = ["rejected"] * bool(answers.rejects) + ["vouched for"] * bool(vouched)
    why = answers.origin.why or "; ".join(filter(None, (merged.why, *said)))
    origin = replace(answers.origin, why=why)
    rest = tuple(id_ for id_ in settles if id_ != of)
    return [replace(answers, kind=kind, origin=origin, changes=changes, of=of, settles=rest)]


def find_overtaken(state: MemoryState, changes: Sequence[LoggedChange]) -> tuple[str, ...]:
    """Outside edits that these changes overtake."""
    return tuple(dict.fromkeys(state.held[item.key] for item in changes if item.key in state.held))


def _gives_back(state: MemoryState, change: LoggedChange) -> bool:
    """Whether the text is there already, and it is its origin or its date that is put back."""
    version = state.versions.get(change.key)
    if change.order is None or version is None:
        return False
    return (version.origin, version.order) != (change.origin, change.order)


def _clashes(state: MemoryState, change: LoggedChange, accepts: str) -> bool:
    now = state.sha_of(change.key)
    if change.before == ANYTHING:
        return change.after is None and now is None and change.key not in state.held
    if state.held.get(change.key, accepts) != accepts:
        return change.before != state.holding(change.key).sha256
    # Done already is done: whoever tries again after a failure in doubt may find their own work.
    return now not in (change.before, change.after)


def _refuse_duplicates(state: MemoryState, keys: Sequence[str]) -> None:
    if not keys:
        return
    known = {key.casefold(): key for key in (*state.versions, *state.placed, INDEX_FILE)}
    for key in keys:
        other = known.setdefault(key.casefold(), key)
        if other != key:
            raise KeyRefused(f"{key!r} differs from {other!r} in case alone; choose another name")


# A person who rejected a change, or has not answered yet, is not asked again in slightly different words.

ALREADY_ASKED = "a person was asked the same before, and did not want it or has not answered yet"


def was_asked(changes: Sequence[LoggedChange], earlier: Iterable[LoggedTransaction]) -> bool:
    """Whether each of these changes stood in something that waited."""
    asked = [change for entry in earlier for change in entry.changes]
    return bool(changes) and all(any(_is_same(change, other) for other in asked) for change in changes)


def _is_same(change: LoggedChange, asked: LoggedChange) -> bool:
    """Whether it says no more than what was asked, under whatever name; or removes the same text."""
    if change.text is None or asked.text is None:
        return (change.key, change.before, change.text) == (asked.key, asked.before, asked.text)
    if change.after == asked.after:
        return True
    from sevenfold.core.text.facts import are_facts_stated, split_facts

    new, old = (read_memory(one.key, replace_lone_surrogates(one.text or "")) for one in (change, asked))
    facts = split_facts(new.body)
    return (
        bool(facts)
        and are_facts_stated(facts, split_facts(old.body))
        and {*new.applies_to} <= {*old.applies_to}
    )


# In a directory that projects share, each text has the root of the project that it was learnt in.


def locate_changes(
    state: MemoryState, changes: Sequence[LoggedChange], origin: Origin, root: str
) -> tuple[LoggedChange, ...]:
    """Changes with the project that each text speaks of; as they are where projects share nothing."""
    return tuple(
        replace(change, origin=replace(change.origin or origin, root=root))
        if change.text is not None and is_learnt_in(root, state, [change.key], change.origin or origin)
        else change
        for change in changes
    )


def is_learnt_in(root: str, state: MemoryState, keys: Iterable[str], origin: Origin) -> bool:
    """Whether a writer at work in a project speaks of it, and nothing in the text is from another."""
    if not root or origin.who not in ("user", "agent", "fork"):
        return False
    return all(state.versions[key].origin.root == root for key in keys if key in state.versions)
