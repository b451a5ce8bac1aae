"""Kinds of settings that hold text: a line, several lines, a line for each name, and permission rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard, cast

from sevenfold.core.json import JsonObject
from sevenfold.core.settings.kinds import MAX_SETTING_CHARS, SettingValue, is_name

MAX_SETTING_LINES = 1_000
"""More rules, arguments or variables than anybody keeps by hand."""

_NEVER = "a committed file may switch things off and lower limits only"


@dataclass(frozen=True, slots=True)
class LineKind:
    """One line of text."""

    name: str = "line"

    @property
    def allowed(self) -> str:
        return "a line of text"

    def read(self, raw: object) -> SettingValue | None:
        return raw if is_single_line(raw) else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read(text)

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return None if value == default else _NEVER


@dataclass(frozen=True, slots=True)
class LinesKind:
    """A list of lines; the environment has one on each line."""

    name: str = "lines"

    @property
    def allowed(self) -> str:
        return "a list of texts, each one line"

    def read(self, raw: object) -> SettingValue | None:
        if not isinstance(raw, (list, tuple)):
            return None
        items = cast("list[object] | tuple[object, ...]", raw)
        lines = tuple(item for item in items if is_single_line(item))
        return lines if len(lines) == len(items) <= MAX_SETTING_LINES else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read([line for line in text.splitlines() if line.strip()])

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return None if value == default else _NEVER


@dataclass(frozen=True, slots=True)
class PairsKind:
    """A line for each name. Values may be secret: nothing that prints settings prints them."""

    name: str = "pairs"

    @property
    def allowed(self) -> str:
        return "a table of names, each with a line of text"

    def read(self, raw: object) -> SettingValue | None:
        if not isinstance(raw, Mapping):
            return None
        items = cast("Mapping[object, object]", raw)
        pairs = {str(key): str(item) for key, item in items.items() if _is_pair(key, item)}
        return JsonObject(pairs) if len(pairs) == len(items) <= MAX_SETTING_LINES else None

    def read_text(self, text: str) -> SettingValue | None:
        parts = [line.partition("=") for line in text.splitlines() if line.strip()]
        return self.read({name.strip(): value for name, _, value in parts})

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return None if value == default else _NEVER


def is_single_line(raw: object) -> TypeGuard[str]:
    """Text that stands on one line, and holds nothing that a terminal would obey."""
    return isinstance(raw, str) and 0 < len(raw) <= MAX_SETTING_CHARS and raw.isprintable()


def _is_pair(key: object, item: object) -> bool:
    # An empty value is how a variable is taken away from whoever would inherit it.
    return isinstance(key, str) and is_name(key) and (item == "" or is_single_line(item))


# Every source adds its own permission rules, and no source can remove those of another.

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
