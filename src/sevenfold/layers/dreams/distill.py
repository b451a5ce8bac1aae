"""Daily logs distilled without a model: what a person stated in so many words becomes a memory.

It understands no more than extraction without a model does, and leaves the rest of a log for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date

from sevenfold.core.errors import InputError
from sevenfold.core.memories import read_memory, write_memory
from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.core.text.facts import FactIndex, split_facts
from sevenfold.layers.dreams.check import list_memory_facts
from sevenfold.layers.memory.extraction.statements import Statement, find_statements

_LINE = re.compile(r"- (?:\d\d:\d\d )?(?P<said>.+)")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.md$")
_KINDS = {"about you": "user", "pointer": "reference", "rule": "feedback", "correction": "feedback"}
NAME_WORDS = 5


def distil_logs(logs: Mapping[str, str], texts: Mapping[str, str], today: date) -> dict[str, str]:
    """New memories by key, for what the logs state and no memory says."""
    shelf = FactIndex()
    for key, text in texts.items():
        shelf.add(key, list_memory_facts(read_memory(key, text), today))
    made: dict[str, str] = {}
    for log, text in logs.items():
        day = _day_of(log, today)
        for statement in _statements(text.splitlines()):
            said = resolve_relative_dates(statement.text, day)
            facts = split_facts(said)
            if not facts or all(shelf.find(fact, is_strict=True) for fact in facts):
                continue
            key = _free_key(said, {*texts, *made})
            made[key] = _written(key, said, _KINDS.get(statement.kind, "project"))
            shelf.add(key, facts)
    return made


def _statements(lines: Iterable[str]) -> Iterable[Statement]:
    for line in lines:
        match = _LINE.fullmatch(line)
        yield from find_statements(match["said"]) if match else ()


def _day_of(log: str, today: date) -> date:
    match = _DAY.search(log)
    try:
        return date.fromisoformat(match[1]) if match else today
    except ValueError:
        return today


def _free_key(said: str, taken: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", said.lower())
    name = "-".join([word for word in words if len(word) > 2][:NAME_WORDS]) or "said"
    key, number = f"{name[:60]}.md", 1
    while key in taken:
        number += 1
        key = f"{name[:60]}-{number}.md"
    return key


def _written(key: str, said: str, kind: str) -> str:
    name = key.removesuffix(".md")
    try:
        return write_memory(name, said[:150], kind, said)
    except InputError:
        return write_memory(name, name, kind, said)
