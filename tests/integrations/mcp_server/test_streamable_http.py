"""The server over streamable HTTP."""

from __future__ import annotations

import json
import socket
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from threading import Thread
from typing import Any

import pytest

from sevenfold.integrations.mcp_server.protocol import HANDSHAKE_VERSIONS, HEADER_MISMATCH, MAX_INPUT_BYTES
from sevenfold.integrations.mcp_server.streamable_http import MAX_HTTP_SESSIONS, McpHttpServer
from tests.integrations.mcp_server.talking import FakeClient, make_request

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class HttpClient:
    """Sends requests to a server of its own."""

    def __init__(self) -> None:
        self.fake = FakeClient()
        self.server = McpHttpServer(self.fake.dispatcher, 0, "token")
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def send(
        self, body: object, headers: dict[str, str] | None = None, *, method: str = "POST", path: str = ""
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=30)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path or self.server.path, data, {**JSON, **(headers or {})})
        response = connection.getresponse()
        found = response.read()
        connection.close()
        return response, found

    def ask(self, body: object, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        response, data = self.send(body, headers)
        return response.status, json.loads(data) if data else None

    def open(self, version: str) -> dict[str, str]:
        """The headers of a session at that version."""
        response, data = self.send(make_request("initialize", version, protocolVersion=version))
        assert json.loads(data)["result"]["protocolVersion"] == version
        name = response.headers["Mcp-Session-Id"]
        assert name
        return {"Mcp-Session-Id": name, "MCP-Protocol-Version": version}


@pytest.fixture
def client() -> Iterator[HttpClient]:
    made = HttpClient()
    yield made
    made.close()


def test_a_length_in_other_digits_is_refused(client: HttpClient, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", client.server.server_port), timeout=30) as connection:
        head = f"POST {client.server.path} HTTP/1.1\r\nHost: 127.0.0.1:{client.server.server_port}\r\n"
        kind = "Content-Type: application/json\r\nContent-Length: \xb2\r\n\r\n{}"
        connection.sendall((head + kind).encode("latin-1"))
        answer = connection.recv(4_096)
    assert answer.startswith(b"HTTP/1.1 411")
    assert "Traceback" not in capsys.readouterr().err


def test_a_failed_connection_prints_no_traceback(
    client: HttpClient, capsys: pytest.CaptureFixture[str]
) -> None:
    for error in (ConnectionResetError(), TimeoutError(), ValueError("\x1b]0;bad\x07")):
        try:
            raise error
        except Exception:
            client.server.handle_error(None, None)
    said = capsys.readouterr().err
    assert ("Traceback" in said, "\x1b" in said) == (False, False)
    assert said.count("\n") == 1
    assert said.startswith("sevenfold mcp: a request failed: ValueError")


def stateless(method: str, **params: object) -> tuple[dict[str, object], dict[str, str]]:
    """A request of 2026-07-28 with the headers that belong to it."""
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    name = params.get("name", params.get("uri"))
    if isinstance(name, str):
        headers["Mcp-Name"] = name
    return make_request(method, "2026-07-28", **params), headers


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_a_session_is_opened_used_and_closed(client: HttpClient, version: str) -> None:
    headers = client.open(version)
    assert client.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers) == (202, None)
    status, answer = client.ask(make_request("tools/list", version), headers)
    assert (status, len(answer["result"]["tools"])) == (200, 5)
    assert client.send(b"", headers, method="DELETE")[0].status == 200
    assert client.ask(make_request("tools/list", version), headers)[0] == 404
    assert client.ask(make_request("tools/list", version))[0] == 400


def test_a_stateless_request_needs_no_session_and_gets_none(client: HttpClient) -> None:
    body, headers = stateless("server/discover")
    response, data = client.send(body, headers)
    assert json.loads(data)["result"]["supportedVersions"] == ["2026-07-28"]
    assert response.headers["Mcp-Session-Id"] is None
    status, answer = client.ask(*stateless("tools/call", name="recall", arguments={"query": "retries"}))
    assert (status, answer["result"]["content"][0]["text"]) == (200, "recalled for retries")
    named = {**stateless("resources/read", uri="sevenfold://memory/note-1.md")[1]}
    named["Mcp-Name"] = f"=?base64?{b64encode(named['Mcp-Name'].encode()).decode()}?="
    body, _ = stateless("resources/read", uri="sevenfold://memory/note-1.md")
    assert client.ask(body, named)[0] == 200
    assert client.ask({"jsonrpc": "2.0", "method": "notifications/x"}, headers) == (202, None)


@pytest.mark.parametrize(
    ("method", "params", "status"),
    [
        ("tools/nothing", {}, 404),
        ("tools/call", {"name": "nothing"}, 400),
        ("ping", {}, 404),
    ],
)
def test_errors_of_stateless_requests_have_a_status(
    client: HttpClient, method: str, params: dict[str, object], status: int
) -> None:
    assert client.ask(*stateless(method, **params))[0] == status


@pytest.mark.parametrize(
    "change",
    [
        {"MCP-Protocol-Version": "2025-11-25"},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Name": "spend"},
        {"Mcp-Name": "=?base64?***?="},
    ],
)
def test_headers_that_contradict_the_body_are_refused(client: HttpClient, change: dict[str, str]) -> None:
    body, headers = stateless("tools/call", name="recall", arguments={"query": "retries"})
    status, answer = client.ask(body, {**headers, **change})
    assert (status, answer["error"]["code"]) == (400, HEADER_MISMATCH)
    assert client.fake.operations.calls == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:80"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Length": "x"}, 411),
        ({"Content-Length": str(MAX_INPUT_BYTES + 1)}, 413),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_a_request_that_a_web_page_could_send_or_that_has_no_bound_is_refused(
    client: HttpClient, headers: dict[str, str], status: int
) -> None:
    response, _ = client.send(make_request("initialize", "2025-11-25"), headers)
    assert response.status == status
    assert response.headers["Access-Control-Allow-Origin"] is None


