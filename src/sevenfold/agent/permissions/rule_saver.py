"""Answers for always: kept in the project's own settings, or told to be lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.permissions.rules import PermissionRule
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.events.tool import RuleLost
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.project.rule_file import add_allow_rule
from sevenfold.store.project.trust import TrustStore


@dataclass(frozen=True, slots=True)
class RuleSaver:
    """Keeps rules for one project; a guard's `keep` is `RuleSaver(root).keep`."""

    root: Path
    emit: Emit = ignore_event
    trust: TrustStore | None = None
    """Where it is kept what a person has agreed to; None: nobody is asked about the file."""

    async def keep(self, rule: PermissionRule) -> None:
        try:
            await run_blocking(lambda: add_allow_rule(self.root, str(rule), self.trust))
        except SevenfoldError as error:
            self.emit(RuleLost(str(rule), str(error)))
