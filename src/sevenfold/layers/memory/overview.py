"""A memory with what is known of it besides its text: how often it was used, whether it is a rule, and what
it says that could not be confirmed. Also what waits for a person, with its diff."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sevenfold.core.memories import INDEX_FILE, MEMORY_USE_KINDS, NO_USES, MemoryUses
from sevenfold.store.memory.changes import PendingReview, StoredMemory
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import BrokenMark, MarkStore, UseStore

if TYPE_CHECKING:
    from sevenfold.layers.memory.rule_reader import ParsedRule


@dataclass(frozen=True, slots=True)
class MemoryOverview:
    """A memory, and what is known of it beside its text."""

    stored: StoredMemory
    uses: MemoryUses
    broken: tuple[str, ...]

    @property
    def rule(self) -> ParsedRule:
        # Not for memories without conditions: a list of those reads no rules.
        from sevenfold.layers.memory.rule_policy import RuleSettings
        from sevenfold.layers.memory.rule_reader import parse_memory_rule

        return parse_memory_rule(self.stored, RuleSettings())

    @property
    def heeded(self) -> int:
        """How often a rule was acknowledged, or the call given up. A call that came back changed says
        nothing: it may have been changed for any reason."""
        return self.uses.count("acknowledged") + self.uses.count("given up")

    def describe(self, now: datetime) -> dict[str, object]:
        stored, memory, origin = self.stored, self.stored.memory, self.stored.origin
        return {
            "key": memory.key,
            "name": memory.name,
            "type": memory.kind,
            "description": memory.description,
            "applies_to": list(memory.applies_to),
            "rule": self._describe_rule(),
            "modified": stored.modified.isoformat(),
            "sha256": stored.sha256,
            "change": stored.transaction,
            "who": origin.who,
            "author": origin.author,
            "why": origin.why,
            "said_by": origin.said_by,
            "session": origin.session,
            "messages": list(origin.messages),
            "taint": sorted(origin.taint),
            "evidence": list(origin.evidence),
            "trusted": stored.is_trusted,
            "waiting": stored.is_waiting,
            "uses": {kind: self.uses.count(kind) for kind in MEMORY_USE_KINDS},
            "last_used": self.uses.last.isoformat() if self.uses.last else None,
            "warmth": round(self.uses.warmth_at(now), 3),
            "broken": list(self.broken),
        }

    def _describe_rule(self) -> dict[str, object] | None:
        rule = self.rule.rule if self.stored.memory.applies_to else None
        if rule is None:
            return None
        return {
            "conditions": [str(one) for one in rule.conditions],
            "gate": rule.is_gate,
            "fires": self.stored.is_trusted,
            "heeded": self.heeded,
        }

    @property
    def state(self) -> str:
        """What a person should know before relying on it; empty where there is nothing."""
        if not self.stored.is_trusted:
            return "not trusted"
        if self.broken:
            return "not confirmed"
        return "change waits" if self.stored.is_waiting else ""


def read_memory_overviews(
    stored: Iterable[StoredMemory], uses: UseStore, marks: MarkStore
) -> list[MemoryOverview]:
    """These memories, each with what is known of it. Blocks on the disk."""
    used, marked = uses.read(), marks.read()
    return [MemoryOverview(one, used.get(one.memory.key, NO_USES), _broken(one, marked)) for one in stored]


def _broken(stored: StoredMemory, marks: Mapping[str, BrokenMark]) -> tuple[str, ...]:
    mark = marks.get(stored.memory.key)
    return mark.broken if mark and mark.sha256 == stored.sha256 else ()


def diff_proposal(memory: MemoryDir, key: str, text: str | None) -> str:
    """What would change, against what is shown now."""
    from difflib import unified_diff

    stored = memory.find(key)
    shown = memory.index_text().text if key == INDEX_FILE else stored.memory.text if stored else ""
    before = shown.splitlines()
    after = (text or "").splitlines()
    return "\n".join(
        unified_diff(before, after, key, key if text is not None else "removed", lineterm="", n=2)
    )


def describe_review(memory: MemoryDir, waiting: PendingReview) -> dict[str, object]:
    """What waits for a person, as JSON, with a diff of each memory."""
    origin = waiting.origin
    return {
        "id": waiting.id,
        "at": waiting.at.isoformat(),
        "who": origin.who,
        "reason": waiting.reason or origin.why,
        "taint": sorted(origin.taint),
        "session": origin.session,
        "outside": waiting.is_outside,
        "changes": [
            {"key": one.key, "text": one.text, "diff": diff_proposal(memory, one.key, one.text)}
            for one in waiting.changes
        ],
    }
