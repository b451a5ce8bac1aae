"""The pictures of the page in the docs: `python -m tests.replay.picture` takes them anew, of the sample."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.page import build_page
from sevenfold.replay.report import build_replay_report
from tests.replay.browsing import CHROMIUM, DESKTOP, FLAGS
from tests.replay.reports import START

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SAMPLE = Path(str(files("sevenfold.replay") / "sample" / "session.jsonl"))


def sample_page() -> str:
    """As if it were the reader's own session: no path of the machine that takes the picture is in it."""
    file = read_account(SAMPLE, "claude-code", ReplayTerms())
    shown = Path("~/.claude/projects/-srv-tidewatch", f"{file.sessions[0].id}.jsonl")
    sessions = tuple(replace(session, path=shown) for session in file.sessions)
    return build_page(build_replay_report([replace(file, sessions=sessions)]), made_at=START)


def take_pictures() -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder, "page.html")
        path.write_text(sample_page(), encoding="utf-8")
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": DESKTOP, "height": 1080}, timezone_id="UTC")
        page.goto(path.as_uri())
        page.screenshot(path=FOLDER / "replay.png")
        page.locator(".plot .mark.break path").hover()
        page.locator(".panel").screenshot(path=FOLDER / "replay-session.png")
        browser.close()


if __name__ == "__main__":
    take_pictures()
