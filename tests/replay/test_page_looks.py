"""How the page looks in a real browser: on a phone, in the dark, on paper, and to who cannot see it."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest
from playwright.sync_api import expect

from sevenfold.replay.report import ReplayReport
from tests.replay.browsing import DESKTOP, PHONE, Open, Scheme
from tests.replay.reports import ENDLESS, Story, hostile_report, large_report, report_of, rich_report

pytestmark = pytest.mark.story

WIDTHS = (320, PHONE, 768, DESKTOP)

# Text against what is behind it, as WCAG counts it: 4.5 to 1, for large text 3 to 1.
FAINT_TEXT = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [red, green, blue] = colour.map((part) => linear(part / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgba(getComputedStyle(node).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const node = walker.currentNode.parentElement;
    if (!text || !node.checkVisibility() || node.closest(":disabled, script")) continue;
    const style = getComputedStyle(node);
    const ink = light(rgba(node instanceof SVGElement ? style.fill : style.color));
    const ground = light(behind(node));
    const ratio = Math.max(ink, ground) / Math.min(ink, ground);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    seen += 1;
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${text}: ${ratio.toFixed(2)}`);
  }
  return [seen, found];
}"""

# How far the page can be moved sideways, and what sticks out, unless a box of its own scrolls or clips it.
SIDEWAYS = """() => [
  document.documentElement.scrollWidth - innerWidth,
  [...document.querySelectorAll("main *, header *")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest(".unseen, svg"))
    .filter((node) => {
      for (let up = node.parentElement; up; up = up.parentElement) {
        if (getComputedStyle(up).overflowX !== "visible") return false;
      }
      return true;
    })
    .map((node) => node.outerHTML.slice(0, 90)),
]"""


def test_every_control_has_a_name_and_every_id_is_one(open_page: Open) -> None:
    opened = open_page(rich_report())
    nameless = opened.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [role], [tabindex]:not(section)")]
          .filter((node) => !(node.innerText?.trim() || node.ariaLabel || node.labels?.length))
          .filter((node) => !["presentation", "status", "option"].includes(node.role))
          .map((node) => node.outerHTML)"""
    )
    assert nameless == []
    ids = cast(
        "list[str]", opened.page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    )
    assert len(ids) == len(set(ids))
    levels = cast(
        "list[int]",
        opened.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((node) => +node.tagName[1])"),
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(open_page: Open, scheme: Scheme) -> None:
    opened = open_page(rich_report(), scheme=scheme)
    opened[".chip"].nth(1).click()
    opened[".plot"].focus()
    opened.page.keyboard.press("PageDown")
    seen, faint = cast("tuple[int, list[str]]", opened.page.evaluate(FAINT_TEXT))
    assert faint == []
    assert seen > 200
    ground = opened["body"].evaluate("node => getComputedStyle(node).backgroundColor")
    assert (ground == "rgb(16, 20, 22)") == (scheme == "dark")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("report", [rich_report(), hostile_report(ENDLESS)], ids=["usual", "endless words"])
def test_nothing_sticks_out_at_the_side(open_page: Open, report: ReplayReport, width: int) -> None:
    assert open_page(report, width).page.evaluate(SIDEWAYS) == [0, []]


@pytest.mark.parametrize("width", WIDTHS)
def test_large_sums_stay_on_their_cards(open_page: Open, width: int) -> None:
    opened = open_page(report_of(Story(usd=123_456.78, estimated=1)), width)
    assert opened.texts("#cards .value")[:2] == ["~$123,456.78", "~$617,283.90"]
    spilled = (
        "nodes => nodes.filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.innerText)"
    )
    assert opened["#cards .value"].evaluate_all(spilled) == []


def test_paper_shows_figures_and_no_controls(open_page: Open) -> None:
    opened = open_page(rich_report(), scheme="dark")
    opened.page.emulate_media(media="print", color_scheme="light")
    for control in ("nav", ".picker", ".tools", ".skip", "#breaks .more"):
        opened.expect_hidden(control)
    expect(opened["#breaks tbody tr"]).to_have_count(6)
    expect(opened[".plot"]).to_be_visible()


def test_every_session_is_on_paper(open_page: Open) -> None:
    opened = open_page(large_report(120))
    expect(opened["#roll tbody tr"]).to_have_count(40)
    opened.page.emulate_media(media="print")
    expect(opened["#roll tbody tr"]).to_have_count(120)
    opened.expect_hidden("#roll .more")
    assert opened.page.pdf().startswith(b"%PDF")
