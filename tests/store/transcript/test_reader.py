"""Resuming: the same as reading everything, without reading everything, whatever is wrong with the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import DiskFault, FileMissing, KeyRefused
from sevenfold.core.events import Event, LineQuarantined
from sevenfold.store.files import LINE_HEAD
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript import reader
from sevenfold.store.transcript.reader import (
    UNFINISHED_LINE,
    BadLine,
    ResumedSession,
    StoredRecord,
    resume,
    scan_transcript,
)
from sevenfold.store.transcript.records import write_line
from sevenfold.store.transcript.transcript import Transcript
from tests.store.disks import CountingDisk, QuickDisk, fresh_folder
from tests.store.faults import Fault, FaultyDisk
from tests.store.transcripts import (
    FILE,
    SESSION,
    boundary,
    false_mark,
    ids,
    read_naively,
    resume_naively,
    resumed,
    said,
    scanned,
    sealed,
    segment,
    spoilt,
    stored,
    write_raw,
)

NEWER = sealed(
    b'"k":"boundary","id":"newer","at":"2027-01-01T00:00:00+00:00","v":{"trigger":"reactive","tokens_before":1,"tools":[]}}'
)
"""A boundary of a version to come: its checksum fits, and this version cannot tell what it means."""


def with_chunks(size: int) -> pytest.MonkeyPatch:
    patch = pytest.MonkeyPatch()
    patch.setattr(reader, "CHUNK_BYTES", size)
    return patch


def test_without_a_boundary_everything_is_read(sessions: Folder) -> None:
    found = resumed(sessions, said("1"), said("2"))
    assert (found.boundary, ids(found.records), found.bad, found.repeated) == (None, ["1", "2"], (), 0)
    assert resumed(sessions) == ResumedSession(boundary=None, kept=(), records=(), bad=(), repeated=0)


def test_a_session_that_is_not_there_is_missing_and_not_empty(sessions: Folder) -> None:
    with pytest.raises(FileMissing):
        resume(sessions, "other")
    with pytest.raises(FileMissing):
        list(scan_transcript(sessions, "other"))
    with pytest.raises(KeyRefused):
        resume(sessions, "../s1")


def test_a_session_is_resumed_from_its_last_boundary(sessions: Folder) -> None:
    found = resumed(sessions, said("1"), boundary("b1"), said("2"), boundary("b2"), said("3"), said("4"))
    assert found.boundary
    assert found.boundary.record.id == "b2"
    assert ids(found.records) == ["3", "4"]
    assert resumed(sessions, said("1"), boundary("b")).records == ()


def test_a_record_written_twice_counts_once_and_is_told(sessions: Folder) -> None:
    found = resumed(sessions, said("1"), said("2"), said("1"), said("2", "other words"), said("3"))
    assert ids(found.records) == ["1", "2", "3"]
    assert found.records[1].record == said("2")
    assert found.repeated == 2


def test_a_boundary_written_twice_counts_where_it_stands_first(sessions: Folder) -> None:
    """Another writer's records between the two were acknowledged after the first."""
    found = resumed(sessions, said("0"), boundary("b"), said("1"), boundary("b"), said("2"), boundary("b"))
    assert found.boundary
    assert found.boundary.offset == len(write_line(said("0")))
    assert ids(found.records) == ["1", "2"]
    assert found.repeated == 2


def test_a_late_copy_of_an_older_boundary_does_not_hide_what_follows_a_newer_one(sessions: Folder) -> None:
    found = resumed(sessions, boundary("b1"), said("1"), boundary("b2"), said("2"), boundary("b1"), said("3"))
    assert found.boundary
    assert found.boundary.record.id == "b2"
    assert ids(found.records) == ["2", "3"]


