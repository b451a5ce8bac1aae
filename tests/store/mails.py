"""Letters and mailboxes for tests."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from sevenfold.core.events import Event, ignore_event
from sevenfold.core.json import JsonObject
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import Mail, Mailbox, MailId, MailSettings

SENT = datetime(2026, 11, 15, tzinfo=UTC)


def letter(name: str, text: str = "hello") -> Mail:
    return Mail(sender="bob", summary="a word", body=JsonObject({"text": text}), sent=SENT, id=MailId(name))


@contextmanager
def opened(
    mail: Folder, control: Folder, limits: MailSettings | None = None, events: list[Event] | None = None
) -> Generator[Mailbox]:
    emit = ignore_event if events is None else events.append
    box = Mailbox(mail, "ada", control=control, settings=limits, emit=emit)
    try:
        yield box
    finally:
        box.close()


def waiting(box: Mailbox) -> list[str]:
    return [found.id for found in box.receive()]


def files(mail: Folder, part: str) -> list[str]:
    return sorted(os.listdir(mail.path / "ada" / part))
