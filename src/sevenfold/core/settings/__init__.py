"""Settings as values: how a module declares them, and the result of merging all sources.

A section is one frozen dataclass, in the module that reads it:

    @dataclass(frozen=True, slots=True)
    class ToolResultSettings:
        SECTION: ClassVar[str] = "tool_results"

        limit_chars: int = limit(50_000, at_least=1)
        \"\"\"Why this number.\"\"\"

- `kinds`: the kinds of values, and what each accepts.
- `merge`: all sources merged into one `Settings`.
- `sections`: the sections of the agent itself. Those of memory, and of where files are kept, stand at the end
  of this module: every command that opens a project needs them, and few need the others.

`store/project/settings_files.py` reads the files. `merge` does not know which sections exist: the caller
passes them in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields, replace
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, ClassVar, Protocol, TypeVar, cast

from sevenfold.core import events
from sevenfold.core.errors import SettingsError
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.settings.kinds import (
    MAX_INTEGER,
    ChoiceKind,
    IntegerKind,
    LimitsKind,
    LimitTable,
    LineKind,
    LinesKind,
    NamesKind,
    PairsKind,
    PathKind,
    PercentKind,
    PriceKind,
    RulesKind,
    SettingKind,
    SettingValue,
    SwitchKind,
)

ENV_PREFIX = "SEVENFOLD_"


class SettingSource(Enum):
    """Where a value can come from, weakest first."""

    DEFAULT = "default"
    COMMITTED = "committed project file"
    USER = "user file"
    LOCAL = "project-local file"
    ENVIRONMENT = "environment"
    ARGUMENT = "keyword argument"
    SWITCH = "environment off switch"
    """DISABLE_COMPACT and the like: they override every source but the managed policy."""
    MANAGED = "managed policy"


class SettingsSection(Protocol):
    """One frozen dataclass of settings."""

    SECTION: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class NamedSection(SettingsSection, Protocol):
    """Settings of which there is one set a name: `[models."my-model"]`."""

    EACH: ClassVar[str]
    """What one of them is, in a word: `model`."""


S = TypeVar("S", bound=SettingsSection)
N = TypeVar("N", bound=NamedSection)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """What a field's metadata holds."""

    kind: SettingKind
    alias: str | None = None
    off_by: str | None = None
    never_from: tuple[SettingSource, ...] = ()
    never_because: str = ""


def switch(default: _T, *, off_by: str | None = None) -> _T:
    """On or off. `off_by` names a variable of the environment that turns it off whatever settings say."""
    return _declared(default, _Rule(kind=SwitchKind(), off_by=off_by))


def limit(default: _T, *, at_least: int = 0, at_most: int = MAX_INTEGER) -> _T:
    """A number of which less is safer: a committed file may lower it, once a person has agreed."""
    return _declared(default, _Rule(kind=IntegerKind(at_least, at_most, lowerable=True)))


def amount(default: _T, *, at_least: int = 0, at_most: int = MAX_INTEGER) -> _T:
    """A number of which less is not safer, such as a margin: no committed file may touch it."""
    return _declared(default, _Rule(kind=IntegerKind(at_least, at_most, lowerable=False)))


def percent(default: Decimal | None, *, alias: str | None = None) -> Decimal | None:
    """More than 0, at most 100."""
    return _declared(default, _Rule(kind=PercentKind(), alias=alias))


def price(default: Decimal | None) -> Decimal | None:
    """US dollars for a million tokens."""
    return _declared(default, _Rule(kind=PriceKind()))


def file_path(
    default: PurePath | None,
    *,
    alias: str | None = None,
    never_from: tuple[SettingSource, ...] = (),
    never_because: str = "",
) -> PurePath | None:
    """A path. `never_from` lists sources that cannot set it, and `never_because` says why."""
    return _declared(
        default,
        _Rule(kind=PathKind(), alias=alias, off_by=None, never_from=never_from, never_because=never_because),
    )


def choice(default: str, *words: str) -> str:
    """One word of a few."""
    return _declared(default, _Rule(kind=ChoiceKind(words)))


