"""The operating system: its errors as errors of ours that say what to do next, sockets, and threads.

`listen` opens a server's socket, with an error that says what to try. `run_blocking` runs durable work in a
thread, so that an fsync does not block the event loop. `SingleFlight` runs one background job at a time.
`LoopThread` runs coroutines for code without a loop.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

from sevenfold.core.errors import (
    AccessDenied,
    DiskFault,
    DiskFull,
    FileExists,
    FileMissing,
    InputError,
    KeyRefused,
    NotRegular,
    SevenfoldError,
)

if TYPE_CHECKING:
    # Where it is used, and not at the top: everything that touches a file imports this module, and a command
    # without an event loop would wait for asyncio to load.
    import asyncio
    import socket


@contextmanager
def map_os_errors(doing: str) -> Generator[None]:
    """The one place where the system's errors become ours; `doing` says what was being attempted."""
    try:
        yield
    except OSError as error:
        raise map_os_error(error, doing) from error


def map_os_error(error: OSError, doing: str) -> SevenfoldError:
    kind, advice = _KINDS.get(error.errno or 0, (DiskFault, "check the device and the system log"))
    reason = error.strerror or str(error) or type(error).__name__
    return kind(f"cannot {doing}: {reason}; {advice}")


_FREE = (DiskFull, "free some space, then try again; nothing was lost")


_RIGHTS = (AccessDenied, "check the owner and mode of the folder")


_MISSING = (FileMissing, "check the name")


_ODD = (NotRegular, "only plain files in plain folders are used here")


_THERE = (FileExists, "choose another name, or remove what is there")


_AGAIN = (DiskFault, "nothing is broken: try again")


_HANDLES = (DiskFault, "close some files, or allow more with ulimit -n")


_LACKING = (DiskFault, "the file system does not offer this: keep the files on a local one")


_NAME = (KeyRefused, "use letters, digits, '.', '_' and '-'")


_KINDS: dict[int, tuple[type[SevenfoldError], str]] = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EFBIG: (DiskFull, "the file is at its largest; allow larger ones with ulimit -f"),
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.ENOENT: _MISSING,
    errno.EEXIST: _THERE,
    errno.ENOTEMPTY: _THERE,
    errno.ELOOP: _ODD,
    errno.ENOTDIR: _ODD,
    errno.EISDIR: _ODD,
    errno.ENXIO: _ODD,
    errno.EXDEV: (KeyRefused, "a name has to stay inside its folder, and nothing may be mounted there"),
    errno.ENAMETOOLONG: (KeyRefused, "use a shorter name"),
    errno.EILSEQ: _NAME,
    errno.EINTR: _AGAIN,
    errno.EAGAIN: _AGAIN,
    errno.EMFILE: _HANDLES,
    errno.ENFILE: _HANDLES,
    errno.ESTALE: (
        DiskFault,
        "the server no longer knows the file: it was removed or replaced; open it again",
    ),
    errno.EBADF: (DiskFault, "it was closed already; open it again"),
    errno.EINVAL: _LACKING,
    errno.ENOSYS: _LACKING,
    errno.ENOTSUP: _LACKING,
    errno.ENOLCK: _LACKING,
}


def is_process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # there is one, of somebody else
        return True
    return True


def listen(address: str, port: int, *, backlog: int = 2048) -> socket.socket:
    """Bound and listening, so that a client may connect before anybody accepts. Port 0: any free one."""
    import socket

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's delay, 40 ms an answer, off only where it is.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(backlog)
        listener.setblocking(False)
    except (OSError, OverflowError) as error:
        listener.close()
        is_foreign = isinstance(error, socket.gaierror) or error.args[:1] == (errno.EADDRNOTAVAIL,)
        hint = "name an address of this machine, such as 127.0.0.1" if is_foreign else "try --port 0"
        raise InputError(f"cannot listen on {address} port {port}: {error}; {hint}") from error
    return listener


class ServerOptions(TypedDict):
    """What uvicorn is given for every server of ours that listens for this machine alone."""

    ws: Literal["none"]
    lifespan: Literal["off"]
    log_config: None
    log_level: str
    access_log: bool
    date_header: bool
    server_header: bool
    timeout_graceful_shutdown: int


LOCAL_SERVER_OPTIONS = ServerOptions(
    ws="none",
    lifespan="off",
    log_config=None,  # logging belongs to whoever embeds us, and the terminal to the user
    log_level="critical",
    access_log=False,
    date_header=False,
    server_header=False,
    timeout_graceful_shutdown=1,  # an open stream would keep it for ever
)


