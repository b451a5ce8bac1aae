"""Recalling without an engine."""

from __future__ import annotations

from pathlib import Path

from sevenfold.layers.memory.recall.finder import recall
from sevenfold.store.memory.directory import MemoryDir


def test_a_prompt_brings_what_it_is_about_and_nothing_else(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add("deploys", "The shop is deployed on Tuesdays, never on a Friday.")
        memory.add("colours", "The logo is orange; the brand book says so.")
        found = recall(memory, "May I deploy the shop today?", environ=environ)
        assert [one.key for one in found] == ["deploys.md"]
        assert "never on a Friday" in found[0].body
        assert recall(memory, "What is the capital of France?", environ=environ) == ()


def test_what_it_names_and_is_not_there_is_doubted(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add("deploys", "The shop is deployed by `scripts/ship_shop.sh`, on Tuesdays.")
        (found,) = recall(memory, "How is the shop deployed?", environ=environ)
        assert "scripts/ship_shop.sh" in found.doubt


def test_at_most_so_many_come_as_were_asked_for(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        for day in ("Monday", "Tuesday", "Friday"):
            memory.add(f"deploys-{day.lower()}", f"The shop is deployed by the {day} team.")
        assert len(recall(memory, "Who deploys the shop?", limit=2, environ=environ)) == 2
