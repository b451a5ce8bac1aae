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
from collections.abc import Set
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, NewType
from uuid import uuid4

from sevenfold.core.canonical import canonical
from sevenfold.core.errors import (
    AccessDenied,
    FileDamaged,
    FileExists,
    FileMissing,
    InputError,
    KeyRefused,
    MailboxFull,
    MessageTooLarge,
    NotRegular,
    WireError,
)
from sevenfold.core.events import Emit, MailQuarantined, ignore
from sevenfold.core.json import JsonObject, freeze, read_object, thaw, write_json
from sevenfold.core.settings import amount, limit
from sevenfold.store.folder import Folder
from sevenfold.store.keys import is_part
from sevenfold.store.mutex import mutex

MailId = NewType("MailId", str)

MAX_MAIL_BYTES = 256 * 1024
"""What is read at most, whatever a setting says: mail that was let in must not be set aside by another."""

KEY_BYTES = 32
KEY = "mail.key"

_MAX_NAME_CHARS = 100
"""Its mutex has a longer name, which has to be a key as well."""

_UNTRUSTED = (InputError, FileDamaged, NotRegular, AccessDenied)
"""What is wrong with a message itself. A disk that fails to read it for once is no fault of the message's."""


@dataclass(frozen=True, slots=True)
class MailSettings:
    SECTION: ClassVar[str] = "mail"

    message_bytes: int = limit(MAX_MAIL_BYTES, at_least=1_024, at_most=MAX_MAIL_BYTES)
    """A message is a note to somebody; anything larger belongs in a file that the note names."""

    waiting: int = limit(1_000, at_least=1)
    """An agent that is this far behind will not catch up; its senders should hear of it."""

    waiting_bytes: int = limit(16 * 1024 * 1024, at_least=1)
    """Sixty-four messages of the largest size, several windows' worth."""

    remembered: int = amount(1_000)
    """Acknowledged messages kept, so that a late second delivery of one is known for what it is."""

    aside: int = amount(100)
    """Messages set aside that are kept to look at, the newest; whoever forges one forges many."""

    aside_bytes: int = amount(4 * 1024 * 1024)
    """What those may take together: a forgery can be of any size."""


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
        settings: MailSettings | None = None,
        emit: Emit = ignore,
    ) -> None:
        if not is_part(name) or len(name) > _MAX_NAME_CHARS:
            raise KeyRefused(
                f"{name[:80]!r} cannot name a mailbox: use up to {_MAX_NAME_CHARS} letters, digits, '.', '_' "
                "and '-', starting with a letter, a digit or '_'"
            )
        self._name = name
        self._control = control
        self._settings = settings or MailSettings()
        self._emit = emit
        with ExitStack() as undo:
            self._folder = undo.enter_context(folder.subfolder(name))
            self._new = undo.enter_context(self._folder.subfolder("new"))
            self._cur = undo.enter_context(self._folder.subfolder("cur"))
            self._bad = undo.enter_context(self._folder.subfolder("bad"))
            self._key = _read_key(control)
            self._folders = undo.pop_all()

    def close(self) -> None:
        self._folders.close()

    def deliver(self, mail: Mail) -> bool:
        """Put it in the mailbox, durably. False: it was delivered before, and is not delivered twice."""
        if not _ID.fullmatch(mail.id):
            raise InputError(
                f"mail id {mail.id[:80]!r} cannot be used; use 1 to 64 letters, digits, '_' and '-'"
            )
        data = self._seal(mail)
        if len(data) > self._settings.message_bytes:
            raise MessageTooLarge(
                f"a message of {len(data):,} bytes is over the limit of {self._settings.message_bytes:,}; "
                "put the content in a file and send its path"
            )
        with self._locked():
            waiting, used = _slots(self._new), _slots(self._cur)
            if any(slot.id == mail.id for slot in (*waiting, *used)):
                self._settle()
                return False
            self._refuse_over_quota(waiting, len(data))
            last = max((slot.number for slot in (*waiting, *used)), default=0)
            # A file with the highest number there is, put there by hand, must not make ours unreadable.
            number = min(last + 1, _LAST_NUMBER)
            self._new.create(_Slot(number, len(data), mail.id).name, data)
        return True

    def receive(self) -> list[Mail]:
        """Everything that waits, oldest first. It keeps waiting until it is acknowledged."""
        found: list[Mail] = []
        known = {slot.id for slot in _slots(self._cur)}
        for slot in _slots(self._new):
            try:
                mail = self._read(slot, known)
            except _UNTRUSTED:
                mail = self._read_or_set_aside(slot, known)
            if mail:
                known.add(mail.id)
                found.append(mail)
        return found

    def acknowledge(self, mail_id: MailId) -> None:
        """The message was used: it will not be received again. Acknowledging twice is harmless."""
        with self._locked():
            waiting = [slot for slot in _slots(self._new) if slot.id == mail_id]
            for slot in waiting:
                self._folder.move(f"new/{slot.name}", f"cur/{slot.name}")
            if not waiting:
                self._settle()
            for slot in _slots(self._cur)[: -self._settings.remembered or None]:
                self._cur.remove(slot.name)

    def _locked(self) -> AbstractContextManager[None]:
        return mutex(self._control, f"mail-{self._name}")

    def _refuse_over_quota(self, waiting: list[_Slot], size_bytes: int) -> None:
        limits, used_bytes = self._settings, sum(slot.size_bytes for slot in waiting)
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

    def _settle(self) -> None:
        """Who delivered or acknowledged before us may have died before it was durable; we say that it is."""
        self._folder.settle("new/any")
        self._folder.settle("cur/any")

    def _read(self, slot: _Slot, known: Set[MailId]) -> Mail | None:
        """The message, or None where another reader of this mailbox has acknowledged it meanwhile."""
        try:
            data = self._new.read(slot.name, max_bytes=MAX_MAIL_BYTES)
        except FileMissing:
            return None
        if slot.id in known:
            raise WireError("it was delivered before: somebody put a copy there by hand")
        return self._open(data, slot)

    def _read_or_set_aside(self, slot: _Slot, known: Set[MailId]) -> Mail | None:
        """The same, with no delivery under way: one that takes two steps may have been seen in between."""
        with self._locked():
            try:
                return self._read(slot, known)
            except _UNTRUSTED as error:
                reason = str(error)
                with suppress(FileMissing):
                    self._set_aside(slot)
        self._emit(MailQuarantined(self._name, slot.name, reason))
        return None

    def _set_aside(self, slot: _Slot) -> None:
        """Keep it for somebody to look at, and drop the oldest of what was set aside before."""
        kept = [name for name in self._bad.names() if _ASIDE.fullmatch(name)]
        last = max((int(name[:12]) for name in kept), default=0)
        # The random part: a name that an agent could guess could be taken.
        name = f"{min(last + 1, _LAST_NUMBER):012}-{secrets.token_hex(4)}-{slot.name}"
        self._folder.move(f"new/{slot.name}", f"bad/{name}")
        size_bytes = 0
        for count, old in enumerate((name, *reversed(kept)), start=1):
            size_bytes += self._size_aside(old)
            if count > self._settings.aside or size_bytes > self._settings.aside_bytes:
                # Not where it is a folder, which an agent can make as well: that is left alone.
                with suppress(FileMissing, NotRegular, AccessDenied):
                    self._bad.remove(old)

    def _size_aside(self, name: str) -> int:
        try:
            entry = self._bad.entry(name)
        except (NotRegular, AccessDenied):
            return 0
        return entry.size_bytes if entry else 0

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
        if not isinstance(seal, str) or not hmac.compare_digest(_bytes(seal), _bytes(self._sealed(fields))):
            raise WireError("its seal does not fit: it was not delivered through this mailbox")
        named, sender, summary = (_text(fields, key) for key in ("id", "sender", "summary"))
        body = fields.get("body")
        if named != slot.id or not isinstance(body, JsonObject):
            raise WireError("its name or its body does not fit its content")
        try:
            sent = datetime.fromisoformat(_text(fields, "sent"))
        except ValueError as error:
            raise WireError("the time it was sent is none") from error
        return Mail(sender, summary, body, sent, MailId(named))


