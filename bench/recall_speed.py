"""How fast memories are found among very many, and what their index takes to build and to keep."""

from __future__ import annotations

import hashlib
import json
import random
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sevenfold.core.memories import Origin, read_memory
from sevenfold.layers.memory.search.large_index import DiskIndex
from sevenfold.layers.memory.search.memory_index import MemoryIndex, TextCache
from sevenfold.layers.memory.search.vectors import TextEncoder
from sevenfold.store.memory.changes import StoredMemory, TransactionId

QUESTIONS = 200
SENTENCES = 3
"""Of a memory: a fact, why, and how it is applied."""
AT_ONCE = 100_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def measure_small(data: Path, encoder: TextEncoder, count: int, cache: Path | None) -> None:
    print(f"\n{count:,} memories, words and meanings")
    index = MemoryIndex(TextCache(cache / "speed.sqlite" if cache else None), encoder)
    before, begun = _resident_mb(), time.process_time()
    index.update(_stored(at, text) for at, text in enumerate(_texts(data, count)))
    print(f"  words indexed in {time.process_time() - begun:.1f} s of one core")
    begun = time.process_time()
    while index.embed():
        pass
    took = time.process_time() - begun
    print(f"  vectors computed in {took:.0f} s of one core, {count / took:.0f} a second; once for each text")
    print(f"  memory {_resident_mb() - before:.0f} MB")
    _report(_timed(index.rank, _questions(data)))


def measure_large(data: Path, count: int) -> None:
    print(f"\n{count:,} memories, words alone, on disk")
    # Parts of the index may still be merged in the background when it is closed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        index = DiskIndex.open(Path(folder))
        begun, wall = time.process_time(), time.perf_counter()
        for at, text in enumerate(_texts(data, count)):
            index.add(f"{at}.md", text, version="1")
            if at % AT_ONCE == AT_ONCE - 1:
                index.commit()
        index.commit()
        cpu, took = time.process_time() - begun, time.perf_counter() - wall
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        print(f"  built in {cpu:.0f} s of processor time ({took:.0f} s), {size / 1e6:.0f} MB on disk")
        _report(_timed(lambda question: index.rank(question, 20), _questions(data)))
        begun = time.perf_counter()
        index.add("new.md", "The retrier makes seven attempts.", version="1")
        index.commit()
        print(f"  one more memory: {(time.perf_counter() - begun) * 1e3:.0f} ms until it is found")
        index.close()
        begun = time.perf_counter()
        again = DiskIndex.open(Path(folder))
        again.rank("attempts of the retrier", 5)
        print(f"  opened again and asked: {(time.perf_counter() - begun) * 1e3:.0f} ms")
        again.close()
    print(f"  at most {_resident_mb():.0f} MB of memory in this process so far")


def _texts(data: Path, count: int) -> Iterator[str]:
    """Made of sentences of the sets' documents, so that words are as common as they are."""
    paths = sorted((data / "retrieval").glob("*/docs.jsonl"))
    texts = (str(json.loads(line)["text"]) for path in paths for line in path.read_text("utf-8").splitlines())
    parts = (part.strip() for text in texts for part in re.split(r"(?<=[.!?])\s+|\n", text))
    sentences = [part for part in parts if 20 < len(part) < 400]
    chance = random.Random(7)
    for _ in range(count):
        yield " ".join(chance.choices(sentences, k=SENTENCES))


def _questions(data: Path) -> list[str]:
    """Of the sets, those that are short enough to be typed."""
    paths = sorted((data / "retrieval").glob("*/queries.jsonl"))
    asked = [
        str(json.loads(line)["query"]) for path in paths for line in path.read_text("utf-8").splitlines()
    ]
    return random.Random(7).sample([text for text in asked if len(text) < 500], QUESTIONS)


def _stored(at: int, text: str) -> StoredMemory:
    origin = Origin(who="user", why="for a benchmark")
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return StoredMemory(
        memory=read_memory(f"{at}.md", text),
        sha256=sha256,
        modified=NOW,
        origin=origin,
        transaction=TransactionId("t"),
    )


@dataclass(frozen=True, slots=True)
class Times:
    """Of questions, in milliseconds, each sorted. On a busy machine only the processor's say anything."""

    wall: list[float]
    processor: list[float]


def _timed(ask: Callable[[str], object], questions: Sequence[str]) -> Times:
    for question in questions[:10]:
        ask(question)
    times = Times([], [])
    for question in questions:
        wall, processor = time.perf_counter(), time.thread_time()
        ask(question)
        times.wall.append((time.perf_counter() - wall) * 1e3)
        times.processor.append((time.thread_time() - processor) * 1e3)
    times.wall.sort()
    times.processor.sort()
    return times


def _report(times: Times) -> None:
    for name, took in (("a question", times.wall), ("of the processor", times.processor)):
        p50, p95 = took[len(took) // 2], took[len(took) * 95 // 100]
        print(f"  {name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, least {took[0]:.1f} ms ({len(took)} questions)")


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
