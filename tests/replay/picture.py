"""The pictures in the docs, taken anew.

    python -m tests.replay.picture                      # of the sample
    python -m tests.replay.picture SESSION.jsonl   # of a recorded session, without names and prompts

Takes the first screen of the page, the plot of the session, and the picture of `sevenfold replay --svg`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.advice import ReplayFindings, plan_advice
from sevenfold.replay.anonymous import anonymize_report
from sevenfold.replay.page import build_page
from sevenfold.replay.picture import draw_picture
from sevenfold.replay.report import build_replay_report
from sevenfold.replay.savings import read_saving
from sevenfold.store.foreign.transcripts import detect_agent
from tests.replay.browsing import CHROMIUM, DESKTOP, FLAGS
from tests.replay.reports import START

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SAMPLE = Path(str(files("sevenfold.replay") / "sample" / "session.jsonl"))


def read_sample() -> ReplayFindings:
    """As if it were the reader's own session: no path of the machine that takes the picture is in it."""
    file = read_account(SAMPLE, "claude-code", ReplayTerms())
    saving = read_saving(build_replay_report([file]), ReplayTerms())
    shown = Path("~/.claude/projects/-srv-tidewatch", f"{file.sessions[0].id}.jsonl")
    sessions = tuple(replace(session, path=shown) for session in file.sessions)
    report = build_replay_report([replace(file, sessions=sessions)])
    return ReplayFindings(report, saving, plan_advice(report, saving))


def read_session(path: Path) -> ReplayFindings:
    agent = detect_agent(path)
    if agent is None:
        raise SystemExit(f"error: {path} is no transcript")
    report = build_replay_report([read_account(path, agent, ReplayTerms())])
    saving, hidden = read_saving(report, ReplayTerms()), anonymize_report(report)
    sessions = tuple(
        replace(one, title=f"A session of {one.totals.calls} calls", project="", path=Path("session.jsonl"))
        for one in hidden.sessions
    )
    hidden = replace(hidden, sessions=sessions)
    return ReplayFindings(hidden, saving, plan_advice(hidden, saving))


def take_pictures(found: ReplayFindings) -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "replay-bill.svg").write_text(draw_picture(found.report, found.saving), encoding="utf-8")
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder, "page.html")
        path.write_text(build_page(found.report, made_at=START, findings=found), encoding="utf-8")
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(
            viewport={"width": DESKTOP, "height": 1080}, timezone_id="UTC", device_scale_factor=2
        )
        page.goto(path.as_uri())
        page.screenshot(path=FOLDER / "replay.png")
        page.locator(".plot").scroll_into_view_if_needed()
        mark = page.locator(".plot .mark.break path").first.bounding_box()
        assert mark is not None
        # In the middle of the plot, so that what is shown of the call hides no figure above it.
        page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + 230)
        page.locator(".panel").screenshot(path=FOLDER / "replay-session.png")
        browser.close()


if __name__ == "__main__":
    take_pictures(read_session(Path(sys.argv[1])) if len(sys.argv) > 1 else read_sample())
