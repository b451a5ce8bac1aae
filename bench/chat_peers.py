"""Our chat beside Claude Code and Codex, each in a terminal of 100 columns on the simulator.

    python -m bench.chat_peers [--folder /tmp/agents] [--agents sevenfold,claude,codex] [--json]

All get the same prompt and the same markdown answer, streamed in small pieces. Measured are the bytes that
the terminal gets for the answer and in a second of waiting, and the processor time of all processes until
the input is drawn, as a multiple of `python -c "import rich, prompt_toolkit"` in the same run. Another agent
that cannot be installed or does not start is a row with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from bench.agents import AGENTS, NotAvailable, install_agent

from sevenfold.testing import Choices, Prompt, Simulator, SlowFault
from tests.stories.living import SEVENFOLD
from tests.stories.stage import Stage, staged

COLUMNS, ROWS = 100, 30
PIECE = timedelta(milliseconds=30)
"""Between two pieces of the answer."""
WAITING = timedelta(seconds=12)
"""Before the answer that is waited for."""
QUIET_SECONDS = 1.5
"""Without a byte: a screen is drawn. Several times what the slowest of them takes between two frames."""
PATIENCE_SECONDS = 90
MOST_REQUESTS = 9
PARAGRAPH = (
    "The parser reads **one line** at a time and splits it into `fields`, each of which is checked. " * 3
)
ANSWER = "\n\n".join(
    [
        "# The parser",
        PARAGRAPH,
        "\n".join(f"- point {number}: a field that is checked before it is used" for number in range(10)),
        PARAGRAPH,
        "```python\n"
        + "\n".join(f"def check_{n}(field: str) -> bool:\n    return bool(field)" for n in range(8))
        + "\n```",
        "That is the parser.",
    ]
)
LAST_WORDS = "That is the parser."


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerChat:
    """One program, and how a person gets to its input."""

    name: str
    command: Callable[[Path, str], list[str]]
    """With the folder of agents and the address of the model."""
    configure: Callable[[Path, str], None] = lambda _, __: None
    """Write what it reads in the home, so that it asks nothing on its first start."""
    ready: str
    """Stands on the screen once the input does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What one chat wrote to its terminal."""

    name: str
    answer_bytes: int = 0
    waiting_bytes: float = 0
    """A second."""
    start_ratio: float = 0
    """Of its processor time to that of importing the two libraries that ours draws with."""
    frames: int = 0
    """Synchronised updates."""
    clears: int = 0
    has_scrollback: bool = False
    """The whole answer can be scrolled to in the terminal itself."""
    reason: str = ""
    """Why there are no figures."""


def configure_claude(home: Path, _: str) -> None:
    project = {str(home / "project"): {"hasTrustDialogAccepted": True}}
    keys = {"approved": ["simulated"], "rejected": []}
    config = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": keys}
    (home / ".claude.json").write_text(json.dumps({**config, "projects": project}), encoding="utf-8")


def configure_codex(home: Path, url: str) -> None:
    (home / ".codex").mkdir()
    lines = (
        *('model = "gpt-5.5"', 'model_provider = "sim"', "check_for_update_on_startup = false"),
        *("[model_providers.sim]", 'name = "sim"', f'base_url = "{url}/v1"'),
        *('wire_api = "responses"', 'env_key = "OPENAI_API_KEY"'),
        # It would offer a newer model first.
        *("[notice.model_migrations]", '"gpt-5.5" = "gpt-6-sol"'),
        *(f'[projects."{home / "project"}"]', 'trust_level = "trusted"'),
    )
    (home / ".codex" / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def find_program(name: str, agents: Path) -> str:
    agent = next(agent for agent in AGENTS if agent.name == name)
    return str(install_agent(agent, agents))


CHATS = (
    PeerChat(name="sevenfold", command=lambda _, __: [*SEVENFOLD, "chat"], ready="›"),
    PeerChat(
        name="claude",
        command=lambda agents, _: [find_program("claude", agents), "--model", "claude-opus-5-5"],
        configure=configure_claude,
        ready="shift+tab",
    ),
    PeerChat(
        name="codex",
        command=lambda agents, _: [find_program("codex", agents)],
        configure=configure_codex,
        ready="Ask Codex to do anything",
    ),
    PeerChat(
        name="codex --no-alt-screen",
        command=lambda agents, _: [find_program("codex", agents), "--no-alt-screen"],
        configure=configure_codex,
        ready="Ask Codex to do anything",
    ),
)


def answer(prompt: Prompt) -> str:
    return ANSWER if "explain" in prompt.last_text else "Short."


def measure(chat: PeerChat, agents: Path, unit: float) -> Drawn:
    """Two starts: in one the answer has to be waited for, in the other it streams."""
    try:
        with opened(chat, agents, SlowFault(first=WAITING)) as stage:
            started = wait_for_input(stage, chat)
            send_prompt(stage, "hello")
            watch(stage, 3)
            before, began = len(stage.raw), time.monotonic()
            watch(stage, 5)
            waiting = (len(stage.raw) - before) / (time.monotonic() - began)
        with opened(chat, agents, SlowFault(each=PIECE)) as stage:
            started = min(started, wait_for_input(stage, chat))
            typed = send_prompt(stage, "explain the parser")
            wait_until(stage, lambda: LAST_WORDS in stage.everything, "the answer is shown")
            settle(stage)
            written = bytes(stage.raw[typed:])
            whole = all(f"point {number}:" in stage.everything for number in range(10))
            return Drawn(
                name=chat.name,
                answer_bytes=len(written),
                waiting_bytes=waiting,
                start_ratio=started / unit,
                frames=written.count(b"\x1b[?2026h"),
                clears=written.count(b"\x1b[2J") + written.count(b"\x1b[3J"),
                has_scrollback=whole and b"\x1b[?1049h" not in stage.raw,
            )
    except (NotAvailable, TimeoutError) as error:
        return Drawn(name=chat.name, reason=" ".join(str(error).split()))


@contextmanager
def opened(chat: PeerChat, agents: Path, slowness: SlowFault) -> Generator[Stage]:
    """One in a home and a project of its own, with a model that answers so slowly."""
    simulator = Simulator(answer, choices=Choices(strict=False))
    with simulator as sim, tempfile.TemporaryDirectory(prefix="peer-") as folder:
        # Some ask for a title beside the answer.
        for _ in range(MOST_REQUESTS):
            sim.fail(slowness)
        home, url = Path(folder), sim.url
        project = home / "project"
        project.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        environ = {
            "HOME": folder,
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "simulated",
            "OPENAI_API_KEY": "simulated",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "SEVENFOLD_AGENT_THINKING": "false",
        }
        chat.configure(home, url)
        command = chat.command(agents, url)
        try:
            with staged(command, project, environ, columns=COLUMNS, rows=ROWS) as stage:
                yield stage
        finally:
            end_daemons(folder)


def end_daemons(home: str) -> None:
    """Some start a process that outlives their window."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def wait_for_input(stage: Stage, chat: PeerChat) -> float:
    """Processor seconds of all its processes until the input is drawn."""
    wait_until(stage, lambda: chat.ready in stage.shown, "the input is drawn")
    used = measure_session(stage.process.pid)
    settle(stage)
    return used


