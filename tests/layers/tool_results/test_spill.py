"""Spills: durable before the preview exists, never over another's file, and no result lost by a failure."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.canonical import digest
from sevenfold.core.errors import FileDamaged, FileMissing, KeyRefused, SevenfoldError
from sevenfold.core.events import Event, ResultSpilled, SpillFailed
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Image, Opaque, Text, ToolResult, ToolUseId
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.tool_results.policy import ToolResultSettings, apply_spill_decision
from sevenfold.layers.tool_results.spill import SPILL_FOLDER, SpillStore
from sevenfold.store.files.folder import Folder
from tests.core import wires
from tests.store import children
from tests.store.disks import QUICK, effects, fresh_folder, temps, tree
from tests.store.faults import Fault, FaultyDisk

SETTINGS = ToolResultSettings()
USE = ToolUseId("toolu_1")


def result(content: str | tuple[Text | Image | Opaque, ...] | None, use: str = USE) -> ToolResult:
    return ToolResult(ToolUseId(use), content)


@pytest.fixture
def session(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "session", create=True) as folder:
        yield folder


@pytest.fixture
def spills(session: Folder, events: list[Event]) -> Generator[SpillStore]:
    made = SpillStore(session, SETTINGS, emit=events.append)
    yield made
    made.close()


def test_a_result_is_whole_on_disk_and_its_preview_says_where(
    spills: SpillStore, session: Folder, events: list[Event]
) -> None:
    text = "".join(f"line {n}\n" for n in range(1000))
    decision = spills.store(result(text))
    assert tree(session.path) == {f"{SPILL_FOLDER}/toolu_1.txt": text.encode()}
    assert decision == SpillDecision(
        tool_use_id=USE,
        preview=decision.preview,
        spill=f"{SPILL_FOLDER}/toolu_1.txt",
        digest=digest(text.encode()),
        size_bytes=len(text),
    )
    assert decision.preview
    path = f"{session.path}/{SPILL_FOLDER}/toolu_1.txt"
    assert path in decision.preview
    assert f"{len(text):,} bytes" in decision.preview
    assert "line 0\nline 1\n" in decision.preview
    assert events == [ResultSpilled(USE, path, len(text))]


def test_structured_content_is_stored_as_the_json_it_came_as(spills: SpillStore) -> None:
    image = Image(JsonObject({"type": "base64", "data": "AAAA"}))
    decision = spills.store(result((Text("first"), image, Text("second"))))
    assert decision.spill == f"{SPILL_FOLDER}/toolu_1.json"
    stored = json.loads(spills.read(decision))
    assert [item["type"] for item in stored] == ["text", "image", "text"]
    assert decision.preview
    assert "first\nsecond" in decision.preview


@given(wires.texts, st.none() | wires.texts)
def test_any_text_and_any_id_can_be_stored_and_read_back(text: str, use: str | None) -> None:
    with fresh_folder() as session:
        spills = SpillStore(session, SETTINGS)
        decision = spills.store(result(text, use or USE))
        assert decision.preview is not None
        assert spills.read(decision) == text.encode("utf-8", "backslashreplace")
        spills.close()


@pytest.mark.parametrize("content", ["", None, ()])
def test_an_empty_result_can_be_stored_too(
    spills: SpillStore, content: str | tuple[Text, ...] | None
) -> None:
    decision = spills.store(result(content))
    assert spills.read(decision) in (b"", b"[]")


def test_storing_again_decides_the_same_and_writes_nothing(spills: SpillStore, session: Folder) -> None:
    first = spills.store(result("text"))
    before = (session.path / SPILL_FOLDER / "toolu_1.txt").stat().st_ino
    again = SpillStore(session, SETTINGS)
    assert spills.store(result("text")) == again.store(result("text")) == first
    again.close()
    assert (session.path / SPILL_FOLDER / "toolu_1.txt").stat().st_ino == before


def test_what_is_found_stored_is_made_durable_before_its_preview_exists(
    spills: SpillStore, session: Folder
) -> None:
    """Whoever stored it may have died between renaming and making the name durable."""
    spills.store(result("text"))
    disk = FaultyDisk()
    with Folder.open(session.path, disk=disk) as folder:
        again = SpillStore(folder, SETTINGS)
        disk.seen.clear()
        again.store(result("text"))
        again.close()
    assert effects(disk.seen) == ["open", "open", "read", "fsync"]


def test_another_content_under_the_same_id_gets_a_name_of_its_own(
    spills: SpillStore, session: Folder
) -> None:
    first, second = spills.store(result("one")), spills.store(result("two"))
    assert first.spill != second.spill
    assert spills.read(first) == b"one"
    assert spills.read(second) == b"two"
    assert spills.store(result("two")) == second
    assert len(tree(session.path)) == 2


HOSTILE = [
    "",
    ".",
    "..",
    "../../escape",
    "/etc/passwd",
    "a/b",
    "a\0b",
    "a\nb",
    "con",
    "-rf",
    ".hidden",
    "é",
    "\ud800",
    "x" * 129,
    "y" * 10_000,
    "id-00",
]


@pytest.mark.parametrize("use", HOSTILE, ids=lambda use: ascii(use)[:20])
def test_a_hostile_id_names_a_file_of_its_own_inside(spills: SpillStore, session: Folder, use: str) -> None:
    decision = spills.store(result(f"of {use!r}", use))
    assert decision.spill
    assert decision.preview
    assert list(tree(session.path)) == [decision.spill]
    assert spills.read(decision) == f"of {use!r}".encode("utf-8", "backslashreplace")
    assert "\0" not in decision.preview


def test_ids_that_differ_in_case_alone_do_not_share_a_file(spills: SpillStore) -> None:
    lower, upper = spills.store(result("lower", "toolu_a")), spills.store(result("upper", "TOOLU_A"))
    assert spills.read(lower) == b"lower"
    assert spills.read(upper) == b"upper"


def plant_folder(place: Path) -> None:
    (place / "toolu_1.txt").mkdir()


def plant_link(place: Path) -> None:
    (place / "toolu_1.txt").symlink_to("/etc/hostname")


def plant_fifo(place: Path) -> None:
    os.mkfifo(place / "toolu_1.txt")


@pytest.mark.parametrize("plant", [plant_folder, plant_link, plant_fifo])
def test_what_an_agent_planted_under_the_name_is_stepped_around(
    session: Folder, plant: Callable[[Path], None]
) -> None:
    (session.path / SPILL_FOLDER).mkdir()
    plant(session.path / SPILL_FOLDER)
    spills = SpillStore(session, SETTINGS)
    decision = spills.store(result("text"))
    assert decision.preview
    assert decision.spill != f"{SPILL_FOLDER}/toolu_1.txt"
    assert spills.read(decision) == b"text"
    spills.close()


@pytest.mark.parametrize("accident", ["EIO", "ENOSPC"])
def test_a_failure_anywhere_leaves_the_result_whole_and_is_told(tmp_path: Path, accident: str) -> None:
    counting = FaultyDisk(inner=QUICK)
    with Folder.open(tmp_path / "count", create=True, disk=counting) as session:
        spills = SpillStore(session, SETTINGS)
        ready = len(counting.seen)
        spills.store(result("text"))
        stored = len(counting.seen)
        spills.close()
    assert stored > ready + 5
    for at in range(ready + 1, stored + 1):
        events: list[Event] = []
        disk = FaultyDisk(Fault(at, "EIO" if accident == "EIO" else "ENOSPC"), inner=QUICK)
        with Folder.open(tmp_path / f"{at}", create=True, disk=disk) as session:
            spills = SpillStore(session, SETTINGS, emit=events.append)
            decision = spills.store(result("text"))
            assert decision == SpillDecision(tool_use_id=USE)
            assert apply_spill_decision(result("text"), decision) == result("text")
            assert [type(event) for event in events] == [SpillFailed]
            assert temps(tmp_path / f"{at}") == []
            spills.close()


def test_a_result_that_has_no_form_on_disk_stays_whole_and_is_told(
    spills: SpillStore, events: list[Event]
) -> None:
    deep: JsonObject = JsonObject({"type": "new"})
    for _ in range(300):
        deep = JsonObject({"type": "new", "x": deep})
    decision = spills.store(result((Opaque(deep),)))
    assert decision == SpillDecision(tool_use_id=USE)
    assert [type(event) for event in events] == [SpillFailed]


def test_the_quota_holds_and_says_which_setting_it_is(session: Folder, events: list[Event]) -> None:
    spills = SpillStore(session, replace(SETTINGS, session_quota_bytes=10), emit=events.append)
    assert spills.store(result("x" * 10, "a")).preview
    assert spills.store(result("x", "b")).preview is None
    assert spills.store(result("x" * 10, "a")).preview, "it is there already"
    spills.close()
    failed = [event for event in events if isinstance(event, SpillFailed)]
    assert len(failed) == 1
    assert "tool_results.session_quota_bytes" in failed[0].reason
    again = SpillStore(session, replace(SETTINGS, session_quota_bytes=10))
    assert again.store(result("x", "b")).preview is None
    again.close()


def test_what_is_no_spill_takes_nothing_of_the_quota(session: Folder) -> None:
    spills = SpillStore(session, replace(SETTINGS, session_quota_bytes=10))
    (session.path / SPILL_FOLDER / "link.txt").symlink_to("/etc/hostname")
    assert spills.store(result("x" * 10, "a")).preview
    spills.close()


def test_the_quota_is_shared_by_all_processes_of_a_session(session: Folder) -> None:
    settings = replace(SETTINGS, session_quota_bytes=100)
    spills = SpillStore(session, settings)

    def fill() -> None:
        other = SpillStore(session, settings)
        assert other.store(result("x" * 90, "theirs")).preview

    assert spills.store(result("x", "first")).preview
    children.expect_success([fill])
    assert spills.store(result("x" * 20, "late")).preview is None
    assert spills.store(result("x" * 9, "fits")).preview
    spills.close()


def test_a_result_over_the_limit_of_one_is_left_alone(
    spills: SpillStore, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sevenfold.layers.tool_results.spill.MAX_SPILL_BYTES", 10)
    assert spills.store(result("x" * 11)).preview is None
    assert isinstance(events[0], SpillFailed)
    assert "11 bytes" in events[0].reason


def test_a_changed_an_exchanged_and_a_missing_spill_are_noticed(spills: SpillStore, session: Folder) -> None:
    decision = spills.store(result("text"))
    assert decision.spill
    for content in (b"TEXT", b"text and more", b""):
        session.replace(decision.spill, content)
        with pytest.raises(FileDamaged, match="run the tool again"):
            spills.read(decision)
    session.remove(decision.spill)
    with pytest.raises(FileMissing):
        spills.read(decision)
    with pytest.raises(FileMissing, match="left in the context"):
        spills.read(SpillDecision(tool_use_id=USE))


@pytest.mark.parametrize(
    "spill", [f"{SPILL_FOLDER}/../../x", "/etc/hostname", "../session/x", f"{SPILL_FOLDER}/.tmp-1", ""]
)
def test_a_forged_decision_reads_nothing_outside(spills: SpillStore, spill: str) -> None:
    forged = SpillDecision(tool_use_id=USE, preview="preview", spill=spill, digest=digest(b""), size_bytes=0)
    with pytest.raises(KeyRefused):
        spills.read(forged)


def test_a_folder_that_cannot_be_made_is_an_error_at_once(session: Folder) -> None:
    (session.path / SPILL_FOLDER).touch()
    with pytest.raises(SevenfoldError):
        SpillStore(session, SETTINGS)


def test_a_result_whose_every_name_is_taken_by_another_is_left_alone(
    spills: SpillStore, session: Folder, events: list[Event]
) -> None:
    stored = spills.store(result("text", "é"))
    assert stored.spill
    session.replace(stored.spill, b"something else")
    assert spills.store(result("text", "é")) == SpillDecision(tool_use_id=ToolUseId("é"))
    assert isinstance(events[-1], SpillFailed)
