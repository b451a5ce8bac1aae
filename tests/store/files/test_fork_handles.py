from __future__ import annotations

import os
from pathlib import Path

from sevenfold.store.files.disk import close_in_children
from tests.store import children


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def expect_open(fd: int) -> None:
    assert is_open(fd)


def expect_closed(fd: int) -> None:
    assert not is_open(fd)


def test_a_child_has_the_handle_closed_for_the_length_of_the_block(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    with close_in_children(fd):
        children.expect_success([lambda: expect_closed(fd)])
        assert is_open(fd)
    children.expect_success([lambda: expect_open(fd)])
    os.close(fd)


def test_a_handle_closed_too_early_costs_a_child_nothing(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    with close_in_children(fd):
        os.close(fd)
        children.expect_success([lambda: expect_closed(fd)])
    assert not is_open(fd)


def test_a_number_used_again_in_the_child_is_the_childs_own(tmp_path: Path) -> None:
    """The child leaves its parent's block; what it registered meanwhile under the same number stays."""
    fd = os.open(tmp_path, os.O_RDONLY)

    def reuse() -> None:
        # By name: a lower number may be free, where something else was forgotten in this child.
        again = os.dup2(os.open(tmp_path, os.O_RDONLY), fd)
        with close_in_children(again):
            block.__exit__(None, None, None)
            children.expect_success([lambda: expect_closed(again)])

    block = close_in_children(fd)
    block.__enter__()
    children.expect_success([reuse])
    block.__exit__(None, None, None)
    os.close(fd)
    assert not is_open(fd)


def test_a_number_used_again_after_the_block_is_kept_in_children(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    with close_in_children(fd):
        pass
    os.close(fd)
    again = os.open(tmp_path, os.O_RDONLY)
    assert again == fd
    children.expect_success([lambda: expect_open(again)])
    os.close(again)
