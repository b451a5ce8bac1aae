"""Settings that are permission rules: every source adds its own, and none can take another's away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from sevenfold.core.settings.kinds import SettingValue
from sevenfold.core.settings.texts import MAX_SETTING_LINES, is_single_line

RULE_PATTERN = re.compile(r"([A-Za-z0-9_*-]{1,200})(?:\((.{1,4000})\))?")
"""A tool's name, or a pattern of names, and what of its calls is meant."""


@dataclass(frozen=True, slots=True)
class RulesKind:
    """A list of rules; the environment has one on each line."""

    is_strict: bool
    """They forbid or ask, so that a committed file may add some."""
    name: str = "rules"

    @property
    def allowed(self) -> str:
        return "a list of rules, each a tool's name or tool(pattern)"

    def read(self, raw: object) -> SettingValue | None:
        if not isinstance(raw, (list, tuple)):
            return None
        items = cast("list[object] | tuple[object, ...]", raw)
        rules = tuple(item for item in items if is_single_line(item) and RULE_PATTERN.fullmatch(item.strip()))
        return rules if len(rules) == len(items) <= MAX_SETTING_LINES else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read([line for line in text.splitlines() if line.strip()])

    def objection(self, _value: SettingValue, _default: SettingValue | None, /) -> str | None:
        return (
            None if self.is_strict else "a committed file may forbid things and ask for them, not allow them"
        )
