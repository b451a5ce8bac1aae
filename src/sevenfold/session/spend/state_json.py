"""The state of spending as JSON, and back. What makes no sense is an `InputError`."""

from __future__ import annotations

from datetime import datetime

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, freeze_object
from sevenfold.session.spend.budget import Expense, SpendHold, SpendState, Strikes


def write_spend_state(state: SpendState) -> JsonObject:
    return freeze_object(
        {
            "slots": {str(slot): _write_expense(each) for slot, each in sorted(state.slots.items())},
            "held": [
                {
                    "id": hold.id,
                    "kind": hold.kind,
                    "until": hold.until.isoformat(),
                    **_write_expense(hold.expense),
                }
                for hold in state.held
            ],
            "strikes": {
                kind: {"count": each.count, "until": each.until.isoformat(), "reason": each.reason}
                for kind, each in sorted(state.strikes.items())
            },
            "stopped": state.stopped,
        }
    )


def read_spend_state(wire: JsonObject) -> SpendState:
    held = wire.get("held", ())
    if not isinstance(held, tuple):
        raise WireError(f"the list of what is held is {held!r}; expected a list")
    return SpendState(
        {_slot(key): _read_expense(each) for key, each in _object(wire.get("slots")).items()},
        tuple(_read_hold(_object(each)) for each in held),
        {kind: _read_strikes(_object(each)) for kind, each in _object(wire.get("strikes")).items()},
        _text(wire, "stopped") if "stopped" in wire else "",
    )


def _write_expense(expense: Expense) -> dict[str, int]:
    return {"tokens": expense.tokens, "micro_usd": expense.micro_usd}


def _read_expense(wire: Json) -> Expense:
    found = _object(wire)
    return Expense(_whole(found, "tokens"), _whole(found, "micro_usd"))


def _read_hold(wire: JsonObject) -> SpendHold:
    return SpendHold(_text(wire, "id"), _text(wire, "kind"), _read_expense(wire), _time(wire, "until"))


def _read_strikes(wire: JsonObject) -> Strikes:
    return Strikes(_whole(wire, "count"), _time(wire, "until"), _text(wire, "reason"))


def _slot(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise WireError(f"{text!r} is no slot of time")
    return int(text)


def _object(wire: Json) -> JsonObject:
    if wire is None:
        return JsonObject({})
    if not isinstance(wire, JsonObject):
        raise WireError(f"{wire!r} is no object")
    return wire


def _text(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise WireError(f"{key} is {value!r}; expected text")
    return value


def _whole(wire: JsonObject, key: str) -> int:
    value = wire.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise WireError(f"{key} is {value!r}; expected a whole number")
    return value


def _time(wire: JsonObject, key: str) -> datetime:
    text = _text(wire, key)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise WireError(f"{key} is {text!r}; expected a time") from error
    if found.tzinfo is None:
        raise WireError(f"{key} is {text!r}, without its zone")
    return found
