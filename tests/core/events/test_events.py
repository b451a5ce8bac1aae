from __future__ import annotations

import inspect
import json
import re
from dataclasses import FrozenInstanceError, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import cast

import pytest

from sevenfold.core import events
from sevenfold.core.events import EVENT_TYPES, Event, describe_event, ignore_event

IRREGULAR = frozenset(
    {
        "Broken",
        "Cut",
        "Found",
        "Held",
        "Kept",
        "Known",
        "Left",
        "Lost",
        "Rebuilt",
        "Sent",
        "Shown",
        "Swept",
        "Taken",
        "Unknown",
    }
)
"""Past participles that do not end in -ed."""

every_event = pytest.mark.parametrize("event", EVENT_TYPES, ids=lambda event: event.__name__)
EXAMPLES = {
    "str": "text",
    "int": 7,
    "ToolUseId": "toolu_1",
    "bool": True,
    "float": 0.5,
    "MemoryUseKind": "shown",
}


def example(event: type[Event]) -> Event:
    """The event with a plausible value in each field, by the field's declared type."""
    values = {field.name: EXAMPLES[str(field.type).partition(" |")[0]] for field in fields(event)}
    return event(**values)  # pyright: ignore[reportArgumentType]


def test_the_union_is_closed_over_every_event_of_the_modules() -> None:
    modules = [import_module(f"{events.__name__}.{one.name}") for one in iter_modules(events.__path__)]
    declared = {
        thing
        for module in modules
        for _, thing in inspect.getmembers(module, inspect.isclass)
        if thing.__module__ == module.__name__
    }
    assert set(EVENT_TYPES) == declared
    # What the type checker reads is not what runs: a module is loaded when its first event is asked for.
    source = Path(str(events.__file__)).read_text("utf-8")
    union = source[source.index("Event: TypeAlias = (") :].partition(")")[0]
    assert re.findall(r"\b[A-Z]\w+$", union, re.MULTILINE) == [event.__name__ for event in EVENT_TYPES]


def test_an_unknown_event_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchEvent"):
        getattr(events, "NoSuchEvent")  # noqa: B009 - the checker knows that there is none
    assert {"MemoryChanged", "EVENT_TYPES", "Emit"} <= set(dir(events))


def test_events_stand_in_alphabetical_order() -> None:
    assert [event.__name__ for event in EVENT_TYPES] == sorted(event.__name__ for event in EVENT_TYPES)


@every_event
def test_an_event_is_named_in_the_past_tense(event: type[Event]) -> None:
    last = re.findall(r"[A-Z][a-z]+", event.__name__)[-1]
    assert last.endswith("ed") or last in IRREGULAR


@every_event
def test_an_event_says_what_it_means(event: type[Event]) -> None:
    assert (event.__doc__ or "").strip().endswith(".")
    assert fields(event), "an event that tells nothing helps nobody act"


@every_event
def test_an_event_is_a_frozen_value(event: type[Event]) -> None:
    one = example(event)
    assert is_dataclass(event)
    assert not hasattr(one, "__dict__")
    assert len({one, example(event)}) == 1
    with pytest.raises(FrozenInstanceError):
        setattr(one, fields(event)[0].name, None)


@every_event
def test_an_event_is_described_as_plain_data(event: type[Event]) -> None:
    told = describe_event(example(event))
    assert list(told) == ["event", *(field.name for field in fields(event))]
    assert told["event"] == event.__name__
    assert cast("dict[str, str | int]", json.loads(json.dumps(told))) == told


def test_ignoring_an_event_leaves_it_alone() -> None:
    event = example(EVENT_TYPES[0])
    ignore_event(event)
    assert event == example(EVENT_TYPES[0])
