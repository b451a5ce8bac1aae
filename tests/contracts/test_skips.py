"""Where `SEVENFOLD_NO_SKIP` is set, a test that was skipped has failed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT, run

pytestmark = pytest.mark.gate

ONE_SKIPS = (
    "import pytest\n\ndef test_skips():\n    pytest.skip('no strace')\n\ndef test_runs():\n    assert 1\n"
)
MARKED = "import pytest\n\n@pytest.mark.skipif(True, reason='no strace')\ndef test_skips():\n    assert 1\n"
MODULE_SKIPS = "import pytest\n\npytest.skip('no strace', allow_module_level=True)\n"
XFAILS = "import pytest\n\n@pytest.mark.xfail(reason='known')\ndef test_fails():\n    assert 0\n"


PLANTED = {"call": ONE_SKIPS, "mark": MARKED, "module": MODULE_SKIPS, "expected": XFAILS}


def pytest_run(folder: Path, *, strict: bool) -> tuple[int, str]:
    """All of them in one run, since pytest takes seconds to start."""
    (folder / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
    for name, code in PLANTED.items():
        (folder / f"test_{name}.py").write_text(code, encoding="utf-8")
    options = ["-q", "-rs", "-p", "no:cacheprovider", "--rootdir", ".", "--continue-on-collection-errors"]
    done = run(
        [sys.executable, "-m", "pytest", *options],
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


@pytest.mark.story
def test_a_skip_passes_where_tests_may_be_skipped(tmp_path: Path) -> None:
    code, told = pytest_run(tmp_path, strict=False)
    assert code == 0, told
    assert "1 passed, 3 skipped, 1 xfailed" in told


@pytest.mark.story
def test_a_skip_fails_where_nothing_may_be_skipped_and_an_expected_failure_does_not(tmp_path: Path) -> None:
    code, told = pytest_run(tmp_path, strict=True)
    assert code == 1, told
    # What is skipped before it runs, by a mark or by its module, is an error.
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in told
    assert told.count("skipped where nothing may be skipped (SEVENFOLD_NO_SKIP)") == 3
    assert told.count("no strace") >= 3
