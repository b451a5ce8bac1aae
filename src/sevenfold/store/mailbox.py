"""Mail between agents in different processes, the Maildir way: a message is there complete, or not at all.

It appears in `new` in one rename, and moves to `cur` when the recipient acknowledges it, which it does after
use: a recipient that dies in between finds the message again. Order, de-duplication and quotas hold among any
number of senders because a delivery holds the mailbox's mutex.

Each message carries a signature by a key that no agent can read, so a file that an agent put into a mailbox
by itself, under whatever name, is set aside instead of being delivered. Names are believed as long as nothing
depends on it: before a name keeps a message out or decides its place, the signature of the file is checked.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Generator, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Literal, NewType, TypeAlias
from uuid import uuid4

from sevenfold.core.canonical import canonical_bytes
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
from sevenfold.core.events import Emit, MailQuarantined, ignore_event
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.core.settings import amount, limit
from sevenfold.store.files.folder import Folder, is_key_part
from sevenfold.store.files.locks import mutex

# The `seal` of a message is an HMAC of its content and number. A name alone proves nothing, since whoever can
# write to a mailbox can give a file any name.

MailId = NewType("MailId", str)
MaildirFolder: TypeAlias = Literal["new", "cur"]

KEY_BYTES = 32
MAIL_KEY_FILE = "mail.key"

MAIL_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
MAIL_NAME_PATTERN = re.compile(rf"(\d{{12}})-([1-9]\d{{0,8}})-({MAIL_ID_PATTERN.pattern})\.json", re.ASCII)
"""One way to write each: a slot must lead back to its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    id: MailId = field(default_factory=lambda: MailId(uuid4().hex))
    sender: str
    summary: str
    """A few words for display."""
    sent: datetime
    """With its zone: the reader may be in another."""
    body: JsonObject

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

    def sign(self, mail: Mail, number: int) -> bytes:
        """The file of a message in its place; of the same length whatever the number."""
        fields = write_fields(mail)
        return write_json(JsonObject({"seal": self._sealed(fields, number), **fields})) + b"\n"

    def verify(self, data: bytes, slot: MailFileName) -> Mail:
        """The message; `InputError` where the file was not put there, under that name, by a delivery."""
        wire = read_object(data)
        seal, fields = wire.get("seal"), wire.without("seal")
        expected = self._sealed(fields, slot.number)
        if not isinstance(seal, str) or not hmac.compare_digest(_bytes(seal), _bytes(expected)):
            raise WireError("its seal does not fit: it was not delivered through this mailbox")
        mail = read_fields(Mail, fields)
        if mail.id != slot.id or len(data) != slot.size_bytes:
            raise WireError("its name does not fit its content")
        return mail

    def _sealed(self, fields: object, number: int) -> str:
        # The number too: order rests on it, and a name can be changed or a file copied to another.
        signed = canonical_bytes({"to": self._mailbox, "number": number, "mail": fields})
        return hmac.new(self._key, signed, "sha256").hexdigest()


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


MAX_MAIL_BYTES = 256 * 1024
"""What is read at most, whatever a setting says: mail that was let in must not be set aside by another."""

_MAX_NAME_CHARS = 100
"""Its mutex has a longer name, which has to be a key as well."""

_UNTRUSTED = (InputError, FileDamaged, NotRegular, AccessDenied)
"""What is wrong with a message itself. A disk that fails to read it for once is no fault of the message's."""

