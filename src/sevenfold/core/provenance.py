"""Where a memory came from: kept beside the text and never in it, where no agent can write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

ChangeAuthor: TypeAlias = Literal["user", "agent", "fork", "dream", "sync", "outside edit"]
"""Whose change it was. An outside edit is one that came past the engine: an editor's, or a script's."""

SaidBy: TypeAlias = Literal["user", "model", "tool output", "unknown"]

Taint: TypeAlias = Literal["tool", "web", "mcp", "mail", "outside edit", "team", "transcript"]
"""Which foreign hands the words went through."""

CHANGE_AUTHORS: tuple[ChangeAuthor, ...] = get_args(ChangeAuthor)
SAID_BY: tuple[SaidBy, ...] = get_args(SaidBy)
TAINTS: tuple[Taint, ...] = get_args(Taint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who changed a memory, why, and whose words they are."""

    who: ChangeAuthor
    why: str
    session: str = ""
    messages: tuple[str, ...] = ()
    """Ids of the records of that session that it came from."""
    said_by: SaidBy = "unknown"
    taint: frozenset[Taint] = frozenset()
    is_accepted: bool = False
    """A person has read it and agreed."""

    @property
    def is_trusted(self) -> bool:
        """Whether it may act as more than a quotation: nothing foreign in it, or a person agreed."""
        return self.is_accepted or not self.taint


def join_taint(*origins: Origin) -> frozenset[Taint]:
    """What a text made of several carries on: all that is in any of them and that nobody accepted."""
    return frozenset(taint for origin in origins if not origin.is_accepted for taint in origin.taint)
