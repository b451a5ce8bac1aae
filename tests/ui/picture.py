"""The picture of the page in the docs, taken again: `python -m tests.ui.picture`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from sevenfold.ui.app import PageServer
from sevenfold.ui.pages import open_pages
from tests.replay.browsing import CHROMIUM, FLAGS
from tests.ui.conftest import Shown
from tests.ui.example import make_machine

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "ui-session.png"

# No path of the machine that takes the picture is in it.
HIDE_FOLDER = """folder => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(folder, "/home/ada");
}"""


def take_picture() -> None:
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder:
        machine = make_machine(Path(folder))
        machine.add_sample()
        with machine.workspace() as workspace, open_pages(workspace) as pages, sync_playwright() as driver:
            server = PageServer(pages.make_app, 0)
            server.start()
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 900}, timezone_id="UTC")
            shown = Shown(page, server.url)
            page.goto(server.access.make_link())
            shown.wait()
            shown.open_session()
            page.evaluate(HIDE_FOLDER, folder)
            page.screenshot(path=PICTURE)
            browser.close()
            server.stop()


if __name__ == "__main__":
    take_picture()
