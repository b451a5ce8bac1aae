"""Background commands and agents: a line for each that runs, and what one has printed or said so far."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.sandbox.job import BackgroundTasks
from sevenfold.agent.subagents.agent_team import AgentSummary, AgentTool
from sevenfold.agent.tools.shell import ShellTool, TaskOutputTool
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu
from sevenfold.agent.tui.cost_text import render_dollars
from sevenfold.agent.tui.event_text import AGENT_ENDINGS
from sevenfold.agent.tui.session_list import render_history_tail
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.core.messages import Text

RUNNING_STATE = "running"
MAX_LIVE_TASKS = 4
"""Lines of what runs beside a turn; `/tasks` has all."""
MAX_OUTPUT_LINES = 200
"""Of what a task printed, the last ones: the rest is in its file."""


class TaskChat(Protocol):
    """A chat, as far as its tasks need it."""

    agent: Agent
    view: TurnView

    @property
    def has_menus(self) -> bool:
        """Whether a person can choose from a menu here."""
        ...

    def say(self, text: str, tone: TextTone = "plain") -> None: ...

    def put(self, text: str) -> None: ...

    def renderer(self) -> TextRenderer: ...

    async def choose(self, menu: ChoiceMenu) -> int | None: ...


def find_background_tasks(agent: Agent) -> BackgroundTasks | None:
    """The background commands; None where the agent has no tool for them."""
    return next((tool.tasks for tool in agent.toolbox.tools if isinstance(tool, TaskOutputTool)), None)


def find_shell_tool(agent: Agent) -> ShellTool | None:
    return next((tool for tool in agent.toolbox.tools if isinstance(tool, ShellTool)), None)


def find_agent_tool(agent: Agent) -> AgentTool | None:
    return next((tool for tool in agent.toolbox.tools if isinstance(tool, AgentTool)), None)


def read_summary(agent: Agent) -> str:
    """What stands for everything before the last compaction."""
    entries = agent.session.entries
    blocks = entries[0].message.blocks if entries else ()
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def count_running(agent: Agent) -> int:
    tasks, agents = find_background_tasks(agent), find_agent_tool(agent)
    running = len(tasks.running()) if tasks else 0
    return running + sum(row.state == RUNNING_STATE for row in (agents.running() if agents else ()))


def render_live_tasks(agent: Agent, renderer: TextRenderer) -> str:
    """One line for each that runs: what it is, for how long, what it used, and what it does now."""
    tasks, agents = find_background_tasks(agent), find_agent_tool(agent)
    lines = [
        _join(
            f"○ {task.id}",
            render_elapsed(task.elapsed),
            renderer.cut(task.title, renderer.columns // 3),
            task.job.output.last_line(),
        )
        for task in (tasks.running() if tasks else ())
    ]
    rows = [row for row in agents.running() if row.state == RUNNING_STATE] if agents else []
    lines += [_render_agent(row, renderer) for row in rows]
    hidden = len(lines) - MAX_LIVE_TASKS
    shown = [*lines[:MAX_LIVE_TASKS], f"  … {hidden} more: /tasks"] if hidden > 0 else lines
    cut = (renderer.cut(line) for text in shown for line in text.split("\n"))
    return "\n".join(renderer.line(line, "accent") for line in cut)


_LEAST_WORK = 16
"""Columns that say what an agent does."""


def _render_agent(row: AgentSummary, renderer: TextRenderer) -> str:
    """In a narrow terminal two lines, so that nothing of what it used is cut."""
    name, (elapsed, *used), work = f"○ {row.name}", _facts(row), _describe_work(row)
    is_narrow = len(_join(name, elapsed, *used)) + _LEAST_WORK > renderer.columns
    return (
        f"{_join(name, elapsed)}\n  {_join(*used, work)}" if is_narrow else _join(name, elapsed, *used, work)
    )


def render_elapsed(elapsed: timedelta) -> str:
    seconds = int(elapsed.total_seconds())
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02} s"


async def run_tasks(chat: TaskChat, name: str) -> None:
    """List what runs or ran in the background; open the output of one, or end it."""
    rows = _list_rows(chat.agent)
    if name:
        _show_output(chat, name)
    elif not rows:
        chat.say("nothing runs in the background")
    elif not chat.has_menus:
        for row in rows:
            chat.say(row.label)
        chat.say("/tasks NAME shows what one has printed, /kill NAME ends it", "faint")
    else:
        at = await chat.choose(ChoiceMenu(title="background tasks and agents", choices=rows))
        if at is not None:
            await _open(chat, rows[at].label.partition(" ")[0].rstrip(":"))


async def end_task(chat: TaskChat, name: str) -> None:
    """End a background task or agent."""
    tasks, agents = find_background_tasks(chat.agent), find_agent_tool(chat.agent)
    if tasks is not None and any(task.id == name for task in tasks.all()):
        await tasks.stop(name)
        chat.say(f"{name} was ended", "good")
    elif agents is not None and any(row.name == name for row in agents.running()):
        # Its event says that it was ended.
        await agents.stop(name)
    else:
        chat.say(f"no task {name!r} runs in the background; /tasks lists them", "warning")


async def _open(chat: TaskChat, name: str) -> None:
    _show_output(chat, name)
    if name not in _list_running(chat.agent):
        return
    actions = [Choice(label="leave it running", letter="l"), Choice(label="end it", letter="k")]
    if await chat.choose(ChoiceMenu(title=name, choices=actions)) == 1:
        await end_task(chat, name)


def _list_rows(agent: Agent) -> list[Choice]:
    tasks, agents = find_background_tasks(agent), find_agent_tool(agent)
    rows = [
        Choice(label=task.line, remark=_join(render_elapsed(task.elapsed), task.job.output.last_line()))
        for task in (tasks.all() if tasks else ())
    ]
    return [
        *rows,
        *(
            Choice(
                label=_join(f"{row.name}: {describe_agent_state(row.state)}", *_facts(row), row.task),
                remark=_find_last_act(row),
            )
            for row in (agents.running() if agents else ())
        ),
    ]


def _list_running(agent: Agent) -> list[str]:
    tasks, agents = find_background_tasks(agent), find_agent_tool(agent)
    found = [str(task.id) for task in (tasks.running() if tasks else ())]
    return found + [row.name for row in (agents.running() if agents else ()) if row.state == RUNNING_STATE]


def _show_output(chat: TaskChat, name: str) -> None:
    tasks, agents = find_background_tasks(chat.agent), find_agent_tool(chat.agent)
    task = next((task for task in (tasks.all() if tasks else ()) if task.id == name), None)
    if task is not None:
        chat.say(task.line, "accent")
        _say_end(chat, task.job.render_output(task.job.output.text()).split("\n"))
        return
    member = agents.find_member(name) if agents else None
    if member is None:
        chat.say(f"no task {name!r} runs in the background; /tasks lists them", "warning")
        return
    chat.say(f"{member.name}: {describe_agent_state(member.state)}, {member.entry.description}", "accent")
    if member.agent is not None:
        is_running = member.state == RUNNING_STATE
        tail = render_history_tail(member.agent.session.history, chat.renderer(), is_running=is_running)
        chat.put(tail or "nothing was said yet")
    else:
        _say_end(chat, (member.ending.render() if member.ending else "it has not begun yet").split("\n"))


def _say_end(chat: TaskChat, lines: Sequence[str]) -> None:
    hidden = len(lines) - MAX_OUTPUT_LINES
    if hidden > 0:
        chat.say(f"… {hidden:,} lines before these", "faint")
    chat.say("\n".join(lines[-MAX_OUTPUT_LINES:]).rstrip() or "nothing was printed yet", "faint")


def describe_agent_state(state: str) -> str:
    """Of an agent, as its event says it."""
    return AGENT_ENDINGS.get(state, state)


def _facts(row: AgentSummary) -> list[str]:
    facts = [render_elapsed(row.elapsed)]
    facts += [f"{row.tokens:,} tokens"] if row.tokens else []
    facts += [render_dollars(row.spent_usd)] if row.spent_usd else []
    return facts


def _describe_work(row: AgentSummary) -> str:
    """What an agent is for, and what it did last."""
    did = _find_last_act(row)
    return f"{row.task}: {did}" if did else row.task


def _find_last_act(row: AgentSummary) -> str:
    """As it was asked to put it, or else the call that it made last."""
    return row.activity if row.activity != row.task else row.last_call


def _join(*parts: str) -> str:
    return "  ".join(part for part in parts if part)
