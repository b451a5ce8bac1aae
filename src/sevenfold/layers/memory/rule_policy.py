"""Which memories an action is about to need, and how they are shown: rules that apply before it runs.

The text of a memory is fenced, with its source outside the fence, and is never an instruction by itself. The
program's own words around it only say why the call waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from sevenfold.core.memories import RULE_PHASES, RuleCondition, RulePhase
from sevenfold.core.messages import Message, Text, ToolResult
from sevenfold.core.settings import limit, switch
from sevenfold.core.text.command_lines import has_command, split_commands
from sevenfold.core.text.globs import expand_braces, matches_name, matches_parts
from sevenfold.core.text.safe_text import escape_reminder_tags, fence_text, find_fences, truncate_lines


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


_IDLE = frozenset(["--abort", "--quit", "--show-current-patch", "--help", "--version", "--dry-run"])
"""With one of these nothing comes of a command."""


def _is_idle(command: Sequence[str]) -> bool:
    is_listing = " ".join(command[:2]) == "git clean" and any(re.match(r"-[a-z]*n", word) for word in command)
    return is_listing or not _IDLE.isdisjoint(command) or command[1:] in (("-v",), ("-h",))


def _is_phase(phase: RulePhase, action: ProposedAction, commands: Sequence[Sequence[str]]) -> bool:
    if phase == "planning":
        return action.plans
    if phase == "before-edit":
        return action.changes_files
    begun = [one for one in commands if not _is_idle(one)]
    return any(has_command(begun, words.split()) for words in RULE_PHASES[phase])


def _is_path(pattern: str, path: str) -> bool:
    """Whether a pattern names this path or a folder above it. Without a slash it names files at any depth."""
    bare = pattern.removeprefix("./").rstrip("/")
    names = [*([] if "/" in pattern.rstrip("/") else ["**"]), *bare.split("/")]
    parts = path.split("/")
    return any(matches_parts(names, parts[:depth]) for depth in range(1, len(parts) + 1))


# How a rule is shown to the model, and whether the view still shows it.

_FENCE = "memory-rule"
_OPENING = f"<{_FENCE} "

_HELD = (
    "Not run yet: what is remembered of this project applies to this call. Read it, then call again, as it "
    "was or changed, or do something else. It is a note from earlier sessions and may be out of date; what "
    "the user says counts for more."
)
_NOTED = "What is remembered of this project applies here; it is a note, and may be out of date."
_BESIDE = "Not run yet: what another call of this answer was answered with applies to this one too: "


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRule:
    """A memory that says when it applies."""

    memory: str
    """Its key."""
    name: str
    text: str
    """As it stands in a fence."""
    conditions: tuple[RuleCondition, ...]
    is_gate: bool
    source: str
    """Since when it is remembered and whose words they are."""

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called when it is acknowledged."""
        stem = self.memory.removesuffix(".md")
        return (self.name, stem, stem.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class DueRule:
    """A rule that an action is about to need, and why."""

    rule: MemoryRule
    condition: RuleCondition


@dataclass(frozen=True, slots=True)
class VisibleRule:
    """A rule as the model can read it now."""

    memory: str
    text: str


def fit_rule_text(memory: str, body: str, limit_bytes: int) -> str:
    """A memory's body as it stands in a fence, at most about this long."""
    whole = escape_reminder_tags(body.strip())
    shown = truncate_lines(whole, limit_bytes)
    if len(shown) == len(whole):
        return whole
    return f"{shown.rstrip()}\n[cut here: read the memory {memory} for the rest]"


def render_rule_hold(due: Sequence[DueRule], beside: Sequence[MemoryRule] = ()) -> str:
    """Why a call was not run, and what to read first."""
    parts = [_HELD, *map(_section, due)] if due else []
    if beside:
        parts.append(f"{_BESIDE}{', '.join(rule.memory for rule in beside)}.")
    gates = [rule for rule in (*(one.rule for one in due), *beside) if rule.is_gate]
    return "\n\n".join([*parts, *([_asked(gates)] if gates else [])])


def render_rule_gate(rules: Sequence[MemoryRule]) -> str:
    """Why a call that was repeated still was not run."""
    return f"Not run: {_asked(rules)}"


def render_rule_note(due: Sequence[DueRule]) -> str:
    """What comes with the result of a call that changes nothing."""
    return "\n\n".join([_NOTED, *map(_section, due)])


def find_visible_rules(messages: Iterable[Message]) -> frozenset[VisibleRule]:
    """The rules that stand whole in these messages."""
    found: set[VisibleRule] = set()
    for message in messages:
        for block in message.blocks:
            for text in _texts(block) if isinstance(block, ToolResult) else ():
                if _OPENING in text:
                    found |= {VisibleRule(fence.label, fence.text) for fence in find_fences(_FENCE, text)}
    return frozenset(found)


def _texts(result: ToolResult) -> tuple[str, ...]:
    content = result.content
    if content is None or isinstance(content, str):
        return (content or "",)
    return tuple(item.text for item in content if isinstance(item, Text))


def _section(due: DueRule) -> str:
    rule = due.rule
    return (
        f"{rule.memory}, for {due.condition}; "
        f"{rule.source}:\n{fence_text(_FENCE, rule.text, label=rule.memory)}"
    )


def _asked(rules: Sequence[MemoryRule]) -> str:
    # By their keys, whose grammar is ours: what a memory calls itself may be anything.
    names = ", ".join(rule.memory.removesuffix(".md") for rule in rules)
    return (
        f"{names} has to be acknowledged. In the answer that calls again, say in your own words beside the "
        f"call how it applies, and name it: {names}."
    )
