"""The notes writer: what stands in the file, how far it goes, and whose lines are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import ProviderError, StoreError
from sevenfold.core.events import (
    Event,
    NotesRecordLost,
    NotesSkipped,
    NotesTruncated,
    NotesUpdated,
    WriterFailed,
)
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Message, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.layers.session_notes.notes_file import (
    NOTES_FILE,
    NOTES_RECORD_FILE,
    NotesFile,
    NotesRecord,
    NotesVersion,
    read_notes_record,
    write_notes_record,
)
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.sections import split_notes
from sevenfold.layers.session_notes.writer import REST_HEADING, NotesDraft, NotesWriter, SpillMessage
from sevenfold.layers.templates import read_notes_texts
from sevenfold.providers.provider import Provider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.files.folder import Folder
from tests.store.faults import Fault, FaultyDisk

LONG = timedelta(seconds=60)
TEXTS = read_notes_texts()
MODEL = NotesSettings(writer="model")
EDIT = JsonObject({"name": "Edit"})


@pytest.fixture
def session(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "session", create=True) as folder:
        yield folder


class Stage:
    """A session's folder, and writers that come and go as processes do."""

    def __init__(self, session: Folder) -> None:
        self.session = session
        self.heard: list[Event] = []

    def writer(
        self,
        settings: NotesSettings | None = None,
        *,
        provider: Provider | None = None,
        spill: SpillMessage | None = None,
    ) -> NotesWriter:
        chosen = settings or NotesSettings()
        return NotesWriter(
            self.session, "s1", chosen, TEXTS, provider=provider, spill=spill, emit=self.heard.append
        )

    def text(self) -> str:
        return NotesFile(self.session).read() or ""

    def edit(self, change: Callable[[str], str]) -> None:
        NotesFile(self.session).write(change(self.text()))


@pytest.fixture
def stage(session: Folder) -> Stage:
    return Stage(session)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def tell() -> None:
        await story()

    asyncio.run(tell())


async def update(writer: NotesWriter, *texts: str, parent: ModelRequest | None = None, tokens: int) -> None:
    for text in texts:
        writer.add(Message("user", text))
    assert writer.responded(tokens, parent)
    assert await writer.settle(LONG)


def test_a_model_is_not_asked_before_it_is_due(stage: Stage) -> None:
    async def story() -> None:
        writer = stage.writer(MODEL)
        writer.add(Message("user", "hello"))
        assert not writer.responded(9_999)
        loaded = await writer.load()
        assert loaded.text is None
        assert loaded.covered == 0

    run(story)


def test_an_update_writes_the_notes_and_how_far_they_go(stage: Stage) -> None:
    async def story() -> None:
        writer = stage.writer()
        await update(writer, "Mend the parser", "And the lexer", tokens=10_000)
        loaded = await writer.load()
        assert split_notes(loaded.text or "").body("Title") == "Mend the parser\n\n"
        assert loaded.covered == 2
        assert [type(event) for event in stage.heard] == [NotesUpdated]
        assert not NotesFile(stage.session).is_updating()

    run(story)


def test_how_far_the_notes_go_survives_a_restart(stage: Stage) -> None:
    async def story() -> None:
        await update(stage.writer(), "one", "two", "three", tokens=10_000)
        assert (await stage.writer().load()).covered == 3

    run(story)


def test_structural_notes_are_current_after_every_response_and_told_of_when_they_grew(stage: Stage) -> None:
    async def story() -> None:
        writer = stage.writer()
        for number, said in enumerate([10, 10_000, 10_010, 14_999, 15_000], start=1):
            await update(writer, f"request {number}", tokens=said)
            assert (await writer.load()).covered == number
        assert [event.covered for event in stage.heard if isinstance(event, NotesUpdated)] == [2, 5]

    run(story)


def test_a_cut_finds_structural_notes_of_the_message_that_came_last(stage: Stage) -> None:
    async def story() -> None:
        writer = stage.writer()
        await update(writer, "one", tokens=10_000)
        writer.add(Message("user", "and this"))
        assert (await writer.load()).covered == 1
        loaded = await writer.load_current()
        assert loaded.covered == 2
        assert "and this" in (loaded.text or "")

    run(story)


