"""What is not saved, even on request: what the code, git and the transcript already say, and what is out of
date when it is read again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

UnsavedRule: TypeAlias = Literal["task state", "activity", "debugging", "git", "code"]


@dataclass(frozen=True, slots=True)
class UnsavedPattern:
    """One kind of it."""

    rule: UnsavedRule
    pattern: re.Pattern[str]
    reason: str

    def holds(self, sentence: str) -> bool:
        return bool(self.pattern.search(sentence))


def without_code(text: str) -> str:
    """The prose of a text."""
    return _FENCE.sub("", text)


UNSAVED_PATTERNS = (
    UnsavedPattern(
        "task state",
        re.compile(
            r"\b(?:to-?do|next steps?|in progress|remaining (?:work|tasks?|steps?)|left to do|wip|"
            r"work in progress|"
            r"(?:is|are|am|'m|'re|we're) (?:currently|now|still) (?:\w+ing)|(?:currently|now) (?:working|"
            r"implementing|blocked)|"
            r"(?:still|yet) to (?:do|be done)|up next|pick(?:ing)? (?:this|it) up (?:tomorrow|later)|"
            r"half-?way)\b",
            re.IGNORECASE,
        ),
        "it is the state of the task at hand, which is over when it is read again",
    ),
    UnsavedPattern(
        "activity",
        re.compile(
            r"\b(?:(?:in|during) this (?:session|conversation|turn)|(?:we|i|the (?:agent|assistant|"
            r"user)) (?:just |then |also )?"
            r"(?:implemented|added|refactored|fixed|updated|renamed|moved|ran|created|wrote|edited|"
            r"deleted|merged|committed|"
            r"pushed|reviewed|investigated|looked at|discussed|asked (?:me |for|to)))\b|"
            r"\ball tests (?:pass|passed|green)\b|"
            r"\b\d+ (?:tests? )?passed\b",
            re.IGNORECASE,
        ),
        "it tells what was done, which git and the transcript tell already",
    ),
    UnsavedPattern(
        "debugging",
        re.compile(
            r"\b(?:root cause|stack ?trace|traceback|the (?:fix|bug|error|crash) (?:was|is|came)|"
            r"fixed by|to fix (?:this|the)|"
            r"(?:was|were) caused by|workaround (?:is|was)|solved by|resolved by|caused the (?:error|"
            r"crash|bug|failure))\b",
            re.IGNORECASE,
        ),
        "it is a debugging recipe: the fix is in the code, and its reason in the commit",
    ),
    UnsavedPattern(
        "git",
        re.compile(
            r"\b(?:commit|sha|revision) `?[0-9a-f]{7,40}\b|\b(?:pr|pull request|"
            r"merge request) #?\d+ (?:was|is|has been)\b|"
            r"\b(?:latest|last|previous|recent) commits?\b|\bgit (?:log|blame|history) shows\b",
            re.IGNORECASE,
        ),
        "git's history says it already",
    ),
    UnsavedPattern(
        "code",
        re.compile(
            r"\b(?:function|class|method|module|file|script|endpoint|component|constant|test|"
            r"config(?:uration)?)s?\b[^.\n]{0,60}"
            r"\b(?:is|are|lives?|sits?|gets?) (?:defined|located|implemented|declared|in|under|at|"
            r"inside)\b[^.\n]{0,20}"
            r"(?:[\w.-]+/[\w./-]+|\b[\w-]+\.(?:py|ts|js|tsx|go|rs|java|rb|c|h|cpp|md|toml|json|ya?ml)\b)|"
            r"\b[\w/-]+\.(?:py|ts|js|tsx|go|rs|java|rb|c|h|cpp)`? (?:defines?|contains?|implements?|"
            r"exports?|holds?|has)\b|"
            r"\b(?:takes|returns|accepts) (?:an? )?(?:argument|parameter|list|dict|string|int)s?\b",
            re.IGNORECASE,
        ),
        "the code says it already",
    ),
)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
