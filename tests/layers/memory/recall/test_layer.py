"""The memories of a session: opened when there are any, and opened anew after they were closed."""

from __future__ import annotations

from pathlib import Path

from sevenfold.core.clock import ManualClock
from sevenfold.core.events import ignore_event
from sevenfold.core.settings import MemorySettings
from sevenfold.layers.memory.recall.layer import SessionMemories
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project


def test_after_closing_the_memories_are_opened_anew(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add("deploys", "The shop is deployed on Tuesdays.")
    with Project.open(tmp_path, home=tmp_path / "home" / ".sevenfold") as project:
        found = SessionMemories(
            project,
            MemorySettings(),
            home=tmp_path / "home",
            root=tmp_path,
            memory=None,
            clock=ManualClock(),
            emit=ignore_event,
        )
        for _ in range(2):
            library = found.library()
            assert library is not None
            assert len(library.memory.scan()) == 1
            assert "deploys" in found.index()[0].text
            found.close()


def test_no_search_is_opened_over_a_memory_that_holds_nothing(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    home = tmp_path / "home" / ".sevenfold"
    with (
        MemoryDir.for_project(tmp_path, environ=environ) as memory,
        Project.open(tmp_path, home=home) as project,
    ):
        found = SessionMemories(
            project,
            MemorySettings(),
            home=tmp_path / "home",
            root=tmp_path,
            memory=memory,
            clock=ManualClock(),
            emit=ignore_event,
        )
        assert found.library() is None
        memory.add("deploys", "The shop is deployed on Tuesdays.")
        assert found.library() is not None
