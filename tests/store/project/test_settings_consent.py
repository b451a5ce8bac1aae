"""What a repository's settings file may do before a person has agreed to it: next to nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path, PurePath
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.settings import Settings, SettingSpec, SettingsSection, list_specs
from sevenfold.core.settings.kinds import ChoiceKind, IntegerKind, LimitsKind, LimitTable, SettingKind
from sevenfold.core.settings.merge import UNASKED
from sevenfold.core.settings.sections import HookSettings, PermissionSettings, SandboxSettings
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.project.settings_files import (
    COMMITTED_SETTINGS_FILE,
    LOCAL_SETTINGS_FILE,
    Proposal,
    SettingsFiles,
    read_settings,
)
from tests.examples import up_to
from tests.store.repos import git

SPECS = list_specs(SETTINGS_SECTIONS)
WORDS = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
RULES = st.lists(st.sampled_from(["shell", "read(secret/**)", "edit(src/**)", "mcp__*"]), max_size=3)


PLAIN: dict[str, st.SearchStrategy[object]] = {
    "switch": st.booleans(),
    "percent": st.integers(1, 100),
    "price": st.integers(0, 1_000_000),
    "place": WORDS.map(lambda word: f"/{word}"),
    "rules": RULES,
    "line": WORDS,
    "lines": st.lists(WORDS, max_size=3),
    "names": st.lists(WORDS, max_size=3),
    "pairs": st.dictionaries(WORDS, WORDS, max_size=3),
}


def values(kind: SettingKind) -> st.SearchStrategy[object]:
    """Anything that a setting of this kind takes, as TOML holds it."""
    match kind:
        case IntegerKind():
            return st.integers(kind.at_least, kind.at_most)
        case ChoiceKind():
            return st.sampled_from(kind.words)
        case LimitsKind():
            return st.dictionaries(WORDS, st.integers(kind.at_least, 10**6), max_size=3)
        case _:
            return PLAIN[kind.name]


def table(specs: list[SettingSpec]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional={spec.name: values(spec.kind) for spec in specs})


def every_table() -> st.SearchStrategy[dict[str, dict[str, object]]]:
    """Any settings file that can be read, of the settings there are."""
    made: dict[str, st.SearchStrategy[dict[str, object]]] = {}
    for section in SETTINGS_SECTIONS:
        own = table([spec for spec in SPECS if spec.section is section])
        is_named = any(spec.is_named for spec in SPECS if spec.section is section)
        named = cast("st.SearchStrategy[dict[str, object]]", st.dictionaries(WORDS, own, max_size=1))
        made[section.SECTION] = named if is_named else own
    return st.fixed_dictionaries({}, optional=made)


def spell(value: object) -> str:
    if isinstance(value, dict):
        items = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{json.dumps(key)} = {spell(item)}" for key, item in items) + "}"
    return json.dumps(value)


def write(root: Path, tables: Mapping[str, object] | str, name: str = COMMITTED_SETTINGS_FILE) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = tables if isinstance(tables, str) else "".join(f"{k} = {spell(v)}\n" for k, v in tables.items())
    path.write_text(text)
    return path


def environ(top: Path) -> dict[str, str]:
    return {"HOME": str(top / "ann")}


def read(top: Path, **arguments: Mapping[str, object]) -> Settings:
    return read_settings(SETTINGS_SECTIONS, root=top / "project", environ=environ(top), arguments=arguments)


def files(top: Path) -> SettingsFiles:
    return SettingsFiles.read(top / "project", environ=environ(top))


def proposals(top: Path) -> tuple[Proposal, ...]:
    return files(top).proposals(SETTINGS_SECTIONS)


def answer(top: Path, *, is_agreed: bool) -> None:
    found = files(top)
    for proposal in found.proposals(SETTINGS_SECTIONS):
        found.keep_consent(proposal.file.consent_key, proposal.content, is_agreed=is_agreed)


def others(found: Settings) -> list[SettingsSection]:
    return [section for section in found.sections if not isinstance(section, PermissionSettings)]


def test_no_setting_may_be_set_unasked_but_these() -> None:
    """Whoever adds one shows that no value of it weakens a protection, raises a cost, sends data elsewhere,
    runs anything or hides anything from the user."""
    assert dict(UNASKED) == {"permissions.ask": "permissions.ask", "permissions.deny": "permissions.ask"}
    assert set(UNASKED) <= {spec.key for spec in SPECS}


@settings(max_examples=up_to(60))
@given(tables=every_table())
def test_nothing_a_committed_file_says_counts_unasked_but_rules_that_ask(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, dict[str, object]]
) -> None:
    top = tmp_path_factory.mktemp("machine")
    write(top / "project", tables)
    plain = read_settings(SETTINGS_SECTIONS, root=None, environ=environ(top))
    found = read(top)
    assert others(found) == others(plain)
    assert found.named == ()
    rules = found.of(PermissionSettings)
    wanted = tables.get("permissions", {})
    asked = {*cast("list[str]", wanted.get("ask", [])), *cast("list[str]", wanted.get("deny", []))}
    assert (rules.mode, rules.allow, rules.deny, set(rules.ask)) == ("ask", (), (), asked)
    assert not (top / "ann").exists(), "to look must not make anything"


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.is_named], ids=lambda spec: spec.key)
def test_each_setting_that_is_ignored_is_told_with_what_to_do(tmp_path: Path, spec: SettingSpec) -> None:
    value = another(spec)
    write(tmp_path / "project", {spec.section.SECTION: {spec.name: value}})
    told = [event for event in read(tmp_path).refused if event.key.startswith(spec.key)]
    assert told or UNASKED.get(spec.key) == spec.key
    waiting = [item.key for found in proposals(tmp_path) for item in found.waiting]
    assert all("sevenfold settings --trust" in event.reason for event in told if event.key in waiting)


def another(spec: SettingSpec) -> object:
    """A value that is not the default."""
    match spec.default:
        case bool():
            return not spec.default
        case int():
            return (
                spec.default - 1
                if spec.default > cast("IntegerKind", spec.kind).at_least
                else spec.default + 1
            )
        case Decimal():
            return 1
        case str():
            return next(word for word in cast("ChoiceKind", spec.kind).words if word != spec.default)
        case tuple():
            return ["shell"]
        case LimitTable() | JsonObject():
            return {"shell": 1}
        case PurePath() | None:
            return {"place": "/etc", "line": "x"}.get(spec.kind.name, 7)


OFF = "[cache]\nenabled = false\n[hooks]\nenabled = false\n"


def is_cached(top: Path) -> bool:
    return read(top).of(CacheSettings).enabled


def test_once_agreed_to_it_counts_until_it_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "project", OFF)
    assert is_cached(tmp_path)
    answer(tmp_path, is_agreed=True)
    assert not is_cached(tmp_path)
    assert not read(tmp_path).of(HookSettings).enabled
    assert read(tmp_path).refused == ()
    for changed in (OFF + "# a remark\n", OFF + "[sandbox]\nenabled = false\n"):
        path.write_text(changed)
        assert read(tmp_path).of(SandboxSettings).enabled
        assert is_cached(tmp_path)
    path.write_text(OFF)
    assert not is_cached(tmp_path), "the text that was agreed to"


def test_a_refusal_is_kept_until_the_file_changes_or_somebody_agrees(tmp_path: Path) -> None:
    path = write(tmp_path / "project", OFF)
    answer(tmp_path, is_agreed=False)
    assert [found.consent for found in proposals(tmp_path)] == ["refused"]
    assert is_cached(tmp_path)
    assert {event.reason for event in read(tmp_path).refused} == {
        "you have refused this file; `sevenfold settings --trust` agrees to it"
    }
    path.write_text(OFF + "\n")
    assert [found.consent for found in proposals(tmp_path)] == ["unasked"]
    path.write_text(OFF)
    answer(tmp_path, is_agreed=True)
    assert [found.consent for found in proposals(tmp_path)] == ["agreed"]
    answer(tmp_path, is_agreed=False)
    assert is_cached(tmp_path), "an agreement can be taken back"


def test_the_user_and_the_policy_outrank_what_was_agreed_to(tmp_path: Path) -> None:
    write(tmp_path / "project", OFF)
    answer(tmp_path, is_agreed=True)
    write(tmp_path / "ann", "[cache]\nenabled = true\n")
    assert is_cached(tmp_path)
    assert not read(tmp_path).of(HookSettings).enabled


def test_an_agreement_lets_a_file_do_no_more_than_it_may(tmp_path: Path) -> None:
    text = (
        '[agent]\nbase_url = "http://example.org"\n[permissions]\nallow = ["shell"]\n[mcp.x]\ncommand = "x"\n'
    )
    write(tmp_path / "project", text + "[sandbox]\nallow_workspace = true\n")
    before = read(tmp_path)
    answer(tmp_path, is_agreed=True)
    assert read(tmp_path) == before
    assert len(before.refused) == 4


def test_a_rule_that_denies_asks_until_it_is_agreed_to(tmp_path: Path) -> None:
    """To deny is to hide: what may not be read is left out of lists and searches."""
    write(tmp_path / "project", '[permissions]\ndeny = ["read(src/**)"]\nask = ["shell"]\n')
    found = read(tmp_path)
    assert found.of(PermissionSettings).deny == ()
    assert set(found.of(PermissionSettings).ask) == {"read(src/**)", "shell"}
    (told,) = found.refused
    assert (told.key, "counts as permissions.ask" in told.reason) == ("permissions.deny", True)
    answer(tmp_path, is_agreed=True)
    rules = read(tmp_path).of(PermissionSettings)
    assert (rules.deny, rules.ask) == (("read(src/**)",), ("shell",))


def test_a_flood_of_rows_is_told_once(tmp_path: Path) -> None:
    rows = "".join(f"t{number} = 1\n" for number in range(5_000))
    write(tmp_path / "project", f"[tool_results.limits]\n{rows}")
    found = read(tmp_path)
    assert [event.key for event in found.refused] == ["tool_results.limits"]
    assert found.of(ToolResultSettings).limits == {}


def test_agreeing_to_a_tracked_local_file_does_not_make_it_the_users(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write(root, '[permissions]\nallow = ["shell"]\n' + OFF, LOCAL_SETTINGS_FILE)
    git(root, "init", "--quiet")
    git(root, "add", "--force", LOCAL_SETTINGS_FILE)
    assert is_cached(tmp_path)
    answer(tmp_path, is_agreed=True)
    assert not is_cached(tmp_path)
    git(root, "rm", "--quiet", "--cached", LOCAL_SETTINGS_FILE)
    (root / "a").write_text("tracked")
    git(root, "add", "a")
    untrusted = read_settings(SETTINGS_SECTIONS, root=root, environ=environ(tmp_path), trusts_local=False)
    assert untrusted.of(PermissionSettings).allow == ()
    assert untrusted.of(CacheSettings).enabled


@pytest.mark.parametrize("content", [b"nonsense", b"[]", b'{".sevenfold/settings.toml": true}'])
def test_an_unreadable_record_is_no_agreement(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / "project", OFF)
    answer(tmp_path, is_agreed=True)
    (record,) = (tmp_path / "ann").rglob("trusted.json")
    record.write_bytes(content)
    assert is_cached(tmp_path)


def test_another_project_with_the_same_file_is_asked_about(tmp_path: Path) -> None:
    write(tmp_path / "project", OFF)
    answer(tmp_path, is_agreed=True)
    write(tmp_path / "other", OFF)
    other = read_settings(SETTINGS_SECTIONS, root=tmp_path / "other", environ=environ(tmp_path))
    assert other.of(CacheSettings).enabled


def test_a_part_of_the_sections_goes_by_the_same_answer(tmp_path: Path) -> None:
    write(tmp_path / "project", OFF)
    for is_agreed in (False, True):
        answer(tmp_path, is_agreed=is_agreed)
        part = read_settings(
            [CacheSettings], root=tmp_path / "project", environ=environ(tmp_path), is_part=True
        )
        assert part.of(CacheSettings).enabled is not is_agreed
