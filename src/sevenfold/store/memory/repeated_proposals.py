"""Whether a person has been asked about a change before: who said no, or has not answered yet, is not asked
again in a few other words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sevenfold.core.memories import read_memory
from sevenfold.core.surrogates import replace_lone_surrogates
from sevenfold.core.text.facts import are_facts_stated, split_facts
from sevenfold.store.memory.records import LoggedChange, LoggedTransaction

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
    new, old = (read_memory(one.key, replace_lone_surrogates(one.text or "")) for one in (change, asked))
    facts = split_facts(new.body)
    return (
        bool(facts)
        and are_facts_stated(facts, split_facts(old.body))
        and {*new.applies_to} <= {*old.applies_to}
    )
