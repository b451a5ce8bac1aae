"""The rigs over the team server in their shortest form, and that they would find something."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.store.files.folder import check_key
from sevenfold.team import protocol
from sevenfold.team.server import memory
from tests.torture.rig import Orders, Progress
from tests.torture.server import is_harmless, run_server_keys

pytestmark = pytest.mark.torture


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders("tiny", 1, tmp_path, Progress(quiet=True))


def test_no_hostile_key_is_taken(orders: Orders) -> None:
    [found] = run_server_keys(orders)
    assert (found.count, found.shown) == (600, [])
    assert "were carried out" in found.notes[0]


def test_a_looser_grammar_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of files on one disk, which lets upper case, other suffixes and depths pass."""
    monkeypatch.setattr(memory, "check_team_key", check_key)
    monkeypatch.setattr(protocol, "check_team_key", check_key)
    [found] = run_server_keys(orders)
    assert found.violations > 0


@pytest.mark.parametrize("key", ["a.md", "a/b/c.md", "con-1.md"])
def test_what_is_harmless_is_known(key: str) -> None:
    assert is_harmless(key)


@pytest.mark.parametrize(
    "key", ["a", "/a.md", "../a.md", "a/../b.md", "A.md", "con.md", "a//b.md", "a.md/", ".md"]
)
def test_what_is_not_harmless_is_known(key: str) -> None:
    assert not is_harmless(key)
