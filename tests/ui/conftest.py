"""A real browser for the tests of the page, and a machine with something on every page."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sevenfold.ui.app import PageServer
from sevenfold.ui.pages import UiPages, open_pages
from tests.replay.browsing import CHROMIUM, DESKTOP, FLAGS, PATIENCE_MS, Scheme
from tests.ui.example import Machine, make_machine

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

REBOUND = "evil.example"
"""A name that leads to 127.0.0.1, as one that an attacker controls does."""


@dataclass(slots=True)
class Running:
    """The page of a machine, served."""

    machine: Machine
    pages: UiPages
    server: PageServer
    browser: Browser
    contexts: list[BrowserContext] = field(default_factory=list["BrowserContext"])
    complaints: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])

    def open(self, place: str = "", width: int = DESKTOP, scheme: Scheme = "light") -> Shown:
        """A new browser, by a link of its own."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            timezone_id="UTC",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE_MS)
        self.contexts.append(context)
        shown = self.open_tab(context)
        shown.page.goto(self.server.access.make_link())
        shown.wait()
        if place:
            shown.go(place)
        return shown

    def open_tab(self, context: BrowserContext) -> Shown:
        page = context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return Shown(page, self.server.url)

    def close(self) -> None:
        for context in self.contexts:
            context.close()


@dataclass(slots=True)
class Shown:
    page: Page
    url: str

    def __getitem__(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def wait(self) -> None:
        self["html[data-drawn=yes]"].wait_for(state="attached")

    def go(self, place: str) -> None:
        """To a part of the page, drawn."""
        self.page.evaluate("document.documentElement.dataset.drawn = 'no'")
        self.page.evaluate("place => { location.hash = ''; location.hash = `#/${place}`; }", place)
        self.wait()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def open_session(self, number: int = 0) -> None:
        self.go("sessions")
        self["#session-rows a.row"].nth(number).click()
        self[".messages .message"].first.wait_for()


# No longer than a module: while it runs, its thread has an event loop, and no other test could start one.
@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on the path: install the package of that name")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    flags = [*FLAGS, f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"]
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=flags, timeout=PATIENCE_MS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def full_machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """With something on every page. Tests that change it undo that."""
    machine = make_machine(tmp_path_factory.mktemp("machine"))
    with ThreadPoolExecutor(1) as thread:  # the browser's loop runs in this one
        thread.submit(machine.fill).result()
    machine.add_proxy(os.getpid())
    return machine


Serve = Callable[[Machine], Running]


@pytest.fixture
def serve(browser: Browser) -> Generator[Serve]:
    """Serves the page of a machine; afterwards nothing may have been asked of anybody else, or complained."""
    running: list[Running] = []

    def start(machine: Machine) -> Running:
        workspace = machine.workspace()
        pages = open_pages(workspace.__enter__())
        opened = pages.__enter__()
        server = PageServer(opened.make_app, 0)
        server.start()
        one = Running(machine, opened, server, browser)
        running.append(one)
        closing.append(lambda: (pages.__exit__(None, None, None), workspace.__exit__(None, None, None)))
        return one

    closing: list[Callable[[], object]] = []
    yield start
    for one, close in zip(running, closing, strict=True):
        one.close()
        one.server.stop()
        close()
        assert one.complaints == []
        assert [url for url in one.requests if not url.startswith(f"{one.server.url}/")] == []


@pytest.fixture
def ui(serve: Serve, full_machine: Machine) -> Running:
    return serve(full_machine)


@pytest.fixture
def fresh_machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path)
