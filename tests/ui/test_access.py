"""Who may use the page: the browser that opened its link, and nobody else on this machine or beyond."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from sevenfold.core.errors import FileMissing, InputError, MemoryConflict
from sevenfold.ui.access import MAX_TICKETS, RUN_HEADER, GuardedApp, PageAccess
from sevenfold.ui.app import (
    MAX_BODY_BYTES,
    PageCall,
    make_page_app,
    read_page_files,
    render_shell,
    route_get,
    route_post,
)
from tests.ui.asking import PORT, ask, follow_link, own_headers

HOST = f"127.0.0.1:{PORT}"


@dataclass
class Opened:
    access: PageAccess = field(default_factory=lambda: PageAccess(PORT))
    done: list[object] = field(default_factory=list[object])
    app: GuardedApp = field(init=False)

    def __post_init__(self) -> None:
        routes = (
            route_get("read", lambda call: {"said": call.text("q", "")}),
            route_post("change", self._change),
        )
        self.app = make_page_app(routes, self.access, project="/srv/<b>app", stream=self._stream)

    def _change(self, call: PageCall) -> object:
        self.done.append(dict(call.fields))
        kind = call.text("fail", "")
        if kind:
            raise {"input": InputError, "missing": FileMissing, "conflict": MemoryConflict}[kind](f"a {kind}")
        return {}

    async def _stream(self) -> AsyncIterator[bytes]:
        yield b"event: live\ndata: {}\n\n"


@pytest.fixture
def opened() -> Opened:
    return Opened()


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            f"evil.example:{PORT}",
            "127.0.0.1",
            "127.0.0.1:80",
            f"127.0.0.1:{PORT}.evil.example",
        ),
        *(f"[::1]:{PORT}", f"0.0.0.0:{PORT}", "", f"127.0.0.1:{PORT}@evil.example"),
    ],
)
def test_another_host_name_is_refused_even_with_the_cookie(opened: Opened, host: str) -> None:
    headers = {**own_headers(opened.app, opened.access), "host": host}
    for path in ("/", "/assets/main.js", "/api/read", opened.access.make_link().partition(HOST)[2]):
        assert ask(opened.app, "GET", path, headers).status == 421


def test_two_host_headers_and_none_are_refused(opened: Opened) -> None:
    rest = [(name, value) for name, value in own_headers(opened.app, opened.access).items() if name != "host"]
    assert ask(opened.app, "GET", "/", [("host", HOST), ("host", HOST), *rest]).status == 421
    assert ask(opened.app, "GET", "/", rest).status == 421
    assert ask(opened.app, "GET", "/", [("host", f"localhost:{PORT}"), *rest]).status == 200


def test_without_the_cookie_nothing_is_shown(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    for cookie in ("", "sevenfold-7007=wrong", "sevenfold-7008=x", "a=b; ;;", '"\\'):
        for path in ("/", "/assets/main.js", "/api/read", "/api/stream", "/?token=wrong"):
            assert ask(opened.app, "GET", path, {**headers, "cookie": cookie}).status == 403


def test_a_link_works_once_and_its_cookie_is_for_this_port_and_for_no_script(opened: Opened) -> None:
    path = opened.access.make_link().partition(HOST)[2]
    answer = ask(opened.app, "GET", path, {"host": HOST})
    assert answer.status == 200
    name, _, attributes = answer.header("set-cookie").partition("=")
    assert name == f"sevenfold-{PORT}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in attributes.split(";")}
    again = ask(opened.app, "GET", path, {"host": HOST})
    assert again.status == 403
    assert b"Press Enter" in again.body
    known = ask(opened.app, "GET", path, {"host": HOST, "cookie": follow_link(opened.app, opened.access)})
    assert (known.status, known.header("location")) == (303, "/")
    assert opened.access.run_key.encode() in answer.body
    assert (
        opened.access.run_key.encode()
        not in ask(opened.app, "GET", "/", own_headers(opened.app, opened.access)).body
    )


def test_a_cookie_that_leaked_to_another_port_is_no_use_alone(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    stolen = {"host": HOST, "cookie": headers["cookie"], "sec-fetch-site": "same-origin"}
    assert ask(opened.app, "GET", "/api/read", stolen).status == 403
    assert ask(opened.app, "POST", "/api/change", stolen, b"{}").status == 403
    assert ask(opened.app, "POST", "/api/stream", stolen, b"{}").status == 403
    assert ask(opened.app, "GET", "/api/read", {**stolen, RUN_HEADER: "wrong"}).status == 403
    assert ask(opened.app, "GET", "/api/read?q=hello", headers).body == b'{"said":"hello"}'
    assert opened.done == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None, "same-origin, cross-site"])
def test_a_change_is_made_for_our_own_page_alone(opened: Opened, site: str | None) -> None:
    headers = own_headers(opened.app, opened.access)
    assert ask(opened.app, "POST", "/api/change", headers, b'{"a": 1}').status == 200
    del headers["sec-fetch-site"]
    forged = headers if site is None else {**headers, "sec-fetch-site": site}
    assert ask(opened.app, "POST", "/api/change", forged, b'{"a": 2}').status == 403
    assert opened.done == [{"a": 1}]


def test_another_origin_is_refused_by_its_name_too(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    for origin in ("http://127.0.0.1:9000", "https://evil.example", "null"):
        answer = ask(opened.app, "POST", "/api/change", {**headers, "origin": origin}, b"{}")
        assert (answer.status, origin in answer.error) == (403, True)
    assert (
        ask(opened.app, "POST", "/api/change", {**headers, "origin": f"http://{HOST}"}, b"{}").status == 200
    )
    assert len(opened.done) == 1


def test_only_data_takes_anything_but_reading(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    assert ask(opened.app, "POST", "/", headers, b"{}").status == 405
    assert ask(opened.app, "DELETE", "/api/read", headers).status == 405
    assert ask(opened.app, "OPTIONS", "/api/change", headers).status == 405
    assert ask(opened.app, "OPTIONS", "/api/change", {"host": HOST}).status == 403
    assert ask(opened.app, "GET", "/api/change", headers).status == 405
    assert ask(opened.app, "GET", "/assets/../access.py", headers).status == 404


def test_a_stream_needs_a_ticket_which_works_once(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    ticket = json.loads(ask(opened.app, "POST", "/api/stream", headers, b"{}").body)["ticket"]
    bare = {"host": HOST, "cookie": headers["cookie"]}
    assert ask(opened.app, "GET", "/api/stream?ticket=wrong", bare).status == 403
    answer = ask(opened.app, "GET", f"/api/stream?ticket={ticket}", bare)
    assert (answer.status, answer.body) == (200, b"event: live\ndata: {}\n\n")
    assert ask(opened.app, "GET", f"/api/stream?ticket={ticket}", bare).status == 403
    for _ in range(MAX_TICKETS):
        opened.access.make_ticket()
    last = opened.access.make_ticket()
    assert opened.access.use_ticket(last)


def test_every_answer_is_kept_nowhere_and_runs_our_own_files_alone(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    asked = [
        ("GET", "/"),
        ("GET", "/assets/main.js"),
        ("GET", "/api/read"),
        ("GET", "/api/nothing"),
        ("PUT", "/"),
    ]
    answers = [ask(opened.app, method, path, headers) for method, path in asked]
    answers.append(ask(opened.app, "GET", "/", {"host": "evil.example"}))
    for answer in answers:
        policy = answer.header("content-security-policy")
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.header("cache-control") == "no-store"
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("referrer-policy") == "no-referrer"
        assert not answer.header("access-control-allow-origin")


def test_the_shell_has_no_inline_script_or_style_and_escapes_the_project() -> None:
    shell = render_shell('/srv/<img src=x onerror="go()">').decode()
    assert "<img" not in shell
    assert "&lt;img src=x" in shell
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=\"|\sstyle=", shell)


def test_the_page_loads_nothing_from_elsewhere() -> None:
    for name, file in read_page_files().items():
        text = file.content.decode()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), name


def test_a_request_that_is_no_json_object_is_refused_in_words(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    plain = {**headers, "content-type": "text/plain"}
    assert "application/json" in ask(opened.app, "POST", "/api/change", plain, b"{}").error
    assert "no JSON" in ask(opened.app, "POST", "/api/change", headers, b"{").error
    assert "no JSON object" in ask(opened.app, "POST", "/api/change", headers, b"[]").error
    long = b'{"a": "' + b"x" * MAX_BODY_BYTES + b'"}'
    assert "over" in ask(opened.app, "POST", "/api/change", headers, long).error
    assert opened.done == []


def test_an_error_of_ours_is_an_answer_and_a_bug_says_only_its_kind(opened: Opened) -> None:
    headers = own_headers(opened.app, opened.access)
    statuses = {"input": 422, "missing": 404, "conflict": 409}
    for kind, status in statuses.items():
        answer = ask(opened.app, "POST", "/api/change", headers, json.dumps({"fail": kind}).encode())
        assert (answer.status, answer.error) == (status, f"a {kind}")
    bug = ask(opened.app, "POST", "/api/change", headers, b'{"fail": "secret-word"}')
    assert (bug.status, "KeyError" in bug.error, "secret-word" in bug.error) == (500, True, False)


def test_a_field_of_a_call_is_checked() -> None:
    call = PageCall({"text": "x", "number": "7", "long": "x" * 30_000, "list": ["x"], "far": "9" * 40})
    assert (call.text("text"), call.text("other", "-")) == ("x", "-")
    assert (call.number("number", 1, 5), call.number("other", 1, 5), call.number("far", 1, 50)) == (5, 1, 50)
    for name in ("other", "list", "long"):
        with pytest.raises(InputError):
            call.text(name)
    for value in ("-1", "1.5", "", "٣", None):
        with pytest.raises(InputError):
            PageCall({"number": value}).number("number", 1, 5)
