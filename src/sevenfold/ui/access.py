"""Who may use the page: only the browser that opened the link of this run.

An ASGI middleware that stands before everything. A request must name this address and port (a name that was
pointed at 127.0.0.1 is refused), have the cookie that the link sets once, and for data also the key of this
run. The key is kept in the browser's storage, which belongs to one port. A cookie does not: a browser sends
it to every port of 127.0.0.1, so a server on another port may see it, and can do nothing with it alone.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINK_PARAMETER = "token"
RUN_HEADER = "x-sevenfold-run"
TICKET_PARAMETER = "ticket"
STREAM_PATH = "/api/stream"
DATA_PREFIX = "/api/"

SAFE_METHODS = frozenset({"GET", "HEAD"})
MAX_TICKETS = 8
"""Tickets that were given out and not used: a page uses its own at once."""

PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Only our own files are loaded or run, and no text can become HTML or a script."""

SAFE_HEADERS: Mapping[str, str] = {
    "content-security-policy": PAGE_POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

_USED_LINK = (
    "This page belongs to the browser that opened its link, and a link works once. "
    "Press Enter in the terminal that runs `sevenfold ui` for a new one."
)


class PageAccess:
    """The secrets of one run, and the checks."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self.cookie_name = f"sevenfold-{port}"
        self.run_key = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._links: set[str] = set()
        self._tickets: list[str] = []

    def make_link(self) -> str:
        """A new link to the page. It works once."""
        token = secrets.token_urlsafe(32)
        self._links.add(token)
        return f"http://127.0.0.1:{self.port}/?{LINK_PARAMETER}={token}"

    def use_link(self, token: str) -> bool:
        """Whether a link with this token may be followed. It is used up by that."""
        found = [link for link in self._links if _is_same(link, token)]
        self._links.difference_update(found)
        return bool(found)

    def make_ticket(self) -> str:
        """For one stream of events: `EventSource` sends no headers."""
        self._tickets = [*self._tickets, secrets.token_urlsafe(32)][-MAX_TICKETS:]
        return self._tickets[-1]

    def use_ticket(self, ticket: str) -> bool:
        found = [one for one in self._tickets if _is_same(one, ticket)]
        self._tickets = [one for one in self._tickets if one not in found]
        return bool(found)

    @property
    def cookie(self) -> str:
        """The header that sets the cookie, for the time that the browser runs."""
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def has_cookie(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and _is_same(found.value, self._cookie)

    def refuse_call(self, method: str, headers: Mapping[str, str]) -> str:
        """Why a request for data is refused; empty: it is not."""
        if not _is_same(headers.get(RUN_HEADER, ""), self.run_key):
            return f"the header {RUN_HEADER} of this run is missing; open the page by its link"
        site = headers.get("sec-fetch-site", "")
        if site != "same-origin" and (site or method not in SAFE_METHODS):
            return "the request does not come from this page"
        origin = headers.get("origin", "")
        if origin and origin not in {f"http://{host}" for host in self.hosts}:
            return f"the request comes from {origin[:100]!r}"
        return ""


def _is_same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class GuardedApp:
    """The application behind the checks. Every response has the headers of `SAFE_HEADERS`."""

    def __init__(self, app: ASGIApp, access: PageAccess, arrival: bytes) -> None:
        self._app, self._access, self._arrival = app, access, arrival

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            await send(message)

        headers = _read_headers(scope)
        reply = self._check(scope, headers)
        if reply is None:
            await self._app(scope, receive, send_safe)
        else:
            await reply.send(send_safe)

    def _check(self, scope: Scope, headers: Mapping[str, str]) -> _Reply | None:
        """The answer to a request that goes no further; None: it may pass."""
        path, method, access = str(scope["path"]), str(scope["method"]), self._access
        if headers.get("host", "") not in access.hosts:
            return _Reply.refuse(421, f"this address is not {' or '.join(sorted(access.hosts))}")
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        has_cookie = access.has_cookie(headers.get("cookie", ""))
        if path == "/" and LINK_PARAMETER in query and method == "GET":
            if access.use_link(query[LINK_PARAMETER][0]):
                return _Reply(200, self._arrival, "text/html; charset=utf-8", {"set-cookie": access.cookie})
            return _Reply(303, b"", "text/plain", {"location": "/"}) if has_cookie else _refuse_stranger()
        if not has_cookie:
            return _refuse_stranger()
        if path == STREAM_PATH and method == "GET":
            is_ours = access.use_ticket(query.get(TICKET_PARAMETER, [""])[0])
            return None if is_ours else _Reply.refuse(403, "the ticket of this stream is missing or used")
        if path.startswith(DATA_PREFIX):
            reason = access.refuse_call(method, headers)
            return _Reply.refuse(403, reason) if reason else None
        return None if method in SAFE_METHODS else _Reply.refuse(405, "only data can be changed")


def _refuse_stranger() -> _Reply:
    return _Reply(403, _USED_LINK.encode(), "text/plain; charset=utf-8", {})


def _read_headers(scope: Scope) -> dict[str, str]:
    """By name; one that comes twice is kept as both, which no check accepts."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


class _Reply:
    """A whole response, made without the application."""

    def __init__(self, status: int, body: bytes, kind: str, more: Mapping[str, str]) -> None:
        self.status, self.body = status, body
        self.headers = {"content-type": kind, "content-length": str(len(body)), **more}

    @classmethod
    def refuse(cls, status: int, reason: str) -> _Reply:
        return cls(status, json.dumps({"error": reason}).encode(), "application/json", {})

    async def send(self, send: Send) -> None:
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})
