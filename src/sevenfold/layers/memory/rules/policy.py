"""Which memories an action is about to need: rules that apply before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from sevenfold.core.memories import RULE_PHASES, RuleCondition, RulePhase
from sevenfold.core.settings import limit, switch
from sevenfold.core.text.command_lines import has_command, split_commands
from sevenfold.core.text.globs import expand_braces, matches_name, matches_parts


@dataclass(frozen=True, slots=True)
class RuleSettings:
    SECTION: ClassVar[str] = "rules"

    enabled: bool = switch(True)
    """On: a rule that is stored and not applied when it matters is what people complain of most."""

    limit_bytes: int = limit(8_000, at_least=200)
    """Of one memory, as when it is recalled: what is longer ends with a pointer to the rest."""

    at_once: int = limit(5, at_least=1)
    """Memories before one call; the next ones come when it is called again. More are skimmed, not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedAction:
    """A call that is about to run, as conditions look at it."""

    tools: tuple[str, ...]
    """Its tool, and the one that is meant where one calls another."""
    paths: tuple[str, ...] = ()
    """Files of the project that it names, relative to the project, with `/`."""
    command: str = ""
    changes_files: bool = False
    plans: bool = False


def find_met_condition(conditions: Iterable[RuleCondition], action: ProposedAction) -> RuleCondition | None:
    """The first condition that this action meets; None: the memory does not apply to it."""
    commands = split_commands(action.command) if action.command else ()
    return next((one for one in conditions if _is_met(one, action, commands)), None)


def is_acknowledged(words: str, names: Iterable[str]) -> bool:
    """Whether the model's own words name a memory by any of these names, as a word of its own."""
    said = words.casefold()
    return any(
        re.search(rf"(?<![\w-]){re.escape(name.casefold())}(?![\w-])", said) for name in names if name.strip()
    )


def _is_met(condition: RuleCondition, action: ProposedAction, commands: Sequence[Sequence[str]]) -> bool:
    pattern = condition.pattern
    match condition.kind:
        case "tool":
            return any(matches_name(pattern, tool) for tool in action.tools)
        case "path":
            return any(_is_path(one, path) for one in expand_braces(pattern) for path in action.paths)
        case "command":
            return has_command(commands, pattern.split())
        case "phase":
            return _is_phase(cast("RulePhase", pattern), action, commands)


def _is_phase(phase: RulePhase, action: ProposedAction, commands: Sequence[Sequence[str]]) -> bool:
    if phase == "planning":
        return action.plans
    if phase == "before-edit":
        return action.changes_files
    return any(has_command(commands, words.split()) for words in RULE_PHASES[phase])


def _is_path(pattern: str, path: str) -> bool:
    """Whether a pattern names this path or a folder above it. Without a slash it names files at any depth."""
    bare = pattern.removeprefix("./").rstrip("/")
    names = [*([] if "/" in pattern.rstrip("/") else ["**"]), *bare.split("/")]
    parts = path.split("/")
    return any(matches_parts(names, parts[:depth]) for depth in range(1, len(parts) + 1))
