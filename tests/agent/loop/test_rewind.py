"""Going back: the conversation by a cut, files as tools left them, and nothing of anybody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.rewind import (
    RewindOutcome,
    list_rewind_points,
    plan_rewind,
    rewind_agent,
    undo_rewind,
)
from sevenfold.agent.tools import checkpoints
from sevenfold.agent.tools.file_changes import WriteTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.core.errors import InputError
from sevenfold.core.messages import Message, Text
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.workshop import Shop


def answer(request: ModelRequest) -> ModelResponse:
    """Writes what it is told: `file=text`, reading the file first where it is there."""
    last = next(message for message in reversed(request.messages) if message.role == "user")
    texts = [block.text for block in last.blocks if isinstance(block, Text)]
    asked = next((text for text in texts if "=" in text and not text.startswith("<")), "")
    if not asked:
        return make_response("Done.")
    name, _, text = asked.partition("=")
    return make_response(calls={"read": {"file_path": name}, "write": {"file_path": name, "content": text}})


Story = Callable[[Shop, Agent], Awaitable[None]]


def play(home: Path, story: Story) -> ScriptedProvider:
    async def tell(models: ScriptedProvider) -> None:
        shop = Shop(home=home, provider=models, tools=[ReadTool(), WriteTool()])
        agent = await shop.open(mode="accept-edits")
        try:
            await story(shop, agent)
        finally:
            await agent.close()

    with ScriptedProvider(answer) as models:
        asyncio.run(tell(models))
    return models


async def go_back(agent: Agent, words: str, what: str = "both") -> RewindOutcome:
    point = next(point for point in list_rewind_points(agent) if point.text == words)
    plan = await plan_rewind(agent, point.place) if what != "conversation" else []
    return await rewind_agent(agent, point, plan, keeps_conversation=what == "files")


def said(agent: Agent) -> list[str]:
    return [point.words for point in reversed(list_rewind_points(agent))]


def read(shop: Shop, name: str) -> str | None:
    path = shop.project / name
    return path.read_text(encoding="utf-8") if path.exists() else None


def read_transcript(agent: Agent) -> str:
    return Path(f"{agent.place.session_folder}.jsonl").read_text(encoding="utf-8")


async def work(agent: Agent, *asked: str) -> None:
    for line in asked:
        assert (await agent.run_turn(line)).reason == "answered"


def test_conversation_and_files_go_back_and_come_back(tmp_path: Path) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        (shop.project / "a").write_text("0", encoding="utf-8")
        (shop.project / "a").chmod(0o750)
        await work(agent, "a=1", "b=1", "a=2")
        transcript = read_transcript(agent)
        done = await go_back(agent, "b=1")
        assert (read(shop, "a"), read(shop, "b")) == ("1", None)
        assert said(agent) == ["a=1"]
        assert done.messages == 8
        assert read_transcript(agent).startswith(transcript), "nothing leaves"
        await undo_rewind(agent)
        assert (read(shop, "a"), read(shop, "b")) == ("2", "1")
        assert said(agent) == ["a=1", "b=1", "a=2"]
        await go_back(agent, "a=1")
        assert (read(shop, "a"), read(shop, "b"), said(agent)) == ("0", None, [])
        assert (shop.project / "a").stat().st_mode & 0o777 == 0o750
        await work(agent, "a=3")
        assert read(shop, "a") == "3"

    play(tmp_path, story)


def test_the_model_sees_what_is_left_and_the_cut_is_announced(tmp_path: Path) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        await work(agent, "a=1", "b=1")
        await go_back(agent, "b=1")
        await work(agent, "c=1")
        assert shop.noted.of("HistoryChanged")

    texts = [str(message) for message in play(tmp_path, story).requests[-1].messages]
    assert any("c=1" in text for text in texts)
    assert not any("b=1" in text for text in texts)


def test_one_part_goes_back_alone(tmp_path: Path) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        await work(agent, "a=1", "a=2", "a=3")
        await go_back(agent, "a=3", "conversation")
        assert (read(shop, "a"), said(agent)) == ("3", ["a=1", "a=2"])
        await work(agent, "b=1")
        await go_back(agent, "b=1", "files")
        assert (read(shop, "a"), read(shop, "b"), said(agent)) == ("3", None, ["a=1", "a=2", "b=1"])
        await go_back(agent, "a=2")
        assert read(shop, "a") == "1", "the edit of a message that left counts too"

    play(tmp_path, story)


def test_a_file_that_somebody_else_changed_stays(tmp_path: Path) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        await work(agent, "a=1", "a=2", "b=2")
        (shop.project / "a").write_text("mine", encoding="utf-8")
        done = await go_back(agent, "a=2")
        assert (read(shop, "a"), read(shop, "b")) == ("mine", None)
        assert [item.path for item in done.kept] == [str(shop.project / "a")]
        (shop.project / "b").symlink_to("a")
        await undo_rewind(agent)
        assert (read(shop, "a"), read(shop, "b")) == ("mine", "mine"), (
            "a link that stands there is not followed"
        )

    play(tmp_path, story)


def test_it_all_works_after_a_restart(tmp_path: Path) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        await work(agent, "a=1", "a=2")
        await agent.close()
        agent = await shop.open(session="latest", mode="accept-edits")
        await work(agent, "a=3")
        await go_back(agent, "a=2")
        assert (read(shop, "a"), said(agent)) == ("1", ["a=1"])
        await agent.close()
        agent = await shop.open(session="latest", mode="accept-edits")
        assert said(agent) == ["a=1"]
        await undo_rewind(agent)
        assert (read(shop, "a"), said(agent)) == ("3", ["a=1", "a=2", "a=3"])
        await agent.close()
        agent = await shop.open(session="latest", mode="accept-edits")
        await go_back(agent, "a=2")
        assert (read(shop, "a"), said(agent)) == ("1", ["a=1"])
        await agent.close()

    play(tmp_path, story)


@pytest.mark.parametrize("step", ["_write", "_put_back", "drop_from"])
@pytest.mark.parametrize("is_after", [False, True])
def test_whoever_is_killed_between_two_steps_goes_back_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, is_after: bool
) -> None:
    from sevenfold.layers.conversation import Conversation

    class Killed(BaseException):
        """Nothing that runs in an orderly way catches it."""

    owner = {"_write": checkpoints.CheckpointStore, "_put_back": checkpoints, "drop_from": Conversation}[step]
    real = getattr(owner, step)

    def die(*arguments: object, **named: object) -> None:
        if is_after:
            real(*arguments, **named)
        raise Killed

    async def story(shop: Shop, agent: Agent) -> None:
        await work(agent, "a=1", "a=2", "b=1")
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, die)
            with pytest.raises(Killed):
                await go_back(agent, "a=2")
        again = await shop.open(session=None, mode="accept-edits")
        await again.close()
        await agent.close()
        agent = await shop.open(session=agent.session.id, mode="accept-edits")
        if "a=2" in said(agent):
            await go_back(agent, "a=2")
        assert (read(shop, "a"), read(shop, "b"), said(agent)) == ("1", None, ["a=1"])
        await agent.close()

    play(tmp_path, story)


def test_contents_are_private_bounded_and_never_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        monkeypatch.setattr(checkpoints, "MAX_CHECKPOINT_BYTES", 5_000)
        await work(agent, *(f"a={number}{'x' * 1_500}" for number in range(6)))
        folder = agent.place.session_folder
        assert folder is not None
        kept = [path for path in (folder / "checkpoints").iterdir() if path.suffix != ".jsonl"]
        assert sum(path.stat().st_size for path in kept) <= 5_000
        assert {path.stat().st_mode & 0o077 for path in (folder / "checkpoints").iterdir()} == {0}
        done = await go_back(agent, f"a=1{'x' * 1_500}")
        assert [item.state for item in done.kept] == ["lost"]

    play(tmp_path, story)


def test_an_edit_that_cannot_be_kept_is_made_and_told(tmp_path: Path) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        folder = agent.place.session_folder
        assert folder is not None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "checkpoints").write_text("in the way", encoding="utf-8")
        await work(agent, "a=1")
        assert read(shop, "a") == "1"
        assert shop.noted.of("CheckpointFailed")

    play(tmp_path, story)


def test_nothing_said_is_lost_by_an_undo_that_comes_too_late(tmp_path: Path) -> None:
    async def story(shop: Shop, agent: Agent) -> None:
        with pytest.raises(InputError, match="no rewind"):
            await undo_rewind(agent)
        await work(agent, "a=1", "a=2")
        await go_back(agent, "a=2")
        await work(agent, "b=1")
        with pytest.raises(InputError, match="said since"):
            await undo_rewind(agent)
        assert (read(shop, "a"), read(shop, "b")) == ("1", "1")
        assert isinstance(agent.session.history[0], Message)

    play(tmp_path, story)
