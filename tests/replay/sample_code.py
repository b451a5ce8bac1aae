"""The files that are read in the sample session: a small program for tide tables that does not exist."""

from __future__ import annotations

FOLDER = "/srv/tidewatch"


def numbered(code: str) -> str:
    """A file as a reading tool shows it."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(code.strip("\n").split("\n"), 1))


NAMES = (
    *("Aberhaven", "Brinsea", "Corriemouth", "Dunmoor Quay", "Eastholm", "Fennick Bar", "Garlock Point"),
    *(
        "Hallow Sands",
        "Innisford",
        "Jarrow Spit",
        "Kelder Mouth",
        "Lowen Roads",
        "Marrick Sound",
        "Northwick",
    ),
    *(
        "Ormsay",
        "Pellan Rock",
        "Quarrel Bay",
        "Rushen Pier",
        "Saltby",
        "Tarn Haven",
        "Ulver Deep",
        "Westerly",
    ),
)
ZONES = ("Europe/London", "Europe/Dublin", "Europe/Paris", "Atlantic/Reykjavik", "America/Halifax")
CONSTITUENTS = ("M2", "S2", "N2", "K1", "O1", "P1", "K2", "M4")

_FORECAST = '''
"""Tide heights from harmonic constituents.

A station's constituents are amplitudes in metres and phases in degrees, referred to the equilibrium tide at
Greenwich. Heights are sums of cosines over the time since the epoch; extremes are found by stepping through
the day and refining each change of sign of the slope.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tidewatch.stations import Constituent, Station

EPOCH = datetime(2000, 1, 1)
STEP = timedelta(minutes=6)
REFINEMENTS = 12

SPEEDS = {
    "M2": 28.9841042,
    "S2": 30.0000000,
    "N2": 28.4397295,
    "K1": 15.0410686,
    "O1": 13.9430356,
    "P1": 14.9589314,
    "K2": 30.0821373,
    "M4": 57.9682084,
}


@dataclass(frozen=True)
class Extreme:
    """High or low water."""

    at: datetime
    height: float
    is_high: bool


def hours_since_epoch(at: datetime) -> float:
    return (at.replace(tzinfo=None) - EPOCH).total_seconds() / 3600


def height(station: Station, at: datetime) -> float:
    """Metres above chart datum."""
    hours = hours_since_epoch(at)
    total = station.mean_level
    for constituent in station.constituents:
        total += _contribution(constituent, hours)
    return total


def slope(station: Station, at: datetime) -> float:
    """Metres an hour, positive on the flood."""
    hours = hours_since_epoch(at)
    total = 0.0
    for constituent in station.constituents:
        speed = math.radians(SPEEDS[constituent.name])
        angle = speed * hours - math.radians(constituent.phase)
        total -= constituent.amplitude * speed * math.sin(angle)
    return total


def predict(station: Station, day: datetime, days: int = 1) -> Iterator[Extreme]:
    """Every high and low water from midnight of `day`, local time."""
    zone = ZoneInfo(station.zone)
    start = day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone)
    end = start + timedelta(days=days)
    at, before = start, slope(station, start)
    while at < end:
        following = at + STEP
        after = slope(station, following)
        if before * after <= 0 and before != after:
            turning = _refine(station, at, following)
            yield Extreme(turning.replace(tzinfo=zone), height(station, turning), before > 0)
        at, before = following, after


def _contribution(constituent: Constituent, hours: float) -> float:
    angle = SPEEDS[constituent.name] * hours - constituent.phase
    return constituent.amplitude * math.cos(math.radians(angle))


def _refine(station: Station, low: datetime, high: datetime) -> datetime:
    """Bisect the interval in which the slope changes its sign."""
    falling = slope(station, low) > 0
    for _ in range(REFINEMENTS):
        middle = low + (high - low) / 2
        if (slope(station, middle) > 0) == falling:
            low = middle
        else:
            high = middle
    return low + (high - low) / 2
'''
FORECAST = numbered(_FORECAST)


def _station(place: int, name: str) -> str:
    pairs = ", ".join(
        f'Constituent("{kind}", {0.04 + ((place * 7 + order * 13) % 190) / 80:.3f}, '
        f"{(place * 47 + order * 71) % 360}.{place % 10})"
        for order, kind in enumerate(CONSTITUENTS[: 4 + place % 3])
    )
    return f'    Station("{name}", "{ZONES[place % len(ZONES)]}", {2 + place % 5}.{place % 10}, ({pairs})),'


_STATIONS = (
    '''
