"""Requests pass unchanged, over real HTTP with the official SDKs as clients, and are billed exactly."""

from __future__ import annotations

import gzip
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anthropic
import openai
import pytest

from sevenfold.cli.proxy import find_upstreams
from sevenfold.core.errors import InputError
from sevenfold.proxy.ledger import ProxyLedger
from sevenfold.proxy.profiles import find_profile
from sevenfold.proxy.receipt import list_ledgers
from sevenfold.proxy.requests import Upstreams
from sevenfold.proxy.server import ProxyApp, ProxyRun, ProxyServer
from sevenfold.store.files.folder import Folder
from sevenfold.testing import Simulator

SYSTEM = "You are a careful assistant. " * 1_000
KEY = "sk-ant-proxied-0123456789"


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator(lambda prompt: f"You said {prompt.last_text[-20:]}") as running:
        yield running


@pytest.fixture
def proxy(sim: Simulator) -> Generator[ProxyServer]:
    server = ProxyServer(ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams(sim.url, sim.url)))
    server.start()
    yield server
    server.stop()


def ask(client: anthropic.Anthropic, *said: str) -> str:
    messages = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": text} for at, text in enumerate(said)
    ]
    marked = {"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}
    with client.messages.stream(
        model="claude-opus-4-5",
        max_tokens=100,
        system=[marked],  # pyright: ignore[reportArgumentType] - what it sends is checked by the simulator
        messages=messages,  # pyright: ignore[reportArgumentType]
    ) as stream:
        return stream.get_final_text()


def test_the_bill_is_the_providers_to_the_last_digit(sim: Simulator, proxy: ProxyServer) -> None:
    client = anthropic.Anthropic(api_key=KEY, base_url=proxy.url, max_retries=0)
    first = ask(client, "hello")
    assert first == "You said hello"
    ask(client, "hello", first, "again")
    proxy.stop()
    entries = proxy.app.ledger.entries
    assert [entry.cost for entry in entries] == [entry.cost for entry in sim.ledger.billed]
    assert {entry.conversation for entry in entries} == {"c1"}
    assert entries[1].usage is not None
    assert entries[1].usage.read > 2_000
    assert [entry.cache_break for entry in entries] == [None, None]


def test_openai_clients_are_forwarded_and_billed(sim: Simulator, proxy: ProxyServer) -> None:
    client = openai.OpenAI(api_key=KEY, base_url=f"{proxy.url}/v1", max_retries=0)
    chat = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hello"}])
    assert chat.choices[0].message.content == "You said hello"
    events = client.responses.create(model="gpt-5", input="hello", stream=True)
    assert [event.type for event in events][-1] == "response.completed"
    proxy.stop()
    usages = [entry.usage for entry in proxy.app.ledger.entries]
    assert [entry.facts.wire for entry in proxy.app.ledger.entries] == ["chat", "responses"]
    assert None not in usages


def test_an_error_of_the_provider_passes_as_it_is(sim: Simulator, proxy: ProxyServer) -> None:
    bare = anthropic.Anthropic(api_key=KEY, base_url=proxy.url, max_retries=0)
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        bare.messages.create(
            model="claude-opus-4-5", max_tokens=-1, messages=[{"role": "user", "content": "x"}]
        )
    proxy.stop()
    assert proxy.app.ledger.entries[0].status == 400
    assert proxy.app.ledger.entries[0].cost is None


SEEN: list[tuple[str, str, dict[str, str], bytes]] = []


class Upstream(BaseHTTPRequestHandler):
    """Keeps what it gets, and answers with a packed body and headers of its own."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        SEEN.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if self.path.startswith("/moved"):
            self.send_response(307)
            self.send_header("location", "http://127.0.0.1:9/v1/messages")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        packed = gzip.compress(b'{"usage": {"input_tokens": 3, "output_tokens": 4}}')
        self.send_response(201, "Made")
        self.send_header("content-encoding", "gzip")
        self.send_header("x-request-id", "req_1")
        self.send_header("content-length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name
        """Nobody reads it."""


@pytest.fixture
def upstream() -> Generator[ThreadingHTTPServer]:
    SEEN.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def post(url: str, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request(
            "POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_a_request_is_in_the_file_before_it_is_sent(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def answer(_prompt: object) -> str:
        seen.append((tmp_path / "home/requests.jsonl").read_text().splitlines())
        return "fine"

    with Simulator(answer) as sim, Folder.open(tmp_path / "home", create=True) as folder:
        app = ProxyApp(ledger=ProxyLedger(folder=folder), upstreams=Upstreams(sim.url, sim.url))
        server = ProxyServer(app)
        server.start()
        try:
            client = anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0)
            client.messages.count_tokens(model="claude-opus-4-5", messages=[{"role": "user", "content": "q"}])
            assert ask(client, "one") == ask(client, "two") == "fine"
        finally:
            server.stop()
        (summary,) = list_ledgers(folder)
    assert [len(lines) for lines in seen] == [2, 4], "a count costs nothing, and has its answer alone"
    assert ['"sent"' in lines[-1] for lines in seen] == [True, True]
    assert (summary.requests, summary.unbilled) == (3, 0)


def test_every_byte_header_and_query_passes(upstream: ThreadingHTTPServer) -> None:
    server = ProxyServer(
        ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams(f"http://127.0.0.1:{upstream.server_port}"))
    )
    server.start()
    try:
        body = b'{ "model":"claude-opus-4-5",\n "messages": [], "odd": 1e3, "messages": [] }'
        run = ProxyRun.create(find_profile("claude"))
        path = f"{urlsplit(server.run_url(run)).path}/v1/messages?beta=true"
        status, headers, packed = post(
            server.url,
            path,
            body,
            x_api_key=KEY,
            anthropic_beta="a,b",
            accept_encoding="gzip, br",
            te="trailers",
        )
    finally:
        server.stop()
    ((method, asked, sent, got),) = SEEN
    assert (method, asked, got) == ("POST", "/v1/messages?beta=true", body)
    assert (sent["x-api-key"], sent["anthropic-beta"], sent["accept-encoding"]) == (KEY, "a,b", "gzip")
    assert "te" not in sent
    assert "user-agent" not in sent, "none was sent"
    assert (status, headers["x-request-id"], headers["content-encoding"]) == (201, "req_1", "gzip")
    assert b"input_tokens" in gzip.decompress(packed)
    (entry,) = server.app.ledger.entries
    assert entry.agent == "claude"
    assert entry.usage is not None
    assert (entry.usage.fresh, entry.usage.output) == (3, 4)


def test_a_page_that_found_us_by_another_name_is_refused(proxy: ProxyServer) -> None:
    status, _, body = post(proxy.url, "/v1/messages", b"{}", host="evil.example")
    assert status == 403
    assert b"this machine alone" in body


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "cross-site", "origin": "null"},
        {"sec_fetch_site": "same-site", "origin": "http://localhost:8000"},
    ],
)
def test_a_web_page_is_refused(proxy: ProxyServer, headers: dict[str, str]) -> None:
    status, _, body = post(proxy.url, "/v1/messages", b"{}", **headers)
    assert (status, b"web pages" in body) == (403, True)
    assert not proxy.app.ledger.entries


@pytest.mark.parametrize("origin", ["vscode-file://vscode-app", "http://localhost:3000", "file://"])
def test_windows_of_this_machine_are_no_web_pages(proxy: ProxyServer, origin: str) -> None:
    assert post(proxy.url, "/v1/models", b"", origin=origin)[0] != 403


def test_an_upstream_that_cannot_be_reached_is_an_error_that_says_so() -> None:
    server = ProxyServer(ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams("http://127.0.0.1:9")))
    server.start()
    try:
        status, _, body = post(server.url, "/v1/messages", b"{}")
    finally:
        server.stop()
    assert status == 502
    assert b"127.0.0.1:9 cannot be reached" in body
    (entry,) = server.app.ledger.entries
    assert (entry.status, str(entry.target)) == (502, "POST /v1/messages at 127.0.0.1:9")
    assert "127.0.0.1:9 cannot be reached" in entry.target.error


def test_no_client_is_led_to_another_server_with_its_conversation(upstream: ThreadingHTTPServer) -> None:
    upstreams = Upstreams(f"http://127.0.0.1:{upstream.server_port}/moved")
    server = ProxyServer(ProxyApp(ledger=ProxyLedger(), upstreams=upstreams))
    server.start()
    try:
        status, headers, body = post(server.url, "/v1/messages", b"{}")
    finally:
        server.stop()
    assert (status, headers.get("location")) == (502, None)
    assert b"answered 307 and leads elsewhere" in body
    (entry,) = server.app.ledger.entries
    assert "leads elsewhere" in entry.target.error


def test_a_probe_of_an_agent_goes_to_the_only_api_that_it_asks() -> None:
    urls = Upstreams("http://one:1", "http://two:2")
    assert urls.make_url("/", {}, find_profile("claude")) == "http://one:1/"
    assert urls.make_url("/v1/models", {}, find_profile("codex")) == "http://two:2/v1/models"
    assert urls.make_url("/v1/responses", {}, find_profile("claude")) == "http://two:2/v1/responses"


def test_a_proxy_in_front_of_itself_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    app = ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams(openai=f"http://localhost:{port}/v1"))
    with pytest.raises(InputError, match="this proxy itself"):
        ProxyServer(app, port=port).start()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x",
        "http://",
        "http://user@host",
        "http://[x",
        "http://x:y",
        "http://x:99999",
        "http://a\nb",
    ],
)
def test_an_upstream_that_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        Upstreams(url)


AGENT = """\
#!{python}
import os, sys, anthropic
client = anthropic.Anthropic(api_key="{key}", max_retries=0)
said = client.messages.create(model="claude-opus-4-5", max_tokens=50,
    messages=[{{"role": "user", "content": " ".join(sys.argv[3:])}}])
print(said.content[0].text)
sys.exit(3)
"""


@pytest.mark.story
def test_run_starts_an_agent_and_ends_with_its_bill(sim: Simulator, tmp_path: Path) -> None:
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    program.write_text(AGENT.format(python=sys.executable, key=KEY))
    program.chmod(0o755)
    environ = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "ANTHROPIC_BASE_URL": sim.url,
        "SEVENFOLD_HOME": str(tmp_path / "home"),
    }
    command = [sys.executable, "-m", "sevenfold", "run", "claude", "-p", "hello"]
    ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout.strip() == "You said -p hello"
    assert "1 model call in 1 conversation," in ran.stderr
    (ledger,) = (tmp_path / "home/proxy").glob("*.jsonl")
    assert ledger.stat().st_mode & 0o777 == 0o600
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert any("proxy/state" in str(path) for path in kept)
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


SLOW_AGENT = """\
#!{python}
import os, sys, urllib.error, urllib.request
try:
    urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", b'{{"model": "x"}}')
except urllib.error.HTTPError:
    pass
sys.stdin.readline()
"""


@pytest.mark.story
def test_a_server_that_cannot_be_reached_is_reported_while_the_agent_still_runs(tmp_path: Path) -> None:
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    program.write_text(SLOW_AGENT.format(python=sys.executable))
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "sevenfold", "run", "--upstream", "http://127.0.0.1:9", "claude", "-p"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environ, cwd=tmp_path, text=True, **pipes) as ran:
        assert ran.stderr is not None
        assert ran.stderr.readline().startswith("requests go to http://127.0.0.1:9")
        said = ran.stderr.readline()
        assert ran.poll() is None
        ran.communicate("\n")
    assert said.startswith("127.0.0.1:9 cannot be reached: ")
    assert said.endswith("; the agent may try again. --upstream URL names another server\n")


@pytest.mark.story
def test_an_agent_that_asks_nothing_ends_with_the_reason_and_its_own_exit_code(tmp_path: Path) -> None:
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "[%s]" "$@"\nexit 42\n')
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "sevenfold", "run", "claude", "--upstream", "--", "", "a b", "-h"]
    ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 42
    assert re.fullmatch(r"\[--settings\]\[[^]]*\]\[--upstream\]\[--\]\[\]\[a b\]\[-h\]", ran.stdout)
    first, last = ran.stderr.splitlines()
    assert first.startswith("requests go to https://api.anthropic.com;")
    assert last.startswith("no requests: claude asked no model")


def test_requests_go_where_the_replaced_variables_led() -> None:
    goose = find_profile("goose")
    found = find_upstreams(
        None, {"ANTHROPIC_HOST": "http://gate:1", "OPENAI_HOST": "http://gate:2/v1"}, goose
    )
    assert (found.anthropic, found.openai) == ("http://gate:1", "http://gate:2")
    assert find_upstreams("http://one:3/v1", {}, goose) == Upstreams("http://one:3", "http://one:3")


@pytest.mark.story
def test_codex_is_not_started_without_a_key(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    environ |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SEVENFOLD_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "sevenfold", "run", "codex"]
    ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "OPENAI_API_KEY" in ran.stderr
