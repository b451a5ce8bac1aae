"""Asks an ASGI application without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sevenfold.ui.access import RUN_HEADER, GuardedApp, PageAccess

PORT = 7007


@dataclass(slots=True)
class Answer:
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytes = b""

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key == name)

    @property
    def error(self) -> str:
        return json.loads(self.body)["error"]


def ask(
    app: GuardedApp,
    method: str,
    path: str,
    headers: Sequence[tuple[str, str]] | Mapping[str, str] = (),
    body: bytes = b"",
) -> Answer:
    """One request, and its whole response."""
    answer, pairs = Answer(), list(headers.items() if isinstance(headers, Mapping) else headers)
    bare, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": bare,
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
        "scheme": "http",
        "server": ("127.0.0.1", PORT),
        "client": ("127.0.0.1", 50_000),
        "root_path": "",
    }

    bodies = [body]

    async def receive() -> dict[str, Any]:
        if not bodies:
            await asyncio.Event().wait()  # the client stays
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = [(name.decode(), value.decode()) for name, value in message.get("headers", ())]
        else:
            answer.body += message.get("body", b"")

    asyncio.run(app(scope, receive, send))
    return answer


def follow_link(app: GuardedApp, access: PageAccess) -> str:
    """The cookie that a link sets."""
    link = access.make_link()
    answer = ask(app, "GET", link.removeprefix(f"http://127.0.0.1:{PORT}"), {"host": f"127.0.0.1:{PORT}"})
    assert answer.status == 200
    return answer.header("set-cookie").partition(";")[0]


def own_headers(app: GuardedApp, access: PageAccess) -> dict[str, str]:
    """What our own page sends."""
    return {
        "host": f"127.0.0.1:{PORT}",
        "cookie": follow_link(app, access),
        RUN_HEADER: access.run_key,
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
    }
