"""Runs over real HTTP, with the official SDKs on the simulator: paths, tokens, headers, and what is kept."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from sevenfold.core.errors import InputError
from sevenfold.proxy.layers import ProxyLayers
from sevenfold.proxy.ledger import ProxyLedger
from sevenfold.proxy.profiles import find_profile
from sevenfold.proxy.receipt import list_ledgers, read_proxy_ledger, render_receipt
from sevenfold.proxy.requests import Upstreams
from sevenfold.proxy.server import ProxyApp, ProxyRun, ProxyServer
from sevenfold.proxy.state import RunStore
from sevenfold.store.files.folder import Folder
from sevenfold.testing import Simulator
from tests.proxy.asking import SHELL, call, open_layers, render, result, user
from tests.proxy.test_layers import LARGE, remember
from tests.proxy.test_server import KEY, post

SYSTEM = "You are a careful assistant. " * 1_000


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator(lambda _: "Done.") as running:
        yield running


@pytest.fixture
def layers(tmp_path: Path) -> Generator[ProxyLayers]:
    opened = open_layers(tmp_path / "home")
    yield opened
    opened.close()


@pytest.fixture
def proxy(sim: Simulator, layers: ProxyLayers, tmp_path: Path) -> Generator[ProxyServer]:
    (tmp_path / "project").mkdir(exist_ok=True)
    folder = Folder.open(tmp_path / "home/proxy", create=True)
    app = ProxyApp(
        ledger=ProxyLedger(folder=folder, name="2026-11-16-120000-1.jsonl"),
        upstreams=Upstreams(sim.url, sim.url),
        layers=layers,
        run_store=RunStore(folder),
    )
    server = ProxyServer(app)
    server.start()
    yield server
    server.stop()
    folder.close()


def start_run(proxy: ProxyServer, tmp_path: Path, agent: str = "mini-swe-agent", **fields: bool) -> str:
    return proxy.run_url(ProxyRun.create(find_profile(agent), str(tmp_path / "project"), **fields))


def ask(url: str, messages: list[Any]) -> Any:
    client = anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0)
    with client.messages.stream(
        model="claude-opus-4-5", max_tokens=100, system=SYSTEM, tools=SHELL, messages=messages
    ) as stream:
        stream.get_final_message()
        return stream.response.headers


def test_a_session_costs_less_with_the_layers_and_says_what_was_done(
    sim: Simulator, proxy: ProxyServer, layers: ProxyLayers, tmp_path: Path
) -> None:
    remember(tmp_path, "deploy", "Deploy the frobnicator with `make ship`, never by hand.")
    prompt = "How do I deploy the frobnicator? From now on always answer in German."
    asked = [user(prompt), call(1, "find /"), result(1, LARGE), call(2, "ls"), result(2, "a")]
    costs: list[Any] = []
    for records_only in (True, False):
        url = start_run(proxy, tmp_path, records_only=records_only)
        for end in (1, 3, 5):
            headers = ask(url, asked[:end])
        assert (headers.get("x-sevenfold-changed") == "yes") == (not records_only)
        billed = sim.ledger.billed[-3:]
        costs.append(sum(entry.cost.total for entry in billed if entry.cost))
    assert costs[1] < costs[0] * 3 / 4
    proxy.stop()
    layers.finish()
    assert layers.memory.learnt.written + layers.memory.learnt.waiting >= 1, "what the user said was learnt"
    entries = proxy.app.ledger.entries
    assert [entry.cost for entry in entries] == [entry.cost for entry in sim.ledger.billed]
    receipt = "\n".join(render_receipt(entries))
    assert "spill: " in receipt
    assert "recall: " in receipt
    with Folder.open(tmp_path / "home/proxy") as folder:
        (summary,) = list_ledgers(folder)
        lines = read_proxy_ledger(folder, summary.name)
    assert (summary.requests, summary.agents) == (6, ("mini-swe-agent",))
    assert summary.saved_tokens > 20_000
    assert "spill" in json.dumps(lines[4]["layers"]["acted"])  # pyright: ignore[reportIndexIssue, reportCallIssue, reportArgumentType, reportOptionalSubscript]
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]
    assert not [path for path in kept if prompt.encode() in path.read_bytes() and "proxy/" in str(path)]


def test_openai_clients_pass_the_layers_too(proxy: ProxyServer, tmp_path: Path) -> None:
    client = openai.OpenAI(
        api_key=KEY, base_url=f"{start_run(proxy, tmp_path, agent='qwen')}/v1", max_retries=0
    )
    made: Any = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    messages: list[Any] = [
        user("Look."),
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": LARGE},
    ]
    tools: Any = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
    answer = client.chat.completions.with_raw_response.create(model="gpt-5", messages=messages, tools=tools)
    assert answer.headers["x-sevenfold-layers"] == "spill"
    usage = answer.parse().usage
    assert usage is not None
    assert usage.prompt_tokens < 5_000


SEEN: list[bytes] = []


class Upstream(BaseHTTPRequestHandler):
    """Keeps what it gets. Streams an answer; while `is_stuck`, only its beginning."""

    is_stuck = False

    refuses = b"\0"
    """What a body must not hold."""

    def do_POST(self) -> None:
        SEEN.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(400 if Upstream.refuses in SEEN[-1] else 200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        usage = '{"input_tokens": 9, "output_tokens": 4}'
        self.wfile.write(
            f'event: message_start\ndata: {{"message": {{"usage": {usage}}}}}\n\n'.encode(),
        )
        self.wfile.flush()
        if Upstream.is_stuck:
            self.rfile.read(1)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name
        """Nobody reads it."""


@pytest.fixture
def upstream() -> Generator[str]:
    SEEN.clear()
    Upstream.is_stuck = False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_run_is_known_after_a_restart_and_a_wrong_token_is_left_alone(
    upstream: str, layers: ProxyLayers, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    body = render([user("Look."), call(1, "find /"), result(1, LARGE)])
    with Folder.open(tmp_path / "home/proxy") as folder:
        paths: list[str] = []
        for _ in range(2):
            app = ProxyApp(
                ledger=ProxyLedger(),
                upstreams=Upstreams(upstream, upstream),
                layers=layers,
                run_store=RunStore(folder),
            )
            server = ProxyServer(app)
            server.start()
            if not paths:
                paths = [start_run(server, tmp_path).removeprefix(server.url), "/run/wrong"]
            answers = [post(server.url, f"{path}/v1/messages", body, x_api_key=KEY) for path in paths]
            server.stop()
            assert [headers.get("x-sevenfold-changed") for _, headers, _ in answers] == ["yes", "no"]
            assert "token is not known" in answers[1][1]["x-sevenfold-failed"]
    assert SEEN[0] == SEEN[2] != body
    assert SEEN[1] == SEEN[3] == body
    assert "/run/" not in "".join(path.name for path in (tmp_path / "home/proxy/runs").iterdir())


def test_layers_that_cannot_work_at_all_leave_every_byte_alone(
    upstream: str, layers: ProxyLayers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()

    def fail(*_: object) -> None:
        raise RuntimeError("no state")

    monkeypatch.setattr(type(layers.store), "find", fail)
    app = ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams(upstream, upstream), layers=layers)
    server = ProxyServer(app)
    server.start()
    body = render([user("Look."), call(1, "find /"), result(1, LARGE)])
    path = start_run(server, tmp_path).removeprefix(server.url)
    _, headers, _ = post(server.url, f"{path}/v1/messages", body, x_api_key=KEY)
    server.stop()
    assert [body] == SEEN
    assert headers["x-sevenfold-failed"] == "layers: RuntimeError: no state"
    (entry,) = app.ledger.entries
    assert entry.touch.failures == ("layers: RuntimeError: no state",)
    assert entry.facts.purpose == "turn"


def test_what_a_provider_refuses_only_when_it_was_changed_is_sent_as_it_came(
    upstream: str, layers: ProxyLayers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.setattr(Upstream, "refuses", b"persisted-output")
    app = ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams(upstream, upstream), layers=layers)
    server = ProxyServer(app)
    server.start()
    asked = [user("Look."), call(1, "find /"), result(1, LARGE)]
    bodies = [render(asked), render([*asked, call(2, "ls"), result(2, "a")])]
    path = start_run(server, tmp_path).removeprefix(server.url)
    answers = [post(server.url, f"{path}/v1/messages", body, x_api_key=KEY) for body in bodies]
    server.stop()
    assert [status for status, _, _ in answers] == [200, 200]
    assert SEEN[1:] == bodies, "once it was refused, the conversation is left alone"
    assert all("it refused" in headers["x-sevenfold-failed"] for _, headers, _ in answers)


def test_paths_pass_as_they_were_written(upstream: str) -> None:
    server = ProxyServer(ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams(upstream, upstream)))
    server.start()
    seen: list[str] = []

    def keep(self: Upstream) -> None:
        seen.append(self.path)
        self.send_response(200)
        self.end_headers()

    Upstream.do_GET = keep  # type: ignore[attr-defined]
    import http.client

    host, port = server.url.removeprefix("http://").split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=60)) as connection:
        connection.request("GET", "/v1/models/a%2Fb%20c?x=1%202")
        connection.getresponse().read()
    server.stop()
    assert seen == ["/v1/models/a%2Fb%20c?x=1%202"]


def test_off_loopback_a_token_is_asked_for(upstream: str) -> None:
    app = ProxyApp(ledger=ProxyLedger(), upstreams=Upstreams(upstream, upstream))
    with pytest.raises(InputError, match="needs a token"):
        ProxyServer(app, address="0.0.0.0")
    app.access_token = "let-me-in"
    server = ProxyServer(app, address="127.0.0.1")
    server.start()
    try:
        url = server.url
        assert post(url, "/v1/messages", b"{}", host="elsewhere:1")[0] == 403
        bearer = "Bearer let-me-in"
        assert post(url, "/v1/messages", b"{}", host="elsewhere:1", proxy_authorization=bearer)[0] == 200
        path = server.run_url(ProxyRun.create(None)).removeprefix(url)
        assert post(url, f"{path}/v1/messages", b"{}", host="elsewhere:1")[0] == 200
    finally:
        server.stop()


@pytest.mark.story
def test_a_proxy_that_is_killed_in_mid_stream_sends_the_same_bytes_after_a_restart(
    upstream: str, tmp_path: Path
) -> None:
    remember(tmp_path, "deploy", "Deploy the frobnicator with `make ship`, never by hand.")
    asked = [user("How do I deploy the frobnicator?"), call(1, "find /"), result(1, LARGE)]
    bodies = [render(asked[:1]), render(asked), render([*asked, call(2, "ls"), result(2, "a")])]
    home = tmp_path / "home"
    (tmp_path / "kept").mkdir()
    runs: list[list[bytes]] = []
    for is_disturbed in (False, True):
        SEEN.clear()
        process, url = start_proxy(upstream, tmp_path, [])
        base = url.rpartition("/run/")[0]
        port, path = base.rpartition(":")[2], f"/run/{url.rpartition('/run/')[2]}/v1/messages"
        try:
            post(base, path, bodies[0], x_api_key=KEY)
            if is_disturbed:
                Upstream.is_stuck = True
                with (
                    closing(start_request(base, path, bodies[1])) as connection,
                    closing(connection.getresponse()) as response,
                ):
                    response.read(20)
                    kill_proxy(process)
                Upstream.is_stuck = False
                process, _ = start_proxy(upstream, tmp_path, ["--port", port])
            post(base, path, bodies[1], x_api_key=KEY)
            post(base, path, bodies[2], x_api_key=KEY)
        finally:
            kill_proxy(process)
        runs.append(list(SEEN))
        if not is_disturbed:  # the same home, as it was before the first run
            (home / "proxy").rename(tmp_path / "kept/proxy")
    plain, disturbed = runs
    assert disturbed[1] == disturbed[2], "the request that was cut off, sent again"
    assert [disturbed[0], *disturbed[2:]] == plain
    assert b"make ship" in plain[0]
    assert b"persisted-output" in plain[1]


def kill_proxy(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def start_request(base: str, path: str, body: bytes) -> Any:
    import http.client

    host, port = base.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", path, body, {"x-api-key": KEY})
    return connection


def start_proxy(upstream: str, tmp_path: Path, options: list[str]) -> tuple[subprocess.Popen[str], str]:
    environ = {**os.environ, "SEVENFOLD_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "sevenfold", "proxy", "--agent", "mini-swe-agent", "--quiet"]
    command += ["--upstream", upstream, "--project", str(tmp_path / "project"), *options]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "ANTHROPIC_BASE_URL=" in line:
            return process, line.strip().partition("=")[2]
    raise AssertionError("the proxy did not start")


@pytest.mark.story
@pytest.mark.parametrize(("model", "least"), [("claude-opus-4-5", 0.08), ("claude-opus-5-5", 0.1)])
def test_a_session_of_54_rounds_is_cleared_and_never_costs_much_more(
    sim: Simulator, proxy: ProxyServer, tmp_path: Path, model: str, least: float
) -> None:
    choices = random.Random(1)
    texts = [
        "\n".join(f"def f{n}_{i}(x): return x + {choices.random()}" for i in range(60)) for n in range(54)
    ]
    bills: list[list[float]] = []
    for agent, records_only in (("claude", True), ("mini-swe-agent", False)):
        url = start_run(proxy, tmp_path, agent, records_only=records_only)
        client = anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0)
        asked: list[Any] = [user("Read all of it.")]
        begun = len(sim.ledger.billed)
        bill: list[float] = []
        for number, text in enumerate(texts):
            sent: Any = copy.deepcopy(asked)
            if records_only:  # a breakpoint at the end, which the layers set by themselves
                words = [{"type": "text", "text": "Read all of it."}]
                sent[-1]["content"] = sent[-1]["content"] if number else words
                sent[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
            client.messages.create(model=model, max_tokens=100, system=SYSTEM, tools=SHELL, messages=sent)
            asked += [call(number, f"cat file{number}.py"), result(number, text)]
            bill.append(float(sum(entry.cost.total for entry in sim.ledger.billed[begun:] if entry.cost)))
        bills.append(bill)
    kept, cleared = bills
    assert cleared[-1] < kept[-1] * (1 - least)
    assert max(now / then for now, then in zip(cleared, kept, strict=True)) < 1.06
