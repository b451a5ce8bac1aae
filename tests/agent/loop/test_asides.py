"""What the engine and the agent add to a conversation stands where each model takes it."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from itertools import takewhile
from pathlib import Path

import pytest

from sevenfold.core.memories import write_memory
from sevenfold.core.messages import Message, Text, ToolResult
from sevenfold.core.models import MODELS
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.agent.loop.test_agent_hooks import write_hooks
from tests.agent.opening.test_memory_rules import BY_HAND, project, remember
from tests.agent.workshop import Plain, Shop
from tests.session.test_bad_input import SetClock

KINDS = {(model.has_preserved_thinking, model.takes_system_role): model.name for model in MODELS}
TURNS = ("Where does the harbour service run?", "And now push it.", "What did the harbour service say?")


def brain(prompt: Prompt) -> Reply:
    thought = "Hm." if prompt.thinks else ""
    new = list(takewhile(lambda message: message.role != "assistant", reversed(prompt.messages)))
    has_results = any(isinstance(block, ToolResult) for message in new for block in message.blocks)
    if not has_results and any("push" in _text(message) for message in new):
        return say("I push.", think=thought, calls={"run": {"command": "git push"}})
    return say("Done.", think=thought)


def set_up(shop: Shop) -> None:
    remember(shop, "command:git push")
    with project(shop) as found, MemoryDir(found) as memory:
        for name in ("harbour-host", "harbour-reply"):
            text = write_memory(
                name, f"the harbour service: {name}", "project", f"The {name} is on port 8123."
            )
            memory.commit([Write(f"{name}.md", text, ANYTHING)], BY_HAND)
    told = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "It rains."}}
    write_hooks(shop.home, UserPromptSubmit=f"echo '{json.dumps(told)}'")
    (shop.project / "AGENTS.md").write_text("Be brief.")


@pytest.mark.parametrize("model", KINDS.values(), ids=str)
def test_nothing_that_is_added_has_to_be_repaired(tmp_path: Path, model: str) -> None:
    """With memories, rules, hooks, changed instructions, another day, messages and a resumed session."""
    clock, seen = SetClock(), list[tuple[Message, ...]]()

    def think(prompt: Prompt) -> Reply:
        seen.append(prompt.messages)
        return brain(prompt)

    async def tell(sim: Simulator) -> Shop:
        async with sim.async_client(max_retries=0) as client:
            shop = Shop(
                home=tmp_path,
                provider=AnthropicProvider(client),
                tools=[Plain(name="run", is_parallel=False, kind="run")],
            )
            set_up(shop)
            session = None
            for at, text in enumerate(TURNS):
                agent = await shop.open(session, mode="bypass", model=model, clock=clock)
                session = agent.session.id
                agent.post(f"Message {at} of another.")
                assert (await agent.run_turn(text)).reason == "answered"
                (shop.project / "AGENTS.md").write_text(f"Be brief, and kind. Version {at}.")
                clock.time += timedelta(days=1)
                assert (await agent.run_turn(f"{text} Again.")).reason == "answered"
                await agent.close()
        return shop

    with Simulator(think) as sim:
        shop = asyncio.run(tell(sim))
    assert {entry.status for entry in sim.ledger.entries} == {200}
    assert shop.noted.of("MemoryRecalled")
    assert shop.noted.of("RuleShown")
    assert not shop.noted.of("HistoryRepaired")
    assert not shop.noted.of("PrefixBroken")
    takes_system = next(one for one in MODELS if one.name == model).takes_system_role
    asides = [message.role for message in seen[-1] if "It rains." in _text(message)]
    assert asides == ["system" if takes_system else "user"] * len(TURNS) * 2


def _text(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))
