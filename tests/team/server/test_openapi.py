"""The OpenAPI document is the one in docs/, says every answer, and names nothing that is not there."""

from __future__ import annotations

import json
from typing import cast

from sevenfold.team.server.http_api import ENDPOINTS
from sevenfold.team.server.operations import OPERATIONS
from tests.contracts.source_tree import ROOT
from tests.team.server.openapi import REFUSALS, make_document, statuses

PAGE = ROOT / "docs" / "openapi.json"


def test_the_page_in_docs_is_what_the_server_says_of_itself() -> None:
    # To write it anew: .venv/bin/python -m tests.team.server.test_openapi
    assert json.loads(PAGE.read_text(encoding="utf-8")) == json.loads(json.dumps(make_document()))


def test_every_operation_is_carried_out_and_described_once() -> None:
    health = {"is_alive", "is_ready", "metrics"}
    assert set(ENDPOINTS) | health == {one.name for one in OPERATIONS}
    paths = cast("dict[str, dict[str, dict[str, object]]]", make_document()["paths"])
    described = [one["operationId"] for methods in paths.values() for one in methods.values()]
    assert sorted(map(str, described)) == sorted(one.name for one in OPERATIONS)


def test_every_refusal_has_its_words() -> None:
    assert {status for one in OPERATIONS for status in statuses(one)} == set(REFUSALS)


if __name__ == "__main__":
    PAGE.write_text(json.dumps(make_document(), indent=1) + "\n", encoding="utf-8")
