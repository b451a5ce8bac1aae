"""Rig: agents in processes of their own that write to each other and are killed all the while. Each message
comes into its recipient's history exactly once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from sevenfold.agent.subagents.mailbox import MailFeed, parse_mail
from sevenfold.core.errors import FileMissing, MailboxFull
from sevenfold.core.messages import Message
from sevenfold.layers.forks.policy import NoteMessage, find_mail_ids, render_mail, write_mail_message
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import Mail, Mailbox, MailId
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord, Record
from sevenfold.store.transcript.transcript import Transcript
from tests.torture.crew import Crew
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.workers import Pipe

AGENTS = tuple(f"agent{number}" for number in range(8))
AT = datetime(2026, 11, 15, tzinfo=UTC)


def recipient(sender: str, number: int) -> str:
    """Whom a message is for: anybody can tell, and nobody has to remember."""
    return Random(f"{sender}/{number}").choice([name for name in AGENTS if name != sender])


def mail_of(sender: str, number: int) -> Mail:
    body = write_mail_message(NoteMessage(f"{sender} says {number} " * (number % 40)))
    return Mail(
        sender=sender, summary=f"message {number}", body=body, sent=AT, id=MailId(f"{sender}-{number}")
    )


def work_as(place: Path, name: str, first: int, count: int, pipe: Pipe) -> None:
    """Write to others and into a history what they write, until told to stop by a kill.

    `first` is the first message that nobody knows to have been sent: it may have been.
    """
    with ExitStack() as exits:
        mail, control, sessions = (
            exits.enter_context(Folder.open(place / part, create=True))
            for part in ("mail", "control", "sessions")
        )
        boxes = {each: exits.enter_context(closing(Mailbox(mail, each, control=control))) for each in AGENTS}
        feed = MailFeed(name, boxes[name], sessions, name)
        transcript = exits.enter_context(Transcript.open(sessions, name))
        number = first
        while True:
            if number < count:
                number = _send(boxes, name, number, pipe)
            new = feed.collect()
            transcript.append_all([_record(mail) for mail in new])
            if not new and number >= count:
                pipe.tell(f"idle {name}")
                time.sleep(0.02)


def _send(boxes: dict[str, Mailbox], name: str, number: int, pipe: Pipe) -> int:
    try:
        boxes[recipient(name, number)].deliver(mail_of(name, number))
    except MailboxFull:
        return number
    pipe.tell(f"sent {name} {number + 1}")
    return number + 1


def _record(mail: Mail) -> Record:
    return Record(MessageRecord(Message("user", render_mail(mail.id, mail.sender, parse_mail(mail)))), AT)


@dataclass(slots=True, kw_only=True)
class _Town:
    place: Path
    each: int
    """Messages that every agent sends."""
    pipe: Pipe
    crew: Crew
    names: dict[int, str] = field(default_factory=dict[int, str])
    sent: Counter[str] = field(default_factory=Counter[str])
    idle: set[str] = field(default_factory=set[str])
    kills: int = 0

    def start(self, name: str) -> None:
        first = self.sent[name]
        work = self.crew.start(lambda: work_as(self.place, name, first, self.each, self.pipe))
        self.names[work] = name

    def listen(self, seconds: float) -> None:
        for line in self.pipe.listen(seconds):
            verb, name, *rest = line.split()
            if verb == "sent":
                self.sent[name] = int(rest[0])
            else:
                self.idle.add(name)

    def kill(self, pid: int) -> None:
        self.crew.kill(pid)
        # What it told before it died was told.
        self.listen(0)
        self.kills += 1
        self.start(self.names.pop(pid))

    @property
    def total(self) -> int:
        return sum(self.sent.values())

    def run(self, random: Random, orders: Orders, found: Outcome) -> None:
        """Kill until everything was sent; then let them read in peace."""
        for name in AGENTS:
            self.start(name)
        while self.total < self.each * len(AGENTS):
            until = time.monotonic() + random.uniform(0.01, 0.25)
            while (left := until - time.monotonic()) > 0:
                self.listen(left)
            self._restart_ended(found)
            self.kill(random.choice(self.crew.pids))
            orders.progress("mail", self.total, self.each * len(AGENTS), "messages")
        # Somebody may have been idle before the last message came: all of them must be so anew.
        for _ in range(2):
            self.listen(0)
            self.idle.clear()
            while self.idle != set(AGENTS):
                self.listen(0.05)
                self._restart_ended(found)

    def _restart_ended(self, found: Outcome) -> None:
        for ended in self.crew.ended():
            found.wrong(f"an agent ended by itself with {ended.code}; see its traceback above")
            self.start(self.names.pop(ended.pid))

    def judge(self) -> Iterator[str]:
        for name in AGENTS:
            expected = {
                mail_of(sender, number).id: mail_of(sender, number)
                for sender in AGENTS
                for number in range(self.each)
                if sender != name and recipient(sender, number) == name
            }
            told = Counter(_texts(self.place, name))
            ids = Counter(mail_id for text in told for mail_id in _ids(text) * told[text])
            yield from (f"{name} was told {each} {count} times" for each, count in ids.items() if count > 1)
            yield from (f"{each} never came to {name}" for each in expected if each not in ids)
            for each, mail in expected.items():
                if render_mail(each, mail.sender, parse_mail(mail)) not in told and each in ids:
                    yield f"{each} came to {name} and is not what was sent"
            yield from (f"{each} came to {name} and was not for it" for each in ids if each not in expected)
            yield from self._judge_box(name)

    def _judge_box(self, name: str) -> Iterator[str]:
        with ExitStack() as exits:
            mail, control = (
                exits.enter_context(Folder.open(self.place / part)) for part in ("mail", "control")
            )
            box = exits.enter_context(closing(Mailbox(mail, name, control=control)))
            yield from (f"{mail.id} still waits for {name}" for mail in box.receive())


def _texts(place: Path, name: str) -> Iterator[str]:
    with Folder.open(place / "sessions") as sessions:
        try:
            for line in scan_transcript(sessions, name):
                if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                    yield str(line.record.body.message.content)
        except FileMissing:
            return


def _ids(text: str) -> list[str]:
    return list(find_mail_ids([Message("user", text)]))


def run_mail(orders: Orders) -> list[Outcome]:
    each = orders.pick(tiny=15, short=60, long=1_250)
    with (
        outcome("mail", "messages") as found,
        orders.scratch("mail") as place,
        closing(Pipe()) as pipe,
        Crew() as crew,
    ):
        town = _Town(place=place, each=each, pipe=pipe, crew=crew)
        town.run(orders.random("mail"), orders, found)
        for pid in crew.pids:
            crew.kill(pid)
        for wrong in town.judge():
            found.wrong(wrong)
        found.count = town.total
        found.notes.append(f"{len(AGENTS)} processes, {town.kills:,} kills")
    return [found]
