"""Where spending is stored, for all processes of a user together: the state under a mutex, and one ledger a
day.

Files:

    <home>/spend/spend.json                what the caps are checked against
                 ledger-YYYY-MM-DD.jsonl   one line a call: kind, model, session, tokens, dollars
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Self

from sevenfold.core.errors import FileMissing, InputError, StoreError
from sevenfold.core.events import Emit, SpendStateLost, ignore_event
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import Record, UnknownRecord, new_record_id
from sevenfold.store.transcript.transcript import Transcript

SPEND_FOLDER = "spend"
_STATE = "spend.json"
_MAX_STATE_BYTES = 1024 * 1024
LEDGER = "ledger-"
CHARGE = "charge"
"""What a line of the ledger is called, beside the records of a transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendCharge:
    """One call of the ledger."""

    at: datetime
    kind: str
    model: str
    session: str
    tokens: int
    read: int
    """Of the tokens, those that came out of the cache."""
    micro_usd: int | None
    """None: the price is not known."""


class SpendStore:
    """The folder of spending, open. Every method blocks on the disk."""

    def __init__(self, folder: Folder, *, emit: Emit = ignore_event) -> None:
        self._folder = folder
        self._emit = emit

    @classmethod
    def open(cls, home: Path, *, emit: Emit = ignore_event) -> Self:
        return cls(Folder.open(home / SPEND_FOLDER, create=True), emit=emit)

    def close(self) -> None:
        self._folder.close()

    @property
    def path(self) -> Path:
        return self._folder.path

    def read(self, now: datetime) -> JsonObject:
        """The state as it is, empty where there is none. A damaged file is set aside, which is an event."""
        try:
            return read_object(self._folder.read(_STATE, max_bytes=_MAX_STATE_BYTES))
        except FileMissing:
            return EMPTY_OBJECT
        except (InputError, StoreError) as error:
            aside = f"spend-{now:%Y%m%d%H%M%S}.damaged"
            self._folder.move(_STATE, aside)
            self._emit(SpendStateLost(f"{self._folder.path}/{aside}", str(error)))
            return EMPTY_OBJECT

    def change(self, now: datetime, change: Callable[[JsonObject], JsonObject]) -> None:
        """Read, change and replace the state with nobody else in between. If `change` raises, it stays."""
        with mutex(self._folder, SPEND_FOLDER):
            before = self.read(now)
            after = change(before)
            if after != before:
                self._folder.replace(_STATE, write_json(after))

    def append(self, charge: SpendCharge) -> None:
        """One line more, on the disk when this returns."""
        fields = {key: value for key, value in asdict(charge).items() if key != "at"}
        at = charge.at.astimezone(UTC)
        with Transcript.open(self._folder, f"{LEDGER}{at:%Y-%m-%d}", emit=self._emit) as ledger:
            ledger.append(Record(UnknownRecord(CHARGE, freeze_object(fields)), at, new_record_id()))

    def charges(self, since: date, until: date) -> Iterator[SpendCharge]:
        """Every call from one day to another, both included, oldest first."""
        day = since
        while day <= until:
            name = f"{LEDGER}{day:%Y-%m-%d}"
            if self._folder.entry(f"{name}.jsonl") is not None:
                for line in scan_transcript(self._folder, name):
                    if isinstance(line, StoredRecord) and (charge := _read_charge(line.record)) is not None:
                        yield charge
            day += timedelta(days=1)


def _read_charge(record: Record) -> SpendCharge | None:
    body = record.body
    if not isinstance(body, UnknownRecord) or body.kind != CHARGE or not isinstance(body.wire, JsonObject):
        return None
    wire = body.wire
    kind, model, session = wire.get("kind"), wire.get("model"), wire.get("session")
    tokens, read, usd = wire.get("tokens"), wire.get("read"), wire.get("micro_usd")
    if not (isinstance(kind, str) and isinstance(model, str) and isinstance(session, str)):
        return None
    if not (isinstance(tokens, int) and isinstance(read, int) and isinstance(usd, int | None)):
        return None
    return SpendCharge(
        at=record.at, kind=kind, model=model, session=session, tokens=tokens, read=read, micro_usd=usd
    )
