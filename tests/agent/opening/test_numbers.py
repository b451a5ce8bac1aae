"""No number in a file that somebody else wrote stops a program: it counts, or it is refused with a reason."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.hooks.config import HOOK_TIMEOUTS, parse_hooks, read_hook_sources
from sevenfold.agent.mcp.servers import MCP_PROJECT_FILE, read_project_file
from sevenfold.agent.subagents.definition_files import parse_definition
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.json import read_object
from sevenfold.core.settings import SettingSpec, SettingsSection, list_specs
from sevenfold.core.settings.kinds import IntegerKind
from sevenfold.core.settings.sections import HookSettings
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.project.instructions import InstructionPaths
from sevenfold.store.project.settings_files import COMMITTED_SETTINGS_FILE, read_settings

T = TypeVar("T")
SPECS = list_specs(SETTINGS_SECTIONS)
INTEGERS = [spec for spec in SPECS if isinstance(spec.kind, IntegerKind)]
UNITS = ("seconds", "minutes", "hours", "days")

NASTY = (
    *("0", "-1", "-0", "1" + "0" * 15, "1" + "0" * 400, "-" + "9" * 400, "9" * 5_000, "-" + "9" * 5_000),
    *("1e400", "-1e400", "1e-400", "0.1", "1" + "0" * 5_000 + ".5", "1e99999999", "-1e-99999999", "1E+5"),
)
TOML_ONLY = ("nan", "-nan", "inf", "-inf", "+inf", "0x" + "f" * 400, "1_000", "0o777", "true", '"9"', "[1]")
JSON_ONLY = ("NaN", "Infinity", "-Infinity", "true", "null", '"9"', "[1]", '{"a": 1}')

written = st.one_of(
    st.integers().map(str),
    st.integers(-(10**400), 10**400).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(NASTY),
)


def hooks(timeout: str) -> str:
    return f'{{"hooks": {{"Stop": [{{"hooks": [{{"command": "x", "timeout": {timeout}}}]}}]}}}}'


def attempt(read: Callable[[], T], *, most_chars: int = 1_000) -> T | None:
    """What is read; None where it was refused, in a message of a reasonable length."""
    said = ""
    try:
        return read()
    except SevenfoldError as error:
        said = str(error)
    assert 0 < len(said) < most_chars
    return None


def check_hooks(timeout: str) -> None:
    found = attempt(lambda: parse_hooks(read_object(hooks(timeout)), source="f", dialect="own"))
    if found is None:
        return
    (hook,) = found.hooks
    assert timedelta() < hook.limit <= timedelta(hours=1)
    is_usual = hook.limit == HOOK_TIMEOUTS.get("Stop", timedelta(minutes=10))
    assert found.problems or not is_usual or timeout in ("null", "600", "600.0")
    assert all(len(problem) < 200 for problem in found.problems)


@given(timeout=written)
def test_any_timeout_of_a_hook_is_used_or_told(timeout: str) -> None:
    check_hooks(timeout)


@pytest.mark.parametrize("matcher", ["(" * 2_000, "a{99999999999999999999}"])
def test_no_matcher_stops_a_start(matcher: str) -> None:
    groups = [{"matcher": matcher, "hooks": [{"type": "command", "command": "true"}]}]
    found = parse_hooks(read_object(json.dumps({"hooks": {"PreToolUse": groups}})), source="f", dialect="own")
    assert found.hooks == []
    (problem,) = found.problems
    assert "no regular expression" in problem
    assert len(problem) < 300


@pytest.mark.parametrize("timeout", [*NASTY, *JSON_ONLY])
def test_these_timeouts_are_used_or_told(timeout: str, tmp_path: Path) -> None:
    check_hooks(timeout)
    folders = InstructionPaths(home=tmp_path / "home", user_home=tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/hooks.json").write_text(hooks(timeout))
    (source,) = read_hook_sources(HookSettings(), folders)
    assert source.found.hooks or source.found.problems


@pytest.mark.parametrize("number", [*NASTY, *JSON_ONLY])
@pytest.mark.parametrize("key", ["command", "args", "env", "url", "headers", "timeout", "type"])
def test_numbers_in_a_file_of_servers_are_refused_or_ignored(tmp_path: Path, key: str, number: str) -> None:
    path = tmp_path / MCP_PROJECT_FILE
    path.write_text(f'{{"mcpServers": {{"x": {{"command": "y", {json.dumps(key)}: {number}}}}}}}')
    found = attempt(lambda: read_project_file(path, tmp_path))
    assert found is None or set(found.servers) == {"x"}


@pytest.mark.parametrize("number", [*NASTY, *TOML_ONLY, "2026-13-45", "0x_", "99999-01-01"])
@pytest.mark.parametrize("key", ["name", "description", "tools", "model", "mode", "memory"])
def test_numbers_in_an_agents_head_are_words_or_refused(key: str, number: str) -> None:
    head = {"name": "a", "description": "Works.", key: number}
    text = "---\n" + "".join(f"{name}: {value}\n" for name, value in head.items()) + "---\nWork."
    found = attempt(lambda: parse_definition(text, "project", Path("a.md")))
    assert found is None or found.prompt == "Work."


PLAIN = [spec for spec in SPECS if not spec.is_named]


@pytest.mark.parametrize("file", [".sevenfold/settings.toml", f"project/{COMMITTED_SETTINGS_FILE}"])
@pytest.mark.parametrize("spelled", [*NASTY, *TOML_ONLY])
def test_any_number_in_a_settings_file_counts_or_is_refused(tmp_path: Path, file: str, spelled: str) -> None:
    """Of every setting at once. A user's file is one error that names them; a committed one stops nobody."""
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = {spec.section.SECTION: "" for spec in PLAIN}
    for spec in PLAIN:
        tables[spec.section.SECTION] += f"{spec.name} = {spelled}\n"
    path.write_text("".join(f"[{section}]\n{table}" for section, table in tables.items()))
    found = attempt(
        lambda: read_settings(
            SETTINGS_SECTIONS,
            root=tmp_path / "project",
            environ={"HOME": str(tmp_path)},
            managed_file=tmp_path / "none.toml",
        ),
        most_chars=8_000,
    )
    assert (found is None) is file.startswith(".sevenfold")


