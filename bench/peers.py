"""Sevenfold and known peers on the same sessions, in one run: what each costs and what the model still sees.

    python bench/peers.py [--seeds 7,11,23] [--only NAME,…] [--environments FOLDER] [--write docs/peers.md]

Each peer is installed from the package index into an environment of its own below FOLDER (a scratch folder if
none is named), at its newest version, and plays the sessions of `bench/trajectory.py` against the strict
simulator: breakpoints are billed as sent, edits of the provider are carried out, and the clock follows the
session with its pauses. The model is a script that never reads anything again, so cost alone rewards
forgetting. Beside the cost stands how much of what the tools showed is still in the prompt, as a mean over
the requests. No paid model is asked. `--write` puts the table into a page.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from bench.trajectory import (
    SIGNED,
    UNSIGNED,
    Outcome,
    Player,
    Trajectory,
    bill,
    make_trajectory,
    run_ours,
)

from sevenfold.simulator.simulator_state import VirtualClock
from sevenfold.simulator.wire.choices import DEFAULT_CHOICES, Choices
from sevenfold.testing import Simulator

PEER_SECONDS = 900
TABLE = re.compile(r"(<!-- peers: begin -->\n).*?(<!-- peers: end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    """As `bench/peer_agents.py` knows it."""
    title: str
    packages: tuple[str, ...]
    """What is installed; the version of the first one is shown."""
    settings: str
    keeps: str
    """What becomes of what is removed."""
    python: str = ""
    """The interpreter that it needs, by its name on the path; "": the one that runs this."""
    choices: Choices = DEFAULT_CHOICES
    """Where the provider's documentation is silent: what is best for this peer."""


