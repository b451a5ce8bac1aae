"""Rates that hold for all processes together: each tells the database what it took, and hears of the others.

Numbers only grow there, so that neither clocks nor the order of telling matter. Nobody waits for it: within a
second or two of a rush, each process counts what all of them take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.team.server.access import AccessControl
from sevenfold.team.server.app_state import AppState
from sevenfold.team.server.database import Tx, sql_number, sql_text

SHARE_EVERY = timedelta(seconds=1)
TAKEN_RETENTION = timedelta(days=1)
"""Much longer than any bucket takes to fill."""
_MOST_ROWS = 500
"""Of one statement."""


FOLLOWED = 10
"""Rounds in which nobody took anything before a bucket is not asked about any more."""


@dataclass(frozen=True, slots=True)
class _Followed:
    total: int
    """What all processes had taken when it was told last."""
    idle: int = 0

    def after(self, total: int) -> _Followed:
        return _Followed(total, self.idle + 1 if total == self.total else 0)


class SharedRates:
    def __init__(self, desk: AppState, gate: AccessControl) -> None:
        self._desk, self._gate = desk, gate
        self._followed: dict[str, _Followed] = {}

    async def share(self) -> None:
        taken, now_ms = self._gate.tell_taken(), self._desk.now_ms
        told = {**dict.fromkeys(self._followed, 0), **taken}
        if not told:
            return
        totals = await self._desk.write(None, lambda tx: add_taken(tx, told, now_ms))
        known = {
            name: self._followed.get(name, _Followed(total - told[name])) for name, total in totals.items()
        }
        self._gate.take_elsewhere(
            {name: totals[name] - one.total - told[name] for name, one in known.items()}
        )
        now = {name: one.after(totals[name]) for name, one in known.items()}
        self._followed = {name: one for name, one in now.items() if one.idle < FOLLOWED}


def add_taken(tx: Tx, taken: Mapping[str, int], now_ms: int) -> dict[str, int]:
    """What has been taken of each bucket by everybody, now that this is added."""
    totals = dict[str, int]()
    # In one order for all, so that two processes never wait for each other.
    for some in _chunks(sorted(taken)):
        rows = tx.rows(
            f"INSERT INTO permit VALUES {', '.join(['(?, ?, ?)'] * len(some))} ON CONFLICT (name)"
            " DO UPDATE SET taken = permit.taken + excluded.taken, at = excluded.at RETURNING name, taken",
            *(value for name in some for value in (name, taken[name], now_ms)),
        )
        totals |= {sql_text(name): sql_number(total) for name, total in rows}
    return totals


def forget_taken(tx: Tx, now_ms: int) -> None:
    """Of buckets that nobody has used for long: they are full again."""
    tx.rows("DELETE FROM permit WHERE at < ?", now_ms - TAKEN_RETENTION // timedelta(milliseconds=1))


def _chunks(names: list[str]) -> list[list[str]]:
    return [names[start : start + _MOST_ROWS] for start in range(0, len(names), _MOST_ROWS)]
