"""Any mix of appending, dying, tearing, reopening and resuming, against a list that never forgets."""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path
from typing import NoReturn

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Event
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import BadLine, StoredRecord, resume
from sevenfold.store.transcript.records import BoundaryRecord, KeptSegment, Record, write_line
from sevenfold.store.transcript.transcript import Transcript
from tests.examples import up_to
from tests.store.disks import QUICK, open_handles
from tests.store.faults import Accident, Fault, FaultyDisk
from tests.store.transcripts import FILE, SESSION, boundary, ids, resume_naively, said, scanned

texts = st.sampled_from(["", "short", "é\u2028\n" * 30, '{"c":"12345678","k":"boundary",', "x" * 3000])
accidents = st.sampled_from(["die before", "die after", "die half way", "EIO", "ENOSPC", "EINTR", "short"])


class Died(BaseException):
    """The writer is gone in the middle of what it did."""


def die() -> NoReturn:
    raise Died


class Transcripts(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.root = Path(self.place.name)
        self.folder = Folder.open(self.root, disk=QUICK)
        self.names = count()
        self.events: list[Event] = []
        self.writers: list[Transcript] = []
        self.acknowledged: list[Record] = []
        self.doubtful: list[Record] = []
        self.torn = 0

    def teardown(self) -> None:
        for writer in self.writers:
            writer.close()
        self.folder.close()
        self.place.cleanup()

    @initialize()
    def open_two_writers(self) -> None:
        self.writers = [Transcript.open(self.folder, SESSION, emit=self.events.append) for _ in range(2)]

    @rule(which=st.integers(0, 1), texts=st.lists(texts, min_size=1, max_size=3), durable=st.booleans())
    def append(self, which: int, texts: list[str], durable: bool) -> None:
        records = [said(f"{next(self.names)}", text) for text in texts]
        places = self.writers[which].append_all(records, durable=durable)
        self.acknowledged += records
        data = (self.root / FILE).read_bytes()
        for record, place in zip(records, places, strict=True):
            assert data[place.offset : place.offset + place.length_bytes] == write_line(record)

    @rule(which=st.integers(0, 1), back=st.integers(1, 4))
    def append_boundary(self, which: int, back: int) -> None:
        lines = [line for line in scanned(self.folder) if isinstance(line, StoredRecord)][-back:]
        kept = [line for line in lines if not isinstance(line.record.body, BoundaryRecord)]
        segment = None
        if kept:
            head, tail = kept[0].record.id, kept[-1].record.id
            segment = KeptSegment(head, RecordId("summary"), tail, kept[0].offset)
        record = boundary(f"{next(self.names)}", segment)
        self.writers[which].append(record)
        self.acknowledged.append(record)

    @rule(accident=accidents, at=st.integers(1, 9), text=texts)
    def append_with_an_accident(self, accident: Accident, at: int, text: str) -> None:
        """A writer of its own, on a disk that fails it; whether the record is there afterwards is open."""
        record = said(f"{next(self.names)}", text)
        self.doubtful.append(record)
        disk = FaultyDisk(Fault(at, accident), inner=QUICK, die=die)
        before = open_handles(self.root)
        try:
            with Folder.open(self.root, disk=disk) as folder, Transcript.open(folder, SESSION) as writer:
                writer.append(record)
            self.acknowledged.append(record)
        except SevenfoldError:
            self.torn += 1
        except Died:
            self.torn += 1
            # A process that dies in the middle of opening a file has it closed by the kernel.
            for fd in open_handles(self.root) - before:
                os.close(fd)

    @rule(which=st.integers(0, 1))
    def try_again_what_is_in_doubt(self, which: int) -> None:
        if self.doubtful:
            self.writers[which].append(self.doubtful[-1])
            self.acknowledged.append(self.doubtful[-1])

    @rule(
        fragment=st.binary(min_size=1, max_size=30)
        | st.integers(1, 60).map(lambda n: write_line(said("torn"))[:n])
    )
    def tear(self, fragment: bytes) -> None:
        """Somebody died in mid-line."""
        with (self.root / FILE).open("ab") as file:
            file.write(fragment.replace(b"\n", b" "))
        self.torn += 1

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.writers[which].close()
        self.writers[which] = Transcript.open(self.folder, SESSION, emit=self.events.append)

    @invariant()
    def everything_acknowledged_is_there_in_order(self) -> None:
        if not self.writers:
            return
        lines = scanned(self.folder)
        found = [line.record for line in lines if isinstance(line, StoredRecord)]
        rest = iter(found)
        assert all(record in rest for record in self.acknowledged)
        known = {record.id for record in (*self.acknowledged, *self.doubtful)}
        assert {record.id for record in found} <= known
        assert sum(1 for line in lines if isinstance(line, BadLine)) <= self.torn

    @invariant()
    def resuming_is_reading_everything(self) -> None:
        if not self.writers:
            return
        found, wanted = resume(self.folder, SESSION), resume_naively((self.root / FILE).read_bytes())
        assert (found.boundary, found.records) == (wanted.boundary, wanted.records)
        assert ids(found.kept) == ids(wanted.kept)


TestTranscripts = Transcripts.TestCase
TestTranscripts.settings = settings(max_examples=up_to(60), stateful_step_count=25)
