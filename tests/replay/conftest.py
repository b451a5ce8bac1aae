"""A real browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sevenfold.replay.page import build_page
from sevenfold.replay.report import ReplayReport
from tests.replay.browsing import CHROMIUM, DESKTOP, FLAGS, PATIENCE_MS, Open, Opened, Scheme
from tests.replay.reports import START, find_all

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# No longer than a module: while it runs, its thread has an event loop, and no other test could start one.
@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on the path: install the package of that name")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE_MS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Generator[Open]:
    """Opens pages; afterwards none may have asked for anything, or have complained."""
    opened: list[Opened] = []

    def open_one(
        report: ReplayReport, width: int = DESKTOP, scheme: Scheme = "light", *, touch: bool = False
    ) -> Opened:
        path = tmp_path / f"{len(opened)}.html"
        path.write_text(build_page(report, made_at=START, findings=find_all(report)), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900 if width == DESKTOP else 800},
            color_scheme=scheme,
            timezone_id="Europe/Berlin",
            reduced_motion="reduce",
            has_touch=touch,
            is_mobile=touch,
        )
        context.set_default_timeout(PATIENCE_MS)
        one = Opened(context.new_page())
        one.page.on("request", lambda request: one.requests.append(request.url))
        one.page.on("console", lambda message: one.complaints.append(message.text))
        one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
        one.page.goto(path.as_uri())
        one["html[data-drawn=yes]"].wait_for(state="attached")
        opened.append(one)
        return one

    yield open_one
    for number, one in enumerate(opened):
        one.page.context.close()
        assert one.requests == [(tmp_path / f"{number}.html").as_uri()]
        assert one.complaints == []
