"""What forks cost on the provider's side: the first request of each reads the parent's cache."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.testing import Prompt, Reply, Simulator, call_tool, say
from tests.agent.crews import Crew

LONG = "All of this matters. " * 2_000


def brain(prompt: Prompt) -> Reply:
    if "You are a fork" in prompt.last_text:
        return say("Forked.")
    if prompt.results:
        return say("Done.")
    if "Fork thrice" in prompt.last_text:
        task = {"description": "a task", "kind": "fork"}
        return Reply(tuple(call_tool("agent", {**task, "prompt": f"Task {n}."}) for n in range(3)))
    return say("I have read it.")


def test_the_first_request_of_each_parallel_fork_reads_nearly_all_that_its_parent_cached(
    tmp_path: Path,
) -> None:
    with Simulator(brain) as sim:

        async def run() -> None:
            async with (
                sim.async_client() as client,
                Crew(home=tmp_path, provider=AnthropicProvider(client)).lead() as lead,
            ):
                await lead.agent.run_turn(LONG)
                end = await lead.agent.run_turn("Fork thrice.")
                assert end.text == "Done."

        asyncio.run(run())
        entries = sim.ledger.entries
    parent = entries[1].usage
    cached = parent.read + parent.written
    forks = [entry.usage for entry in entries[2:5]]
    assert cached > 5_000
    assert min(usage.read / cached for usage in forks) >= 0.99
