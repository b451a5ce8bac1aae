"""Asks the resident process, and starts it when there is none.

Standard library only, and little of it: a hook imports this before every prompt and every tool call. A
message is four bytes of length and that much JSON. An answer begins with one more byte: `STATUS_OK`,
`STATUS_ERROR`, or `STATUS_RESTART` if the process is older than the client and steps down.

Whoever starts the process holds a lock meanwhile, and the process holds another one as long as it lives: so
there is one, and the kernel releases both locks when their holders die.
"""

from __future__ import annotations

import _socket
import os
import sys
import time

# Loaded by every interpreter, unlike `collections.abc`.
from _collections_abc import Callable, Mapping

PROTOCOL = 1
"""Of the messages. A process that gets a higher number than its own steps down."""

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""Of a request or an answer. The largest input of a hook is what a tool returned, which agents cut before."""

STATUS_OK, STATUS_ERROR, STATUS_RESTART = b"+", b"-", b"!"

SOCKET_NAME, LOCK_NAME, STARTING_NAME = "resident.sock", "resident.lock", "resident.starting"
STOPPING = "stopping"
"""Behind the process in the lock's file, once it takes no more requests."""
LOG_NAME, QUEUE_NAME = "resident.log", "queue"
MAX_LEFT_MESSAGES = 200
"""Messages that were left for the process. More would mean that it cannot be started at all."""
MAX_LOG_BYTES = 256 * 1024
"""Then the log begins anew: it is for looking up what failed lately."""

_LONGEST_PATH_BYTES = 100
"""The kernel takes 107 on Linux and 103 elsewhere."""

_POLL_SECONDS = 0.005

_PASSED = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
"""Variables that say where files are. They and all `SEVENFOLD_…` go with each request."""

_KEPT = (
    *("HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ", "TMPDIR", "SHELL", "PYTHONDONTWRITEBYTECODE"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy", "CLAUDE_CONFIG_DIR", "CODEX_HOME"),
)
"""Variables that the process is started with. Keys of the agent that runs the hook are not among them."""

_STARTED: list[int] = []
"""Processes that this one has started and not waited for yet."""


def find_home(environ: Mapping[str, str]) -> str:
    """The home folder of Sevenfold, as an absolute path."""
    given = environ.get("SEVENFOLD_HOME")
    return os.path.abspath(
        given or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".sevenfold")
    )


def find_run_folder(environ: Mapping[str, str]) -> str:
    """The folder of the socket and the locks: in the home, or where a short path can be had."""
    own = os.path.join(find_home(environ), "run")
    if len(os.fsencode(own)) + len(SOCKET_NAME) < _LONGEST_PATH_BYTES:
        return own
    from binascii import crc32

    base = environ.get("XDG_RUNTIME_DIR") or "/tmp"
    return os.path.join(base, f"sevenfold-{os.getuid()}-{crc32(os.fsencode(own)):08x}")


def select_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a request depends on."""
    return {
        name: value for name, value in environ.items() if name in _PASSED or name.startswith("SEVENFOLD_")
    }


def make_run_folder(environ: Mapping[str, str]) -> str:
    """The folder, made if need be, which only this user can enter; `OSError` where it is somebody else's."""
    folder = find_run_folder(environ)
    # One after the other: a mode counts for the last folder alone, and the home is nobody else's either.
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or found.st_mode & 0o170000 != 0o040000:
        raise PermissionError(f"{folder} is not a folder of user {os.getuid()}")
    if found.st_mode & 0o077:
        os.chmod(folder, 0o700)
    return folder


def request(operation: str, arguments: Mapping[str, object], *, deadline_seconds: float) -> dict[str, object]:
    """What the resident process answers; it is started first if there is none.

    `ResidentUnavailable` if nobody answers before the deadline. An operation that fails raises the same error
    as it would in this process.
    """
    import json

    body = {
        "protocol": PROTOCOL,
        "version": read_version(),
        "operation": operation,
        "arguments": dict(arguments),
        "environ": select_environ(os.environ),
    }
    reply = exchange(
        json.dumps(body).encode(), os.environ, deadline=time.monotonic() + deadline_seconds, starts=True
    )
    answer: dict[str, object] = json.loads(reply[1:])
    if reply[:1] == STATUS_ERROR:
        raise _make_error(str(answer.get("error", "")), str(answer.get("message", "")))
    return answer


class Delivery:
    """Whether a message has reached the process, whatever became of the answer."""

    is_done = False


def exchange(
    message: bytes,
    environ: Mapping[str, str],
    *,
    deadline: float,
    starts: bool,
    delivery: Delivery | None = None,
) -> bytes:
    """Send one message and return the answer with its status; `ResidentUnavailable` says why there is none.

    With `starts` the process is started where there is none, or where an old one has stepped down.
    """
    delivery = delivery or Delivery()
    if len(message) > MAX_MESSAGE_BYTES:
        raise _unavailable(f"a message of {len(message):,} bytes is over the limit of {MAX_MESSAGE_BYTES:,}")
    reply = b""
    try:
        while True:
            connection = connect(environ, deadline=deadline, starts=starts)
            try:
                reply = _ask(connection, message, deadline, delivery)
            finally:
                connection.close()
            if reply[:1] != STATUS_RESTART:
                return reply
            delivery.is_done = False
            time.sleep(_POLL_SECONDS)
            _limit(deadline)
    except (OSError, EOFError) as error:
        raise _unavailable(str(error) or type(error).__name__) from error


