"""Real agents through the proxy, on the simulator: `make agents` in short, and Claude Code at length.

The agents are installed from their registries, or taken from the folder that `SEVENFOLD_TEST_AGENTS` names.
Where one cannot be had, its test is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from bench.agents import AGENTS, CLAUDE_MODEL, NotAvailable, install_agent, run_agent_row, write_project
from bench.agents_tap import TapProxy

from sevenfold.proxy.profiles import find_profile
from sevenfold.testing import Choices, Prompt, Reply, Simulator, say

pytestmark = [pytest.mark.story, pytest.mark.registry, pytest.mark.timeout(1_200)]

PATIENCE_SECONDS = 240
# Read before the fixtures that take the caller's settings away.
GIVEN = os.environ.get("SEVENFOLD_TEST_AGENTS")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(GIVEN) if GIVEN else tmp_path_factory.mktemp("agents")


@pytest.mark.parametrize("name", ["claude", "mini-swe-agent"])
def test_an_agent_works_through_the_proxy_as_it_does_without(name: str, folder: Path, tmp_path: Path) -> None:
    agent = next(one for one in AGENTS if one.name == name)
    row = run_agent_row(agent, folder, tmp_path)
    if row.skipped:
        pytest.skip(row.skipped)
    assert row.list_problems() == []
    assert row.outcomes["record"].touched == 0
    assert row.outcomes["record"].cost == pytest.approx(row.outcomes["direct"].cost, rel=0.002)
    assert all(one.requests >= 6 for one in row.outcomes.values())


@dataclass
class Person:
    """Claude Code on a machine, with hooks, behind the proxy."""

    program: Path
    home: Path
    tap: TapProxy
    url: str
    costs: list[Decimal] = field(default_factory=list[Decimal])

    def run(self, text: str, *, resume: str = "") -> list[dict[str, Any]]:
        """One process that is told one thing; what it printed."""
        flags = ["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
        flags += ["--model", CLAUDE_MODEL, "--allowedTools", "Bash", "Task", "Agent"]
        flags += ["--resume", resume] if resume else []
        line = {"type": "user", "message": {"role": "user", "content": text}}
        environ = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "simulated",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        before = len(self.tap.app.ledger.entries)
        done = subprocess.run(
            [str(self.program), "-p", *flags],
            cwd=self.home / "project",
            env=environ,
            input=json.dumps(line) + "\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
        self.tap.finish()
        printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        costs = [entry.cost.total for entry in self.tap.app.ledger.entries[before:] if entry.cost]
        self.costs.append(sum(costs, Decimal(0)))
        return printed


def answer(prompt: Prompt) -> Reply:
    """A sub-agent for whoever asks for one, a shell command for the others, then an answer."""
    agent = next((name for name in ("Agent", "Task") if name in prompt.tools), "")
    if "detailed summary" in prompt.last_text:
        return say("<summary>They looked at birds.</summary>")
    if prompt.results or not prompt.tools:
        return say("They are about birds.", think="Good." if prompt.thinks else "")
    if agent and "sub-agent" in prompt.last_text:
        task = {"description": "look", "prompt": "List the files.", "subagent_type": "general-purpose"}
        return say(think="Delegate." if prompt.thinks else "", calls={agent: task})
    if "Bash" in prompt.tools and "files" in prompt.last_text:
        return say(calls={"Bash": {"command": "cat part1.txt", "description": "read"}})
    return say("Yes.")


@pytest.fixture
def person(folder: Path, tmp_path: Path) -> Generator[Person]:
    agent = next(one for one in AGENTS if one.name == "claude")
    try:
        program = install_agent(agent, folder)
    except NotAvailable as reason:
        pytest.skip(str(reason))
    project = tmp_path / "project"
    project.mkdir()
    write_project(project)
    hook = {"hooks": [{"type": "command", "command": "echo 'The user likes herons.'"}]}
    (tmp_path / ".claude").mkdir()
    settings = {"hooks": {"UserPromptSubmit": [hook], "SessionStart": [hook]}}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
    with (
        Simulator(answer, choices=Choices(strict=False)) as sim,
        TapProxy(sim.url, tmp_path / ".sevenfold") as tap,
    ):
        url = tap.add_run(find_profile("claude"), project, records_only=False)
        yield Person(program, tmp_path, tap, url)


def test_claude_code_with_hooks_a_sub_agent_compact_context_and_resume_is_billed_to_the_last_digit(
    person: Person,
) -> None:
    session, told = "", list[float]()
    steps = ("Which files are there?", "Ask a sub-agent for the files.", "/context", "/compact")
    for text in (*steps, "Which files again?"):
        printed = person.run(text, resume=session)
        session = next(line["session_id"] for line in printed if line.get("session_id"))
        told.append([line["total_cost_usd"] for line in printed if line.get("type") == "result"][-1])
    entries = person.tap.app.ledger.entries
    assert {"turn", "sub-agent", "compaction", "count"} <= {entry.facts.purpose for entry in entries}
    # Everything but a main turn goes on byte for byte, and so does a turn that no layer touched.
    for exchange in person.tap.app.exchanges:
        assert exchange.is_marked or exchange.sent is None or exchange.sent == exchange.came
    side = [entry for entry in entries if entry.facts.purpose != "turn"]
    assert not any(entry.touch.is_changed for entry in side)
    # A session that is resumed goes on counting where it was.
    exact = Decimal("1e-12")
    billed = [cost.quantize(exact) for cost in accumulate(person.costs)]
    assert [Decimal(repr(total)).quantize(exact) for total in told] == billed
