"""The code is clean under strict type checking, warnings included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contracts.source_tree import CODE, ROOT, run, tool

pytestmark = pytest.mark.gate


# Most of its memory does not live long: with more space for what is new, it spends less time on cleaning up.
ENVIRON = {"NODE_OPTIONS": "--max-semi-space-size=64"}


# Two minutes of work, and more where others use the machine too: `make check` and `make stories` run it.
@pytest.mark.story
@pytest.mark.timeout(1800)
def test_strict_types_hold() -> None:
    done = run([tool("basedpyright"), "--warnings", *CODE], env=ENVIRON)
    assert done.returncode == 0, done.stdout
    assert "0 errors, 0 warnings" in done.stdout


LOOSE = {
    "wrong": ('def size(text: str) -> int:\n    return text + ""\n', "reportReturnType"),
    "half": ("def first(items: list) -> int:\n    return len(items)\n", "reportMissingTypeArgument"),
    "untyped": ("def same(x) -> int:\n    return 1 if x else 0\n", "reportMissingParameterType"),
    "needless": (
        "def keep(x: int) -> int:\n    return x  # type: ignore[return-value]\n",
        "reportUnnecessaryTypeIgnoreComment",
    ),
}
"""Code by the name of its file, and the rule that finds it."""


def test_each_loose_type_is_found(tmp_path: Path) -> None:
    """In one run, since the tool takes seconds to start."""
    project = tmp_path / "pyproject.toml"
    project.write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "src").mkdir()
    for name, (code, _) in LOOSE.items():
        (tmp_path / "src" / f"{name}.py").write_text(code, encoding="utf-8")
    done = run([tool("basedpyright"), "--warnings", "--outputjson", "--project", str(project)], cwd=tmp_path)
    items = json.loads(done.stdout)["generalDiagnostics"]
    found = {(Path(str(item["file"])).stem, str(item["rule"])) for item in items if "rule" in item}
    assert done.returncode != 0
    assert {(name, rule) for name, (_, rule) in LOOSE.items()} - found == set(), found
