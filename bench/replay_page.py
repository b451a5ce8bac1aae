"""How large the page of many sessions is, how long it takes to make, and how long a browser takes to draw it.

The sessions are the sample's, made as long as a plot gets: 320 points and twenty breaks each. Drawing is from
the start of navigation until everything is laid out and painted, in headless Chromium on this machine. It is
time on the clock, so other work on the machine counts; beside it stand what the page's own thread computed,
and what an empty page takes in the same run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import TypedDict, cast

from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.advice import ReplayFindings, plan_advice
from sevenfold.replay.calls import BREAK_CAUSES, CacheBreak
from sevenfold.replay.context_fill import MAX_SERIES_POINTS, SeriesPoint
from sevenfold.replay.page import build_page
from sevenfold.replay.report import FileReport, ReplayReport, SessionReport, build_replay_report

START = datetime(2026, 11, 3, 10, tzinfo=UTC)
BREAKS = 20
RUNS = 5
"""The median leaves out what the machine did meanwhile."""
MOST_MB = 5.0
MOST_DRAW_S = 1.0

# Two frames later everything has been painted once.
PAINTED = """() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(
  () => resolve(performance.now()))))"""


class Metric(TypedDict):
    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    sessions: int
    megabytes: float
    make_s: float
    draw_s: float | None
    """None where there is no Chromium."""
    busy_s: float | None
    """Of the processor, by the page's own thread."""
    empty_s: float | None
    """An empty page, drawn in turn with ours: the machine's share."""
    elements: int | None

    @property
    def is_met(self) -> bool:
        return self.megabytes < MOST_MB and (self.draw_s is None or self.draw_s < MOST_DRAW_S)


def make_report(count: int) -> ReplayReport:
    path = Path(str(files("sevenfold.replay") / "sample" / "session.jsonl"))
    sample = read_account(path, "claude-code", ReplayTerms())
    sessions = tuple(_stretched(sample.sessions[0], place) for place in range(count))
    return build_replay_report(
        [FileReport(path=path, agent="claude-code", lines=sample.lines, sessions=sessions)]
    )


def measure_page(count: int) -> Figures:
    report = make_report(count)
    times: list[float] = []
    page = ""
    for _ in range(RUNS):
        began = time.perf_counter()
        findings = ReplayFindings(report, None, plan_advice(report))
        page = build_page(report, made_at=START, findings=findings)
        times.append(time.perf_counter() - began)
    megabytes = len(page.encode()) / 1e6
    chromium = shutil.which("chromium")
    if chromium is None:
        return Figures(
            sessions=count,
            megabytes=megabytes,
            make_s=median(times),
            draw_s=None,
            busy_s=None,
            empty_s=None,
            elements=None,
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        path.write_text(page, encoding="utf-8")
        empty = Path(folder, "empty.html")
        empty.write_text("<!doctype html><title>Empty</title>", encoding="utf-8")
        drawn, idle = list[_Drawn](), list[_Drawn]()
        for _ in range(RUNS):
            drawn.append(_draw(chromium, path))
            idle.append(_draw(chromium, empty))
    return Figures(
        sessions=count,
        megabytes=megabytes,
        make_s=median(times),
        draw_s=median(item.seconds for item in drawn),
        busy_s=median(item.busy_s for item in drawn),
        empty_s=median(item.seconds for item in idle),
        elements=drawn[0].elements,
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    seconds: float
    busy_s: float
    elements: int


def _draw(chromium: str, path: Path) -> _Drawn:
    from playwright.sync_api import sync_playwright

    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
    ]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        tools = page.context.new_cdp_session(page)
        ask = cast("Callable[..., dict[str, list[Metric]]]", tools.send)
        ask("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        drawn_ms = cast("float", page.evaluate(PAINTED))
        elements = cast("int", page.evaluate("document.querySelectorAll('*').length"))
        metrics = ask("Performance.getMetrics")["metrics"]
        busy = next(item["value"] for item in metrics if item["name"] == "TaskDuration")
        browser.close()
    return _Drawn(drawn_ms / 1000, busy, elements)


def _stretched(session: SessionReport, place: int) -> SessionReport:
    points = tuple(
        SeriesPoint(
            call=call,
            at=START + timedelta(seconds=47 * call),
            prompt_tokens=21_337 + 431 * call,
            read_tokens=20_011 + 429 * call,
        )
        for call in range(MAX_SERIES_POINTS)
    )
    breaks = tuple(
        CacheBreak(
            at=START + timedelta(seconds=47 * 16 * number),
            cause=BREAK_CAUSES[number % len(BREAK_CAUSES)],
            lost_tokens=12_345 + 977 * number,
            lost_usd=Decimal("0.123456"),
            gap=timedelta(seconds=421),
            life=timedelta(minutes=5),
            model="claude-opus-5-5",
            prompt_tokens=123_456,
            read_tokens=12_345,
        )
        for number in range(BREAKS)
    )
    name = f"{place:08x}{session.id[8:]}"
    return replace(
        session, id=name, path=session.path.with_name(f"{name}.jsonl"), series=points, breaks=breaks
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure_page(cast("int", options.sessions))
    if options.json:
        print(json.dumps(asdict(found)))
    else:
        draw = "no chromium here" if found.draw_s is None else f"{found.draw_s:.2f} s (bar {MOST_DRAW_S} s)"
        print(f"{found.sessions} sessions: {found.megabytes:.2f} MB (bar {MOST_MB} MB)")
        print(f"made in {found.make_s:.2f} s, drawn in {draw}")
        if found.busy_s is not None:
            print(f"an empty page takes {found.empty_s:.2f} s here; ours worked {found.busy_s:.2f} s")
    return 0 if found.is_met else 1


if __name__ == "__main__":
    sys.exit(main())
