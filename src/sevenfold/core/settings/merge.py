"""All sources merged into one `Settings`.

`SettingsCollector` checks what each source asks for; `merge_settings` chooses between the sources. Pure:
files and environment come in as plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from reprlib import Repr
from typing import cast

from sevenfold.core import events
from sevenfold.core.errors import SettingsError
from sevenfold.core.settings import (
    ENV_PREFIX,
    NamedSection,
    NamedSettings,
    ResolvedSetting,
    SettingOrigin,
    Settings,
    SettingSource,
    SettingSpec,
    SettingsSection,
    is_named_section,
    list_specs,
)
from sevenfold.core.settings.kinds import (
    FALSE_WORDS,
    MAX_SETTING_NAME_CHARS,
    TRUE_WORDS,
    LimitsKind,
    LimitTable,
    RulesKind,
    SettingValue,
    is_name,
)

# Every value is checked and every fault noted; what a source may not set is refused.

UNASKED: Mapping[str, str] = {"permissions.ask": "permissions.ask", "permissions.deny": "permissions.ask"}
"""What a file of a repository may set before a person has agreed to it, and which setting it counts as until
then. A setting that is not in this table waits.

Whatever value is set, it must not weaken a protection, raise a cost, send data elsewhere, run anything or
hide anything from the user. A rule that asks meets this: it puts a person before a call. A rule that denies
does not, since the tools that list and search leave out what may not be read; it asks until then.
"""

MAX_FAULTS = 20
"""How many of a committed file are told: more than a screenful helps nobody."""

_repr = Repr()
_repr.maxstring = _repr.maxother = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSettings:
    """What one source says, unread: tables of values, as TOML or a caller gives them."""

    source: SettingSource
    where: str
    """The file; empty for arguments."""
    tables: Mapping[str, object]
    advice: str = ""
    """Where to put what is refused, when the reason alone would leave somebody puzzled."""
    is_agreed: bool = False
    """Whether a person has agreed to this file of a repository; without meaning for other sources."""
    waits_because: str = "nobody has agreed to this file"
    """Why the settings that need an agreement do not count."""


@dataclass(frozen=True, slots=True)
class SettingKey:
    """One thing that can be set."""

    spec: SettingSpec
    name: str | None = None
    """Which, of a section that exists once a name."""
    part: str | None = None
    """Which, of a table's names."""

    @property
    def key(self) -> str:
        return format_key(self.spec.section.SECTION, self.name, self.spec.name, self.part)


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """One value that one source asks for."""

    slot: SettingKey
    value: SettingValue
    origin: SettingOrigin


