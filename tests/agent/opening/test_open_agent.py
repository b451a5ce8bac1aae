"""Opening an agent: which model is asked, which tools there are, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import MAX_REPLY_TOKENS, choose_provider, fit_request_params
from sevenfold.agent.loop.turn import ToolEnded, TurnEvent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.opening.workspace import (
    PARAMS_FILE,
    StoredParams,
    read_stored_params,
    write_stored_params,
)
from sevenfold.agent.subagents import subagent_runner
from sevenfold.agent.subagents.teammate_process import TeammateConfig, TeammateProcess
from sevenfold.core.errors import AgentRefused, InputError, ProviderMissing
from sevenfold.core.events import Event, FrameLost
from sevenfold.core.json import freeze_object
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import RequestParams
from sevenfold.core.settings.sections import AgentSettings
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.openai import ChatProvider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.files.folder import Folder
from sevenfold.testing import API_KEY, Simulator, say
from tests.agent.workshop import NO_ASIDES, Plain, Shop

OPUS = CATALOG.find("claude-opus-5-5")
USUAL = [
    "read",
    "write",
    "edit",
    "glob",
    "grep",
    "shell",
    "task_output",
    "task_stop",
    "todo",
    "plan",
    "web_fetch",
    "memory",
    "skill",
]


@pytest.mark.parametrize(
    ("environ", "base_url", "kind"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, None, AnthropicProvider),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, None, AnthropicProvider),
        ({"OPENAI_API_KEY": "k"}, None, ChatProvider),
        ({"ANTHROPIC_API_KEY": "k"}, "http://127.0.0.1:1/v1", ChatProvider),
    ],
)
def test_the_provider_is_the_one_that_settings_or_the_environment_name(
    environ: dict[str, str], base_url: str | None, kind: type
) -> None:
    assert isinstance(choose_provider(OPUS, AgentSettings(base_url=base_url), environ), kind)


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_the_environment_that_was_handed_in_counts_and_not_that_of_the_process(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "somebody else's")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")

    async def tell(environ: dict[str, str]) -> str:
        agent = await open_agent(AgentOptions(project=tmp_path, tools=[], environ=environ))
        end = await agent.run_turn("Hello?")
        await agent.close()
        return end.text

    with Simulator(lambda _prompt: say("Here.")) as simulator:
        environ = {name: API_KEY, "ANTHROPIC_BASE_URL": simulator.url, "HOME": str(tmp_path)}
        assert asyncio.run(tell(environ)) == "Here."


def test_without_any_the_error_says_what_was_looked_for_and_how_to_get_going() -> None:
    with pytest.raises(ProviderMissing) as told:
        choose_provider(OPUS, AgentSettings(), {})
    for named in ("ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "agent.base_url", ".gguf", "sevenfold tour"):
        assert named in str(told.value)


def test_a_frame_asks_for_what_its_model_takes() -> None:
    provider, frame = ScriptedProvider(), RequestParams(model="claude-opus-5-5", max_tokens=0, system="s")
    fitted = fit_request_params(frame, OPUS, provider, thinks=True)
    assert fitted.max_tokens == MAX_REPLY_TOKENS
    assert "thinking" in fitted.params
    assert "thinking" not in fit_request_params(frame, OPUS, provider, thinks=False).params
    unknown = CATALOG.find("somebody-elses-model")
    assert "thinking" not in fit_request_params(frame, unknown, provider, thinks=True).params


def test_a_frame_is_kept_to_the_byte_and_a_damaged_one_is_made_anew(tmp_path: Path) -> None:
    tool = freeze_object({"name": "look", "description": "Ä", "input_schema": {"type": "object"}})
    frame = RequestParams(
        model="m",
        max_tokens=5,
        system="You are\nhelpful.",
        tools=(tool,),
        params=freeze_object({"thinking": {"type": "adaptive"}}),
        betas=("b",),
    )
    with Folder.open(tmp_path) as folder:
        assert read_stored_params(folder) is None
        write_stored_params(folder, StoredParams(frame, "here"))
        assert read_stored_params(folder) == StoredParams(frame, "here")
        told: list[Event] = []
        whole = json.loads(folder.read(PARAMS_FILE, max_bytes=10_000))
        halves = [{key: value for key, value in whole.items() if key != gone} for gone in NEEDED]
        odd = [{**whole, key: value} for key in NEEDED for value in ODD[key]]
        for damaged in (b"{", b"[]", *(json.dumps(one).encode() for one in (*halves, *odd))):
            folder.replace(PARAMS_FILE, damaged)
            assert read_stored_params(folder, told.append) is None, damaged
    assert len(told) == 2 + len(halves) + len(odd)
    assert all(isinstance(event, FrameLost) and event.path.endswith(PARAMS_FILE) for event in told)
    assert "helpful" not in str(told)


ODD: dict[str, list[object]] = {
    "model": [3, None],
    "max_tokens": [True, "5"],
    "system": [3, [1], None],
    "tools": [[1, 2], "look", {"name": "look"}],
    "params": [[], "none"],
    "betas": ["b", [1]],
}
NEEDED = tuple(ODD)


async def opened(home: Path, models: ScriptedProvider, **changes: object) -> Agent:
    project = home / "project"
    project.mkdir(exist_ok=True)
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin", **NO_ASIDES}
    setup = AgentOptions(project=project, model="claude-opus-5-5", provider=models, environ=environ)
    return await open_agent(replace(setup, **changes))


def test_the_usual_tools_are_there_in_an_order_that_does_not_change(tmp_path: Path) -> None:
    async def tell(**changes: object) -> list[str]:
        agent = await opened(tmp_path, ScriptedProvider(), **changes)
        await agent.close()
        return [str(tool["name"]) for tool in agent.frame.tools]

    found = asyncio.run(tell())
    assert [name for name in found if name in USUAL] == USUAL
    assert asyncio.run(tell()) == found
    assert asyncio.run(tell(only=frozenset({"read", "grep"}))) == ["read", "grep"]


def test_real_tools_work_through_the_loop_and_what_needs_asking_is_denied_without_anybody(
    tmp_path: Path,
) -> None:
    seen: list[TurnEvent] = []

    async def tell() -> None:
        calls: dict[str, dict[str, object]] = {
            "read": {"file_path": "a.txt"},
            "write": {"file_path": "b.txt", "content": "new\n"},
        }
        with ScriptedProvider([make_response(calls=calls), make_response("Done.")]) as models:
            agent = await opened(tmp_path, models)
            (tmp_path / "project" / "a.txt").write_text("hello\n")
            end = await agent.run_turn("Go.", seen.append)
            await agent.close()
        assert end.reason == "answered"

    asyncio.run(tell())
    outputs = {one.use.name: one.output for one in seen if isinstance(one, ToolEnded)}
    assert "hello" in str(outputs["read"].content)
    assert outputs["write"].is_error
    assert not (tmp_path / "project" / "b.txt").exists()


def test_the_mode_is_that_of_the_settings_and_may_be_changed(tmp_path: Path) -> None:
    async def tell() -> None:
        agent = await opened(tmp_path, ScriptedProvider(), settings={"permissions": {"mode": "plan"}})
        assert agent.mode == "plan"
        agent.mode = "accept-edits"
        assert agent.mode == "accept-edits"
        await agent.close()

    asyncio.run(tell())


def test_an_agent_that_is_closed_or_busy_says_so(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response(calls={"look": {"waits": 50}}), make_response("Done.")]
        ) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            first = asyncio.create_task(agent.run_turn("Go."))
            await asyncio.sleep(0)
            with pytest.raises(InputError, match="under way"):
                await agent.run_turn("Me too.")
            await first
            await agent.close()
            await agent.close()
            with pytest.raises(InputError, match="closed"):
                await agent.run_turn("Again.")

    asyncio.run(tell())


def test_closing_in_mid_turn_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response(calls={"look": {"waits": 100_000}}), make_response("On.")]
        ) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open()
            turn = asyncio.create_task(agent.run_turn("Go."))
            while not models.requests:  # noqa: ASYNC110 - nothing tells when a script is asked
                await asyncio.sleep(0)
            await agent.close()
            assert (await turn).reason == "interrupted"
            again = await shop.open(agent.session.id)
            end = await again.run_turn("Go on.")
            await again.close()
        assert end.text == "On."
        assert not shop.noted.of("HistoryRepaired")

    asyncio.run(tell())


def test_an_agent_starts_another_with_tools_of_its_own_and_hears_its_answer(tmp_path: Path) -> None:
    async def tell() -> None:
        asked = {"description": "count", "prompt": "How many files are there?"}
        steps = [make_response(calls={"agent": asked}), make_response("Three, it says.")]
        with ScriptedProvider(
            steps,
            by_purpose={"agent": [make_response(calls={"glob": {"pattern": "*"}}), make_response("Three.")]},
        ) as models:
            agent = await opened(tmp_path, models, mode="bypass")
            end = await agent.run_turn("Have them counted.")
            await agent.close()
        assert end.text == "Three, it says."
        assert "Three." in str(models.requests[-1].messages[-1])
        child = next(request for request in models.requests if request.purpose == "agent")
        declared = {str(tool["name"]) for tool in child.frame.tools}
        assert "glob" in declared
        assert "agent" not in declared

    asyncio.run(tell())


class Forgettable(Plain):
    is_clearable = True


def test_a_tool_declares_that_its_old_results_may_be_cleared(tmp_path: Path) -> None:
    async def ask() -> list[bool]:
        tools = [Forgettable(name="look"), Plain(name="deploy")]
        agent = await Shop(home=tmp_path, provider=ScriptedProvider(), tools=tools).open()
        clearing = agent.session._clearing  # pyright: ignore[reportPrivateUsage]
        await agent.close()
        return [clearing.clearable.allows(name) for name in ("look", "deploy")]

    assert asyncio.run(ask()) == [True, False]


def test_a_teammate_has_no_tools_that_its_lead_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[TeammateConfig] = []

    async def start(charge: TeammateConfig, environ: Mapping[str, str]) -> TeammateProcess:
        started.append(charge)
        raise AgentRefused("not in this test")

    monkeypatch.setattr(subagent_runner, "start_teammate", start)

    async def tell() -> None:
        asked = {"description": "count", "prompt": "Count.", "kind": "teammate"}
        calls = [make_response(calls={"agent": {**asked, "type": name}}) for name in ("counter", "general")]
        # One answer for the turn, and one for each teammate that is reported after it rather than within it.
        models = ScriptedProvider([*calls, *["Done."] * 3])
        shop = Shop(home=tmp_path, provider=models)
        (shop.project / ".sevenfold" / "agents").mkdir(parents=True)
        (shop.project / ".sevenfold" / "agents" / "counter.md").write_text(
            "---\ndescription: Counts.\ntools: read, shell\nmemory: project\n---\nYou count."
        )
        agent = await shop.open(tools=None, only=frozenset({"read", "agent"}))
        await agent.run_turn("Count.")
        await agent.close()

    asyncio.run(tell())
    assert [charge.tools for charge in started] == [("read",), ("agent", "read")]
    assert started[0].memory.endswith("/agent-memory/counter"), "a teammate may read what it remembers"
