"""Teammates and sockets with real processes: they work, they talk, and they go when their lead does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.agent.permissions.guard import PermissionRequest
from sevenfold.agent.permissions.guard import PermissionResponse as Permitted
from sevenfold.agent.subagents.teammate_process import TeammateConfig, parse_teammate_config
from sevenfold.core.errors import WireError
from sevenfold.layers.forks.policy import LEAD_NAME, AgentAddress, NoteMessage, ShutdownRequest
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.governor import SpendCharge as Paid
from sevenfold.session.governor import SpendStore
from sevenfold.testing import Prompt, Reply, Simulator, call_tool, say
from tests.agent.crews import Crew, Lead, said

pytestmark = pytest.mark.story

Tell = Callable[[Lead], Awaitable[None]]
AGREE = {"type": "shutdown_response", "request_id": "r1", "approve": True}


def call(**given: object) -> dict[str, dict[str, object]]:
    task = {"description": "a task", "prompt": "Count to three.", "kind": "teammate", "name": "ada"}
    return {"agent": {**task, **given}}


def mate(prompt: Prompt) -> Reply:
    """What the model of a teammate says."""
    text = prompt.last_text
    if prompt.results:
        return say("Bye.")
    if "asks you to end" in text:
        return Reply((call_tool("send_message", {"to": "lead", "message": AGREE}),))
    if "How far are you?" in text:
        return say("At two.")
    return say("One, two, three.")


def crew_on(sim: Simulator, home: Path, models: ScriptedProvider) -> Crew:
    environ = {"ANTHROPIC_BASE_URL": sim.url, "ANTHROPIC_API_KEY": "simulated", "NO_PROXY": "*"}
    return Crew(home=home, provider=models, more_environ=environ)


def work(crew: Crew, tell: Tell) -> None:
    async def run() -> None:
        async with asyncio.timeout(200), crew.lead() as lead:
            await tell(lead)

    asyncio.run(run())


def teammates_of(home: Path) -> list[int]:
    """Processes that work in this home."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={home}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def charges_of(home: Path) -> list[Paid]:
    """What was written down as spent by background work."""
    with closing(SpendStore.open(home / ".sevenfold")) as book:
        today = datetime.now(UTC).date()
        return list(book.charges(today - timedelta(days=1), today))


def test_a_teammate_works_answers_is_asked_and_ends_when_it_agrees_to(tmp_path: Path) -> None:
    steps = [
        make_response(calls=call()),
        make_response("Started."),
        make_response("It counted."),
        make_response("At two, it says."),
    ]
    with Simulator(mate) as sim, ScriptedProvider(steps) as models:
        crew = crew_on(sim, tmp_path, models)

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            await lead.agent.inbox.wait()
            await lead.agent.run_turn(None)
            assert "in the mailbox of ada" in await lead.team.send(
                LEAD_NAME, AgentAddress("ada"), NoteMessage("How far are you?"), ""
            )
            await lead.agent.inbox.wait()
            await lead.agent.run_turn(None)
            await lead.team.send(LEAD_NAME, AgentAddress("ada"), ShutdownRequest("r1", "work is done"), "")
            await lead.ended("ada")
            assert teammates_of(tmp_path) == []

        work(crew, tell)
    assert "One, two, three." in said(models.requests[2].messages)
    kinds = {charge.kind for charge in charges_of(tmp_path)}
    assert "teammate" in kinds, "what a process of its own spends counts against the caps too"
    assert "At two." in said(models.requests[3].messages)
    assert [entry.status for entry in sim.ledger.entries] == [200] * len(sim.ledger.entries)


def test_what_a_teammate_may_do_is_asked_of_the_leads_person_and_what_it_pays_is_in_the_leads_bill(
    tmp_path: Path,
) -> None:
    asked: list[PermissionRequest] = []

    async def ask(question: PermissionRequest) -> Permitted:
        asked.append(question)
        return Permitted(question.use.input.get("content") == "good", words="said by the person")

    def writes(prompt: Prompt) -> Reply:
        if not prompt.results:
            calls = [
                call_tool("write", {"file_path": f"{text}.txt", "content": text}) for text in ("good", "bad")
            ]
            return Reply(tuple(calls))
        return say("Written.")

    with (
        Simulator(writes) as sim,
        ScriptedProvider([make_response(calls=call()), make_response("Started.")]) as models,
    ):
        crew = crew_on(sim, tmp_path, models)
        crew.mode, crew.ask = "ask", ask

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            await lead.agent.inbox.wait()
            paid = next(one for one in lead.agent.spent if one.who == "teammate")
            assert paid.calls == 2
            assert paid.cost == sim.ledger.total_cost()

        work(crew, tell)
    assert [question.reason.startswith("agent 'ada'") for question in asked] == [True, True]
    assert sorted(path.name for path in crew.project.glob("*.txt")) == ["good.txt"]


