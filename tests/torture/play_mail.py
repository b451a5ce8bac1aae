"""Scenarios: mail delivered, received and acknowledged; a project opened for the first time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import ClassVar

from sevenfold.core.events import Event, ignore_event
from sevenfold.core.json import JsonObject
from sevenfold.store.files.disk import Disk
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import Mail, Mailbox, MailId
from sevenfold.store.project.project import Project
from tests.torture.stage import QUICK_DISK, Seen, Stage

SENT = datetime(2026, 11, 15, tzinfo=UTC)


def letter(name: str, text: str) -> Mail:
    return Mail(
        sender="tester", summary=f"about {name}", body=JsonObject({"text": text}), sent=SENT, id=MailId(name)
    )


class Box:
    """A mailbox and the folders it lives in."""

    def __init__(self, root: Path, disk: Disk, events: list[Event] | None = None) -> None:
        with ExitStack() as undo:
            mail = undo.enter_context(Folder.open(root / "mail", create=True, disk=disk))
            control = undo.enter_context(Folder.open(root / "control", create=True, disk=disk))
            emit = ignore_event if events is None else events.append
            self.box = Mailbox(mail, "ada", control=control, emit=emit)
            undo.callback(self.box.close)
            self._exits = undo.pop_all()

    def close(self) -> None:
        self._exits.close()


class Letters:
    name: ClassVar = "mailbox"

    def __init__(self, seed: int) -> None:
        random = Random(f"mail {seed}")
        texts = ["π" * random.choice((0, 40, 3_000, 50_000)) for _ in range(4)]
        self.letters = {MailId(f"m{n}"): letter(f"m{n}", text) for n, text in enumerate(texts)}
        self.used = random.sample(list(self.letters), 2)

    def prepare(self, root: Path) -> None:
        root.mkdir()

    def run(self, stage: Stage) -> None:
        opened = stage.get("open", lambda: Box(stage.root, stage.disk))
        if opened is None:
            return
        box = opened.box
        for name, mail in self.letters.items():
            stage.insist(f"deliver {name}", lambda mail=mail: str(box.deliver(mail)))
            stage.insist(f"receive {name}", lambda: " ".join(mail.id for mail in box.receive()))
            if name in self.used:
                stage.insist(f"use {name}", lambda name=name: box.acknowledge(name))

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        events: list[Event] = []
        with closing(Box(root, QUICK_DISK, events)) as opened:
            yield from self._judge_box(opened.box, seen)
        for event in events:
            yield f"mail of our own was not trusted: {event}"

    def _judge_box(self, box: Mailbox, seen: Seen) -> Iterator[str]:
        found = box.receive()
        yield from self._judge_waiting(found, seen)
        for name, mail in self.letters.items():
            if box.deliver(mail) and f"deliver {name}" in seen.done:
                yield f"{name} was taken for new when it was delivered a second time"
        again = [mail.id for mail in box.receive()]
        wanted = [name for name in self.letters if f"use {name}" not in seen.begun]
        if sorted(set(again)) != sorted(again) or not set(wanted) <= set(again):
            yield f"after a second delivery {again} wait; expected each of {wanted} once"
        for name in again:
            box.acknowledge(name)
        box.deliver(letter("next", "and on it goes"))
        if [mail.id for mail in box.receive()] != ["next"]:
            yield "mail delivered after recovery is not all that waits"

    def _judge_waiting(self, found: list[Mail], seen: Seen) -> Iterator[str]:
        names = [mail.id for mail in found]
        if names != [name for name in self.letters if name in names]:
            yield f"mail waits out of order or twice: {names}"
        for mail in found:
            if mail != self.letters.get(mail.id) or f"deliver {mail.id}" not in seen.begun:
                yield f"{mail.id} is not what was sent"
            if f"use {mail.id}" in seen.done:
                yield f"{mail.id} was acknowledged and waits again"
        for name in self.letters:
            if f"deliver {name}" in seen.done and f"use {name}" not in seen.begun and name not in names:
                yield f"{name} was delivered and is lost"
            told = seen.done.get(f"receive {name}")
            if f"deliver {name}" in seen.done and told is not None and name not in told.split():
                yield f"{name} was delivered and not received"


class Opened:
    """A project's folders made, and its identity claimed."""

    name: ClassVar = "project"

    def __init__(self, seed: int) -> None:
        # Nowhere: an identity comes from the path alone, and must not change with where this is played.
        self.start = Path(f"/nowhere at all/Projét {seed}")

    def prepare(self, root: Path) -> None:
        root.mkdir()

    def run(self, stage: Stage) -> None:
        stage.insist("open", lambda: self._open(stage.root, stage.disk))

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        told = seen.done.get("open")
        found = self._open(root, QUICK_DISK)
        if told and told != found:
            yield f"the project was {told} and is now {found}"
        homes = [path.name for path in (root / "home" / "projects").iterdir()]
        if homes != [found]:
            yield f"one project has several homes: {homes}"

    def _open(self, root: Path, disk: Disk) -> str:
        with Project.open(self.start, home=root / "home", disk=disk) as project:
            return project.id
