"""Finds memories for a prompt: the index follows the directory, and each result is checked before use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from sevenfold.core import events
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.memories import NO_USES, USER_WIDE_PREFIX, Memory, MemoryUse, MemoryUses
from sevenfold.core.settings import PlaceSettings
from sevenfold.layers.memory.recall.asking import weigh_asking
from sevenfold.layers.memory.recall.policy import (
    ManifestLine,
    RecallCandidate,
    RecalledMemory,
    RecallFacts,
    RecallSettings,
    choose_recalled,
)
from sevenfold.layers.memory.search.large_index import LARGE_FROM, LargeIndex, is_large
from sevenfold.layers.memory.search.lexical import spell_words
from sevenfold.layers.memory.search.memory_index import MemoryIndex, RankedMemory
from sevenfold.layers.memory.search.vectors import has_encoder
from sevenfold.store.memory.changes import StoredMemory
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import MarkStore, UseStore
from sevenfold.store.project.project import Project
from sevenfold.store.project.settings_files import find_checkout, find_user_home, read_settings

if TYPE_CHECKING:
    from sevenfold.layers.memory.trust.verifier import ProjectVerifiers

VERIFY_BUDGET = timedelta(milliseconds=100)
"""For all memories of one prompt. What time did not suffice for falls back on the last check's mark."""


@dataclass(frozen=True, slots=True)
class MemoryLibrary:
    """What a search of one project needs."""

    project: Project
    memory: MemoryDir
    home: Path
    """Where the weights of the encoder lie."""
    root: Path
    """What memories speak of."""


class MemoryFinder:
    """Over one memory directory. Every method blocks; one thread at a time, `embed` aside."""

    def __init__(self, library: MemoryLibrary, clock: Clock, emit: Emit) -> None:
        self._library, self._clock, self._emit = library, clock, emit
        self._stored: dict[str, StoredMemory] = {}
        state = library.project.memory_state
        self._index = self._open_index()
        self._uses, self._marks = UseStore(state, emit=emit), MarkStore(state, emit=emit)
        self._verifiers: ProjectVerifiers | None = None
        self._generation: tuple[int, int] | None = None

    def close(self) -> None:
        self._index.close()

    def load_encoder(self) -> bool:
        """Load the encoder, if one was set up, to search by vectors as well. Takes up to a second."""
        if not has_encoder(self._library.home):
            return False
        # Not at the top: most searches are by words alone.
        from sevenfold.layers.memory.search.encoders import find_encoder

        encoder = find_encoder(self._library.home, emit=self._emit)
        if encoder is None:
            return False
        if isinstance(self._index, LargeIndex):
            self._emit(
                events.VectorsUnused(f"more than {LARGE_FROM:,} memories are searched on disk, by words")
            )
            return False
        self._follow()
        self._index.use(encoder, self._stored.values())
        return True

    @property
    def has_meanings(self) -> bool:
        return isinstance(self._index, MemoryIndex) and self._index.has_vectors

    def embed(self) -> int:
        """Compute some of the vectors that are missing; how many are left. For any thread."""
        return self._index.embed() if isinstance(self._index, MemoryIndex) else 0

    def rank(self, prompt: str, limit: int) -> tuple[RankedMemory, ...]:
        """The memories that the prompt is most about, with their scores, best first."""
        self._follow()
        return self._index.rank(prompt, limit)

    def find(self, prompt: str, limit: int) -> tuple[RecallCandidate, ...]:
        """What the prompt may be about, the best first."""
        found = self.rank(prompt, limit)
        if not found:
            return ()
        uses, now = {**self._read_wide_uses(), **self._uses.read()}, self._clock.now()
        warmth = {one.key: uses.get(one.key, NO_USES).warmth_at(now) for one in found}
        memories = {one.key: self._stored[one.key].memory for one in found}
        return make_candidates(found, memories, warmth, weigh_asking(prompt))

    def explain(self, prompt: str, limit: int) -> tuple[RecallCandidate, ...]:
        """As `find`, for a person: the words in common are spelled as in the prompt."""
        return tuple(replace(one, words=spell_words(prompt, one.words)) for one in self.find(prompt, limit))

    def measure_prompt(self, prompt: str) -> float:
        """How much there is to look for, as a number of words that hardly any memory holds."""
        return self._index.measure_prompt(prompt) * min(1.0, weigh_asking(prompt))

    def filled(self, found: Sequence[RecallCandidate], limit: int) -> tuple[RecallCandidate, ...]:
        """These and the newest others: a model may recognize what is meant where no word matches."""
        known = {one.key for one in found}
        newest = (stored.memory for key, stored in self._stored.items() if key not in known)
        others = islice(newest, max(0, limit - len(found)))
        return (
            *found,
            *(
                RecallCandidate(
                    key=m.key,
                    kind=m.kind,
                    name=m.name,
                    description=m.description,
                    body=m.body,
                    share=0.0,
                    rare_words=0.0,
                )
                for m in others
            ),
        )

    def read(self, key: str) -> StoredMemory | None:
        """A memory, as it was when the last prompt was ranked."""
        return self._stored.get(key)

    def list(self, keys: Iterable[str]) -> tuple[ManifestLine, ...]:
        """Lines of a manifest."""
        stored = [self._stored[key] for key in keys]
        return tuple(
            ManifestLine(one.memory.key, one.memory.kind, one.modified, one.memory.description)
            for one in stored
        )

    def take(self, chosen: Sequence[RecallCandidate]) -> tuple[RecalledMemory, ...]:
        """These memories as they enter a view, checked against the project."""
        # Not at the top: who only searches takes nothing, and checks nothing.
        from sevenfold.layers.memory.trust.verifier import ProjectVerifiers, describe_broken_claims

        if self._verifiers is None:
            self._verifiers = ProjectVerifiers(self._library.project, self._library.root)
        each = VERIFY_BUDGET / max(1, len(chosen))
        marks = self._marks.read()
        taken: list[RecalledMemory] = []
        for one in chosen:
            stored = self._stored[one.key]
            is_wide = one.key.startswith(USER_WIDE_PREFIX)
            found = () if is_wide else self._verifiers.verify(stored, each)
            if found:
                self._emit(events.ClaimsBroken(one.key, ", ".join(item.claim.text for item in found)))
            broken = describe_broken_claims(found)
            mark = marks.get(one.key)
            if not broken and mark is not None and mark.sha256 == stored.sha256 and mark.broken:
                broken = f"could not be confirmed on {mark.at:%Y-%m-%d}: {', '.join(mark.broken)}"
            path = self._locate(one.key)
            body = stored.memory.body
            taken.append(
                RecalledMemory(
                    key=one.key,
                    path=path,
                    body=body,
                    modified=stored.modified,
                    origin=stored.origin,
                    doubt=broken,
                )
            )
        return tuple(taken)

    def count(self, keys: Iterable[str], now: datetime) -> None:
        """Count that these memories were shown to the model."""
        own, wide = list[MemoryUse](), list[MemoryUse]()
        for key in keys:
            bare = key.removeprefix(USER_WIDE_PREFIX)
            (own if bare == key else wide).append(MemoryUse(bare, "recalled"))
        self._uses.add(own, now)
        user_wide = self._library.memory.user_wide
        if wide and user_wide is not None:
            UseStore(user_wide.project.memory_state, emit=self._emit).add(wide, now)

    def _open_index(self) -> MemoryIndex | LargeIndex:
        state, memory = self._library.project.memory_state, self._library.memory
        if is_large(len(memory.keys())):
            return LargeIndex.open(state, self._stored.get, emit=self._emit)
        return MemoryIndex.open(state, emit=self._emit)

    def _follow(self) -> None:
        memory, user_wide = self._library.memory, self._library.memory.user_wide
        generation = (memory.generation(), user_wide.generation() if user_wide else 0)
        if generation != self._generation:
            stored = [*memory.scan(limit=None), *memory.scan_user_wide()]
            self._stored.clear()
            self._stored.update((one.memory.key, one) for one in stored)
            self._index.update(stored)
            self._generation = generation

    def _locate(self, key: str) -> str:
        user_wide, bare = self._library.memory.user_wide, key.removeprefix(USER_WIDE_PREFIX)
        above = self._library.memory if bare == key or user_wide is None else user_wide
        return str(above.path / bare)

    def _read_wide_uses(self) -> dict[str, MemoryUses]:
        user_wide = self._library.memory.user_wide
        if user_wide is None:
            return {}
        uses = UseStore(user_wide.project.memory_state, emit=self._emit).read()
        return {f"{USER_WIDE_PREFIX}{key}": one for key, one in uses.items()}


