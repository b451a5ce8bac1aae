"""All sources heard, one `Settings` out. Pure: files and environment are handed in as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import cast

from sevenfold.core.errors import SettingsError
from sevenfold.core.events import SettingRefused
from sevenfold.core.settings import (
    NamedSettings,
    ResolvedSetting,
    SettingOrigin,
    Settings,
    SettingSource,
    SettingSpec,
    SettingsSection,
    is_named_section,
)
from sevenfold.core.settings.collector import RawSettings, SettingKey, SettingsCollector, SourcedValue
from sevenfold.core.settings.kinds import LimitsKind, LimitTable, SettingValue
from sevenfold.core.settings.rules import RulesKind

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
    refused: Iterable[SettingRefused] = (),
) -> Settings:
    """The settings that these sources amount to, or one error with every problem in them.

    `problems` and `refused` are those met before, while the sources were read; `user_home` is what `~` stands
    for.
    """
    hearing = SettingsCollector(sections=tuple(sections), refused=list(refused), problems=list(problems))
    for draft in drafts:
        hearing.hear(draft)
    hearing.hear_environment(environ)
    if hearing.problems:
        raise SettingsError(_report(hearing.problems))
    ranked = sorted(hearing.claims, key=lambda claim: _RANK[claim.origin.source])
    strongest = {claim.slot: _settled(claim, user_home) for claim in _judge_rows(hearing, ranked)}
    names = _names(strongest)
    return Settings(
        tuple(
            _build(item, None, hearing.specs, strongest)
            for item in hearing.sections
            if not is_named_section(item)
        ),
        tuple(
            NamedSettings(name, _build(section, name, hearing.specs, strongest))
            for section, known in names.items()
            for name in known
        ),
        tuple(_chosen(hearing.specs, names, strongest)),
        tuple(hearing.refused),
    )


def _judge_rows(hearing: SettingsCollector, ranked: Iterable[SourcedValue]) -> list[SourcedValue]:
    """The claims without the rows that exceed their table's base; each of those is refused."""
    ranked = list(ranked)
    whole = {claim.slot: claim for claim in ranked if claim.slot.part is None}
    specs = {(spec.section, spec.name): spec for spec in hearing.specs}
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
            hearing.refuse(claim.origin.where or claim.origin.source.value, claim.slot.key, objection)
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
