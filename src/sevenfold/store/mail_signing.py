"""What makes a file in a mailbox mail: its `seal`, an HMAC of content and number by a key no agent can read.

A name alone proves nothing, since whoever can write to a mailbox can give a file any name.
"""

from __future__ import annotations

import hmac
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NewType, TypeAlias
from uuid import uuid4

from sevenfold.core.canonical import canonical_bytes
from sevenfold.core.errors import FileDamaged, FileExists, FileMissing, InputError, WireError
from sevenfold.core.json import JsonObject, freeze, read_object, thaw, write_json
from sevenfold.store.files.folder import Folder

MailId = NewType("MailId", str)
MaildirFolder: TypeAlias = Literal["new", "cur"]

KEY_BYTES = 32
MAIL_KEY_FILE = "mail.key"

MAIL_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
MAIL_NAME_PATTERN = re.compile(rf"(\d{{12}})-([1-9]\d{{0,8}})-({MAIL_ID_PATTERN.pattern})\.json", re.ASCII)
"""One way to write each: a slot must lead back to its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    sender: str
    summary: str
    """A few words for display."""
    body: JsonObject
    sent: datetime
    """With its zone: the reader may be in another."""
    id: MailId = field(default_factory=lambda: MailId(uuid4().hex))

    def __post_init__(self) -> None:
        if self.sent.utcoffset() is None:
            raise InputError(
                f"mail was sent at {self.sent.isoformat()}, a time without a zone; use datetime.now(UTC)"
            )


@dataclass(frozen=True, slots=True, order=True)
class MailFileName:
    """What a file's name claims, so that counting a mailbox opens no file."""

    number: int
    size_bytes: int
    id: MailId
    part: MaildirFolder = "new"

    @property
    def name(self) -> str:
        return f"{self.number:012}-{self.size_bytes}-{self.id}.json"

    @property
    def key(self) -> str:
        return f"{self.part}/{self.name}"


def read_mail_names(folder: Folder, part: MaildirFolder) -> list[MailFileName]:
    """The messages of one part of a mailbox, in order; files of other names are not ours to touch."""
    matches = (MAIL_NAME_PATTERN.fullmatch(name) for name in folder.names())
    return sorted(
        MailFileName(int(match[1]), int(match[2]), MailId(match[3]), part) for match in matches if match
    )


class MailSigner:
    """Signs and checks the mail of one mailbox. `control` holds the key; one is made where there is none."""

    def __init__(self, control: Folder, mailbox: str) -> None:
        self._key = _read_key(control)
        self._mailbox = mailbox

    def seal(self, mail: Mail, number: int) -> bytes:
        """The file of a message in its place; of the same length whatever the number."""
        fields = {
            "id": mail.id,
            "sender": mail.sender,
            "summary": mail.summary,
            "sent": mail.sent.isoformat(),
            "body": thaw(mail.body),
        }
        return write_json(freeze({"seal": self._sealed(fields, number), **fields})) + b"\n"

    def open(self, data: bytes, slot: MailFileName) -> Mail:
        """The message; `InputError` where the file was not put there, under that name, by a delivery."""
        wire = read_object(data)
        seal, fields = wire.get("seal"), wire.without("seal")
        expected = self._sealed(fields, slot.number)
        if not isinstance(seal, str) or not hmac.compare_digest(_bytes(seal), _bytes(expected)):
            raise WireError("its seal does not fit: it was not delivered through this mailbox")
        named, sender, summary = (_text(fields, key) for key in ("id", "sender", "summary"))
        body = fields.get("body")
        if named != slot.id or len(data) != slot.size_bytes or not isinstance(body, JsonObject):
            raise WireError("its name or its body does not fit its content")
        try:
            sent = datetime.fromisoformat(_text(fields, "sent"))
        except ValueError as error:
            raise WireError("the time it was sent is none") from error
        return Mail(sender=sender, summary=summary, body=body, sent=sent, id=MailId(named))

    def _sealed(self, fields: object, number: int) -> str:
        # The number too: order rests on it, and a name can be changed or a file copied to another.
        told = canonical_bytes({"to": self._mailbox, "number": number, "mail": fields})
        return hmac.new(self._key, told, "sha256").hexdigest()


def _read_key(control: Folder) -> bytes:
    while True:
        try:
            key = control.read(MAIL_KEY_FILE, max_bytes=KEY_BYTES)
            break
        except FileMissing:
            # Of two that make it at once, one wins and both read the winner's.
            with suppress(FileExists):
                control.create(MAIL_KEY_FILE, secrets.token_bytes(KEY_BYTES))
    if len(key) < KEY_BYTES:
        raise FileDamaged(
            f"{control.path}/{MAIL_KEY_FILE} has {len(key)} bytes instead of {KEY_BYTES}; remove it "
            f"to have a new one "
            "made, and mail that waits will be set aside"
        )
    return key


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise WireError(f"its {key} is {value!r}; expected text")
    return value
