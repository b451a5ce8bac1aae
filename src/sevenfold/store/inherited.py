"""Handles that must not live on in a forked child.

A flock belongs to the open file, and fork shares it: a child that merely exists would keep its parent's lock
after the parent died. Closing the child's copy is enough, the lock itself stays with the parent.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

_FDS: set[int] = set()


@contextmanager
def forget_in_children(fd: int) -> Generator[None]:
    """For the length of the block, a fork of this process closes `fd` in the child."""
    _FDS.add(fd)
    try:
        yield
    finally:
        _FDS.discard(fd)


def _close_inherited() -> None:
    while _FDS:
        with suppress(OSError):
            os.close(_FDS.pop())


os.register_at_fork(after_in_child=_close_inherited)
