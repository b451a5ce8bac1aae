"""The page in a real browser: it draws, it answers, and nothing in it runs but our own script."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser, expect

from sevenfold.cli.screen import format_tokens, format_usd
from sevenfold.core.events import ModelUnknown
from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.bills import UNNAMED_MODEL
from sevenfold.replay.page import build_page
from sevenfold.replay.report import ReplayReport, build_replay_report
from tests.replay.browsing import PHONE, Open, Opened
from tests.replay.reports import (
    HOSTILE,
    START,
    Story,
    broke,
    climb,
    find_all,
    hostile_report,
    large_report,
    report_of,
    rich_report,
)

pytestmark = pytest.mark.story


@pytest.fixture(scope="module")
def sample() -> ReplayReport:
    path = Path(str(files("sevenfold.replay") / "sample" / "session.jsonl"))
    return build_replay_report([read_account(path, "claude-code", ReplayTerms())], origin="sample")


def test_the_sample_is_told_as_on_the_terminal(open_page: Open, sample: ReplayReport) -> None:
    opened = open_page(sample)
    totals = sample.totals
    values = opened.texts("#cards .value")
    assert values[0] == f"~{format_usd(totals.cost.total)}"
    assert values[1] == f"~{format_usd(totals.uncached_usd)}"
    assert values[2] == f"{totals.hit_rate:.1%}"
    assert values[3] == format_usd(sample.breaks[0].lost_usd)
    assert values[4] == "21%–28%"
    assert values[5] == format_tokens(sample.sessions[0].largest_prompt_tokens)
    expect(opened["h1"]).to_have_text(f"1 session cost {values[0]}")
    opened.expect_text("#notices", "this is the sample that comes with Sevenfold")
    assert len(opened.texts("#results .card:first-of-type tbody tr")) == 10


def test_dollars_and_tokens_take_turns(open_page: Open) -> None:
    opened = open_page(rich_report())
    assert opened.texts("#money .bars b") == ["~$11.00", "unpriced"]
    opened.page.get_by_role("button", name="Tokens").first.click()
    assert opened.texts("#money .bars b") == ["1.9M", "944K"]
    expect(opened["#money .bars .bar"]).to_have_count(2)


def test_breaks_sort_by_any_column_and_back(open_page: Open) -> None:
    opened = open_page(rich_report())
    cost = "#breaks tbody td:last-child"
    assert opened.texts(cost) == ["$1.25", "$0.750", "$0.500", "$0.300", "$0.0500", "unpriced"]
    head = opened["#breaks thead th"]
    expect(head.last).to_have_attribute("aria-sort", "descending")
    head.last.get_by_role("button").click()
    expect(head.last).to_have_attribute("aria-sort", "ascending")
    assert opened.texts(cost) == ["$0.0500", "$0.300", "$0.500", "$0.750", "$1.25", "unpriced"]
    opened.page.get_by_role("button", name="When").click()
    when = opened.texts("#breaks tbody .link")
    assert when == sorted(when, reverse=True)
    assert when[0] == "2026-11-03 11:40"
    expect(head.last).to_have_attribute("aria-sort", "none")


def test_a_cause_shows_its_own_breaks_and_what_it_means(open_page: Open) -> None:
    opened = open_page(rich_report())
    chips = opened[".chip"]
    assert [text.split("\n")[0] for text in chips.all_inner_texts()] == [
        *("All", "Idle", "Compaction", "Model switch", "Unexplained")
    ]
    chips.nth(1).click()
    expect(chips.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(chips.first).to_have_attribute("aria-pressed", "false")
    assert set(opened.texts("#breaks .cause")) == {"Idle"}
    assert len(opened.texts("#breaks tbody tr")) == 3
    opened.expect_text("#breaks .why", "had expired")
    chips.first.click()
    assert len(opened.texts("#breaks tbody tr")) == 6


def test_breaks_without_a_price_are_told_beside_the_dollars_of_the_others(open_page: Open) -> None:
    opened = open_page(rich_report())
    opened.expect_text(".lede", "6 cache breaks: the 5 with a price cost $2.85, most of it")
    opened.expect_text("#cards", "of what was spent; 1 unpriced break")
    opened.expect_text("#breaks .why", "1 of these is in no dollar figure.")
    opened[".chip"].nth(2).click()
    expect(opened["#breaks .why"]).not_to_contain_text("no dollar figure")


@pytest.mark.parametrize(
    ("prices", "told", "fact"),
    [
        (("0.5", "0.25"), "2 cache breaks cost $0.750, ", "$0.750"),
        (("0.5", None), "2 cache breaks: the one with a price cost $0.500, ", "$0.500; 1 unpriced break"),
        ((None, None), "2 cache breaks cost 80.0K tokens, ", "80.0K tokens"),
    ],
    ids=["all", "one", "none"],
)
def test_the_headline_says_how_many_breaks_its_dollars_are_of(
    open_page: Open, prices: tuple[str | None, ...], told: str, fact: str
) -> None:
    breaks = tuple(broke(5 * place, "idle", usd) for place, usd in enumerate(prices, 1))
    opened = open_page(report_of(Story(breaks=breaks)))
    opened.expect_text(".lede", told)
    lost = opened[".factlist"].first.get_by_text(fact, exact=True)
    expect(lost).to_be_visible()


def test_a_break_leads_to_its_place_in_its_session(open_page: Open) -> None:
    opened = open_page(rich_report())
    opened["#breaks tbody tr"].nth(1).get_by_role("button").click()
    opened.expect_text(".panel h3", "lighthouse")
    opened.expect_text(".option[aria-selected=true]", "lighthouse")
    expect(opened["#tooltip"]).to_be_visible()
    opened.expect_text("#tooltip", "Call 6 · 2026-11-03 11:05")
    opened.expect_text("#tooltip", "idle longer than the cache lives (13 min, the entry lived 5 min)")
    expect(opened[".plot"]).to_be_in_viewport()


def test_pointing_at_the_plot_tells_of_the_call_there(open_page: Open) -> None:
    opened = open_page(rich_report())
    opened[".plot"].scroll_into_view_if_needed()
    point_at(opened, 20)
    opened.expect_text("#tooltip", "Call 21 · 2026-11-03 11:20")
    opened.expect_text("#tooltip", "Context30.0K tokens")
    opened.expect_text("#tooltip", "From the cache0, 0.0%")
    opened.expect_text("#tooltip", "50.0K tokens again for $1.25")
    point_at(opened, 33)
    opened.expect_text("#tooltip", "Compaction: 155K to 53.0K tokens")
    opened.page.mouse.move(5, 5)
    opened.expect_hidden("#tooltip")


def point_at(opened: Opened, call: int) -> None:
    spot = spot_of(opened, call)
    opened.page.mouse.move(spot.x, spot.y, steps=3)


@dataclass(frozen=True, slots=True)
class Spot:
    x: float
    y: float


def spot_of(opened: Opened, call: int, calls: int = 60) -> Spot:
    """Where a call is drawn, with the edges that `plot.js` leaves."""
    box = opened[".plot svg"].bounding_box()
    assert box
    across = (box["width"] - 58) * (call + 0.5) / calls
    return Spot(box["x"] + 48 + across, box["y"] + box["height"] / 2)


def test_dragging_zooms_and_a_button_shows_all_again(open_page: Open) -> None:
    opened = open_page(rich_report())
    opened[".plot"].scroll_into_view_if_needed()
    back = opened.page.get_by_role("button", name="Show all")
    expect(back).to_be_disabled()
    assert len(opened.texts(".plot .mark")) == 4
    point_at(opened, 30)
    opened.page.mouse.down()
    point_at(opened, 36)
    point_at(opened, 42)
    opened.page.mouse.up()
    expect(opened[".plot .mark"]).to_have_count(2)
    expect(back).to_be_enabled()
    back.click()
    expect(opened[".plot .mark"]).to_have_count(4)
    opened.page.get_by_role("button", name="Zoom in").click()
    expect(back).to_be_enabled()


def test_a_finger_sees_what_a_mouse_sees(open_page: Open) -> None:
    opened = open_page(rich_report(), PHONE, touch=True)
    opened[".plot"].scroll_into_view_if_needed()
    spot = spot_of(opened, 20)
    opened.page.touchscreen.tap(spot.x, spot.y)
    opened.expect_text("#tooltip", "Call 21")
    box = opened["#tooltip"].bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE
    opened.page.touchscreen.tap(20, 20)
    opened.expect_hidden("#tooltip")
    opened["#money .segment"].first.tap()
    opened.expect_text("#tooltip", "Cache read")


def test_the_plot_by_time_spreads_the_calls_by_the_clock(open_page: Open) -> None:
    opened = open_page(rich_report())
    assert "call 1" in opened[".plot .tick"].all_text_contents()
    opened.page.get_by_role("button", name="By time").click()
    assert "11:30" in opened[".plot .tick"].all_text_contents()
    expect(opened[".waiting"]).to_be_visible()


def test_a_log_without_times_is_drawn_by_call(open_page: Open) -> None:
    opened = open_page(report_of(Story(series=climb(30, has_times=False))))
    expect(opened.page.get_by_role("button", name="By time")).to_be_hidden()
    expect(opened[".area-read"]).to_have_attribute("d", re.compile(r"^M[\d.,]+V[\dVH.]+"))
    opened.expect_sound()


def test_sessions_are_searched_and_sorted(open_page: Open) -> None:
    opened = open_page(rich_report())
    names = ".option .name"
    assert [text.split()[0] for text in opened.texts(names)] == ["harbour", "lighthouse", "pier"]
    opened.page.get_by_label("Sort by").select_option("calls")
    assert opened.texts(names)[0].startswith("harbour")
    opened.page.get_by_label("Sort by").select_option("breaks")
    assert [text.split()[0] for text in opened.texts(names)] == ["harbour", "lighthouse", "pier"]
    opened.page.get_by_label("Find a session").fill("PIER gpt")
    assert [text.split()[0] for text in opened.texts(names)] == ["pier"]
    expect(opened[".found"]).to_have_text("1 of 3 sessions")
    opened[".option"].click()
    opened.expect_text(".panel h3", "pier")
    opened.page.get_by_label("Find a session").fill("no such thing")
    expect(opened[".option"]).to_have_count(0)


def test_everything_can_be_done_from_the_keyboard(open_page: Open) -> None:
    opened = open_page(rich_report())
    press = opened.page.keyboard.press
    press("Tab")
    expect(opened[".skip"]).to_be_focused()
    expect(opened[".skip"]).to_be_in_viewport()
    opened["[role=listbox]"].focus()
    press("ArrowDown")
    opened.expect_text(".panel h3", "lighthouse")
    expect(opened["[role=listbox]"]).to_have_attribute("aria-activedescendant", "session-1")
    press("Home")
    for _ in range(6):  # two axes, zoom in and out (showing all has nothing to do), then the plot
        if opened[".plot"].evaluate("node => node === document.activeElement"):
            break
        press("Tab")
    plot = opened.page.get_by_role("slider", name="Context size of harbour, call by call")
    expect(plot).to_be_focused()
    assert plot.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    press("PageDown")
    expect(plot).to_have_attribute("aria-valuenow", "21")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("idle longer than the cache lives"))
    opened.expect_text("#tooltip", "Call 21")
    press("PageDown")
    expect(plot).to_have_attribute("aria-valuenow", "34")
    press("ArrowLeft")
    expect(plot).to_have_attribute("aria-valuenow", "33")
    press("+")
    press("End")
    expect(plot).to_have_attribute("aria-valuenow", "60")
    press("Escape")
    expect(opened.page.get_by_role("button", name="Show all")).to_be_disabled()


def test_what_strangers_wrote_is_shown_and_never_run(open_page: Open) -> None:
    opened = open_page(hostile_report())
    for place in (
        ".panel .path",
        ".option .name",
        "#money .name",
        "#results code",
        "#results .path",
        ".tally code",
    ):
        assert "onerror" in opened[f"{place} >> nth=0"].inner_text(), place
    for place in ("#unpriced", "#unreadable", "#contents .name"):
        assert "<img src=x" in opened[f"{place} >> nth=0"].inner_text(), place
    opened["#breaks .link"].first.click()
    opened["#contents .segment"].first.hover()
    assert opened["img"].count() == 0
    assert opened.page.evaluate("window.owned") is None
    assert opened.page.evaluate("document.querySelectorAll('script').length") == 2


def test_even_markup_that_got_in_would_not_run(browser: Browser, tmp_path: Path) -> None:
    """The page's policy, apart from our care: the second of two locks."""
    path = tmp_path / "page.html"
    path.write_text(build_page(rich_report(), made_at=START), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    # Which of the two attempts a browser reports, and how often, differs from version to version.
    refused = page.evaluate(
        """(markup) => new Promise((resolve) => {
          document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
          document.body.insertAdjacentHTML("beforeend", markup);
          const script = document.createElement("script");
          script.textContent = "window.owned = 1";
          document.body.append(script);
          const look = () => (window.owned ? resolve("a script ran") : requestAnimationFrame(look));
          look();
        })""",
        '<svg onload="window.owned = 1"></svg>',
    )
    assert refused in {"script-src", "script-src-attr", "script-src-elem"}
    # Events of the markup come in later turns of the page's loop: two frames let all of them pass.
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate("window.owned") is None
    assert HOSTILE not in page.content()
    page.close()


def test_five_hundred_sessions_are_drawn_a_page_at_a_time(open_page: Open) -> None:
    opened = open_page(large_report(500))
    expect(opened[".option"]).to_have_count(200)
    opened.expect_text(".found", "500 of 500 sessions; the first 200 are listed")
    expect(opened["#breaks tbody tr"]).to_have_count(15)
    opened["#breaks .more"].click()
    expect(opened["#breaks tbody tr"]).to_have_count(90)
    opened.page.get_by_label("Find a session").fill("number-7 000001")
    assert 0 < opened[".option"].count() < 30
    assert cast("int", opened.page.evaluate("document.querySelectorAll('*').length")) < 6_000


def test_a_report_of_nothing_says_so_and_fails_nowhere(open_page: Open) -> None:
    opened = open_page(report_of())
    opened.expect_hidden("#money")
    expect(opened["#about"]).to_be_visible()
    opened.expect_sound()


def test_without_breaks_the_page_says_so(open_page: Open) -> None:
    opened = open_page(report_of(Story()))
    opened.expect_text("#breaks", "None. Every call read all that it could.")
    opened.expect_text("#cards", "the cache never broke")
    expect(opened[".picker"]).to_have_count(0)


def test_without_any_price_the_page_counts_tokens(open_page: Open) -> None:
    opened = open_page(report_of(Story(usd=None, model="gpt-9")))
    expect(opened["h1"]).to_have_text("1 session used 944K tokens")
    expect(opened["#money"]).not_to_contain_text("Dollars")
    opened.expect_text("#unpriced pre", '[models."gpt-9"]')
    opened.expect_sound()


def test_large_figures_are_grouped_by_thousands(open_page: Open) -> None:
    opened = open_page(report_of(Story(usd=1_234_567.5), Story(name="s2", usd=0.0123)))
    expect(opened["h1"]).to_have_text("2 sessions cost $1,234,567.51")
    assert opened.texts(".option .cost") == ["$1,234,567.50", "$0.0123"]


def test_each_model_without_a_price_has_its_reason_and_only_models_are_asked_for(open_page: Open) -> None:
    found = report_of(
        *(Story(name=name, usd=None, model=name) for name in ("gpt-9", "ours-2", "opus (fast)"))
    )
    bills = tuple(replace(bill, gap="speed") if bill.model == "opus (fast)" else bill for bill in found.bills)
    opened = open_page(replace(found, bills=bills, events=(ModelUnknown("gpt-9", 200_000),)))
    opened.expect_text("#unpriced", "gpt-9 (no table knows it): 944K tokens in 12 calls")
    opened.expect_text("#unpriced", "ours-2 (settings describe it and give no price)")
    opened.expect_text("#unpriced", "opus (fast) (no price is known for that speed)")
    assert opened["#unpriced pre"].inner_text().count("[models.") == 2


def test_calls_on_a_model_without_a_name_ask_for_no_price(open_page: Open) -> None:
    opened = open_page(report_of(Story(usd=None, model=UNNAMED_MODEL)))
    opened.expect_text("#unpriced", "Calls whose model the log does not name: 944K tokens in 12 calls.")
    assert opened["#unpriced pre"].count() == 0


def test_remarks_tell_what_was_not_read(open_page: Open) -> None:
    opened = open_page(rich_report())
    opened.expect_text("#about", "brand-new-kind 4")
    opened.expect_text("#about", "half a line 1")
    opened.expect_text("#unreadable", "/srv/logs/locked.jsonl")
    opened.expect_text("#unreadable", "Permission denied")
    opened.expect_text("#about", "~ marks a figure that is estimated")


def test_advice_leads_to_what_it_rests_on(open_page: Open) -> None:
    opened = open_page(rich_report())
    first = opened[".advice > li"].first
    expect(first).to_contain_text("Sevenfold would have saved 21% to 28%")
    pauses = opened[".advice > li"].filter(has_text="Pauses")
    pauses.get_by_role("link").click()
    expect(opened[".chip[aria-pressed=true]"]).to_contain_text("Idle")
    pauses.locator(".evidence button").first.click()
    opened.expect_text(".panel h3", "harbour")
    opened.expect_text("#tooltip", "Call 21")


def test_every_figure_of_the_first_screen_leads_somewhere(open_page: Open) -> None:
    opened = open_page(rich_report())
    links = opened["#cards .value a"]
    expect(links).to_have_count(6)
    for place in range(6):
        target = links.nth(place).get_attribute("href")
        assert target
        expect(opened[target]).to_be_visible()


def test_a_project_lists_its_sessions_and_lets_go_of_them(open_page: Open) -> None:
    opened = open_page(rich_report())
    assert opened.texts("#periods tbody .link") == ["2026-11-03"]
    opened["#periods"].get_by_role("button", name="Projects").click()
    opened["#periods tbody .link"].nth(1).click()
    expect(opened[".option"]).to_have_count(1)
    opened.expect_text(".panel h3", "lighthouse")
    opened[".limit"].click()
    expect(opened[".option"]).to_have_count(3)
    opened["#money .name button"].last.click()
    assert opened.texts(".limit") == ["Model gpt-9 ✕"]
    opened.expect_text(".panel h3", "pier")


def test_a_watched_page_loads_itself_again_when_nobody_is_at_work(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(build_page(rich_report(), made_at=START, refresh_seconds=1), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    path.write_text(build_page(report_of(), made_at=START), encoding="utf-8")
    expect(page.locator("h1")).to_have_text("0 sub-agents used 0 tokens")
    assert page.locator("#cards .value").all_inner_texts() == ["nothing", "0", "0"]
    page.close()


def test_the_page_without_its_data_is_small() -> None:
    page = build_page(report_of(), made_at=START, findings=find_all(report_of()))
    assert len(gzip.compress(page.encode(), mtime=0)) < 300_000


def test_the_list_counts_sub_agents_apart_as_the_headline_does(open_page: Open) -> None:
    opened = open_page(report_of(Story(name="one"), Story(name="two"), Story(name="one", sub_agent="a1")))
    opened.expect_text("h1", "2 sessions")
    expect(opened[".found"]).to_have_text("2 of 2 sessions, 1 of 1 sub-agent")
