"""The second day of the tour: a session that knows what was said, a rule in time, a dream and its undo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.loop.agent import Agent
from sevenfold.cli.tour.script import TEST_COMMAND, TourScene, reply_with_calls, shell_call
from sevenfold.core.clock import Clock
from sevenfold.core.errors import SimulatorError
from sevenfold.core.memories import write_memory
from sevenfold.core.provenance import Origin
from sevenfold.layers.dreams.dreamer import DreamResult
from sevenfold.simulator.responders.brain_protocol import say
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir

COMMIT_COMMAND = "git commit -qam 'Round half a cent up'"

SECOND_DAY_SCENES = (
    TourScene(
        title="Day two: what was learnt",
        said="The next morning, in a new session that has read nothing yet. What a prompt is "
        "about comes with it.",
        prompt="What did I say about tests before a commit?",
        replies=(say("That they always run first: a red build has cost you a day."),),
    ),
    TourScene(
        title="A rule that fires",
        said="Nobody speaks of tests now. But the memory says that it matters before a commit, "
        "so the call waits "
        "until the model has read it.",
        prompt="Commit the mend.",
        replies=(
            reply_with_calls("", shell_call(COMMIT_COMMAND, "commit the mend")),
            reply_with_calls(
                "The memory asks for the tests first.", shell_call(TEST_COMMAND, "run the tests")
            ),
            reply_with_calls("They pass, so now it may be.", shell_call(COMMIT_COMMAND, "commit the mend")),
            say("Committed, and the tests ran first."),
        ),
    ),
)

DREAM_SCENE = TourScene(
    title="A dream",
    said="Somebody has noted the same thing twice, in two wordings, and something about "
    "tomorrow. A dream puts "
    "that in order: in a copy, checked for facts that would be lost, and published as one change.",
    prompt="",
    replies=(),
)


@dataclass(frozen=True, slots=True)
class SampleMemory:
    """A memory that a person added by hand."""

    name: str
    description: str
    body: str


SAMPLE_MEMORIES = (
    SampleMemory(
        "deploy-days", "When the shop is deployed", "The shop is deployed on Tuesdays and Thursdays."
    ),
    SampleMemory(
        "deploys", "On which days the shop is deployed", "The shop is deployed on Tuesdays and Thursdays!"
    ),
    SampleMemory("freeze", "When nothing may be merged", "Nothing is merged tomorrow: the rates change."),
)


@dataclass(frozen=True, slots=True)
class DreamDemo:
    """A dream, and what became of it."""

    dreamt: DreamResult
    restored: int
    """Memories that are again what they were, byte for byte."""


async def dream_and_undo(
    agent: Agent, repository: Path, environ: Mapping[str, str], clock: Clock
) -> DreamDemo:
    """Have notes put in order by a dream, and take that back."""
    with MemoryDir.for_project(repository, environ=environ, clock=clock) as memory:
        texts = [
            (f"{note.name}.md", write_memory(note.name, note.description, "project", note.body))
            for note in SAMPLE_MEMORIES
        ]
        memory.commit(
            [Write(key, text, None) for key, text in texts], Origin(who="user", why="added by hand")
        )
        before = _texts(memory)
        if agent.dream is None:
            raise SimulatorError("the tour's agent cannot dream")
        dreamt = await agent.dream(_hush)
        if _texts(memory) == before:
            raise SimulatorError(f"the tour's dream changed nothing: {dreamt.record.outcome}")
        memory.revert(dreamt.record.transaction, "the tour takes it back")
        after = _texts(memory)
        return DreamDemo(dreamt, sum(after.get(key) == text for key, text in before.items()))


def _texts(memory: MemoryDir) -> dict[str, str]:
    return {stored.memory.key: stored.memory.text for stored in memory.scan()}


def _hush(_step: str) -> None:
    """The diff says it all."""
