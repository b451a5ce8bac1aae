"""What runs beside the conversation: commands and agents, found by the tools that start them."""

from __future__ import annotations

from sevenfold.agent.agent import Agent
from sevenfold.agent.agents import AgentTool
from sevenfold.run.tasks import Tasks
from sevenfold.run.tools.tasks import TaskOutput

RUNNING = "running"


def find_tasks(agent: Agent) -> Tasks | None:
    """The background commands; None where the agent has no tool for them."""
    return next((tool.tasks for tool in agent.toolbox.tools if isinstance(tool, TaskOutput)), None)


def find_agents(agent: Agent) -> AgentTool | None:
    return next((tool for tool in agent.toolbox.tools if isinstance(tool, AgentTool)), None)


def count_running(agent: Agent) -> int:
    tasks, agents = find_tasks(agent), find_agents(agent)
    states = [task.state for task in tasks.all()] if tasks else []
    states += [row.state for row in agents.running()] if agents else []
    return states.count(RUNNING)
