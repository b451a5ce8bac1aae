"""Rules of memory in an agent: put before its calls, and counted after its turns."""

from __future__ import annotations

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.project_context import ProjectContext
from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.agent.permissions.rule_guard import RuleGuard, VisibleContext
from sevenfold.core.errors import StoreError
from sevenfold.core.events import UsesLost
from sevenfold.core.messages import Text
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.memory.rules.policy import RuleSettings
from sevenfold.layers.memory.rules.reader import MemoryRuleReader
from sevenfold.session import Session
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.memory.settings import MemorySettings
from sevenfold.store.memory.uses import UseStore


def make_rule_guard(ground: ProjectContext, session: Session, place: ToolContext) -> RuleGuard | None:
    """What is asked before each call of an agent; None where settings say no."""
    settings = ground.settings.of(RuleSettings)
    if not settings.enabled or not ground.settings.of(MemorySettings).enabled:
        return None

    def words() -> str:
        said = session.history[-1] if session.history else None
        blocks = said.blocks if said and said.role == "assistant" else ()
        return "\n".join(block.text for block in blocks if isinstance(block, Text))

    shelf = MemoryRuleReader(memories=ground.memory, settings=settings, emit=place.emit)
    return RuleGuard(shelf.read, place, VisibleContext(lambda: session.parent.messages, words), settings)


def add_rule_counter(agent: Agent, ground: ProjectContext) -> None:
    """Have it written down after each turn what became of rules."""
    rules = agent.toolbox.rules
    if not isinstance(rules, RuleGuard):
        return
    book = UseStore(ground.project.control, emit=agent.place.emit)

    async def write(_end: TurnEnd) -> None:
        rules.end_turn()
        uses, now = rules.counts.take(), agent.place.clock.now()
        try:
            await run_blocking(lambda: book.add(uses, now))
        except StoreError as error:
            agent.place.emit(UsesLost(str(ground.project.control.path), str(error)))

    agent.add_writer("rule counts", write)
