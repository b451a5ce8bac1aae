"""What a person writes down by hand: checked, and made into a change."""

from __future__ import annotations

from collections.abc import Sequence

from sevenfold.core.conditions import ACKNOWLEDGE_GATE, parse_conditions
from sevenfold.core.errors import InputError
from sevenfold.core.memories import MEMORY_KINDS, MemoryKey, change_field, write_memory
from sevenfold.core.secrets.memory_secrets import refuse_secrets
from sevenfold.store.memory.changes import Write


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
    """A memory that is not there yet. Without a description, its first line has to do."""
    if kind not in MEMORY_KINDS:
        raise InputError(f"{kind!r} is no type of memory; expected one of {', '.join(MEMORY_KINDS)}")
    refused = parse_conditions(applies_to).refused
    if refused:
        raise InputError(f"{refused[0].text!r} is no condition: {refused[0].reason}")
    if not text.strip():
        raise InputError("there is nothing to remember; give a text")
    topic = name.removesuffix(".md")
    told = description or text.strip().splitlines()[0].lstrip("# ")
    written = write_memory(topic, told, kind, text, applies_to=applies_to)
    if is_gate:
        written = change_field(written, "gate", ACKNOWLEDGE_GATE)
    refuse_secrets(written)
    return Write(make_memory_key(name), written, None)
