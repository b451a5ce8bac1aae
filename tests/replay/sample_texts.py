"""What is run and said in the sample session."""

from __future__ import annotations

from tests.replay.sample_code import FOLDER, NAMES, numbered

TREE = "\n".join(
    f"{FOLDER}/{name}"
    for name in (
        *("tidewatch/__init__.py", "tidewatch/cli.py", "tidewatch/feed.py", "tidewatch/forecast.py"),
        *("tidewatch/render.py", "tidewatch/stations.py", "tests/test_cli.py", "tests/test_feed.py"),
        *("tests/test_forecast.py", "tests/test_stations.py"),
    )
)

OLD = """    zone = ZoneInfo(station.zone)
    start = day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone)
    end = start + timedelta(days=days)"""
NEW = """    zone = ZoneInfo(station.zone)
    midnight = day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone)
    # All arithmetic is done in UTC: local clocks skip an hour in spring and repeat one in autumn.
    start = midnight.astimezone(UTC)
    end = (midnight + timedelta(days=days)).astimezone(UTC)"""


GREP = """tidewatch/forecast.py:53:    return (at.replace(tzinfo=None) - EPOCH).total_seconds() / 3600
tidewatch/forecast.py:80:    start = day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone)
tidewatch/forecast.py:88:    yield Extreme(turning.replace(tzinfo=zone), height(station, turning), before > 0)
tidewatch/feed.py:41:    return datetime.strptime(text, FORMAT).replace(tzinfo=ZoneInfo(station.zone))
tidewatch/feed.py:67:    gap = abs((bare(observation.at) - bare(extreme.at)).total_seconds())
tidewatch/render.py:22:    offset = extreme.at.utcoffset()
tidewatch/render.py:31:    return extreme.at.astimezone(zone).strftime("%H:%M")"""


def _failure(name: str, when: str, expected: list[str], got: list[str]) -> str:
    return f"""____________________________ {name} ____________________________

    def {name}() -> None:
        station = find("Aberhaven")
        found = list(predict(station, datetime({when})))
>       assert [f"{{item.at:%H:%M}}" for item in found if item.is_high] == {expected}
E       AssertionError: assert {got} == {expected}
E
E         At index 0 diff: {got[0]!r} != {expected[0]!r}
E
E         Full diff:
E           [
E         -     {expected[0]!r},
E         +     {got[0]!r},
E           ]

tests/test_forecast.py:{48 + len(name)}: AssertionError"""


TESTS_FAIL = "\n".join(
    [
        "........................F..F................                             [100%]",
        "=================================== FAILURES ===================================",
        _failure(
            "test_high_water_after_the_clocks_went_back",
            "2026, 10, 26",
            ["04:12", "16:38"],
            ["05:12", "17:38"],
        ),
        _failure(
            "test_the_day_of_the_change_has_twenty_five_hours",
            "2026, 10, 25",
            ["03:20", "15:47"],
            ["03:20", "16:47"],
        ),
        "=========================== short test summary info ============================",
        "FAILED tests/test_forecast.py::test_high_water_after_the_clocks_went_back",
        "FAILED tests/test_forecast.py::test_the_day_of_the_change_has_twenty_five_hours",
        "2 failed, 42 passed in 8.71s",
    ]
)
TESTS_PASS = "............................................          [100%]\n44 passed in 8.33s"

FIXED = """The forecast is right again. What was wrong: `predict` labelled a local midnight with the
station's zone and then added steps to it. Python adds to the clock on the wall, not to elapsed
time, so from the moment the clocks changed each step was an hour off. It now converts to UTC
once, steps there, and converts back for each result. All 44 tests pass, the two that failed
among them."""

TEST_OLD = "def test_the_day_of_the_change_has_twenty_five_hours() -> None:"
TEST_NEW = """def test_the_day_of_the_change_in_spring_has_twenty_three_hours() -> None:
    station = find("Aberhaven")
    found = list(predict(station, datetime(2026, 3, 29)))
    assert [f"{item.at:%H:%M}" for item in found if item.is_high] == ["10:04", "22:27"]
    assert all(item.at.hour != 1 for item in found), "between one and two no clock was running"


def test_the_day_of_the_change_has_twenty_five_hours() -> None:"""

