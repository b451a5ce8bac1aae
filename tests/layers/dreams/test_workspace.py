"""The copy of the memories that a dream edits, and what its tool answers."""

from __future__ import annotations

from datetime import date

import pytest

from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.memories import write_memory
from sevenfold.layers.dreams.workspace import DreamWorkspace


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
