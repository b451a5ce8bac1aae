"""Sessions that are taken up again or branch off: the same bytes, a warm cache, and the old one as it was."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.agent.loop.choose_provider import DEFAULT_MODEL
from sevenfold.agent.tools.planning import TodoTool
from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import FileMissing, ProviderRefused
from sevenfold.core.events import CutRegistered, FrameLost, GuardedMoved, WriterFailed
from sevenfold.core.messages import Thinking
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import ParentRecord
from sevenfold.testing import Prompt, Simulator, say
from sevenfold.testing import Reply as Said
from tests.agent.loop.test_agent import said
from tests.agent.loop.test_agent_hooks import summarise
from tests.agent.workshop import Plain, Shop

LONG = "These are the words of a long prompt. " * 1_500


def brain(prompt: Prompt) -> Said:
    found = say("A short answer.")
    return Said((Thinking("Hm."), *found.blocks)) if prompt.thinks else found


def simulated(home: Path, tell: Callable[[Shop], Awaitable[None]]) -> Simulator:
    """Run a story against the simulator, and hand it back for its ledger."""

    async def run(simulator: Simulator) -> None:
        async with simulator.async_client() as client:
            await tell(Shop(home=home, provider=AnthropicProvider(client)))

    with Simulator(brain) as simulator:
        asyncio.run(run(simulator))
    return simulator


def share_read(simulator: Simulator) -> float:
    """Of the last prompt: what came out of the cache, against what the one before had."""
    before, last = (entry.usage for entry in simulator.ledger.entries[-2:])
    return last.read / before.prompt


@pytest.mark.parametrize("is_fork", [False, True], ids=["continued", "branched off"])
def test_a_session_that_goes_on_reads_its_cache(tmp_path: Path, is_fork: bool) -> None:
    async def tell(shop: Shop) -> None:
        first = await shop.open()
        await first.run_turn(LONG)
        await first.close()
        again = await shop.open("latest", is_fork=is_fork)
        assert (again.session.id == first.session.id) is not is_fork
        await again.run_turn("And now?")
        await again.close()
        assert not shop.noted.of("PrefixBroken")
        assert not shop.noted.of("CacheMissed")

    assert share_read(simulated(tmp_path, tell)) >= 0.99


def test_a_branch_leaves_its_parent_as_it_was_and_names_it(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response("One."), make_response("Two."), make_response("Three.")]
        ) as models:
            shop = Shop(home=tmp_path, provider=models)
            parent = await shop.open()
            await parent.run_turn("First.")
            await parent.close()
            transcript = next((tmp_path / ".sevenfold").rglob(f"{parent.session.id}.jsonl"))
            before = transcript.read_bytes()
            child = await shop.open(parent.session.id, is_fork=True)
            await child.run_turn("Second.")
            await child.close()
            assert transcript.read_bytes() == before
            with Folder.open(transcript.parent) as sessions:
                lines = [
                    line
                    for line in scan_transcript(sessions, child.session.id)
                    if isinstance(line, StoredRecord)
                ]
            assert ParentRecord(parent.session.id) in [line.record.body for line in lines]
            grandchild = await shop.open(child.session.id, is_fork=True)
            await grandchild.run_turn("Third.")
            await grandchild.close()
        assert [text for text in said(models.requests[-1].messages) if text.startswith("assistant")] == [
            "assistant: One.",
            "assistant: Two.",
        ]

    asyncio.run(tell())


def test_what_a_session_is_sent_with_is_kept_whatever_becomes_of_it_elsewhere(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response("One."), make_response("Two."), make_response("Three.")]
        ) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open()
            await agent.run_turn("First.")
            await agent.close()
            templates = tmp_path / ".sevenfold" / "templates"
            templates.mkdir()
            (templates / "system.md").write_text("You are somebody else now.")
            shop.tools = [Plain(), Plain(name="dig")]
            again = await shop.open(agent.session.id)
            await again.run_turn("Second.")
            await again.close()
            new = await shop.open()
            await new.run_turn("First.")
            await new.close()
        first, second, third = models.requests
        assert second.frame == first.frame
        assert third.frame.system == "You are somebody else now."
        assert len(third.frame.tools) == 2

    asyncio.run(tell())


def test_where_the_agent_works_is_said_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    def told(request: ModelRequest) -> int:
        return sum("Working folder" in text for text in said(request.messages))

    async def tell() -> None:
        with ScriptedProvider(
            [make_response("One."), make_response("Two."), make_response("Three.")]
        ) as models:
            shop = Shop(home=tmp_path, provider=models)
            git = shop.project / ".git"
            git.mkdir()
            (git / "HEAD").write_text("ref: refs/heads/main\n")
            for prompt in ("First.", "Second."):
                agent = await shop.open("latest" if models.requests else None)
                await agent.run_turn(prompt)
                await agent.close()
            (git / "HEAD").write_text("ref: refs/heads/other\n")
            agent = await shop.open("latest")
            await agent.run_turn("Third.")
            await agent.close()
        assert [told(request) for request in models.requests] == [1, 1, 2]
        assert "Git branch: other" in "\n".join(said(models.requests[-1].messages))
        assert "Working folder" not in str(models.requests[0].frame.system)

    asyncio.run(tell())


def test_a_new_day_is_said_and_moves_nothing(tmp_path: Path) -> None:
    async def tell() -> None:
        clock = ManualClock()
        with ScriptedProvider([make_response("One."), make_response("Two.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open(clock=clock)
            await agent.run_turn("First.")
            clock.pass_time(timedelta(days=1))
            await agent.run_turn("Second.")
            await agent.close()
        first, second = (said(request.messages) for request in models.requests)
        assert second[: len(first)] == first
        assert any("The date is now" in text for text in second)

    asyncio.run(tell())


@pytest.mark.moves_prefix(reason="another model has a cache of its own")
def test_another_model_takes_over_in_mid_session_and_is_kept(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response("One."), make_response("Two."), make_response("Three.")]
        ) as models:
            shop = Shop(home=tmp_path, provider=models)
            shop.change = lambda setup: setup
            agent = await shop.open()
            await agent.run_turn("First.")
            agent.use_model("claude-sonnet-5-5")
            await agent.run_turn("Second.")
            await agent.close()
            again = await shop.open(agent.session.id, model="")
            await again.run_turn("Third.")
            await again.close()
        named = [request.frame.model for request in models.requests]
        assert named == ["claude-opus-5-5", "claude-sonnet-5-5", "claude-sonnet-5-5"]
        assert shop.noted.of("PrefixBroken") == []
        (cut,) = shop.noted.of("CutRegistered")
        assert isinstance(cut, CutRegistered)
        assert "the model changed" in cut.reason

    asyncio.run(tell())


@pytest.mark.moves_prefix(reason="another model has a cache of its own")
@pytest.mark.parametrize("is_new", [True, False], ids=["from the start", "in mid-session"])
def test_a_model_that_nobody_knows_is_not_taken_up_again(tmp_path: Path, is_new: bool) -> None:
    async def tell() -> None:
        unknown = ProviderRefused("404: model nonsense not found")
        script = (
            [unknown, make_response("Back.")]
            if is_new
            else [make_response("One."), unknown, make_response("Back.")]
        )
        with ScriptedProvider(script) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open(model="nonsense" if is_new else "claude-sonnet-5-5")
            if not is_new:
                await agent.run_turn("First.")
                assert not agent.use_model("nonsense").is_known
            assert (await agent.run_turn("Second.")).reason == "failed"
            await agent.close()
            again = await shop.open(agent.session.id, model="")
            assert (await again.run_turn("Third.")).text == "Back."
            await again.close()
        assert models.requests[-1].frame.model == (DEFAULT_MODEL if is_new else "claude-sonnet-5-5")

    asyncio.run(tell())


def test_a_disk_that_is_full_costs_no_answer(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response("One."), make_response("Two.")]) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open()
            folder = agent.place.session_folder
            assert folder is not None
            (folder / "frame.json").mkdir(parents=True)
            assert (await agent.run_turn("First.")).text == "One."
            (failed,) = shop.noted.of("WriterFailed")
            assert isinstance(failed, WriterFailed)
            assert failed.writer == "frame"
            (folder / "frame.json").rmdir()
            await agent.run_turn("Second.")
            await agent.close()
            assert (folder / "frame.json").is_file()

    asyncio.run(tell())


def test_a_damaged_frame_is_told_and_the_session_goes_on(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response("One."), make_response("Two.")]) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open()
            await agent.run_turn("First.")
            folder = agent.place.session_folder
            assert folder is not None
            await agent.close()
            (folder / "frame.json").write_bytes(b"{")
            again = await shop.open(agent.session.id)
            (lost,) = shop.noted.of("FrameLost")
            assert isinstance(lost, FrameLost)
            assert lost.path == str(folder / "frame.json")
            assert (await again.run_turn("Second.")).text == "Two."
            await again.close()

    asyncio.run(tell())


def live_and_die(home: Path) -> None:
    """In a process of its own: note what is to be done, compact, and be killed."""

    async def live() -> None:
        items = [{"content": "mend the parser", "status": "in_progress"}]
        models = ScriptedProvider(
            [make_response(calls={"todo": {"items": items}}), make_response("Listed."), summarise]
        )
        agent = await Shop(home=home, provider=models, tools=[TodoTool()]).open()
        await agent.run_turn("First. " + LONG)
        await agent.compact()
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(live())


@pytest.mark.story
@pytest.mark.parametrize("is_fork", [False, True], ids=["continued", "branched off"])
@pytest.mark.moves_prefix(reason="the views are compacted")
def test_the_todo_list_outlives_compactions_and_a_killed_process(tmp_path: Path, is_fork: bool) -> None:
    process = multiprocessing.get_context("spawn").Process(target=live_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL

    async def tell() -> list[bool]:
        with ScriptedProvider([make_response("Two."), make_response("Three.")]) as models:  # the notes serve
            agent = await Shop(home=tmp_path, provider=models, tools=[todo := TodoTool()]).open(
                "latest", is_fork=is_fork
            )
            assert todo.todos.render() == "[>] mend the parser"
            await agent.run_turn("Second. " + LONG)
            await agent.compact()
            await agent.run_turn("Third.")
            await agent.close()
        views = (said(request.messages) for request in models.requests)
        return ["[>] mend the parser" in "\n".join(view) for view in views]

    assert asyncio.run(tell()) == [True, True]


def hold_and_die(home: Path) -> None:
    """In a process of its own: have a held command make what programs obey, and be killed while it runs."""

    async def live() -> None:
        makes = {"command": "mkdir .husky; touch made; sleep 60", "background": True}
        waits = {"command": "until test -e made; do :; done", "access": "read"}
        script = [make_response(calls={"shell": makes}), make_response(calls={"shell": waits})]

        def die(_request: ModelRequest) -> ModelResponse:
            # As if the command had only made it now: what was made before was moved aside already.
            (next(home.rglob(".husky.held-back-1"))).rename(home / "project" / ".husky")
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        shop = Shop(home=home, provider=ScriptedProvider([*script, die]))
        agent = await shop.open(tools=None, mode="accept-edits")
        await agent.run_turn("Build it.")

    asyncio.run(live())


@pytest.mark.story
def test_what_a_held_command_left_when_its_agent_was_killed_is_moved_aside_by_the_next(
    tmp_path: Path,
) -> None:
    process = multiprocessing.get_context("spawn").Process(target=hold_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    husky = tmp_path / "project" / ".husky"
    assert husky.exists()

    async def tell() -> None:
        shop = Shop(home=tmp_path, provider=ScriptedProvider())
        agent = await shop.open()
        await agent.close()
        assert shop.noted.of("GuardedMoved") == [GuardedMoved(str(husky), f"{husky}.held-back-1")]

    asyncio.run(tell())


def test_a_session_that_is_not_there_is_named(tmp_path: Path) -> None:
    shop = Shop(home=tmp_path, provider=ScriptedProvider())
    with pytest.raises(FileMissing, match="nobody"):
        asyncio.run(shop.open("nobody"))
    with pytest.raises(FileMissing):
        asyncio.run(shop.open("latest"))
