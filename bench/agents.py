"""Real agents on the simulator: direct, through the proxy that only records, and through its layers.

    python -m bench.agents [--agents claude,mini-swe-agent] [--folder /tmp/agents] [--model claude-opus-5]

Each agent is installed from its registry into a scratch folder, or into `--folder`, which is used again. Each
works on one task with a tool call in every round. What cannot be had, or does not start, is a row with the
reason. Costs are in input tokens: fresh 1, written 1.25 or 2, read 0.1, output 5.

The exit code is 1 where an agent does not finish, a request that no layer touched has other bytes, thinking
is lost, there are more than four breakpoints, the layers cost more than 1% over direct, or they save nothing
where a layer can help.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from bench.agents_tap import NOTHING_MEASURED, TapProxy

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolResult
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import choose_capabilities
from sevenfold.proxy.profiles import find_profile
from sevenfold.testing import Choices, Prompt, Reply, Simulator, say

Mode: TypeAlias = Literal["direct", "record", "layers"]
MODES: tuple[Mode, ...] = ("direct", "record", "layers")
ROUNDS = 7
"""Tool calls of a session."""
PATIENCE_SECONDS = 300
INSTALL_SECONDS = 900
MOST_WORSE = 0.01
"""Of the cost of a direct run."""
LEAST_SAVED = 0.2
"""Of the same, where a layer can help."""
CLAUDE_MODEL, OPENAI_MODEL = "claude-opus-5-5", "gpt-5.5"
AIDER_MODEL = "claude-sonnet-4-5"
"""It sends a temperature, which newer models refuse."""
PROMPT = "Read the files one after another, and then say what they have in common."


@dataclass(frozen=True, slots=True)
class Place:
    """Where one session runs."""

    home: Path
    project: Path
    url: str
    """The base URL, without a version."""
    model: str = CLAUDE_MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchAgent:
    name: str
    """As `sevenfold run` takes it."""
    npm: str = ""
    pypi: tuple[str, ...] = ()
    program: str = ""
    """In the folder that it is installed in."""
    command: Callable[[Place], list[str]]
    """What follows the program."""
    environ: Callable[[Place], Mapping[str, str]] = lambda _: {}
    prepare: Callable[[Place], None] = lambda _: None
    """Write the configuration that it reads."""
    stdin: str = ""
    rounds: int = ROUNDS
    can_save: Callable[[str], bool] = lambda _: False
    """Whether a layer helps it in this session, on this model: it keeps large results, or sets no breakpoint
    at the end, or breaks its own cache."""


def _codex(place: Place) -> list[str]:
    profile = find_profile("codex")
    assert profile is not None
    flags = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [*flags, *profile.make_arguments(place.url), "-m", OPENAI_MODEL, PROMPT]


def _opencode(place: Place) -> dict[str, str]:
    anthropic = {"options": {"baseURL": f"{place.url}/v1"}, "models": {place.model: {"name": place.model}}}
    config = {"provider": {"anthropic": anthropic}, "permission": {"bash": "allow"}, "autoupdate": False}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def _pi(place: Place) -> None:
    model = {"id": place.model, "name": place.model, "reasoning": False, "input": ["text"]}
    model |= {"contextWindow": 200_000, "maxTokens": 8_192}
    model |= {"cost": {"input": 5, "output": 25, "cacheRead": 0.5, "cacheWrite": 6.25}}
    provider = {"baseUrl": place.url, "apiKey": "simulated", "api": "anthropic-messages", "models": [model]}
    folder = place.home / ".pi" / "agent"
    folder.mkdir(parents=True)
    (folder / "models.json").write_text(json.dumps({"providers": {"sim": provider}}))


def _continue(place: Place) -> None:
    (place.home / "continue.yaml").write_text(
        "name: sim\nversion: 1.0.0\nschema: v1\nmodels:\n"
        f"  - name: sim\n    provider: anthropic\n    model: {place.model}\n    apiKey: simulated\n"
        f"    apiBase: {place.url}/v1/\n    roles: [chat]\n    capabilities: [tool_use]\n"
    )


AGENTS: tuple[BenchAgent, ...] = (
    BenchAgent(
        name="claude",
        npm="@anthropic-ai/claude-code-linux-x64@2.1.325",
        program="node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        command=lambda place: [
            *("-p", PROMPT, "--output-format", "stream-json", "--verbose"),
            *("--allowedTools", "Bash", "--model", place.model),
        ],
    ),
    BenchAgent(name="codex", npm="@openai/codex@0.166.0", program="node_modules/.bin/codex", command=_codex),
    BenchAgent(
        name="opencode",
        npm="opencode-ai@1.18",
        program="node_modules/.bin/opencode",
        command=lambda place: ["run", "--format", "json", "-m", f"anthropic/{place.model}", PROMPT],
        environ=_opencode,
        can_save=lambda _: True,
    ),
    BenchAgent(
        name="mini-swe-agent",
        # litellm imports mcp, and does not always bring it.
        pypi=("mini-swe-agent>=2.4,<2.5", "mcp"),
        program="bin/mini",
        command=lambda place: [
            *("-t", PROMPT, "-y", "--exit-immediately", "-m", f"anthropic/{place.model}"),
            *("-o", str(place.home / "trajectory.json")),
        ],
        environ=lambda _: {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"},
    ),
    BenchAgent(
        name="goose",
        npm="@aaif/goose",
        program="node_modules/.bin/goose",
        command=lambda _: ["run", "--no-session", "--with-builtin", "developer", "-t", PROMPT],
        environ=lambda place: {
            "GOOSE_PROVIDER": "anthropic",
            "GOOSE_MODEL": place.model,
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "ANTHROPIC_HOST": place.url,
        },
        # Its clock can be moved where old turns may be rewritten.
        can_save=lambda model: choose_capabilities(CATALOG.find(model), "anthropic").rewrites_history,
    ),
    BenchAgent(
        name="pi",
        npm="@mariozechner/pi-coding-agent@0.73",
        program="node_modules/.bin/pi",
        command=lambda place: ["-p", "--mode", "json", "--provider", "sim", "--model", place.model, PROMPT],
        prepare=_pi,
        can_save=lambda _: True,
    ),
    BenchAgent(
        name="continue",
        npm="@continuedev/cli@1.5",
        program="node_modules/.bin/cn",
        command=lambda place: ["-p", "--auto", "--config", str(place.home / "continue.yaml"), PROMPT],
        prepare=_continue,
        can_save=lambda _: True,
    ),
    BenchAgent(
        name="qwen",
        npm="@qwen-code/qwen-code",
        program="node_modules/.bin/qwen",
        command=lambda _: ["-p", PROMPT, "--yolo", "--auth-type", "openai", "--model", OPENAI_MODEL],
        environ=lambda _: {"OPENAI_MODEL": OPENAI_MODEL},
    ),
    BenchAgent(
        name="aider",
        pypi=("aider-chat",),
        program="bin/aider",
        command=lambda _: [
            *("--model", f"anthropic/{AIDER_MODEL}", "--no-check-update", "--analytics-disable"),
            *("--no-show-model-warnings", "--no-pretty", "--no-fancy-input", "--yes-always", "--no-stream"),
            *("--no-auto-commits", "--no-gitignore", "--map-tokens", "1024", "part2.txt"),
        ],
        stdin="".join(f"Question {number}: what does line {number} say?\n" for number in range(1, ROUNDS)),
        rounds=0,
        can_save=lambda _: True,
    ),
)


class NotAvailable(Exception):
    """An agent cannot be had here; the message says why."""


def install_agent(agent: BenchAgent, folder: Path) -> Path:
    """The program of an agent, installed if it is not there yet."""
    own = folder / agent.name if agent.pypi else folder
    program = own / agent.program
    if program.exists():
        return program
    if agent.npm:
        if shutil.which("npm") is None:
            raise NotAvailable("npm is not installed")
        commands = [["npm", "install", "--no-audit", "--no-fund", "--prefix", str(own), agent.npm]]
    else:
        python = str(own / "bin" / "python")
        commands = [
            [sys.executable, "-m", "venv", str(own)],
            [python, "-m", "pip", "install", "--quiet", *agent.pypi],
        ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            raise NotAvailable(f"{command[0]} failed: {' '.join(done.stderr.split())[-200:]}")
    if not program.exists():
        raise NotAvailable(f"{agent.program} is not in what was installed")
    return program


@dataclass(slots=True)
class ToolModel:
    """Calls the agent's shell in every round, and then says that it is done."""

    rounds: int
    answers: int = 0
    finished: int = 0

    def __call__(self, prompt: Prompt) -> Reply:
        self.answers += 1
        used = sum(isinstance(block, ToolResult) for message in prompt.messages for block in message.blocks)
        shell = find_shell(prompt.tool_schemas)
        thought = f"Step {used + 1} of {self.rounds}." if prompt.thinks else ""
        if shell is None:
            return say("They are all about birds.")
        name, key, schema = shell
        command = f"cat part{used + 1}.txt"
        if used >= self.rounds:
            self.finished += 1
            if name != "bash" or len(prompt.tools) > 1:
                return say("They are all about birds.", think=thought)
            # mini-swe-agent ends with a command.
            command = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo birds"
        return say("Next.", think=thought, calls={name: {**fill_schema(schema), key: command}})


