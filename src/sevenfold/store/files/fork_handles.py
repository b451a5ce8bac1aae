"""Handles that must not live on in a forked child.

A flock belongs to the open file, and fork shares it: a child that merely exists would keep its parent's lock
after the parent died. Closing the child's copy is enough, the lock itself stays with the parent.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

_HANDLES: dict[int, object] = {}
"""Each with a mark of who put it there: a number is used again as soon as its handle is closed."""


@contextmanager
def close_in_children(fd: int) -> Generator[None]:
    """For the length of the block, a fork of this process closes `fd` in the child."""
    mark = object()
    _HANDLES[fd] = mark
    try:
        yield
    finally:
        # In a forked child the number may by now belong to a handle of the child's own.
        if _HANDLES.get(fd) is mark:
            del _HANDLES[fd]


def _close_inherited() -> None:
    while _HANDLES:
        fd, _ = _HANDLES.popitem()
        with suppress(OSError):
            os.close(fd)


os.register_at_fork(after_in_child=_close_inherited)
