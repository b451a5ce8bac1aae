"""Mail between agents in different processes, the Maildir way: a message is there complete, or not at all.

It appears in `new` in one rename, and moves to `cur` when the recipient acknowledges it, which it does after
use: a recipient that dies in between finds the message again. Order, de-duplication and quotas hold among any
number of senders because a delivery holds the mailbox's mutex.

Each message carries a seal made with a key that no agent can read, so a file that an agent put into a mailbox
by itself, under whatever name, is set aside instead of being delivered.
"""

from __future__ import annotations

import hmac
import re
import secrets
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType
from uuid import uuid4

from sevenfold.core.canonical import canonical
from sevenfold.core.errors import (
    FileDamaged,
    FileExists,
    FileMissing,
    InputError,
    MailboxFull,
    MessageTooLarge,
    NotRegular,
    WireError,
)
from sevenfold.core.events import Emit, MailQuarantined, ignore
from sevenfold.core.json import JsonObject, freeze, read_object, thaw, write_json
from sevenfold.store.folder import Folder
from sevenfold.store.mutex import mutex

MailId = NewType("MailId", str)

MAX_MAIL_BYTES = 256 * 1024
"""A message is a note to somebody; anything larger belongs in a file that the note names."""

KEY_BYTES = 32
KEY = "mail.key"


@dataclass(frozen=True, slots=True)
class MailLimits:
    waiting: int = 1_000
    """An agent that is this far behind will not catch up; its senders should hear of it."""
    waiting_bytes: int = 16 * 1024 * 1024
    """Sixteen full-size messages' worth of a window, many times over."""
    remembered: int = 1_000
    """Acknowledged messages kept, so that a late second delivery of one is known for what it is."""


@dataclass(frozen=True, slots=True)
class Mail:
    sender: str
    summary: str
    """A few words for display."""
    body: JsonObject
    sent: datetime
    id: MailId = field(default_factory=lambda: MailId(uuid4().hex))