@dataclass(slots=True, kw_only=True)
class SettingsCollector:
    """The sources, one after the other; what they ask for, what was refused, what cannot be used."""

    sections: tuple[type[SettingsSection], ...]
    values: list[SourcedValue] = field(default_factory=list[SourcedValue])
    refused: list[events.SettingRefused] = field(default_factory=list["events.SettingRefused"])
    problems: list[str] = field(default_factory=list[str])
    waiting: list[events.SettingRefused] = field(default_factory=list["events.SettingRefused"])
    """Those of the refused that count once a person has agreed to their file."""
    specs: tuple[SettingSpec, ...] = field(init=False)
    _advice: dict[str, str] = field(default_factory=dict[str, str])
    _faults: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.specs = list_specs(self.sections)

    def collect(self, draft: RawSettings) -> None:
        """A file's tables, or a caller's."""
        self._advice[draft.where] = draft.advice
        known = {section.SECTION: section for section in self.sections}
        for word, table in draft.tables.items():
            section = known.get(word)
            if section is None:
                self._unknown(draft, format_key(word), word, {name: f"[{name}]" for name in known})
            elif not isinstance(table, Mapping):
                self._bad(draft, word, table, f"a table, [{word}]")
            elif is_named_section(section):
                named = cast("type[NamedSection]", section)
                self._collect_named(draft, named, cast("Mapping[str, object]", table))
            else:
                self._collect_table(draft, section, None, cast("Mapping[str, object]", table))

    def collect_environment(self, environ: Mapping[str, str]) -> None:
        """Variables of our own name, their aliases, and the switches that turn something off."""
        spoken: set[str] = set()
        for spec in self.specs:
            # Our own name comes last, and so wins: it is the more deliberate one where an alias is set too.
            for variable in filter(None, (spec.alias, spec.variable)):
                spoken.add(variable)
                self._collect_variable(spec, variable, environ.get(variable, ""))
            if spec.off_by:
                self._collect_off_switch(spec, spec.off_by, environ.get(spec.off_by, ""))
        for variable in environ:
            if variable.startswith(ENV_PREFIX) and variable not in spoken:
                self._warn_of_unknown(variable, spoken)

    def refuse(self, where: str, key: str, reason: str) -> None:
        """Leave a setting out, and say why."""
        advice = self._advice.get(where)
        self.refused.append(events.SettingRefused(where, key, f"{reason}; {advice}" if advice else reason))

    def _collect_named(
        self, draft: RawSettings, section: type[NamedSection], tables: Mapping[str, object]
    ) -> None:
        for name, table in tables.items():
            key = format_key(section.SECTION, name)
            if not isinstance(table, Mapping):
                self._bad(draft, key, table, f'a table, [{section.SECTION}."name"]')
            elif not is_name(name):
                self._bad(draft, section.SECTION, name, "a name of printable characters without blanks")
            elif draft.source is SettingSource.COMMITTED:
                self.refuse(draft.where, key, f"a committed file never adds or changes a {section.EACH}")
            else:
                self._collect_table(draft, section, name, cast("Mapping[str, object]", table))

    def _collect_table(
        self,
        draft: RawSettings,
        section: type[SettingsSection],
        name: str | None,
        table: Mapping[str, object],
    ) -> None:
        known = {spec.name: spec for spec in self.specs if spec.section is section}
        for word, raw in table.items():
            spec = known.get(word)
            if spec is None:
                shown = {item: format_key(section.SECTION, name, item) for item in known}
                self._unknown(draft, format_key(section.SECTION, name, word), word, shown)
            elif raw is not None:
                self._collect_value(draft, SettingKey(spec, name), raw)

    def _collect_value(self, draft: RawSettings, slot: SettingKey, raw: object) -> None:
        value = slot.spec.kind.read(raw)
        if value is None:
            self._bad(draft, slot.key, raw, slot.spec.kind.allowed)
            return
        claims: list[SourcedValue] = []
        for claim in _claims(slot, value, SettingOrigin(draft.source, draft.where)):
            objection = _objection(draft.source, claim)
            if objection:
                self.refuse(draft.where, claim.slot.key, objection)
            else:
                claims.append(claim)
        needs_consent = (
            draft.source is SettingSource.COMMITTED and not draft.is_agreed and value != slot.spec.default
        )
        self.values += self._free_of(draft, slot, claims) if claims and needs_consent else claims

    def _free_of(
        self, draft: RawSettings, slot: SettingKey, claims: list[SourcedValue]
    ) -> list[SourcedValue]:
        """What counts of a file that nobody has agreed to. What does not is told, once a setting."""
        stand_in = UNASKED.get(slot.spec.key)
        if stand_in == slot.spec.key:
            return claims
        counts = f"{draft.waits_because}; until then it counts as {stand_in}" if stand_in else ""
        self.refuse(draft.where, slot.key, counts or draft.waits_because)
        self.waiting.append(self.refused[-1])
        spec = next((item for item in self.specs if item.key == stand_in), None)
        if spec is None:
            return []
        return [
            SourcedValue(SettingKey(spec, slot.name, claim.slot.part), claim.value, claim.origin)
            for claim in claims
        ]

    def _collect_variable(self, spec: SettingSpec, variable: str, text: str) -> None:
        if text and SettingSource.ENVIRONMENT in spec.never_from:
            self.refuse("environment", variable, spec.never_because)
            return
        value = spec.kind.read_text(text) if text else None
        if value is not None:
            self.values.extend(
                _claims(SettingKey(spec), value, SettingOrigin(SettingSource.ENVIRONMENT, variable))
            )
        elif text:
            self._bad_variable(variable, text, spec.kind.allowed)

    def _collect_off_switch(self, spec: SettingSpec, variable: str, text: str) -> None:
        word = text.strip().lower()
        if word in TRUE_WORDS:
            self.values.append(
                SourcedValue(SettingKey(spec), False, SettingOrigin(SettingSource.SWITCH, variable))
            )
        elif word and word not in FALSE_WORDS:
            self._bad_variable(variable, text, "1 (off), 0 or nothing")

    def _bad_variable(self, variable: str, text: str, allowed: str) -> None:
        said = f"{_repr.repr(text)}: expected {allowed}"
        if variable.startswith(ENV_PREFIX):
            self.problems.append(f"environment: {variable} = {said}")
        else:
            # Another program's, which may well mean something else by it.
            self.refuse("environment", variable, f"cannot be {said}")

    def _warn_of_unknown(self, variable: str, spoken: set[str]) -> None:
        """Reported, not fatal: an environment is shared, and may be meant for another release."""
        hint = did_you_mean(variable, {name: name for name in spoken})
        ours = tuple(f"{ENV_PREFIX}{section.SECTION.upper()}_" for section in self.sections)
        if hint or variable.startswith(ours):
            self.refuse("environment", variable, "no setting has this name" + (f"; {hint}" if hint else ""))

    def _bad(self, draft: RawSettings, key: str, raw: object, allowed: str) -> None:
        said = f"{_repr.repr(raw)}: expected {allowed}"
        if draft.source is not SettingSource.COMMITTED:
            self.problems.append(f"{_place(draft)}: {key} = {said}")
        elif self._may_quote(draft):
            self.refuse(draft.where, key, f"cannot be {said}")

    def _unknown(self, draft: RawSettings, key: str, word: str, known: Mapping[str, str]) -> None:
        if draft.source is SettingSource.COMMITTED and not self._may_quote(draft):
            return
        hint = did_you_mean(word, known) or "there are " + ", ".join(known.values())
        if draft.source is SettingSource.COMMITTED:
            self.refuse(draft.where, key, f"is not a setting; {hint}")
        else:
            self.problems.append(f"{_place(draft)}: {key} is not a setting; {hint}")

    def _may_quote(self, draft: RawSettings) -> bool:
        """Whether a fault in a committed file is one of its first.

        It is somebody else's slip, or meant for another release, and must not stop everybody who has a copy;
        nor may a hostile one keep us busy with telling.
        """
        count = self._faults[draft.where] = self._faults.get(draft.where, 0) + 1
        if count == MAX_FAULTS + 1:
            self.refuse(draft.where, "(more)", f"{MAX_FAULTS} faults are told of, and there are others")
        return count <= MAX_FAULTS


