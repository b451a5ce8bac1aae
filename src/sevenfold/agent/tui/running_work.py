"""What runs beside the conversation: commands and agents, found by the tools that start them."""

from __future__ import annotations

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.sandbox.background_tasks import BackgroundTasks
from sevenfold.agent.subagents.agent_tool import AgentTool
from sevenfold.agent.tools.tasks import TaskOutputTool

RUNNING_STATE = "running"


def find_background_tasks(agent: Agent) -> BackgroundTasks | None:
    """The background commands; None where the agent has no tool for them."""
    return next((tool.tasks for tool in agent.toolbox.tools if isinstance(tool, TaskOutputTool)), None)


def find_agent_tool(agent: Agent) -> AgentTool | None:
    return next((tool for tool in agent.toolbox.tools if isinstance(tool, AgentTool)), None)


def count_running(agent: Agent) -> int:
    tasks, agents = find_background_tasks(agent), find_agent_tool(agent)
    states = [task.state for task in tasks.all()] if tasks else []
    states += [row.state for row in agents.running()] if agents else []
    return states.count(RUNNING_STATE)
