"""Reads the usage from a response while it is forwarded: from server-sent events, or from one JSON body.

Only lines that name a usage are parsed, and at most `MAX_KEPT_BYTES` are kept, so that a response costs the
proxy little more than copying it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any, cast

from sevenfold.core.errors import WireError
from sevenfold.core.usage import Usage, read_openai_usage, read_usage
from sevenfold.proxy.requests import WireFormat

_CALL = re.compile(
    rb'"type":\s*"(?:tool_use|function_call|custom_tool_call|local_shell_call)"|"tool_calls":\s*\[\s*\{'
)
"""How an answer names a call of a tool. Quotes in a text are escaped."""

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Of one line, or of a body that is not streamed: more than any answer of a model has."""

_Fields = dict[str, Any]


class UsageReader:
    """Takes the bytes of a response as they come; `usage` is what they bill, None if they say nothing."""

    def __init__(self, wire: WireFormat, headers: Mapping[str, str]) -> None:
        self._wire = wire
        self._is_stream = "event-stream" in headers.get("content-type", "")
        encoding = headers.get("content-encoding", "identity")
        self._unpack = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None
        self._is_readable = encoding in ("identity", "", "gzip", "deflate")
        self._waiting = bytearray()
        """What came since the last whole line; of a body that is not streamed, all of it."""
        self._counts: _Fields = {}
        self.model = ""
        self.has_call = False
        """Whether the model called a tool: then the turn goes on."""

    def feed(self, data: bytes) -> None:
        if not self._is_readable:
            return
        try:
            plain = self._unpack.decompress(data, MAX_KEPT_BYTES) if self._unpack else data
        except zlib.error:
            self._is_readable = False
            return
        # Only what is new is looked through: a line may come in very many pieces.
        if self._is_stream and b"\n" in plain:
            first, *lines, plain = plain.split(b"\n")
            for line in (bytes(self._waiting + first), *lines):
                self._take_line(line)
            self._waiting.clear()
        self._waiting += plain
        if len(self._waiting) > MAX_KEPT_BYTES:
            self._is_readable = False
            self._waiting.clear()

    def read_usage(self) -> Usage | None:
        """After the last byte."""
        if self._is_readable and self._waiting:
            last = bytes(self._waiting)
            if self._is_stream:
                self._take_line(last)
            else:
                self.has_call = _CALL.search(last) is not None
                self._take(last)
            self._waiting.clear()
        if not self._counts:
            return None
        try:
            return (read_usage if self._wire == "messages" else read_openai_usage)(self._counts)
        except WireError:
            return None

    def _take_line(self, line: bytes) -> None:
        if not self.has_call and _CALL.search(line):
            self.has_call = True
        if line.startswith(b"data:") and b'"usage"' in line:
            self._take(line.removeprefix(b"data:"))

    def _take(self, data: bytes) -> None:
        try:
            value: object = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        fields = cast("_Fields", value)
        # Messages: in `message_start`, then totals in `message_delta`. Responses: in the last event.
        for found in (_object(fields.get("message")), _object(fields.get("response")), fields):
            if isinstance(found.get("model"), str):
                self.model = found["model"]
            if isinstance(found.get("usage"), dict):
                self._counts |= {key: count for key, count in found["usage"].items() if count is not None}


def _object(value: object) -> _Fields:
    return cast("_Fields", value) if isinstance(value, dict) else {}
