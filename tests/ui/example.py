"""A machine with something on every page: sessions, memories, a dream, spend, and a proxy's ledger."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

from sevenfold.core.clock import SystemClock
from sevenfold.core.memories import Origin
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest
from sevenfold.layers.dreams.dreamer import Dreamer
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.session.blocking import BlockingSession
from sevenfold.session.governor import SpendCharge, SpendStore
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from tests.session.talk import FRAME, call, result

HOSTILE = "</pre></script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
"""Text that would run if it ever became HTML."""
LARGE = "line of a long listing\n" * 20_000


@dataclass(slots=True)
class Machine:
    """A home and a project in it."""

    home: Path
    project: Path
    sent: dict[str, list[ModelRequest]] = field(default_factory=dict[str, list[ModelRequest]])
    """What each session of ours sent, request by request."""

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home)}

    @property
    def state(self) -> Path:
        return self.home / ".sevenfold"

    @contextmanager
    def workspace(self) -> Generator[Workspace]:
        with Workspace.open(WorkspaceOptions(project=self.project, environ=self.environ)) as opened:
            yield opened

    def talk(self, rounds: int, **settings: dict[str, object]) -> str:
        """A session of ours, ended; its third result is large enough to be stored."""
        with BlockingSession.open(
            FRAME, project=self.project, environ=self.environ, settings=settings
        ) as session:
            sent = self.sent.setdefault(session.id, [])
            session.history.append(Message("user", f"Please mend the parser. {HOSTILE}"))
            for number in range(rounds):
                view = session.prepare()
                sent.append(view.request)
                tool = "Bash" if number == 2 else "Read"
                session.record(call(number, tool, tokens=500 + view.tokens, file_path="/src/a.py"))
                session.history.append(result(number, LARGE if number == 2 else "the same text " * 200))
            return session.id

    def add_sample(self) -> Path:
        """The sample, as a session of Claude Code."""
        folder = self.home / ".claude" / "projects" / "-srv-app"
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "sample.jsonl"
        shutil.copyfile(str(files("sevenfold.replay") / "sample" / "session.jsonl"), target)
        return target

    def add_memories(self) -> None:
        with MemoryDir.for_project(self.project, environ=self.environ) as memory:
            memory.add("release", "Releases are cut from main with `make release`.\n", kind="project")
            memory.add("release-notes", "Release notes go to CHANGELOG.md, newest first.\n", kind="project")
            memory.add(
                "hostile", f"A memory that says {HOSTILE}\n", description=HOSTILE[:60], kind="reference"
            )
            memory.add(
                "push-rule",
                "Never push to main without running the tests.\n",
                kind="feedback",
                applies_to=["command: git push*"],
            )
            stored = memory.read("release.md")
            changed = stored.memory.text.replace("make release", "make ship")
            memory.commit(
                [Write("release.md", changed, stored.sha256)],
                Origin(who="user", why="edited by hand", said_by="user", is_accepted=True),
            )
            outside = Origin(
                who="fork", why="a page said so", said_by="tool output", taint=frozenset({"web"})
            )
            proposed = Write("from-the-web.md", f"---\nname: from-the-web\n---\n\nTrust {HOSTILE}\n", None)
            memory.propose([proposed], outside, "it came through a web page")
            untrusted = Write("heard.md", "---\nname: heard\n---\n\nThe port is 8080.\n", None)
            memory.commit([untrusted], outside)

    def add_dream(self) -> None:
        """A mechanical dream, which found something to do or not."""
        with self.workspace() as opened:
            dreamer = Dreamer(opened.project, opened.memory, DreamSettings())
            with closing(dreamer):
                asyncio.run(dreamer.dream())

    def add_spend(self) -> None:
        now = SystemClock().now()
        with closing(SpendStore.open(self.state)) as store:
            for days_ago, share in ((0, 1), (0, 2), (2, 30)):
                store.append(
                    SpendCharge(
                        at=now - timedelta(days=days_ago),
                        kind="notes",
                        model="claude-haiku-5",
                        session="s1",
                        tokens=12_000,
                        read=9_000,
                        micro_usd=4_200 * share,
                        prompt=11_000,
                    )
                )

    def add_proxy(self, pid: int, now: datetime | None = None) -> Path:
        """A ledger of a proxy, with a cache break in its second request."""
        folder = self.state / "proxy"
        folder.mkdir(parents=True, exist_ok=True)
        at = (now or datetime.now(UTC)).isoformat()
        common = {"at": at, "agent": "claude", "conversation": "c1", "purpose": "turn", "status": 200}
        common |= {"model": "claude-opus-5", "fresh": 10}
        entries = [
            {**common, "dollars": "0.12", "read": 0, "written_5m": 9_000},
            {
                **common,
                "dollars": "0.05",
                "read": 9_000,
                "written_5m": 500,
                "break": {"cause": HOSTILE, "lost_tokens": 5_000},
            },
        ]
        path = folder / f"2026-11-16-101500-{pid}.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
        return path

    def fill(self) -> None:
        """Something for every page."""
        self.talk(6)
        self.talk(12, models={FRAME.model: {"window_tokens": 40_000}}, microcompact={"enabled": False})
        self.add_sample()
        self.add_memories()
        self.add_dream()
        self.add_spend()


def make_machine(root: Path) -> Machine:
    project = root / "project"
    project.mkdir(parents=True)
    return Machine(root, project)
