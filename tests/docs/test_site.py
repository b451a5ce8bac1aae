"""The site of the docs can be built offline, and none of its links leads nowhere."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import site
from tests.contracts.source_tree import ROOT, tracked_files

pytestmark = pytest.mark.gate

NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]


def test_every_page_is_in_the_navigation_once() -> None:
    docs = ROOT / "docs"
    pages = {
        path.relative_to(docs).as_posix()
        for path in tracked_files()
        if path.suffix == ".md" and docs in path.parents
    }
    listed = re.findall(r": (\S+\.md)$", NAV, re.MULTILINE)
    assert sorted(listed) == sorted(set(listed))
    assert {page for page in pages if not page.startswith("decisions/")} == set(listed) - {
        "decisions/index.md"
    }


def test_links_out_of_the_docs_lead_to_the_repository() -> None:
    page = ROOT / "docs" / "layers" / "recall.md"
    text = "[a](../memory.md) [b](../../src/x.md#c) [c](https://a.b/) [d](#e) [f](../decisions)"
    assert site.point_outside(text, page, "https://r") == (
        "[a](../memory.md) [b](https://r/blob/main/src/x.md#c) [c](https://a.b/) [d](#e) "
        "[f](../decisions/index.md)"
    )


def test_a_link_that_leads_nowhere_and_a_foreign_script_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html"></a><a href="#here"></a><a href="#there"></a>'
        '<a href="nowhere.html"></a><script src="https://cdn.example/x.js"></script>'
        '<a href="b.html#gone"></a>'
    )
    (tmp_path / "b.html").write_text("<p>")
    assert list(site.find_problems(tmp_path)) == [
        "a.html loads https://cdn.example/x.js",
        "a.html links to #there",
        "a.html links to nowhere.html",
        "a.html links to b.html#gone",
    ]


@pytest.mark.story
@pytest.mark.skipif(find_spec("zensical") is None, reason="zensical is not installed")
def test_the_site_is_built_without_a_broken_link_and_with_a_search_index(tmp_path: Path) -> None:
    assert site.build(tmp_path) == []
    built = tmp_path / "site"
    assert "sevenfold.session.session.Session.open" in (built / "api.html").read_text(encoding="utf-8")
    assert "prompt cache" in (built / "search.json").read_text(encoding="utf-8")


def test_every_route_of_the_team_server_is_in_the_reference() -> None:
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    routes = {(verb.upper(), path) for path, verbs in paths.items() for verb in verbs if verb != "parameters"}
    page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([A-Z]+) \| `(\S+)`", page, re.MULTILINE)) == routes


def test_every_public_name_is_in_the_reference() -> None:
    import sevenfold

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names = set(sevenfold.__all__) - {"__version__"}
    assert {
        name for name in names if f"`{name}`" not in page and f"{name}`" not in page and name not in page
    } == set()