def find_shell(schemas: Mapping[str, JsonObject]) -> tuple[str, str, JsonObject] | None:
    """The tool that runs commands: its name, the field of the command, and its schema."""
    for name, schema in schemas.items():
        fields = schema.get("properties")
        for key in ("command", "cmd"):
            if isinstance(fields, JsonObject) and key in fields and "prompt" not in fields:
                return name, key, schema
    return None


def fill_schema(schema: JsonObject) -> dict[str, object]:
    """Something for every field that is required."""
    fields, required = schema.get("properties"), schema.get("required")
    empty: dict[object, object] = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
    found: dict[str, object] = {}
    for key in required if isinstance(required, tuple) else ():
        field_schema = fields.get(str(key)) if isinstance(fields, JsonObject) else None
        told = field_schema if isinstance(field_schema, JsonObject) else JsonObject({})
        choices = told.get("enum")
        default = empty.get(told.get("type"), "read a file")
        found[str(key)] = choices[0] if isinstance(choices, tuple) and choices else default
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One session."""

    is_finished: bool
    requests: int
    read_share: float
    cost: float
    reason: str = ""
    touched: int = 0
    thinking_lost: int = 0
    most_breakpoints: int = 0
    changed_untouched: int = 0
    delay_ms: float = 0.0
    """What the proxy adds before it sends a request on, the median."""
    slowest_ms: float = 0.0
    """The same of the slowest request, which is mostly the first."""


@dataclass(slots=True)
class AgentRow:
    agent: str
    skipped: str = ""
    can_save: bool = False
    outcomes: dict[Mode, Outcome] = field(default_factory=dict[Mode, Outcome])

    def list_problems(self) -> list[str]:
        found: list[str] = []
        direct = self.outcomes.get("direct")
        for mode, one in self.outcomes.items():
            worse = one.cost / direct.cost - 1 if direct and direct.cost else 0.0
            checks = {
                f"did not finish: {one.reason}": not one.is_finished,
                f"{one.changed_untouched} untouched requests have other bytes": one.changed_untouched > 0,
                f"{one.thinking_lost} thinking blocks lost": one.thinking_lost > 0,
                f"{one.most_breakpoints} breakpoints": one.most_breakpoints > 4,
                f"{worse:.1%} more than direct": worse > MOST_WORSE,
                f"{worse:+.1%}, though a layer can help": (
                    mode == "layers" and self.can_save and direct is not None and worse > -LEAST_SAVED
                ),
            }
            found += [f"{self.agent}, {mode}: {text}" for text, is_wrong in checks.items() if is_wrong]
        return found


def run_agent_row(
    agent: BenchAgent,
    folder: Path,
    scratch: Path,
    modes: Sequence[Mode] = MODES,
    claude_model: str = CLAUDE_MODEL,
) -> AgentRow:
    row = AgentRow(agent.name, can_save=agent.can_save(claude_model))
    try:
        program = install_agent(agent, folder)
    except (NotAvailable, subprocess.TimeoutExpired, OSError) as error:
        row.skipped = str(error)
        return row
    for number, mode in enumerate(modes):
        # Agents put the name of the folder into the prompt: it is as long in each mode.
        row.outcomes[mode] = run_session(
            agent, program, scratch / f"{agent.name}-{number}", mode, claude_model
        )
        if mode == "direct" and not row.outcomes[mode].is_finished:
            # What does not even work without us says nothing about the proxy.
            row.skipped = f"does not finish on the simulator: {row.outcomes[mode].reason}"
            row.outcomes.clear()
            break
    return row


def run_session(
    agent: BenchAgent, program: Path, home: Path, mode: Mode, claude_model: str = CLAUDE_MODEL
) -> Outcome:
    model = ToolModel(agent.rounds)
    project = home / "project"
    project.mkdir(parents=True)
    write_project(project)
    with ExitStack() as exits:
        sim = exits.enter_context(Simulator(model, choices=Choices(strict=False)))
        tap = None if mode == "direct" else exits.enter_context(TapProxy(sim.url, home / ".sevenfold"))
        profile = find_profile(agent.name)
        url = sim.url if tap is None else tap.add_run(profile, project, records_only=mode == "record")
        place = Place(home, project, url, claude_model)
        agent.prepare(place)
        reason = run_program(agent, program, place)
        billed = [entry for entry in sim.ledger.billed if entry.usage.prompt]
        if tap is not None:
            tap.finish()
    usage = [entry.usage for entry in billed]
    prompt = sum(one.prompt for one in usage)
    is_done = model.finished > 0 if agent.rounds else model.answers >= ROUNDS - 1
    return Outcome(
        is_finished=is_done and not reason,
        reason=reason or f"{model.answers} requests were answered",
        requests=len(billed),
        read_share=sum(one.read for one in usage) / prompt if prompt else 0.0,
        cost=sum(
            one.fresh + 1.25 * one.written_5m + 2 * one.written_1h + 0.1 * one.read + 5 * one.output
            for one in usage
        ),
        **(NOTHING_MEASURED if tap is None else tap.measure()),
    )


def write_project(project: Path) -> None:
    """Files of a few kilobytes, one large; a repository, since some agents want one."""
    for number in range(1, ROUNDS + 2):
        size = 1_500 if number == 2 else 60
        lines = (f"part {number}, line {line}: a heron stands in the river and waits" for line in range(size))
        (project / f"part{number}.txt").write_text("\n".join(lines) + "\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], cwd=project, check=True, capture_output=True)


def run_program(agent: BenchAgent, program: Path, place: Place) -> str:
    """Why it failed; empty where it did not."""
    profile = find_profile(agent.name)
    environ = {
        "HOME": str(place.home),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "TERM": "dumb",
        "ANTHROPIC_API_KEY": "simulated",
        "OPENAI_API_KEY": "simulated",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **(profile.make_environ(place.url) if profile else {}),
        **agent.environ(place),
    }
    running = subprocess.Popen(
        [str(program), *agent.command(place)],
        cwd=place.project,
        env=environ,
        stdin=subprocess.PIPE if agent.stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(agent.stdin or None, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        output, _ = running.communicate()
        return f"it took longer than {PATIENCE_SECONDS} seconds: {' '.join(output.split())[-300:]}"
    if running.returncode:
        return f"exit code {running.returncode}: {' '.join(output.split())[-300:]}"
    return ""


HEADER = (
    f"{'agent':15} {'mode':7} {'done':4} {'requests':>8} {'touched':>7} {'thinking':>8} {'breakpoints':>11} "
    f"{'same bytes':>10} {'read':>6} {'cost':>9} {'to direct':>9} {'delay ms':>8} {'slowest':>8}"
)


def render_row(row: AgentRow) -> list[str]:
    if row.skipped:
        return [f"{row.agent:15} skipped: {row.skipped}"]
    lines: list[str] = []
    direct = row.outcomes.get("direct")
    for mode, one in row.outcomes.items():
        change = f"{one.cost / direct.cost - 1:+.1%}" if direct and direct.cost else "-"
        proxied = ("-", "-", "-", "-", "-", "-")
        if mode != "direct":
            proxied = (
                str(one.touched),
                "lost" if one.thinking_lost else "same",
                str(one.most_breakpoints),
                "no" if one.changed_untouched else "yes",
                f"{one.delay_ms:.1f}",
                f"{one.slowest_ms:.1f}",
            )
        touched, thinking, most, same, delay, slowest = proxied
        lines.append(
            f"{row.agent:15} {mode:7} {'yes' if one.is_finished else 'no':4} {one.requests:>8} {touched:>7} "
            f"{thinking:>8} {most:>11} {same:>10} {one.read_share:>6.1%} {one.cost:>9,.0f} {change:>9} "
            f"{delay:>8} {slowest:>8}"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--agents", default=",".join(agent.name for agent in AGENTS))
    parser.add_argument("--folder", type=Path, help="where the agents are, or are installed")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--model", default=CLAUDE_MODEL, help=f"of agents that ask Claude ({CLAUDE_MODEL})")
    options = parser.parse_args()
    named = options.agents.split(",")
    unknown = set(named) - {agent.name for agent in AGENTS}
    if unknown:
        parser.error(f"there is no agent {min(unknown)!r}; expected some of {parser.get_default('agents')}")
    modes: list[Mode] = [mode for mode in MODES if mode in options.modes.split(",")]
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sevenfold-agents-", ignore_cleanup_errors=True) as scratch:
        folder = options.folder or Path(scratch) / "installed"
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{options.model}; Codex and qwen: {OPENAI_MODEL}; aider: {AIDER_MODEL}")
        print(HEADER, flush=True)
        for agent in AGENTS:
            if agent.name in named:
                row = run_agent_row(agent, folder, Path(scratch), modes, options.model)
                print("\n".join(render_row(row)), flush=True)
                problems += row.list_problems()
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
