"""Shows the model the memory rules that apply to a call. A call that changes something waits once until the
rule was shown; a call that only reads gets the text with its result.

A rule is shown when it is not in the view: once, again after a compaction or a clearing removed it, and again
when somebody changed it. The view itself is checked, so resumed sessions, cancelled turns and spilled results
need no bookkeeping.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias

from sevenfold.agent.permissions.guard import NO_CALL_NOTICE, CallNotice, real_paths
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.errors import SevenfoldError, StoreError
from sevenfold.core.events import Emit, RuleAnswered, RuleShown, RulesSkipped, UsesLost
from sevenfold.core.json import JsonObject
from sevenfold.core.memories import MemoryUse, MemoryUseKind
from sevenfold.core.messages import Message, ToolUse
from sevenfold.core.system import run_blocking
from sevenfold.core.text.globs import find_shell_paths, find_text_paths
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.memory.rule_policy import (
    DueRule,
    MemoryRule,
    ProposedAction,
    RuleSettings,
    VisibleRule,
    find_met_condition,
    find_visible_rules,
    is_acknowledged,
    render_rule_gate,
    render_rule_hold,
    render_rule_note,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.sidecars import UseStore

MAX_HOLDS = 3
"""In one turn without the text ever coming into view: something else keeps it out, and a call must not wait
for ever because of that."""

_CHANGING = frozenset({"edit", "fetch", "message", "spawn", "outside"})

ReadMemoryRules: TypeAlias = Callable[[], tuple[MemoryRule, ...]]
"""The rules as they are now. Blocks on the disk."""


@dataclass(frozen=True, slots=True)
class VisibleContext:
    """What a model has before it."""

    view: Callable[[], Sequence[Message]]
    words: Callable[[], str] | None
    """What it says beside the calls that are being run; None where nobody can tell, and gates stay shut."""


@dataclass(slots=True)
class RuleUses:
    """What became of rules, until somebody writes it down."""

    uses: list[MemoryUse] = field(default_factory=list[MemoryUse])

    def take(self) -> tuple[MemoryUse, ...]:
        taken = tuple(self.uses)
        self.uses.clear()
        return taken


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    given: JsonObject


@dataclass(slots=True)
class _StoppedCalls:
    """Calls that were stopped because of a rule, and not repeated yet."""

    calls: list[_Call] = field(default_factory=list[_Call])
    times: int = 0
    """How often the rule was put before the model meanwhile."""


class RuleGuard:
    """Of one agent. A fork gets a branch, an agent that is started its own."""

    def __init__(
        self,
        read: ReadMemoryRules,
        place: ToolContext,
        visible: VisibleContext,
        settings: RuleSettings | None = None,
        counts: RuleUses | None = None,
    ) -> None:
        self._read, self._place, self._visible = read, place, visible
        self._settings = settings or RuleSettings()
        self.counts = counts or RuleUses()
        self._own: set[VisibleRule] | None = None
        """Of a branch: what it was told itself."""
        self._shown_by: dict[str, str] = {}
        """By memory: the call whose result brings it, which may not be in view yet."""
        self._stopped: dict[str, _StoppedCalls] = {}
        """By memory."""
        self._acknowledged: set[VisibleRule] = set()

    async def before(self, use: ToolUse, need: AccessRequest, beside: Sequence[ToolUse]) -> CallNotice:
        try:
            due = await run_blocking(lambda: self._due(use, need))
        except SevenfoldError as error:
            self._emit(RulesSkipped(use.name, str(error)))
            return NO_CALL_NOTICE
        if not due:
            return NO_CALL_NOTICE
        ids = {call.id for call in beside}
        waiting = [one for one in due if self._shown_by.get(one.rule.memory) in ids]
        in_view = self._in_view()
        fresh = [one for one in due if one not in waiting and not self._is_seen(one.rule, in_view)]
        now = fresh[: self._settings.at_once]
        if _is_plain(use, need):
            return self._note(use, now)
        if now or waiting:
            return self._hold(use, now, [one.rule for one in waiting])
        return self._gate(use, [one.rule for one in due])

    def branch(self) -> Self:
        messages = tuple(self._visible.view())
        visible = VisibleContext(lambda: messages, None)
        other = type(self)(self._read, self._place, visible, self._settings, self.counts)
        other._own = set()
        return other

    def end_turn(self) -> None:
        """Calls that were stopped and not repeated count as given up."""
        for memory in self._stopped:
            self._count(memory, "given up")
        self._stopped.clear()

    async def write_uses(self, folder: Folder) -> None:
        """A turn has ended: write down in this state folder of the memory what became of rules."""
        self.end_turn()
        uses, now = self.counts.take(), self._place.clock.now()
        if not uses:
            return
        try:
            await run_blocking(lambda: UseStore(folder, emit=self._emit).add(uses, now))
        except StoreError as error:
            self._emit(UsesLost(str(folder.path), str(error)))

    def _due(self, use: ToolUse, need: AccessRequest) -> list[DueRule]:
        rules = self._read()
        if not rules:
            return []
        action = _action(use, need, self._place)
        reasons = ((rule, find_met_condition(rule.conditions, action)) for rule in rules)
        return [DueRule(rule, reason) for rule, reason in reasons if reason is not None]

    def _in_view(self) -> frozenset[VisibleRule]:
        found = find_visible_rules(self._visible.view())
        return found if self._own is None else found | self._own

    def _is_seen(self, rule: MemoryRule, in_view: frozenset[VisibleRule]) -> bool:
        stopped = self._stopped.get(rule.memory)
        return VisibleRule(rule.memory, rule.text) in in_view or (
            stopped is not None and stopped.times >= MAX_HOLDS
        )

    def _note(self, use: ToolUse, due: Sequence[DueRule]) -> CallNotice:
        self._show(use, due, is_stopped=False)
        return CallNotice(note=render_rule_note(due)) if due else NO_CALL_NOTICE

    def _hold(self, use: ToolUse, due: Sequence[DueRule], beside: Sequence[MemoryRule]) -> CallNotice:
        self._show(use, due, is_stopped=True)
        for rule in (*(one.rule for one in due), *beside):
            stopped = self._stopped.setdefault(rule.memory, _StoppedCalls())
            stopped.calls.append(_Call(use.name, use.input))
            stopped.times += rule not in beside
        return CallNotice(hold=render_rule_hold(due, beside))

    def _gate(self, use: ToolUse, rules: Sequence[MemoryRule]) -> CallNotice:
        """Everything was read; a gate opens once it is acknowledged, and the call runs."""
        words = self._visible.words() if self._visible.words else ""
        shut: list[MemoryRule] = []
        for rule in rules:
            shown = VisibleRule(rule.memory, rule.text)
            if not rule.is_gate or shown in self._acknowledged:
                continue
            if is_acknowledged(words, rule.names):
                self._acknowledged.add(shown)
                self._count(rule.memory, "acknowledged")
            else:
                shut.append(rule)
        if shut:
            return CallNotice(hold=render_rule_gate(shut))
        for rule in rules:
            stopped = self._stopped.pop(rule.memory, None)
            if stopped is not None:
                is_same = _Call(use.name, use.input) in stopped.calls
                self._count(rule.memory, "unchanged" if is_same else "changed")
        return NO_CALL_NOTICE

    def _show(self, use: ToolUse, due: Sequence[DueRule], *, is_stopped: bool) -> None:
        for one in due:
            memory, shown = one.rule.memory, VisibleRule(one.rule.memory, one.rule.text)
            self._shown_by[memory] = use.id
            self._acknowledged.discard(shown)
            if self._own is not None:
                self._own.add(shown)
            self.counts.uses.append(MemoryUse(memory, "shown"))
            self._emit(
                RuleShown(
                    memory=memory,
                    condition=str(one.condition),
                    tool=use.name,
                    tool_use_id=use.id,
                    is_held=is_stopped,
                )
            )

    def _count(self, memory: str, outcome: MemoryUseKind) -> None:
        self.counts.uses.append(MemoryUse(memory, outcome))
        self._emit(RuleAnswered(memory, outcome))

    @property
    def _emit(self) -> Emit:
        return self._place.emit


def _is_plain(use: ToolUse, need: AccessRequest) -> bool:
    """Whether a call changes nothing, so that nothing is lost if it runs before the rule is read."""
    if need.kind == "run":
        return need.profile == "read-only"
    return need.kind not in _CHANGING and not _presents(use)


def _presents(use: ToolUse) -> bool:
    """A plan that is handed in goes to a person: what applies to it has to be read before."""
    return use.name == "plan" and use.input.get("action") == "present"


def _action(use: ToolUse, need: AccessRequest, place: ToolContext) -> ProposedAction:
    tools = (use.name, need.tool) if need.tool else (use.name,)
    named = dict.fromkeys((*need.paths, *real_paths(need)))
    paths = list(_inside(named, place.root))
    written = need.kind == "edit" and bool(paths)
    if need.command:
        plan = find_shell_paths(need.command)
        spelled = (*find_text_paths(need.command), *plan.patched)
        paths += _inside((str(place.cwd / path) for path in spelled), place.root)
        written = need.profile != "read-only" and bool(plan.written or plan.patched)
    return ProposedAction(
        tools=tools, paths=tuple(paths), command=need.command, changes_files=written, plans=use.name == "plan"
    )


def _inside(paths: Iterable[str], root: Path) -> list[str]:
    """Those that lie in the project, from there on."""
    normal = (os.path.normpath(path) for path in paths)
    return [path[len(str(root)) + 1 :] for path in normal if path.startswith(f"{root}/")]
