"""Where a scenario is played, and what was seen of it: steps begun, acknowledged, or refused.

A step that was begun and not acknowledged is in doubt: it may have happened or not, but not by half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import SevenfoldError
from sevenfold.store.files.disk import Disk, SystemDisk


class Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)
Note = Callable[[str], None]

BEGUN, DONE, REFUSED, ESCAPED, FINISHED = "begun", "done", "refused", "escaped", "finished"


class QuickDisk(SystemDisk):
    """A disk for those who look at what is left: they have nothing of their own to make durable."""

    def fsync(self, fd: int) -> None:
        pass


QUICK_DISK = QuickDisk()


def clock_after(hours: float) -> ManualClock:
    """The clock of somebody who comes this long after a stage was opened."""
    clock = ManualClock()
    clock.pass_time(timedelta(hours=hours))
    return clock


class Stage:
    """A folder, a disk with whatever is wrong with it, a clock, and somebody who takes notes."""

    def __init__(self, root: Path, disk: Disk, note: Note) -> None:
        self.root = root
        self.disk = disk
        self.clock = ManualClock()
        self._note = note
        self._exits = ExitStack()

    def close(self) -> None:
        self._exits.close()

    def attempt(self, step: str, act: Callable[[], object]) -> bool:
        """Do one step and note whether it was acknowledged. Only errors of our own may come out of it."""
        self._note(f"{BEGUN}\t{step}")
        try:
            told = act()
        except SevenfoldError as error:
            self._note(f"{REFUSED}\t{step}\t{type(error).__name__}")
            return False
        self._note(f"{DONE}\t{step}\t{told if isinstance(told, str) else ''}")
        return True

    def insist(self, step: str, act: Callable[[], object]) -> bool:
        """The same, once more after a refusal, as any caller would."""
        return self.attempt(step, act) or self.attempt(step, act)

    def get(self, step: str, make: Callable[[], T]) -> T | None:
        """Something that a step opens, closed with the stage; None when it was refused twice."""
        made: list[T] = []
        self.insist(step, lambda: made.append(make()))
        for opened in made:
            self._exits.callback(self.attempt, "close", opened.close)
        return made[0] if made else None


class Scenario(Protocol):
    """One thing the store is used for, and what must hold afterwards whatever happened meanwhile."""

    @property
    def name(self) -> str: ...
    def prepare(self, root: Path) -> None:
        """What is there before; nothing goes wrong yet."""
        ...

    def run(self, stage: Stage) -> None: ...
    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        """Recover as the next process would, and yield whatever is not as it must be."""
        ...


@dataclass(slots=True, kw_only=True)
class Seen:
    """What a run told before it ended."""

    begun: list[str] = field(default_factory=list[str])
    done: dict[str, str] = field(default_factory=dict[str, str])
    """What each acknowledged step told."""
    refused: list[str] = field(default_factory=list[str])
    escaped: str | None = None
    """An error that is none of ours, and must not come out of the store."""
    finished: bool = False

    @classmethod
    def of(cls, notes: Iterable[str]) -> Seen:
        seen = cls()
        for line in notes:
            seen.take(line)
        return seen

    def take(self, line: str) -> None:
        verb, step, told = (*line.split("\t", 2), "", "")[:3]
        match verb:
            case "begun":
                self.begun.append(step)
            case "done":
                self.done[step] = told
            case "refused":
                self.refused.append(step)
            case "escaped":
                self.escaped = step
            case _:
                self.finished = verb == FINISHED

    def copy(self) -> Seen:
        return Seen(
            begun=[*self.begun],
            done={**self.done},
            refused=[*self.refused],
            escaped=self.escaped,
            finished=self.finished,
        )


def play(scenario: Scenario, root: Path, disk: Disk, note: Note) -> None:
    """Run a scenario to its end, or note what came out of it that must not."""
    stage = Stage(root, disk, note)
    try:
        scenario.run(stage)
        stage.close()
    except Exception as error:
        note(f"{ESCAPED}\t{type(error).__name__}: {error}".replace("\n", " "))
    else:
        note(FINISHED)
    finally:
        stage.close()


def judged(scenario: Scenario, root: Path, seen: Seen) -> list[str]:
    """Everything wrong with what a run left behind; that it cannot be looked at is wrong too."""
    found = [f"an error that is none of ours came out: {seen.escaped}"] if seen.escaped else []
    try:
        found += scenario.judge(root, seen)
    except Exception as error:
        found.append(f"recovery failed: {type(error).__name__}: {error}")
    return found