def test_structural_notes_fill_what_a_model_has_not_reached(stage: Stage) -> None:
    path = f"{stage.session.path}/{NOTES_FILE}"

    async def story() -> None:
        steps = [make_response(calls={"Edit": edit_of(path, "Mend it\n\n# Current", "Parser\n\n# Current")})]
        with ScriptedProvider(steps) as models:
            writer = stage.writer(MODEL, provider=models)
            writer.add(Message("user", "Mend it"))
            early = await writer.load_current()
            assert (early.covered, "Mend it" in (early.text or "")) == (1, True)
            await update(writer, parent=parent(), tokens=10_000)
            writer.add(Message("user", "Always keep the old names"))
            loaded = await writer.load_current()
            again = stage.writer(MODEL, provider=models)
            for text in ("Mend it", "Always keep the old names"):
                again.add(Message("user", text))
            assert await again.load_current() == loaded
        notes = split_notes(loaded.text or "")
        assert notes.body("Title") == "Parser\n\n"
        assert "Always keep the old names" in notes.body(REST_HEADING)
        assert "Mend it" not in notes.body(REST_HEADING)
        assert loaded.covered == 2

    run(story)


def test_lines_that_a_person_added_or_removed_stay_so_over_updates_and_restarts(stage: Stage) -> None:
    async def story() -> None:
        first = stage.writer()
        await update(first, "Always run make check first.", tokens=10_000)
        stage.edit(
            lambda text: (
                text.replace("# Learnings\n- Always run make check first.\n", "# Learnings\n- Mine!\n")
                + "\n# My own\nkept\n"
            )
        )
        await update(first, "go on", tokens=15_000)
        again = stage.writer()
        await update(again, "Always run make check first.", "go on", "more", tokens=10_000)
        notes = split_notes(stage.text())
        assert notes.body("Learnings").splitlines()[0] == "- Mine!"
        assert "- Always run make check first." not in notes.body("Learnings")
        assert notes.body("My own").strip() == "kept"
        assert stage.text().count("# My own") == 1
        assert stage.text().count("- Mine!") == 1

    run(story)


def test_a_crash_between_the_record_and_the_notes_claims_nothing_that_is_not_written(stage: Stage) -> None:
    async def story() -> None:
        writer = stage.writer()
        await update(writer, "one", tokens=10_000)
        old = read_notes_record(stage.session).newest
        write_notes_record(stage.session, NotesRecord(NotesVersion("never published", 9), old))
        assert (await stage.writer().load()).covered == 1
        stage.edit(lambda text: text + "\nby hand\n")
        assert (await stage.writer().load()).covered == 1

    run(story)


def test_notes_whose_record_is_damaged_cover_nothing(stage: Stage) -> None:
    async def story() -> None:
        await update(stage.writer(), "one", tokens=10_000)
        stage.session.replace(NOTES_RECORD_FILE, b"{torn")
        loaded = await stage.writer().load()
        assert loaded.text is not None
        assert loaded.covered == 0
        assert [type(event) for event in stage.heard].count(NotesRecordLost) == 1

    run(story)


@pytest.mark.parametrize("wire", [b"{}", b'{"newest": {"text": "x", "covered": "all", "writer": "model"}}'])
def test_a_record_of_another_shape_is_damaged_too(stage: Stage, wire: bytes) -> None:
    async def story() -> None:
        await update(stage.writer(), "one", tokens=10_000)
        stage.session.replace(NOTES_RECORD_FILE, wire)
        assert (await stage.writer().load()).covered == 0
        assert any(isinstance(event, NotesRecordLost) for event in stage.heard)

    run(story)


def test_no_record_is_missed_before_there_are_notes(stage: Stage) -> None:
    async def story() -> None:
        assert (await stage.writer().load()).text is None
        assert stage.heard == []
        NotesFile(stage.session).write("# Worklog\n- by hand\n")
        assert (await stage.writer().load()).covered == 0
        assert [type(event) for event in stage.heard] == [NotesRecordLost]

    run(story)


