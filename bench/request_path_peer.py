"""LangChain's path from history to request, on a history of the benchmark's: run by `bench/request_path.py`.

    PYTHON bench/request_path_peer.py HISTORY.json SIZE… < /dev/null

It needs `langchain` and nothing of ours. Both middlewares are measured where they change nothing, which is
what they cost in every round: triggers beyond the history, so that no summary is asked for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

ROUNDS = 7
NEVER = 10**9


def read_history(wire: list[dict[str, Any]]) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    messages: list[Any] = []
    for item in wire:
        blocks = item["content"]
        if isinstance(blocks, str):
            messages.append(HumanMessage(blocks))
        elif item["role"] == "assistant":
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            uses = [block for block in blocks if block["type"] == "tool_use"]
            calls = [{"id": use["id"], "name": use["name"], "args": use["input"]} for use in uses]
            messages.append(AIMessage(text, tool_calls=calls))
        else:
            messages += [ToolMessage(block["content"], tool_call_id=block["tool_use_id"]) for block in blocks]
    return messages


def measure(messages: list[Any]) -> float:
    from langchain.agents.middleware import (
        ClearToolUsesEdit,
        ContextEditingMiddleware,
        ModelRequest,
        SummarizationMiddleware,
    )
    from langchain_core.language_models import FakeListChatModel

    model = FakeListChatModel(responses=["a summary"])
    summarizing = SummarizationMiddleware(model, trigger=("tokens", NEVER))
    editing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=NEVER)])
    nobody: Any = None
    sent: list[Any] = []
    times: list[float] = []
    for _ in range(ROUNDS):
        state: Any = {"messages": messages}
        started = thread_time()
        summarizing.before_model(state, nobody)
        request = ModelRequest(model=model, messages=messages, state=state)
        editing.wrap_model_call(request, sent.append)  # type: ignore[arg-type]  # nobody answers
        times.append(thread_time() - started)
        sent.clear()
    return median(times)


def main() -> None:
    history = read_history(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    import langchain

    found = {size: measure(history[: int(size)]) * 1_000 for size in sys.argv[2:]}
    print(json.dumps({"version": langchain.__version__, "milliseconds": found}))


if __name__ == "__main__":
    main()
