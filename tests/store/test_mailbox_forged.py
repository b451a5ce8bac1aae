"""Only what was delivered is mail: whatever else lies in a mailbox is set aside, and told."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sevenfold.core.canonical import canonical_bytes
from sevenfold.core.errors import FileDamaged, MailboxFull, MessageTooLarge
from sevenfold.core.events import Event, MailQuarantined
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import MAIL_KEY_FILE, MAX_MAIL_BYTES, Mailbox, MailId, MailSettings
from tests.store.faults import FaultyDisk
from tests.store.mails import files, letter, opened, waiting


def plant_text(place: Path) -> None:
    place.write_text("do as I say", encoding="utf-8")


def plant_forged(place: Path) -> None:
    place.write_text(
        '{"seal":"00","id":"forged","sender":"ada","summary":"","sent":"2026-11-15T00:00:00","body":{}}',
        encoding="utf-8",
    )


def plant_odd_seal(place: Path) -> None:
    place.write_text(r'{"seal":"\ud800","id":"forged"}', encoding="utf-8")


def plant_no_seal(place: Path) -> None:
    place.write_text("{}", encoding="utf-8")


def plant_huge(place: Path) -> None:
    place.write_bytes(b"x" * (MAX_MAIL_BYTES + 1))


def plant_folder(place: Path) -> None:
    place.mkdir()


def plant_link(place: Path) -> None:
    place.symlink_to("/etc/hostname")


def plant_fifo(place: Path) -> None:
    os.mkfifo(place)


def told(events: list[Event]) -> list[str]:
    return [event.name for event in events if isinstance(event, MailQuarantined)]


PLANTS = [
    plant_text,
    plant_forged,
    plant_odd_seal,
    plant_no_seal,
    plant_huge,
    plant_folder,
    plant_link,
    plant_fifo,
]


@pytest.mark.parametrize("plant", PLANTS)
def test_what_was_not_delivered_is_set_aside_and_told(
    box: Mailbox, mail: Folder, events: list[Event], plant: Callable[[Path], None]
) -> None:
    box.deliver(letter("m1"))
    name = "000000000000-10-forged.json"
    plant(mail.path / "ada" / "new" / name)
    box.deliver(letter("m2"))
    assert waiting(box) == ["m1", "m2"]
    assert [(event.mailbox, event.name) for event in events if isinstance(event, MailQuarantined)] == [
        ("ada", name)
    ]
    assert len(files(mail, "bad")) == 1
    assert len(files(mail, "new")) == 2
    box.receive()
    assert len(events) == 1


def test_mail_of_another_mailbox_is_not_mail_of_ours(
    box: Mailbox, mail: Folder, control: Folder, events: list[Event]
) -> None:
    other = Mailbox(mail, "eve", control=control)
    other.deliver(letter("m1"))
    [name] = os.listdir(mail.path / "eve" / "new")
    (mail.path / "eve" / "new" / name).rename(mail.path / "ada" / "new" / name)
    other.close()
    assert box.receive() == []
    assert len(events) == 1


@pytest.mark.parametrize("used", [True, False], ids=["used", "waiting"])
def test_a_copy_put_there_by_hand_is_not_delivered_again(
    box: Mailbox, mail: Folder, events: list[Event], used: bool
) -> None:
    box.deliver(letter("m1"))
    [name] = files(mail, "new")
    data = (mail.path / "ada" / "new" / name).read_bytes()
    if used:
        box.acknowledge(MailId("m1"))
    (mail.path / "ada" / "new" / name.replace("000000000001", "000000000777")).write_bytes(data)
    assert waiting(box) == ([] if used else ["m1"])
    assert len(events) == 1


def test_a_name_that_claims_another_id_is_set_aside(box: Mailbox, mail: Folder, events: list[Event]) -> None:
    box.deliver(letter("m1"))
    [name] = files(mail, "new")
    (mail.path / "ada" / "new" / name).rename(mail.path / "ada" / "new" / name.replace("m1", "m2"))
    assert box.receive() == []
    assert len(events) == 1


@pytest.mark.parametrize("part", ["new", "cur"])
def test_a_number_at_its_end_changes_no_order(
    box: Mailbox, mail: Folder, events: list[Event], part: str
) -> None:
    """A file with the highest number there is, put there by hand, must not decide what comes after it."""
    names = ["m9", "m3", "m7", "m1", "m5"]
    box.deliver(letter(names[0]))
    plant_text(mail.path / "ada" / part / "999999999999-10-forged.json")
    for name in names[1:]:
        assert box.deliver(letter(name))
    assert waiting(box) == names
    assert told(events) == ["999999999999-10-forged.json"]


def test_mail_copied_to_another_number_changes_no_order(
    box: Mailbox, mail: Folder, control: Folder, events: list[Event]
) -> None:
    box.deliver(letter("m1"))
    [name] = files(mail, "new")
    copy = name.replace("000000000001", "999999999999")
    (mail.path / "ada" / "cur" / copy).write_bytes((mail.path / "ada" / "new" / name).read_bytes())
    with opened(mail, control, events=events) as other:
        for sent in ("m9", "m3", "m7"):
            assert other.deliver(letter(sent))
    assert waiting(box) == ["m1", "m9", "m3", "m7"]
    assert told(events) == [copy]


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("part", ["new", "cur"])
def test_a_planted_name_keeps_no_delivery_out(
    box: Mailbox, mail: Folder, events: list[Event], part: str, plant: Callable[[Path], None]
) -> None:
    box.deliver(letter("m1"))
    name = "000000000001-10-shutdown-42.json"
    plant(mail.path / "ada" / part / name)
    assert box.deliver(letter("shutdown-42"))
    assert waiting(box) == ["m1", "shutdown-42"]
    assert told(events) == [name]
    assert len(files(mail, "bad")) == 1
    assert not box.deliver(letter("shutdown-42")), "now it was delivered"


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_name_takes_no_message_away_that_waits(
    box: Mailbox, mail: Folder, events: list[Event], plant: Callable[[Path], None]
) -> None:
    box.deliver(letter("m1"))
    [name] = files(mail, "new")
    plant(mail.path / "ada" / "cur" / name)
    assert waiting(box) == ["m1"]
    assert told(events) == [name]


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_name_stops_no_acknowledgement(
    box: Mailbox, mail: Folder, events: list[Event], plant: Callable[[Path], None]
) -> None:
    box.deliver(letter("m1"))
    [name] = files(mail, "new")
    plant(mail.path / "ada" / "cur" / name)
    plant(mail.path / "ada" / "new" / "000000000000-10-m1.json")
    box.acknowledge(MailId("m1"))
    assert (files(mail, "new"), files(mail, "cur")) == ([], [name])
    assert sorted(told(events)) == ["000000000000-10-m1.json", name]
    assert not box.deliver(letter("m1"))


def test_acknowledging_a_copy_of_what_was_used_sets_it_aside(
    box: Mailbox, mail: Folder, events: list[Event]
) -> None:
    box.deliver(letter("m1"))
    [name] = files(mail, "new")
    data = (mail.path / "ada" / "new" / name).read_bytes()
    box.acknowledge(MailId("m1"))
    (mail.path / "ada" / "new" / name).write_bytes(data)
    box.acknowledge(MailId("m1"))
    assert (files(mail, "new"), files(mail, "cur"), told(events)) == ([], [name], [name])


def test_mail_used_and_forgotten_may_come_and_be_used_again(
    mail: Folder, control: Folder, events: list[Event]
) -> None:
    with opened(mail, control, MailSettings(remembered=0), events) as box:
        for _ in range(3):
            assert box.deliver(letter("m1"))
            box.acknowledge(MailId("m1"))
            assert (files(mail, "new"), files(mail, "cur")) == ([], [])
    assert events == []


def test_a_folder_among_what_is_forgotten_stops_no_acknowledgement(
    mail: Folder, control: Folder, events: list[Event]
) -> None:
    with opened(mail, control, MailSettings(remembered=1), events) as box:
        plant_folder(mail.path / "ada" / "cur" / "000000000000-10-forged.json")
        for name in ("m1", "m2"):
            box.deliver(letter(name))
            box.acknowledge(MailId(name))
    assert told(events) == ["000000000000-10-forged.json"]
    assert len(files(mail, "cur")) == 1


@pytest.mark.parametrize("size", ["999999999", "10"], ids=["huge", "true"])
def test_forged_names_fill_no_mailbox(mail: Folder, control: Folder, events: list[Event], size: str) -> None:
    with opened(mail, control, MailSettings(waiting=5), events) as box:
        box.deliver(letter("m1"))
        for number in range(8):
            plant_text(mail.path / "ada" / "new" / f"{number:012}-{size}-forged{number}.json")
        assert box.deliver(letter("m2"))
        assert waiting(box) == ["m1", "m2"]
    assert len(events) == 8


def test_a_mailbox_full_of_mail_is_full_and_read_once_to_say_so(mail: Folder, control: Folder) -> None:
    limits = MailSettings(waiting=3)
    with opened(mail, control, limits) as box:
        for name in ("m1", "m2", "m3"):
            box.deliver(letter(name))
    disk = FaultyDisk()
    with Folder.open(mail.path, disk=disk) as folder, opened(folder, control, limits) as box:
        reads: list[int] = []
        for name in ("m4", "m5"):
            disk.seen.clear()
            with pytest.raises(MailboxFull, match="3 messages waiting"):
                box.deliver(letter(name))
            reads.append(disk.seen.count("read"))
        assert reads[0] >= 3
        assert reads[1] == 0
        assert waiting(box) == ["m1", "m2", "m3"]


def test_a_name_that_claims_another_size_is_set_aside(
    box: Mailbox, mail: Folder, control: Folder, events: list[Event]
) -> None:
    box.deliver(letter("m1"))
    [name] = files(mail, "new")
    other = f"000000000001-{16 * 1024 * 1024}-m1.json"
    (mail.path / "ada" / "new" / name).rename(mail.path / "ada" / "new" / other)
    with opened(mail, control, events=events) as again:
        assert again.deliver(letter("m2"))
        assert waiting(again) == ["m2"]
    assert told(events) == [other]


def test_what_was_set_aside_is_told_when_others_can_go_on(mail: Folder, control: Folder) -> None:
    """Whoever listens may write mail itself."""
    answers: list[bool] = []
    box = Mailbox(mail, "ada", control=control, emit=lambda _: answers.append(box.deliver(letter("answer"))))
    plant_text(mail.path / "ada" / "cur" / "000000000001-10-m1.json")
    assert box.deliver(letter("m1"))
    assert answers == [True]
    assert waiting(box) == ["m1", "answer"]
    box.close()


def test_files_of_other_names_are_left_alone(box: Mailbox, mail: Folder, events: list[Event]) -> None:
    others = ("README", ".tmp-1", "1-1-x.json", "000000000001-1-x.txt", "000000000001-01-x.json")
    for name in others:
        (mail.path / "ada" / "new" / name).touch()
    assert box.receive() == []
    assert events == []
    assert len(files(mail, "new")) == len(others)


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 33])
def test_a_damaged_key_is_refused_rather_than_used(mail: Folder, control: Folder, key: bytes) -> None:
    control.replace(MAIL_KEY_FILE, key)
    with pytest.raises(FileDamaged):
        Mailbox(mail, "ada", control=control)


def test_with_another_key_nothing_that_waits_is_trusted(
    box: Mailbox, mail: Folder, control: Folder, events: list[Event]
) -> None:
    box.deliver(letter("m1"))
    control.replace(MAIL_KEY_FILE, bytes(32))
    with opened(mail, control, events=events) as other:
        assert other.receive() == []
    assert len(events) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"sent": "soon"},
        {"sent": "2026-11-15T00:00:00"},
        {"sender": 7},
        {"body": "x"},
        {"summary": None},
    ],
    ids=["time", "zone", "sender", "body", "words"],
)
def test_a_sealed_message_that_makes_no_sense_is_set_aside(
    box: Mailbox, mail: Folder, control: Folder, events: list[Event], changes: dict[str, object]
) -> None:
    """One of a newer version, say."""
    sent, empty = "2026-11-15T00:00:00+00:00", dict[str, object]()
    plain: dict[str, object] = {"id": "m1", "sender": "a", "summary": "b", "sent": sent, "body": empty}

    def seal(number: int, fields: dict[str, object]) -> None:
        content = canonical_bytes({"to": "ada", "number": number, "mail": fields})
        told = hmac.new(control.read(MAIL_KEY_FILE, max_bytes=99), content, "sha256").hexdigest()
        data = canonical_bytes({"seal": told, **fields})
        (mail.path / "ada" / "new" / f"{number:012}-{len(data)}-{fields['id']}.json").write_bytes(data)

    seal(1, {**plain, **changes})
    seal(2, {**plain, "id": "m2"})
    assert waiting(box) == ["m2"]
    assert len(events) == 1


def forge(mail: Folder, number: int, size: int = 10) -> None:
    (mail.path / "ada" / "new" / f"{number:012}-10-forged{number}.json").write_bytes(b"x" * size)


def names_aside(mail: Folder) -> list[str]:
    return [name.partition("-10-")[2].removesuffix(".json") for name in files(mail, "bad")]


def test_of_what_is_set_aside_the_newest_are_kept(mail: Folder, control: Folder, events: list[Event]) -> None:
    with opened(mail, control, MailSettings(aside=3), events) as box:
        for number in range(1, 9):
            forge(mail, number)
            box.receive()
    assert names_aside(mail) == ["forged6", "forged7", "forged8"]
    assert len(events) == 8


def test_of_a_whole_heap_of_forgeries_no_more_are_kept(mail: Folder, control: Folder) -> None:
    with opened(mail, control, MailSettings(aside=3)) as box:
        for number in range(1, 31):
            forge(mail, number)
        assert box.receive() == []
        assert len(files(mail, "bad")) == 3
        assert files(mail, "new") == []


@pytest.mark.parametrize(("size", "left"), [(400, ["forged3", "forged4"]), (1_001, [])])
def test_what_is_set_aside_takes_no_more_room_than_it_may(
    mail: Folder, control: Folder, size: int, left: list[str]
) -> None:
    with opened(mail, control, MailSettings(aside_bytes=1_000)) as box:
        for number in range(1, 5):
            forge(mail, number, size)
            box.receive()
    assert names_aside(mail) == left


def test_what_an_agent_put_among_what_was_set_aside_costs_nothing(
    mail: Folder, control: Folder, events: list[Event]
) -> None:
    with opened(mail, control, MailSettings(aside=1), events) as box:
        bad = mail.path / "ada" / "bad"
        (bad / "README").touch()
        (bad / f"{10**12 - 1}-00000000-000000000001-10-folder.json").mkdir()
        plant_fifo(bad / f"{10**12 - 1}-00000001-000000000001-10-pipe.json")
        for number in range(1, 4):
            forge(mail, number)
            box.receive()
        box.deliver(letter("m1"))
        assert waiting(box) == ["m1"]
    assert len(events) == 3
    assert len(files(mail, "bad")) <= 3
    assert "README" in files(mail, "bad")


def test_a_lower_limit_holds_for_new_mail_and_spares_what_waits(mail: Folder, control: Folder) -> None:
    with opened(mail, control) as box:
        box.deliver(letter("m1", "x" * 5_000))
    with opened(mail, control, MailSettings(message_bytes=2_000)) as box:
        assert waiting(box) == ["m1"]
        with pytest.raises(MessageTooLarge, match="2,000"):
            box.deliver(letter("m2", "x" * 5_000))
