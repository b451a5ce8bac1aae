"""The kinds a setting can be: what each takes, from a file or from the environment, and what a file that came
with a repository may do to it once a person has agreed to the file.

`read` takes what TOML or a caller gives, `read_text` what the environment gives; both answer None for a value
that is not allowed, and `allowed` says in words what is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, cast, final

from sevenfold.core.json import JsonObject

if TYPE_CHECKING:
    from sevenfold.core.json import JsonObject


SettingValue: TypeAlias = "bool | int | Decimal | str | PurePath | tuple[str, ...] | LimitTable | JsonObject"
"""What a setting can hold, apart from None for one that is not set."""

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})

MAX_INTEGER = 10**12
"""Past any window, file or count we could meet: a slip of the finger is caught before it is believed."""

MAX_SETTING_CHARS = 4096
"""PATH_MAX on Linux: nothing a setting holds is longer."""

MAX_SETTING_NAME_CHARS = 200
"""Tool names end at 64 characters, ARNs of models at about 150."""

_DIGITS = re.compile(r"-?[0-9](?:_?[0-9])*")


@final
class LimitTable(Mapping[str, int]):
    """An immutable table of names and numbers, such as a size for each tool."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, int] | None = None) -> None:
        self._items: dict[str, int] = dict(items) if items else {}

    def __getitem__(self, key: str) -> int:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Limits({self._items!r})"


class SettingKind(Protocol):
    """What a setting takes."""

    @property
    def name(self) -> str: ...

    @property
    def allowed(self) -> str:
        """In words, as the end of "expected …"."""
        ...

    def read(self, raw: object) -> SettingValue | None:
        """A value from a file or a caller; None when it is not allowed."""
        ...

    def read_text(self, text: str) -> SettingValue | None:
        """A value from the environment; None when it is not allowed."""
        ...

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        """Why a committed file may not set this value, or None when it may.

        A table is measured against what its base came out as, in place of a default.
        """
        ...


@dataclass(frozen=True, slots=True)
class _PlainKind:
    """A kind without parameters: two of one class are equal. One dataclass for all of them, because every
    command waits until they are made."""


class SwitchKind(_PlainKind):
    """On or off. A committed file may turn it off."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "switch"

    @property
    def allowed(self) -> str:
        return "true or false"

    def read(self, raw: object) -> SettingValue | None:
        return raw if isinstance(raw, bool) else None

    def read_text(self, text: str) -> SettingValue | None:
        word = text.strip().lower()
        return word in TRUE_WORDS if word in TRUE_WORDS | FALSE_WORDS else None

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return "a committed file may switch things off, not on" if value and not default else None


@dataclass(frozen=True, slots=True)
class IntegerKind:
    """A whole number. `lowerable` says that less of it is safer, so that a committed file may lower it."""

    at_least: int
    at_most: int
    lowerable: bool

    @property
    def name(self) -> str:
        return "limit" if self.lowerable else "amount"

    @property
    def allowed(self) -> str:
        top = f" to {self.at_most:,}" if self.at_most != MAX_INTEGER else " up"
        return f"a whole number from {self.at_least:,}{top}"

    def read(self, raw: object) -> SettingValue | None:
        if isinstance(raw, bool) or not isinstance(raw, int):
            return None
        return raw if self.at_least <= raw <= self.at_most else None

    def read_text(self, text: str) -> SettingValue | None:
        word = text.strip()
        return self.read(int(word)) if len(word) < 32 and _DIGITS.fullmatch(word) else None

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        if not self.lowerable:
            return "a committed file may lower limits, and this number is none"
        return _not_lower(value, default)


class PercentKind(_PlainKind):
    """More than 0, at most 100."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "percent"

    @property
    def allowed(self) -> str:
        return "a number above 0, up to 100"

    def read(self, raw: object) -> SettingValue | None:
        number = _number(raw)
        return number if number is not None and 0 < number <= 100 else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read(_decimal(text))

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return _not_lower(value, default)


class PriceKind(_PlainKind):
    """US dollars for a million tokens."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "price"

    @property
    def allowed(self) -> str:
        return "US dollars per million tokens: a number from 0 to 1,000,000 with at most 9 decimals"

    def read(self, raw: object) -> SettingValue | None:
        number = _number(raw)
        if number is None or not 0 <= number <= 1_000_000:
            return None
        exponent = number.normalize().as_tuple().exponent
        return number if isinstance(exponent, int) and exponent >= -9 else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read(_decimal(text))

    def objection(self, _value: SettingValue, _default: SettingValue | None, /) -> str | None:
        return "a committed file never sets a price"


class PathKind(_PlainKind):
    """A path, absolute or under the user's own folder: a relative one means something else in each shell."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "place"

    @property
    def allowed(self) -> str:
        return "an absolute path, or one that starts with ~/"

    def read(self, raw: object) -> SettingValue | None:
        text = str(raw) if isinstance(raw, PurePath) else raw
        if not isinstance(text, str) or not 0 < len(text) <= MAX_SETTING_CHARS or not text.isprintable():
            return None
        path = PurePath(text)
        is_ours = path.is_absolute() or path.parts[:1] == ("~",)
        return path if is_ours and ".." not in path.parts else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read(text)

    def objection(self, _value: SettingValue, _default: SettingValue | None, /) -> str | None:
        return "a committed file never sets a path"


