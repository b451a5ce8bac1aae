"""Where `SEVENFOLD_NO_SKIP` is set, a test that was skipped has failed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.contracts.house import ROOT, run

pytestmark = pytest.mark.gate

ONE_SKIPS = (
    "import pytest\n\ndef test_skips():\n    pytest.skip('no strace')\n\ndef test_runs():\n    assert 1\n"
)
MARKED = "import pytest\n\n@pytest.mark.skipif(True, reason='no strace')\ndef test_skips():\n    assert 1\n"
MODULE_SKIPS = "import pytest\n\npytest.skip('no strace', allow_module_level=True)\n"
XFAILS = "import pytest\n\n@pytest.mark.xfail(reason='known')\ndef test_fails():\n    assert 0\n"


def pytest_run(folder: Path, code: str, *, strict: bool) -> tuple[int, str]:
    (folder / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
    (folder / "test_planted.py").write_text(code, encoding="utf-8")
    done = run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir", "."],
        cwd=folder,
        # The conftest that was copied imports from the tests' own folder.
        env={
            "SEVENFOLD_NO_SKIP": "1" if strict else "",
            "PYTHONPATH": str(ROOT),
            # Most of the time would go into plugins that have no part in this.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("code", [ONE_SKIPS, MARKED, MODULE_SKIPS], ids=["call", "mark", "module"])
def test_a_skip_fails_only_where_nothing_may_be_skipped(tmp_path: Path, code: str) -> None:
    lenient, _ = pytest_run(tmp_path, code, strict=False)
    strict, told = pytest_run(tmp_path, code, strict=True)
    assert lenient in (0, 5), "5: nothing was left to run"
    assert strict in (1, 2)
    assert "no strace" in told
    assert "SEVENFOLD_NO_SKIP" in told


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    code, told = pytest_run(tmp_path, XFAILS, strict=True)
    assert code == 0
    assert "1 xfailed" in told