def connect(environ: Mapping[str, str], *, deadline: float, starts: bool) -> _socket.socket:
    """A connection to the process; `OSError` where there is none before the deadline."""
    path = os.path.join(find_run_folder(environ), SOCKET_NAME)
    try:
        return _connect(path, deadline)
    except (FileNotFoundError, ConnectionRefusedError):
        if not starts:
            raise
    lock = _take_lock(os.path.join(make_run_folder(environ), STARTING_NAME))
    try:
        if lock is not None:
            start_resident(environ)
        while True:
            time.sleep(_POLL_SECONDS)
            _limit(deadline)
            try:
                return _connect(path, deadline)
            except (FileNotFoundError, ConnectionRefusedError):
                continue
    finally:
        if lock is not None:
            os.close(lock)


def start_resident(environ: Mapping[str, str]) -> None:
    """Start the process, in a session of its own, with no file, terminal or key of this one."""
    _STARTED[:] = [pid for pid in _STARTED if not _has_ended(pid)]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = (
        f"import sys; sys.path.insert(0, {root!r}); import sevenfold.resident.server as it; it.run_resident()"
    )
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(("SEVENFOLD_", "XDG_", "LC_"))
    }
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], kept, file_actions=null, setsid=True)
    _STARTED.append(pid)


def _has_ended(pid: int) -> bool:
    """Whether a child has ended. It would stay a zombie until somebody asks."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def log_failure(environ: Mapping[str, str], line: str) -> None:
    """Add a line to the log of hooks and of the process. A log that cannot be written is no failure."""
    try:
        path = os.path.join(make_run_folder(environ), LOG_NAME)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(fd).st_size > MAX_LOG_BYTES:
                os.ftruncate(fd, 0)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            text = " ".join(line.split())[:2_000]
            os.write(fd, f"{stamp} {os.getpid()} {text}\n".encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except OSError:
        return


def list_messages(environ: Mapping[str, str]) -> list[str]:
    """The messages that wait for the process, as paths, the oldest first."""
    folder = os.path.join(find_run_folder(environ), QUEUE_NAME)
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".json")]
    except FileNotFoundError:
        return []


def leave_message(message: bytes, environ: Mapping[str, str]) -> None:
    """Leave a message that the process reads when it can; `OSError` where none can be left."""
    folder = os.path.join(make_run_folder(environ), QUEUE_NAME)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if len(list_messages(environ)) >= MAX_LEFT_MESSAGES:
        raise BlockingIOError(f"{MAX_LEFT_MESSAGES} messages wait already")
    name = os.path.join(folder, f"{time.time_ns():020}-{os.getpid()}")
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        while message:
            message = message[os.write(fd, message) :]
    finally:
        os.close(fd)
    os.rename(name, f"{name}.json")


def read_version() -> str:
    """The version of this installation, from its file: importing the package would take longer."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(package, "core", "__init__.py"), encoding="utf-8") as file:  # noqa: PTH123
        return file.read().partition('__version__ = "')[2].partition('"')[0]


def read_frame(receive: Callable[[int], bytes]) -> bytes:
    """One message; `receive` returns at most as many bytes as it is asked for, and none at the end."""
    length = int.from_bytes(_read_exactly(receive, 4), "big")
    if length > MAX_MESSAGE_BYTES + 1:
        raise EOFError(f"a message of {length:,} bytes is announced; at most {MAX_MESSAGE_BYTES:,} are read")
    return _read_exactly(receive, length)


def _read_exactly(receive: Callable[[int], bytes], count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = receive(min(count, 65_536))
        if not part:
            raise EOFError("the connection ended before the answer did")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _connect(path: str, deadline: float) -> _socket.socket:
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        made.settimeout(_limit(deadline))
        made.connect(path)
        if find_peer_uid(made) not in (os.getuid(), None):
            raise PermissionError(f"{path} is served by another user")
    except BaseException:
        made.close()
        raise
    return made


def find_peer_uid(connected: _socket.socket) -> int | None:
    """The user at the other end of a connection; None where the system does not say."""
    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return None
    credentials = connected.getsockopt(_socket.SOL_SOCKET, option, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _ask(connection: _socket.socket, message: bytes, deadline: float, delivery: Delivery) -> bytes:
    connection.settimeout(_limit(deadline))
    connection.sendall(len(message).to_bytes(4, "big") + message)
    delivery.is_done = True

    def receive(count: int) -> bytes:
        connection.settimeout(_limit(deadline))
        return connection.recv(count)

    return read_frame(receive)


def _take_lock(path: str) -> int | None:
    """Hold a lock until the descriptor is closed; None where somebody else does."""
    import fcntl

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _limit(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("there was no answer in time")
    return left


def _unavailable(reason: str) -> Exception:
    if __name__ == "client":  # run by a hook, which has no package to import from
        return OSError(reason)
    from sevenfold.core.errors import ResidentUnavailable

    return ResidentUnavailable(f"the resident process cannot be reached: {reason}")


def _make_error(kind: str, message: str) -> Exception:
    from sevenfold.core import errors

    found: object = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, errors.SevenfoldError):
        return found(message)
    return errors.SevenfoldError(message)
