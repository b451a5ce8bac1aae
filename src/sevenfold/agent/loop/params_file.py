"""A session's frame on disk, so that a resumed session sends the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, WireError
from sevenfold.core.events import Emit, FrameLost, ignore_event
from sevenfold.core.json import JsonObject, freeze_object, read_object, write_json
from sevenfold.core.requests import RequestParams
from sevenfold.store.files.folder import Folder

PARAMS_FILE = "frame.json"
MAX_PARAMS_BYTES = 8 * 1024 * 1024

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class StoredParams:
    frame: RequestParams
    surrounds: str = ""
    """What the model was last told about where it works."""


def write_stored_params(folder: Folder, stored: StoredParams) -> None:
    frame = stored.frame
    folder.replace(
        PARAMS_FILE,
        write_json(
            freeze_object(
                {
                    "model": frame.model,
                    "max_tokens": frame.max_tokens,
                    "system": frame.system,
                    "tools": frame.tools,
                    "params": frame.params,
                    "betas": frame.betas,
                    "surrounds": stored.surrounds,
                }
            )
        ),
    )


def read_stored_params(folder: Folder, emit: Emit = ignore_event) -> StoredParams | None:
    """None where there is none, or none that can be used: then it is made anew, which costs the cache."""
    try:
        return _read(read_object(folder.read(PARAMS_FILE, max_bytes=MAX_PARAMS_BYTES)))
    except FileMissing:
        return None
    except (FileDamaged, NotRegular, WireError) as error:
        emit(FrameLost(f"{folder.path}/{PARAMS_FILE}", str(error)))
        return None


def _read(wire: JsonObject) -> StoredParams:
    model, most = wire.get("model"), wire.get("max_tokens")
    system, params = wire.get("system"), wire.get("params")
    if not isinstance(model, str) or type(most) is not int or not isinstance(params, JsonObject):
        raise WireError("a stored frame needs a model, max_tokens and params")
    surrounds = wire.get("surrounds")
    frame = RequestParams(
        model=model,
        max_tokens=most,
        system=system if isinstance(system, str) else _all(wire, "system", JsonObject),
        tools=_all(wire, "tools", JsonObject),
        params=params,
        betas=_all(wire, "betas", str),
    )
    return StoredParams(frame, surrounds if isinstance(surrounds, str) else "")


def _all(wire: JsonObject, key: str, kind: type[_Kind]) -> tuple[_Kind, ...]:
    """A list of which each is of that kind: half a frame would be sent as if it were the whole."""
    value = wire.get(key)
    found = [item for item in value if isinstance(item, kind)] if isinstance(value, tuple) else []
    if not isinstance(value, tuple) or len(found) < len(value):
        raise WireError(f"{key} of a stored frame is damaged; expected a list of {kind.__name__}")
    return tuple(found)