BRIEF = """Search tidewatch/ for arithmetic on local times outside forecast.py: replace(tzinfo=…), adding a
timedelta to an aware datetime, comparing naive with aware times. Report each place with file,
line, and whether it is wrong around a change of clocks. Do not edit anything."""
SCOUTED = """Two places outside forecast.py:

- tidewatch/feed.py:41 labels a parsed local time with the station's zone. Wrong for the repeated
  hour in autumn, where the feed's own `fold` column is ignored.
- tidewatch/feed.py:67 strips both zones before subtracting, so an observation is matched with an
  extreme an hour away on the two days after a change.

render.py only converts for display and is right."""

FEED_OLD = """    gap = abs((bare(observation.at) - bare(extreme.at)).total_seconds())
    return gap"""
FEED_NEW = "    return abs((observation.at - extreme.at).total_seconds())"

LOG = "\n".join(
    f"2026-11-0{1 + place // 44} {place % 24:02}:{(place * 7) % 60:02}:11,{(place * 131) % 1000:03} INFO "
    f"tidewatch.feed: matched {60 + place % 37} of {96 + place % 5} observations for "
    f"{NAMES[place % len(NAMES)]}, mean residual {((place * 37) % 90 - 45) / 100:+.2f} m"
    for place in range(88)
)

SUMMARY = """This session is being continued from a previous conversation, of which this is a summary.

1. The request: the tide forecast was an hour off for European stations since the clocks went back;
   later, a test for the change in spring, and the same check for the harbour feed.
2. The cause: tidewatch/forecast.py stepped through local time. Python adds to the clock on the
   wall, so every step past the change was an hour off. `predict` now steps in UTC and converts each
   result back.
3. The feed: tidewatch/feed.py stripped both zones in `_gap` before subtracting. It now subtracts
   aware times. `parse_time` still ignores the feed's `fold` column, so the repeated hour in autumn
   is read as its first half; the user has not been asked about it yet.
4. Tests: tests/test_forecast.py has a new test for the day with twenty-three hours. 44 tests passed
   before it was added, all pass now.
5. Files changed: tidewatch/forecast.py, tidewatch/feed.py, tests/test_forecast.py. Nothing is
   committed."""

CHANGES = numbered(
    """
# Changes

## Unreleased

## 1.4.0
- Stations may have up to eight constituents.
- `tidewatch table --days` prints several days.

## 1.3.2
- Low water of neap tides is no longer skipped when the slope touches zero without changing its sign.
- The import logs how many observations were matched.

## 1.3.1
- Station names are found whatever their case.
"""
)
CALLERS = """tidewatch/cli.py:38:    for extreme in predict(station, options.day, options.days):
tidewatch/cli.py:61:    matches = merge(read(options.file), predict(station, options.day, 7))
tidewatch/render.py:17:def table(extremes: Iterable[Extreme]) -> str:
tests/test_cli.py:25:    expected = [f"{item.at:%H:%M}" for item in predict(find("Saltby"), DAY)]
tests/test_feed.py:33:    matches = merge(observations, predict(find("Brinsea"), DAY, 2))"""
ENTRY = """## Unreleased
- Forecasts are right on and after the days on which clocks change; they were an hour off until midnight.
- Observations are matched by elapsed time, so none is lost on those days.
"""
DEPENDS = """The entry is written. Two places relied on the old behaviour: `tidewatch/cli.py:61` asks for
seven days of extremes and used to get a window that was an hour short after a change, which
nobody noticed because of the 45 minutes of tolerance; and the residuals already stored for 25
and 26 October are off by the height of one hour. Import those two days again: `tidewatch import
--since 2026-10-25 --until 2026-10-27`. One thing is left for you to decide: the feed has a
`fold` column for the repeated hour, and `parse_time` ignores it."""
