"""The copy of the memories that a dream edits, and what its tool answers."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError
from sevenfold.core.events import DreamProgressed, Event
from sevenfold.core.json import JsonObject
from sevenfold.core.memories import read_memory, write_memory
from sevenfold.layers.dreams.workspace import STEP_CHARS, DreamProgress, DreamWorkspace
from sevenfold.store.files.folder import Folder


def workspace(**texts: str) -> DreamWorkspace:
    """With memories of which nothing was there before the dream."""
    made = {f"{name}.md": write_memory(name, text, "project", text) for name, text in texts.items()}
    return DreamWorkspace(before={}, texts=made, today=date(2026, 11, 1))


def test_a_memory_that_the_dream_wrote_itself_is_taken_out_with_nothing_to_miss() -> None:
    stage = workspace(ports="The service listens on 8443.")
    assert stage.run(JsonObject({"action": "delete", "name": "ports.md"})) == "ports.md is taken out."
    assert stage.texts == {}
    assert stage.reasons == []


def test_a_stale_memory_is_archived_with_the_reason() -> None:
    stage = workspace(ports="The service listens on 8443.")
    told = stage.run(JsonObject({"action": "delete", "name": "ports.md", "content": "stale: it moved"}))
    assert told == "ports.md is taken out."
    assert list(stage.texts) == ["archive/ports.md"]
    assert [reason.why for reason in stage.reasons] == ["stale"]


def test_a_removal_without_a_reason_that_counts_is_refused_and_changes_nothing() -> None:
    stage = workspace(ports="The service listens on 8443.")
    with pytest.raises(InputError, match=r"content is 'because'; expected `duplicate of FILE`"):
        stage.run(JsonObject({"action": "delete", "name": "ports.md", "content": "because"}))
    assert list(stage.texts) == ["ports.md"]


def run(stage: DreamWorkspace, action: str, **given: str) -> str:
    return stage.run(JsonObject({"action": action, **given}))


def test_memories_are_listed_read_and_written_by_name() -> None:
    written: list[str] = []
    stage = workspace(ports="The service listens on 8443.", days="Deploys are on Tuesdays.")
    stage.on_write = written.append
    assert run(stage, "read", name="ports") == stage.texts["ports.md"]
    listed = run(stage, "list")
    assert "ports.md" in listed
    assert "days.md" in listed
    told = run(stage, "write", name="team", description="Who is who", content="Ada leads.", type="user")
    assert told == "team.md is written."
    made = read_memory("team.md", stage.texts["team.md"])
    assert (made.name, made.description, made.kind, made.body.strip()) == (
        *("team", "Who is who", "user"),
        "Ada leads.",
    )
    run(stage, "write", name="team.md", content="Ada and Bea lead.")
    changed = read_memory("team.md", stage.texts["team.md"])
    assert (changed.description, changed.kind) == ("Who is who", "user"), "what it does not speak of stays"
    assert changed.body.strip() == "Ada and Bea lead."
    assert written == ["team.md", "team.md"]
    assert run(workspace(), "list") == "nothing is remembered"


@pytest.mark.parametrize(
    "given",
    [
        {"action": "read", "name": "nothing"},
        {"action": "delete", "name": "nothing"},
        {"action": "forget", "name": "ports"},
        {"action": "read", "name": "../ports"},
        {"action": "write", "name": "new"},
        {"action": "write", "name": "team/ports", "content": "x", "description": "x"},
        {"action": "delete", "name": "logs/2026/11/2026-11-01"},
        {"action": "write", "name": "archive/ports", "content": "x", "description": "x"},
    ],
)
def test_what_a_dream_may_not_do_is_refused_and_changes_nothing(given: dict[str, str]) -> None:
    stage = workspace(ports="The service listens on 8443.")
    before = dict(stage.texts)
    with pytest.raises(InputError):
        stage.run(JsonObject(given))
    assert stage.texts == before


def test_a_manifest_has_so_many_lines_and_counts_the_rest() -> None:
    stage = workspace(a="First.", b="Second.", c="Third.")
    assert stage.manifest(3).count("\n") == 2
    cut = stage.manifest(2)
    assert "c.md" not in cut
    assert cut.endswith("[and 1 older ones: grep the copy for them]")


def test_the_copy_on_disk_follows_what_is_written_and_taken_out(tmp_path: Path) -> None:
    with Folder.open(tmp_path / "copy", create=True) as folder:
        stage = workspace(ports="The service listens on 8443.")
        stage.folder = folder
        stage.write_copy()
        assert folder.read("ports.md", max_bytes=1_000).decode() == stage.texts["ports.md"]
        run(stage, "write", name="days", description="Days", content="Deploys are on Tuesdays.")
        run(stage, "delete", name="ports")
        assert list(folder.names()) == ["days.md"]


def test_progress_counts_tools_and_files_and_tells_each_step() -> None:
    events: list[Event] = []
    progress = DreamProgress(dream="d1", emit=events.append)
    progress.tool("memory list\n ports")
    progress.touch("ports.md")
    progress.touch("ports.md")
    progress.step("x" * (STEP_CHARS + 5))
    first, second = (event for event in events if isinstance(event, DreamProgressed))
    assert (first.dream, first.state, first.step, first.tools, first.touched) == (
        *("d1", "starting", "memory list ports"),
        *(1, 0),
    )
    assert (second.state, len(second.step), second.tools, second.touched) == ("updating", STEP_CHARS, 1, 1)
    assert len(progress.steps) == 2