PEERS = (
    Peer(
        name="kept",
        title="plain loop, everything kept",
        packages=("anthropic",),
        settings="automatic prompt caching",
        keeps="nothing is removed",
    ),
    Peer(
        name="provider",
        title="Anthropic context editing",
        packages=("anthropic",),
        settings="`clear_tool_uses_20250919`, defaults",
        keeps="gone",
    ),
    Peer(
        name="provider in batches",
        title="Anthropic context editing, in batches",
        packages=("anthropic",),
        settings="`clear_at_least` 50,000 tokens, if what was cleared stays cleared",
        keeps="gone",
        choices=Choices(sticky_clearing=True),
    ),
    Peer(
        name="harness",
        title="pydantic-ai-harness",
        packages=("pydantic-ai-harness", "pydantic-ai-slim[anthropic]"),
        settings="`ToolOutputLimits` and `ClearToolResults`, as documented",
        keeps="large results in files",
    ),
    Peer(
        name="context editing",
        title="LangChain `ContextEditingMiddleware`",
        packages=("langchain", "langchain-anthropic"),
        settings="defaults, with `AnthropicPromptCachingMiddleware`",
        keeps="gone",
    ),
    Peer(
        name="summarization",
        title="LangChain `SummarizationMiddleware`",
        packages=("langchain", "langchain-anthropic"),
        settings="at 100,000 tokens, 20 messages kept, with prompt caching",
        keeps="a summary",
    ),
    Peer(
        name="deepagents",
        title="deepagents",
        packages=("deepagents", "langchain-anthropic"),
        settings="defaults",
        keeps="large results and old messages in files",
    ),
    Peer(
        name="deepagents small",
        title="deepagents, smaller window",
        packages=("deepagents", "langchain-anthropic"),
        settings="summarizes at 100,000 tokens (`max_input_tokens` of its model profile)",
        keeps="large results and old messages in files",
    ),
    Peer(
        name="openhands",
        title="OpenHands `LLMSummarizingCondenser`",
        packages=("openhands-sdk",),
        settings="as in its default agent: at 80 events, the first 4 kept, with prompt caching",
        keeps="a summary",
        python="python3.12",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    version: str
    settings: str
    keeps: str
    outcomes: list[Outcome]
    note: str = ""

    @property
    def usd(self) -> float:
        return mean(outcome.usd for outcome in self.outcomes)


def list_pauses(trajectory: Trajectory) -> list[float]:
    """Seconds between the end of each turn and the next one."""
    ends = [at for at, step in enumerate(trajectory.steps) if not step.call]
    steps = trajectory.steps
    return [
        max(0.0, steps[at + 1].seconds - steps[at].seconds) if at + 1 < len(steps) else 0.0 for at in ends
    ]


def run_peer(peer: Peer, python: Path, trajectory: Trajectory, model: str) -> tuple[Outcome, str]:
    clock = VirtualClock()
    player = Player(trajectory, clock, thinks=model == SIGNED)
    told = {
        "system": trajectory.system,
        "tools": [json.loads(json.dumps(tool, default=dict)) for tool in trajectory.tools],
        "prompts": trajectory.prompts,
        "pauses": list_pauses(trajectory),
        "results": {str(number): text for number, text in trajectory.results.items()},
    }
    script = str(Path(__file__).with_name("peer_agents.py"))
    with Simulator(player, choices=peer.choices, clock=clock) as sim, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trajectory.json")
        path.write_text(json.dumps(told), encoding="utf-8")
        command = [str(python), script, peer.name, sim.url, model, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PEER_SECONDS)
        lines = done.stderr.strip().splitlines()
        problem = lines[-1][:200] if done.returncode and lines else ""
        if not problem and player.at < len(trajectory.steps):
            problem = f"stopped after {player.at} of {len(trajectory.steps)} steps"
        return bill(sim, player), problem


def install(peer: Peer, folder: Path) -> Path:
    """The Python of an environment that has the peer's newest version."""
    place = folder / re.sub(r"\W+", "-", peer.packages[0])
    python = place / "bin" / "python"
    if not python.exists():
        interpreter = peer.python or sys.executable
        subprocess.run([interpreter, "-m", "venv", str(place)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--upgrade"]
        subprocess.run([*pip, *peer.packages], check=True)
    return python


def read_version(peer: Peer, python: Path) -> str:
    code = f"from importlib.metadata import version; print(version({peer.packages[0]!r}))"
    asked = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return f"{peer.packages[0]} {asked.stdout.strip()}"


def play_ours(title: str, policy: str, trajectories: list[Trajectory]) -> Row:
    version = f"sevenfold {importlib.metadata.version('sevenfold')}"
    outcomes = [run_ours(trajectory, UNSIGNED, policy) for trajectory in trajectories]
    settings = "defaults" if policy == "balanced" else f'`microcompact.policy = "{policy}"`'
    return Row(title=title, version=version, settings=settings, keeps="all of it in files", outcomes=outcomes)


def play_peer(peer: Peer, folder: Path, trajectories: list[Trajectory]) -> Row:
    if peer.python and shutil.which(peer.python) is None:
        note = f"{peer.python} is not on the path"
        return Row(
            title=peer.title,
            version=peer.packages[0],
            settings=peer.settings,
            keeps=peer.keeps,
            outcomes=[],
            note=note,
        )
    python = install(peer, folder)
    played = [run_peer(peer, python, trajectory, UNSIGNED) for trajectory in trajectories]
    note = next((problem for _, problem in played if problem), "")
    return Row(
        title=peer.title,
        version=read_version(peer, python),
        settings=peer.settings,
        keeps=peer.keeps,
        outcomes=[outcome for outcome, _ in played],
        note=note,
    )


def format_row(row: Row) -> str:
    if row.note:
        return f"| {row.title} | {row.version} | {row.settings} | not finished: {row.note} | | | | |"
    shown, recent, read = (
        mean(getattr(outcome, name) for outcome in row.outcomes) for name in ("shown", "recent", "read_share")
    )
    peak = max(outcome.peak for outcome in row.outcomes)
    return (
        f"| {row.title} | {row.version} | {row.settings} | ${row.usd:.2f} | {shown:.0%} | {recent:.0%} | "
        f"{read:.0%} | {peak:,} | {row.keeps} |"
    )


HEAD = (
    "| contender | version | settings | cost | tool output in view | of the last ten results | "
    "read from cache | largest prompt | what is removed |\n|---|---|---|---|---|---|---|---|---|"
)


def find_losses(rows: list[Row]) -> str:
    """Where the first row is not the best one, in words."""
    ours, others = rows[0], [row for row in rows[1:] if not row.note]
    cheaper = [f"{row.title} (${row.usd:.2f})" for row in others if row.usd < ours.usd]

    def seen(row: Row, name: str) -> float:
        return mean(getattr(outcome, name) for outcome in row.outcomes)

    fuller = [
        f"{row.title} ({seen(row, 'shown'):.0%})"
        for row in others
        if seen(row, "shown") > seen(ours, "shown")
    ]
    nearer = [
        f"{row.title} ({seen(row, 'recent'):.0%})"
        for row in others
        if seen(row, "recent") > seen(ours, "recent")
    ]
    return "\n".join(
        f"- {said}: {', '.join(names) if names else 'none'}."
        for said, names in (
            ("Cheaper than Sevenfold with default settings", cheaper),
            ("More tool output in view", fuller),
            ("More of the last ten results in view", nearer),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Sevenfold and known peers on the same sessions.")
    parser.add_argument("--seeds", default="7,11,23")
    parser.add_argument("--only", default="", help="names of peers, separated by commas")
    parser.add_argument("--environments", type=Path, help="a folder that keeps what is installed")
    parser.add_argument("--write", type=Path, help="a page with the marks of the table")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    trajectories = [make_trajectory(seed) for seed in seeds]
    wanted = [peer for peer in PEERS if not options.only or peer.name in options.only.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.environments or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        jobs: list[Callable[[], Row]] = [
            lambda: play_ours("**Sevenfold**", "balanced", trajectories),
            lambda: play_ours("**Sevenfold**, thrift", "thrift", trajectories),
            *(lambda peer=peer: play_peer(peer, folder, trajectories) for peer in wanted),
        ]
        rows: list[Row] = []
        print(HEAD, flush=True)
        for job in jobs:
            rows.append(job())
            print(format_row(rows[-1]), flush=True)
    table = "\n".join((HEAD, *map(format_row, rows)))
    text = f"{table}\n\nWhere Sevenfold with default settings loses:\n\n{find_losses(rows)}\n"
    print(f"\n{find_losses(rows)}")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(TABLE.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")


if __name__ == "__main__":
    main()