def format_key(*words: str | None) -> str:
    """A key as TOML writes it. Words come from files: control characters are escaped, long ones cut."""
    return ".".join(_spell_word(word) for word in words if word is not None)


def did_you_mean(word: str, known: Mapping[str, str]) -> str:
    """A hint, or nothing when no name is close; `known` says how each is shown."""
    from difflib import get_close_matches

    close = get_close_matches(word[:80], list(known), 1, 0.75)
    return f"did you mean {known[close[0]]}?" if close else ""


def _spell_word(word: str) -> str:
    if (
        len(word) > MAX_SETTING_NAME_CHARS
    ):  # longer than anything that can be set, so no two settings are spelled alike
        word = word[:40] + "…"
    is_bare = word.isascii() and word.replace("-", "_").isidentifier()
    return word if is_bare else f'"{repr(word)[1:-1]}"'


def _claims(slot: SettingKey, value: SettingValue, origin: SettingOrigin) -> list[SourcedValue]:
    """One a value; a table makes one a name, and rules one each, so that sources add to one another."""
    if isinstance(slot.spec.kind, RulesKind):
        return [
            SourcedValue(SettingKey(slot.spec, slot.name, rule), rule, origin)
            for rule in cast("tuple[str, ...]", value)
        ]
    if not isinstance(value, LimitTable):
        return [SourcedValue(slot, value, origin)]
    return [
        SourcedValue(SettingKey(slot.spec, slot.name, part), size, origin) for part, size in value.items()
    ]


def _objection(source: SettingSource, claim: SourcedValue) -> str | None:
    spec = claim.slot.spec
    if source in spec.never_from:
        return spec.never_because
    # What a row is measured against is known once all sources were heard: the merge judges it.
    if source is not SettingSource.COMMITTED or isinstance(spec.kind, LimitsKind):
        return None
    return spec.kind.objection(claim.value, spec.default)


def _place(draft: RawSettings) -> str:
    return draft.where or draft.source.value


MAX_PROBLEMS = 20
"""More than a screenful helps nobody."""

_RANK = {source: rank for rank, source in enumerate(SettingSource)}


def merge_settings(
    sections: Iterable[type[SettingsSection]],
    drafts: Iterable[RawSettings],
    *,
    environ: Mapping[str, str],
    user_home: PurePath,
    problems: Iterable[str] = (),
    refused: Iterable[events.SettingRefused] = (),
) -> Settings:
    """The settings that these sources amount to, or one error with every problem in them.

    `problems` and `refused` are those met before, while the sources were read; `user_home` is what `~` stands
    for.
    """
    collector = SettingsCollector(sections=tuple(sections), refused=list(refused), problems=list(problems))
    for draft in drafts:
        collector.collect(draft)
    collector.collect_environment(environ)
    if collector.problems:
        raise SettingsError(_report(collector.problems))
    ranked = sorted(collector.values, key=lambda claim: _RANK[claim.origin.source])
    strongest = {claim.slot: _settled(claim, user_home) for claim in _judge_rows(collector, ranked)}
    names = _names(strongest)
    return Settings(
        tuple(
            _build(item, None, collector.specs, strongest)
            for item in collector.sections
            if not is_named_section(item)
        ),
        tuple(
            NamedSettings(name, _build(section, name, collector.specs, strongest))
            for section, known in names.items()
            for name in known
        ),
        tuple(_chosen(collector.specs, names, strongest)),
        tuple(collector.refused),
    )


