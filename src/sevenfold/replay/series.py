"""Context size over time, in a bounded number of points."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

PointMark: TypeAlias = Literal["", "break", "compaction", "clearing"]

MAX_SERIES_POINTS = 320
"""Twice the dots that 80 columns of braille have; a page needs no more either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """A call; after thinning, the largest of a few neighbours."""

    call: int
    """Its number in the session, from 0."""
    at: datetime | None
    prompt_tokens: int
    read_tokens: int
    mark: PointMark = ""


class PointSeries:
    """Takes points without end and keeps a bounded number, marked ones and the largest before others."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: list[SeriesPoint] = []

    def add(self, point: SeriesPoint) -> None:
        self._points.append(point)
        if len(self._points) >= 2 * MAX_SERIES_POINTS:
            self._points = thin_points(self._points)

    def points(self) -> tuple[SeriesPoint, ...]:
        points = self._points
        return tuple(thin_points(points) if len(points) > MAX_SERIES_POINTS else points)


def thin_points(points: list[SeriesPoint]) -> list[SeriesPoint]:
    """Half of them: of each two neighbours the marked one, else the larger. The first and last stay."""
    if len(points) < 3:
        return points
    inside = points[1:-1]
    pairs = (inside[place : place + 2] for place in range(0, len(inside), 2))
    return [points[0], *(max(pair, key=_weight) for pair in pairs), points[-1]]


def _weight(point: SeriesPoint) -> tuple[bool, int]:
    return (bool(point.mark), point.prompt_tokens)
