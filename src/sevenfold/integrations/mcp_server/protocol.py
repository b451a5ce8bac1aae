"""Versions of MCP, JSON-RPC messages and errors, and what each version wants in a result.

Up to 2025-11-25 a client begins with `initialize`, and the version holds for the connection. From 2026-07-28
on there is no handshake: each request carries its version in `_meta`, and nothing is remembered between
requests.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
"""As in `typing`, which no module on the way to the first answer imports: it takes too long."""
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias, cast
else:

    def cast(_kind: str, value: object) -> object:
        """As in `typing`."""
        return value


Wire: TypeAlias = dict[str, object]
"""A JSON object as it is sent."""
RpcId: TypeAlias = str | int | float | None

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
BATCH_VERSIONS = ("2025-03-26",)
"""The only version that has batches."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
RESOURCE_NOT_FOUND = -32002
"""Up to 2025-11-25; later versions say that the parameters are wrong."""
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

MAX_INPUT_BYTES = 1024 * 1024
"""Of one message. The longest legitimate one is a memory to store, of a few thousand bytes."""
MAX_BATCH = 50
_PAGE_SIZE = 100
_CACHE_MS = 3_600_000
"""How long a client may keep a constant list. Ours change with a new version of the program only."""


class RpcError(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, detail: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.detail = code, message, detail


class RpcMessage:
    """One message of a client."""

    __slots__ = ("id", "method", "params")

    def __init__(self, rpc_id: RpcId, method: str, params: Wire) -> None:
        self.id, self.method, self.params = rpc_id, method, params
        """The id is None for a notification."""

    @property
    def meta(self) -> Wire:
        return as_wire(self.params.get("_meta"))

    @property
    def progress_token(self) -> str | int | None:
        token = self.meta.get("progressToken")
        return token if isinstance(token, str | int) else None


class ResultPage:
    """A part of a list, and where the rest begins."""

    __slots__ = ("items", "next_cursor")

    def __init__(self, items: list[Wire], next_cursor: str | None) -> None:
        self.items, self.next_cursor = items, next_cursor


def as_wire(value: object) -> Wire:
    """The value if it is an object, else an empty one."""
    return cast("Wire", value) if isinstance(value, dict) else {}


def read_wire(data: bytes) -> object:
    """The JSON value of a line or a body."""
    if len(data) > MAX_INPUT_BYTES:
        raise RpcError(INVALID_REQUEST, f"the message is longer than {MAX_INPUT_BYTES:,} bytes")
    try:
        return cast("object", json.loads(data))
    except (ValueError, RecursionError):
        # `ValueError`: also bytes that are not UTF-8 and integers with thousands of digits.
        raise RpcError(PARSE_ERROR, "the message is not JSON") from None


def read_rpc(value: object) -> RpcMessage | None:
    """A request or a notification; None for a response, which nobody has asked for."""
    wire = as_wire(value)
    if wire.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'the message is no JSON-RPC 2.0 object; expected "jsonrpc": "2.0"')
    method, rpc_id, params = wire.get("method"), wire.get("id"), wire.get("params")
    if method is None and ("result" in wire or "error" in wire):
        return None
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method is missing; expected the name of a method")
    if "id" in wire and not is_rpc_id(rpc_id):
        raise RpcError(INVALID_REQUEST, "id is neither text nor a number")
    return RpcMessage(cast("RpcId", rpc_id), method, read_params(params, "params"))


def read_params(value: object, name: str) -> Wire:
    """Parameters by name; none if they were left out."""
    if value is None or isinstance(value, dict):
        return cast("Wire", value or {})
    raise RpcError(INVALID_PARAMS, f"{name} is no object; expected parameters by name")


def is_rpc_id(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def find_rpc_id(value: object) -> RpcId:
    """The id of a message that cannot be read, if it has one."""
    found = as_wire(value).get("id")
    return cast("RpcId", found) if is_rpc_id(found) else None


def is_stateless(message: RpcMessage) -> bool:
    """Whether a request names its own version; a handshake never does, whatever else it carries."""
    return VERSION_KEY in message.meta and message.method != "initialize"


def check_envelope(message: RpcMessage) -> str:
    """The version of a request that carries it."""
    meta = message.meta
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise RpcError(INVALID_PARAMS, f"params._meta has no {CAPABILITIES_KEY}; expected an object")
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"params._meta has a {VERSION_KEY} that is no text")
    check_supported(version)
    return version


def check_supported(version: str) -> None:
    if version not in STATELESS_VERSIONS:
        detail = {"supported": list(STATELESS_VERSIONS), "requested": version[:100]}
        raise RpcError(UNSUPPORTED_VERSION, "this version is not supported", detail)


def choose_version(requested: object) -> str:
    """The version of a handshake: the client's if it is known, else our newest one that has a handshake."""
    return (
        requested
        if isinstance(requested, str) and requested in HANDSHAKE_VERSIONS
        else HANDSHAKE_VERSIONS[-1]
    )


def make_result(message: RpcMessage, result: Wire, *, version: str, server: Wire) -> Wire:
    """The answer to a request, with what its version wants in every result."""
    if version in STATELESS_VERSIONS:
        meta = {**as_wire(result.get("_meta")), SERVER_KEY: server}
        result = {"resultType": "complete", **result, **_cache_hints(message.method), "_meta": meta}
    return {"jsonrpc": "2.0", "id": message.id, "result": result}


def _cache_hints(method: str) -> Wire:
    if method in ("server/discover", "tools/list", "prompts/list", "resources/templates/list"):
        return {"ttlMs": _CACHE_MS, "cacheScope": "public"}
    if method in ("resources/list", "resources/read"):
        return {"ttlMs": 0, "cacheScope": "private"}
    return {}


def make_error(rpc_id: RpcId, error: RpcError) -> Wire:
    content: Wire = {"code": error.code, "message": error.message}
    if error.detail is not None:
        content["data"] = error.detail
    return {"jsonrpc": "2.0", "id": rpc_id, "error": content}


def make_notification(method: str, params: Mapping[str, object]) -> Wire:
    return {"jsonrpc": "2.0", "method": method, "params": dict(params)}


def write_wire(value: object) -> bytes:
    """One line of JSON. ASCII, so that no character of a text is taken for the end of a line."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def cut_page(items: Sequence[Wire], cursor: object, size: int = _PAGE_SIZE) -> ResultPage:
    """The part of a list that a cursor asks for. A cursor is the place of the first item."""
    start = 0
    if cursor is not None:
        if not isinstance(cursor, str) or not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:
            raise RpcError(INVALID_PARAMS, "cursor is unknown; pass the nextCursor of the last page")
        start = int(cursor)
    end = start + size
    return ResultPage(list(items[start:end]), str(end) if end < len(items) else None)
