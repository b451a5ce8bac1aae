"""The code is clean under strict type checking, warnings included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contracts.house import CODE, ROOT, run, tool

pytestmark = pytest.mark.gate


def test_strict_types_hold_in_source_tests_and_benchmarks() -> None:
    done = run([tool("basedpyright"), "--warnings", *CODE])
    assert done.returncode == 0, done.stdout
    assert "0 errors, 0 warnings" in done.stdout


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ('def size(text: str) -> int:\n    return text + ""\n', "reportReturnType"),
        ("def first(items: list) -> int:\n    return len(items)\n", "reportMissingTypeArgument"),
        ("def same(x) -> int:\n    return 1 if x else 0\n", "reportMissingParameterType"),
        ("def keep(x: int) -> int:\n    return x  # type: ignore[return-value]\n", "reportUnnecessary"),
    ],
    ids=["wrong", "half typed", "untyped", "needless ignore"],
)
def test_a_loose_type_is_found(tmp_path: Path, code: str, rule: str) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "planted.py").write_text(code, encoding="utf-8")
    done = run([tool("basedpyright"), "--warnings", "--outputjson", "--project", str(project)], cwd=tmp_path)
    found = {str(item["rule"]) for item in json.loads(done.stdout)["generalDiagnostics"]}
    assert done.returncode != 0
    assert any(name.startswith(rule) for name in found), found