def names(default: tuple[str, ...]) -> tuple[str, ...]:
    """A list of names."""
    return _declared(default, _Rule(kind=NamesKind()))


def line(
    default: str | None, *, never_from: tuple[SettingSource, ...] = (), never_because: str = ""
) -> str | None:
    """A line of text. `never_from` and `never_because` are those of `file_path`."""
    return _declared(default, _Rule(kind=LineKind(), never_from=never_from, never_because=never_because))


def lines(default: tuple[str, ...]) -> tuple[str, ...]:
    """A list of texts, each one line."""
    return _declared(default, _Rule(kind=LinesKind()))


def rule_patterns(*, is_strict: bool) -> tuple[str, ...]:
    """Permission rules, which sources add to one another; a committed file adds strict ones only, of which
    those that deny ask until a person has agreed."""
    return _declared((), _Rule(kind=RulesKind(is_strict)))


def pairs(default: JsonObject = EMPTY_OBJECT) -> JsonObject:
    """A line of text for each name; nothing that prints settings prints the lines."""
    return _declared(default, _Rule(kind=PairsKind()))


def limits(default: LimitTable, *, at_least: int, base: str) -> LimitTable:
    """A number for each name; `base` is the limit of the same section that holds for a name not in it."""
    return _declared(default, _Rule(kind=LimitsKind(at_least, base)))


def _declared(default: _T, rule: _Rule) -> _T:
    # The dataclass decorator takes the Field; the type checker sees what the field will hold.
    return field(default=default, metadata={"rule": rule})


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    """One setting, as declared."""

    section: type[SettingsSection]
    name: str
    kind: SettingKind
    default: SettingValue | None
    alias: str | None
    off_by: str | None
    never_from: tuple[SettingSource, ...]
    never_because: str

    @property
    def key(self) -> str:
        return f"{self.section.SECTION}.{self.name}"

    @property
    def is_named(self) -> bool:
        return is_named_section(self.section)

    @property
    def variable(self) -> str | None:
        """Its name in the environment; what exists once a name has none."""
        return None if self.is_named else f"{ENV_PREFIX}{self.section.SECTION}_{self.name}".upper()


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a value came from."""

    source: SettingSource
    where: str = ""
    """The file or the variable; empty for a default or an argument."""

    def __str__(self) -> str:
        return f"{self.source.value} ({self.where})" if self.where else self.source.value


@dataclass(frozen=True, slots=True)
class ResolvedSetting:
    """One setting, as it came out."""

    key: str
    spec: SettingSpec
    value: SettingValue | None
    origin: SettingOrigin


@dataclass(frozen=True, slots=True)
class NamedSettings:
    """One of the sections that exist once a name."""

    name: str
    section: SettingsSection


@dataclass(frozen=True, slots=True)
class Settings:
    """Every section, resolved; with where each value came from and what was refused on the way."""

    sections: tuple[SettingsSection, ...]
    named: tuple[NamedSettings, ...]
    resolved: tuple[ResolvedSetting, ...]
    refused: tuple[events.SettingRefused, ...]

    def of(self, section: type[S]) -> S:
        """The one section of this class."""
        for item in self.sections:
            if isinstance(item, section):
                return item
        raise SettingsError(f"{section.__name__} was not among the sections that were resolved; hand it in")

    def each(self, section: type[N]) -> dict[str, N]:
        """The sections of this class, by name."""
        return {item.name: item.section for item in self.named if isinstance(item.section, section)}

    def origin(self, key: str) -> SettingOrigin:
        """Where the value of `section.name` came from; of a table, the strongest source that added to it."""
        found = [item.origin for item in self.resolved if item.key == key or item.key.startswith(f"{key}.")]
        if not found:
            raise SettingsError(f"no setting is called {key!r}; `sevenfold settings` lists them")
        return max(found, key=lambda origin: list(SettingSource).index(origin.source))


def is_named_section(section: type[SettingsSection]) -> bool:
    return hasattr(section, "EACH")


def list_specs(sections: Iterable[type[SettingsSection]]) -> tuple[SettingSpec, ...]:
    """Every setting of these sections; a mistake in a declaration is the programmer's, and a TypeError."""
    specs = tuple(_spec(section, item) for section in sections for item in fields(section))
    bases = {(spec.section, spec.name) for spec in specs if spec.kind.name == "limit"}
    for spec in specs:
        if isinstance(spec.kind, LimitsKind) and (spec.section, spec.kind.base) not in bases:
            raise TypeError(f"{spec.key} names {spec.kind.base} as its base, which is no limit there")
    spoken: dict[str, str] = {}
    for spec in specs:
        for variable in (spec.variable, spec.alias, spec.off_by):
            if variable and spoken.setdefault(variable, spec.key) != spec.key:
                raise TypeError(f"{variable} would set both {spoken[variable]} and {spec.key}")
    return specs


