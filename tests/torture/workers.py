"""Processes that use the store for as long as they live, and tell what was acknowledged through a pipe."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from select import select

from sevenfold.core.errors import FileMissing, MailboxFull
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message
from sevenfold.store.files import RecordId
from sevenfold.store.files.disk import SYSTEM_DISK, Disk, SystemDisk
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import Mail, Mailbox, MailId, MailSettings
from sevenfold.store.transcript.reader import BadLine, scan_transcript
from sevenfold.store.transcript.records import MessageRecord, Record
from sevenfold.store.transcript.transcript import Transcript

AT = datetime(2026, 11, 15, tzinfo=UTC)
LIMITS = MailSettings(waiting=100, remembered=100)
LARGE = 4_000_000
"""So long to write that a kill may well come in between."""
WIDE = 200_000
"""Over what a page, a pipe or a small buffer takes at once."""


class Pipe:
    """Many tell, one listens. A line is told whole or not at all."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._rest = b""

    def close(self) -> None:
        os.close(self._read_end)
        os.close(self._write_end)

    def tell(self, line: str) -> None:
        os.write(self._write_end, line.encode() + b"\n")

    def listen(self, seconds: float) -> Iterator[str]:
        """What was told by now; waits this long for the first of it."""
        if not select([self._read_end], [], [], seconds)[0]:
            return
        with suppress(BlockingIOError):
            while part := os.read(self._read_end, 1 << 16):
                *lines, self._rest = (self._rest + part).split(b"\n")
                yield from (line.decode() for line in lines)


class TellingDisk(SystemDisk):
    """Tells who is about to write something large, for those who wait for such a moment."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def write(self, fd: int, data: memoryview) -> int:
        if len(data) > LARGE // 2:
            self._pipe.tell(f"large {os.getpid()}")
        return super().write(fd, data)


def text_of(name: str) -> str:
    """What a record of this name says: anybody can tell whether it is whole. Of the big, some say a lot, and
    one in a few dozen more than is written at once."""
    random = Random(name)
    chance = random.random() if name.startswith("big") else 1.0
    length = LARGE if chance < 0.002 else WIDE if chance < 0.03 else random.choice((0, 20, 200, 900))
    return f"{zlib.crc32(name.encode()):x} " * (length // 9)


def record_of(name: str) -> Record:
    return Record(MessageRecord(Message("user", text_of(name))), AT, RecordId(name))


def write_records(place: Path, session: str, who: str, pipe: Pipe, disk: Disk = SYSTEM_DISK) -> None:
    """Append for ever, one to six records at a time; tell who has how many on the disk."""
    random = Random(who)
    with Folder.open(place, disk=disk) as folder, Transcript.open(folder, session) as transcript:
        done = 0
        while True:
            count = random.choice((1, 1, 2, 6))
            transcript.append_all([record_of(f"{who}.{done + n}") for n in range(count)])
            done += count
            pipe.tell(f"record {who} {done}")


@dataclass(slots=True)
class Records:
    """How many records each writer was told are safe, and whether they are."""

    acknowledged: dict[str, int] = field(default_factory=dict[str, int])
    fragments: int = 0
    wide: int = 0
    """Records that were there and longer than a page or a pipe."""

    def take(self, who: str, count: str) -> None:
        self.acknowledged[who] = int(count)

    @property
    def total(self) -> int:
        return sum(self.acknowledged.values())

    def judge(self, place: Path, session: str) -> Iterator[str]:
        """Read the transcript and compare. File order is each writer's own order."""
        present: dict[str, int] = {}
        file = place / f"{session}.jsonl"
        with Folder.open(place) as folder, suppress(FileMissing, FileNotFoundError), file.open("rb") as raw:
            for line in scan_transcript(folder, session):
                if isinstance(line, BadLine):
                    self.fragments += 1
                    continue
                who, _, number = line.record.id.rpartition(".")
                raw.seek(max(0, line.offset - 1))
                if line.offset and raw.read(1) != b"\n":
                    yield f"{line.record.id} is joined to a fragment"
                if int(number) != present.get(who, 0):
                    yield f"{line.record.id} comes where {who}.{present.get(who, 0)} was expected"
                if line.record != record_of(line.record.id):
                    yield f"{line.record.id} is not what was written"
                present[who] = int(number) + 1
                self.wide += len(text_of(line.record.id)) >= WIDE // 2
        for who, count in self.acknowledged.items():
            if present.get(who, 0) < count:
                yield f"{who} had {count} records acknowledged and {present.get(who, 0)} are there"