def test_a_teammate_goes_with_its_lead(tmp_path: Path) -> None:
    with (
        Simulator(mate) as sim,
        ScriptedProvider([make_response(calls=call()), make_response("Started.")]) as models,
    ):
        crew = crew_on(sim, tmp_path, models)

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            await lead.agent.inbox.wait()
            assert len(teammates_of(tmp_path)) == 1

        work(crew, tell)
    assert teammates_of(tmp_path) == []


def test_a_detached_teammate_lives_on_and_can_be_asked_to_end(tmp_path: Path) -> None:
    with Simulator(mate) as sim:
        with ScriptedProvider(
            [make_response(calls=call(detached=True)), make_response("Started.")]
        ) as models:

            async def begin(lead: Lead) -> None:
                await lead.agent.run_turn("Go.")
                await lead.agent.inbox.wait()

            work(crew_on(sim, tmp_path, models), begin)
        (pid,) = teammates_of(tmp_path)
        gone = os.pidfd_open(pid)
        with ScriptedProvider() as models:

            async def go_on(lead: Lead) -> None:
                await lead.team.send(LEAD_NAME, AgentAddress("ada"), ShutdownRequest("r1"), "")
                await _readable(gone)

            work(crew_on(sim, tmp_path, models), go_on)
        os.close(gone)
    assert teammates_of(tmp_path) == []


def test_a_stopped_teammate_is_taken_up_again_from_its_transcript_by_a_message(tmp_path: Path) -> None:
    with Simulator(mate) as sim:
        with ScriptedProvider([make_response(calls=call()), make_response("Started.")]) as models:

            async def begin(lead: Lead) -> None:
                await lead.agent.run_turn("Go.")
                await lead.agent.inbox.wait()

            work(crew_on(sim, tmp_path, models), begin)
        with ScriptedProvider() as models:

            async def go_on(lead: Lead) -> None:
                told = await lead.team.send(
                    LEAD_NAME, AgentAddress("ada"), NoteMessage("How far are you?"), ""
                )
                assert "goes on from where it was" in told
                await lead.agent.inbox.wait()
                assert "At two." in said(lead.agent.inbox.take_all())

            work(crew_on(sim, tmp_path, models), go_on)


def test_a_teammate_that_cannot_work_is_told_with_the_reason(tmp_path: Path) -> None:
    with ScriptedProvider(
        [make_response(calls=call()), make_response("Started."), make_response("Oh.")]
    ) as models:
        crew = Crew(home=tmp_path, provider=models)

        async def tell(lead: Lead) -> None:
            await lead.agent.run_turn("Go.")
            if "no model to talk to" not in said(lead.agent.session.history):
                await lead.agent.inbox.wait()
                await lead.agent.run_turn(None)
            assert "no model to talk to" in said(lead.agent.session.history)

        work(crew, tell)


LEAD_SCRIPT = """
import asyncio, sys
from pathlib import Path
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.opening.test_teammate import call
from tests.agent.crews import Crew

async def run():
    home, url = Path(sys.argv[1]), sys.argv[2]
    environ = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "simulated"}
    models = ScriptedProvider([make_response(calls=call()), make_response("Started.")])
    async with Crew(home=home, provider=models, more_environ=environ).lead() as lead:
        await lead.agent.run_turn("Go.")
        await lead.agent.inbox.wait()
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(run())
"""


def test_a_teammate_goes_when_its_lead_is_killed(tmp_path: Path) -> None:
    with Simulator(mate) as sim:
        lead = subprocess.Popen(
            [sys.executable, "-c", LEAD_SCRIPT, str(tmp_path), sim.url], stdout=subprocess.PIPE
        )
        assert lead.stdout is not None
        assert lead.stdout.readline() == b"ready\n"
        (pid,) = teammates_of(tmp_path)
        gone = os.pidfd_open(pid)
        lead.send_signal(signal.SIGKILL)
        lead.communicate()
        # Readable once the process has ended; a hang is the test's own timeout.
        asyncio.run(_readable(gone))
        os.close(gone)
        assert teammates_of(tmp_path) == []


async def _readable(fd: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(fd, ended.set)
    async with asyncio.timeout(60):
        await ended.wait()
    asyncio.get_running_loop().remove_reader(fd)


def test_a_charge_reads_back_and_nonsense_is_refused() -> None:
    charge = TeammateConfig(
        name="ada",
        lead="main-1",
        cwd="/p",
        session="agent-1",
        model="m",
        mode="ask",
        lead_mode="plan",
        system="You.",
        prompt="Do.",
        tools=("read",),
    )
    assert parse_teammate_config(charge.write()) == charge
    with pytest.raises(WireError, match="mode is 'root'"):
        parse_teammate_config(charge.write().replace(b'"ask"', b'"root"'))
    with pytest.raises(WireError, match="name is missing"):
        parse_teammate_config(b'{"mode": "ask", "lead_mode": "ask"}')