class Mailbox:
    """One agent's mailbox. `control` holds the key and the mutex, out of agents' reach."""

    def __init__(
        self,
        folder: Folder,
        name: str,
        *,
        control: Folder,
        limits: MailLimits | None = None,
        emit: Emit = ignore,
    ) -> None:
        self._name = name
        self._new = folder.subfolder(f"{name}/new")
        self._cur = folder.subfolder(f"{name}/cur")
        self._bad = folder.subfolder(f"{name}/bad")
        self._folder = folder.subfolder(name)
        self._control = control
        self._limits = limits or MailLimits()
        self._emit = emit
        self._key = _read_key(control)

    def close(self) -> None:
        for folder in (self._new, self._cur, self._bad, self._folder):
            folder.close()

    def deliver(self, mail: Mail) -> bool:
        """Put it in the mailbox, durably. False: it was delivered before, and is not delivered twice."""
        data = self._seal(mail)
        if len(data) > MAX_MAIL_BYTES:
            raise MessageTooLarge(
                f"a message of {len(data):,} bytes is over the limit of {MAX_MAIL_BYTES:,}; "
                "put the content in a file and send its path"
            )
        with self._locked():
            waiting, used = _slots(self._new), _slots(self._cur)
            if any(slot.id == mail.id for slot in (*waiting, *used)):
                return False
            self._refuse_over_quota(waiting, len(data))
            last = max((slot.number for slot in (*waiting, *used)), default=0)
            self._new.create(_Slot(last + 1, len(data), mail.id).name, data)
        return True

    def receive(self) -> list[Mail]:
        """Everything that waits, oldest first. It keeps waiting until it is acknowledged."""
        found: list[Mail] = []
        for slot in _slots(self._new):
            try:
                found.append(self._open(self._new.read(slot.name, max_bytes=MAX_MAIL_BYTES), slot))
            except FileMissing:
                continue  # another reader of this mailbox has acknowledged it meanwhile
            except (InputError, FileDamaged, NotRegular) as error:
                # Only for what it is. A disk that fails to read it for once is no fault of the message's.
                self._set_aside(slot.name, str(error))
        return found

    def acknowledge(self, mail_id: MailId) -> None:
        """The message was used: it will not be received again. Acknowledging twice is harmless."""
        with self._locked():
            for slot in _slots(self._new):
                if slot.id == mail_id:
                    self._folder.move(f"new/{slot.name}", f"cur/{slot.name}")
            for slot in _slots(self._cur)[: -self._limits.remembered or None]:
                self._cur.remove(slot.name)

    def _locked(self) -> AbstractContextManager[None]:
        return mutex(self._control, f"mail-{self._name}")

    def _refuse_over_quota(self, waiting: list[_Slot], size_bytes: int) -> None:
        limits, used_bytes = self._limits, sum(slot.size_bytes for slot in waiting)
        if len(waiting) >= limits.waiting:
            raise MailboxFull(
                f"{self._name} has {len(waiting):,} messages waiting, its limit; "
                "it has to read them first, or may have stopped"
            )
        if used_bytes + size_bytes > limits.waiting_bytes:
            raise MailboxFull(
                f"{self._name} has {used_bytes:,} bytes waiting and this message would bring it over "
                f"{limits.waiting_bytes:,}; it has to read them first"
            )

    def _set_aside(self, name: str, reason: str) -> None:
        with self._locked(), suppress(FileMissing):
            self._folder.move(f"new/{name}", f"bad/{secrets.token_hex(4)}-{name}"[:200])
            self._emit(MailQuarantined(self._name, name, reason))

    def _seal(self, mail: Mail) -> bytes:
        fields = {
            "id": mail.id,
            "sender": mail.sender,
            "summary": mail.summary,
            "sent": mail.sent.isoformat(),
            "body": thaw(mail.body),
        }
        return write_json(freeze({"seal": self._sealed(fields), **fields})) + b"\n"

    def _sealed(self, fields: object) -> str:
        return hmac.new(self._key, canonical({"to": self._name, "mail": fields}), "sha256").hexdigest()

    def _open(self, data: bytes, slot: _Slot) -> Mail:
        wire = read_object(data)
        seal, fields = wire.get("seal"), wire.without("seal")
        if not isinstance(seal, str) or not hmac.compare_digest(seal.encode(), self._sealed(fields).encode()):
            raise WireError("its seal does not fit: it was not delivered through this mailbox")
        named, sender, summary = (_text(fields, key) for key in ("id", "sender", "summary"))
        body = fields.get("body")
        if named != slot.id or not isinstance(body, JsonObject):
            raise WireError("its name or its body does not fit its content")
        return Mail(sender, summary, body, datetime.fromisoformat(_text(fields, "sent")), MailId(named))


@dataclass(frozen=True, slots=True, order=True)
class _Slot:
    """What a file's name tells, so that counting a mailbox opens no file."""

    number: int
    size_bytes: int
    id: MailId

    @property
    def name(self) -> str:
        return f"{self.number:012}-{self.size_bytes}-{self.id}.json"


_NAME = re.compile(r"(\d{12})-(\d{1,9})-([A-Za-z0-9_-]{1,64})\.json", re.ASCII)


def _slots(folder: Folder) -> list[_Slot]:
    """The messages of one part of a mailbox, in order; files of other names are not ours to touch."""
    matches = (_NAME.fullmatch(name) for name in folder.names())
    return sorted(_Slot(int(match[1]), int(match[2]), MailId(match[3])) for match in matches if match)


def _read_key(control: Folder) -> bytes:
    while True:
        try:
            return control.read(KEY, max_bytes=KEY_BYTES)
        except FileMissing:
            # Of two that make it at once, one wins and both read the winner's.
            with suppress(FileExists):
                control.create(KEY, secrets.token_bytes(KEY_BYTES))


def _text(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise WireError(f"its {key} is {value!r}; expected text")
    return value
