"""Rig: hostile paths for every file tool under every permission, and a link swapped in between."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from sevenfold.agent.tools.file_changes import WriteTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.core.json import freeze_object
from tests.torture.file_stage import CANARY, KEY, Attempt, Stage, Trial, attempts, read_paths
from tests.torture.rig import Orders, Outcome, outcome

LONGEST_SECONDS = 20
_AT_CWD = -100


class Hung(Exception):
    """A call that waits for something which never comes."""


def run_files(orders: Orders) -> list[Outcome]:
    lines = read_paths()
    chosen = orders.random("files").sample(lines, orders.pick(30, 400, len(lines)))
    with orders.scratch("files") as folder:
        stage = Stage(Path(os.path.realpath(folder)) / "stage")
        return [run_lines(stage, chosen, orders), run_swaps(stage, orders)]


def run_lines(stage: Stage, lines: Sequence[str], orders: Orders) -> Outcome:
    with outcome("hostile paths", "calls") as found:
        asyncio.run(_try_paths(stage, lines, orders, found))
        found.notes.append(
            f"{len(lines):,} paths, {len(stage.trials())} permissions, {len(attempts('x'))} tools"
        )
    return found


async def _try_paths(stage: Stage, lines: Sequence[str], orders: Orders, found: Outcome) -> None:
    stage.set_up()
    before = stage.look()
    previous = signal.signal(signal.SIGALRM, _hang)
    changed, line = 0, ""
    try:
        for number, line in enumerate(lines):
            orders.progress("hostile paths", number, len(lines), "lines")
            for trial in stage.trials():
                for attempt in attempts(stage.fill_in(line)):
                    signal.alarm(LONGEST_SECONDS)
                    said = await attempt.make(trial, stage, stage.place())
                    signal.alarm(0)
                    found.count += 1
                    after = stage.look()
                    _judge(stage, trial, attempt, said, _changes(before, after), found)
                    if after != before:
                        changed += 1
                        stage.set_up()
                        before = stage.look()
    except Hung:
        found.wrong(f"hung on {line!r:.80}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    found.notes.append(f"{changed:,} changed a file that they may change")


def _judge(
    stage: Stage, trial: Trial, attempt: Attempt, said: str, changes: Sequence[str], found: Outcome
) -> None:
    call = f"{trial.name}: {attempt.tool.spec.name} {str(attempt.given)[:120]}"
    for path in changes:
        if not stage.may_change(trial, path):
            found.wrong(f"{call} changed {path}")
    has_read = (CANARY in said and trial.name != "bypass") or (
        KEY in said and trial.name not in ("bypass", "fork")
    )
    if said.startswith("BROKEN") or has_read:
        found.wrong(f"{call}: {said[:120]}")


def _changes(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> list[str]:
    return [path for path in {*before, *after} if before.get(path) != after.get(path)]


def run_swaps(stage: Stage, orders: Orders) -> Outcome:
    """A folder becomes a link to another one and back, over and over, while it is written and read in."""
    with outcome("folder swapped for a link", "calls") as found:
        stage.set_up()
        (stage.root / "swap").mkdir()
        (stage.root / "swap/secret").write_text("text\n")
        (stage.root / "swap_link").symlink_to(stage.base / "outside")
        stopped = threading.Event()
        swapper = threading.Thread(target=_swap, args=(stage, stopped))
        swapper.start()
        try:
            asyncio.run(_use_swapped(stage, orders.pick(100, 1_000, 5_000), found))
        finally:
            stopped.set()
            swapper.join()
    return found


def _swap(stage: Stage, stopped: threading.Event) -> None:
    here, link = stage.root / "swap", stage.root / "swap_link"
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    words = (os.fsencode(here), os.fsencode(link))
    while not stopped.is_set():
        # In one step, so that the name always leads somewhere.
        exchange(_AT_CWD, ctypes.c_char_p(words[0]), _AT_CWD, ctypes.c_char_p(words[1]), ctypes.c_uint(2))


async def _use_swapped(stage: Stage, times: int, found: Outcome) -> None:
    before = set(os.listdir(stage.base / "outside"))
    trial = next(trial for trial in stage.trials() if trial.name == "accept-edits")
    escaped: list[int] = []
    for number in range(times):
        write = freeze_object({"file_path": f"swap/new{number}", "content": "planted\n"})
        await Attempt(WriteTool(), write).make(trial, stage, stage.place())
        read = Attempt(ReadTool(), freeze_object({"file_path": "swap/secret"}))
        if CANARY in await read.make(trial, stage, stage.place()):
            escaped.append(number)
        found.count += 2
    written = set(os.listdir(stage.base / "outside")) - before
    if written:
        # First, since only so many are shown.
        found.wrong(f"{len(written)} files were written through the link")
    for number in escaped:
        found.wrong(f"a read in call {number} got out")


def _hang(_number: int, _frame: object) -> None:
    raise Hung
