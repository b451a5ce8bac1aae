"""How long the hooks of other agents take, as percentiles, and whether the resident process stays small.

    python bench/hooks.py                          # latency at 300 and 10,000 memories
    python bench/hooks.py --memories 300 --calls 200
    python bench/hooks.py --soak 100000            # hook calls over a simulated day: memory and descriptors

For each event: what the resident process takes to answer, asked over one connection after another, its own
processor time for that, and what the whole hook takes, its interpreter included, beside an interpreter that
does nothing. On a busy machine compare with that interpreter, and not with a number of milliseconds. `--soak`
runs the operations in this process with a clock that moves a day in all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from sevenfold import MemoryDir
from sevenfold.core.clock import ManualClock
from sevenfold.core.json import freeze_object
from sevenfold.core.memories import Origin, write_memory
from sevenfold.resident import client, hook_script
from sevenfold.resident.operations import ResidentOperations
from sevenfold.store.memory.changes import Write

SCRIPT = str(Path(hook_script.__file__))
SYLLABLES = ("al", "be", "co", "du", "fe", "gi", "ho", "ka", "lu", "mo", "ni", "pra")
WORDS = [f"{a}{b}{c}{d}" for a in SYLLABLES for b in SYLLABLES for c in "rstlm" for d in ("an", "ine", "o")]
BATCH = 500


def fill_memory(project: str, count: int) -> None:
    """Memories of some twenty words each, one of them a rule."""
    chance = random.Random(7)
    origin = Origin(who="user", why="bench", said_by="user", is_accepted=True)
    with MemoryDir.for_project(project) as memory:
        memory.add("no-push", "Never push on Fridays.", applies_to=["command:git push*"])
        for first in range(0, count, BATCH):
            writes = [
                Write(f"note-{number}.md", make_note(number, chance), None)
                for number in range(first, min(count, first + BATCH))
            ]
            memory.commit(writes, origin)


def make_note(number: int, chance: random.Random) -> str:
    words = " ".join(chance.choices(WORDS, k=20))
    return write_memory(f"note-{number}", f"About {words[:60]}", "project", f"The {words} of case {number}.")


def list_events(project: str, number: int) -> dict[str, dict[str, object]]:
    """An input for each event."""
    words = " ".join(random.Random(number).choices(WORDS, k=8))
    common = {"session_id": f"bench-{number % 50}", "cwd": project, "transcript_path": ""}
    push = {"tool_name": "Bash", "tool_use_id": f"use-{number}", "tool_input": {"command": "git push"}}
    fetch = {"tool_name": "WebFetch", "tool_use_id": f"get-{number}", "tool_input": {"url": "https://x"}}
    return {
        "SessionStart": {**common, "source": "startup"},
        "UserPromptSubmit": {**common, "prompt": f"What do we know about {words}?"},
        "PreToolUse": {**common, **push},
        "PostToolUse": {**common, **fetch, "tool_response": words},
        "PreCompact": {**common, "trigger": "auto"},
        "Stop": {**common, "stop_hook_active": False},
    }


def measure(work: Callable[[int], None], count: int) -> list[float]:
    """Milliseconds of each call, the first two left out."""
    taken: list[float] = []
    for number in range(count + 2):
        started = time.perf_counter()
        work(number)
        taken.append(1_000 * (time.perf_counter() - started))
    return sorted(taken[2:])


def percentile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


def show(name: str, values: Sequence[float], unit: float, more: str = "") -> None:
    shown = "  ".join(f"p{share * 100:.0f} {percentile(values, share):6.1f}" for share in (0.5, 0.95, 0.99))
    print(f"  {name:34} {shown} ms   {percentile(values, 0.5) / unit:4.2f} interpreters   {more}", flush=True)


def read_cpu_ms(pid: object) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1_000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_latency(memories: int, calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HOME": folder, "SEVENFOLD_HOME": f"{folder}/home"}
        project = f"{folder}/project"
        Path(project).mkdir()
        fill_memory(project, memories)
        pid = client.request("status", {}, deadline_seconds=120)["pid"]
        bare = measure(lambda _: run([sys.executable, "-c", "pass"]), calls)
        unit = percentile(bare, 0.5)
        print(f"{memories:,} memories")
        show("an interpreter that does nothing", bare, unit)
        for event in list_events(project, 0):
            ask(event, list_events(project, 0)[event])
            before = read_cpu_ms(pid)
            answers = measure(lambda n, event=event: ask(event, list_events(project, n)[event]), calls)
            each = (read_cpu_ms(pid) - before) / (calls + 2)
            show(f"{event}: the process", answers, unit, f"{each:.1f} ms of processor time")
        for event in list_events(project, 0):
            whole = measure(lambda n, event=event: run_hook(event, list_events(project, n)[event]), calls)
            show(f"{event}: the whole hook", whole, unit)
        client.request("stop", {}, deadline_seconds=60)


def ask(event: str, given: dict[str, object]) -> None:
    deadline = time.monotonic() + 120
    message = hook_script.render_hook_message(event, json.dumps(given), os.environ, deadline)
    reply = client.exchange(message, os.environ, deadline=deadline, starts=True)
    assert reply[:1] == client.STATUS_OK, reply


def run_hook(event: str, given: dict[str, object]) -> None:
    run([sys.executable, "-I", "-S", SCRIPT, event], json.dumps(given).encode())


def run(command: list[str], given: bytes = b"") -> None:
    subprocess.run(command, input=given, stdout=subprocess.DEVNULL, check=True)


def soak(calls: int) -> None:
    """Hook calls of many sessions over a day, with a clock that is moved."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {"HOME": folder, "SEVENFOLD_HOME": f"{folder}/home"}
        os.environ |= environ
        project = f"{folder}/project"
        Path(project).mkdir()
        fill_memory(project, 50)
        clock = ManualClock()
        operations = ResidentOperations(clock, environ=environ)
        events = list(list_events(project, 0))
        step = timedelta(hours=24) / calls
        for number in range(calls):
            event = events[number % len(events)]
            given = {**list_events(project, number)[event], "session_id": f"day-{number // 60}"}
            arguments = freeze_object({"event": event, "input": json.dumps(given)})
            operations.run("hook", arguments, environ)
            operations.finish()
            clock.pass_time(step)
            if (number + 1) % (calls // 10) == 0:
                kilobytes = read_resident_kilobytes()
                descriptors = len(os.listdir("/proc/self/fd"))
                print(
                    f"  {number + 1:>8,} calls: {kilobytes / 1024:7.1f} MB, {descriptors} descriptors",
                    flush=True,
                )
        operations.close()


def read_resident_kilobytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, nargs="+", default=[300, 10_000])
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--soak", type=int, default=0, metavar="CALLS")
    options = parser.parse_args()
    if options.soak:
        soak(options.soak)
        return
    for memories in options.memories:
        measure_latency(memories, options.calls)


if __name__ == "__main__":
    main()