_MAX_PROVEN = 10_000
"""Several full mailboxes' worth of names: a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


class Mailbox:
    """One agent's mailbox. `control` holds the key and the mutex, out of agents' reach."""

    def __init__(
        self,
        folder: Folder,
        name: str,
        *,
        control: Folder,
        settings: MailSettings | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        if not is_key_part(name) or len(name) > _MAX_NAME_CHARS:
            raise KeyRefused(
                f"{name[:80]!r} cannot name a mailbox: use up to {_MAX_NAME_CHARS} letters, digits, '.', '_' "
                "and '-', starting with a letter, a digit or '_'"
            )
        self._name = name
        self._control = control
        self._settings = settings or MailSettings()
        self._emit = emit
        self._proven: set[str] = set()
        """What was found to be mail stays so: a full mailbox is not read anew for each sender it refuses."""
        with ExitStack() as undo:
            self._folder = undo.enter_context(folder.subfolder(name))
            self._new = undo.enter_context(self._folder.subfolder("new"))
            self._cur = undo.enter_context(self._folder.subfolder("cur"))
            self._bad = undo.enter_context(self._folder.subfolder("bad"))
            self._seal = MailSigner(control, name)
            self._folders = undo.pop_all()

    def close(self) -> None:
        self._folders.close()

    def deliver(self, mail: Mail) -> bool:
        """Put it in the mailbox, durably. False: it was delivered before, and is not delivered twice."""
        if not MAIL_ID_PATTERN.fullmatch(mail.id):
            raise InputError(
                f"mail id {mail.id[:80]!r} cannot be used; use 1 to 64 letters, digits, '_' and '-'"
            )
        size_bytes = len(self._seal.sign(mail, 0))
        if size_bytes > self._settings.message_bytes:
            raise MessageTooLarge(
                f"a message of {size_bytes:,} bytes is over the limit of {self._settings.message_bytes:,}; "
                "put the content in a file and send its path"
            )
        with self._locked() as aside:
            waiting = read_mail_names(self._new, "new")
            slots = sorted((*waiting, *read_mail_names(self._cur, "cur")))
            if any(slot.id == mail.id and self._is_mail(slot, aside) for slot in slots):
                self._settle()
                return False
            self._refuse_over_quota(waiting, size_bytes, aside)
            last = next((slot.number for slot in reversed(slots) if self._is_mail(slot, aside)), 0)
            slot = MailFileName(last + 1, size_bytes, mail.id)
            self._new.create(slot.name, self._seal.sign(mail, slot.number))
            self._prove(slot)
        return True

    def receive(self) -> list[Mail]:
        """Everything that waits, oldest first. It keeps waiting until it is acknowledged."""
        found: dict[MailId, Mail] = {}
        known = {slot.id for slot in read_mail_names(self._cur, "cur")}
        for slot in read_mail_names(self._new, "new"):
            try:
                mail = self._read(slot, known)
            except _UNTRUSTED:
                mail = self._read_or_set_aside(slot, found.keys())
            if mail:
                known.add(mail.id)
                found[mail.id] = mail
        return list(found.values())

    def acknowledge(self, mail_id: MailId) -> None:
        """The message was used: it will not be received again. Acknowledging twice is harmless."""
        with self._locked() as aside:
            waiting = [slot for slot in read_mail_names(self._new, "new") if slot.id == mail_id]
            for slot in waiting:
                if self._is_mail(slot, aside):
                    self._retire(slot, aside)
            if not waiting:
                self._settle()
            for slot in read_mail_names(self._cur, "cur")[: -self._settings.remembered or None]:
                try:
                    self._cur.remove(slot.name)
                except (NotRegular, AccessDenied) as error:
                    self._set_aside(slot, str(error), aside)

    @contextmanager
    def _locked(self) -> Generator[list[MailQuarantined]]:
        """Alone in the mailbox. What is set aside meanwhile is told after it: who listens may send mail."""
        aside: list[MailQuarantined] = []
        try:
            with mutex(self._control, f"mail-{self._name}"):
                yield aside
        finally:
            for event in aside:
                self._emit(event)

    def _refuse_over_quota(
        self, waiting: list[MailFileName], size_bytes: int, aside: list[MailQuarantined]
    ) -> None:
        """`MailboxFull` when it is full of mail; of anything else, as much is set aside as makes room."""
        count, used_bytes = len(waiting), sum(slot.size_bytes for slot in waiting)
        unproven = iter(waiting)
        while reason := self._why_full(count, used_bytes, size_bytes):
            slot = next(unproven, None)
            if slot is None:
                raise MailboxFull(reason)
            if not self._is_mail(slot, aside):
                count, used_bytes = count - 1, used_bytes - slot.size_bytes

    def _why_full(self, count: int, used_bytes: int, size_bytes: int) -> str:
        limits = self._settings
        if count >= limits.waiting:
            return (
                f"{self._name} has {count:,} messages waiting, its limit; "
                "it has to read them first, or may have stopped"
            )
        if used_bytes + size_bytes > limits.waiting_bytes:
            return (
                f"{self._name} has {used_bytes:,} bytes waiting and this message would bring it over "
                f"{limits.waiting_bytes:,}; it has to read them first"
            )
        return ""

    def _is_mail(self, slot: MailFileName, aside: list[MailQuarantined]) -> bool:
        """Whether it was delivered; what was not is set aside, and claims nothing any more."""
        if slot.key in self._proven:
            return True
        try:
            self._open(slot)
        except FileMissing:
            return False
        except _UNTRUSTED as error:
            self._set_aside(slot, str(error), aside)
            return False
        return True

    def _open(self, slot: MailFileName) -> Mail:
        folder = self._new if slot.part == "new" else self._cur
        mail = self._seal.verify(folder.read(slot.name, max_bytes=MAX_MAIL_BYTES), slot)
        self._prove(slot)
        return mail

    def _prove(self, slot: MailFileName) -> None:
        if len(self._proven) >= _MAX_PROVEN:
            self._proven.clear()
        self._proven.add(slot.key)

    def _retire(self, slot: MailFileName, aside: list[MailQuarantined]) -> None:
        used = replace(slot, part="cur")
        # A copy there by that name would stand in the way for ever; and only what is there counts as used.
        if used in read_mail_names(self._cur, "cur") and self._is_mail(used, aside):
            self._set_aside(slot, "it was acknowledged before: somebody put a copy there by hand", aside)
            return
        self._folder.move(slot.key, used.key)
        self._prove(used)

    def _settle(self) -> None:
        """Who delivered or acknowledged before us may have died before it was durable; we say that it is."""
        self._folder.sync_name("new/any")
        self._folder.sync_name("cur/any")

    def _read(self, slot: MailFileName, known: Set[MailId]) -> Mail | None:
        """The message, or None where another reader of this mailbox has acknowledged it meanwhile."""
        try:
            mail = self._open(slot)
        except FileMissing:
            return None
        if slot.id in known:
            raise WireError("it was delivered before: somebody put a copy there by hand")
        return mail

    def _read_or_set_aside(self, slot: MailFileName, found: Set[MailId]) -> Mail | None:
        """The same, with no delivery under way: one that takes two steps may have been seen in between."""
        with self._locked() as aside:
            used = [each for each in read_mail_names(self._cur, "cur") if each.id == slot.id]
            known = found | {each.id for each in used if self._is_mail(each, aside)}
            try:
                return self._read(slot, known)
            except _UNTRUSTED as error:
                self._set_aside(slot, str(error), aside)
        return None

    def _set_aside(self, slot: MailFileName, reason: str, aside: list[MailQuarantined]) -> None:
        """Keep it for somebody to look at, and drop the oldest of what was set aside before."""
        kept = [name for name in self._bad.names() if _ASIDE.fullmatch(name)]
        last = max((int(name[:12]) for name in kept), default=0)
        # The random part: a name that an agent could guess could be taken.
        name = f"{min(last + 1, _LAST_NUMBER):012}-{secrets.token_hex(4)}-{slot.name}"
        try:
            self._folder.move(slot.key, f"bad/{name}")
        except FileMissing:
            return
        aside.append(MailQuarantined(self._name, slot.name, reason))
        self._proven.discard(slot.key)
        size_bytes = 0
        for count, old in enumerate((name, *reversed(kept)), start=1):
            size_bytes += self._size_aside(old)
            if count > self._settings.aside or size_bytes > self._settings.aside_bytes:
                # Not where it is a folder, which an agent can make as well: that is left alone.
                with suppress(FileMissing, NotRegular, AccessDenied):
                    self._bad.remove(old)

    def _size_aside(self, name: str) -> int:
        try:
            entry = self._bad.stat(name)
        except (NotRegular, AccessDenied):
            return 0
        return entry.size_bytes if entry else 0


_ASIDE = re.compile(rf"\d{{12}}-[0-9a-f]{{8}}-{MAIL_NAME_PATTERN.pattern}", re.ASCII)
_LAST_NUMBER = 10**12 - 1
