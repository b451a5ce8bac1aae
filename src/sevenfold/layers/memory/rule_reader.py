"""The rules among a project's memories, read again when a memory has changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from sevenfold.core import events
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.memories import (
    ACKNOWLEDGE_GATE,
    GATE_KEY,
    RefusedCondition,
    SaidBy,
    parse_conditions,
)
from sevenfold.layers.memory.rule_policy import MemoryRule, RuleSettings, fit_rule_text
from sevenfold.store.memory.changes import StoredMemory
from sevenfold.store.memory.directory import MemoryDir

_WORDS: dict[SaidBy, str] = {
    "user": "the user's words",
    "model": "a model's words",
    "tool output": "from a tool's output",
    "unknown": "whose words is not known",
}


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A memory that says when it applies, and what of that could not be read."""

    rule: MemoryRule | None
    """None: nothing of it could be read."""
    refused: tuple[RefusedCondition, ...]


def parse_memory_rule(stored: StoredMemory, settings: RuleSettings) -> ParsedRule:
    memory = stored.memory
    conditions = parse_conditions(memory.applies_to)
    gate = memory.field(GATE_KEY)
    refused = conditions.refused
    if gate not in ("", ACKNOWLEDGE_GATE):
        refused = (
            *refused,
            RefusedCondition(f"gate: {gate:.80}", f"expected {ACKNOWLEDGE_GATE}, or no gate"),
        )
    if not conditions.found:
        return ParsedRule(None, refused)
    source = f"saved {stored.modified:%Y-%m-%d}, {_WORDS[stored.origin.said_by]}"
    text = fit_rule_text(memory.key, memory.body, settings.limit_bytes)
    # An unreadable gate still counts as a gate: its author wanted the rule enforced.
    rule = MemoryRule(
        memory=memory.key,
        name=memory.name,
        text=text,
        conditions=conditions.found,
        is_gate=bool(gate),
        source=source,
    )
    return ParsedRule(rule, refused)


@dataclass(slots=True, kw_only=True)
class MemoryRuleReader:
    """Every method blocks on the disk."""

    memories: MemoryDir
    settings: RuleSettings
    emit: Emit = ignore_event
    _generation: tuple[int, int] | None = None
    _rules: tuple[MemoryRule, ...] = ()
    _told: set[str] = field(default_factory=set[str])
    """Versions whose faults were reported."""

    def read(self) -> tuple[MemoryRule, ...]:
        """The current rules, the newest first. A memory that no person has accepted is not a rule."""
        if not self.settings.enabled:
            return ()
        user_wide = self.memories.user_wide
        generation = (self.memories.generation(), user_wide.generation() if user_wide else 0)
        if generation != self._generation:
            known = (*self.memories.scan(None), *self.memories.scan_user_wide())
            trusted = (stored for stored in known if stored.is_trusted)
            found = [self._read(stored) for stored in trusted if stored.memory.applies_to]
            self._rules = tuple(rule for rule in found if rule is not None)
            self._generation = generation
        return self._rules

    def _read(self, stored: StoredMemory) -> MemoryRule | None:
        read = parse_memory_rule(stored, self.settings)
        if stored.sha256 not in self._told:
            self._told.add(stored.sha256)
            for refused in read.refused:
                self.emit(events.ConditionRefused(stored.memory.key, refused.text, refused.reason))
        return read.rule
