"""A project with memories to dream of, and a model that is told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.permissions.rules import PermissionRules
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.agent.tools.file_changes import WriteTool as WriteFile
from sevenfold.agent.tools.memory import MEMORY_TOOL_SPEC
from sevenfold.agent.tools.read import ReadTool
from sevenfold.agent.tools.search import GlobTool, GrepTool
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import Event
from sevenfold.core.memories import Origin, write_memory
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.dreams.dreamer import Dreamer, DreamResult
from sevenfold.layers.dreams.policy import DREAM_KIND, DreamSettings
from sevenfold.layers.dreams.workspace import DreamModel
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, run_fork
from sevenfold.providers.scripted import ScriptedProvider, ScriptedStep
from sevenfold.store.memory.changes import ANYTHING, Remove, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project

CHECK = "Always run `make check` before a push."


def text_of(name: str, body: str, kind: str = "project") -> str:
    return write_memory(name, f"on {name}", kind, body)


class Bedroom:
    """Where a dream takes place. Everything in it is opened and closed by itself."""

    def __init__(
        self,
        root: Path,
        settings: DreamSettings | None = None,
        *,
        name: str = "repo",
        memory_dir: Path | None = None,
    ) -> None:
        self.root = (root / name).resolve()
        self.root.mkdir(exist_ok=True)
        self.clock = ManualClock()
        self.heard: list[Event] = []
        self.project = Project.open(self.root, home=root / "home", memory_dir=memory_dir, clock=self.clock)
        self.memory = MemoryDir(self.project, clock=self.clock, emit=self.heard.append)
        self.dreamer = Dreamer(
            self.project,
            self.memory,
            settings or DreamSettings(),
            clock=self.clock,
            emit=self.heard.append,
        )

    def __enter__(self) -> Bedroom:
        return self

    def __exit__(self, *_: object) -> None:
        self.dreamer.close()
        self.memory.close()
        self.project.close()

    def put(self, name: str, body: str, kind: str = "project", origin: Origin | None = None) -> None:
        """One memory, a minute after whatever was there before."""
        self.clock.pass_time(timedelta(minutes=1))
        change = Write(f"{name}.md", text_of(name.rpartition("/")[2], body, kind), ANYTHING)
        self.memory.commit([change], origin or Origin(who="user", why="test", said_by="user"))

    def drop(self, name: str) -> None:
        key = f"{name}.md"
        self.memory.commit([Remove(key, self.memory.read(key).sha256)], Origin(who="user", why="test"))

    def texts(self) -> dict[str, str]:
        return {key: self.memory.read(key).memory.text for key in self.memory.keys()}  # noqa: SIM118 - no dict

    def files(self) -> dict[str, str]:
        """What lies in the folder, the index included."""
        folder = Path(self.project.memory.path)
        return {
            str(path.relative_to(folder)): path.read_text(encoding="utf-8")
            for path in sorted(folder.rglob("*.md"))
        }

    def body(self, name: str) -> str:
        return self.memory.read(f"{name}.md").memory.body.strip()

    def dream(self, model: DreamModel | None = None, *, is_dry: bool = False) -> DreamResult:
        return asyncio.run(self.dreamer.dream(model, is_dry=is_dry))

    def told(self, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.heard if isinstance(event, kinds)]


class Sleeper:
    """A model that is told what to do, with the tools that an agent has."""

    def __init__(self, room: Bedroom, steps: Sequence[ScriptedStep]) -> None:
        self.models = ScriptedProvider(steps)
        place = ToolContext(root=room.root, cwd=room.root, emit=room.heard.append, clock=room.clock)
        tools = (ReadTool(), GrepTool(), GlobTool(), WriteFile())
        self.box = ToolExecutor(tools, place, Guard(mode="bypass", rules=PermissionRules(), root=room.root))
        declared = (*self.box.declared(), MEMORY_TOOL_SPEC.declared())
        frame = RequestParams(model="claude-opus-5-5", max_tokens=1_000, system="", tools=declared)
        self.parent = ModelRequest(frame, (Message("user", "hello"), Message("assistant", "hi")))
        self._emit = room.heard.append

    @property
    def model(self) -> DreamModel:
        return DreamModel(lambda folders: self.box.reader(folders, who=DREAM_KIND), self.fork)

    async def fork(self, brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        return await run_fork(self.parent, brief, self.models, run_tool=run_tool, emit=self._emit)

    def results(self) -> list[str]:
        """What the fork's calls were answered with."""
        last = self.models.requests[-1].messages
        return [str(block) for message in last for block in message.blocks if "tool_use_id" in str(block)]


def write(name: str, body: str, said: str = "", kind: str = "project") -> dict[str, object]:
    said = said or f"on {name}"
    return {"action": "write", "name": name, "description": said, "type": kind, "content": body}


def delete(name: str, reason: str = "") -> dict[str, object]:
    return {"action": "delete", "name": name, "content": reason}


After = Callable[[], None]