"""The stations we forecast for, with their constituents."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constituent:
    name: str
    amplitude: float
    phase: float


@dataclass(frozen=True)
class Station:
    name: str
    zone: str
    mean_level: float
    constituents: tuple[Constituent, ...]


STATIONS = (
'''
    + "\n".join(_station(place, name) for place, name in enumerate(NAMES))
    + '''
)


def find(name: str) -> Station:
    """The station of that name, in any case."""
    wanted = name.casefold()
    for station in STATIONS:
        if station.name.casefold() == wanted:
            return station
    raise KeyError(name)
'''
)
STATIONS = numbered(_STATIONS)

_TABLE = "\n".join(
    f'    ("{name}", "2026-{1 + place % 9:02}-{1 + (place * 5) % 27:02}"): '
    f'("{place % 6:02}:{(place * 17) % 60:02}", "{12 + place % 7:02}:{(place * 29) % 60:02}"),'
    for place, name in enumerate(NAMES[:16])
)
_TESTS = (
    '''
"""High and low waters against tables worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tidewatch.forecast import height, predict, slope
from tidewatch.stations import STATIONS, find

TABLE = {
'''
    + _TABLE
    + """
}


@pytest.mark.parametrize(("place", "times"), TABLE.items(), ids=lambda item: str(item[0]))
def test_high_waters_agree_with_the_table(place: tuple[str, str], times: tuple[str, str]) -> None:
    name, day = place
    found = [item for item in predict(find(name), datetime.fromisoformat(day)) if item.is_high]
    assert tuple(f"{item.at:%H:%M}" for item in found[:2]) == times


@pytest.mark.parametrize("station", STATIONS, ids=lambda station: station.name)
def test_the_slope_changes_its_sign_at_an_extreme(station) -> None:
    for extreme in predict(station, datetime(2026, 6, 1)):
        before = slope(station, extreme.at - timedelta(minutes=5))
        after = slope(station, extreme.at + timedelta(minutes=5))
        assert before * after < 0


def test_a_high_water_is_above_its_neighbours() -> None:
    station = find("Brinsea")
    for extreme in predict(station, datetime(2026, 3, 9)):
        sides = [height(station, extreme.at + timedelta(minutes=step)) for step in (-30, 30)]
        assert all((extreme.height > side) == extreme.is_high for side in sides)


def test_high_water_after_the_clocks_went_back() -> None:
    station = find("Aberhaven")
    found = list(predict(station, datetime(2026, 10, 26)))
    assert [f"{item.at:%H:%M}" for item in found if item.is_high] == ["04:12", "16:38"]


def test_the_day_of_the_change_has_twenty_five_hours() -> None:
    station = find("Aberhaven")
    found = list(predict(station, datetime(2026, 10, 25)))
    assert [f"{item.at:%H:%M}" for item in found if item.is_high] == ["03:20", "15:47"]
"""
)
TESTS = numbered(_TESTS)
_FEED = '''
"""Observations from harbour gauges, matched with what was forecast."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from tidewatch.forecast import Extreme
from tidewatch.stations import Station, find

FORMAT = "%Y-%m-%d %H:%M"
WINDOW = timedelta(minutes=45)
PLAUSIBLE = (-1.5, 14.0)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Observation:
    station: str
    at: datetime
    height: float


@dataclass(frozen=True)
class Match:
    observation: Observation
    extreme: Extreme
    residual: float


def parse_time(text: str, station: Station) -> datetime:
    return datetime.strptime(text, FORMAT).replace(tzinfo=ZoneInfo(station.zone))


def read(path: Path) -> Iterator[Observation]:
    """Rows of a gauge's file; implausible ones are logged and left out."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            station = find(row["station"])
            level = float(row["height"])
            if not PLAUSIBLE[0] <= level <= PLAUSIBLE[1]:
                log.warning("implausible %s at %s: %.2f", station.name, row["time"], level)
                continue
            yield Observation(station.name, parse_time(row["time"], station), level)


def merge(observations: Iterable[Observation], extremes: Iterable[Extreme]) -> list[Match]:
    """Each observation with the nearest extreme inside the window."""
    forecast = sorted(extremes, key=lambda extreme: extreme.at)
    matches: list[Match] = []
    for observation in observations:
        best = min(forecast, key=lambda extreme: _gap(observation, extreme), default=None)
        if best is not None and _gap(observation, best) <= WINDOW.total_seconds():
            matches.append(Match(observation, best, observation.height - best.height))
    return matches


def bare(at: datetime) -> datetime:
    return at.replace(tzinfo=None)


def _gap(observation: Observation, extreme: Extreme) -> float:
    gap = abs((bare(observation.at) - bare(extreme.at)).total_seconds())
    return gap


def residuals(matches: Iterable[Match]) -> dict[str, float]:
    """The mean residual of each station, in metres."""
    sums: dict[str, list[float]] = {}
    for match in matches:
        sums.setdefault(match.observation.station, []).append(match.residual)
    return {name: sum(values) / len(values) for name, values in sums.items()}
'''
FEED = numbered(_FEED)