def mail_of(name: str) -> Mail:
    return Mail(
        sender="torture",
        summary="a letter",
        body=JsonObject({"text": text_of(name)[:50_000]}),
        sent=AT,
        id=MailId(name),
    )


def open_mailbox(place: Path, disk: Disk, exits: ExitStack) -> Mailbox:
    mail = exits.enter_context(Folder.open(place / "mail", create=True, disk=disk))
    control = exits.enter_context(Folder.open(place / "control", create=True, disk=disk))
    return exits.enter_context(closing(Mailbox(mail, "ada", control=control, settings=LIMITS)))


def send_mail(place: Path, who: str, pipe: Pipe, disk: Disk = SYSTEM_DISK) -> None:
    """Deliver for ever; a full mailbox is waited for."""
    with ExitStack() as exits:
        box = open_mailbox(place, disk, exits)
        number = 0
        while True:
            with suppress(MailboxFull):
                box.deliver(mail_of(f"{who}-{number}"))
                pipe.tell(f"delivered {who}-{number}")
                number += 1
                continue
            time.sleep(0.02)


def use_mail(place: Path, pipe: Pipe, disk: Disk = SYSTEM_DISK) -> None:
    """Receive and acknowledge for ever, telling before and after."""
    with ExitStack() as exits:
        box = open_mailbox(place, disk, exits)
        while True:
            waiting = box.receive()
            for mail in waiting:
                pipe.tell(f"got {mail.id}" if mail == mail_of(mail.id) else f"torn {mail.id}")
                pipe.tell(f"using {mail.id}")
                box.acknowledge(mail.id)
                pipe.tell(f"used {mail.id}")
            if not waiting:
                time.sleep(0.02)


@dataclass(slots=True)
class Letters:
    """What is known of every letter, and whether the mailbox agrees."""

    delivered: set[str] = field(default_factory=set[str])
    using: set[str] = field(default_factory=set[str])
    used: set[str] = field(default_factory=set[str])
    wrong: list[str] = field(default_factory=list[str])

    def take(self, verb: str, name: str) -> None:
        match verb:
            case "delivered":
                self.delivered.add(name)
            case "using":
                self.using.add(name)
            case "used":
                self.used.add(name)
            case "got":
                if name in self.used:
                    self.wrong.append(f"letter {name} was received again after it was acknowledged")
            case _:
                self.wrong.append(f"letter {name} is not what was sent")

    def judge(self, place: Path, disk: Disk = SYSTEM_DISK) -> Iterator[str]:
        yield from self.wrong
        with ExitStack() as exits:
            waiting = {mail.id: mail for mail in open_mailbox(place, disk, exits).receive()}
        for name, mail in waiting.items():
            if mail != mail_of(name):
                yield f"letter {name} is not what was sent"
        for name in sorted(self.used & set(waiting)):
            yield f"letter {name} was acknowledged and waits again"
        for name in sorted(self.delivered - self.using - set(waiting)):
            yield f"letter {name} was delivered and is lost"


def replace_files(place: Path, who: str, pipe: Pipe, disk: Disk = SYSTEM_DISK) -> None:
    """Replace a few files for ever; tell which version of which is on the disk."""
    with Folder.open(place, disk=disk) as folder:
        number = 0
        while True:
            number += 1
            key = f"{who}-{number % 5}.md"
            folder.replace(key, f"{number}\n{text_of(f'{key} {number}')}".encode())
            pipe.tell(f"file {key} {number}")


@dataclass(slots=True)
class Versions:
    """The newest version of each file that was acknowledged, and whether it or a newer one is there."""

    newest: dict[str, int] = field(default_factory=dict[str, int])

    def take(self, key: str, number: str) -> None:
        self.newest[key] = int(number)

    def judge(self, place: Path) -> Iterator[str]:
        with Folder.open(place) as folder:
            for key, number in self.newest.items():
                try:
                    found, _, text = folder.read(key, max_bytes=LARGE).decode().partition("\n")
                except FileMissing:
                    yield f"{key} was replaced by version {number} and is missing"
                    continue
                if not found.isdigit() or text != text_of(f"{key} {found}"):
                    yield f"{key} is torn"
                elif int(found) < number:
                    yield f"{key} was replaced by version {number} and is back at {found}"
