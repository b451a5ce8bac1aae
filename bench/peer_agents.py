"""One peer on one trajectory of `bench/peers.py`, against a server.

    PYTHON bench/peer_agents.py NAME URL MODEL TRAJECTORY.json

It runs with the peer's own Python and imports nothing of ours. Each peer has the settings that its own
documentation recommends for long sessions with tools, and its prompt caching on.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

Turn = Callable[[str], Awaitable[None]]
"""Says one prompt, and returns when the model has answered."""

MAX_TOKENS = 4_000
MAX_STEPS = 10_000
DEEPAGENTS_WINDOW = 118_000
"""So that it summarizes at 100,000 tokens, as the other peers do."""
API_KEY = "simulated"


def advance_clock(url: str, seconds: float) -> None:
    body = json.dumps({"advance_seconds": seconds}).encode()
    request = urllib.request.Request(f"{url}/_sevenfold/clock", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        answer.read()


def make_harness(url: str, model: str, told: dict[str, Any], folder: str) -> Turn:
    from trajectory_peer import make_agent

    agent, history = make_agent(url, model, told, folder), list[Any]()

    async def say(text: str) -> None:
        done = await agent.run(text, message_history=list(history))
        history[:] = done.all_messages()

    return say


def make_langchain_tools(told: dict[str, Any]) -> list[Any]:
    tools = import_module("langchain_core.tools")

    def call(n: int, arg: str) -> str:
        del arg
        return str(told["results"][str(n)])

    return [
        tools.StructuredTool.from_function(
            func=call,
            name=tool["name"],
            description=tool["description"],
            args_schema=tool["input_schema"],
            infer_schema=False,
        )
        for tool in told["tools"]
    ]


def make_langchain_model(url: str, model: str) -> Any:
    chat = import_module("langchain_anthropic").ChatAnthropic
    return chat(model=model, base_url=url, api_key=API_KEY, max_tokens=MAX_TOKENS)


def run_graph(agent: Any) -> Turn:
    """A graph that keeps its state from turn to turn."""
    config = {"configurable": {"thread_id": "one"}, "recursion_limit": MAX_STEPS}

    async def say(text: str) -> None:
        await agent.ainvoke({"messages": [{"role": "user", "content": text}]}, config)

    return say


def make_langchain(url: str, model: str, told: dict[str, Any], *, middleware: list[Any]) -> Turn:
    caching = import_module("langchain_anthropic.middleware").AnthropicPromptCachingMiddleware()
    agent = import_module("langchain.agents").create_agent(
        make_langchain_model(url, model),
        make_langchain_tools(told),
        system_prompt=told["system"],
        middleware=[*middleware, caching],
        checkpointer=import_module("langgraph.checkpoint.memory").InMemorySaver(),
    )
    return run_graph(agent)


def make_context_editing(url: str, model: str, told: dict[str, Any], _folder: str) -> Turn:
    parts = import_module("langchain.agents.middleware")
    edits = [parts.ClearToolUsesEdit()]
    return make_langchain(url, model, told, middleware=[parts.ContextEditingMiddleware(edits=edits)])


def make_summarization(url: str, model: str, told: dict[str, Any], _folder: str) -> Turn:
    parts = import_module("langchain.agents.middleware")
    summary = parts.SummarizationMiddleware(
        model=make_langchain_model(url, model), trigger=("tokens", 100_000), keep=("messages", 20)
    )
    return make_langchain(url, model, told, middleware=[summary])


def make_deepagents(
    url: str, model: str, told: dict[str, Any], _folder: str, *, window: int | None = None
) -> Turn:
    chat = make_langchain_model(url, model)
    if window is not None:
        # It summarizes at 85% of the window that it knows of the model.
        chat = chat.model_copy(update={"profile": {**(chat.profile or {}), "max_input_tokens": window}})
    agent = import_module("deepagents").create_deep_agent(
        chat,
        make_langchain_tools(told),
        system_prompt=told["system"],
        checkpointer=import_module("langgraph.checkpoint.memory").InMemorySaver(),
    )
    return run_graph(agent)


def make_openhands(url: str, model: str, told: dict[str, Any], folder: str) -> Turn:
    """Its summarizing condenser with the sizes of its default agent; its own prompt caching is on."""
    # Without it, the list of prices is fetched from the network when the library is loaded.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    sdk, parts = import_module("openhands.sdk"), import_module("openhands.sdk.tool")
    condensers = import_module("openhands.sdk.context.condenser")

    class CallAction(parts.Action):
        n: int
        arg: str

    class CallObservation(parts.Observation):
        pass

    class CallExecutor(parts.ToolExecutor):
        def __call__(self, action: Any, conversation: Any = None) -> Any:
            del conversation
            return CallObservation.from_text(str(told["results"][str(action.n)]))

    def make_tool(tool: dict[str, Any]) -> Any:
        def create(cls: Any, conv_state: Any = None, **_: Any) -> list[Any]:
            del conv_state
            described, types = (
                tool["description"],
                {"action_type": CallAction, "observation_type": CallObservation},
            )
            return [cls(description=described, executor=CallExecutor(), **types)]

        members = {"name": tool["name"], "create": classmethod(create), "__module__": __name__}
        base = parts.ToolDefinition[CallAction, CallObservation]
        made = type(f"{tool['name']}Tool", (base,), members)
        parts.register_tool(tool["name"], made)
        return sdk.Tool(name=tool["name"])

    llm = sdk.LLM(
        model=f"anthropic/{model}",
        base_url=url,
        api_key=API_KEY,
        max_output_tokens=MAX_TOKENS,
        usage_id="agent",
        reasoning_effort=None,
        extended_thinking_budget=None,
    )
    condenser = condensers.LLMSummarizingCondenser(
        llm=llm.model_copy(update={"usage_id": "condenser"}), max_size=80, keep_first=4
    )
    agent = sdk.Agent(
        llm=llm,
        tools=[make_tool(tool) for tool in told["tools"]],
        system_prompt=told["system"],
        include_default_tools=[],
        condenser=condenser,
    )
    conversation = sdk.Conversation(
        agent, workspace=folder, visualizer=None, stuck_detection=False, max_iteration_per_run=MAX_STEPS
    )

    async def say(text: str) -> None:
        conversation.send_message(text)
        await asyncio.to_thread(conversation.run)

    return say


def make_sdk(
    url: str, model: str, told: dict[str, Any], _folder: str, *, edit: dict[str, Any] | None
) -> Turn:
    """A plain loop over the SDK, with automatic caching; `edit` is done by the provider."""
    client = import_module("anthropic").AsyncAnthropic(base_url=url, api_key=API_KEY)
    messages: list[Any] = []
    more: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    if edit is not None:
        more |= {"context_management": {"edits": [edit]}, "betas": ["context-management-2025-06-27"]}

    async def ask() -> Any:
        return await client.beta.messages.create(
            model=model,
            max_tokens=MAX_TOKENS,
            system=[{"type": "text", "text": told["system"], "cache_control": {"type": "ephemeral"}}],
            tools=told["tools"],
            messages=messages,
            **more,
        )

    async def say(text: str) -> None:
        messages.append({"role": "user", "content": text})
        while True:
            reply = await ask()
            messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call.id,
                    "content": told["results"][str(call.input["n"])],
                }
                for call in calls
            ]
            messages.append({"role": "user", "content": results})

    return say


CLEARING = "clear_tool_uses_20250919"
MAKERS: dict[str, Callable[[str, str, dict[str, Any], str], Turn]] = {
    "harness": make_harness,
    "context editing": make_context_editing,
    "summarization": make_summarization,
    "deepagents": make_deepagents,
    "deepagents small": partial(make_deepagents, window=DEEPAGENTS_WINDOW),
    "openhands": make_openhands,
    "kept": partial(make_sdk, edit=None),
    "provider": partial(make_sdk, edit={"type": CLEARING}),
    "provider in batches": partial(
        make_sdk, edit={"type": CLEARING, "clear_at_least": {"type": "input_tokens", "value": 50_000}}
    ),
}


async def run(name: str, url: str, model: str, told: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        say = MAKERS[name](url, model, told, folder)
        for text, pause in zip(told["prompts"], told["pauses"], strict=True):
            await say(text)
            advance_clock(url, pause)


def main() -> None:
    name, url, model, path = sys.argv[1:]
    asyncio.run(run(name, url, model, json.loads(Path(path).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
