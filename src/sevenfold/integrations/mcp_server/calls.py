"""Requests that are under way: progress while one runs, and cancellation.

A call that is cancelled runs to its end, because nothing that a tool does takes long or can be left half
done. Its answer is dropped, as the protocol wants.
"""

from __future__ import annotations

from threading import Event, Lock, Thread

from sevenfold.integrations.mcp_server.protocol import (
    INVALID_REQUEST,
    RpcError,
    make_error,
    make_notification,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from sevenfold.integrations.mcp_server.protocol import RpcId, RpcMessage, Wire

    Notify: TypeAlias = Callable[[Wire], None]
    Pause: TypeAlias = Callable[[Event], bool]

_PROGRESS_SECONDS = 1.0
"""Between two signs of life. Clients wait longer for a call that shows some."""


def pause_progress(done: Event) -> bool:
    """Wait until the next sign of life is due; whether the call ended meanwhile."""
    return done.wait(_PROGRESS_SECONDS)


class ActiveCalls:
    """The requests of one connection that have no answer yet."""

    def __init__(self, pause: Pause = pause_progress) -> None:
        self._pause = pause
        self._lock = Lock()
        self._cancelled: dict[RpcId, bool] = {}

    def begin(self, rpc_id: RpcId) -> bool:
        """Whether the id is free; it is taken from now on."""
        with self._lock:
            if rpc_id in self._cancelled:
                return False
            self._cancelled[rpc_id] = False
            return True

    def cancel(self, rpc_id: RpcId) -> None:
        with self._lock:
            if rpc_id in self._cancelled:
                self._cancelled[rpc_id] = True

    def forget(self, rpc_id: RpcId) -> None:
        """The id is free again."""
        self._end(rpc_id)

    def run(self, message: RpcMessage, work: Callable[[], Wire], notify: Notify) -> Wire | None:
        """The answer of a request that has begun; None if it was cancelled."""
        if self._is_cancelled(message.id):
            self._end(message.id)
            return None
        token = message.progress_token
        answer = work() if token is None else self._run_watched(token, message, work, notify)
        return None if self._end(message.id) else answer

    def _run_watched(
        self, token: str | int, message: RpcMessage, work: Callable[[], Wire], notify: Notify
    ) -> Wire:
        done = Event()
        name = message.params.get("name")
        what = f"{name[:80]} is running" if isinstance(name, str) else "running"

        def show(step: int) -> None:
            if not self._is_cancelled(message.id):
                params = {"progressToken": token, "progress": step, "message": what}
                notify(make_notification("notifications/progress", params))

        def watch() -> None:
            step = 0
            while not self._pause(done):
                step += 1
                show(step)

        show(0)
        watching = Thread(target=watch, daemon=True)
        watching.start()
        try:
            return work()
        finally:
            # No progress after the answer: the token is free again then.
            done.set()
            watching.join()

    def _is_cancelled(self, rpc_id: RpcId) -> bool:
        with self._lock:
            return self._cancelled.get(rpc_id, False)

    def _end(self, rpc_id: RpcId) -> bool:
        """Whether it was cancelled; the id is free again."""
        with self._lock:
            return self._cancelled.pop(rpc_id, False)


def refuse_repeated(rpc_id: RpcId) -> Wire:
    """The answer to a request whose id belongs to one that is under way."""
    return make_error(rpc_id, RpcError(INVALID_REQUEST, f"the id {rpc_id!r:.80} is in use; use another one"))