def test_notes_over_their_limits_are_cut_with_an_event_when_they_are_read(stage: Stage) -> None:
    async def story() -> None:
        NotesFile(stage.session).write("# Worklog\n" + "- a step was taken here\n" * 1_000)
        loaded = await stage.writer().load()
        assert "lines shown" in (loaded.text or "")
        assert [event.sections for event in stage.heard if isinstance(event, NotesTruncated)] == ["Worklog"]

    run(story)


def test_a_long_message_is_stored_and_the_notes_say_where(stage: Stage) -> None:
    stored: dict[str, str] = {}

    def spill(name: str, text: str) -> str:
        stored[name] = text
        return f"/spills/{name}"

    async def story() -> None:
        long = "word " * 5_000
        await update(stage.writer(spill=spill), long, tokens=10_000)
        assert list(stored.values()) == [long]
        assert f"the whole is in /spills/{next(iter(stored))}" in stage.text()

    run(story)


def test_a_disk_that_fails_anywhere_in_an_update_never_makes_notes_claim_what_they_lack(
    tmp_path: Path,
) -> None:
    counted = FaultyDisk()
    asyncio.run(update_twice(tmp_path / "whole", counted, []))
    assert len(counted.seen) > 20
    for accident in ("EIO", "ENOSPC", "EIO after"):
        for at in range(2, len(counted.seen) + 1):
            heard: list[Event] = []
            place = tmp_path / f"{accident} {at}"
            asyncio.run(update_twice(place, FaultyDisk(Fault(at, accident)), heard))
            with Folder.open(place) as folder:
                loaded = asyncio.run(NotesWriter(folder, "s1", NotesSettings(), TEXTS).load())
            assert loaded.covered in (1, 2)
            assert ("second" in (loaded.text or "")) or loaded.covered == 1
            assert heard


async def update_twice(place: Path, disk: FaultyDisk, heard: list[Event]) -> None:
    """Once on a sound disk, and again on this one."""
    with Folder.open(place, create=True) as folder:
        await update(NotesWriter(folder, "s1", NotesSettings(), TEXTS), "first", tokens=10_000)
    try:
        with Folder.open(place, disk=disk) as folder:
            writer = NotesWriter(folder, "s1", NotesSettings(), TEXTS, emit=heard.append)
            await update(writer, "first", "second", tokens=10_000)
    except StoreError as error:
        # The folder itself could not be opened or closed: no writer was there to tell.
        heard.append(WriterFailed("folder", str(error)))


def parent() -> ModelRequest:
    return ModelRequest(
        RequestParams(model="claude-opus-4-5", max_tokens=1_000, tools=(EDIT,)), (Message("user", "Mend it"),)
    )


def edit_of(path: str, old: str, new: str) -> dict[str, object]:
    return {"file_path": path, "old_string": old, "new_string": new}


def test_the_model_writer_starts_from_the_structural_notes_and_carries_its_own_on(stage: Stage) -> None:
    path = f"{stage.session.path}/{NOTES_FILE}"

    async def story() -> None:
        steps = [
            make_response(calls={"Edit": edit_of(path, "Mend it\n\n# Current", "Parser\n\n# Current")}),
            make_response(calls={"Edit": edit_of(path, "Parser\n", "Parser and lexer\n")}),
        ]
        with ScriptedProvider(steps) as models:
            writer = stage.writer(MODEL, provider=models)
            await update(writer, "Mend it", parent=parent(), tokens=10_000)
            assert split_notes(stage.text()).body("Title") == "Parser\n\n"
            await update(writer, "More", parent=parent(), tokens=15_000)
            assert split_notes(stage.text()).body("Title") == "Parser and lexer\n\n"
        updates = [event for event in stage.heard if isinstance(event, NotesUpdated)]
        assert [(event.writer, event.covered) for event in updates] == [("model", 1), ("model", 2)]

    run(story)


