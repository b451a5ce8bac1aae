"""What a fork is shown of the memories: few lines, and among them those that may say the same."""

from __future__ import annotations

from pathlib import Path

from sevenfold.core.memories import Origin, write_memory
from sevenfold.layers.memory.extraction.drafts import MOST_ALIKE, MOST_WHOLE, NEWEST, MemorySnapshot
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir

ORIGIN = Origin(who="user", why="test", said_by="user")


def put(memory: MemoryDir, *names: str) -> None:
    memory.commit(
        [
            Write(f"{name}.md", write_memory(name, f"on {name.replace('-', ' ')}", "project", "x"), ANYTHING)
            for name in names
        ],
        ORIGIN,
    )


def test_a_small_directory_is_listed_whole(tmp_path: Path) -> None:
    with MemoryDir.for_project(tmp_path, environ={"HOME": str(tmp_path)}) as memory:
        put(memory, *(f"topic-{number}" for number in range(MOST_WHOLE)))
        shown = MemorySnapshot(memory)
        shown.refresh()
        assert len(shown.describe("anything").splitlines()) == MOST_WHOLE


def test_a_large_directory_shows_what_is_alike_and_what_is_new(tmp_path: Path) -> None:
    with MemoryDir.for_project(tmp_path, environ={"HOME": str(tmp_path)}) as memory:
        put(memory, "tabs-and-spaces", *(f"topic-{number}" for number in range(3 * MOST_WHOLE)))
        put(memory, "newest")
        shown = MemorySnapshot(memory)
        shown.refresh()
        lines = shown.describe("From now on, indent with tabs.").splitlines()
        assert "tabs-and-spaces.md" in lines[0]
        assert any("newest.md" in line for line in lines)
        assert len(lines) <= MOST_ALIKE + NEWEST + 1
        assert lines[-1].startswith(f"and {3 * MOST_WHOLE + 2 - len(lines) + 1} more")
