"""How many source files a reader has to follow to see one thing happen from its start to its end.

    python bench/walks.py                       # exit code 1 if a figure is over its limit
    python bench/walks.py --walk chat --files   # also list the files, in the order in which they are met
    python bench/walks.py --chat-files 90       # another limit

Each walk runs against the simulator, in an interpreter and a scratch git repository of its own, while a
profile hook records calls:

    chat      the second turn of an agent, without tools: the turn, and its background work until it settles
    attached  the third call through a client that was attached, and its background work until it settles
    opening   opening an agent, the first time in a process
    memory    a turn that teaches something, its extraction, and the turn of the next session that recalls it;
              opening and closing the two sessions is left out

What counts:

- A call is a Python function of the package that starts or goes on, in any thread: a coroutine or generator
  that is resumed counts again, for a reader comes back to it too. Loading a module is no call, nor is what
  runs while a module loads.
- A file counts once. Files of the simulator and of `sevenfold.testing` do not count. Files that only the
  simulator's thread uses (parts of `core`) do, and stand in a row of their own.
- A package is a folder at the top (`session`, `layers`, ...); `--depth N` takes N levels, and 0 every folder.
- A switch is a call in another package than the call before it, in the order of time. Calls into `core` are
  left out, because values are used everywhere; `switches with core` counts them too. The limit is on switches
  between packages; `folder switches` counts those between folders as well.

The background work of a walk belongs to it, and is waited for: the files are the same each time. Threads take
turns a little differently: expect a few switches more or less.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from inspect import CO_OPTIMIZED, getfile
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from types import FrameType

from anthropic.types import MessageParam

import sevenfold
from sevenfold import attach

# The only import that is not part of the public API.
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.testing import Prompt, Reply, Simulator, call_tool

PACKAGE = Path(sevenfold.__file__).parent
CORE = "core"
MODEL = "claude-opus-5-5"
HELLO, AGAIN = "Hello!", "On!"
"""One word: a longer turn is followed by a fork that looks for what to remember, which `memory` shows."""
TAUGHT = "Remember that we deploy the billing service on Tuesdays only."
FACT = "We deploy the billing service on Tuesdays only."
ASKED = "When do we deploy the billing service?"

Figure = str
LIMITS: dict[str, dict[Figure, int]] = {
    "chat": {"files": 80, "switches": 120},
    "attached": {"files": 52, "switches": 50},
    "opening": {"files": 100},
    "memory": {},
}
NEEDED = {"memory": frozenset({"ExtractionEnded", "MemoryRecalled"})}
"""Events without which a walk went elsewhere."""


@dataclass(frozen=True, slots=True)
class Call:
    file: str
    """Below the package, with forward slashes."""
    thread: int

    def package(self, depth: int | None) -> str:
        parts = PurePosixPath(self.file).parts[:-1]
        return "/".join(parts[:depth])


@dataclass(slots=True, kw_only=True)
class Walk:
    """What was counted on one walk."""

    calls: int
    files: list[str]
    """In the order in which they were met."""
    simulator_files: list[str]
    """Of these, the ones that only the simulator's thread used."""
    packages: list[str]
    switches: int
    switches_with_core: int
    folder_switches: int

    def figures(self) -> dict[Figure, int]:
        return {
            "calls": self.calls,
            "files": len(self.files),
            "simulator_files": len(self.simulator_files),
            "packages": len(self.packages),
            "switches": self.switches,
            "switches_with_core": self.switches_with_core,
            "folder_switches": self.folder_switches,
        }

    def over(self, limits: Mapping[Figure, int]) -> list[Figure]:
        figures = self.figures()
        return [name for name, limit in limits.items() if figures[name] > limit]