def measure_session(leader: int) -> float:
    """Processor seconds of the processes in the terminal's session, and of those that they waited for."""
    ticks = 0
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "stat").read_text() if folder.name.isdigit() else ""
        except OSError:  # it ended meanwhile
            continue
        fields = line.rpartition(")")[2].split()
        if fields and int(fields[3]) == leader:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def send_prompt(stage: Stage, text: str) -> int:
    """Type and send it; where in the output that was."""
    stage.type(text)
    wait_until(stage, lambda: text in stage.shown, "the prompt is typed")
    settle(stage)  # an Enter that follows at once would be taken for pasted
    typed = len(stage.raw)
    stage.type("\r")
    return typed


def watch(stage: Stage, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        stage.watch(left)


def settle(stage: Stage) -> None:
    """Until nothing is drawn any more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while stage.watch(QUIET_SECONDS) and time.monotonic() < deadline:
        pass


def wait_until(stage: Stage, holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if stage.process.poll() is not None or time.monotonic() > deadline:
            raise TimeoutError(f"it never came to pass that {what}; the screen: {stage.shown[-300:]!r}")
        stage.watch(0.2)


def measure_libraries() -> float:
    """Processor seconds of importing what ours draws with."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(3):
        subprocess.run([sys.executable, "-c", "import rich, prompt_toolkit"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3


def render(rows: Sequence[Drawn]) -> list[str]:
    lines = [
        "| chat | bytes of an answer | frames | full clears | bytes/s of waiting | start | scrollback |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        if row.reason:
            lines.append(f"| {row.name} | {row.reason} | | | | | |")
            continue
        lines.append(
            f"| {row.name} | {row.answer_bytes:,} | {row.frames} | {row.clears} | {row.waiting_bytes:,.0f} "
            f"| {row.start_ratio:.1f} | {'yes' if row.has_scrollback else 'no'} |"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where agents are installed, and kept")
    parser.add_argument("--agents", default=",".join(chat.name for chat in CHATS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    wanted, unit = options.agents.split(","), measure_libraries()
    with tempfile.TemporaryDirectory(prefix="agents-") as scratch:
        agents = options.folder or Path(scratch)
        rows = [measure(chat, agents, unit) for chat in CHATS if chat.name in wanted]
    print(json.dumps([asdict(row) for row in rows]) if options.json else "\n".join(render(rows)))
    return int(any(row.reason for row in rows))


if __name__ == "__main__":
    sys.exit(main())
