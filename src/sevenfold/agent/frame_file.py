"""A session's frame on disk, so that a session that is taken up again sends the same bytes (SPEC J1)."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, WireError
from sevenfold.core.events import Emit, FrameLost, ignore
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.requests import Frame
from sevenfold.store.folder import Folder

NAME = "frame.json"
MAX_FRAME_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredFrame:
    frame: Frame
    surrounds: str = ""
    """What the model was last told about where it works."""


def write_frame(folder: Folder, stored: StoredFrame) -> None:
    frame = stored.frame
    folder.replace(
        NAME,
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


def read_frame(folder: Folder, emit: Emit = ignore) -> StoredFrame | None:
    """None where there is none, or none that can be used: then it is made anew, which costs the cache."""
    try:
        return _read(read_object(folder.read(NAME, max_bytes=MAX_FRAME_BYTES)))
    except FileMissing:
        return None
    except (FileDamaged, NotRegular, WireError) as error:
        emit(FrameLost(f"{folder.path}/{NAME}", str(error)))
        return None


def _read(wire: JsonObject) -> StoredFrame:
    model, most = wire.get("model"), wire.get("max_tokens")
    system, params = wire.get("system"), wire.get("params")
    if not isinstance(model, str) or not isinstance(most, int) or not isinstance(params, JsonObject):
        raise WireError("a stored frame needs a model, max_tokens and params")
    surrounds = wire.get("surrounds")
    frame = Frame(
        model,
        most,
        system if isinstance(system, str) else _objects(system),
        _objects(wire.get("tools")),
        params,
        tuple(beta for beta in _items(wire.get("betas")) if isinstance(beta, str)),
    )
    return StoredFrame(frame, surrounds if isinstance(surrounds, str) else "")


def _objects(value: Json) -> tuple[JsonObject, ...]:
    return tuple(item for item in _items(value) if isinstance(item, JsonObject))


def _items(value: Json) -> tuple[Json, ...]:
    return value if isinstance(value, tuple) else ()