@dataclass(frozen=True, slots=True, order=True)
class _Slot:
    """What a file's name tells, so that counting a mailbox opens no file."""

    number: int
    size_bytes: int
    id: MailId

    @property
    def name(self) -> str:
        return f"{self.number:012}-{self.size_bytes}-{self.id}.json"


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_NAME = re.compile(rf"(\d{{12}})-(\d{{1,9}})-({_ID.pattern})\.json", re.ASCII)
_ASIDE = re.compile(rf"\d{{12}}-[0-9a-f]{{8}}-{_NAME.pattern}", re.ASCII)
_LAST_NUMBER = 10**12 - 1


def _slots(folder: Folder) -> list[_Slot]:
    """The messages of one part of a mailbox, in order; files of other names are not ours to touch."""
    matches = (_NAME.fullmatch(name) for name in folder.names())
    return sorted(_Slot(int(match[1]), int(match[2]), MailId(match[3])) for match in matches if match)


def _read_key(control: Folder) -> bytes:
    while True:
        try:
            key = control.read(KEY, max_bytes=KEY_BYTES)
            break
        except FileMissing:
            # Of two that make it at once, one wins and both read the winner's.
            with suppress(FileExists):
                control.create(KEY, secrets.token_bytes(KEY_BYTES))
    if len(key) < KEY_BYTES:
        raise FileDamaged(
            f"{control.path}/{KEY} has {len(key)} bytes instead of {KEY_BYTES}; remove it to have a new one "
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
