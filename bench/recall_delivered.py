"""What a session shows, beside what the ranking finds: delivered recall, and silence on prompts that ask for
nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np
from recall_sets import CUT, QuestionSet, Scores, resample_mean
from recall_silence import list_generic_prompts
from recall_silence_code import CODE_AFTERWARDS, CODE_SEEN

from sevenfold.core.memories import Memory, Origin, read_memory, write_memory
from sevenfold.layers.memory.recall.asking import weigh_asking
from sevenfold.layers.memory.recall.finder import make_candidates
from sevenfold.layers.memory.recall.policy import (
    RecallCandidate,
    RecallFacts,
    RecallSettings,
    choose_recalled,
    needs_side_query,
)
from sevenfold.layers.memory.search.lexical import split_words
from sevenfold.layers.memory.search.memory_index import MemoryIndex, TextCache
from sevenfold.layers.memory.search.vectors import TextEncoder
from sevenfold.store.memory.changes import StoredMemory, TransactionId

SETTINGS = RecallSettings()
DIRECTORY_SIZE = 600
ELSEWHERE = 30
"""Questions of each set that are put to each directory of another one."""


class Directory:
    """Documents as a session would have them: the index of memories, and what the policy shows of it."""

    def __init__(
        self,
        documents: Mapping[str, str],
        encoder: TextEncoder | None,
        cache: Path | None,
        *,
        is_named: bool = False,
    ) -> None:
        stored = [make_memory(key, text, is_named=is_named) for key, text in documents.items()]
        self._memories: dict[str, Memory] = {one.memory.key: one.memory for one in stored}
        self._names: dict[str, str] = {
            one.memory.key: key for one, key in zip(stored, documents, strict=True)
        }
        names = "\0".join(one.sha256 for one in stored)
        path = cache / f"{hashlib.sha256(names.encode()).hexdigest()[:16]}.db" if cache else None
        self.index = MemoryIndex(TextCache(path), encoder)
        self.index.update(stored)
        while self.index.embed():
            pass

    def __len__(self) -> int:
        return len(self._memories)

    def find(self, prompt: str) -> tuple[RecallCandidate, ...]:
        found = self.index.rank(prompt, SETTINGS.candidates)
        return make_candidates(found, self._memories, {}, weigh_asking(prompt))

    def measure_prompt(self, prompt: str) -> float:
        return self.index.measure_prompt(prompt) * min(1.0, weigh_asking(prompt))

    def names(self, found: Iterable[RecallCandidate]) -> list[str]:
        return [self._names[one.key] for one in found]

    def holds_word_of(self, prompt: str) -> bool:
        words = {word for word in split_words(prompt) if " " not in word}
        return any(words & set(one.words) for one in self.find(prompt))


def make_memory(key: str, text: str, *, is_named: bool = False) -> StoredMemory:
    """A memory of a project has a name and says in its first line what it is about. That of a public set has
    a name that says nothing: only its text may be found."""
    name = f"m{hashlib.sha256(key.encode()).hexdigest()[:12]}.md"
    written = write_memory("-", "", "project", text)
    if is_named:
        name, (title, _, body) = f"{key}.md", text.partition("\n")
        written = write_memory(key, title[:150], "project", body or text)
    return StoredMemory(
        memory=read_memory(name, written),
        sha256=hashlib.sha256(written.encode()).hexdigest(),
        modified=datetime(2026, 1, 1, tzinfo=UTC),
        origin=Origin(who="user", why="measured", said_by="user"),
        transaction=TransactionId("t"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Of each question of a set."""

    name: str
    ranked: Scores
    delivered: Scores
    shown: float
    """Memories for a question, on average."""
    aside: dict[str, float]
    """Recall with a side query, by what answers it."""


def deliver(found: QuestionSet, encoder: TextEncoder | None, cache: Path | None) -> Delivery:
    spaces = {name: Directory(each, encoder, cache) for name, each in found.spaces.items()}
    ranked: list[float] = []
    delivered: list[float] = []
    sizes: list[int] = []
    aside: dict[str, list[float]] = {"oracle": [], "noisy": []}
    random = Random(7)
    for question in found.questions:
        directory, gold = spaces[question.space], question.gold
        candidates = directory.find(question.text)
        chosen = choose_recalled(candidates, RecallFacts(), SETTINGS)
        names, shown = directory.names(candidates), directory.names(chosen)
        ranked.append(len(gold & set(names[:CUT])) / len(gold))
        delivered.append(len(gold & set(shown)) / len(gold))
        sizes.append(len(shown))
        told = directory.measure_prompt(question.text)
        for who, misses in (("oracle", 0.0), ("noisy", 0.3)):
            both = ask_aside(names, shown, gold, misses, random) if needs_side_query(told) else shown
            aside[who].append(len(gold & set(both)) / len(gold))
    means = {who: float(np.mean(values)) for who, values in aside.items()}
    return Delivery(
        name=found.name,
        ranked=np.array(ranked),
        delivered=np.array(delivered),
        shown=float(np.mean(sizes)),
        aside=means,
    )


