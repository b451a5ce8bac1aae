"""How the page looks in a real browser: on a phone, in the dark, to a screen reader, and by its goldens."""

from __future__ import annotations

import base64
import os
import subprocess
import tarfile
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import expect

from tests.replay.browsing import DESKTOP, PHONE, Scheme
from tests.replay.test_page_looks import FAINT_TEXT, SIDEWAYS
from tests.ui.conftest import Running, Shown
from tests.ui.test_page_browser import PLACES

pytestmark = pytest.mark.story

GOLDEN = Path(__file__).parent / "golden"
BLOCK_PX = 20
"""Pictures are compared by the mean colour of blocks of this size: another font moves letters, not blocks."""
MAX_OTHER_BLOCKS = 0.03
MAX_COLOUR_STEP = 24
# `WRITE_GOLDEN=1 python -m pytest tests/ui/test_page_looks.py -k golden` takes the pictures anew.

# Both pictures drawn small: the share of blocks whose colours differ.
COMPARE = """async ([one, other, size, step]) => {
  const read = async (data) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const width = Math.max(1, Math.round(bitmap.width / size));
    const height = Math.max(1, Math.round(bitmap.height / size));
    const canvas = new OffscreenCanvas(width, height).getContext("2d");
    canvas.imageSmoothingQuality = "high";
    canvas.drawImage(bitmap, 0, 0, width, height);
    return { width, height, data: canvas.getImageData(0, 0, width, height).data };
  };
  const [first, second] = [await read(one), await read(other)];
  if (first.width !== second.width || Math.abs(first.height - second.height) > 2) return 1;
  let other_blocks = 0;
  const count = Math.min(first.data.length, second.data.length) / 4;
  for (let place = 0; place < count; place += 1) {
    const far = [0, 1, 2].some((part) =>
      Math.abs(first.data[4 * place + part] - second.data[4 * place + part]) > step);
    if (far) other_blocks += 1;
  }
  return other_blocks / count;
}"""


def open_all(shown: Shown) -> None:
    """Whatever is folded on this page."""
    shown.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    shown.page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("width", [320, PHONE, 768, DESKTOP, 1920])
def test_nothing_sticks_out_at_the_side_of_any_page(ui: Running, width: int) -> None:
    shown = ui.open(width=width)
    for place in (*PLACES, "memory/hostile.md"):
        shown.go(place)
        open_all(shown)
        assert (place, shown.page.evaluate(SIDEWAYS)) == (place, [0, []])
    shown.open_session()
    assert shown.page.evaluate(SIDEWAYS) == [0, []]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_controls_have_names_on_every_page(ui: Running, scheme: Scheme) -> None:
    shown = ui.open(scheme=scheme)
    for place in (*PLACES, "memory/release.md", ""):
        if place:
            shown.go(place)
        else:
            shown.open_session()
        open_all(shown)
        seen, faint = cast("tuple[int, list[str]]", shown.page.evaluate(FAINT_TEXT))
        assert (place, faint) == (place, [])
        assert seen > 15
        nameless = shown.page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, textarea, a, [role]")]
              .filter((node) => node.checkVisibility() && !["presentation", "status"].includes(node.role))
              .filter((node) => !(node.innerText?.trim() || node.ariaLabel || node.labels?.length))
              .map((node) => node.outerHTML.slice(0, 120))"""
        )
        assert (place, nameless) == (place, [])
        ids = cast(
            "list[str]", shown.page.evaluate("[...document.querySelectorAll('[id]')].map((n) => n.id)")
        )
        assert len(ids) == len(set(ids))
        script = "[...document.querySelectorAll('main h1,main h2,main h3')].map((node) => +node.tagName[1])"
        levels = cast("list[int]", shown.page.evaluate(script))
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize(
    ("place", "width", "scheme"),
    [("recall", DESKTOP, "light"), ("review", PHONE, "dark")],
    ids=["recall", "review"],
)
def test_a_page_looks_like_its_golden(ui: Running, place: str, width: int, scheme: Scheme) -> None:
    shown = ui.open(place, width, scheme)
    if place == "recall":
        shown["#prompt"].fill("how do we release a version?")
        shown.page.get_by_role("button", name="What would it bring?").click()
        expect(shown["#recalled h2"]).to_contain_text("2 memories")
    shown["main"].click(position={"x": 2, "y": 2})
    picture = shown["main"].screenshot(mask=[shown[".origin"]])
    path = GOLDEN / f"{place}.png"
    if os.environ.get("WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(picture)
    wanted = base64.b64encode(path.read_bytes()).decode()
    blank = shown.page.context.new_page()
    share = blank.evaluate(COMPARE, [wanted, base64.b64encode(picture).decode(), BLOCK_PX, MAX_COLOUR_STEP])
    assert share <= MAX_OTHER_BLOCKS


@pytest.mark.registry
def test_axe_finds_nothing_serious(ui: Running, tmp_path: Path) -> None:
    try:
        done = subprocess.run(
            ["npm", "pack", "axe-core@4", "--silent"],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
    except FileNotFoundError:
        pytest.skip("no npm on the path")
    if done.returncode:
        pytest.skip(f"axe-core cannot be fetched: {done.stderr[-200:]}")
    with tarfile.open(tmp_path / done.stdout.split()[-1]) as package:
        member = package.extractfile("package/axe.min.js")
        assert member is not None
        axe = member.read().decode()
    shown = ui.open()
    for place in (*PLACES, "memory/release.md", ""):
        if place:
            shown.go(place)
        else:
            shown.open_session()
        open_all(shown)
        shown.page.evaluate(axe)  # the policy of the page keeps a script tag from loading it
        found = shown.page.evaluate(
            """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
              .filter((one) => ["serious", "critical"].includes(one.impact))
              .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))])"""
        )
        assert (place, found) == (place, [])