@dataclass(slots=True)
class Recorder:
    """Records calls into the package while `is_on`. Install it before threads start, or it misses theirs."""

    is_on: bool = False
    calls: list[Call] = field(default_factory=list[Call])
    _loading: dict[int, int] = field(default_factory=dict[int, int])
    """By thread: how many module bodies it is in."""

    @contextmanager
    def installed(self) -> Generator[None]:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def on(self) -> Generator[None]:
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False

    def wait_until_quiet(self) -> None:
        """Until the background work of what came before has ended."""
        seen = -1
        while len(self.calls) != seen:
            seen = len(self.calls)
            time.sleep(0.25)

    def forget_background(self) -> None:
        """The background work of what came before is no part of this walk: wait until it has ended."""
        with self.on():
            self.wait_until_quiet()
        self.calls.clear()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code, thread = frame.f_code, threading.get_ident()
        if code.co_name == "<module>" and event in ("call", "return"):
            self._loading[thread] = self._loading.get(thread, 0) + (1 if event == "call" else -1)
        # Bodies of modules and classes are not optimized, functions are.
        if not self.is_on or event != "call" or not code.co_flags & CO_OPTIMIZED:
            return
        if self._loading.get(thread, 0) == 0 and (file := _below(code.co_filename)) is not None:
            self.calls.append(Call(file, thread))

    def summary(self, depth: int | None = 1) -> Walk:
        """The figures; a package is a folder of at most this depth, None: any folder."""
        simulator = _simulator_parts()
        is_simulator = [call.file.partition("/")[0] in simulator for call in self.calls]
        threads = {call.thread for call, skipped in zip(self.calls, is_simulator, strict=True) if skipped}
        calls = [call for call, skipped in zip(self.calls, is_simulator, strict=True) if not skipped]
        files = list(dict.fromkeys(call.file for call in calls))
        own = {call.file for call in calls if call.thread not in threads}
        packages = [call.package(depth) for call in calls]
        return Walk(
            calls=len(calls),
            files=files,
            simulator_files=[file for file in files if file not in own],
            packages=list(dict.fromkeys(packages)),
            switches=count_switches(_without_core(packages)),
            switches_with_core=count_switches(packages),
            folder_switches=count_switches(_without_core([call.package(None) for call in calls])),
        )


def _without_core(packages: Sequence[str]) -> list[str]:
    return [package for package in packages if package.partition("/")[0] != CORE]


def count_switches(packages: Sequence[str]) -> int:
    return sum(one != next_one for one, next_one in pairwise(packages))


def _below(filename: str) -> str | None:
    prefix = f"{PACKAGE}{os.sep}"
    return filename.removeprefix(prefix).replace(os.sep, "/") if filename.startswith(prefix) else None


def _simulator_parts() -> frozenset[str]:
    """Files and folders at the top of the package that the simulator is made of."""
    return frozenset(Path(getfile(part)).relative_to(PACKAGE).parts[0] for part in (Simulator, Prompt, Reply))


@dataclass(frozen=True, slots=True)
class Scratch:
    """A home and a git repository of nobody's, the simulator, and who records."""

    home: Path
    simulator: Simulator
    recorder: Recorder
    emit: Callable[[object], None]

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", os.defpath),
            "ANTHROPIC_API_KEY": "simulated",
            "ANTHROPIC_BASE_URL": self.simulator.url,
        }

    def setup(self) -> AgentOptions:
        return AgentOptions(project=self.project, model=MODEL, emit=self.emit, environ=self.environ)


async def walk_chat(scratch: Scratch) -> None:
    agent = await open_agent(scratch.setup())
    await agent.run_turn(HELLO)
    await agent.settle()
    with scratch.recorder.on():
        await agent.run_turn(AGAIN)
        await agent.settle()
    await agent.close()


async def walk_opening(scratch: Scratch) -> None:
    # Made before: asking the simulator for its address is no part of the walk.
    setup = scratch.setup()
    with scratch.recorder.on():
        agent = await open_agent(setup)
    await agent.close()


async def walk_memory(scratch: Scratch) -> None:
    for said in (TAUGHT, ASKED):
        agent = await open_agent(scratch.setup())
        with scratch.recorder.on():
            await agent.run_turn(said)
            await agent.settle()
        await agent.close()


async def walk_attached(scratch: Scratch) -> None:
    """A plain client blocks, so it is used in a thread of its own."""
    await asyncio.to_thread(_call_attached, scratch)


