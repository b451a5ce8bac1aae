"""Real Claude Code, real Codex and our own chat share one memory and one set of rules, on the simulator.

The agents are installed from the npm registry into a temporary folder, or taken from the folder that
`SEVENFOLD_TEST_AGENTS` names. Where they cannot be had, the tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sevenfold.core.messages import Text, ToolResult
from sevenfold.core.tool_kinds import find_tool
from sevenfold.testing import Choices, Prompt, Reply, Simulator, say

pytestmark = [pytest.mark.story, pytest.mark.registry, pytest.mark.timeout(900)]

PACKAGES = ("@anthropic-ai/claude-code-linux-x64@2.1.325", "@openai/codex@0.166.0")
"""What was tested; other versions may send other things."""
CLAUDE = "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
CODEX = "node_modules/.bin/codex"
PATIENCE_SECONDS = 240
# Read before the fixtures that take the caller's settings away.
GIVEN = os.environ.get("SEVENFOLD_TEST_AGENTS")


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the agents are installed in."""
    folder = Path(GIVEN) if GIVEN else tmp_path_factory.mktemp("agents")
    if not GIVEN:
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, so Claude Code and Codex cannot be had")
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"Claude Code and Codex cannot be installed from npm: {done.stderr[-300:]}")
    if not (folder / CLAUDE).exists() or not (folder / CODEX).exists():
        pytest.skip(f"Claude Code or Codex is missing in {folder}")
    return folder


@dataclass(slots=True)
class Model:
    """Answers, and calls the agent's own shell where it is told to push."""

    asked: list[Prompt] = field(default_factory=list[Prompt])

    def __call__(self, prompt: Prompt) -> Reply:
        self.asked.append(prompt)
        shell = next((name for name in prompt.tools if (find_tool(name) or NO_TOOL).effect == "run"), "")
        is_asked = "push" in prompt.last_text and not prompt.results and shell
        if not is_asked:
            return say("Done.")
        key = "cmd" if shell == "exec_command" else "command"
        return say(calls={shell: {key: "git push origin main", "description": "push"}})

    def texts(self) -> str:
        """All that was sent."""
        found: list[str] = []
        for prompt in self.asked:
            for message in prompt.messages:
                for block in message.blocks:
                    if isinstance(block, Text):
                        found.append(block.text)
                    elif isinstance(block, ToolResult):
                        found.append(str(block.content))
        return "\n".join(found)

    def results(self) -> str:
        return "\n".join(str(result.content) for prompt in self.asked for result in prompt.results)


class _NoTool:
    effect = "other"


NO_TOOL = _NoTool()


@dataclass(slots=True)
class Machine:
    """A person's machine: a home folder, a repository, agents, and a model that they all talk to."""

    home: Path
    agents: Path
    sim: Simulator
    model: Model

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_BASE_URL": self.sim.url,
            "ANTHROPIC_API_KEY": "simulated",
            "OPENAI_API_KEY": "simulated",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def sevenfold(self, *words: str) -> str:
        return self.run([sys.executable, "-m", "sevenfold", *words])

    def run(self, command: list[str], extra: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=self.project,
            env={**self.environ, **(extra or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode in (0, 1), f"{command}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done.stdout

    def ask(self, agent: str, prompt: str) -> Model:
        """What the model was sent and answered while this agent worked on a prompt."""
        self.model.asked.clear()
        if agent == "claude":
            output = ["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]
            self.run([str(self.agents / CLAUDE), "-p", prompt, *output])
        elif agent == "codex":
            provider = (
                f'{{name="sim",base_url="{self.sim.url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
            )
            settings = ["-c", f"model_providers.sim={provider}", "-c", "model_provider=sim", "-m", "gpt-5.5"]
            # A person reviews the hooks in Codex once; a test says that it has.
            flags = ["--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
            self.run([str(self.agents / CODEX), "exec", *flags, *settings, prompt])
        else:
            self.sevenfold("chat", "-p", prompt, "--mode", "bypass")
        assert self.model.asked
        return self.model

    def wait_for_memory(self, text: str) -> None:
        """Learning is queued, and the agent does not wait for it."""
        end = time.monotonic() + PATIENCE_SECONDS
        while text not in self.sevenfold("memory", "list", "--json"):
            assert time.monotonic() < end, f"{text!r} was not learnt: {self.read_log()}"

    def read_log(self) -> str:
        log = self.home / ".sevenfold" / "run" / "resident.log"
        return log.read_text() if log.exists() else "no log"


@pytest.fixture
def machine(tmp_path: Path, agents: Path) -> Iterator[Machine]:
    model = Model()
    with Simulator(model, choices=Choices(strict=False)) as sim:
        it = Machine(tmp_path, agents, sim, model)
        it.project.mkdir()
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
        it.run([*git, "init", "-q"])
        it.run([*git, "commit", "-q", "--allow-empty", "-m", "first"])
        # So that no first hook comes before the process is up, on a machine that is busy.
        it.sevenfold("resident", "start")
        yield it
        it.sevenfold("resident", "stop")


def test_what_one_agent_is_taught_the_others_recall_and_a_rule_stops_a_push_in_all(machine: Machine) -> None:
    before = {path: path.read_bytes() for path in machine.home.rglob("*") if _is_config(path)}
    machine.sevenfold("install", "claude-code")
    machine.sevenfold("install", "codex")

    machine.ask("claude", "Remember this: always run the cobalt script before you tag a release.")
    machine.wait_for_memory("cobalt script")
    machine.ask("codex", "Remember this: the staging database is always called heron, never pelican.")
    machine.wait_for_memory("heron")

    question = "Which script runs before we tag a release, and is the staging database called heron?"
    for agent in ("claude", "codex", "chat"):
        said = machine.ask(agent, question).texts()
        assert "cobalt script before you tag a release" in said, (agent, machine.read_log())
        assert "staging database is always called heron" in said, (agent, machine.read_log())

    rule = "Never push to main without a word of the user."
    machine.sevenfold("memory", "add", "no-push", "-m", rule, "--applies-to", "command:git push*")
    for agent in ("claude", "codex", "chat"):
        results = machine.ask(agent, "Please push this branch.").results()
        assert rule in results, (agent, results, machine.read_log())
        assert "does not appear to be a git repository" not in results

    for agent in ("claude-code", "codex"):
        machine.sevenfold("install", agent, "--uninstall")
    for path in machine.home.rglob("*"):
        if _is_config(path):
            assert "hook_script" not in path.read_text(), path
    assert {path: path.read_bytes() for path in before} == before
    registry = (machine.home / ".claude.json").read_text()
    assert "mcp" not in str(json.loads(registry).get("mcpServers", {}))


def _is_config(path: Path) -> bool:
    return path.name in ("settings.json", "hooks.json", "config.toml") and path.is_file()
