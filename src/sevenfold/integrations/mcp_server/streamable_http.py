"""The server over streamable HTTP, for clients on this machine.

Up to 2025-11-25 `initialize` opens a session, which the client names in a header. From 2026-07-28 on each
request stands alone, and headers repeat what its body says.

A web page can reach addresses of this machine too. So a request has to name this machine as its host, must
not come from a page of another origin, and needs the random part of the address.
"""

from __future__ import annotations

import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, cast

from sevenfold.integrations.mcp_server.dispatch import (
    ActiveCalls,
    HandshakeState,
    McpDispatcher,
    refuse_repeated,
)
from sevenfold.integrations.mcp_server.protocol import (
    BATCH_VERSIONS,
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_BATCH,
    MAX_INPUT_BYTES,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
    RpcMessage,
    as_wire,
    check_supported,
    find_rpc_id,
    is_rpc_id,
    is_stateless,
    make_error,
    read_rpc,
    read_wire,
    write_wire,
)

if TYPE_CHECKING:
    from sevenfold.integrations.mcp_server.protocol import RpcId, Wire

_ADDRESS = "127.0.0.1"
MAX_HTTP_SESSIONS = 200
"""The oldest is forgotten first; its client is told to begin again."""
MAX_HTTP_CONNECTIONS = 32
_IDLE_SECONDS = 60
"""For a connection on which nothing is sent."""

_VERSION_HEADER, _SESSION_HEADER = "MCP-Protocol-Version", "Mcp-Session-Id"
_METHOD_HEADER, _NAME_HEADER = "Mcp-Method", "Mcp-Name"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which parameter the header `Mcp-Name` repeats."""

_STATUS = {
    PARSE_ERROR: HTTPStatus.BAD_REQUEST,
    INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    INVALID_PARAMS: HTTPStatus.BAD_REQUEST,
    HEADER_MISMATCH: HTTPStatus.BAD_REQUEST,
    UNSUPPORTED_VERSION: HTTPStatus.BAD_REQUEST,
    METHOD_NOT_FOUND: HTTPStatus.NOT_FOUND,
}
"""Of an error in 2026-07-28. Before, an answer is 200 whatever it says."""


class _Refusal(Exception):
    """A request that is refused before its message is answered."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class HttpSession:
    """What a client of a version with a handshake has agreed on, and its requests under way."""

    def __init__(self) -> None:
        self.state = HandshakeState()
        self.calls = ActiveCalls()


