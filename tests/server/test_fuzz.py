"""A short run of Schemathesis; the long one is `python -m tests.torture --only server-api --long`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.server.database import Database
from tests.server.fuzz import run_schemathesis

pytestmark = pytest.mark.story


def test_no_request_that_schemathesis_makes_is_answered_out_of_schema_or_with_a_bug(
    database: Database, tmp_path: Path
) -> None:
    fuzzed = run_schemathesis(database, tmp_path, examples=10, seed=1)
    assert fuzzed.cases > 500, fuzzed.report
    assert (fuzzed.failures, fuzzed.server_errors, fuzzed.bugs) == (0, 0, ()), fuzzed.report
