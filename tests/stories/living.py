"""Where stories take place: a repository, a home, and a model on this machine that answers as it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.testing import Simulator
from tests.stories.stage import Stage, staged

SEVENFOLD = (sys.executable, "-m", "sevenfold")


@dataclass(slots=True)
class Place:
    """One person's machine."""

    root: Path
    sim: Simulator
    environ: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.project.mkdir()
        self.home.mkdir()
        (self.project / "cat.txt").write_text("The cat sat on the mat.\n", encoding="utf-8")
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
            subprocess.run(["git", *command], cwd=self.project, check=True)
        self.environ |= {
            "HOME": str(self.home),
            "ANTHROPIC_BASE_URL": self.sim.url,
            "ANTHROPIC_API_KEY": "simulated",
            "SEVENFOLD_AGENT_THINKING": "false",
            "SEVENFOLD_RECALL_SIDE_QUERY": "off",
            "SEVENFOLD_EXTRACTION_WRITER": "rules",
        }

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @contextmanager
    def chat(self, *options: str, columns: int = 80, **environ: str) -> Generator[Stage]:
        """A chat in a terminal, ready to be typed in."""
        with self.open_chat(*options, columns=columns, **environ) as stage:
            stage.wait_for("opus-5-5")
            yield stage

    @contextmanager
    def open_chat(self, *options: str, columns: int = 80, **environ: str) -> Generator[Stage]:
        """The same from its very start, where it may ask something first."""
        command = [*SEVENFOLD, "chat", *options]
        with staged(command, self.project, {**self.environ, **environ}, columns=columns) as stage:
            yield stage

    @contextmanager
    def chat_plain(self, columns: int = 80) -> Generator[Stage]:
        """The same where only lines can be printed."""
        environ = {**self.environ, "TERM": "dumb"}
        with staged([*SEVENFOLD, "chat"], self.project, environ, columns=columns) as stage:
            stage.wait_for(">")
            yield stage

    def run(self, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        """A command without a terminal."""
        return subprocess.run(
            [*SEVENFOLD, *arguments],
            cwd=self.project,
            env={**os.environ, **self.environ, **environ},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def transcripts(self) -> list[Path]:
        return sorted((self.home / ".sevenfold" / "projects").glob("*/sessions/*.jsonl"))

    def leftovers(self) -> list[str]:
        """Files that only a writer that died leaves behind."""
        names = (path for path in self.home.rglob("*") if path.is_file() or path.is_socket())
        return [str(path) for path in names if path.name.startswith(".tmp-") or path.suffix == ".sock"]


def processes_with(word: str) -> list[str]:
    """The command lines of processes that have a word among their arguments."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:  # it ended meanwhile
            continue
        if word.encode() in line:
            found.append(line.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found
