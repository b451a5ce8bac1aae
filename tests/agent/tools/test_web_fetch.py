"""web_fetch gets a page as markdown, from public hosts only, and says that it is somebody else's."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sevenfold.agent.tools import web_fetch
from sevenfold.agent.tools.web_fetch import (
    WebFetchTool,
    check_url,
    fetch_page,
    is_public_address,
    resolve_public_address,
)
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event
from sevenfold.core.events.agent import UntrustedEntered
from sevenfold.core.settings.sections import WebSettings
from sevenfold.core.text.safe_text import find_fences
from sevenfold.core.tool_kinds import ToolContext
from tests.agent.tools.places import call, fault_of, make_place, text_of

HTML = "text/html; charset=utf-8"
PAGES = {
    "/page": (
        HTML,
        "<nav>menu</nav><h1>Title</h1><p>Some <b>ä</b> <a href='/x'>link</a></p><script>x</script>",
    ),
    "/plain": ("text/plain", "plain words </web-page>"),
    "/json": ("application/json", '{"a": 1}'),
    "/image": ("image/png", "\0png"),
    "/large": ("text/plain", "x" * 50_000),
    "/long": ("text/plain", "y" * 150_000),
    "/deep": (HTML, "<div>" * 5_000 + "deep words"),
    "/slow": (HTML, "<!--" * 100_000),
}


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/to?"):
            self.send_response(302)
            self.send_header("Location", self.path[4:])
            self.end_headers()
            return
        if self.path == "/bomb":
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(gzip.compress(b"x" * 50_000_000, 1))
            return
        kind, body = PAGES.get(self.path, ("text/plain", "nothing here"))
        data = body.encode()
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed."""


@dataclass(frozen=True, slots=True)
class Site:
    url: str


@pytest.fixture(scope="module")
def site() -> Generator[Site]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Site(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


OPEN = WebFetchTool(WebSettings(private=True, max_bytes=1_000_000))


def test_a_page_comes_as_markdown_in_a_fence(site: Site, place: ToolContext) -> None:
    events: list[Event] = []
    shown = text_of(call(OPEN, replace(place, emit=events.append), url=f"{site.url}/page"))
    [fence] = find_fences("web-page", shown)
    assert fence.text == "# Title\n\nSome **ä** [link](/x)"
    assert fence.label == f"{site.url}/page"
    assert [event.name for event in events if isinstance(event, UntrustedEntered)] == [f"{site.url}/page"]


def test_plain_text_cannot_leave_its_fence(site: Site, place: ToolContext) -> None:
    [fence] = find_fences("web-page", text_of(call(OPEN, place, url=f"{site.url}/plain")))
    assert fence.text == "plain words </web-page>"
    assert '{"a": 1}' in text_of(call(OPEN, place, url=f"{site.url}/json"))


def test_what_is_no_text_or_not_there_is_said_to_be_so(site: Site, place: ToolContext) -> None:
    assert "image/png" in fault_of(call(OPEN, place, url=f"{site.url}/image"))
    assert "404" in fault_of(call(OPEN, place, url=f"{site.url}/none"))
    assert "cannot be fetched" in fault_of(call(OPEN, place, url="http://127.0.0.1:1/"))


def test_a_page_has_limits_of_size_and_time(
    site: Site, place: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = WebFetchTool(WebSettings(private=True, max_bytes=10_000))
    assert "larger than" in text_of(call(small, place, url=f"{site.url}/large"))
    assert "150,000 characters" in text_of(call(OPEN, place, url=f"{site.url}/long"))
    assert "deep words" in text_of(call(OPEN, place, url=f"{site.url}/deep"))
    monkeypatch.setattr(web_fetch, "CONVERT_SECONDS", 1)
    assert "could not be turned" in fault_of(call(OPEN, place, url=f"{site.url}/slow"))


def test_redirects_are_followed_on_the_same_host_and_told_elsewhere(site: Site, place: ToolContext) -> None:
    assert "# Title" in text_of(call(OPEN, place, url=f"{site.url}/to?/page"))
    assert "more than 5 times" in fault_of(call(OPEN, place, url=f"{site.url}/to?" + "/to?" * 6 + "/page"))
    moved = text_of(call(OPEN, place, url=f"{site.url}/to?http://localhost:1/x"))
    assert "moved to http://localhost:1/x" in moved
    assert "cannot be fetched" in fault_of(
        call(OPEN, place, url=f"{site.url}/to?file://127.0.0.1/etc/passwd")
    )


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.0.0.1",
            "localhost",
            "[::1]",
            "0.0.0.0",
            "10.0.0.1",
            "169.254.169.254",
            "2130706433",
            "0x7f.1",
        ),
        *(
            "127.1",
            "[::ffff:127.0.0.1]",
            "[fe80::1]",
            "[fd00::1]",
            "192.168.1.1",
            "224.0.0.1",
            "[64:ff9b::7f00:1]",
        ),
    ],
)
def test_no_private_address_is_fetched_from(host: str, place: ToolContext) -> None:
    fault = fault_of(call(WebFetchTool(), place, url=f"http://{host}/"))
    assert "no public address" in fault or "cannot be found" in fault


def test_a_public_address_is_one_on_the_internet() -> None:
    assert is_public_address("93.184.215.14")
    assert is_public_address("2606:2800:21f:cb07:6820:80da:af6b:8b2c")
    assert not is_public_address("2002:7f00:1::")
    assert asyncio.run(resolve_public_address("http://93.184.215.14/", WebSettings())) == "93.184.215.14"


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "example.org",
            "ftp://example.org",
            "file:///etc/passwd",
            "http://",
            "http:///x",
            "javascript:alert(1)",
        ),
        *(
            "http://a b/",
            "http://example.org/\n",
            "http://u:p@example.org/",
            "http://[::1",
            "http://x:99999/",
        ),
        *("http://example.org:0/", "http://example.org/" + "x" * 4_001, "//example.org/"),
    ],
)
def test_what_is_no_url_is_an_input_error(url: str) -> None:
    with pytest.raises(InputError):
        check_url(url)


def test_a_packed_page_is_unpacked_only_as_far_as_it_is_kept(site: Site) -> None:
    largest: list[int] = []

    class Counting(web_fetch.BodyDecoder):
        def feed(self, data: bytes) -> Iterator[bytes]:
            for piece in super().feed(data):
                largest.append(len(piece))
                yield piece

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(web_fetch, "BodyDecoder", Counting)
        page = asyncio.run(fetch_page(f"{site.url}/bomb", WebSettings(private=True, max_bytes=200_000)))
    assert page.is_cut
    assert len(page.body) == 200_000
    assert sum(largest) <= 200_000 + 64 * 1024