@dataclass(frozen=True, slots=True)
class ChoiceKind:
    """One word of a few."""

    words: tuple[str, ...]
    name: str = "choice"

    @property
    def allowed(self) -> str:
        return "one of " + ", ".join(self.words)

    def read(self, raw: object) -> SettingValue | None:
        return raw if isinstance(raw, str) and raw in self.words else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read(text.strip())

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return None if value == default else "a committed file may switch things off and lower limits only"


class NamesKind(_PlainKind):
    """A list of names; the environment separates them by commas."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "names"

    @property
    def allowed(self) -> str:
        return "a list of names"

    def read(self, raw: object) -> SettingValue | None:
        if not isinstance(raw, (list, tuple)):
            return None
        items = tuple(cast("list[object]", raw))
        names = tuple(item for item in items if isinstance(item, str) and is_name(item))
        return names if len(names) == len(items) else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read([part.strip() for part in text.split(",")])

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return None if value == default else "a committed file may switch things off and lower limits only"


@dataclass(frozen=True, slots=True)
class LimitsKind:
    """A number for each name. Sources add to one another, name by name."""

    at_least: int
    base: str
    """The limit, of the same section, that holds for names outside the table: what a row may not exceed when
    it comes from a committed file, or from any weaker source than the policy that sets the limit."""
    name: str = "table of limits"

    @property
    def allowed(self) -> str:
        return f"a table of names, each with a whole number from {self.at_least:,} up"

    def read(self, raw: object) -> SettingValue | None:
        if not isinstance(raw, Mapping):
            return None
        number = IntegerKind(self.at_least, MAX_INTEGER, lowerable=True)
        table: dict[str, int] = {}
        for key, item in cast("Mapping[object, object]", raw).items():
            value = number.read(item)
            if not (isinstance(key, str) and is_name(key) and isinstance(value, int)):
                return None
            table[key] = value
        return LimitTable(table)

    def read_text(self, text: str) -> SettingValue | None:
        parts = [part.partition("=") for part in text.split(",")]
        number = IntegerKind(self.at_least, MAX_INTEGER, lowerable=True)
        return self.read({name.strip(): number.read_text(size) for name, _, size in parts})

    def objection(self, value: SettingValue, ceiling: SettingValue | None, /) -> str | None:
        sizes = value.values() if isinstance(value, LimitTable) else ()
        if not isinstance(ceiling, int):
            return f"a committed file may lower limits, and {self.base} sets none"
        if all(size <= ceiling for size in sizes):
            return None
        return f"a committed file may lower limits, not raise them ({self.base} is {ceiling:,})"


def is_name(text: str) -> bool:
    """A tool's or a model's name: printable, without the blanks and commas that separate names."""
    return 0 < len(text) <= MAX_SETTING_NAME_CHARS and text.isprintable() and not set(text) & set(" ,=")


def _not_lower(value: SettingValue, default: SettingValue | None) -> str | None:
    if not isinstance(default, (int, Decimal)) or not isinstance(value, (int, Decimal)):
        return "a committed file may lower limits, and there is none by default"
    if value <= default:
        return None
    return f"a committed file may lower limits, not raise them (the default is {default:,})"


def _number(raw: object) -> Decimal | None:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, Decimal)):
        return None
    # str() first: 0.1 means the price somebody typed, not the binary fraction nearest to it.
    return _decimal(str(raw))


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip()) if len(text) < 64 else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() else None


# Kinds of settings that hold text: a line, several lines, a line for each name, and permission rules.

MAX_SETTING_LINES = 1_000
"""More rules, arguments or variables than anybody keeps by hand."""

_NEVER = "a committed file may switch things off and lower limits only"


class LineKind(_PlainKind):
    """One line of text."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "line"

    @property
    def allowed(self) -> str:
        return "a line of text"

    def read(self, raw: object) -> SettingValue | None:
        return raw if is_single_line(raw) else None

    def read_text(self, text: str) -> SettingValue | None:
        return self.read(text)

    def objection(self, value: SettingValue, default: SettingValue | None, /) -> str | None:
        return None if value == default else _NEVER


class LinesKind(_PlainKind):
    """A list of lines; the environment has one on each line."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "lines"

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


class PairsKind(_PlainKind):
    """A line for each name. Values may be secret: nothing that prints settings prints them."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "pairs"

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
