"""Errors of the operating system, as errors of ours that say what to do next.

`listen` opens a server's socket, with an error that says what to try.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager

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


def listen(address: str, port: int, *, backlog: int = 2048) -> socket.socket:
    """Bound and listening, so that a client may connect before anybody accepts. Port 0: any free one."""
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
        raise InputError(f"cannot listen on {address} port {port}: {error}; try --port 0") from error
    return listener


def listener_url(address: str, listener: socket.socket) -> str:
    """Where it is reached over HTTP."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{listener.getsockname()[1]}"
