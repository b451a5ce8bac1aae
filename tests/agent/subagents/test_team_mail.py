"""Messages between an agent and the agents it started, and between sessions of a project."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sevenfold.core.events import AgentEnded, Event
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.layers.forks.policy import LEAD_NAME, AgentAddress, NoteMessage, find_mail_ids, parse_address
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.crews import Crew, Lead, said

Tell = Callable[[Lead], Awaitable[None]]


def call(**given: object) -> dict[str, dict[str, object]]:
    return {"agent": {"description": "a task", "prompt": "Do it.", **given}}


def message(to: str, words: str | Mapping[str, object]) -> dict[str, dict[str, object]]:
    return {"send_message": {"to": to, "message": words, "summary": "a few words"}}


def work(crew: Crew, tell: Tell) -> None:
    async def run() -> None:
        async with crew.lead() as lead:
            await tell(lead)

    asyncio.run(run())


async def _turn(lead: Lead) -> None:
    assert (await lead.agent.run_turn("Go.")).reason == "answered"


def test_an_agent_writes_to_its_lead_while_it_works(tmp_path: Path) -> None:
    its = [make_response(calls=message("lead", "Half of it is done.")), make_response("All done.")]
    with ScriptedProvider(
        [make_response(calls=call(name="ada")), make_response("I see.")], by_purpose={"agent": its}
    ) as models:
        work(Crew(home=tmp_path, provider=models), _turn)
    last = models.requests[-1]
    assert "A message from 'ada', another agent and not the user" in said(last.messages)
    assert "Half of it is done." in said(last.messages)
    assert "result: your lead has it" in said(models.requests[-2].messages)


def test_a_running_agent_hears_a_message_when_its_next_round_begins(tmp_path: Path) -> None:
    asked, told = asyncio.Event(), asyncio.Event()

    async def first(_: ModelRequest) -> ModelResponse:
        asked.set()
        await told.wait()
        return make_response(calls={"look": {"n": 1}})

    steps = [make_response(calls=call(name="ada", background=True)), make_response("Started.")]
    with ScriptedProvider(steps, by_purpose={"background agent": [first, make_response("Heard.")]}) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            await asked.wait()
            answer = await lead.team.send(LEAD_NAME, AgentAddress("ada"), NoteMessage("Look left, too."), "")
            assert answer == "ada hears it when its next round begins"
            told.set()
            await lead.ended("ada")

        work(crew, tell)
    assert "Look left, too." in said(models.requests[-1].messages)
    assert "result: look 1" in said(models.requests[-1].messages)


def test_a_message_takes_up_an_agent_that_has_ended_from_where_it_was(tmp_path: Path) -> None:
    steps = [
        make_response(calls=call(name="ada")),
        make_response(calls=message("ada", "And the tests?")),
        make_response("I wait."),
        make_response("Good."),
    ]
    by_purpose = {
        "agent": [make_response("The code is fine.")],
        "background agent": [make_response("The tests are fine, too.")],
    }
    with ScriptedProvider(steps, by_purpose=by_purpose) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            await lead.ended("ada")
            if lead.agent.inbox:
                await lead.agent.run_turn(None)

        work(crew, tell)
    again = next(request for request in models.requests if request.purpose == "background agent")
    assert "Do it." in said(again.messages)
    assert "The code is fine." in said(again.messages)
    assert "And the tests?" in said(again.messages)
    assert "The tests are fine, too." in said(models.requests[-1].messages)


def test_what_is_said_to_an_agent_while_it_ends_is_not_lost(tmp_path: Path) -> None:
    steps = [make_response(calls=call(name="ada")), make_response("Ok.")]
    by_purpose = {"agent": [make_response("Done.")], "background agent": [make_response("Heard, too.")]}
    with ScriptedProvider(steps, by_purpose=by_purpose) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def tell(lead: Lead) -> None:
            def tell_at_the_end(event: Event) -> None:
                member = lead.team.find("ada")
                if isinstance(event, AgentEnded) and member is not None and not member.queued:
                    crew.noted.hears = None
                    member.post("One thing more.")

            crew.noted.hears = tell_at_the_end
            await lead.agent.run_turn("Go.")
            await lead.ended("ada")
            lead.agent.inbox.take_all()

        work(crew, tell)
    assert any("One thing more." in said(request.messages) for request in models.requests)


def test_an_agent_of_an_earlier_run_can_be_taken_up_by_name(tmp_path: Path) -> None:
    with ScriptedProvider(
        [make_response(calls=call(name="ada")), make_response("Ok.")],
        by_purpose={"agent": [make_response("7")]},
    ) as models:
        work(Crew(home=tmp_path, provider=models), _turn)
    with ScriptedProvider(by_purpose={"background agent": [make_response("Still 7.")]}) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def tell(lead: Lead) -> None:
            assert "goes on from where it was" in await lead.team.send(
                LEAD_NAME, AgentAddress("ada"), NoteMessage("Again?"), ""
            )
            await lead.ended("ada")

        work(crew, tell)
    assert "Do it." in said(models.requests[0].messages)


def test_everyone_who_runs_hears_a_message_to_everyone_and_the_sender_does_not(tmp_path: Path) -> None:
    gate, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(_: ModelRequest) -> ModelResponse:
        begun.release()
        await gate.wait()
        return make_response(calls={"look": {"n": 1}})

    steps = [
        ModelResponse(
            message=Message(
                "assistant",
                tuple(
                    block
                    for name in ("ada", "bob")
                    for block in make_response(calls=call(name=name, background=True)).message.blocks
                ),
            ),
            usage=make_response("").usage,
            usage_wire=make_response("").usage_wire,
            stop_reason="tool_use",
        ),
        make_response("Started."),
    ]
    by_purpose = {"background agent": [wait, wait, make_response("One."), make_response("Two.")]}
    with ScriptedProvider(steps, by_purpose=by_purpose) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            for _ in range(2):
                await begun.acquire()
            answer = await lead.team.send(LEAD_NAME, parse_address("*"), NoteMessage("Hurry up."), "")
            assert answer == "sent to ada, bob"
            gate.set()
            for name in ("ada", "bob"):
                await lead.ended(name)
            assert not any("Hurry up." in said([note]) for note in lead.agent.inbox.take_all())

        work(crew, tell)
    assert sum("Hurry up." in said(request.messages) for request in models.requests) == 2


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("nobody", "there is no agent called 'nobody'; there are: main-"),
        ("bridge:laptop", "no bridge to 'laptop' is set up"),
        ("lead", "you are the lead yourself"),
        ("uds:/nowhere/x.sock", "is not there"),
        ("a b", "names no agent"),
    ],
)
def test_a_message_to_nobody_says_why(tmp_path: Path, to: str, expected: str) -> None:
    with ScriptedProvider([make_response(calls=message(to, "Hello?")), make_response("Oh.")]) as models:
        work(Crew(home=tmp_path, provider=models), _turn)
    assert expected in said(models.requests[-1].messages)


def test_an_approved_plan_lets_an_agent_go_on_in_its_leads_mode(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".sevenfold" / "agents"
    folder.mkdir(parents=True)
    (folder / "planner.md").write_text("---\ndescription: Plans.\nmode: plan\n---\nYou plan.")
    ask = {"type": "plan_approval_request", "request_id": "r1", "plan": "1. Mend it."}
    approve = {"type": "plan_approval_response", "request_id": "r1", "approve": True}
    its = [make_response(calls=message("lead", ask)), make_response("I wait."), make_response("Mended.")]
    steps = [
        make_response(calls=call(name="ada", type="planner")),
        make_response(calls=message("ada", approve)),
        make_response("Approved."),
    ]
    by_purpose = {"agent": its[:2], "background agent": its[2:]}
    with ScriptedProvider(steps, by_purpose=by_purpose) as models:
        crew = Crew(home=tmp_path, provider=models, mode="accept-edits")

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            await lead.ended("ada")
            lead.agent.inbox.take_all()

        work(crew, tell)
    assert [child.mode for child in crew.children] == ["plan", "accept-edits"]
    mains = [request for request in models.requests if request.purpose == "main"]
    assert "asks you to approve a plan" in said(mains[1].messages)
    assert "approved: carry it out" in said(models.requests[-1].messages)


def test_an_answer_that_nobody_asked_for_is_refused(tmp_path: Path) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def wait(_: ModelRequest) -> ModelResponse:
        begun.set()
        await done.wait()
        return make_response("Done.")

    approve = {"type": "plan_approval_response", "request_id": "r9", "approve": True}
    steps = [
        make_response(calls=call(name="ada", background=True)),
        make_response(calls=message("ada", approve)),
        make_response("Oh."),
    ]
    with ScriptedProvider(steps, by_purpose={"background agent": [wait]}) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            await begun.wait()
            done.set()
            await lead.ended("ada")

        work(crew, tell)
    mains = [request for request in models.requests if request.purpose == "main"]
    assert "has asked you nothing with the request id 'r9'" in said(mains[-1].messages)


def test_two_sessions_of_a_project_write_to_each_other_and_each_message_is_told_once(tmp_path: Path) -> None:
    with ScriptedProvider(lambda _: make_response("Heard.")) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def run() -> None:
            async with AsyncExitStack() as exits:
                one = await exits.enter_async_context(crew.lead())
                two = await exits.enter_async_context(crew.lead())
                other = two.team.mail.name
                assert other in await one.team.send(
                    LEAD_NAME, AgentAddress(other), NoteMessage("Hello, you."), ""
                )
                await two.agent.inbox.wait()
                await two.agent.run_turn(None)
                path = two.team.mail.socket
                assert "has it" in await one.team.send(
                    LEAD_NAME, parse_address(f"uds:{path}"), NoteMessage("By socket."), ""
                )
                await two.agent.inbox.wait()
                await two.agent.run_turn(None)
                told = said(two.agent.session.history)
                assert told.count("Hello, you.") == 1
                assert told.count("By socket.") == 1
                assert f"'{one.team.mail.name}'" in told
                session = two.agent.session.id
            async with crew.lead(session) as again:
                assert len(list(find_mail_ids(again.agent.session.history))) == 2
                assert not again.agent.inbox

        asyncio.run(run())
