"""Rules of memory in an agent: put before its calls, and counted after its turns."""

from __future__ import annotations

from sevenfold.agent.agent import Agent
from sevenfold.agent.ground import ProjectContext
from sevenfold.agent.turn import TurnEnd
from sevenfold.core.errors import StoreError
from sevenfold.core.events import UsesLost
from sevenfold.core.messages import Text
from sevenfold.engine import Session
from sevenfold.layers.rules import RuleSettings
from sevenfold.run.rule_guard import RuleGuard, VisibleContext
from sevenfold.run.rule_shelf import MemoryRuleReader
from sevenfold.run.workplace import ToolContext
from sevenfold.store.memory_settings import MemorySettings
from sevenfold.store.memory_uses import UseStore
from sevenfold.store.offload import run_blocking


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
