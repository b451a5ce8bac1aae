"""Every setting has a reason beside it in the source and a row in docs/settings.md."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from sevenfold.cli.settings import SETTINGS_SECTIONS, format_value, read_setting_reasons
from sevenfold.core.settings import SettingSpec, SettingsSection, list_specs
from tests.contracts.source_tree import ROOT

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
SPECS = list_specs(SETTINGS_SECTIONS)


def section_classes(source: str) -> list[ast.ClassDef]:
    """Classes that declare settings: those with a SECTION."""
    if "SECTION" not in source:
        return []
    return [
        item
        for item in ast.walk(ast.parse(source))
        if isinstance(item, ast.ClassDef)
        and any(
            isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "SECTION" and line.value
            for line in item.body
        )
    ]


def fields_without_reason(section: ast.ClassDef) -> list[str]:
    reasoned = {
        ast.unparse(line.target)
        for line, after in pairwise(section.body)
        if isinstance(line, ast.AnnAssign)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
        and len(after.value.value.split()) >= 4
    }
    declared = [ast.unparse(line.target) for line in section.body if isinstance(line, ast.AnnAssign)]
    return [name for name in declared if name.islower() and name not in reasoned]


def modules() -> list[Path]:
    return sorted((ROOT / "src" / "sevenfold").rglob("*.py"))


def test_every_field_of_every_section_has_its_reason_under_it() -> None:
    found = {
        f"{path.stem}.{section.name}": fields_without_reason(section)
        for path in modules()
        for section in section_classes(path.read_text(encoding="utf-8"))
    }
    assert found
    assert {name: bare for name, bare in found.items() if bare} == {}


def test_a_field_without_its_reason_is_found() -> None:
    source = """
class Planted:
    SECTION: ClassVar[str] = "planted"
    good: int = limit(5)
    \"\"\"A reason of at least four words.\"\"\"
    thin: int = limit(5)
    \"\"\"Five.\"\"\"
    bare: int = limit(5)
"""
    assert fields_without_reason(section_classes(source)[0]) == ["thin", "bare"]


def test_every_section_in_the_source_is_resolved_at_the_edge() -> None:
    declared = {
        section.name for path in modules() for section in section_classes(path.read_text(encoding="utf-8"))
    }
    assert declared - {"Section", "NamedSection"} == {section.__name__ for section in SETTINGS_SECTIONS}


@pytest.mark.parametrize("section", SETTINGS_SECTIONS, ids=lambda section: section.SECTION)
def test_the_command_line_can_show_every_reason(section: type[SettingsSection]) -> None:
    reasons = read_setting_reasons(section)
    assert {item.name for item in fields(section)} <= set(reasons)


def row(spec: SettingSpec) -> str:
    found = re.search(rf"^\| `{re.escape(spec.name)}` \|.*$", chapter(spec.section.SECTION), re.MULTILINE)
    return found[0] if found else ""


def chapter(section: str) -> str:
    return PAGE.partition(f"### `[{section}")[2].partition("\n### ")[0]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key)
def test_every_setting_has_a_row_with_its_default_kind_and_reason(spec: SettingSpec) -> None:
    cells = [cell.strip() for cell in row(spec).split("|")]
    assert len(cells) == 6, f"docs/settings.md has no row for {spec.key}"
    _, _, default, kind, reason, _ = cells
    told = default.strip("`")
    assert told == ("unset" if spec.default is None else format_value(spec.default))
    assert kind == spec.kind.name
    assert len(reason.split()) >= 4


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key)
def test_every_alias_is_told(spec: SettingSpec) -> None:
    assert spec.variable is None or spec.variable in PAGE or "SEVENFOLD_<SECTION>_<NAME>" in PAGE
    for variable in filter(None, (spec.alias, spec.off_by)):
        assert f"`{variable}`" in PAGE


def test_the_page_tells_of_no_setting_that_is_not_there() -> None:
    for section in SETTINGS_SECTIONS:
        told = re.findall(r"^\| `(\w+)` \|", chapter(section.SECTION), re.MULTILINE)
        assert told == [spec.name for spec in SPECS if spec.section is section]
    chapters = re.findall(r"^### `\[(\w+)", PAGE, re.MULTILINE)
    assert chapters == [section.SECTION for section in SETTINGS_SECTIONS]
