"""LangChain's path from history to request, on a history of the benchmark's: run by `bench/request_path.py`.

    PYTHON bench/request_path_peer.py HISTORY.json SHARE… < /dev/null

It needs `langchain` and nothing of ours. Both middlewares are measured where they change nothing, which is
what they cost in every round: triggers beyond the history, so that no summary is asked for.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

ROUNDS = 7
NEVER = 10**9


def read_history(wire: list[dict[str, Any]]) -> list[Any]:
    kinds = import_module("langchain_core.messages")
    messages: list[Any] = []
    for item in wire:
        blocks = item["content"]
        if isinstance(blocks, str):
            messages.append(kinds.HumanMessage(blocks))
        elif item["role"] == "assistant":
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            uses = [block for block in blocks if block["type"] == "tool_use"]
            calls = [{"id": use["id"], "name": use["name"], "args": use["input"]} for use in uses]
            messages.append(kinds.AIMessage(text, tool_calls=calls))
        else:
            messages += [read_user_block(kinds, block) for block in blocks]
    return messages


def read_user_block(kinds: Any, block: dict[str, Any]) -> Any:
    if block["type"] == "tool_result":
        return kinds.ToolMessage(block.get("content") or "", tool_call_id=block["tool_use_id"])
    return kinds.HumanMessage(block["text"] if block["type"] == "text" else [block])


def measure(messages: list[Any]) -> float:
    peer = import_module("langchain.agents.middleware")
    models = import_module("langchain_core.language_models")
    model = models.FakeListChatModel(responses=["a summary"])
    summarizing = peer.SummarizationMiddleware(model, trigger=("tokens", NEVER))
    editing = peer.ContextEditingMiddleware(edits=[peer.ClearToolUsesEdit(trigger=NEVER)])
    nobody: Any = None
    sent: list[Any] = []
    times: list[float] = []
    for _ in range(ROUNDS):
        state: Any = {"messages": messages}
        started = thread_time()
        summarizing.before_model(state, nobody)
        request = peer.ModelRequest(model=model, messages=messages, state=state)
        editing.wrap_model_call(request, sent.append)
        times.append(thread_time() - started)
        sent.clear()
    return median(times)


def main() -> None:
    history = read_history(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    version = import_module("langchain").__version__
    sizes = [max(2, round(len(history) * float(share))) for share in sys.argv[2:]]
    found = {size: measure(history[:size]) * 1_000 for size in sizes}
    print(json.dumps({"version": version, "milliseconds": found}))


if __name__ == "__main__":
    main()
