"""A provider's endpoint that means harm: raw HTTP over a socket, one way of harm for each path prefix."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

_MIB = 1024 * 1024
_WORDS = "never ends " * 20_000
"""One delta of 220 kB: few events fill the limit."""

BOMB_BYTES = 128 * _MIB
"""What a bomb unpacks to; less than a megabyte on the wire."""


CALLS = 1_000
"""In one answer."""

_USAGE = {"input_tokens": 1, "output_tokens": 1}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says about itself."""

    dialect: str
    streams: bool


def delta(dialect: str, text: str) -> bytes:
    """An event of a stream that brings this text."""
    match dialect:
        case "messages":
            wire = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            return b"event: content_block_delta\ndata: " + json.dumps(wire).encode() + b"\n\n"
        case "completions":
            wire = {"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}
        case _:
            wire = {"type": "response.output_text.delta", "output_index": 0, "delta": text}
    return b"data: " + json.dumps(wire).encode() + b"\n\n"


def opening(dialect: str) -> bytes:
    """What comes before the first delta."""
    if dialect != "messages":
        return delta(dialect, "Hi")
    start = '"message": {"id": "m", "role": "assistant", "model": "x", "usage": {}}'
    block = '"index": 0, "content_block": {"type": "text", "text": ""}'
    events = {"message_start": start, "content_block_start": block}
    return "".join(
        f'event: {name}\ndata: {{"type": "{name}", {rest}}}\n\n' for name, rest in events.items()
    ).encode()


async def _endless_text(asked: Asked) -> AsyncIterator[bytes]:
    if not asked.streams:
        yield b'{"content": "'
    yield opening(asked.dialect) if asked.streams else b""
    while True:
        yield delta(asked.dialect, _WORDS) if asked.streams else _WORDS.encode()


def _idle(dialect: str) -> bytes:
    match dialect:
        case "messages":
            return b'event: ping\ndata: {"type": "ping"}\n\n'
        case "completions":
            return b': waiting\n\ndata: {"id": "c", "choices": [{"index": 0, "delta": {"content": ""}}]}\n\n'
        case _:
            return b'data: {"type": "keepalive", "sequence_number": 1}\n\n'


async def _endless_pings(asked: Asked) -> AsyncIterator[bytes]:
    yield opening(asked.dialect) if asked.streams else b""
    while True:
        yield _idle(asked.dialect) if asked.streams else b" "
        await asyncio.sleep(0.02)


async def _silence(asked: Asked) -> AsyncIterator[bytes]:
    yield opening(asked.dialect) if asked.streams else b" "
    await asyncio.sleep(3_600)


async def _one_line(_asked: Asked) -> AsyncIterator[bytes]:
    yield b"data: "
    for _ in range(64 * 16):
        yield b"x" * (_MIB // 16)


async def _many_lines(_asked: Asked) -> AsyncIterator[bytes]:
    for _ in range(64):
        yield b"data: 1\n" * 8_192


@cache
def _pack_bomb() -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    pieces = [packer.compress(b" " * _MIB) for _ in range(BOMB_BYTES // _MIB)]
    return b"".join((*pieces, packer.flush()))


async def _bomb(_asked: Asked) -> AsyncIterator[bytes]:
    yield _pack_bomb()


async def _deep(asked: Asked) -> AsyncIterator[bytes]:
    yield (b"event: message_start\ndata: " if asked.streams else b"") + b"[" * 200_000 + b"\n\n"


async def _digits(asked: Asked) -> AsyncIterator[bytes]:
    number = b'{"type": "ping", "choices": [], "id": ' + b"7" * 100_000 + b"}"
    yield b"event: message_start\ndata: " + number + b"\n\n" if asked.streams else number


def _call(dialect: str, number: int) -> dict[str, object]:
    match dialect:
        case "messages":
            return {"type": "tool_use", "id": f"t{number}", "name": "shell", "input": {}}
        case "completions":
            function = {"name": "shell", "arguments": "{}"}
            return {"index": number, "id": f"t{number}", "type": "function", "function": function}
        case _:
            return {"type": "function_call", "call_id": f"t{number}", "name": "shell", "arguments": "{}"}


def _spell_event(kind: str, **fields: object) -> bytes:
    named = {"type": kind, **fields} if kind else fields
    return f"event: {kind or 'message'}\ndata: {json.dumps(named)}\n\n".encode()


def _spell_calls(dialect: str) -> tuple[dict[str, object], list[bytes]]:
    """A whole answer, and the same as events."""
    calls = [_call(dialect, number) for number in range(CALLS)]
    whole: dict[str, object]
    match dialect:
        case "messages":
            head = {"id": "m", "type": "message", "role": "assistant", "model": "x", "usage": _USAGE}
            whole = {**head, "content": calls, "stop_reason": "tool_use"}
            steps = [_spell_event("message_start", message={**head, "content": []})]
            for at, call in enumerate(calls):
                steps.append(_spell_event("content_block_start", index=at, content_block=call))
                steps.append(_spell_event("content_block_stop", index=at))
            steps.append(_spell_event("message_delta", delta={"stop_reason": "tool_use"}, usage=_USAGE))
            steps.append(_spell_event("message_stop"))
        case "completions":
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            end: dict[str, object] = {"index": 0, "finish_reason": "tool_calls", "delta": {}}
            whole = {"id": "c", "choices": [{**end, "message": message}], "usage": {}}
            steps = [
                _spell_event("", id="c", choices=[{"index": 0, "delta": {"tool_calls": [call]}}])
                for call in calls
            ]
            steps += [_spell_event("", id="c", choices=[end]), b"data: [DONE]\n\n"]
        case _:
            whole = {"id": "r", "status": "completed", "output": calls, "usage": {}}
            steps = [
                _spell_event("response.output_item.done", output_index=at, item=call)
                for at, call in enumerate(calls)
            ]
            steps.append(_spell_event("response.completed", response=whole))
    return whole, steps


async def _many_calls(asked: Asked) -> AsyncIterator[bytes]:
    """An answer that can be read: only the number of its calls is out of measure."""
    whole, steps = _spell_calls(asked.dialect)
    for piece in steps if asked.streams else (json.dumps(whole).encode(),):
        yield piece


async def _nothing(_asked: Asked) -> AsyncIterator[bytes]:
    yield b"{}"


@dataclass(frozen=True, slots=True)
class Harm:
    """One way of harm: what is sent, and with which head."""

    body: Callable[[Asked], AsyncIterator[bytes]]
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


HARMS: Mapping[str, Harm] = {
    "endless-text": Harm(_endless_text),
    "endless-pings": Harm(_endless_pings),
    "silence": Harm(_silence),
    "one-line": Harm(_one_line),
    "many-lines": Harm(_many_lines),
    "bomb": Harm(_bomb, headers={"content-encoding": "gzip"}),
    "bomb-error": Harm(_bomb, "400 Bad Request", {"content-encoding": "gzip"}),
    "endless-error": Harm(_endless_text, "400 Bad Request"),
    "brotli": Harm(_nothing, headers={"content-encoding": "br"}),
    "deep": Harm(_deep),
    "digits": Harm(_digits),
    "many-calls": Harm(_many_calls),
    "wait-an-hour": Harm(_nothing, "429 Too Many Requests", {"retry-after": "3600"}),
    "wait-a-bit": Harm(_nothing, "529 Overloaded", {"retry-after": "7"}),
    "redirect": Harm(_nothing, "307 Temporary Redirect"),
}


@dataclass(slots=True)
class HostileEndpoint:
    """Where it listens, and what it has seen."""

    port: int
    other_port: int
    """Another host, to which it redirects."""
    requests: Counter[str] = field(default_factory=Counter[str])
    sent_bytes: Counter[str] = field(default_factory=Counter[str])
    strayed: list[bytes] = field(default_factory=list[bytes])
    """What arrived at the other host."""

    def url(self, harm: str) -> str:
        return f"http://127.0.0.1:{self.port}/{harm}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled when the block ends: a stream server would report that as an error.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(_length(head))
            path = head.split(b" ", 2)[1].decode().strip("/").split("/")
            harm = HARMS[path[0]]
            self.requests[path[0]] += 1
            asked = Asked(path[-1], b'"stream":true' in body)
            writer.write(self._head(harm, asked).encode())
            async for chunk in harm.body(asked):
                writer.write(chunk)
                await writer.drain()
                self.sent_bytes[path[0]] += len(chunk)
        with suppress(ConnectionError, asyncio.CancelledError):
            writer.close()
            await writer.wait_closed()

    async def take_stray(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.strayed.append(await reader.read(_MIB))
        writer.close()

    def _head(self, harm: Harm, asked: Asked) -> str:
        is_stream = asked.streams and harm.status.startswith("200")
        headers = {"content-type": "text/event-stream" if is_stream else "application/json", **harm.headers}
        if harm.status.startswith("307"):
            headers["location"] = f"http://localhost:{self.other_port}/v1/messages"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {harm.status}\r\n{lines}connection: close\r\n\r\n"


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


@asynccontextmanager
async def serve_harm() -> AsyncGenerator[HostileEndpoint]:
    """A hostile endpoint and the host it redirects to, for the length of a block."""
    found = HostileEndpoint(0, 0)
    other = await asyncio.start_server(found.take_stray, "127.0.0.1", 0)
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0, limit=_MIB)
    found.port, found.other_port = (one.sockets[0].getsockname()[1] for one in (server, other))
    try:
        yield found
    finally:
        for one in (server, other):
            one.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if "HostileEndpoint.answer" in str(task.get_coro()):
                task.cancel()
