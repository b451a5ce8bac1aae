"""A short run of Schemathesis; the long one is `python -m tests.torture --only server-api --long`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.team.server.conftest import opened
from tests.team.server.fuzz import run_schemathesis
from tests.team.server.postgres import LocalPostgres

pytestmark = pytest.mark.story


def test_no_request_that_schemathesis_makes_is_answered_out_of_schema_or_with_a_bug(
    postgres: LocalPostgres, tmp_path: Path
) -> None:
    with opened(postgres.make_database("fuzzed")) as database:
        fuzzed = run_schemathesis(database, tmp_path, examples=10, seed=1)
    assert fuzzed.cases > 500, fuzzed.report
    assert (fuzzed.failures, fuzzed.server_errors, fuzzed.bugs) == (0, 0, ()), fuzzed.report
