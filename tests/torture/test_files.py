"""Hostile paths get no file tool out of what it may touch, and the rig finds a guard or a tool that does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sevenfold.agent.permissions import guard
from sevenfold.agent.tool import AccessRequest
from sevenfold.agent.tools import file_changes as text_file
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.store.project import user_files
from tests.torture.file_stage import Stage, attempts, read_paths
from tests.torture.files import run_files, run_lines, run_swaps
from tests.torture.rig import Orders, Progress
from tests.torture.test_torture import expect_nothing, expect_something

pytestmark = pytest.mark.torture


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders("tiny", 1, tmp_path, Progress(quiet=True))


def test_no_path_leads_out(orders: Orders) -> None:
    expect_nothing(run_files(orders))


def test_the_corpus_has_as_many_lines_as_it_should() -> None:
    lines = read_paths()
    assert len(set(lines)) == len(lines) >= 800


def test_every_tool_is_tried_and_the_stage_is_what_the_lines_name(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage")
    stage.set_up()
    assert {attempt.tool.spec.name for attempt in attempts("x")} == {"read", "glob", "write", "edit"}
    assert len(stage.trials()) == 6
    assert os.path.realpath(stage.root / "link_chain") == str(stage.base / "outside")


def stage_in(orders: Orders) -> Stage:
    return Stage(Path(os.path.realpath(orders.place)) / "stage")


def unresolved(need: AccessRequest) -> tuple[str, ...]:
    return tuple(map(os.path.normpath, need.paths))


def follow_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files opened by name, as most programs do."""
    monkeypatch.setattr(user_files, "_STEP_FLAGS", os.O_DIRECTORY | os.O_RDONLY)
    monkeypatch.setattr(user_files, "READ_FLAGS", os.O_RDONLY | os.O_NONBLOCK)


def test_a_guard_that_follows_no_links_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "real_paths", unresolved)
    monkeypatch.setattr(text_file, "resolve_path", os.path.normpath)
    follow_links(monkeypatch)
    found = run_lines(stage_in(orders), ["link_dir/new", "src/link_out/secret", "link_file"], orders)
    expect_something([found], "outside/new")
    expect_something([found], "canary")


def believe(asked: str, _place: ToolContext) -> str:
    return os.path.normpath(asked)


def test_a_tool_that_follows_links_after_the_decision_is_found(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("read", "file_changes"):
        monkeypatch.setattr(f"sevenfold.agent.tools.{module}.allowed_path", believe)
    follow_links(monkeypatch)
    expect_something([run_swaps(stage_in(orders), orders)], "through the link")
