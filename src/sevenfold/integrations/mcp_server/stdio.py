"""The server on standard input and output: one message a line.

The reader answers at once what is constant. Everything else waits in a queue for a few threads, so that a
slow call holds up neither a ping nor a cancellation.
"""

from __future__ import annotations

import os
import sys
from _queue import SimpleQueue
from threading import Lock, Thread

from sevenfold.integrations.mcp_server.backend import McpBackend
from sevenfold.integrations.mcp_server.dispatch import (
    ActiveCalls,
    HandshakeState,
    McpDispatcher,
    pause_progress,
    refuse_repeated,
)
from sevenfold.integrations.mcp_server.protocol import (
    BATCH_VERSIONS,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MAX_BATCH,
    MAX_INPUT_BYTES,
    RpcError,
    RpcMessage,
    cast,
    find_rpc_id,
    is_rpc_id,
    make_error,
    read_rpc,
    read_wire,
    write_wire,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO, TypeAlias

    from sevenfold.integrations.mcp_server.dispatch import Pause
    from sevenfold.integrations.mcp_server.protocol import RpcId, Wire

    Job: TypeAlias = Callable[[], None]

MAX_WORKERS = 4
MAX_QUEUED_REQUESTS = 100
"""Requests under way and in the queue. A client that sends more before it reads an answer is told to wait."""
_LAST_SECONDS = 5.0
"""For answers that are under way when a client closes its end."""

_CONSTANT = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "prompts/list",
        "resources/templates/list",
    }
)


class StdioServer:
    """Serves one client."""

    def __init__(
        self,
        dispatcher: McpDispatcher,
        reading: BinaryIO,
        writing: BinaryIO,
        pause: Pause = pause_progress,
    ) -> None:
        self._dispatcher, self._reading, self._writing = dispatcher, reading, writing
        self._state = HandshakeState()
        self._calls = ActiveCalls(pause)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._workers: list[Thread] = []
        self._waiting = 0
        self._lock = Lock()
        """Over the output."""
        self._count_lock = Lock()

    def serve(self) -> None:
        """Until the client closes its end."""
        while line := self._reading.readline(MAX_INPUT_BYTES + 2):
            if len(line) > MAX_INPUT_BYTES + 1:
                self._skip_line(line)
            if line.strip():
                self._take_line(line)
        for _ in self._workers:
            self._jobs.put(None)
        for worker in self._workers:
            worker.join(_LAST_SECONDS)

    def _skip_line(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._reading.readline(65_536)

    def _take_line(self, line: bytes) -> None:
        try:
            value = read_wire(line)
        except RpcError as error:
            self._write(make_error(None, error))
            return
        if isinstance(value, list):
            self._take_batch(cast("list[object]", value))
        else:
            self._take(value)

    def _take(self, value: object) -> None:
        message = self._read(value, self._write)
        if message is None:
            return
        if message.method in _CONSTANT:
            self._write(self._dispatcher.answer(message, self._state))
        elif not self._calls.begin(message.id):
            self._write(refuse_repeated(message.id))
        else:
            self._start(lambda: self._finish(message), [message.id])

    def _read(self, value: object, answer: Callable[[Wire], None]) -> RpcMessage | None:
        """A request; notifications are seen to here, and what is none of both is answered."""
        try:
            message = read_rpc(value)
        except RpcError as error:
            answer(make_error(find_rpc_id(value), error))
            return None
        if message is None or message.id is not None:
            return message
        if message.method == "notifications/cancelled":
            wanted = message.params.get("requestId")
            if is_rpc_id(wanted):
                self._calls.cancel(cast("RpcId", wanted))
        return None

    def _finish(self, message: RpcMessage) -> None:
        answer = self._calls.run(message, lambda: self._dispatcher.answer(message, self._state), self._write)
        if answer is not None:
            self._write(answer)

    def _take_batch(self, values: Sequence[object]) -> None:
        if self._state.version not in BATCH_VERSIONS:
            self._refuse("batches are part of MCP 2025-03-26 only; send one message a line")
        elif not 0 < len(values) <= MAX_BATCH:
            self._refuse(f"a batch has 1 to {MAX_BATCH} messages")
        else:
            answers: list[Wire] = []
            messages: list[RpcMessage] = []
            for value in values:
                message = self._read(value, answers.append)
                if message is None:
                    continue
                if message.method == "initialize":
                    answers.append(make_error(message.id, RpcError(INVALID_REQUEST, "initialize in a batch")))
                elif self._calls.begin(message.id):
                    messages.append(message)
                else:
                    answers.append(refuse_repeated(message.id))
            self._start(lambda: self._finish_batch(messages, answers), [item.id for item in messages])

    def _finish_batch(self, messages: Sequence[RpcMessage], answers: list[Wire]) -> None:
        for message in messages:
            answer = self._calls.run(
                message, lambda wanted=message: self._dispatcher.answer(wanted, self._state), self._write
            )
            if answer is not None:
                answers.append(answer)
        if answers:
            self._write(answers)

    def _refuse(self, reason: str) -> None:
        self._write(make_error(None, RpcError(INVALID_REQUEST, reason)))

    def _start(self, job: Job, ids: Sequence[RpcId]) -> None:
        with self._count_lock:
            is_full = self._waiting >= MAX_QUEUED_REQUESTS
            self._waiting += 0 if is_full else 1
            waiting = self._waiting
        if is_full:
            for rpc_id in ids:
                self._calls.forget(rpc_id)
                busy = RpcError(
                    INTERNAL_ERROR, f"{MAX_QUEUED_REQUESTS} requests are under way; try again later"
                )
                self._write(make_error(rpc_id, busy))
            return
        if waiting > len(self._workers) < MAX_WORKERS:
            worker = Thread(target=self._work, daemon=True)
            self._workers.append(worker)
            worker.start()
        self._jobs.put(job)

    def _work(self) -> None:
        while job := self._jobs.get():
            try:
                job()
            finally:
                with self._count_lock:
                    self._waiting -= 1

    def _write(self, value: Wire | Sequence[Wire]) -> None:
        with self._lock:
            self._writing.write(write_wire(value) + b"\n")
            self._writing.flush()


def serve_stdio(project: str | None = None) -> int:
    """Serve the agent that started this process, until it closes our standard input."""
    # Nothing else may print among the messages: what goes to standard output is an error from here on.
    sys.stdout.flush()
    writing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = StdioServer(McpDispatcher(McpBackend(project or os.getcwd())), sys.stdin.buffer, writing)
    try:
        server.serve()
    except BrokenPipeError:
        return 141
    return 0
