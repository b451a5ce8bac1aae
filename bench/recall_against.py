"""The ranking of another checkout on the same sets, question by question, beside ours.

    python bench/recall.py --data DIR --against CHECKOUT

Run as a program it prints the recall@5 of each question by words as JSON, with whatever `sevenfold` is first
on the path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import cast

import numpy as np
from recall_sets import CUT, QuestionSet, Scores, read_sets, resample_mean

from sevenfold.core.memories import Origin, read_memory, write_memory
from sevenfold.layers.memory.search.memory_index import MemoryIndex, TextCache
from sevenfold.store.memory.changes import StoredMemory, TransactionId


def rank_set(found: QuestionSet) -> list[float]:
    """Recall@5 of each question by words alone."""
    spaces = {name: _index(texts) for name, texts in found.spaces.items()}
    recalled: list[float] = []
    for one in found.questions:
        index, names = spaces[one.space]
        first = {names[hit.key] for hit in index.rank(one.text, CUT)}
        recalled.append(len(one.gold & first) / len(one.gold))
    return recalled


def _index(texts: dict[str, str]) -> tuple[MemoryIndex, dict[str, str]]:
    names = {f"m{sha256(key.encode()).hexdigest()[:12]}.md": key for key in texts}
    index = MemoryIndex(TextCache(None))
    index.update([_store(name, texts[key]) for name, key in names.items()])
    return index, names


def _store(name: str, text: str) -> StoredMemory:
    written = write_memory("-", "", "project", text)
    return StoredMemory(
        memory=read_memory(name, written),
        sha256=sha256(written.encode()).hexdigest(),
        modified=datetime(2026, 1, 1, tzinfo=UTC),
        origin=Origin(who="user", why="measured", said_by="user"),
        transaction=TransactionId("t"),
    )


def report_against(sets: Sequence[QuestionSet], data: Path, checkout: Path) -> None:
    """Paired differences by words, with 90 % of resamples, and the mean of the sets."""
    environ = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, __file__, str(data)], env=environ, capture_output=True, text=True, check=True
    )
    theirs = cast("dict[str, list[float]]", json.loads(done.stdout))
    print(
        f"\nby words, against {checkout}\nset                  there    here  difference  (90% of resamples)"
    )
    changes: list[float] = []
    for found in sets:
        before: Scores = np.array(theirs[found.name])
        after: Scores = np.array(rank_set(found))
        low, high = resample_mean(after - before)
        changes.append(float((after - before).mean()))
        print(
            f"{found.name[:19]:19} {before.mean():7.4f} {after.mean():7.4f} {changes[-1]:+11.4f}"
            f"  ({low:+.4f} to {high:+.4f})"
        )
    print(f"{'mean of the sets':19} {'':15} {np.mean(changes):+11.4f}")


if __name__ == "__main__":
    print(json.dumps({found.name: rank_set(found) for found in read_sets(Path(sys.argv[1]))}))
