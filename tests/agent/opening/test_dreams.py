"""An agent's dreams: due after a turn, asked for by hand, and the log of the day."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import DreamEnded, DreamSkipped, Event, WriterFailed
from sevenfold.core.memories import Origin, write_memory
from sevenfold.providers.scripted import ScriptedProvider, ScriptedStep, make_response
from sevenfold.store.files.locks import Lock
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from tests.agent.workshop import NO_ASIDES
from tests.layers.dreams.dream_cases import delete, write

CHECK = "Always run `make check` before a push."
ON: dict[str, object] = {"enabled": True, "sessions": 0, "rest_hours": 1}


class Home:
    """A project of its own, with settings."""

    def __init__(self, root: Path, dream: dict[str, object]) -> None:
        self.root = (root / "repo").resolve()
        self.root.mkdir()
        self.environ = {"HOME": str(root), "PATH": os.environ["PATH"], **NO_ASIDES}
        self.settings = {"dream": dream, "extraction": {"enabled": False}}
        self.heard: list[Event] = []
        self.clock = ManualClock()

    def put(self, *names: str) -> None:
        with self.memory() as memory:
            for name in names:
                text = write_memory(name, f"on {name}", "project", CHECK)
                memory.commit([Write(f"{name}.md", text, None)], Origin(who="user", why="test"))

    def memory(self) -> MemoryDir:
        return MemoryDir.for_project(self.root, environ=self.environ)

    def keys(self, below: str = "") -> tuple[str, ...]:
        with self.memory() as memory:
            return memory.keys(below)

    def setup(self, models: ScriptedProvider) -> AgentOptions:
        return AgentOptions(
            project=self.root,
            provider=models,
            settings=self.settings,
            emit=self.heard.append,
            clock=self.clock,
            environ=self.environ,
        )

    def talk(self, models: ScriptedProvider, *said: str) -> None:
        async def run() -> None:
            agent = await open_agent(self.setup(models))
            for text in said:
                await agent.run_turn(text)
                await agent.settle()
            await agent.close()

        asyncio.run(run())


def models(*dreams: ScriptedStep) -> ScriptedProvider:
    return ScriptedProvider(lambda _request: "Yes.", by_purpose={"dream": dreams})


def test_after_a_turn_a_dream_that_is_due_is_dreamt(tmp_path: Path) -> None:
    home = Home(tmp_path, {**ON, "writer": "mechanical"})
    home.put("push-old", "push")
    home.talk(models(), "hello", "hello again")
    assert [event.outcome for event in home.heard if isinstance(event, DreamEnded)] == ["completed"]
    assert home.keys() == ("push.md",)


def test_nothing_is_dreamt_that_nobody_switched_on(tmp_path: Path) -> None:
    home = Home(tmp_path, {})
    home.put("push-old", "push")
    home.talk(models(), "hello")
    assert home.keys() == ("push-old.md", "push.md")


def test_a_model_dreams_beside_the_conversation_and_under_its_own_name(tmp_path: Path) -> None:
    home = Home(tmp_path, ON)
    home.put("push", "other")
    asked = models(
        make_response(calls={"memory": write("push", CHECK, "before a push")}),
        make_response(calls={"memory": delete("other", "duplicate of push.md")}),
        make_response("Done."),
    )
    home.talk(asked, "hello")
    assert home.keys() == ("push.md",)
    dreams = [request for request in asked.requests if request.purpose == "dream"]
    assert len(dreams) == 3
    assert all("hello" not in str(request.messages) for request in dreams)
    assert [tool["name"] for tool in dreams[0].frame.tools] == ["read", "grep", "glob", "memory"]
    assert len(dreams[1].breakpoints) == 2, "what was sent before is read from the cache"


def test_by_hand_no_gate_is_asked_and_each_step_is_told(tmp_path: Path) -> None:
    home = Home(tmp_path, {"writer": "mechanical"})
    home.put("push-old", "push")
    steps: list[str] = []

    async def run() -> None:
        agent = await open_agent(home.setup(models()))
        assert agent.dream
        dreamt = await agent.dream(steps.append)
        await agent.close()
        assert dreamt.record.outcome == "completed"

    asyncio.run(run())
    assert steps == ["starting: publish 1 changed file"]


def test_while_another_process_dreams_a_due_one_is_left_out_and_told(tmp_path: Path) -> None:
    home = Home(tmp_path, {**ON, "writer": "mechanical"})

    with Project.open(home.root, home=tmp_path / ".sevenfold", clock=home.clock) as project:
        Lock(project.control, "dream", clock=home.clock, pid_file=project.pid_file).acquire()
        home.talk(models(), "hello")
    assert len([event for event in home.heard if isinstance(event, DreamSkipped)]) == 1


def test_the_log_of_the_day_holds_what_the_person_said_and_nothing_else_is_extracted(tmp_path: Path) -> None:
    home = Home(tmp_path, {"daily_logs": True})
    home.settings["extraction"] = {"enabled": True, "writer": "rules"}
    home.talk(models(), "Always run the linter first.", "And thanks.")
    assert home.keys() == ()
    (key,) = home.keys("logs/")
    with home.memory() as memory:
        stored = memory.read(key)
    assert "Always run the linter first." in stored.memory.text
    assert "And thanks." in stored.memory.text
    assert "Yes." not in stored.memory.text
    assert stored.origin.said_by == "user"


def test_a_secret_never_gets_into_the_log(tmp_path: Path) -> None:
    home = Home(tmp_path, {"daily_logs": True})
    token = hashlib.sha256(b"any").hexdigest()[:36]
    home.talk(models(), f"the token is ghp_{token}", "hello")
    (key,) = home.keys("logs/")
    with home.memory() as memory:
        assert token not in memory.read(key).memory.text
    assert any(isinstance(event, WriterFailed) for event in home.heard)
