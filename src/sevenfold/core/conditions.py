"""When a memory applies: the conditions of `applies_to`, read from its frontmatter.

A condition is one of these, and any one of a memory's is enough:

    tool:shell             a call of this tool; `*` stands for any letters: tool:mcp__github__*
    path:src/api/**        a file that is read, edited or named in a command; relative to the project
    command:git push       a command that begins with these words; `*` as above
    phase:before-commit    a moment of the work: see `RULE_PHASES`

Nothing else is a condition, and nothing is guessed: what cannot be read is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

ConditionKind: TypeAlias = Literal["tool", "path", "command", "phase"]


RulePhase: TypeAlias = Literal[
    "planning", "before-edit", "before-commit", "before-push", "before-install", "before-delete"
]


RULE_PHASES: dict[RulePhase, tuple[str, ...]] = {
    "planning": (),
    "before-edit": (),
    "before-commit": ("git commit", "git merge", "git cherry-pick", "jj commit", "jj describe", "hg commit"),
    "before-push": ("git push", "jj git push", "hg push", "gh pr create", "glab mr create"),
    "before-install": (
        *(
            "pip* install",
            "python* -m pip install",
            "uv add",
            "uv pip install",
            "poetry add",
            "conda install",
        ),
        *("npm install", "npm i", "npm ci", "yarn add", "pnpm add", "pnpm install", "bun add", "bun install"),
        *("cargo add", "cargo install", "go get", "go install", "gem install", "bundle add", "brew install"),
        *("apt install", "apt-get install", "conda install"),
    ),
    "before-delete": (
        *("rm", "rmdir", "unlink", "shred", "git rm", "git clean", "git branch -d", "git branch -D"),
        *("git worktree remove", "git stash drop", "git stash clear"),
    ),
}
"""Each moment, and the commands that are it. A plan that is handed in or begun is `planning`, and a call that
changes a file is `before-edit`: those two are known by what the call says of itself."""


MAX_CONDITIONS = 32
"""Of one memory: with more it applies to everything, and instruction files are the place for that."""


_MAX_PATTERN_CHARS = 200


GATE_KEY = "gate"


ACKNOWLEDGE_GATE = "acknowledge"
"""The one `gate` there is: the call runs once the model has named the memory in its own words."""


_TOOL = re.compile(r"[A-Za-z0-9_.*?-]+")


_KINDS = ("tool", "path", "command", "phase")


@dataclass(frozen=True, slots=True)
class RuleCondition:
    kind: ConditionKind
    pattern: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.pattern}"


@dataclass(frozen=True, slots=True)
class RefusedCondition:
    """What stands in `applies_to` and is no condition."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedConditions:
    found: tuple[RuleCondition, ...] = ()
    refused: tuple[RefusedCondition, ...] = ()


def parse_conditions(applies_to: Sequence[str]) -> ParsedConditions:
    """The conditions of a memory, and what could not be read as one."""
    found: list[RuleCondition] = []
    refused: list[RefusedCondition] = []
    for text in applies_to[:MAX_CONDITIONS]:
        read = _read_condition(text.strip())
        if isinstance(read, RefusedCondition):
            refused.append(read)
        elif read not in found:
            found.append(read)
    if len(applies_to) > MAX_CONDITIONS:
        rest = f"{len(applies_to) - MAX_CONDITIONS} more"
        refused.append(RefusedCondition(rest, f"a memory has at most {MAX_CONDITIONS} conditions; split it"))
    return ParsedConditions(tuple(found), tuple(refused))


def _read_condition(text: str) -> RuleCondition | RefusedCondition:
    kind, colon, pattern = text.partition(":")
    pattern = pattern.strip()
    if not colon or kind not in _KINDS:
        return RefusedCondition(
            text[:_MAX_PATTERN_CHARS], "expected tool:NAME, path:PATTERN, command:WORDS or phase:NAME"
        )
    reason = _why_not(kind, pattern)
    if reason:
        return RefusedCondition(text[:_MAX_PATTERN_CHARS], reason)
    return RuleCondition(kind, pattern)


def _why_not(kind: ConditionKind, pattern: str) -> str:
    if not pattern or len(pattern) > _MAX_PATTERN_CHARS or not pattern.isprintable():
        return f"expected 1 to {_MAX_PATTERN_CHARS} printable characters behind {kind}:"
    match kind:
        case "tool":
            return "" if _TOOL.fullmatch(pattern) else "expected a tool's name, such as shell or mcp__*"
        case "phase":
            return "" if pattern in RULE_PHASES else f"expected one of {', '.join(RULE_PHASES)}"
        case "path":
            is_inside = not pattern.startswith(("/", "~")) and ".." not in pattern.split("/")
            return "" if is_inside else "expected a path inside the project, such as src/api/**"
        case "command":
            is_plain = not re.search(r"[;&|<>`$()\"']", pattern)
            return "" if is_plain else "expected the words that a command begins with, such as git push"
