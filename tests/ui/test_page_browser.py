"""The page in a real browser: who gets in, what it shows, keys, and that no text in it ever runs."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import expect

from sevenfold.core.memories import Origin
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from tests.ui.conftest import REBOUND, Running, Serve, Shown
from tests.ui.example import HOSTILE, Machine

pytestmark = pytest.mark.story

PLACES = ("sessions", "live", "memories", "review", "recall", "rules", "dreams", "spend", "team")
TABS = 8
"""More than a browser has connections to one server."""


def test_a_link_opens_the_page_once_and_leaves_no_secret_behind(ui: Running) -> None:
    shown = ui.open()
    page = shown.page
    assert page.url == f"{ui.server.url}/"
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    assert cookie.get("name") == f"sevenfold-{ui.server.access.port}"
    another = ui.open_tab(page.context)
    another.page.goto(ui.server.url)
    another.wait()
    expect(another["h1"]).to_have_text("Sessions")
    assert "token" not in page.evaluate("JSON.stringify(performance.getEntries().map((one) => one.name))")


def test_hostile_text_is_inert_on_every_page(ui: Running) -> None:
    shown = ui.open()
    for place in PLACES:
        shown.go(place)
        if place == "recall":
            shown["#prompt"].fill(f"release {HOSTILE}")
            shown.page.get_by_role("button", name="What would it bring?").click()
            expect(shown["#recalled h2"]).to_contain_text("recalled")
    shown.go("review")
    expect(shown["#main"]).to_contain_text(HOSTILE)
    shown.go("live")
    expect(shown["#main"]).to_contain_text(HOSTILE)
    shown.go("memory/hostile.md")
    expect(shown["#main"]).to_contain_text(HOSTILE)
    shown["details.change summary"].first.click()
    expect(shown[".diff"].first).to_contain_text(HOSTILE)
    shown.open_session()
    expect(shown[".messages"]).to_contain_text(HOSTILE)
    shown.press("w")
    expect(shown[".found"].last).to_contain_text("as the model got them")
    assert shown.page.evaluate("window.hacked") is None
    assert shown.page.evaluate("document.querySelectorAll('main img, main script').length") == 0


def test_no_character_hides_anything_in_what_waits(serve: Serve, fresh_machine: Machine) -> None:
    with MemoryDir.for_project(fresh_machine.project, environ=fresh_machine.environ) as memory:
        text = "---\nname: hidden\n---\n\nUse p\u202en\u200bpm\U000e0041 today.\n"
        origin = Origin(who="fork", why="", said_by="tool output", taint=frozenset({"web"}))
        memory.propose([Write("hidden.md", text, None)], origin, "it came through a web page")
    shown = serve(fresh_machine).open("review")
    expect(shown["#main"]).to_contain_text(r"Use p\u{202e}n\u{200b}pm\u{e0041} today.")


class _Attacker(BaseHTTPRequestHandler):
    page = b""
    cookies: list[str]

    def do_GET(self) -> None:
        self.cookies.append(self.headers.get("cookie", ""))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        """Say nothing."""


@contextmanager
def attacking(target: str) -> Generator[str]:
    """A server on another port of this machine, whose page attacks the target."""
    script = f"""<!doctype html><title>attack</title><iframe src="{target}/"></iframe><script type=module>
      const found = window.found = [];
      const change = {{ method: "POST", credentials: "include", body: "{{}}" }};
      for (const options of [
        {{ ...change, mode: "no-cors" }},
        {{ ...change, headers: {{ "content-type": "application/json", "x-sevenfold-run": "guess" }} }},
      ]) await fetch("{target}/api/spend/stop", options).then(
        (answer) => found.push(answer.type), () => found.push("refused"));
      await fetch("{target}/api/memories", {{ credentials: "include" }}).then(
        (answer) => answer.text().then((text) => found.push(text)), () => found.push("refused"));
      await fetch("{target}/", {{ credentials: "include" }}).then(
        (answer) => answer.text().then((text) => found.push(text)), () => found.push("refused"));
      await import("{target}/assets/main.js").then(() => found.push("loaded"), () => found.push("refused"));
      window.isDone = true;
    </script>"""
    handler = type("Attacker", (_Attacker,), {"page": script.encode(), "cookies": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_page_of_another_port_reads_and_changes_nothing(ui: Running) -> None:
    shown = ui.open()
    with attacking(ui.server.url) as address:
        # In the browser that has our cookie, which is sent there too.
        attack = shown.page.context.new_page()
        attack.goto(address)
        attack.wait_for_function("window.isDone")
        found = attack.evaluate("window.found")
        assert found[0] in ("opaque", "refused")
        assert found[1:] == ["refused"] * 4
        assert attack.frames[1].url in ("", "about:blank", "chrome-error://chromewebdata/")
    shown.go("spend")
    expect(shown[".kill"]).to_contain_text("Background work may run.")


def test_a_name_that_is_pointed_at_this_machine_gets_nothing(ui: Running) -> None:
    shown = ui.open()
    page = shown.page.context.new_page()
    response = page.goto(f"http://{REBOUND}:{ui.server.access.port}/")
    assert response is not None
    assert response.status == 421


def test_everything_can_be_reached_by_keys(ui: Running) -> None:
    shown = ui.open()
    shown.press("g", "m")
    expect(shown["h1"]).to_have_text("Memories")
    expect(shown["#memory-rows a.row"].first).to_be_visible()
    shown.press("j", "j")
    expect(shown["#memory-rows a.row"].nth(1)).to_be_focused()
    name = shown["#memory-rows a.row .name"].nth(1).inner_text()
    shown.press("Enter")
    expect(shown["h1"]).to_have_text(name)
    shown.press("u")
    expect(shown["h1"]).to_have_text("Memories")
    shown.press("/")
    expect(shown["#words"]).to_be_focused()
    shown.page.keyboard.type("gs")
    expect(shown["h1"]).to_have_text("Memories")
    shown.press("Escape", "?")
    expect(shown["dialog#help"]).to_be_visible()
    shown.press("Escape")
    expect(shown["dialog#help"]).to_be_hidden()
    shown["#words"].fill("")
    shown.press("Escape")
    for key, title in (("l", "Live"), ("v", "Review"), ("c", "Recall"), ("r", "Rules"), ("d", "Dreams")):
        shown.press("g", key)
        expect(shown["h1"]).to_have_text(title)


def test_a_session_is_read_as_said_and_as_sent_with_its_cuts(ui: Running) -> None:
    shown = ui.open()
    shown.open_session()
    expect(shown[".found"].last).to_contain_text("3 cuts")
    shown.press("]")
    cut = shown[".cut"].first
    expect(cut).to_be_focused()
    expect(cut).to_contain_text("Layer 4, compaction")
    expect(cut).to_contain_text("tokens before it")
    cut.get_by_role("button", name="See the request after it").click()
    expect(shown[".found"].last).to_contain_text(re.compile(r"in the request of call [2-9] of 12"))
    expect(shown[".message.from-summary, .message.from-attachment"].first).to_be_visible()
    shown.press("w")
    expect(shown[".found"].last).to_contain_text("Nothing is left out here")
    shown[".plot"].focus()
    shown.press("Home", "Enter")
    expect(shown[".found"].last).to_contain_text("in the request of call 1 of 12")


def test_the_review_is_settled_by_keys_and_undone(serve: Serve, fresh_machine: Machine) -> None:
    fresh_machine.add_memories()
    ui = serve(fresh_machine)
    shown = ui.open("review")
    expect(shown["[data-review]"]).to_have_count(1)
    expect(shown["#badge-review"]).to_contain_text("1")
    shown.press("j", "x")
    expect(shown["#main"]).to_contain_text("Nothing waits for you")
    expect(shown["#status"]).to_contain_text("Rejected")
    shown.press("z")
    expect(shown["[data-review]"]).to_have_count(1)
    shown.press("a")
    expect(shown["#main"]).to_contain_text("Nothing waits for you")
    shown.go("memory/heard.md")
    shown.page.get_by_role("button", name="I vouch for it").click()
    expect(shown["#status"]).to_contain_text("is trusted now")
    expect(shown["#main"]).not_to_contain_text("Not trusted")


def test_the_kill_switch_works_and_is_shown(serve: Serve, fresh_machine: Machine) -> None:
    shown = serve(fresh_machine).open("spend")
    shown.page.get_by_role("button", name="Stop all background work").click()
    expect(shown[".kill"]).to_contain_text("Background work is stopped.")
    shown.page.get_by_role("button", name="Let it go on").click()
    expect(shown[".kill"]).to_contain_text("Background work may run.")


def test_many_tabs_share_one_stream_and_all_see_what_happens(serve: Serve, fresh_machine: Machine) -> None:
    ui = serve(fresh_machine)
    first = ui.open("live")
    expect(first["#main"]).to_contain_text("Nothing is running")
    tabs: list[Shown] = [first]
    for _ in range(TABS - 1):
        tab = ui.open_tab(first.page.context)
        tab.page.goto(f"{ui.server.url}/#/live")
        tab.wait()
        tabs.append(tab)
    path = fresh_machine.add_proxy(os.getpid())
    for tab in tabs:
        expect(tab[".liverow .name"]).to_contain_text("claude")
        expect(tab[".liverow .cost"]).to_have_text("$0.170")
    entry = json.loads(path.read_text(encoding="utf-8").splitlines()[0]) | {"dollars": "1.00"}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    for tab in tabs:
        expect(tab[".liverow .cost"]).to_have_text("$1.17")
    streams = [url for url in ui.requests if "/api/stream?ticket=" in url]
    assert len(streams) == 1
    first.page.close()
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    expect(tabs[-1][".liverow .cost"]).to_have_text("$2.17")


def test_a_server_that_is_gone_is_said(ui: Running) -> None:
    shown = ui.open("memories")
    ui.server.stop()
    shown["#memory-rows a.row"].first.click()
    expect(shown["#main"]).to_contain_text("Is `sevenfold ui` still running?")
    ui.complaints.clear()
