"""Many small trials spread over a few processes: most of their time is waiting for the disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.torture.crew import Crew

T = TypeVar("T")

WORKERS = 6
"""Thrice the cores of a small machine; fsyncs of several processes share one commit of the journal."""

_LONGEST_TEXT = 900
_MOST_TEXTS = 3
"""Three of these and their quotes stay below what a pipe takes in one piece, so lines never mix."""


@dataclass(frozen=True, slots=True)
class Verdict:
    index: int
    wrong: list[str]


def try_all(
    items: Sequence[T], trial: Callable[[T, Path], list[str]], place: Path, workers: int = WORKERS
) -> Iterator[Verdict]:
    """Each trial's verdict as it comes in. A trial gets a path of its own that it may use as it likes."""
    read_end, write_end = os.pipe()
    with Crew() as crew, os.fdopen(read_end, "rb") as results:
        for number in range(workers):
            crew.start(
                lambda number=number: _work(
                    items, trial, place / f"worker-{number}", number, workers, write_end
                )
            )
        os.close(write_end)
        for line in results:
            answer = json.loads(line)
            yield Verdict(int(answer["index"]), [str(text) for text in answer["wrong"]])
        for pid in crew.pids:
            if code := crew.wait(pid):
                yield Verdict(-1, [f"a worker of the rig ended with {code}"])


def _work(
    items: Sequence[T], trial: Callable[[T, Path], list[str]], place: Path, first: int, step: int, pipe: int
) -> None:
    for index in range(first, len(items), step):
        wrong = [text[:_LONGEST_TEXT] for text in trial(items[index], place)[:_MOST_TEXTS]]
        os.write(pipe, json.dumps({"index": index, "wrong": wrong}).encode() + b"\n")
