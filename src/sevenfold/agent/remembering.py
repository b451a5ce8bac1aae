"""What an agent saves by itself, and whose words that is."""

from __future__ import annotations

from collections.abc import Collection

from sevenfold.agent.agent import Agent
from sevenfold.core.provenance import Origin
from sevenfold.layers.extract_gate import Draft, with_own_head
from sevenfold.layers.taint import Witnesses, judge, split_passages
from sevenfold.run.tools.memory import Memory
from sevenfold.store.memory_dir import MemoryDir

MAX_NAMED_CHARS = 120
"""Of a line that is read in passing."""


def tell_waiting(memory: MemoryDir) -> tuple[str, ...]:
    """What a person is told when a session begins: that something waits for them. Blocks on the disk."""
    waiting = memory.waiting()
    if not waiting:
        return ()
    keys = ", ".join(dict.fromkeys(change.key for one in waiting for change in one.changes))
    shown = keys if len(keys) <= MAX_NAMED_CHARS else f"{keys[:MAX_NAMED_CHARS]}…"
    return (f"changes of memory wait for you, and count for nothing until then: {shown}; /memory review",)


def judge_saving(agent: Agent) -> None:
    """Have what the agent saves compared with what was said: a stranger's words wait for the user."""
    session = agent.session

    def origin_of(text: str) -> Origin:
        found = judge(text, split_passages(session.parent.messages))
        return Origin("agent", "saved by the agent", session.id, said_by=found.said_by, taint=found.taint)

    def head_of(draft: Draft, known: Collection[str]) -> Draft:
        return with_own_head(draft, Witnesses(split_passages(session.parent.messages)), known)

    for tool in agent.toolbox.tools:
        if isinstance(tool, Memory):
            tool.origin_of, tool.head_of = origin_of, head_of
