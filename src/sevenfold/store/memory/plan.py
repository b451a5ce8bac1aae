"""What a change of memories would record, given what is accepted now; or why it may not.

Also here: whether a person has been asked about a change before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sevenfold.core.errors import InputError, KeyRefused, MemoryConflict
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.memories import INDEX_FILE, Origin, read_memory
from sevenfold.store.files.folder import check_memory_key
from sevenfold.store.memory.changes import ANYTHING, Remove, Write
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