def test_the_model_writer_may_edit_no_other_file(stage: Stage) -> None:
    async def story() -> None:
        with ScriptedProvider(
            [make_response(calls={"Edit": edit_of("/etc/passwd", "Mend it", "x")})]
        ) as models:
            await update(stage.writer(MODEL, provider=models), "Mend it", parent=parent(), tokens=10_000)
        assert "Mend it" in stage.text()
        skipped = [event for event in stage.heard if isinstance(event, NotesSkipped)]
        assert "structural notes were written" in skipped[0].reason

    run(story)


def test_a_model_that_fails_later_leaves_its_notes_and_what_they_cover(stage: Stage) -> None:
    path = f"{stage.session.path}/{NOTES_FILE}"

    async def story() -> None:
        first = make_response(calls={"Edit": edit_of(path, "Mend it\n\n# Current", "Parser\n\n# Current")})
        with ScriptedProvider([first, ProviderError("no answer")]) as models:
            writer = stage.writer(MODEL, provider=models)
            await update(writer, "Mend it", parent=parent(), tokens=10_000)
            await update(writer, "More", parent=parent(), tokens=15_000)
            assert (await writer.load()).covered == 1
        assert "Parser" in stage.text()
        assert any(isinstance(event, NotesSkipped) for event in stage.heard)

    run(story)


def test_without_an_edit_tool_the_model_writer_says_so_and_structural_notes_are_written(stage: Stage) -> None:
    async def story() -> None:
        await update(stage.writer(MODEL), "Mend it", tokens=10_000)
        kinds = [type(event) for event in stage.heard]
        assert kinds == [NotesSkipped, NotesUpdated]

    run(story)


def test_a_person_can_have_their_own_template(session: Folder) -> None:
    session.replace("notes_template.md", b"# Title\n_mine_\n")
    texts = read_notes_texts(session)
    assert texts.template == "# Title\n_mine_\n"
    assert texts.prompt == TEXTS.prompt


def edit(**given: object) -> ToolUse:
    return ToolUse(ToolUseId("toolu_1"), "Edit", freeze_object(given))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"new_string": "x"}, "say which text to replace"),
        ({"old_string": "", "new_string": "x"}, "say which text to replace"),
        ({"old_string": "one"}, "say which text to replace"),
        ({"old_string": "gone", "new_string": "x"}, "occurs 0 times"),
        ({"old_string": "gone", "new_string": "x", "replace_all": True}, "occurs 0 times"),
        ({"old_string": "two", "new_string": "x"}, "occurs 2 times"),
        ({"old_string": "two", "new_string": "x", "replace_all": "yes"}, "occurs 2 times"),
    ],
)
def test_an_edit_of_notes_that_does_not_fit_changes_nothing(given: dict[str, object], reason: str) -> None:
    draft = NotesDraft("one two two")
    result = asyncio.run(draft.run(edit(**given)))
    assert result.is_error
    assert reason in str(result.content)
    assert (draft.text, draft.edits, draft.misses) == ("one two two", 0, 1)


def test_an_edit_of_notes_replaces_one_place_or_all_that_were_asked_for() -> None:
    draft = NotesDraft("one two two")
    assert not asyncio.run(draft.run(edit(old_string="one", new_string=""))).is_error
    done = asyncio.run(draft.run(edit(old_string="two", new_string="2", replace_all=True)))
    assert not done.is_error
    assert (draft.text, draft.edits, draft.misses) == (" 2 2", 2, 0)


def test_a_cut_finds_the_file_as_it_is_where_the_model_has_noted_all(stage: Stage) -> None:
    path = f"{stage.session.path}/{NOTES_FILE}"

    async def story() -> None:
        steps = [make_response(calls={"Edit": edit_of(path, "Mend it\n\n# Current", "Parser\n\n# Current")})]
        with ScriptedProvider(steps) as models:
            writer = stage.writer(MODEL, provider=models)
            await update(writer, "Mend it", parent=parent(), tokens=10_000)
            loaded = await writer.load_current()
            assert loaded == await writer.load()
            assert (loaded.covered, REST_HEADING in (loaded.text or "")) == (1, False)

    run(story)
