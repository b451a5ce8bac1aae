"""Pictures of the page, compared with those that a person has looked at.

Both are made small first, and some difference is allowed: fonts are not drawn alike on every machine. After a
change that is meant, `SEVENFOLD_WRITE_GOLDENS=1` writes them anew; look at them before you commit.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Page

from tests.replay.browsing import DESKTOP, PHONE, Open, Opened, Scheme
from tests.replay.reports import rich_report

pytestmark = pytest.mark.story

FOLDER = Path(__file__).parent / "golden"
WRITES = bool(os.environ.get("SEVENFOLD_WRITE_GOLDENS"))
GOLDEN_WIDTH = 240
MAX_CHANGED_SHARE = 0.06
"""Of the pixels of the small picture. A table that is gone, or a chart without its marks, changes more."""

# Two pictures at the size of the second: which part of the pixels is clearly another colour. Without a second
# one, the first at a given width.
COMPARE = """async ([actual, golden, width]) => {
  const load = async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    return image;
  };
  const paint = (image, across, down) => {
    const canvas = document.createElement("canvas");
    canvas.width = across;
    canvas.height = down;
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, across, down);
    return canvas;
  };
  const seen = await load(actual);
  if (!golden) {
    const small = paint(seen, width, Math.round((seen.height * width) / seen.width));
    return small.toDataURL("image/png").split(",")[1];
  }
  const known = await load(golden);
  const { width: across, height: down } = known;
  const pixels = (image) => paint(image, across, down).getContext("2d").getImageData(0, 0, across, down).data;
  const [one, other] = [seen, known].map(pixels);
  let changed = 0;
  for (let at = 0; at < one.length; at += 4) {
    changed += [0, 1, 2].some((part) => Math.abs(one[at + part] - other[at + part]) > 48);
  }
  const shape = seen.height / seen.width / (down / across);
  return [changed / (one.length / 4), Math.abs(shape - 1)];
}"""


def compare(page: Page, actual: bytes, name: str, *, writes: bool = False) -> tuple[float, float]:
    """The share of changed pixels, and by how much the shape differs."""
    path = FOLDER / f"{name}.png"
    # A blank page: that of the report lets no picture in.
    page.goto("about:blank")
    shown = b64encode(actual).decode()
    if writes:
        path.write_bytes(b64decode(cast("str", page.evaluate(COMPARE, [shown, "", GOLDEN_WIDTH]))))
    golden = b64encode(path.read_bytes()).decode()
    found = cast("tuple[float, float]", page.evaluate(COMPARE, [shown, golden, 0]))
    page.close()
    return found


@pytest.mark.parametrize(
    ("name", "width", "scheme", "part"),
    [
        ("page-top", DESKTOP, "light", None),
        ("page-dark", DESKTOP, "dark", None),
        ("page-phone", PHONE, "light", None),
        ("page-advice", DESKTOP, "light", "#advice"),
        ("page-sessions", DESKTOP, "light", "#sessions"),
        ("page-roll", DESKTOP, "light", "#roll"),
    ],
)
def test_the_page_looks_as_it_did(
    open_page: Open, name: str, width: int, scheme: Scheme, part: str | None
) -> None:
    opened = open_page(rich_report(), width, scheme)
    actual = opened[part].screenshot() if part else opened.page.screenshot()
    changed, stretched = compare(open_blank(opened), actual, name, writes=WRITES)
    assert changed <= MAX_CHANGED_SHARE, f"{changed:.1%} of {name}.png is not as it was"
    assert stretched <= 0.15


def open_blank(opened: Opened) -> Page:
    browser = opened.page.context.browser
    assert browser is not None
    return browser.new_page()


def test_a_page_without_its_chart_is_told_from_the_one_that_has_it(open_page: Open) -> None:
    opened = open_page(rich_report())
    opened.page.evaluate("document.querySelector('.plot').replaceChildren()")
    changed, _ = compare(open_blank(opened), opened["#sessions"].screenshot(), "page-sessions")
    assert changed > MAX_CHANGED_SHARE