def _call_attached(scratch: Scratch) -> None:
    messages: list[MessageParam] = []
    client = scratch.simulator.client()
    with attach(client, project=scratch.project, environ=scratch.environ) as attached:

        def send(said: str) -> None:
            messages.append({"role": "user", "content": said})
            answer = attached.messages.create(model=MODEL, max_tokens=100, messages=messages)
            text = "".join(part.text for part in answer.content if part.type == "text")
            messages.append({"role": "assistant", "content": text})

        send(HELLO)
        send(AGAIN)
        scratch.recorder.forget_background()
        with scratch.recorder.on():
            send(ASKED)
            scratch.recorder.wait_until_quiet()


WALKS: dict[str, Callable[[Scratch], Awaitable[None]]] = {
    "chat": walk_chat,
    "attached": walk_attached,
    "opening": walk_opening,
    "memory": walk_memory,
}


def answer(prompt: Prompt) -> str | Reply:
    """The model: it writes down what was taught when a fork asks for it."""
    last = prompt.last_text
    is_said = any(said in last for said in (HELLO, AGAIN, ASKED)) or last.startswith(TAUGHT)
    if is_said or prompt.results or "memory" not in prompt.tools:
        return "As you say."
    given = {"action": "write", "name": "billing-deploys", "type": "project"}
    return Reply((call_tool("memory", {**given, "description": FACT, "content": FACT}),))


def take_walk(name: str, depth: int | None = 1) -> Walk:
    """Take one walk in this process, whose caches must be cold for the figures to be comparable."""
    os.environ["NO_PROXY"] = "127.0.0.1"
    recorder, happened = Recorder(), set[str]()
    with tempfile.TemporaryDirectory() as folder, recorder.installed(), Simulator(answer) as simulator:
        scratch = Scratch(Path(folder), simulator, recorder, lambda event: happened.add(type(event).__name__))
        scratch.project.mkdir()
        scratch.project.joinpath("README.md").write_text("# Billing\n", encoding="utf-8")
        subprocess.run(["git", "init", "--quiet", str(scratch.project)], check=True)
        asyncio.run(_take(name, scratch))
    if missing := NEEDED.get(name, frozenset()) - happened:
        raise RuntimeError(f"the walk {name!r} did not get to {', '.join(sorted(missing))}")
    return recorder.summary(depth)


async def _take(name: str, scratch: Scratch) -> None:
    await WALKS[name](scratch)


def show(name: str, walk: Walk, limits: Mapping[Figure, int], *, lists_files: bool) -> None:
    print(name)
    for figure, value in walk.figures().items():
        limit = limits.get(figure)
        beside = "" if limit is None else f"   limit {limit:>4}{'  OVER' if value > limit else ''}"
        label = "  only the simulator's" if figure == "simulator_files" else figure.replace("_", " ")
        print(f"  {label:24} {value:>7,}{beside}")
    if lists_files:
        for file in walk.files:
            print(f"    {file}{'  (simulator only)' if file in walk.simulator_files else ''}")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--walk", action="append", choices=tuple(WALKS), help="only this one; may be repeated"
    )
    parser.add_argument("--files", action="store_true", help="list the files of each walk")
    parser.add_argument(
        "--depth", type=int, default=1, help="levels of folders that make a package; 0: all of them (1)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, by walk")
    for walk, limits in LIMITS.items():
        for figure, limit in limits.items():
            parser.add_argument(
                f"--{walk}-{figure}", type=int, default=limit, metavar="N", help=f"limit ({limit})"
            )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    names: list[str] = options.walk or list(WALKS)
    limits: dict[str, dict[Figure, int]] = {
        name: {figure: getattr(options, f"{name}_{figure}") for figure in LIMITS[name]} for name in names
    }
    # One interpreter a walk: what one of them loads and caches is not there for the next.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        walks = {name: pool.submit(take_walk, name, options.depth or None).result() for name in names}
    if options.json:
        report: dict[str, object] = {}
        for name, walk in walks.items():
            lists = asdict(walk) if options.files else {}
            paths = {"paths": lists["files"], "folders": lists["packages"]} if lists else {}
            report[name] = {
                **walk.figures(),
                "limits": limits[name],
                "over": walk.over(limits[name]),
                **paths,
            }
        print(json.dumps(report))
    else:
        for name, walk in walks.items():
            show(name, walk, limits[name], lists_files=options.files)
    return 1 if any(walk.over(limits[name]) for name, walk in walks.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
