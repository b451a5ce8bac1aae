"""Questions about files that came with a repository: asked once, and the answer is kept by content.

Hooks, MCP servers, agents and settings of a repository count once a person has agreed to them. An answer of
either kind holds until the file changes. Where nobody can be asked the answer is no, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sevenfold.core.system import run_blocking
from sevenfold.store.project.trust import Consent, TrustStore

Confirm: TypeAlias = Callable[[str], Awaitable[bool | None]]
"""Asks a person a question that is answered by yes or no; None where nobody could be asked."""


async def decline_confirmation(_question: str) -> bool | None:
    """For a run with nobody to ask: what has not been agreed to stays off."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentRequest:
    """A file of a repository that does something only once a person has agreed."""

    name: str
    """Its path below the project: what an answer is kept under, and how a person names it."""
    path: Path
    content: bytes
    """What is agreed to, or refused."""
    wants: tuple[str, ...]
    """What it would do, a line each."""
    question: str

    def explain(self, consent: Consent) -> str:
        """Why it does not count, and how to allow it."""
        said = "you have refused it" if consent == "refused" else "nobody has agreed to it"
        return f"{said}; look at the file, then `sevenfold settings --trust {self.name}` allows it"


async def ask_consent(request: ConsentRequest, trust: TrustStore | None, confirm: Confirm) -> Consent:
    """What somebody has answered about this file as it is now. Asks where no answer was kept."""
    if trust is not None:
        kept: Consent = await run_blocking(lambda: trust.find(request.name, request.content))
        if kept != "unasked":
            return kept
    answer = await confirm(request.question)
    if answer is None:
        return "unasked"
    if trust is not None:
        await run_blocking(lambda: trust.keep(request.name, request.content, is_agreed=answer))
    return "agreed" if answer else "refused"
