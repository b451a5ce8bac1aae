"""Reviews a draft and publishes it under the lease: each file only if it is unchanged since the dream read
it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from sevenfold.core.errors import InputError, MemoryConflict
from sevenfold.core.memories import ARCHIVE_PREFIX, LOGS_PREFIX, Origin, SaidBy, join_taint
from sevenfold.core.secrets import refuse_secrets
from sevenfold.layers.dreams.check import DreamCheck, check_dream, explain_over_budget
from sevenfold.layers.dreams.inputs import DreamInputs
from sevenfold.layers.dreams.merge import DreamDraft
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.store.files.locks import Lease
from sevenfold.store.memory.changes import Remove, Write
from sevenfold.store.memory.directory import MemoryDir

EDITED_REASON = "it was edited while the dream went on"
_WAITS = "another text for it waits for a person (`sevenfold memory review`)"


@dataclass(frozen=True, slots=True)
class ReviewedDraft:
    """What of a draft may be published, what a person has to accept, and what stays as it is."""

    draft: DreamDraft
    checked: DreamCheck
    spared: Mapping[str, str]
    """Files that are left as they are, each with the reason."""
    objection: str
    """Why none of it is published; empty: it is."""

    @property
    def publishes(self) -> frozenset[str]:
        return self.checked.without({*self.spared, *self.checked.gained})

    @property
    def proposes(self) -> frozenset[str]:
        return self.checked.together(self.checked.gained) - self.checked.together(self.spared)


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
    spared = {**checked.refused}
    spared |= {
        key: _WAITS for key in checked.changed if key in source.stored and source.stored[key].is_waiting
    }
    for key in checked.gained:
        refusal = _secret_in(draft.texts[key])
        spared |= {key: refusal} if refusal else {}
    # Also one that the dream did not change: others may rest on what it said.
    spared |= dict.fromkeys(edited, EDITED_REASON)
    judged = ReviewedDraft(draft, checked, spared, "")
    return ReviewedDraft(draft, checked, spared, explain_over_budget(checked, judged.publishes, settings))


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
        guards = self.judged.checked.leans_on(keys) - keys
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
        made_of = ", ".join(sorted(other for other in others if not other.startswith(ARCHIVE_PREFIX)))
        return Origin(
            who="dream",
            why=f"{self.why}: made of {made_of}" if made_of else self.why,
            session=origins[0].session if len(origins) == 1 else "",
            messages=origins[0].messages if len(origins) == 1 else (),
            said_by=said.pop() if len(said) == 1 else "unknown",
            taint=join_taint(*origins),
        )


def _secret_in(text: str) -> str:
    """Why a text may not be remembered; empty when it holds no secret."""
    try:
        refuse_secrets(text)
    except InputError as error:
        return str(error)
    return ""
