"""Puts rules before the calls that need them: a call that changes something waits once, one that only reads
brings the text along.

A rule is put before the model when it does not stand in its view: once, again after a compaction or a
clearing took it away, and again when somebody changed it. That is read off the view itself, so that a resumed
session, a cancelled turn and a spilled result need no bookkeeping of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Emit, RuleAnswered, RuleShown, RulesSkipped
from sevenfold.core.json import JsonObject
from sevenfold.core.memory_uses import Use, UseKind
from sevenfold.core.messages import Message, ToolUse
from sevenfold.layers.rule_texts import (
    Due,
    InView,
    Rule,
    find_in_view,
    render_gate,
    render_hold,
    render_note,
)
from sevenfold.layers.rules import Action, RuleSettings, find_reason, is_acknowledged
from sevenfold.layers.structural_shell import find_paths, plan_shell
from sevenfold.run.foreword import NO_FOREWORD, Foreword
from sevenfold.run.reach import real_paths
from sevenfold.run.tool import Need
from sevenfold.run.workplace import Workplace
from sevenfold.store.offload import durably

MOST_HOLDS = 3
"""In one turn without the text ever coming into view: something else keeps it out, and a call must not wait
for ever because of that."""

_CHANGING = frozenset({"edit", "fetch", "message", "spawn", "outside"})

ReadRules: TypeAlias = Callable[[], tuple[Rule, ...]]
"""The rules as they are now. Blocks on the disk."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a model has before it."""

    view: Callable[[], Sequence[Message]]
    words: Callable[[], str] | None
    """What it says beside the calls that are being run; None where nobody can tell, and gates stay shut."""


@dataclass(slots=True)
class RuleCounts:
    """What became of rules, until somebody writes it down."""

    uses: list[Use] = field(default_factory=list[Use])

    def take(self) -> tuple[Use, ...]:
        taken = tuple(self.uses)
        self.uses.clear()
        return taken


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    given: JsonObject


@dataclass(slots=True)
class _Held:
    """Calls that were held because of a rule, and have not come again."""

    calls: list[_Call] = field(default_factory=list[_Call])
    times: int = 0
    """How often the rule was put before the model meanwhile."""


