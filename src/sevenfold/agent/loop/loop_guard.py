"""Notices that a model makes the same failing call again and again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

from sevenfold.agent.tools.executor import ToolBatch
from sevenfold.core.json import write_json
from sevenfold.core.messages import ToolUse

MAX_EQUAL_FAILURES = 5
"""A model that got the same error five times for the same call has not understood it."""


@dataclass(slots=True)
class LoopGuard:
    """Counts equal failing calls since something new succeeded: a test that fails again after each edit is
    work, and the same without any is not."""

    _failures: Counter[bytes] = field(default_factory=Counter[bytes])
    _succeeded: set[bytes] = field(default_factory=set[bytes])

    def find_loop(self, answers: ToolBatch) -> ToolUse | None:
        """Take in the calls of an answer; one that has failed too often, if there is one."""
        found: ToolUse | None = None
        for use in answers.uses:
            output, key = answers.outputs.get(use.id), _digest(use)
            if output is None:
                continue
            if output.is_error:
                self._failures[key] += 1
                found = use if self._failures[key] >= MAX_EQUAL_FAILURES else found
            elif key not in self._succeeded:
                self._succeeded.add(key)
                self._failures.clear()
                found = None
        return found

    def reset(self) -> None:
        """Count anew: a person wants the model to go on."""
        self._failures.clear()


def _digest(use: ToolUse) -> bytes:
    """Of the tool and its input: ids differ with every call."""
    return blake2b(use.name.encode() + b"\0" + write_json(use.input), digest_size=16).digest()
