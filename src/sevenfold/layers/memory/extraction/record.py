"""How far a session was looked through, and what it is deciding on: `extraction.json` in its folder."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, WireError
from sevenfold.core.events import Emit, ExtractionSkipped, ignore_event
from sevenfold.core.json import Json, JsonObject, freeze, read_object, write_json
from sevenfold.layers.memory.extraction.topics import Topic
from sevenfold.store.files.folder import Folder

EXTRACTION_FILE = "extraction.json"
_MAX_RECORD_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    cursor: str = ""
    """The id of the last message that was looked at; empty: none was."""
    turns: int = 0
    """Since then."""
    topic: Topic = Topic()  # noqa: RUF009 - a value, and frozen


def read_extraction_record(session: Folder, name: str, emit: Emit = ignore_event) -> ExtractionRecord:
    """An empty one where there is none, or none that can be read: then all is looked at once more, and what
    is known already is refused as such."""
    try:
        return _read(read_object(session.read(EXTRACTION_FILE, max_bytes=_MAX_RECORD_BYTES)))
    except FileMissing:
        return ExtractionRecord()
    except (FileDamaged, NotRegular, WireError) as error:
        emit(ExtractionSkipped(name, f"how far it was looked through is lost: {error}"))
        return ExtractionRecord()


def write_extraction_record(session: Folder, record: ExtractionRecord) -> None:
    topic = record.topic
    wire = {
        "cursor": record.cursor,
        "turns": record.turns,
        "topic": {
            "opening": topic.opening,
            "key": topic.key,
            "statements": list(topic.statements),
            "recap": topic.recap,
            "is_amendment": topic.is_amendment,
            "earlier": list(topic.earlier),
        },
    }
    session.replace(EXTRACTION_FILE, write_json(freeze(wire)))


def _read(wire: JsonObject) -> ExtractionRecord:
    told, turns = wire.get("topic"), wire.get("turns")
    topic = told if isinstance(told, JsonObject) else JsonObject()
    return ExtractionRecord(
        _text(wire.get("cursor")),
        turns if isinstance(turns, int) and turns > 0 else 0,
        Topic(
            opening=_text(topic.get("opening")),
            key=_text(topic.get("key")),
            statements=_texts(topic.get("statements")),
            recap=_text(topic.get("recap")),
            is_amendment=topic.get("is_amendment") is True,
            earlier=_texts(topic.get("earlier")),
        ),
    )


def _text(wire: Json) -> str:
    return wire if isinstance(wire, str) else ""


def _texts(wire: Json) -> tuple[str, ...]:
    return tuple(item for item in wire if isinstance(item, str)) if isinstance(wire, tuple) else ()
