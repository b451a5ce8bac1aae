"""Fields of a JSON object that a model filled in: an `InputError` says what was expected."""

from __future__ import annotations

from collections.abc import Mapping

from sevenfold.core.errors import InputError
from sevenfold.core.json import Json, JsonObject, freeze_object


def object_schema(properties: Mapping[str, object], required: tuple[str, ...] = ()) -> JsonObject:
    """The schema of an input that is an object with these properties and no others."""
    return freeze_object(
        {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        }
    )


def get_string(given: JsonObject, key: str, default: str | None = None) -> str:
    """A string; required where there is no default."""
    value = given.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise InputError(f"{key} is {_said(value)}; expected text")
    return value


def get_integer(given: JsonObject, key: str, default: int, *, at_least: int, at_most: int = 10**9) -> int:
    """A whole number. Models also write one as text."""
    value = given.get(key)
    if value is None:
        return default
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        raise InputError(f"{key} is {_said(value)}; expected a whole number from {at_least:,} to {at_most:,}")
    return value


def get_flag(given: JsonObject, key: str) -> bool:
    """True or false; false where it is left out."""
    value = given.get(key)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{key} is {_said(value)}; expected true or false")
    return bool(value)


def get_choice(given: JsonObject, key: str, words: tuple[str, ...], default: str | None = None) -> str:
    """One word of a few."""
    value = get_string(given, key, default)
    if value not in words:
        raise InputError(f"{key} is {_said(value)}; expected one of {', '.join(words)}")
    return value


def _said(value: Json) -> str:
    return "missing" if value is None else f"{value!r:.80}"