def test_only_the_address_with_the_token_is_served_and_only_on_this_machine(client: HttpClient) -> None:
    for path in ("/", "/mcp", "/mcp/", "/mcp/tokeN", "/mcp/token/x"):
        assert client.send(make_request("initialize", "2025-11-25"), path=path)[0].status == 404
    assert client.server.server_address[0] == "127.0.0.1"
    assert client.server.url.endswith("/mcp/token")


def test_there_is_no_stream_to_get(client: HttpClient) -> None:
    response, _ = client.send(b"", method="GET")
    assert (response.status, response.headers["Allow"]) == (405, "POST, DELETE")


@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b'{"jsonrpc":"2.0","id":{},"method":"ping"}'])
def test_a_body_that_is_no_message_is_refused(client: HttpClient, body: bytes) -> None:
    assert client.send(body)[0].status == 400


def test_progress_comes_as_events_before_the_answer(client: HttpClient) -> None:
    headers = client.open("2025-11-25")
    params = {"name": "recall", "arguments": {"query": "q"}, "_meta": {"progressToken": 7}}
    response, data = client.send(make_request("tools/call", "2025-11-25", 5, **params), headers)
    assert response.headers.get_content_type() == "text/event-stream"
    events = [json.loads(part.partition("data: ")[2]) for part in data.decode().split("\n\n") if part]
    assert events[0]["params"] == {"progressToken": 7, "progress": 0, "message": "recall is running"}
    assert events[-1]["result"]["content"][0]["text"] == "recalled for q"


def test_a_batch_is_answered_in_the_version_that_has_batches(client: HttpClient) -> None:
    batch = [make_request("ping", "2025-03-26", 1), {"jsonrpc": "2.0", "method": "notifications/x"}]
    status, answers = client.ask(batch, client.open("2025-03-26"))
    assert (status, answers) == (200, [{"jsonrpc": "2.0", "id": 1, "result": {}}])
    assert client.ask(batch[1:], client.open("2025-03-26")) == (202, None)
    assert client.ask(batch, client.open("2025-06-18"))[0] == 400


def test_a_session_at_another_version_is_refused(client: HttpClient) -> None:
    headers = {**client.open("2025-11-25"), "MCP-Protocol-Version": "2025-06-18"}
    assert client.ask(make_request("ping", "2025-06-18"), headers)[0] == 400


def test_the_oldest_of_too_many_sessions_is_forgotten(client: HttpClient) -> None:
    first = client.open("2025-11-25")
    for _ in range(MAX_HTTP_SESSIONS):
        client.server.sessions.open()
    assert client.ask(make_request("ping", "2025-11-25"), first)[0] == 404