def _judge_rows(collector: SettingsCollector, ranked: Iterable[SourcedValue]) -> list[SourcedValue]:
    """The claims without the rows that exceed their table's base; each of those is refused."""
    ranked = list(ranked)
    whole = {claim.slot: claim for claim in ranked if claim.slot.part is None}
    specs = {(spec.section, spec.name): spec for spec in collector.specs}
    kept: list[SourcedValue] = []
    for claim in ranked:
        spec, part = claim.slot.spec, claim.slot.part
        objection = None
        if part is not None and isinstance(spec.kind, LimitsKind):
            base = SettingKey(specs[spec.section, spec.kind.base], claim.slot.name)
            objection = _row_objection(
                claim, LimitTable({part: cast("int", claim.value)}), base, whole.get(base)
            )
        if objection:
            collector.refuse(claim.origin.where or claim.origin.source.value, claim.slot.key, objection)
        else:
            kept.append(claim)
    return kept


def _row_objection(
    claim: SourcedValue, row: LimitTable, base: SettingKey, chosen: SourcedValue | None
) -> str | None:
    source, ceiling = claim.origin.source, base.spec.default if chosen is None else chosen.value
    if source is SettingSource.COMMITTED:
        return claim.slot.spec.kind.objection(row, ceiling)
    is_policy = chosen is not None and chosen.origin.source is SettingSource.MANAGED
    if source is SettingSource.MANAGED or not is_policy or not isinstance(ceiling, int):
        return None
    if all(size <= ceiling for size in row.values()):
        return None
    return f"the managed policy sets {base.key} to {ceiling:,}, and no other source may go over it"


def _settled(claim: SourcedValue, user_home: PurePath) -> SourcedValue:
    value = claim.value
    if not isinstance(value, PurePath) or value.parts[0] != "~":
        return claim
    return SourcedValue(claim.slot, user_home.joinpath(*value.parts[1:]), claim.origin)


def _names(claims: Iterable[SettingKey]) -> dict[type[SettingsSection], dict[str, None]]:
    """The names that each section is set for, in the order they were met."""
    names: dict[type[SettingsSection], dict[str, None]] = {}
    for slot in claims:
        if slot.name is not None:
            names.setdefault(slot.spec.section, {})[slot.name] = None
    return names


def _build(
    section: type[SettingsSection],
    name: str | None,
    specs: Iterable[SettingSpec],
    claims: Mapping[SettingKey, SourcedValue],
) -> SettingsSection:
    own = {spec.name: _value(SettingKey(spec, name), claims) for spec in specs if spec.section is section}
    return cast("Callable[..., SettingsSection]", section)(**own)


def _value(slot: SettingKey, claims: Mapping[SettingKey, SourcedValue]) -> SettingValue | None:
    default = slot.spec.default
    if isinstance(slot.spec.kind, RulesKind):
        return tuple(cast("str", claim.value) for claim in _parts(slot, claims))
    if isinstance(default, LimitTable):
        own = {item.slot.part: item.value for item in _parts(slot, claims)}
        return LimitTable({**default, **cast("dict[str, int]", own)})
    claim = claims.get(slot)
    return default if claim is None else claim.value


def _parts(slot: SettingKey, claims: Mapping[SettingKey, SourcedValue]) -> list[SourcedValue]:
    if not isinstance(slot.spec.kind, (LimitsKind, RulesKind)):
        return []
    return [
        claim for claim in claims.values() if (claim.slot.spec, claim.slot.name) == (slot.spec, slot.name)
    ]


def _chosen(
    specs: Iterable[SettingSpec],
    names: Mapping[type[SettingsSection], Iterable[str]],
    claims: Mapping[SettingKey, SourcedValue],
) -> Iterator[ResolvedSetting]:
    for spec in specs:
        for name in names.get(spec.section, []) if spec.is_named else [None]:
            slot = SettingKey(spec, name)
            parts = _parts(slot, claims)
            for claim in parts:
                yield ResolvedSetting(claim.slot.key, spec, claim.value, claim.origin)
            if not parts:
                claim = claims.get(slot)
                yield ResolvedSetting(
                    slot.key,
                    spec,
                    _value(slot, claims),
                    claim.origin if claim else SettingOrigin(SettingSource.DEFAULT),
                )


def _report(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = [f"- {problem}" for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"- and {len(problems) - MAX_PROBLEMS} more")
    return "\n".join([f"{len(problems)} settings cannot be used:", *lines])