_MAX_DURATIONS = {"_seconds": 315_360_000, "_minutes": 5_256_000, "_hours": 87_600, "_days": 3_650}
"""Ten years in each unit. What is longer overflows a date, a timer or a lock of the standard library."""


def _bound_duration(name: str, kind: SettingKind) -> SettingKind:
    most = next((most for suffix, most in _MAX_DURATIONS.items() if name.endswith(suffix)), None)
    if most is None or not isinstance(kind, IntegerKind):
        return kind
    return replace(kind, at_most=min(kind.at_most, most))


def _spec(section: type[SettingsSection], item: Field[Any]) -> SettingSpec:
    rule = item.metadata.get("rule")
    if not isinstance(rule, _Rule):
        raise TypeError(
            f"{section.__name__}.{item.name} is declared without a kind, such as limit() or switch()"
        )
    default = cast("SettingValue | None", item.default)
    return SettingSpec(
        section=section,
        name=item.name,
        kind=_bound_duration(item.name, rule.kind),
        default=default,
        alias=rule.alias,
        off_by=rule.off_by,
        never_from=rule.never_from,
        never_because=rule.never_because,
    )


@dataclass(frozen=True, slots=True)
class MemorySettings:
    SECTION: ClassVar[str] = "memory"

    enabled: bool = switch(True)
    """On: what is known of a project is the reason to have this. Off reads and writes no memory; what is kept
    stays where it is."""

    trust_outside: bool = switch(False)
    """Off: an edit past the engine may be a script's, so it waits for a person. On accepts it at once, as one
    may want where another agent keeps the same folder."""


HOME_FOLDER = ".sevenfold"
"""In the user's own folder."""


@dataclass(frozen=True, slots=True)
class PlaceSettings:
    SECTION: ClassVar[str] = "places"

    home: PurePath | None = file_path(  # noqa: RUF009 - it makes a field
        None,
        alias="SEVENFOLD_HOME",
        never_from=(SettingSource.COMMITTED, SettingSource.LOCAL, SettingSource.USER),
        never_because="home is where the user file lies, for every project; set SEVENFOLD_HOME instead",
    )
    """Unset: ~/.sevenfold, where people look for what a tool keeps for them."""

    memory_dir: PurePath | None = file_path(  # noqa: RUF009 - it makes a field
        None, alias="SEVENFOLD_MEMORY_DIR"
    )
    """Unset: memory/ in the project's own folder under home, so that all worktrees share it and no repository
    holds it."""

    claude_memory: bool = switch(False)
    """Off: another agent's folder is its own. On keeps a project's memories where Claude Code does, so that
    both have the same; a `memory_dir` goes before it."""

    sweep_hours: int = amount(24, at_most=8_760)
    """Half-made files of dead writers cost nothing but room; looking for them goes through every folder."""

    @property
    def sweep_every(self) -> timedelta:
        return timedelta(hours=self.sweep_hours)

    def home_folder(self, user_home: Path) -> Path:
        """Where `home` is, said or not."""
        return user_home / HOME_FOLDER if self.home is None else Path(self.home)