def ask_aside(
    offered: Sequence[str], shown: Sequence[str], gold: frozenset[str], misses: float, random: Random
) -> list[str]:
    """With a model that names what is right, misses some of it, and as often names something wrong first."""
    kept = list(shown)[: SETTINGS.max_files - 1]
    rest = [name for name in offered if name not in kept]
    named = [name for name in rest if name in gold and random.random() >= misses]
    wrong = [name for name in rest if name not in gold]
    if wrong and random.random() < misses:
        named.insert(0, random.choice(wrong))
    return [*kept, *named[: SETTINGS.max_files - len(kept)]]


def make_directories(sets: Sequence[QuestionSet]) -> Iterator[tuple[str, dict[str, str]]]:
    """Of every set that is large enough, and of the smaller ones together; at most 600 memories of each."""
    small: dict[str, str] = {}
    for found in sets:
        documents = {
            f"{space}/{key}": text for space, each in found.spaces.items() for key, text in each.items()
        }
        if len(documents) < 300:
            small.update({f"{found.name}/{key}": text for key, text in documents.items()})
        else:
            yield found.name, dict(list(documents.items())[:DIRECTORY_SIZE])
    if len(small) >= 300:
        yield "smaller sets", small


def report_delivery(
    sets: Sequence[QuestionSet], encoder: TextEncoder | None, cache: Path | None
) -> list[Delivery]:
    print(
        f"\n{'recall@5':19} questions   ranked  delivered  difference  (90% of resamples)   shown"
        "   side query: oracle   noisy"
    )
    found: list[Delivery] = []
    for each in sets:
        one = deliver(each, encoder, cache)
        low, high = resample_mean(one.delivered - one.ranked)
        lost = one.delivered.mean() - one.ranked.mean()
        print(
            f"{one.name[:19]:19} {len(one.ranked):9} {one.ranked.mean():8.4f} {one.delivered.mean():10.4f}"
            f" {lost:+11.4f}  ({low:+.4f} to {high:+.4f}) {one.shown:7.2f} {one.aside['oracle']:22.4f}"
            f" {one.aside['noisy']:7.4f}"
        )
        found.append(one)
    return found


def report_silence(sets: Sequence[QuestionSet], encoder: TextEncoder | None, cache: Path | None) -> None:
    prompts = list_generic_prompts()
    print(
        f"\n{len(prompts)} prompts that ask for nothing: how many bring anything\n"
        f"{'directory':19} memories  share a word      all  tuned kinds  unseen kinds  asked aside"
        "   questions of other sets   of any code: seen  written afterwards"
    )
    for name, documents in make_directories(sets):
        directory = Directory(documents, encoder, cache)
        noisy = [bool(choose_recalled(directory.find(one.text), RecallFacts(), SETTINGS)) for one in prompts]
        shares = [directory.holds_word_of(one.text) for one in prompts]
        told = [needs_side_query(directory.measure_prompt(one.text)) for one in prompts]
        tuned, unseen = (
            [is_noise for one, is_noise in zip(prompts, noisy, strict=True) if one.is_unseen == is_unseen]
            for is_unseen in (False, True)
        )
        code = [
            float(
                np.mean(
                    [bool(choose_recalled(directory.find(text), RecallFacts(), SETTINGS)) for text in texts]
                )
            )
            for texts in (CODE_SEEN, CODE_AFTERWARDS)
        ]
        strange = [
            bool(choose_recalled(directory.find(question.text), RecallFacts(), SETTINGS))
            for found in sets
            if found.name != name and (name != "smaller sets" or sum(map(len, found.spaces.values())) >= 300)
            for question in Random(7).sample(found.questions, min(ELSEWHERE, len(found.questions)))
        ]
        print(
            f"{name[:19]:19} {len(directory):8} {np.mean(shares):13.1%} {np.mean(noisy):8.1%}"
            f" {np.mean(tuned):12.1%} {np.mean(unseen):13.1%} {np.mean(told):12.1%} {np.mean(strange):25.1%}"
            f" {code[0]:19.1%} {code[1]:19.1%}"
        )
