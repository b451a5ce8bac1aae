"""The prompt cache over again, as slow and as plain as can be: prefixes are whole tuples, nothing is hashed.

It shares no code with `core/cache/prompt_cache.py` but the choices, so that what both say is likely to be so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sevenfold.core.cache.prompt_cache import CacheChoices

FIVE, HOUR = timedelta(minutes=5), timedelta(hours=1)


@dataclass(frozen=True)
class Piece:
    """One block: what it is, whose run it may belong to, how large, and how long its marker lives."""

    name: str
    kind: str
    tokens: int
    life: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One write. Two writes of one prefix are two of these."""

    owner: tuple[str, str]
    prefix: tuple[tuple[str, str], ...]
    life: timedelta
    touched: datetime
    visible: datetime


@dataclass(frozen=True, kw_only=True)
class Answer:
    read: int
    written_1h: int
    written_5m: int
    fresh: int
    writes: tuple[Kept, ...]


@dataclass
class NaiveCache:
    choices: CacheChoices
    minimum: int
    kept: list[Kept] = field(default_factory=list[Kept])

    def ask(self, owner: tuple[str, str], pieces: list[Piece], now: datetime) -> Answer:
        markers = self.markers(pieces)
        finds = {marker: self.found(owner, pieces, marker, now) for marker in markers}
        found = {marker: index for marker, index in finds.items() if index is not None}
        hit = max(found.values(), default=None)
        before = list(self.kept)
        self.refresh(owner, pieces, found, hit, now)
        writes: list[Kept] = []
        for marker in markers:
            life = pieces[marker].life
            assert life is not None
            if hit is not None and marker <= hit and not self.choices.writes_below_hit:
                continue
            lives = (life,) if self.choices.hit_needs_ttl else (FIVE, HOUR)
            if not any(self.is_alive(item, owner, pieces[: marker + 1], lives, now) for item in before):
                writes.append(
                    Kept(
                        owner=owner, prefix=prefix(pieces[: marker + 1]), life=life, touched=now, visible=now
                    )
                )
        total = total_of(pieces)
        read = total_of(pieces[: hit + 1]) if hit is not None else 0
        hours = [total_of(pieces[: m + 1]) for m in markers if pieces[m].life == HOUR]
        until_1h = max([read, *hours])
        until_5m = max([until_1h, *(total_of(pieces[: m + 1]) for m in markers)])
        return Answer(
            read=read,
            written_1h=until_1h - read,
            written_5m=until_5m - until_1h,
            fresh=total - until_5m,
            writes=tuple(writes),
        )

    def begin(self, answer: Answer, at: datetime) -> None:
        self.kept += [replace(item, visible=at) for item in answer.writes]

    def markers(self, pieces: list[Piece]) -> list[int]:
        marked = [index for index, piece in enumerate(pieces) if piece.life]
        if not self.choices.gates_each_marker:
            enough = marked and total_of(pieces[: marked[-1] + 1]) >= self.minimum
            return marked if enough else []
        return [index for index in marked if total_of(pieces[: index + 1]) >= self.minimum]

    def found(self, owner: tuple[str, str], pieces: list[Piece], marker: int, now: datetime) -> int | None:
        life = pieces[marker].life
        lives = (life,) if self.choices.hit_needs_ttl and life else (FIVE, HOUR)
        for position in positions(pieces[: marker + 1], collapse=self.choices.collapses_runs)[:20]:
            for index in position:
                if any(self.is_alive(item, owner, pieces[: index + 1], lives, now) for item in self.kept):
                    return index
        return None

    def refresh(
        self,
        owner: tuple[str, str],
        pieces: list[Piece],
        found: dict[int, int],
        hit: int | None,
        now: datetime,
    ) -> None:
        if hit is None:
            return
        touched: list[tuple[int, tuple[timedelta, ...]]] = []
        if self.choices.refresh == "prefix":
            touched = [(index, (FIVE, HOUR)) for index in range(hit + 1)]
        else:
            for marker, index in found.items():
                if self.choices.refresh == "found" or index == hit:
                    touched.append((index, self.lives_at(owner, pieces, marker, index, now)))
        self.kept = [
            replace(item, touched=max(item.touched, now))
            if any(self.is_alive(item, owner, pieces[: i + 1], lives, now) for i, lives in touched)
            else item
            for item in self.kept
        ]

    def lives_at(
        self, owner: tuple[str, str], pieces: list[Piece], marker: int, index: int, now: datetime
    ) -> tuple[timedelta, ...]:
        """Of two entries at one prefix, the one that lives an hour is the one that was read."""
        life = pieces[marker].life
        if self.choices.hit_needs_ttl and life:
            return (life,)
        has_hour = any(self.is_alive(item, owner, pieces[: index + 1], (HOUR,), now) for item in self.kept)
        return (HOUR,) if has_hour else (FIVE,)

    def is_alive(
        self,
        item: Kept,
        owner: tuple[str, str],
        pieces: list[Piece],
        lives: tuple[timedelta, ...],
        now: datetime,
    ) -> bool:
        return (
            item.owner == owner
            and item.prefix == prefix(pieces)
            and item.life in lives
            and item.visible <= now <= item.touched + item.life
        )


def positions(pieces: list[Piece], *, collapse: bool) -> list[list[int]]:
    """The positions of a look-back, nearest first; a run of calls or of results is one of several blocks."""
    grouped: list[list[int]] = []
    for index in reversed(range(len(pieces))):
        kind = pieces[index].kind
        last = pieces[grouped[-1][-1]].kind if grouped else ""
        if collapse and kind == last and kind in ("tool_use", "tool_result"):
            grouped[-1].append(index)
        else:
            grouped.append([index])
    return grouped


def prefix(pieces: list[Piece]) -> tuple[tuple[str, str], ...]:
    return tuple((piece.name, piece.kind) for piece in pieces)


def total_of(pieces: list[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)
