"""pydantic-ai-harness on a trajectory of the benchmark's, against a server: run by `bench/trajectory.py`.

    PYTHON bench/trajectory_peer.py URL MODEL TRAJECTORY.json < /dev/null

It needs `pydantic-ai-harness` with `pydantic-ai-slim[anthropic]`, and nothing of ours. Large results are
spilled and old ones cleared, both as the documentation of the peer shows them, with its prompt caching on.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

CLEAR_ABOVE_TOKENS = 100_000
KEEP_PAIRS = 3
"""The example in the peer's own documentation."""


def make_agent(url: str, model: str, told: dict[str, Any], folder: str) -> Any:
    peer, limits = import_module("pydantic_ai"), import_module("pydantic_ai_harness.tool_output_limits")
    compaction = import_module("pydantic_ai_harness.compaction")
    models = import_module("pydantic_ai.models.anthropic")
    providers = import_module("pydantic_ai.providers.anthropic")
    results: dict[str, str] = told["results"]

    def call(n: int, arg: str) -> str:
        del arg
        return results[str(n)]

    tools = [
        peer.Tool.from_schema(call, tool["name"], tool["description"], tool["input_schema"])
        for tool in told["tools"]
    ]
    provider = providers.AnthropicProvider(api_key="simulated", base_url=url)
    settings = models.AnthropicModelSettings(
        max_tokens=4_000, anthropic_cache=True, anthropic_cache_instructions=True
    )
    return peer.Agent(
        models.AnthropicModel(model, provider=provider, settings=settings),
        instructions=told["system"],
        tools=tools,
        capabilities=[
            limits.ToolOutputLimits(store=limits.LocalFileStore(Path(folder))),
            compaction.ClearToolResults(max_tokens=CLEAR_ABOVE_TOKENS, keep_pairs=KEEP_PAIRS),
        ],
    )


async def run(url: str, model: str, told: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        agent = make_agent(url, model, told, folder)
        history: list[Any] = []
        for text in told["prompts"]:
            done = await agent.run(text, message_history=history)
            history = done.all_messages()


def main() -> None:
    url, model, path = sys.argv[1:]
    asyncio.run(run(url, model, json.loads(Path(path).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
