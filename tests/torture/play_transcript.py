"""Scenario: two writers take turns on one transcript, after a third died in mid-line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import ClassVar

from sevenfold.core.errors import FileMissing
from sevenfold.core.messages import Message
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import BadLine, StoredRecord, TranscriptLine, resume, scan_transcript
from sevenfold.store.transcript.records import BoundaryRecord, MessageRecord, Record, write_line
from sevenfold.store.transcript.transcript import Transcript
from tests.torture.stage import QUICK_DISK, Seen, Stage

SESSION = "play"
AT = datetime(2026, 11, 15, tzinfo=UTC)
LENGTHS = (0, 7, 300, 5_000, 70_000)
"""An empty message, small ones, one over a page, one over what a pipe or a small buffer takes at once."""


def message(name: str, text: str) -> Record:
    return Record(MessageRecord(Message("user", text)), AT, RecordId(name))


@dataclass(frozen=True, slots=True)
class Batch:
    step: str
    records: tuple[Record, ...]
    durable: bool = True


class Transcripts:
    name: ClassVar = "transcript"

    def __init__(self, seed: int) -> None:
        random = Random(f"transcript {seed}")
        self.before = [message(f"before-{n}", "é" * random.choice(LENGTHS)) for n in range(seed % 3)]
        torn = write_line(message("torn", "naïve " * random.choice(LENGTHS[1:])))
        self.torn = torn[: random.randrange(1, len(torn) - 1)] if seed % 2 else b""
        self.batches = [self._batch(random, n) for n in range(6)]

    def prepare(self, root: Path) -> None:
        root.mkdir()
        lines = b"".join(write_line(record) for record in self.before)
        if lines + self.torn:
            (root / f"{SESSION}.jsonl").write_bytes(lines + self.torn)

    def run(self, stage: Stage) -> None:
        writers: list[Transcript | None] = [None, None]
        for turn, batch in enumerate(self.batches):
            # A refusal may have broken the writer: it opens again and repeats itself, as a session would.
            for _ in range(2):
                writer = writers[turn % 2] = writers[turn % 2] or self._open(stage)
                if writer is None:
                    return
                if self._append(stage, writer, batch):
                    break
                stage.attempt("close", writer.close)
                writers[turn % 2] = None

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        with Folder.open(root, disk=QUICK_DISK) as folder:
            lines: list[TranscriptLine] = []
            with suppress(FileMissing):
                lines = list(scan_transcript(folder, SESSION))
            raw = self._bytes(root)
            yield from self._judge_lines(lines, raw, seen)
            yield from self._judge_order([line for line in lines if isinstance(line, StoredRecord)], seen)
            last = message("afterwards", "and on it goes")
            with Transcript.open(folder, SESSION) as writer:
                place = writer.append(last)
            resumed = resume(folder, SESSION)
            if not resumed.records or resumed.records[-1] != StoredRecord(last, place.offset):
                yield "a record appended after recovery is not the last one that a session resumes with"
            yield from self._judge_resumed(lines, [*resumed.records[:-1]])

    def _append(self, stage: Stage, writer: Transcript, batch: Batch) -> bool:
        done = stage.attempt(batch.step, lambda: writer.append_all(batch.records, durable=batch.durable))
        return done and (batch.durable or stage.attempt(f"sync {batch.step}", writer.sync))

    def _open(self, stage: Stage) -> Transcript | None:
        folder = stage.get("folder", lambda: Folder.open(stage.root, disk=stage.disk))
        return folder and stage.get("open", lambda: Transcript.open(folder, SESSION))

    def _batch(self, random: Random, turn: int) -> Batch:
        count = random.choice((1, 1, 1, 3))
        records = [
            message(f"{turn}-{n}", chr(random.randrange(33, 0x2FFF)) * random.choice(LENGTHS))
            for n in range(count)
        ]
        if turn == 3:
            records.append(
                Record(
                    BoundaryRecord(trigger="auto", tokens_before=1000, last_message=None),
                    AT,
                    RecordId("boundary"),
                )
            )
        return Batch(f"append {turn}", tuple(records), durable=turn != 4)

    def _judge_lines(self, lines: Sequence[TranscriptLine], raw: bytes, seen: Seen) -> Iterator[str]:
        bad = [line for line in lines if isinstance(line, BadLine)]
        excuses = bool(self.torn) + self._interrupted(seen)
        if len(bad) > excuses:
            yield f"{len(bad)} bad lines, but only {excuses} writes were interrupted: {bad}"
        for line in lines:
            if isinstance(line, StoredRecord) and line.offset and raw[line.offset - 1 : line.offset] != b"\n":
                yield f"record {line.record.id} is joined to a fragment before it"

    def _interrupted(self, seen: Seen) -> int:
        """How many writes may have left a fragment: all that were not acknowledged as durable."""
        tries = [step for step in seen.begun if step.startswith("append")]
        return len(tries) - sum(1 for batch in self.batches if self._is_durable(batch, seen))

    def _judge_order(self, stored: Sequence[StoredRecord], seen: Seen) -> Iterator[str]:
        wanted = {record.id: record for record in self.before}
        wanted |= {r.id: r for batch in self.batches if batch.step in seen.begun for r in batch.records}
        found = list(dict.fromkeys(line.record.id for line in stored))
        if found != [name for name in wanted if name in set(found)]:
            yield f"records are out of order, or were never written: {found}"
        for line in stored:
            if line.record.id in wanted and line.record != wanted[line.record.id]:
                yield f"record {line.record.id} is not what was written"
        for name in self._acknowledged(seen):
            if name not in found:
                yield f"record {name} was acknowledged and is lost"

    def _acknowledged(self, seen: Seen) -> Iterator[RecordId]:
        yield from (record.id for record in self.before)
        for batch in self.batches:
            if self._is_durable(batch, seen):
                yield from (record.id for record in batch.records)

    def _is_durable(self, batch: Batch, seen: Seen) -> bool:
        return (batch.step if batch.durable else f"sync {batch.step}") in seen.done

    def _judge_resumed(
        self, lines: Sequence[TranscriptLine], resumed: Sequence[StoredRecord]
    ) -> Iterator[str]:
        after: dict[RecordId, StoredRecord] = {}
        known: set[RecordId] = set()
        for line in lines:
            if isinstance(line, BadLine) or line.record.id in known:
                continue
            known.add(line.record.id)
            if isinstance(line.record.body, BoundaryRecord):
                after.clear()
            else:
                after[line.record.id] = line
        # A tail without its newline is no record until it is sealed, and may become one then.
        missing = [name for name in after if name not in {line.record.id for line in resumed}]
        if missing:
            yield f"a session does not resume with {missing}"

    def _bytes(self, root: Path) -> bytes:
        file = root / f"{SESSION}.jsonl"
        return file.read_bytes() if file.exists() else b""
