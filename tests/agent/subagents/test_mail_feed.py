"""Mail into a history: exactly once, wherever somebody dies."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.agent.subagents.mailbox import MailFeed, parse_mail
from sevenfold.core.errors import StoreError
from sevenfold.core.events import Event, MailSkipped
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message
from sevenfold.layers.forks.policy import NoteMessage, find_mail_ids, render_mail, write_mail_message
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import Mail, Mailbox, MailId
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord, Record
from sevenfold.store.transcript.transcript import Transcript
from tests.examples import up_to

AT = datetime(2026, 11, 15, tzinfo=UTC)
SESSION = "one"


def letter(name: str) -> Mail:
    return Mail(
        sender="bob",
        summary=f"about {name}",
        body=write_mail_message(NoteMessage(f"The text of {name}.")),
        sent=AT,
        id=MailId(name),
    )


@dataclass(slots=True)
class House:
    """A session's mailbox and transcript, and a process that can die."""

    sessions: Folder
    mailbox: Mailbox
    events: list[Event] = field(default_factory=list[Event])
    feed: MailFeed = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """All that the process knew is gone; what is on disk is there."""
        self.feed = MailFeed("ada", self.mailbox, self.sessions, SESSION, emit=self.events.append)

    def write_down(self, *mails: Mail) -> None:
        with Transcript.open(self.sessions, SESSION) as transcript:
            for mail in mails:
                text = render_mail(mail.id, mail.sender, parse_mail(mail))
                transcript.append_all([Record(MessageRecord(Message("user", text)), AT)])

    def told(self) -> list[str]:
        lines = [line for line in scan_transcript(self.sessions, SESSION) if isinstance(line, StoredRecord)]
        bodies = [line.record.body for line in lines]
        return [
            name
            for body in bodies
            if isinstance(body, MessageRecord)
            for name in find_mail_ids([body.message])
        ]


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    with open_house(tmp_path) as found:
        yield found


class open_house:  # noqa: N801 - used as the verb it is
    def __init__(self, root: Path) -> None:
        self._root, self._exits = root, ExitStack()

    def __enter__(self) -> House:
        sessions, mail, control = (
            self._exits.enter_context(Folder.open(self._root / name, create=True))
            for name in ("sessions", "mail", "control")
        )
        mailbox = self._exits.enter_context(closing(Mailbox(mail, "ada", control=control)))
        return House(sessions, mailbox)

    def __exit__(self, *_: object) -> None:
        self._exits.close()


def test_mail_is_handed_out_once_and_waits_until_the_transcript_holds_it(house: House) -> None:
    house.mailbox.deliver(letter("m1"))
    assert house.feed.collect() == [letter("m1")]
    assert house.feed.collect() == []
    assert house.mailbox.receive() == [letter("m1")], "it is not safe yet, so it keeps waiting"
    house.write_down(letter("m1"))
    assert house.feed.collect() == []
    assert house.mailbox.receive() == []


def test_mail_of_a_process_that_died_before_writing_it_down_is_handed_out_again(house: House) -> None:
    house.mailbox.deliver(letter("m1"))
    house.feed.collect()
    house.restart()
    assert house.feed.collect() == [letter("m1")]


def test_mail_of_a_process_that_died_between_writing_it_down_and_saying_so_is_not_told_twice(
    house: House,
) -> None:
    house.mailbox.deliver(letter("m1"))
    house.write_down(*house.feed.collect())
    house.restart()
    assert house.feed.collect() == []
    assert house.mailbox.receive() == []
    assert house.told() == ["m1"]


def test_mail_waits_on_when_the_transcript_cannot_be_made_safe(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.mailbox.deliver(letter("m1"))
    house.write_down(*house.feed.collect())

    def fail() -> None:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(house.feed, "_settle_transcript", fail)
    with pytest.raises(StoreError):
        house.feed.collect()
    assert house.mailbox.receive() == [letter("m1")]


@settings(max_examples=up_to(40))
@given(st.lists(st.sampled_from(["send", "send again", "collect", "write", "die"]), max_size=40))
def test_whatever_happens_in_whatever_order_each_message_is_told_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    with open_house(tmp_path_factory.mktemp("mail")) as house:
        sent, held = 0, list[Mail]()
        for step in steps:
            match step:
                case "send":
                    sent += 1
                    house.mailbox.deliver(letter(f"m{sent}"))
                case "send again":
                    house.mailbox.deliver(letter(f"m{max(1, sent)}"))
                    sent = max(1, sent)
                case "collect":
                    held += house.feed.collect()
                case "write":
                    house.write_down(*held[:1])
                    held = held[1:]
                case _:
                    house.restart()
                    held = []
        house.write_down(*held, *house.feed.collect())
        house.feed.collect()
        assert house.mailbox.receive() == []
        assert (sorted(house.told()) if sent else []) == sorted(f"m{n + 1}" for n in range(sent))


def test_a_feed_hands_out_what_comes_and_goes_on_after_a_disk_that_failed_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect, failures = house.feed.collect, [StoreError("the disk was away")]

    def collect_at_last() -> list[Mail]:
        if failures:
            raise failures.pop()
        return collect()

    monkeypatch.setattr(house.feed, "collect", collect_at_last)

    async def run() -> list[Mail]:
        heard = asyncio.Queue[Mail]()
        running = asyncio.create_task(house.feed.run(heard.put_nowait))
        house.mailbox.deliver(letter("m1"))
        # Woken until it has heard, so that no test waits for a timer.
        while heard.empty():
            house.feed.wake()
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})
        return [heard.get_nowait()]

    assert asyncio.run(run()) == [letter("m1")]
    assert house.events == [MailSkipped("ada", "the disk was away")]


def test_a_message_of_a_type_nobody_knows_is_shown_as_it_is() -> None:
    body = JsonObject({"type": "poll", "question": "Lunch?"})
    assert parse_mail(Mail(sender="bob", summary="a poll", body=body, sent=AT)) == NoteMessage(
        '{"type":"poll","question":"Lunch?"}'
    )
