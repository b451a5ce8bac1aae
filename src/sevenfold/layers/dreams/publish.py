"""Reviews a draft and publishes it under the lease: each file only if it is unchanged since the dream read
it.

`DreamRecordStore` keeps the record of each dream beside the memories, where no agent can write:

    <state>/dreams/<id>.json    the record; it says `running` until the dream is over
                   <id>.diff    what it changed, or would have
                   <id>.stop    a request to stop it
                   <id>/        the copy that a fork works on, while it does
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, NewType

from sevenfold.core.errors import FileMissing, InputError, MemoryConflict, StoreError
from sevenfold.core.fields import JsonForm, read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.core.memories import ARCHIVE_PREFIX, LOGS_PREFIX, Origin, SaidBy, join_taint
from sevenfold.core.secrets import refuse_secrets
from sevenfold.layers.dreams.check import DreamCheck, check_dream, explain_over_budget
from sevenfold.layers.dreams.inputs import DreamInputs
from sevenfold.layers.dreams.merge import DreamDraft
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import Lease
from sevenfold.store.memory.changes import Remove, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import DREAMS_FOLDER, MAX_ACCOUNT_BYTES

EDITED_REASON = "it was edited while the dream went on"
_WAITS = "another text for it waits for a person (`sevenfold memory review`)"


@dataclass(frozen=True, slots=True)
class ReviewedDraft:
    """What of a draft may be published, what a person has to accept, and what stays as it is."""

    draft: DreamDraft
    checked: DreamCheck
    left_alone: Mapping[str, str]
    """Files that are left as they are, each with the reason."""
    objection: str
    """Why none of it is published; empty: it is."""

    @property
    def publishes(self) -> frozenset[str]:
        return self.checked.without({*self.left_alone, *self.checked.gained})

    @property
    def proposes(self) -> frozenset[str]:
        return self.checked.find_linked(self.checked.gained) - self.checked.find_linked(self.left_alone)


@dataclass(frozen=True, slots=True)
class PublishedDream:
    judged: ReviewedDraft
    transaction: str = ""
    """Empty: there was nothing to change."""
    waiting: tuple[str, ...] = ()
    """Ids of what a person has to accept."""


def review_draft(
    source: DreamInputs,
    draft: DreamDraft,
    today: date,
    settings: DreamSettings,
    edited: Iterable[str] = (),
) -> ReviewedDraft:
    """`edited` are files that are no longer as the dream saw them."""
    checked = check_dream(source.before, draft.texts, draft.reasons, today, source.log_texts)
    left_alone = {**checked.refused}
    left_alone |= {
        key: _WAITS for key in checked.changed if key in source.stored and source.stored[key].is_waiting
    }
    for key in checked.gained:
        refusal = _secret_in(draft.texts[key])
        left_alone |= {key: refusal} if refusal else {}
    # Also one that the dream did not change: others may rest on what it said.
    left_alone |= dict.fromkeys(edited, EDITED_REASON)
    judged = ReviewedDraft(draft, checked, left_alone, "")
    return ReviewedDraft(draft, checked, left_alone, explain_over_budget(checked, judged.publishes, settings))


def publish_dream(
    lease: Lease,
    memory: MemoryDir,
    source: DreamInputs,
    judged: ReviewedDraft,
    today: date,
    settings: DreamSettings,
    *,
    dream: str,
) -> PublishedDream:
    """Commit what may be published, as one transaction, and release the lease. Files that were edited
    meanwhile are left out with their groups. Blocks on the disk."""
    edited: set[str] = set()
    done: list[str] = []
    while not judged.objection:
        writing = _Writing(source, judged, dream)
        changes = writing.changes(judged.publishes)
        try:
            # Without a change too: the dream came to its end, and the next one is due in a day.
            lease.publish(lambda: done.extend(_commit(memory, changes, writing.why)))  # noqa: B023
        except MemoryConflict as conflict:
            if not {*conflict.keys} - edited:
                raise  # it does not say what else to leave out
            edited |= {*conflict.keys}
            judged = review_draft(source, judged.draft, today, settings, edited)
            continue
        return PublishedDream(judged, "".join(done))
    return PublishedDream(judged)


def propose_dream(
    memory: MemoryDir, source: DreamInputs, judged: ReviewedDraft, *, dream: str
) -> tuple[str, ...]:
    """Have what says something new wait for a person: it may come from a page that the fork has read. The ids
    of what waits. Blocks on the disk."""
    keys, writing = judged.proposes, _Writing(source, judged, dream)
    if judged.objection or not keys:
        return ()
    gained = [text for key in sorted(keys) for text in judged.checked.gained.get(key, ())]
    reason = f"a dream would add what no memory or log says: {gained[0][:200]!r}"
    origin = Origin(who="dream", why=writing.why, said_by="model", taint=frozenset(["transcript"]))
    changes = [
        replace(change, origin=origin) if isinstance(change, Write) else change
        for change in writing.changes(keys)
    ]
    return () if memory.was_asked(changes) else (memory.propose(changes, origin, reason).id,)


def _commit(memory: MemoryDir, changes: list[Write | Remove], why: str) -> list[str]:
    return [memory.commit(changes, Origin(who="dream", why=why)).id] if changes else []


@dataclass(frozen=True, slots=True)
class _Writing:
    source: DreamInputs
    judged: ReviewedDraft
    dream: str

    @property
    def why(self) -> str:
        return f"dream {self.dream}"

    def changes(self, keys: frozenset[str]) -> list[Write | Remove]:
        """The changes of these files, and a guard for each file that they rest on."""
        stored, texts = self.source.stored, self.judged.draft.texts
        guards = self.judged.checked.find_sources(keys) - keys
        made: list[Write | Remove] = []
        for key in sorted(keys):
            base = stored[key].sha256 if key in stored else None
            if key in texts:
                made.append(Write(key, texts[key], base, self._origin(key)))
            elif base is not None:
                made.append(Remove(key, base))
        made += (
            Write(key, stored[key].memory.text, stored[key].sha256)
            for key in sorted(guards)
            if key in stored and not key.startswith(LOGS_PREFIX)
        )
        return made if keys else []

    def _origin(self, key: str) -> Origin:
        """A file made of several carries on what is foreign in any of them."""
        known = {**self.source.stored, **self.source.logs}
        others = self.judged.checked.sources.get(key, frozenset())
        origins = [known[each].origin for each in (key, *sorted(others)) if each in known]
        said: set[SaidBy] = {origin.said_by for origin in origins}
        roots = {origin.root for origin in origins}
        made_of = ", ".join(sorted(other for other in others if not other.startswith(ARCHIVE_PREFIX)))
        return Origin(
            who="dream",
            why=f"{self.why}: made of {made_of}" if made_of else self.why,
            session=origins[0].session if len(origins) == 1 else "",
            messages=origins[0].messages if len(origins) == 1 else (),
            said_by=said.pop() if len(said) == 1 else "unknown",
            taint=join_taint(*origins),
            evidence=tuple(dict.fromkeys(text for origin in origins for text in origin.evidence)),
            root=roots.pop() if len(roots) == 1 else "",
        )


def _secret_in(text: str) -> str:
    """Why a text may not be remembered; empty when it holds no secret."""
    try:
        refuse_secrets(text)
    except InputError as error:
        return str(error)
    return ""


# The record of a dream: what it did, why, and its diff.

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
    left_alone: Annotated[tuple[str, ...], JsonForm(name="spared")] = ()
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
        reason = f": {self.reason}" if self.reason else ""
        found = [f"dream {self.id} {_SAID.get(self.outcome, self.outcome)}{reason}"]
        counts = (
            (len(self.changed), "written"),
            (len(self.removed), "merged into others or removed"),
            (len(self.archived), "archived"),
        )
        found += [f"  {count} {what}" for count, what in counts if count]
        found += [f"  left as it is: {text}" for text in self.left_alone]
        found += [f"  dropped: {text}" for text in self.let_go]
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
        self._folder.replace(f"{record.id}.json", write_json(write_fields(record)) + b"\n")

    def read(self, dream: str) -> DreamRecord:
        """Read one record; `InputError` if there is none."""
        try:
            wire = read_object(self._folder.read(f"{dream}.json", max_bytes=MAX_ACCOUNT_BYTES))
            return read_fields(DreamRecord, wire)
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
        return self._folder.stat(f"{dream}.stop") is not None

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
