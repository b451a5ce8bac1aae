"""Any mix of delivering, receiving, acknowledging, dying and forging, against what must be in the box."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NoReturn

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sevenfold.core.errors import MailboxFull, SevenfoldError
from sevenfold.core.events import Event, MailQuarantined
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import Mail, Mailbox, MailId, MailSettings
from tests.examples import up_to
from tests.store.disks import QUICK, open_handles
from tests.store.faults import Accident, Fault, FaultyDisk
from tests.store.mails import files, letter

LIMITS = MailSettings(waiting=6, waiting_bytes=8_000, remembered=1_000)
accidents = st.sampled_from(["die before", "die after", "die half way", "EIO", "ENOSPC", "EINTR", "short"])


class Died(BaseException):
    """The process is gone in the middle of what it did."""


def die() -> NoReturn:
    raise Died


class Mailboxes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.root = Path(self.place.name)
        self.mail = Folder.open(self.root / "mail", create=True, disk=QUICK)
        self.control = Folder.open(self.root / "control", create=True, disk=QUICK)
        self.events: list[Event] = []
        self.box = self.open_box(self.mail)
        self.names = count()
        self.waiting: dict[str, Mail] = {}
        """Delivered and not acknowledged, in order."""
        self.doubtful: dict[str, Mail] = {}
        """A delivery that did not say how it ended."""
        self.leaving: set[str] = set()
        """An acknowledgement that did not say how it ended."""
        self.retried: set[str] = set()
        """Delivered by a second try: nobody knows whether the first has given them their place."""
        self.used: list[str] = []
        self.forged = 0
        self.planted: set[str] = set()

    def open_box(self, mail: Folder) -> Mailbox:
        return Mailbox(mail, "ada", control=self.control, settings=LIMITS, emit=self.events.append)

    def teardown(self) -> None:
        self.box.close()
        self.control.close()
        self.mail.close()
        self.place.cleanup()

    def is_full(self) -> bool:
        names = files(self.mail, "new")
        return len(names) >= LIMITS.waiting or sum(int(name.split("-")[1]) for name in names) > 4_000

    @rule(text=st.sampled_from(["", "x" * 300, "é" * 500]))
    def deliver(self, text: str) -> None:
        mail = letter(f"m{next(self.names)}", text)
        full = self.is_full()
        try:
            assert self.box.deliver(mail)
            self.waiting[mail.id] = mail
        except MailboxFull:
            assert full

    @rule(accident=accidents, at=st.integers(1, 30), again=st.booleans())
    def deliver_with_an_accident(self, accident: Accident, at: int, again: bool) -> None:
        in_doubt = [mail for name, mail in self.doubtful.items() if name not in self.leaving]
        mail = in_doubt[0] if again and in_doubt else letter(f"m{next(self.names)}")
        known = mail.id in self.doubtful
        self.doubtful[mail.id] = mail
        if self.on_faulty_disk(accident, at, lambda box: box.deliver(mail)):
            del self.doubtful[mail.id]
            if known:
                # It may have been there before others that were delivered after the first try.
                self.waiting = {mail.id: mail, **self.waiting}
                self.retried.add(mail.id)
            else:
                self.waiting[mail.id] = mail

    @rule(accident=accidents, at=st.integers(1, 30))
    def acknowledge_with_an_accident(self, accident: Accident, at: int) -> None:
        if self.waiting:
            name = MailId(next(iter(self.waiting)))
            self.leaving.add(name)
            self.doubtful[name] = self.waiting.pop(name)
            if self.on_faulty_disk(accident, at, lambda box: box.acknowledge(name)):
                self.leaving.discard(name)
                self.doubtful.pop(name)
                self.used.append(name)

    def on_faulty_disk(self, accident: Accident, at: int, act: Callable[[Mailbox], object]) -> bool:
        """Whether it was acknowledged; `MailboxFull` is no accident and counts as not."""
        before = open_handles(self.root)
        disk = FaultyDisk(Fault(at, accident), inner=QUICK, die=die)
        try:
            with Folder.open(self.root / "mail", disk=disk) as mail:
                box = self.open_box(mail)
                try:
                    act(box)
                finally:
                    box.close()
        except SevenfoldError:
            return False
        except Died:
            for fd in open_handles(self.root) - before:
                os.close(fd)
            return False
        return True

    @rule()
    def acknowledge(self) -> None:
        if self.waiting:
            name = MailId(next(iter(self.waiting)))
            del self.waiting[name]
            for _ in range(2):
                self.box.acknowledge(name)
            self.used.append(name)

    @rule()
    def repeat_what_was_used(self) -> None:
        for name in self.used[-3:]:
            assert not self.box.deliver(letter(name))

    @rule(number=st.sampled_from([0, 5, 10**12 - 1]), content=st.binary(max_size=30))
    def forge(self, number: int, content: bytes) -> None:
        self.forged += 1
        name = f"{number:012}-1-forged{self.forged}.json"
        self.planted.add(name)
        (self.root / "mail" / "ada" / "new" / name).write_bytes(content)

    @rule(
        part=st.sampled_from(["new", "cur"]),
        number=st.sampled_from([0, 5, 10**12 - 1]),
        size=st.sampled_from([1, 10**9 - 1]),
    )
    def deliver_what_somebody_claims_is_there(self, part: str, number: int, size: int) -> None:
        mail = letter(f"m{next(self.names)}")
        self.forged += 1
        name = f"{number:012}-{size}-{mail.id}.json"
        self.planted.add(name)
        (self.root / "mail" / "ada" / part / name).write_bytes(b"x")
        try:
            assert self.box.deliver(mail)
            self.waiting[mail.id] = mail
        except MailboxFull:
            assert len(files(self.mail, "new")) >= LIMITS.waiting or self.is_full()

    @rule()
    def reopen(self) -> None:
        self.box.close()
        self.box = self.open_box(self.mail)

    @invariant()
    def what_waits_is_what_was_delivered_and_not_used(self) -> None:
        found = self.box.receive()
        names = [mail.id for mail in found]
        assert len(names) == len(set(names))
        in_order = [name for name in self.waiting if name not in self.retried]
        assert [name for name in names if name in in_order] == in_order
        assert set(self.waiting) <= set(names) <= set(self.waiting) | set(self.doubtful)
        everything = self.waiting | self.doubtful
        assert all(everything[mail.id] == mail for mail in found)
        assert not set(names) & set(self.used)

    @invariant()
    def forged_mail_is_set_aside_and_no_other(self) -> None:
        self.box.receive()
        aside = [event for event in self.events if isinstance(event, MailQuarantined)]
        assert len(aside) == len(self.events) == self.forged == len(files(self.mail, "bad"))
        assert {event.name for event in aside} == self.planted

    @invariant()
    def nothing_half_made_is_visible(self) -> None:
        for part in ("new", "cur"):
            for name in files(self.mail, part):
                size = (self.root / "mail" / "ada" / part / name).stat().st_size
                assert name.startswith(".tmp-") or int(name.split("-")[1]) == size


TestMailboxes = Mailboxes.TestCase
TestMailboxes.settings = settings(max_examples=up_to(40), stateful_step_count=25)
