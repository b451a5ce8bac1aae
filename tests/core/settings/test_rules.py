"""Permission rules add up over all sources, and a repository can only make them stricter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

import pytest

from sevenfold.core.errors import SettingsError
from sevenfold.core.settings import Settings, SettingSource, rule_patterns
from sevenfold.core.settings.merge import RawSettings, merge_settings


@dataclass(frozen=True, slots=True)
class Planted:
    SECTION: ClassVar[str] = "planted"

    allow: tuple[str, ...] = rule_patterns(is_strict=False)
    deny: tuple[str, ...] = rule_patterns(is_strict=True)


def merged(environ: dict[str, str] | None = None, **tables: dict[str, object]) -> Settings:
    """What sources, by name, amount to, once a person has agreed to the committed file."""
    drafts = [
        RawSettings(source=SettingSource[source], where=source, tables={"planted": table}, is_agreed=True)
        for source, table in tables.items()
    ]
    return merge_settings([Planted], drafts, environ=environ or {}, user_home=PurePath("/home/u"))


def test_every_source_adds_its_own() -> None:
    settings = merged(
        {"SEVENFOLD_PLANTED_DENY": "shell(rm -r)\nweb_fetch\n"},
        USER={"deny": ["read(.env)"], "allow": ["read"]},
        LOCAL={"deny": ["edit(a, b)", "read(.env)"]},
        MANAGED={"deny": ["mcp__*"]},
    )
    planted = settings.of(Planted)
    assert set(planted.deny) == {"read(.env)", "edit(a, b)", "shell(rm -r)", "web_fetch", "mcp__*"}
    assert planted.allow == ("read",)


def test_a_committed_file_forbids_and_allows_nothing() -> None:
    settings = merged(COMMITTED={"deny": ["shell"], "allow": ["edit(**)"]}, USER={"allow": ["read"]})
    assert settings.of(Planted) == Planted(("read",), ("shell",))
    [refused] = settings.refused
    assert "edit(**)" in refused.key
    assert "not allow" in refused.reason


def test_each_rule_shows_where_it_came_from() -> None:
    settings = merged(COMMITTED={"deny": ["shell"]}, USER={"deny": ["read(x)"]})
    origins = {item.key: item.origin.source for item in settings.resolved}
    assert origins["planted.deny.shell"] is SettingSource.COMMITTED
    assert origins['planted.deny."read(x)"'] is SettingSource.USER
    assert origins["planted.allow"] is SettingSource.DEFAULT


@pytest.mark.parametrize("rule", ["", "two words", "shell()", "shell(a", "a\nb", 1, "shell(\x1b[2J)"])
def test_what_is_no_rule_stops_the_start(rule: object) -> None:
    with pytest.raises(SettingsError, match="tool"):
        merged(USER={"deny": [rule]})
