"""A client for tests: it writes lines to the server and reads what came back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from threading import Event
from typing import Any, cast

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.integrations.mcp_server.backend import McpBackend
from sevenfold.integrations.mcp_server.dispatch import HandshakeState, McpDispatcher
from sevenfold.integrations.mcp_server.protocol import (
    CAPABILITIES_KEY,
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    VERSION_KEY,
    Wire,
    read_rpc,
)
from sevenfold.integrations.mcp_server.stdio import StdioServer

ALL_VERSIONS = (*HANDSHAKE_VERSIONS, *STATELESS_VERSIONS)
MEMORIES = {f"note-{number}.md": f"# note {number}" for number in range(250)}


class FakeOperations:
    """Operations that remember how they were called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.before: Callable[[str], None] = lambda _operation: None

    def __call__(
        self, operation: str, arguments: Mapping[str, object], /, *, deadline_seconds: float
    ) -> dict[str, object]:
        assert deadline_seconds > 0
        self.calls.append((operation, dict(arguments)))
        self.before(operation)
        match operation:
            case "recall":
                return {"memories": [], "text": f"recalled for {arguments['prompt']}"}
            case "remember":
                return {"status": "waiting", "key": "a.md", "message": "it waits for review"}
            case "search_sessions":
                hit = {"agent": "codex", "project": "app", "at": None, "title": "Retries", "snippet": "three"}
                return {"hits": [{**hit, "resume": "codex resume 1"}], "is_busy": True}
            case "read_result":
                return {"text": "part", "offset": 0, "next_offset": 4, "total_bytes": 9}
            case "spend":
                cap = {"micro_usd": 1_500, "tokens": 20, "cap_micro_usd": 2_000_000, "cap_tokens": 300}
                kind = {"calls": 2, "tokens": 20, "micro_usd": 1_500}
                return {"background": True, "hour": cap, "day": cap, "kinds": {"recall": kind}}
            case "memory_index":
                lines = "".join(f"- [{key}]({key}) — about {key}\n" for key in MEMORIES)
                return {"text": lines, "keys": list(MEMORIES)}
            case "memory_read":
                key = str(arguments["key"])
                if key not in MEMORIES:
                    raise FileMissing(f"there is no memory {key}")
                return {"text": MEMORIES[key]}
            case _:
                raise InputError(operation)


def make_request(method: str, version: str, rpc_id: object = 1, **params: object) -> Wire:
    """A request as a client of that version sends it."""
    if version in STATELESS_VERSIONS:
        meta: Wire = {**cast("Wire", params.get("_meta", {})), VERSION_KEY: version, CAPABILITIES_KEY: {}}
        params = {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}


class FakeClient:
    """Talks to a dispatcher, or to a server on standard streams."""

    def __init__(self, version: str = "2025-11-25") -> None:
        self.version = version
        self.operations = FakeOperations()
        self.backend = McpBackend("/srv/app", self.operations)
        self.dispatcher = McpDispatcher(self.backend)
        self.state = HandshakeState()
        if version not in STATELESS_VERSIONS:
            self.state.version = version

    def ask(self, method: str, **params: object) -> Wire:
        """The whole response."""
        message = read_rpc(make_request(method, self.version, **params))
        assert message is not None
        return cast("Wire", json.loads(json.dumps(self.dispatcher.answer(message, self.state))))

    def result(self, method: str, **params: object) -> dict[str, Any]:
        return cast("dict[str, Any]", self.ask(method, **params)["result"])

    def error(self, method: str, **params: object) -> dict[str, Any]:
        return cast("dict[str, Any]", self.ask(method, **params)["error"])

    def serve(self, *lines: object, pause: Callable[[Event], bool] | None = None) -> list[Any]:
        """What a server prints that reads these lines after a handshake. Bytes are sent as they are."""
        first = make_request("initialize", self.version, "init", protocolVersion=self.version)
        handshake = [] if self.version in STATELESS_VERSIONS else [first]
        sent = [
            line if isinstance(line, bytes) else json.dumps(line).encode() for line in (*handshake, *lines)
        ]
        writing = BytesIO()
        reading = BytesIO(b"".join(line + b"\n" for line in sent))
        server = StdioServer(self.dispatcher, reading, writing, pause or (lambda done: done.wait(60)))
        server.serve()
        return [json.loads(line) for line in writing.getvalue().splitlines()][len(handshake) :]
