"""Mail: there complete or not at all, until it was used, once, from whom it says."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import (
    DiskFault,
    InputError,
    KeyRefused,
    MailboxFull,
    MessageTooLarge,
    SevenfoldError,
)
from sevenfold.core.events import Event
from sevenfold.core.json import JsonObject, freeze
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import MAIL_KEY_FILE, MAX_MAIL_BYTES, Mail, Mailbox, MailId, MailSettings
from tests.core import wires
from tests.store import children
from tests.store.disks import LackingDisk, fresh_folder, temps, tree
from tests.store.faults import Fault, FaultyDisk
from tests.store.mails import SENT, files, letter, opened, waiting


def test_mail_waits_in_order_until_it_was_used(box: Mailbox, mail: Folder) -> None:
    letters = [letter(f"m{n}", "x" * n) for n in (3, 1, 2)]
    assert [box.deliver(each) for each in letters] == [True] * 3
    assert box.receive() == letters
    assert box.receive() == letters, "it was not acknowledged"
    assert [int(name.partition("-")[0]) for name in files(mail, "new")] == [1, 2, 3]
    box.acknowledge(MailId("m1"))
    assert waiting(box) == ["m3", "m2"]
    for name in ("m3", "m2", "m2", "nobody"):
        box.acknowledge(MailId(name))
    assert box.receive() == []


def test_a_mailbox_is_the_same_for_whoever_opens_it(box: Mailbox, mail: Folder, control: Folder) -> None:
    box.deliver(letter("m1"))
    with opened(mail, control) as again:
        assert again.receive() == [letter("m1")]
        again.acknowledge(MailId("m1"))
    assert box.receive() == []


@given(wires.texts, wires.texts, wires.objects, st.datetimes(timezones=st.just(UTC)))
def test_any_message_survives_the_journey(
    sender: str, summary: str, body: wires.Wire, sent: datetime
) -> None:
    frozen = freeze({"sender": sender, "summary": summary, "body": body})
    assert isinstance(frozen, JsonObject)
    inner = frozen["body"]
    assert isinstance(inner, JsonObject)
    one = Mail(sender=str(frozen["sender"]), summary=str(frozen["summary"]), body=inner, sent=sent)
    with fresh_folder() as folder:
        box = Mailbox(folder, "ada", control=folder)
        assert box.deliver(one)
        assert box.receive() == [one]
        box.close()


def test_the_same_message_is_delivered_once_also_after_it_was_used(box: Mailbox) -> None:
    assert box.deliver(letter("m1"))
    assert not box.deliver(letter("m1"))
    box.acknowledge(MailId("m1"))
    assert not box.deliver(letter("m1"))
    assert box.receive() == []


@pytest.mark.parametrize(("remembered", "again"), [(0, True), (1, True), (2, True), (3, False), (9, False)])
def test_used_mail_is_remembered_up_to_a_number(
    mail: Folder, control: Folder, remembered: int, again: bool
) -> None:
    with opened(mail, control, MailSettings(remembered=remembered)) as box:
        for name in ("m1", "m2", "m3"):
            box.deliver(letter(name))
        for name in ("m1", "m2", "m3"):
            box.acknowledge(MailId(name))
        assert len(files(mail, "cur")) == min(3, remembered)
        assert box.deliver(letter("m1")) == again


def test_quotas_by_number_and_by_size_are_told_apart(mail: Folder, control: Folder) -> None:
    with opened(mail, control, MailSettings(waiting=2)) as box:
        box.deliver(letter("m1"))
        box.deliver(letter("m2"))
        with pytest.raises(MailboxFull, match="2 messages waiting"):
            box.deliver(letter("m3"))
        assert not box.deliver(letter("m2")), "what is there already is not refused"
        box.acknowledge(MailId("m1"))
        assert box.deliver(letter("m3"))
    with (
        opened(mail, control, MailSettings(waiting_bytes=1000)) as box,
        pytest.raises(MailboxFull, match="1,000"),
    ):
        box.deliver(letter("m4", "x" * 900))


def test_a_message_too_large_is_refused_with_a_way_out(box: Mailbox, mail: Folder) -> None:
    with pytest.raises(MessageTooLarge, match="send its path"):
        box.deliver(letter("m1", "x" * MAX_MAIL_BYTES))
    assert files(mail, "new") == []


@pytest.mark.parametrize("name", ["", "a.b", "a/b", "../x", "é", "x" * 65, "a b", "a\0"], ids=ascii)
def test_an_id_that_could_not_be_received_again_is_refused(box: Mailbox, mail: Folder, name: str) -> None:
    with pytest.raises(InputError):
        box.deliver(letter(name))
    assert files(mail, "new") == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", ".ada", "a b", "x" * 101, "con"], ids=ascii)
def test_a_mailbox_needs_a_plain_name(mail: Folder, control: Folder, name: str) -> None:
    with pytest.raises(KeyRefused):
        Mailbox(mail, name, control=control)
    assert os.listdir(mail.path) == []


def test_the_longest_name_there_may_be_works(mail: Folder, control: Folder) -> None:
    box = Mailbox(mail, "x" * 100, control=control)
    assert box.deliver(letter("m1"))
    box.close()


class FitfulDisk(SystemDisk):
    """Fails to read once it is told to."""

    failing = False

    def read(self, fd: int, size: int, offset: int) -> bytes:
        if self.failing:
            raise OSError(5, "Input/output error")
        return super().read(fd, size, offset)


def test_mail_that_could_not_be_read_this_once_is_not_set_aside(mail: Folder, control: Folder) -> None:
    disk = FitfulDisk()
    with Folder.open(mail.path, disk=disk) as folder, opened(folder, control) as box:
        box.deliver(letter("m1"))
        disk.failing = True
        with pytest.raises(DiskFault):
            box.receive()
        disk.failing = False
        assert waiting(box) == ["m1"]


def test_a_delivery_seen_between_its_two_steps_is_waited_for(
    mail: Folder, control: Folder, events: list[Event]
) -> None:
    disk = LackingDisk()
    seen, told = os.pipe()
    pids: list[int] = []

    def look_in_child() -> None:
        def look() -> None:
            with opened(mail, control, events=events) as reader:
                names = waiting(reader)
            os.write(told, f"{names} {len(events)}".encode())

        pids.append(children.start(look))

    with Folder.open(mail.path, disk=disk) as folder, opened(folder, control) as box:
        disk.between = look_in_child
        box.deliver(letter("m1"))
        assert children.finish(pids[0]) == 0
        assert waiting(box) == ["m1"]
    assert os.read(seen, 100) in (b"['m1'] 0", b"[] 0")
    os.close(seen)
    os.close(told)


def test_whoever_finds_it_done_makes_it_durable(mail: Folder, control: Folder) -> None:
    """The first to deliver or acknowledge may have died just before; the second says that it is done."""
    disk = FaultyDisk()
    with Folder.open(mail.path, disk=disk) as folder, opened(folder, control) as box:
        box.deliver(letter("m1"))
        for attempt in (
            lambda: box.deliver(letter("m1")),
            lambda: box.acknowledge(MailId("m1")),
            lambda: box.acknowledge(MailId("m1")),
        ):
            disk.seen.clear()
            attempt()
            assert disk.seen.count("fsync") == 2


@pytest.mark.parametrize("accident", ["EIO", "ENOSPC"])
def test_a_delivery_that_fails_anywhere_is_whole_or_absent(
    tmp_path: Path, control: Folder, accident: str
) -> None:
    for at in range(1, 100):
        place = tmp_path / f"{at}"
        disk = FaultyDisk(Fault(at, "EIO" if accident == "EIO" else "ENOSPC"))
        delivered = False
        try:
            with (
                Folder.open(place, create=True, disk=disk) as folder,
                opened(folder, control) as box,
            ):
                delivered = box.deliver(letter("m1"))
        except SevenfoldError:
            pass
        events: list[Event] = []
        with Folder.open(place, create=True) as folder, opened(folder, control, events=events) as box:
            assert waiting(box) in (["m1"], [] if not delivered else None)
            assert events == []
            assert temps(place) == []
            box.deliver(letter("m1"))
            assert waiting(box) == ["m1"]
        if not disk.struck:
            break
    else:
        pytest.fail("the accident always happened: put it later")


def test_senders_in_many_processes_lose_and_repeat_nothing(mail: Folder, control: Folder) -> None:
    def send(sender: int) -> None:
        with opened(mail, control) as box:
            for n in range(15):
                assert box.deliver(letter(f"{sender}-{n}"))
                box.deliver(letter(f"shared-{n}"))

    children.expect_success([lambda sender=sender: send(sender) for sender in range(4)])
    with opened(mail, control) as box:
        names = waiting(box)
    assert len(names) == len(set(names)) == 4 * 15 + 15
    for sender in ("0", "1", "2", "3", "shared"):
        assert [name for name in names if name.startswith(f"{sender}-")] == [
            f"{sender}-{n}" for n in range(15)
        ]


def test_two_readers_may_acknowledge_the_same_mail(mail: Folder, control: Folder) -> None:
    def use() -> None:
        with opened(mail, control) as box:
            for found in box.receive():
                box.acknowledge(found.id)

    with opened(mail, control) as box:
        for n in range(10):
            box.deliver(letter(f"m{n}"))
        children.expect_success([use] * 4)
        assert box.receive() == []
    assert len(files(mail, "cur")) == 10


def test_the_key_is_made_once_by_however_many(mail: Folder, control: Folder) -> None:
    def open_and_send(name: str) -> None:
        with opened(mail, control) as box:
            box.deliver(letter(name))

    children.expect_success([lambda n=n: open_and_send(f"m{n}") for n in range(6)])
    with opened(mail, control) as box:
        assert len(box.receive()) == 6
    assert (control.path / MAIL_KEY_FILE).stat().st_mode & 0o077 == 0


def test_a_time_without_its_zone_is_refused() -> None:
    with pytest.raises(InputError, match=r"without a zone; use datetime\.now\(UTC\)"):
        replace(letter("m1"), sent=SENT.replace(tzinfo=None))


def test_mail_is_a_value() -> None:
    one = letter("m1")
    assert replace(one, summary="other") != one
    assert (
        Mail(sender="a", summary="b", body=one.body, sent=SENT).id
        != Mail(sender="a", summary="b", body=one.body, sent=SENT).id
    )


def test_nothing_but_mail_is_left_in_a_mailbox(box: Mailbox, mail: Folder) -> None:
    box.deliver(letter("m1"))
    box.deliver(letter("m2"))
    box.acknowledge(MailId("m1"))
    assert sorted(path.split("/")[1] for path in tree(mail.path)) == ["cur", "new"]


class RacingDisk(SystemDisk):
    """Somebody else acknowledges everything just after it was listed."""

    def __init__(self) -> None:
        self.before_open: Callable[[], None] | None = None

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        if self.before_open and path.endswith("-m1.json"):
            act, self.before_open = self.before_open, None
            act()
        return super().open_beneath(root_fd, path, flags)


def test_mail_that_another_reader_used_meanwhile_is_not_received(
    mail: Folder, control: Folder, events: list[Event]
) -> None:
    disk = RacingDisk()
    with (
        Folder.open(mail.path, disk=disk) as folder,
        opened(folder, control, events=events) as box,
        opened(mail, control) as other,
    ):
        box.deliver(letter("m1"))
        box.deliver(letter("m2"))
        disk.before_open = lambda: other.acknowledge(MailId("m1"))
        assert waiting(box) == ["m2"]
    assert events == []