@pytest.mark.parametrize("spelled", [*NASTY, *TOML_ONLY, "\u0661\u0662", "1" * 31])
def test_any_number_in_the_environment_counts_or_is_refused(tmp_path: Path, spelled: str) -> None:
    environ = {spec.variable: spelled for spec in PLAIN if spec.variable}
    attempt(
        lambda: read_settings(
            SETTINGS_SECTIONS,
            root=None,
            environ={**environ, "HOME": str(tmp_path)},
            managed_file=tmp_path / "none.toml",
        ),
        most_chars=8_000,
    )


@pytest.mark.parametrize("raw", [-1, 10**400, Decimal("nan"), Decimal("inf"), float("nan"), 0.5, True])
def test_no_integer_setting_takes_such_a_number(raw: object) -> None:
    assert [spec.key for spec in INTEGERS if spec.kind.read(raw) is not None] == []


DURATIONS = [spec for spec in INTEGERS if spec.name.endswith(tuple(f"_{unit}" for unit in UNITS))]


@pytest.mark.parametrize("spec", DURATIONS, ids=lambda spec: spec.key)
def test_the_longest_duration_fits_a_date_and_a_lock(spec: SettingSpec) -> None:
    most = cast("IntegerKind", spec.kind).at_most
    longest = timedelta(**{spec.name.rpartition("_")[2]: most})
    assert datetime.now(UTC) - longest < datetime.now(UTC) < datetime.now(UTC) + longest
    assert longest.total_seconds() < threading.TIMEOUT_MAX


@pytest.mark.parametrize("section", SETTINGS_SECTIONS, ids=lambda section: section.SECTION)
@pytest.mark.parametrize("end", ["at_least", "at_most"])
def test_what_a_section_computes_holds_at_either_end(section: type[SettingsSection], end: str) -> None:
    own = {spec.name: getattr(spec.kind, end) for spec in INTEGERS if spec.section is section}
    names = {item.name for item in fields(section)}
    computed = [
        [
            getattr(replace(section(), **own), name)
            for name, member in vars(section).items()
            if isinstance(member, property) and name not in names
        ]
        for _ in range(2)
    ]
    assert computed[0] == computed[1]