def listener_url(address: str, listener: socket.socket) -> str:
    """Where it is reached over HTTP."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{listener.getsockname()[1]}"


_T = TypeVar("_T")


async def run_blocking(work: Callable[[], _T]) -> _T:
    """Run `work` in a thread and return what it returns.

    A cancelled caller still waits for the work to end: once it has begun, whether it was acknowledged must
    not be a matter of luck, and nothing may be written after its owner believes that it has stopped. If the
    work failed meanwhile, that is the cancellation's cause.
    """
    import asyncio

    # A future and no task: a loop that shuts down cancels every task, and would leave the thread behind.
    return await _ended(asyncio.get_running_loop().run_in_executor(None, copy_context().run, work))


async def await_shielded(work: Coroutine[Any, Any, _T]) -> _T:
    """Await work that a cancelled caller still waits for, because half of it would be worse than none."""
    import asyncio

    return await _ended(asyncio.ensure_future(work))


async def _ended(future: asyncio.Future[_T]) -> _T:
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled from future.exception()
    return future.result()


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[_T]):
    """Apart from the request itself, which may be None."""

    request: _T


class SingleFlight(Generic[_T]):
    """Runs a job for the newest request, one run at a time.

    A request during a run waits, a newer one replaces it, and one run follows. Exceptions of a run do not
    reach the caller: `failed` is called with the reason.
    """

    def __init__(
        self, name: str, run: Callable[[_T], Awaitable[None]], failed: Callable[[str], None]
    ) -> None:
        self._name = name
        self._run = run
        self._failed = failed
        self._task: asyncio.Task[None] | None = None
        self._waiting: _Waiting[_T] | None = None
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def ask(self, request: _T) -> None:
        """Start a run, or have one follow the run under way. Returns at once."""
        import asyncio

        if self._is_closed:
            return
        self._waiting = _Waiting(request)
        if not self.is_running:
            self._task = asyncio.get_running_loop().create_task(self._work(), name=self._name)

    async def settle(self, limit: timedelta) -> bool:
        """Wait for all that was asked for; whether it came to its end within the limit. Stops nothing."""
        import asyncio

        task = self._task
        if task is not None and not task.done():
            await asyncio.wait({task}, timeout=limit.total_seconds())
        return not self.is_running

    async def close(self, limit: timedelta) -> bool:
        """Take no more requests, wait for a bounded time, then stop what still runs."""
        import asyncio

        self._is_closed = True
        if await self.settle(limit):
            return True
        self._waiting = None
        if self._task is not None:
            self._task.cancel()
            # A write that has begun is let end; it is bounded too, for the disk may hang.
            await asyncio.wait({self._task}, timeout=limit.total_seconds())
        self._failed(f"stopped: it still ran {limit.total_seconds():g} s after closing")
        return False

    async def _work(self) -> None:
        while (waiting := self._waiting) is not None:
            self._waiting = None
            try:
                await self._run(waiting.request)
            except Exception as error:
                # Whatever a writer raises costs its own work alone.
                self._failed(f"{type(error).__name__}: {error}")


LOOK_AGAIN = timedelta(seconds=1)
"""A signal that arrives just before a thread begins to wait does not end the waiting. Python handles it when
the thread runs next."""


class LoopThread:
    """An event loop in a daemon thread, started with the first call."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._pid = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether it belongs to a process that this one was forked from."""
        return self._pid != os.getpid()

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._loop is not None

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run to the end. If the waiting is interrupted, as by Ctrl-C, so is the work."""
        if self.is_forked:
            work.close()
            # After `fork` the child process has no copy of the thread, and would wait for ever.
            raise InputError(
                f"this belongs to process {self._pid}, which forked this one; open a session of its own here"
            )
        call, loop = _Call(work), None
        # Ctrl-C may come at any place, also before the work is known to have been handed over.
        try:
            with self._starting:
                # Not after `stop`, which would leave it lying.
                loop = self._started()
                loop.call_soon_threadsafe(call.begin)
            return call.result()
        except BaseException:
            if loop is not None and not call.has_ended:
                loop.call_soon_threadsafe(call.cancel)
            raise

    def stop(self) -> None:
        """End the thread. It is over on return: from Python 3.12 on, one that still winds up while the
        interpreter ends cannot start what it needs for that, and ends in a traceback."""
        if self.is_forked:
            return
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            if loop is not None:
                loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        import asyncio

        if self._loop is None:
            loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(loop,), name="sevenfold", daemon=True)
            self._thread.start()
            self._loop = loop
        return self._loop


class _Call(Generic[_T]):
    """One call on the loop. It can be cancelled before, while and after it begins."""

    def __init__(self, work: Coroutine[Any, Any, _T]) -> None:
        self._work = work
        self._task: asyncio.Task[_T] | None = None
        self._ended = threading.Event()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def begin(self) -> None:
        """On the loop."""
        import asyncio

        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(lambda _: self._ended.set())

    def cancel(self) -> None:
        """On the loop."""
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def result(self) -> _T:
        """Wait for the end, in the calling thread."""
        while self._task is None or not self._ended.is_set():
            self._ended.wait(LOOK_AGAIN.total_seconds())
        if self._task.cancelled():
            from concurrent.futures import CancelledError

            raise CancelledError
        return self._task.result()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    asyncio.set_event_loop(loop)
    # Not the loop's own, which takes another thread to shut down: none can be started while the interpreter
    # ends.
    with ThreadPoolExecutor(thread_name_prefix="sevenfold") as pool:
        loop.set_default_executor(pool)
        loop.run_forever()
        # Whoever still waits for a call would wait for ever.
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
    loop.close()
