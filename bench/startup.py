"""How long it takes to start: the command, the import, and an agent, each in an interpreter of its own.

    python bench/startup.py                     # this tree alone
    python bench/startup.py --against DIR       # and the `src` of another tree, in turns; prints ratios
    python bench/startup.py --against DIR --rounds 15

A round starts each of them once in each tree, one after the other, so that a busy machine slows both. The
ratio is that of the medians, this tree over the other one: 1.00 is the same, less is faster.

    version   `sevenfold --version`
    import    `import sevenfold`, as the interpreter counts it with `-X importtime`
    modules   importing the module that opens agents, counted the same way
    agent     opening an agent and closing it, in a project that was opened before; without the imports
    prompt    processor time of `sevenfold chat` in a terminal until its input line is drawn
    libraries processor time of `import rich, prompt_toolkit`, which no chat can do without
    list, search, add, undo, recall
              processor time of the command, the first four of `sevenfold memory`, over 300 memories

The last line is the ratio of `prompt` and `libraries`, in this tree.
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

AGENT = """
import asyncio, sys, time
from importlib import import_module
from pathlib import Path

module = import_module(sys.argv[2])

async def play():
    started = time.perf_counter()
    options = getattr(module, sys.argv[3])(project=Path(sys.argv[1]))
    agent = await module.open_agent(options)
    taken = time.perf_counter() - started
    await agent.close()
    print(taken)

asyncio.run(play())
"""
ENTRY_POINTS = (("sevenfold.agent.opening.open_agent", "AgentOptions"), ("sevenfold.agent.setup", "Setup"))
"""The module that opens an agent and the class of its options, newest first: older trees have others."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A source tree, and the home and project that its agents use."""

    name: str
    source: Path
    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def entry_point(self) -> tuple[str, str]:
        found = (each for each in ENTRY_POINTS if (self.source / f"{each[0].replace('.', '/')}.py").is_file())
        return next(found)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": str(self.source),
            "ANTHROPIC_API_KEY": "nobody-is-called",
            "TERM": "xterm",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=self.home, env=self.environ, capture_output=True, text=True, check=True
        )


def time_version(tree: Tree) -> float:
    started = perf_counter()
    tree.run("-m", "sevenfold", "--version")
    return perf_counter() - started


def time_import(tree: Tree, module: str = "sevenfold") -> float:
    """The cumulative time of a module, in seconds."""
    lines = tree.run("-X", "importtime", "-c", f"import {module}").stderr.splitlines()
    rows = [line.split("|") for line in lines if line.count("|") == 2]
    top = module.partition(".")[0]
    found = [int(row[1]) for row in rows if row[2].strip() in (top, module)]
    return sum(found) / 1e6


def time_opening(tree: Tree) -> float:
    return time_import(tree, tree.entry_point[0])


def time_agent(tree: Tree) -> float:
    return float(tree.run("-c", AGENT, str(tree.project), *tree.entry_point).stdout)


PROMPT_SIGN = "›".encode()


def time_prompt(tree: Tree) -> float:
    """Processor seconds until the input line of a chat is drawn. The program is killed there."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "sevenfold", "chat"]
    process = subprocess.Popen(
        command, cwd=tree.project, env=tree.environ, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    try:
        seen = b""
        while PROMPT_SIGN not in seen:
            if not select.select([master], [], [], PROMPT_PATIENCE_SECONDS)[0]:
                raise TimeoutError(f"no input line was drawn; the terminal got {seen!r}")
            seen += os.read(master, 65_536)
        process.send_signal(signal.SIGKILL)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = -signal.SIGKILL
        return _sum_seconds(used)
    finally:
        os.close(master)


PROMPT_PATIENCE_SECONDS = 60


def time_libraries(tree: Tree) -> float:
    """Processor seconds of importing the libraries of the terminal."""
    before = _sum_seconds(resource.getrusage(resource.RUSAGE_CHILDREN))
    tree.run("-c", "import rich, prompt_toolkit")
    return _sum_seconds(resource.getrusage(resource.RUSAGE_CHILDREN)) - before


def time_command(*arguments: str) -> Callable[[Tree], float]:
    """Processor seconds of a command in a project with memories."""

    def time(tree: Tree) -> float:
        before = _sum_seconds(resource.getrusage(resource.RUSAGE_CHILDREN))
        tree.run("-m", "sevenfold", *arguments, "--project", str(tree.project))
        return _sum_seconds(resource.getrusage(resource.RUSAGE_CHILDREN)) - before

    return time


TOPICS = ("deploy", "staging", "queue", "invoice", "migration", "login", "cache", "report", "export", "token")
MEMORIES = 300


def import_memories(tree: Tree) -> None:
    folder = tree.home / "memories"
    folder.mkdir()
    for number in range(MEMORIES):
        words = " ".join(TOPICS[(number * step) % len(TOPICS)] for step in range(1, 30))
        text = f"---\nname: note-{number}\ndescription: {words[:60]}\ntype: project\n---\n{words}.\n"
        (folder / f"note-{number}.md").write_text(text, "utf-8")
    tree.run("-m", "sevenfold", "memory", "import", str(folder), "--project", str(tree.project))


def _sum_seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


MEASURES: dict[str, Callable[[Tree], float]] = {
    "version": time_version,
    "import": time_import,
    "modules": time_opening,
    "agent": time_agent,
    "prompt": time_prompt,
    "libraries": time_libraries,
    "list": time_command("memory", "list"),
    "search": time_command("memory", "search", "deploy to staging"),
    "add": time_command("memory", "add", "-m", "We use pnpm for the builds."),
    "undo": time_command("memory", "undo"),
    "recall": time_command("recall", "how do we deploy to staging?"),
}


def measure(trees: Sequence[Tree], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds, by what was timed and by tree. The first round fills caches and does not count."""
    taken: dict[str, dict[str, list[float]]] = {name: {tree.name: [] for tree in trees} for name in MEASURES}
    for turn in range(rounds + 1):
        for name, time in MEASURES.items():
            for tree in trees if turn % 2 else reversed(trees):
                seconds = time(tree)
                if turn:
                    taken[name][tree.name].append(seconds)
    return taken


def make_tree(name: str, top: Path, scratch: Path) -> Tree:
    tree = Tree(name, top / "src", scratch / name)
    tree.project.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(tree.project)], check=True)
    import_memories(tree)
    return tree


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, metavar="DIR", help="the top of another tree")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is started (9)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        trees = [make_tree("this", Path(__file__).resolve().parent.parent, scratch)]
        if options.against:
            trees.append(make_tree("other", options.against.resolve(), scratch))
        taken = measure(trees, options.rounds)
    print(
        f"{'':10}" + "".join(f"{tree.name:>10}" for tree in trees) + ("     ratio" if options.against else "")
    )
    for name, by_tree in taken.items():
        middles = [median(by_tree[tree.name]) for tree in trees]
        ratio = f"{middles[0] / middles[1]:>10.2f}" if len(middles) > 1 else ""
        print(f"{name:10}" + "".join(f"{middle * 1e3:>7.0f} ms" for middle in middles) + ratio)
    ratio = median(taken["prompt"]["this"]) / median(taken["libraries"]["this"])
    print(f"prompt to libraries: {ratio:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
