"""The record of a dream, kept beside the memories where no agent can write: what it did, why, and its diff.

<control>/dreams/<id>.json    the record; it says `running` until the dream is over
                 <id>.diff    what it changed, or would have
                 <id>.stop    a request to stop it
                 <id>/        the copy that a fork works on, while it does
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import NewType

from sevenfold.core.errors import FileMissing, InputError, StoreError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.sidecars import DREAMS_FOLDER, MAX_ACCOUNT_BYTES

DreamId = NewType("DreamId", str)

DREAM_RUNNING, DREAM_KILLED = "running", "killed"
MAX_DIFF_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamRecord:
    id: str
    started: str
    writer: str
    ended: str = ""
    outcome: str = DREAM_RUNNING
    reason: str = ""
    transaction: str = ""
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    """Ids of what a person has to accept."""
    spared: tuple[str, ...] = ()
    """Files that it left as they are, each with the reason."""
    let_go: tuple[str, ...] = ()
    """Facts that are gone, each with the reason."""
    report: str = ""
    """What the fork said at its end."""
    steps: tuple[str, ...] = ()
    """The last of them."""
    tools: int = 0

    def lines(self) -> list[str]:
        """How it ended, for a person."""
        told = f": {self.reason}" if self.reason else ""
        found = [f"dream {self.id} {_SAID.get(self.outcome, self.outcome)}{told}"]
        counts = (
            (len(self.changed), "written"),
            (len(self.removed), "merged into others or let go"),
            (len(self.archived), "put aside"),
        )
        found += [f"  {count} {what}" for count, what in counts if count]
        found += [f"  left as it is: {text}" for text in self.spared]
        found += [f"  let go: {text}" for text in self.let_go]
        if self.waiting:
            found.append("  something new waits for you: `sevenfold memory review`")
        if self.transaction:
            found.append(f"  `sevenfold dream undo {self.id}` takes it back")
        return found


_SAID = {
    "unchanged": "found nothing to do",
    "previewed": "would change this; nothing was changed",
    "refused": "was refused and changed nothing",
    "killed": "was stopped and changed nothing",
    "failed": "failed and changed nothing",
}


class DreamRecordStore:
    """The records of the dreams of one project. Every method blocks on the disk."""

    def __init__(self, control: Folder) -> None:
        self._folder = control.subfolder(DREAMS_FOLDER)

    def close(self) -> None:
        self._folder.close()

    def copy_folder(self, dream: DreamId) -> Folder:
        """The folder for the copy of a dream."""
        return self._folder.subfolder(dream)

    def write(self, record: DreamRecord, diff: str | None = None) -> None:
        if diff is not None:
            data = diff.encode("utf-8", "backslashreplace")[:MAX_DIFF_BYTES]
            self._folder.replace(f"{record.id}.diff", data)
        self._folder.replace(f"{record.id}.json", write_json(freeze_object(asdict(record))) + b"\n")

    def read(self, dream: str) -> DreamRecord:
        """Read one record; `InputError` if there is none."""
        try:
            return _read(read_object(self._folder.read(f"{dream}.json", max_bytes=MAX_ACCOUNT_BYTES)))
        except (FileMissing, StoreError) as error:
            raise InputError(f"there is no dream {dream[:80]!r}; `sevenfold dream log` lists them") from error

    def diff(self, dream: str) -> str:
        try:
            return self._folder.read(f"{dream}.diff", max_bytes=MAX_DIFF_BYTES).decode("utf-8", "replace")
        except FileMissing:
            return ""

    def ids(self) -> list[DreamId]:
        """The newest first: an id begins with its time."""
        names = (name for name in self._folder.names() if name.endswith(".json"))
        return sorted((DreamId(name.removesuffix(".json")) for name in names), reverse=True)

    def list(self, *, running: str = "") -> list[DreamRecord]:
        """All readable records, the newest first. One that says `running` and does not run has died."""
        found: list[DreamRecord] = []
        for dream in self.ids():
            try:
                record = self.read(dream)
            except InputError:
                continue
            has_died = record.outcome == DREAM_RUNNING and record.id != running
            found.append(
                replace(record, outcome=DREAM_KILLED, reason="its process died") if has_died else record
            )
        return found

    def ask_to_stop(self, dream: str) -> None:
        self._folder.replace(f"{dream}.stop", b"")

    def is_asked_to_stop(self, dream: DreamId) -> bool:
        return self._folder.entry(f"{dream}.stop") is not None

    def tidy(self, keep: int, own: DreamId | None = None) -> None:
        """Remove copies and stop files that no running dream owns, and old records beyond the newest."""
        kept = {*self.ids()[:keep], *([own] if own else [])}
        for name in self._folder.names():
            dream, _, suffix = name.partition(".")
            if dream == own:
                continue
            if not suffix:
                self.clear_copy(name)
            elif suffix == "stop" or dream not in kept:
                self._folder.remove(name, durable=False)

    def clear_copy(self, dream: str) -> None:
        # Not through the port: nothing in it is anybody's, and a power cut may bring it back.
        shutil.rmtree(self._folder.path / dream, ignore_errors=True)


def _read(wire: JsonObject) -> DreamRecord:
    values: Mapping[str, Json] = {
        item.name: wire[item.name] for item in fields(DreamRecord) if item.name in wire
    }
    if not isinstance(values.get("id"), str) or not all(map(_is_fit, values.values())):
        raise InputError("the account of a dream cannot be read")
    return DreamRecord(**values)  # pyright: ignore[reportArgumentType] - checked just above


def _is_fit(value: Json) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (str, int))