def test_a_retry_after_a_failed_fsync_loses_no_record_of_another_writer(sessions: Folder) -> None:
    with Transcript.open(sessions, SESSION) as other:
        other.append(said("before"))
        counting = FaultyDisk()
        with Folder.open(sessions.path, disk=counting) as folder, Transcript.open(folder, SESSION) as first:
            at = len(counting.seen)
            first.append(boundary("counted"))
            fsync = at + counting.seen[at:].index("fsync") + 1
        failing = FaultyDisk(Fault(fsync, "EIO"))
        with (
            Folder.open(sessions.path, disk=failing) as folder,
            Transcript.open(folder, SESSION) as first,
            pytest.raises(DiskFault),
        ):
            first.append(boundary("b"))
        other.append(said("between"))
        with Transcript.open(sessions, SESSION) as again:
            again.append(boundary("b"))
            again.append(said("after"))
    assert ids(resume(sessions, SESSION).records) == ["between", "after"]


@pytest.mark.parametrize("last", ["m", "unheard of"])
def test_copies_are_looked_for_as_far_back_as_they_can_be(
    sessions: Folder, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the message that it was made after is there; beyond a bound nothing is read."""
    monkeypatch.setattr(reader, "LOOK_BACK_BYTES", 50_000)
    monkeypatch.setattr(reader, "CHUNK_BYTES", 1_000)
    made = boundary("b", last=last)
    old = [said(f"old{n}", "x" * 1_000) for n in range(100)]
    write_raw(sessions, *old, said("m"), made, said("1", "y" * 20_000), made, said("2"))
    disk = CountingDisk()
    with Folder.open(sessions.path, disk=disk) as folder:
        found = resume(folder, SESSION)
    assert ids(found.records) == ["1", "2"]
    before = sum(len(write_line(record)) for record in old)
    assert disk.lowest > before - 55_000


LOST = write_line(boundary("b2"))


@pytest.mark.parametrize(
    "bad",
    [
        LOST[:-10] + b"\n",
        LOST.replace(b"auto", b"oaut"),
        b"\0" * (len(LOST) - 1) + b"\n",
        b"fragment" + LOST[20:],
        NEWER + b"\n",
    ],
    ids=["cut", "changed", "zeros", "headless", "newer"],
)
def test_a_boundary_that_cannot_be_read_is_none_and_what_is_before_it_counts(
    sessions: Folder, bad: bytes, events: list[Event]
) -> None:
    write_raw(sessions, said("1"), boundary("b1"), said("2"), bad, said("3"))
    found = resume(sessions, SESSION, emit=events.append)
    assert found.boundary
    assert found.boundary.record.id == "b1"
    assert ids(found.records) == ["2", "3"]
    assert len(found.bad) == 1
    assert events == [
        LineQuarantined(f"{sessions.path}/{FILE}", line.offset, line.length_bytes, line.reason)
        for line in found.bad
    ]


def test_a_boundary_joined_to_a_fragment_is_found(sessions: Folder) -> None:
    found = resumed(sessions, said("1"), boundary("b1"), said("2"), b"fragment", boundary("b2"), said("3"))
    assert found.boundary
    assert found.boundary.record.id == "b2"
    assert ids(found.records) == ["3"]


def test_a_boundary_without_its_newline_is_one(sessions: Folder) -> None:
    found = resumed(sessions, said("1"), write_line(boundary("b"))[:-1])
    assert found.boundary
    assert found.records == ()


def test_what_only_looks_like_a_boundary_is_none(sessions: Folder) -> None:
    tricks = [
        said("1", '{"c":"12345678","k":"boundary","id":"x"}'),
        said("2", '\n{"c":"12345678","k":"boundary","id":"x"}\n'),
        false_mark("3", 5),
    ]
    found = resumed(sessions, *tricks)
    assert found.boundary is None
    assert ids(found.records) == ["1", "2", "3"]


def test_bad_lines_are_told_with_place_and_length_and_left_where_they_are(sessions: Folder) -> None:
    first = len(write_line(said("1")))
    data = write_raw(sessions, said("1"), b"garbage\n", b"\n", said("2"), b"half a li")
    found = resume(sessions, SESSION)
    assert [(bad.offset, bad.length_bytes) for bad in found.bad] == [
        (first, 8),
        (first + 8, 1),
        (len(data) - 9, 9),
    ]
    assert found.bad[-1].reason == UNFINISHED_LINE
    assert (sessions.path / FILE).read_bytes() == data


def test_a_line_joined_to_a_fragment_is_read(sessions: Folder) -> None:
    fragment = write_line(said("lost", "x" * 100))[:50]
    write_raw(sessions, said("1"), fragment, said("2"), said("3"))
    first = len(write_line(said("1")))
    assert scanned(sessions)[1] == BadLine(first, 50, "its checksum does not fit")
    assert stored(sessions)[1] == StoredRecord(said("2"), first + 50)
    assert ids(stored(sessions)) == ["1", "2", "3"]


def test_a_line_is_found_behind_any_number_of_false_starts(sessions: Folder) -> None:
    start = b'{"c":"12345678","k":"'
    write_raw(sessions, start * 20_000, said("1"), start * 500, false_mark("2", 300), said("3"))
    assert ids(stored(sessions)) == ["1", "2", "3"]


def test_false_starts_cost_no_more_than_a_few_passes(
    sessions: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []

    def counting(line: bytes, start: int = 0) -> bool:
        checked.append(len(line) - start)
        return False

    monkeypatch.setattr(reader, "is_whole", counting)
    data = write_raw(sessions, b'{"c":"12345678","k":"' * 100_000 + b"\n")
    assert len(scanned(sessions)) == 1
    assert len(checked) > 1000
    assert sum(checked) < 20 * len(data)


def test_a_line_of_any_length_costs_no_more_than_its_length_in_the_report(
    sessions: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_LONGEST", 5_000)
    for size in (5_001, 40_000, 3_000_000):
        write_raw(sessions, said("1"), b"x" * size + b"\n", said("2"), b"y" * size)
        lines = scanned(sessions)
        first = len(write_line(said("1")))
        assert lines[1] == BadLine(first, size + 1, "it is too long")
        assert lines[3] == BadLine(lines[2].offset + first, size, UNFINISHED_LINE)
        assert ids(stored(sessions)) == ["1", "2"]


def test_the_longest_line_there_may_be_is_read_whatever_the_chunks(
    sessions: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = said("long", "x" * 4000)
    monkeypatch.setattr(reader, "_LONGEST", len(write_line(record)) - 1)
    write_raw(sessions, said("1"), record, said("2"))
    for size in (1, 2, 100, 4096, 1 << 20):
        monkeypatch.setattr(reader, "CHUNK_BYTES", size)
        assert ids(stored(sessions)) == ["1", "long", "2"]


def test_a_part_of_a_transcript_can_be_read(sessions: Folder) -> None:
    with Transcript.open(sessions, SESSION) as transcript:
        places = transcript.append_all([said(f"{n}") for n in range(5)])
    part = list(scan_transcript(sessions, SESSION, start=places[1].offset, end=places[3].offset))
    assert [line.record.id for line in part if isinstance(line, StoredRecord)] == ["1", "2"]


BIG = [said(f"big-{n}", "x" * 100_000) for n in range(60)]


def test_what_is_before_the_boundary_is_not_read(sessions: Folder) -> None:
    disk = sessions.disk
    assert isinstance(disk, CountingDisk)
    before = write_raw(sessions, *BIG)
    write_raw(sessions, before, boundary("b", last="big-59"), said("1"), said("2"))
    found = resume(sessions, SESSION)
    assert ids(found.records) == ["1", "2"]
    assert len(before) > 5 * reader.CHUNK_BYTES
    assert disk.bytes_read < 3 * reader.CHUNK_BYTES
    assert disk.lowest > len(before) - reader.CHUNK_BYTES - 100


def test_false_marks_and_damaged_boundaries_cost_no_reading_each(sessions: Folder) -> None:
    disk = sessions.disk
    assert isinstance(disk, CountingDisk)
    damaged = write_line(boundary("b")).replace(b"auto", b"oaut")
    data = write_raw(sessions, *[false_mark(f"{n}", 500) for n in range(20)], damaged * 2_000)
    resume(sessions, SESSION)
    assert disk.bytes_read < 3 * len(data) + 2 * reader.CHUNK_BYTES


# Everything that may stand in a file, by name; a number makes names that sometimes repeat.
numbers = st.integers(0, 9)
fragments = st.binary(max_size=40) | numbers.map(lambda n: write_line(said(f"torn-{n}"))[: n * 9])
offsets = st.integers(-1, 2000)


def keeping(name: int, head: int, tail: int, offset: int) -> bytes:
    return write_line(boundary(f"b{name}", segment(f"{head}", f"{tail}", offset)))


pieces: st.SearchStrategy[bytes] = st.one_of(
    numbers.map(lambda n: write_line(said(f"{n}", "é\u2028" * n))),
    numbers.map(lambda n: write_line(said(f"{n}"))),
    numbers.map(lambda n: write_line(false_mark(f"mark-{n}", n))),
    numbers.map(lambda n: write_line(boundary(f"b{n}"))),
    st.builds(keeping, numbers, numbers, numbers, offsets),
    numbers.map(lambda n: write_line(boundary(f"b{n}")).replace(b"auto", b"oaut")),
    numbers.map(lambda n: spoilt(said(f"{n}"))),
    fragments,
    fragments.map(lambda data: data + b"\n"),
    st.just(NEWER + b"\n"),
    st.just(LINE_HEAD * 3),
    st.just(b"\n"),
)


@given(parts=st.lists(pieces, max_size=14), cut=st.integers(0, 30), chunk=st.integers(1, 400))
def test_resuming_gives_what_reading_everything_gives(parts: list[bytes], cut: int, chunk: int) -> None:
    whole = b"".join(parts)
    data = whole[: len(whole) - cut] if cut < len(whole) else whole
    patch = with_chunks(chunk)
    try:
        with fresh_folder() as folder:
            write_raw(folder, data)
            found, lines = resume(folder, SESSION), scanned(folder)
    finally:
        patch.undo()
    wanted = resume_naively(data)
    assert (found.boundary, found.records) == (wanted.boundary, wanted.records)
    if wanted.kept:
        # A damaged head may make it more.
        assert set(ids(wanted.kept)) <= set(ids(found.kept))
    records = [line for line in lines if isinstance(line, StoredRecord)]
    assert records == read_naively(data)
    assert sum(line.length_bytes for line in lines if isinstance(line, BadLine)) == len(data) - sum(
        len(write_line(line.record)) - (line.offset + len(write_line(line.record)) > len(data))
        for line in records
    )


@given(st.data())
def test_with_one_line_in_a_hundred_spoilt_every_other_record_is_there(data: st.DataObject) -> None:
    names = [f"{n}" for n in range(200)]
    at = data.draw(st.integers(0, 199), label="where the boundary stands")
    records = [boundary(name) if n == at else said(name, "x" * (n % 7)) for n, name in enumerate(names)]
    lines = [bytearray(write_line(record)) for record in records]
    spoilt_lines = data.draw(
        st.sets(st.integers(0, 199).filter(lambda n: n != at), max_size=2), label="spoilt"
    )
    for n in spoilt_lines:
        place = data.draw(st.integers(0, len(lines[n]) - 1))
        lines[n][place] = data.draw(
            st.integers(0, 255).filter(lambda byte, n=n, place=place: byte != lines[n][place])
        )
    with fresh_folder() as folder:
        write_raw(folder, *map(bytes, lines))
        found = resume(folder, SESSION)
    assert found.boundary
    # A spoilt newline glues the line before the boundary to it; the boundary is still found.
    assert found.boundary.record.id == names[at]
    missing = set(names[at + 1 :]) - set(ids(found.records))
    assert missing <= {names[n] for n in spoilt_lines}
    assert ids(found.records) == [name for name in names[at + 1 :] if name not in missing]


class ShrinkingDisk(QuickDisk):
    """A file that is cut short while it is being read."""

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return super().read(fd, size, offset) if offset < 100 else b""


def test_a_transcript_cut_short_while_it_is_read_ends_there(sessions: Folder) -> None:
    write_raw(sessions, *[said(f"{n}") for n in range(20)])
    patch = with_chunks(100)
    try:
        with Folder.open(sessions.path, disk=ShrinkingDisk()) as folder:
            assert len(scanned(folder)) == 1
    finally:
        patch.undo()