class SessionTable:
    """The sessions by their ids."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()

    def open(self) -> str:
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._sessions[name] = HttpSession()
            while len(self._sessions) > MAX_HTTP_SESSIONS:
                self._sessions.popitem(last=False)
        return name

    def find(self, name: str | None) -> HttpSession:
        if not name:
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"{_SESSION_HEADER} is missing; begin with initialize")
        with self._lock:
            session = self._sessions.get(name)
            if session is None:
                raise _Refusal(HTTPStatus.NOT_FOUND, "there is no such session; begin again with initialize")
            self._sessions.move_to_end(name)
            return session

    def close(self, name: str | None) -> None:
        self.find(name)
        with self._lock:
            self._sessions.pop(name or "", None)


class McpHttpServer(ThreadingHTTPServer):
    """Listens on this machine alone."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, dispatcher: McpDispatcher, port: int, token: str) -> None:
        super().__init__((_ADDRESS, port), McpHttpConnection)
        self.dispatcher, self.sessions = dispatcher, SessionTable()
        self.path = f"/mcp/{token}"
        self.room = BoundedSemaphore(MAX_HTTP_CONNECTIONS)
        names = (_ADDRESS, "localhost")
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in names)

    @property
    def url(self) -> str:
        return f"http://{_ADDRESS}:{self.server_port}{self.path}"

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """A connection that breaks off is no news, and a defect is one line: the library would print a
        traceback."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            self.dispatcher.report(f"a request failed: {type(error).__name__}: {error}")

    def process_request(self, request: object, client_address: object) -> None:
        """One thread a connection, up to a limit; further connections wait."""
        self.room.acquire()
        super().process_request(request, client_address)  # pyright: ignore[reportArgumentType]

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)  # pyright: ignore[reportArgumentType]
        finally:
            self.room.release()


class McpHttpConnection(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "sevenfold", ""
    timeout = _IDLE_SECONDS
    server: McpHttpServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        self._guarded(self._post)

    def do_DELETE(self) -> None:
        self._guarded(self._delete)

    def do_GET(self) -> None:
        self._guarded(self._refuse_method)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that the library has)
        """Nothing is logged: an address holds the token."""

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            self._check_caller()
            act()
        except _Refusal as refusal:
            # The body may be unread, and what follows would be taken for a request.
            self.close_connection = True
            self._send_json(refusal.status, make_error(None, RpcError(INVALID_REQUEST, refusal.reason)))
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _check_caller(self) -> None:
        hosts, origins = self._all("Host"), self._all("Origin")
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            raise _Refusal(HTTPStatus.FORBIDDEN, "the host is not this machine")
        if any(origin not in {f"http://{host}" for host in self.server.hosts} for origin in origins):
            raise _Refusal(HTTPStatus.FORBIDDEN, "requests of web pages are not served")
        if not secrets.compare_digest(self.path.encode(), self.server.path.encode()):
            raise _Refusal(HTTPStatus.NOT_FOUND, "nothing is served at this address")

    def _all(self, header: str) -> list[str]:
        return self.headers.get_all(header) or []

    def _refuse_method(self) -> None:
        """There is no stream of messages that nobody asked for."""
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"", {"Allow": "POST, DELETE"})

    def _delete(self) -> None:
        self.server.sessions.close(self.headers.get(_SESSION_HEADER))
        self._send(HTTPStatus.OK, b"", {})

    def _post(self) -> None:
        body = self._read_body()
        try:
            value = read_wire(body)
        except RpcError as error:
            self._send_json(HTTPStatus.BAD_REQUEST, make_error(None, error))
            return
        if isinstance(value, list):
            self._post_batch(cast("list[object]", value))
            return
        try:
            message = read_rpc(value)
        except RpcError as error:
            self._send_json(HTTPStatus.BAD_REQUEST, make_error(find_rpc_id(value), error))
            return
        if self._wants_stateless(message):
            self._post_stateless(message)
        else:
            self._post_handshake(message)

    def _read_body(self) -> bytes:
        if self.headers.get_content_type() != "application/json":
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type is not application/json")
        lengths = self._all("Content-Length")
        is_number = len(lengths) == 1 and lengths[0].isascii() and lengths[0].isdigit()
        if not is_number or self.headers.get("Transfer-Encoding"):
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length")
        if len(lengths[0]) > 9 or int(lengths[0]) > MAX_INPUT_BYTES:
            reason = f"the body has {lengths[0][:20]} bytes; at most {MAX_INPUT_BYTES:,} are read"
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
        return self.rfile.read(int(lengths[0]))

    # 2026-07-28: every request stands alone.

    def _wants_stateless(self, message: RpcMessage | None) -> bool:
        if message is not None and is_stateless(message):
            return True
        named = self.headers.get(_VERSION_HEADER)
        return named is not None and named not in HANDSHAKE_VERSIONS

    def _post_stateless(self, message: RpcMessage | None) -> None:
        try:
            if message is None:
                raise RpcError(INVALID_REQUEST, "expected a request or a notification")
            if message.id is None:
                check_supported(self.headers.get(_VERSION_HEADER) or "")
                self._send(HTTPStatus.ACCEPTED, b"", {})
                return
            self._check_headers(message)
        except RpcError as error:
            answer = make_error(message.id if message else None, error)
            self._send_json(_STATUS.get(error.code, HTTPStatus.OK), answer)
            return
        state, calls = HandshakeState(), ActiveCalls()
        self._reply(message, state, calls, {})

    def _check_headers(self, message: RpcMessage) -> None:
        """That headers say what the body says: whoever routes by one must not be told something else."""
        key = _NAMED.get(message.method)
        expected = {
            _VERSION_HEADER: message.meta.get(VERSION_KEY),
            _METHOD_HEADER: message.method,
            **({_NAME_HEADER: message.params.get(key)} if key else {}),
        }
        if VERSION_KEY not in message.meta:
            raise RpcError(INVALID_PARAMS, f"params._meta has no {VERSION_KEY}")
        for header, value in expected.items():
            values = self._all(header)
            if len(values) != 1 or _decode_header(values[0]) != value:
                raise RpcError(HEADER_MISMATCH, f"the header {header} does not say what the body says")

    # Up to 2025-11-25: a session begins with a handshake.

    def _post_handshake(self, message: RpcMessage | None) -> None:
        if message is not None and message.method == "initialize":
            name = self.server.sessions.open()
            session = self.server.sessions.find(name)
            session.calls.begin(message.id)
            self._reply(message, session.state, session.calls, {_SESSION_HEADER: name})
            return
        session = self._find_session()
        if message is None or message.id is None:
            self._take_notification(session, message)
            self._send(HTTPStatus.ACCEPTED, b"", {})
        elif not session.calls.begin(message.id):
            self._send_json(HTTPStatus.OK, refuse_repeated(message.id))
        else:
            self._reply(message, session.state, session.calls, {})

    def _find_session(self) -> HttpSession:
        session = self.server.sessions.find(self.headers.get(_SESSION_HEADER))
        named = self.headers.get(_VERSION_HEADER)
        if named is not None and named != session.state.version:
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"{_VERSION_HEADER} is not the version of this session")
        return session

    def _take_notification(self, session: HttpSession, message: RpcMessage | None) -> None:
        if message is not None and message.method == "notifications/cancelled":
            wanted = message.params.get("requestId")
            if is_rpc_id(wanted):
                session.calls.cancel(cast("RpcId", wanted))

    def _post_batch(self, values: list[object]) -> None:
        session = self._find_session()
        if session.state.version not in BATCH_VERSIONS or not 0 < len(values) <= MAX_BATCH:
            reason = f"a batch is part of MCP 2025-03-26 only, and has 1 to {MAX_BATCH} messages"
            raise _Refusal(HTTPStatus.BAD_REQUEST, reason)
        answers = [answer for value in values if (answer := self._answer_one(session, value)) is not None]
        if answers:
            self._send_json(HTTPStatus.OK, answers)
        else:
            self._send(HTTPStatus.ACCEPTED, b"", {})

    def _answer_one(self, session: HttpSession, value: object) -> Wire | None:
        try:
            message = read_rpc(value)
        except RpcError as error:
            return make_error(find_rpc_id(value), error)
        if message is None or message.id is None:
            self._take_notification(session, message)
            return None
        if message.method == "initialize":
            return make_error(message.id, RpcError(INVALID_REQUEST, "initialize in a batch"))
        if not session.calls.begin(message.id):
            return refuse_repeated(message.id)
        dispatcher = self.server.dispatcher
        return session.calls.run(message, lambda: dispatcher.answer(message, session.state), _ignore)

    # Answers.

    def _reply(
        self, message: RpcMessage, state: HandshakeState, calls: ActiveCalls, headers: dict[str, str]
    ) -> None:
        accepts = ",".join(self._all("Accept"))
        dispatcher = self.server.dispatcher
        if message.progress_token is not None and "text/event-stream" in accepts:
            self._stream(message, state, calls)
            return
        answer = calls.run(message, lambda: dispatcher.answer(message, state), _ignore)
        if answer is None:
            self._send(HTTPStatus.ACCEPTED, b"", headers)
            return
        code = as_wire(answer.get("error")).get("code")
        is_error = state.version is None and isinstance(code, int)
        status = _STATUS.get(cast("int", code), HTTPStatus.OK) if is_error else HTTPStatus.OK
        self._send_json(status, answer, headers)

    def _stream(self, message: RpcMessage, state: HandshakeState, calls: ActiveCalls) -> None:
        """Progress and then the answer, as events. The end of the connection is the end of the stream."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        writing = Lock()

        def send(value: Wire) -> None:
            with writing:
                self.wfile.write(b"event: message\ndata: " + write_wire(value) + b"\n\n")
                self.wfile.flush()

        dispatcher = self.server.dispatcher
        answer = calls.run(message, lambda: dispatcher.answer(message, state), send)
        if answer is not None:
            send(answer)

    def _send_json(
        self, status: HTTPStatus, value: Wire | list[Wire], headers: dict[str, str] | None = None
    ) -> None:
        self._send(status, write_wire(value), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _ignore(_value: Wire) -> None:
    """For progress that the client cannot be sent."""


def _decode_header(value: str) -> str | None:
    """A header's value; one that is not plain ASCII travels as `=?base64?…?=`."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    from base64 import b64decode

    try:
        return b64decode(value[len("=?base64?") : -2], validate=True).decode()
    except ValueError:
        return None