class RuleGuard:
    """Of one agent. A fork gets a branch, an agent that is started its own."""

    def __init__(
        self,
        read: ReadRules,
        place: Workplace,
        sight: Sight,
        settings: RuleSettings | None = None,
        counts: RuleCounts | None = None,
    ) -> None:
        self._read, self._place, self._sight = read, place, sight
        self._settings = settings or RuleSettings()
        self.counts = counts or RuleCounts()
        self._own: set[InView] | None = None
        """Of a branch: what it was told itself."""
        self._told: dict[str, str] = {}
        """By memory: the call whose result brings it, which may not be in view yet."""
        self._held: dict[str, _Held] = {}
        """By memory."""
        self._acknowledged: set[InView] = set()

    async def before(self, use: ToolUse, need: Need, beside: Sequence[ToolUse]) -> Foreword:
        try:
            due = await durably(lambda: self._due(use, need))
        except SevenfoldError as error:
            self._emit(RulesSkipped(use.name, str(error)))
            return NO_FOREWORD
        if not due:
            return NO_FOREWORD
        ids = {call.id for call in beside}
        waiting = [one for one in due if self._told.get(one.rule.memory) in ids]
        in_view = self._in_view()
        fresh = [one for one in due if one not in waiting and not self._is_seen(one.rule, in_view)]
        now = fresh[: self._settings.at_once]
        if _is_plain(use, need):
            return self._note(use, now)
        if now or waiting:
            return self._hold(use, now, [one.rule for one in waiting])
        return self._gate(use, [one.rule for one in due])

    def branch(self) -> Self:
        messages = tuple(self._sight.view())
        sight = Sight(lambda: messages, None)
        other = type(self)(self._read, self._place, sight, self._settings, self.counts)
        other._own = set()
        return other

    def end_turn(self) -> None:
        """Whatever was held and did not come again was given up."""
        for memory in self._held:
            self._count(memory, "given up")
        self._held.clear()

    def _due(self, use: ToolUse, need: Need) -> list[Due]:
        rules = self._read()
        if not rules:
            return []
        action = _action(use, need, self._place)
        reasons = ((rule, find_reason(rule.conditions, action)) for rule in rules)
        return [Due(rule, reason) for rule, reason in reasons if reason is not None]

    def _in_view(self) -> frozenset[InView]:
        found = find_in_view(self._sight.view())
        return found if self._own is None else found | self._own

    def _is_seen(self, rule: Rule, in_view: frozenset[InView]) -> bool:
        held = self._held.get(rule.memory)
        return InView(rule.memory, rule.text) in in_view or (held is not None and held.times >= MOST_HOLDS)

    def _note(self, use: ToolUse, due: Sequence[Due]) -> Foreword:
        self._show(use, due, is_held=False)
        return Foreword(note=render_note(due)) if due else NO_FOREWORD

    def _hold(self, use: ToolUse, due: Sequence[Due], beside: Sequence[Rule]) -> Foreword:
        self._show(use, due, is_held=True)
        for rule in (*(one.rule for one in due), *beside):
            held = self._held.setdefault(rule.memory, _Held())
            held.calls.append(_Call(use.name, use.input))
            held.times += rule not in beside
        return Foreword(hold=render_hold(due, beside))

    def _gate(self, use: ToolUse, rules: Sequence[Rule]) -> Foreword:
        """Everything was read; a gate opens once it is acknowledged, and the call runs."""
        words = self._sight.words() if self._sight.words else ""
        shut: list[Rule] = []
        for rule in rules:
            shown = InView(rule.memory, rule.text)
            if not rule.is_gate or shown in self._acknowledged:
                continue
            if is_acknowledged(words, rule.names):
                self._acknowledged.add(shown)
                self._count(rule.memory, "acknowledged")
            else:
                shut.append(rule)
        if shut:
            return Foreword(hold=render_gate(shut))
        for rule in rules:
            held = self._held.pop(rule.memory, None)
            if held is not None:
                is_same = _Call(use.name, use.input) in held.calls
                self._count(rule.memory, "unchanged" if is_same else "changed")
        return NO_FOREWORD

    def _show(self, use: ToolUse, due: Sequence[Due], *, is_held: bool) -> None:
        for one in due:
            memory, shown = one.rule.memory, InView(one.rule.memory, one.rule.text)
            self._told[memory] = use.id
            self._acknowledged.discard(shown)
            if self._own is not None:
                self._own.add(shown)
            self.counts.uses.append(Use(memory, "shown"))
            self._emit(RuleShown(memory, str(one.condition), use.name, use.id, is_held))

    def _count(self, memory: str, outcome: UseKind) -> None:
        self.counts.uses.append(Use(memory, outcome))
        self._emit(RuleAnswered(memory, outcome))

    @property
    def _emit(self) -> Emit:
        return self._place.emit


def _is_plain(use: ToolUse, need: Need) -> bool:
    """Whether a call changes nothing, so that nothing is lost if it runs before the rule is read."""
    if need.kind == "run":
        return need.profile == "read-only"
    return need.kind not in _CHANGING and not _presents(use)


def _presents(use: ToolUse) -> bool:
    """A plan that is handed in goes to a person: what applies to it has to be read before."""
    return use.name == "plan" and use.input.get("action") == "present"


def _action(use: ToolUse, need: Need, place: Workplace) -> Action:
    tools = (use.name, need.tool) if need.tool else (use.name,)
    named = dict.fromkeys((*need.paths, *real_paths(need)))
    paths = list(_inside(named, place.root))
    written = need.kind == "edit" and bool(paths)
    if need.command:
        plan = plan_shell(need.command)
        spelled = (*find_paths(need.command), *plan.patched)
        paths += _inside((str(place.cwd / path) for path in spelled), place.root)
        written = need.profile != "read-only" and bool(plan.written or plan.patched)
    return Action(tools, tuple(paths), need.command, written, use.name == "plan")


def _inside(paths: Iterable[str], root: Path) -> list[str]:
    """Those that lie in the project, from there on."""
    normal = (os.path.normpath(path) for path in paths)
    return [path[len(str(root)) + 1 :] for path in normal if path.startswith(f"{root}/")]
