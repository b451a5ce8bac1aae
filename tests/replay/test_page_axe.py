"""What axe, the accessibility checker, finds in the page: nothing serious.

The checker is fetched from the npm registry for this test alone, or taken from the file that
`SEVENFOLD_TEST_AXE` names.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TypedDict, cast

import pytest

from tests.replay.browsing import DESKTOP, PHONE, Open, Scheme
from tests.replay.reports import large_report, report_of, rich_report

pytestmark = [pytest.mark.story, pytest.mark.registry]

PACKAGE = "axe-core@4.14.0"
SERIOUS = frozenset({"serious", "critical"})


class Violation(TypedDict):
    id: str
    impact: str
    help: str
    nodes: list[dict[str, object]]


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    given = os.environ.get("SEVENFOLD_TEST_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so axe-core cannot be had")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        ["npm", "pack", PACKAGE, "--json"], cwd=folder, capture_output=True, timeout=300, check=False
    )
    if done.returncode:
        pytest.skip(f"axe-core cannot be fetched from npm: {done.stderr[-300:].decode(errors='replace')}")
    name: str = json.loads(done.stdout)[0]["filename"]
    with tarfile.open(fileobj=io.BytesIO((folder / name).read_bytes())) as package:
        script = package.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode("utf-8")


@pytest.mark.parametrize(
    ("what", "width", "scheme"),
    [
        ("rich", DESKTOP, "light"),
        ("rich", DESKTOP, "dark"),
        ("rich", PHONE, "light"),
        ("large", DESKTOP, "light"),
    ],
)
def test_axe_finds_nothing_serious(open_page: Open, axe: str, what: str, width: int, scheme: Scheme) -> None:
    opened = open_page(rich_report() if what == "rich" else large_report(40), width, scheme)
    # Through the debugger: the policy of the page would refuse a script element.
    opened.page.evaluate(axe)
    found = cast(
        "list[Violation]",
        opened.page.evaluate(
            "axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations)"
        ),
    )
    told = [
        f"{item['id']}: {item['help']} ({len(item['nodes'])})" for item in found if item["impact"] in SERIOUS
    ]
    assert told == []


def test_axe_finds_what_is_planted(open_page: Open, axe: str) -> None:
    opened = open_page(report_of())
    opened.page.evaluate("document.body.append(document.createElement('button'))")
    opened.page.evaluate(axe)
    ids = opened.page.evaluate("axe.run(document).then((all) => all.violations.map((item) => item.id))")
    assert "button-name" in ids
