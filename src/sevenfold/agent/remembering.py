"""What an agent saves by itself, and whose words that is."""

from __future__ import annotations

from sevenfold.agent.agent import Agent
from sevenfold.core.provenance import Origin
from sevenfold.layers.taint import judge, split_passages
from sevenfold.run.tools.memory import Memory


def judge_saving(agent: Agent) -> None:
    """Have what the agent saves compared with what was said: a stranger's words wait for the user."""
    session = agent.session

    def origin_of(text: str) -> Origin:
        found = judge(text, split_passages(session.parent.messages))
        return Origin("agent", "saved by the agent", session.id, said_by=found.said_by, taint=found.taint)

    for tool in agent.toolbox.tools:
        if isinstance(tool, Memory):
            tool.origin_of = origin_of
