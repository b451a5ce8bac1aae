"""Faults on demand: error responses, broken streams, dropped connections, slow tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.simulator.wire.error_response import ERROR_TYPES, ErrorResponse

FAULT_MESSAGE = "Simulated fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFault:
    """The request is refused before anything is done for it."""

    status: int
    message: str = FAULT_MESSAGE
    code: str | None = None
    retry_after: timedelta | None = None
    should_retry: bool | None = None

    @property
    def problem(self) -> ErrorResponse:
        return ErrorResponse(
            status=self.status,
            message=self.message,
            code=self.code,
            details=EMPTY_OBJECT,
            retry_after=self.retry_after,
            should_retry=self.should_retry,
        )


@dataclass(frozen=True, slots=True)
class StreamFault:
    """A stream ends in an `error` event; the request was served, and is billed and cached.

    A request that does not stream is refused with the status instead, before anything is done for it.
    """

    after_events: int = 3
    status: int = 529
    """The status whose error type the event carries; the answer itself began as a 200."""
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class DropFault:
    """The connection closes in mid-answer: in a stream after some events, else halfway through the body."""

    after_events: int = 0


@dataclass(frozen=True, slots=True)
class SlowFault:
    """Real time passes: before the answer begins, and before each event of a stream."""

    first: timedelta = timedelta()
    each: timedelta = timedelta()


SimulatedFault: TypeAlias = StatusFault | StreamFault | DropFault | SlowFault


def find_first_delay(fault: SimulatedFault | None) -> timedelta:
    """Real time before the answer begins: until then nobody can read what its request writes to the cache."""
    return fault.first if isinstance(fault, SlowFault) else timedelta()


class FaultPlan:
    """Faults waiting for a request: each is met so many times, in the order they were planned."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[SimulatedFault] = deque()

    def add(self, fault: SimulatedFault, times: int = 1) -> None:
        if times < 1:
            raise InputError(f"a fault that happens {times} times is none; give 1 or more")
        self._waiting.extend([fault] * times)

    def take(self) -> SimulatedFault | None:
        """The fault that the next request meets."""
        return self._waiting.popleft() if self._waiting else None

    def put_back(self, fault: SimulatedFault) -> None:
        """The request that took it could not meet it: the next one will."""
        self._waiting.appendleft(fault)

    def clear(self) -> None:
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[SimulatedFault]:
        return iter(tuple(self._waiting))


def parse_simulated_fault(wire: JsonObject) -> SimulatedFault:
    """A fault from the JSON of the control endpoint: its `fault` names the kind, a status alone is enough."""
    kind = wire.get("fault", "status")
    match kind:
        case "status":
            status = _count(wire, "status", 500)
            if status not in ERROR_TYPES:
                raise InputError(
                    f"the API never answers with status {status}; use one of {sorted(ERROR_TYPES)}"
                )
            return StatusFault(
                status=status,
                message=_text(wire, "message") or FAULT_MESSAGE,
                code=_text(wire, "code"),
                retry_after=_seconds(wire, "retry_after"),
                should_retry=_switch(wire, "should_retry"),
            )
        case "stream_error":
            return StreamFault(
                _count(wire, "after_events", 3),
                _count(wire, "status", 529),
                _text(wire, "message") or "Overloaded",
            )
        case "drop":
            return DropFault(_count(wire, "after_events", 0))
        case "slow":
            return SlowFault(_seconds(wire, "first") or timedelta(), _seconds(wire, "each") or timedelta())
        case _:
            raise InputError(f"fault {kind!r} is unknown; expected status, stream_error, drop or slow")


def _count(wire: JsonObject, key: str, default: int) -> int:
    value = wire.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{key} must be a whole number of 0 or more, not {value!r}")
    return value


def _seconds(wire: JsonObject, key: str) -> timedelta | None:
    value: Json = wire.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 86_400:
        raise InputError(f"{key} must be seconds from 0 to 86400, not {value!r}")
    return timedelta(seconds=value)


def _text(wire: JsonObject, key: str) -> str | None:
    value = wire.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{key} must be text, not {value!r}")
    return value


def _switch(wire: JsonObject, key: str) -> bool | None:
    value = wire.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{key} must be true or false, not {value!r}")
    return value
