"""Answers for always: kept in the project's own settings, or told to be lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Emit, ignore
from sevenfold.core.tool_events import RuleLost
from sevenfold.run.rules import Rule
from sevenfold.store.offload import durably
from sevenfold.store.rule_file import add_allowed
from sevenfold.store.trust import Trust


@dataclass(frozen=True, slots=True)
class RuleKeeper:
    """Keeps rules for one project; a guard's `keep` is `RuleKeeper(root).keep`."""

    root: Path
    emit: Emit = ignore
    trust: Trust | None = None
    """Where it is kept what a person has agreed to; None: nobody is asked about the file."""

    async def keep(self, rule: Rule) -> None:
        try:
            await durably(lambda: add_allowed(self.root, str(rule), self.trust))
        except SevenfoldError as error:
            self.emit(RuleLost(str(rule), str(error)))