def make_candidates(
    found: Sequence[RankedMemory],
    memories: Mapping[str, Memory],
    warmth: Mapping[str, float],
    asking: float = 1.0,
) -> tuple[RecallCandidate, ...]:
    """What was found, with all that the policy looks at; of two that rank the same, the warmer first."""
    ranked = sorted(found, key=lambda one: (-one.score, -warmth.get(one.key, 0.0)))
    best = (ranked[0].score if ranked else 0.0) or 1.0
    return tuple(
        RecallCandidate(
            key=one.key,
            kind=memories[one.key].kind,
            name=memories[one.key].name,
            description=memories[one.key].description,
            body=memories[one.key].body,
            share=one.overlap.share,
            rare_words=one.overlap.rare_words,
            meaning=one.meaning,
            evidence=one.overlap.evidence,
            margin=one.margin,
            warmth=warmth.get(one.key, 0.0),
            words=one.overlap.words,
            score_share=one.score / best,
            asking=asking,
        )
        for one in ranked
    )


def recall(
    memory: MemoryDir,
    prompt: str,
    *,
    limit: int | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore_event,
) -> tuple[RecalledMemory, ...]:
    """The memories that an agent with this prompt would be reminded of, checked against the project.

    By meaning too where that was set up, for which the vectors of all that is new are computed first.
    """
    known, root = os.environ if environ is None else environ, memory.project.root
    sections = (PlaceSettings, RecallSettings)
    settings = read_settings(sections, root=find_checkout(root), environ=known, is_part=True, emit=emit)
    rules, home = settings.of(RecallSettings), settings.of(PlaceSettings).home_folder(find_user_home(known))
    most = rules.max_files if limit is None else limit
    with closing(
        MemoryFinder(MemoryLibrary(memory.project, memory, home, root), SystemClock(), emit)
    ) as finder:
        if rules.vectors and finder.load_encoder():
            while finder.embed():
                pass
        found = finder.find(prompt, most)
        return finder.take(choose_recalled(found, RecallFacts(), replace(rules, max_files=most)))
