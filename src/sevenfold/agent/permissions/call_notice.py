"""What stands before a call: whoever has something to say to the model right before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from sevenfold.agent.tool import AccessRequest
from sevenfold.core.messages import ToolUse


@dataclass(frozen=True, slots=True)
class CallNotice:
    hold: str = ""
    """The call is not run: it gets this for a result."""
    note: str = ""
    """It is run, and this comes before its result."""


NO_CALL_NOTICE = CallNotice()


class CallReviewer(Protocol):
    """Asked before every call that nothing denies."""

    async def before(self, use: ToolUse, need: AccessRequest, beside: Sequence[ToolUse], /) -> CallNotice:
        """What to say before this call; `beside` are all calls of the same answer."""
        ...

    def branch(self) -> Self:
        """The same for a fork, which sees what was said so far and nothing that is said from now on."""
        ...
