"""What a device knows of its exchanges, on disk: in the project's control folder, out of agents' reach."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime

from sevenfold.core.errors import FileDamaged, FileMissing, WireError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.offload import run_blocking
from sevenfold.team.client.retry import RetryState
from sevenfold.team.client.state import PendingWrite, RefusedText, SyncState
from sevenfold.team.protocol import Checksum, Commit, CommitId, TeamChange, TeamEntry, TeamKey

SYNC_STATE_FILE = "state.json"
RETRY_FILE = "pace.json"
_MAX_STATE_BYTES = 32 * 1024 * 1024


class FolderLedger:
    """Whole or not at all. A damaged file is an error: guessing what it said would cost texts."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    async def read(self) -> SyncState:
        return await run_blocking(self.read_state)

    async def write(self, state: SyncState) -> None:
        await run_blocking(lambda: self._folder.replace(SYNC_STATE_FILE, write_json(_written(state))))

    def read_state(self) -> SyncState:
        """As it was written last. Blocks on the disk."""
        try:
            return _read(read_object(self._folder.read(SYNC_STATE_FILE, max_bytes=_MAX_STATE_BYTES)))
        except FileMissing:
            return SyncState(device=secrets.token_hex(16))
        except WireError as error:
            raise FileDamaged(
                f"{self._folder.path}/{SYNC_STATE_FILE} cannot be read: {error}; `sevenfold team "
                f"leave` and join "
                "again, by which no text is lost"
            ) from error

    def read_pace(self) -> RetryState:
        """One that cannot be read is as good as none: at worst it is tried once more."""
        try:
            return _pace(read_object(self._folder.read(RETRY_FILE, max_bytes=_MAX_STATE_BYTES)))
        except (FileMissing, WireError):
            return RetryState()

    def write_pace(self, pace: RetryState) -> None:
        self._folder.replace(
            RETRY_FILE,
            write_json(
                freeze_object(
                    {
                        "failures": [moment.isoformat() for moment in pace.failures],
                        "in_a_row": pace.in_a_row,
                        "not_before": pace.not_before.isoformat() if pace.not_before else None,
                        "refusal": pace.refusal,
                        "mark": pace.mark,
                    }
                )
            ),
        )


def _written(state: SyncState) -> JsonObject:
    pending, incoming = state.pending, state.incoming
    return freeze_object(
        {
            "device": state.device,
            "etag": state.etag,
            "remote": _entries(state.remote),
            "bases": _entries(state.bases),
            "incoming": None
            if incoming is None
            else {
                "mark": incoming.mark,
                "entries": _entries(incoming.entries),
                "doomed": dict(incoming.doomed),
            },
            "doomed": dict(state.doomed),
            "refused": {key: [one.checksum, one.reason] for key, one in state.refused.items()},
            "pending": None
            if pending is None
            else {
                "id": pending.id,
                "changes": [[one.key, one.expected, one.checksum] for one in pending.changes],
            },
        }
    )


def _entries(entries: Mapping[TeamKey, TeamEntry]) -> dict[str, list[int | str | None]]:
    return {key: [entry.version, entry.checksum] for key, entry in entries.items()}


def _read(value: JsonObject) -> SyncState:
    pending, incoming = value.get("pending"), value.get("incoming")
    return SyncState(
        device=_text(value.get("device")),
        etag=_text(value.get("etag")),
        remote=_read_entries(value.get("remote")),
        bases=_read_entries(value.get("bases")),
        incoming=_arrival(_object(incoming)) if incoming else None,
        doomed=_doomed(value.get("doomed")),
        refused={TeamKey(key): _refused(one) for key, one in _object(value.get("refused")).items()},
        pending=None if pending is None else _commit(_object(pending)),
    )


def _read_entries(value: Json) -> dict[TeamKey, TeamEntry]:
    return {TeamKey(key): _entry(one) for key, one in _object(value).items()}


def _arrival(value: JsonObject) -> PendingWrite:
    return PendingWrite(
        _text(value.get("mark")), _read_entries(value.get("entries")), _doomed(value.get("doomed"))
    )


def _doomed(value: Json) -> dict[TeamKey, Checksum]:
    return {TeamKey(key): Checksum(_text(one)) for key, one in _object(value).items()}


def _entry(value: Json) -> TeamEntry:
    version, checksum = _items(value, 2)
    return TeamEntry(_whole(version), None if checksum is None else Checksum(_text(checksum)))


def _refused(value: Json) -> RefusedText:
    checksum, reason = _items(value, 2)
    return RefusedText(Checksum(_text(checksum)), _text(reason))


def _commit(value: JsonObject) -> Commit:
    changes = value.get("changes")
    listed = changes if isinstance(changes, tuple) else ()
    return Commit(CommitId(_text(value.get("id"))), tuple(_change(one) for one in listed))


def _change(value: Json) -> TeamChange:
    key, expected, checksum = _items(value, 3)
    return TeamChange(
        TeamKey(_text(key)), _whole(expected), None if checksum is None else Checksum(_text(checksum))
    )


def _pace(value: JsonObject) -> RetryState:
    failures, not_before = value.get("failures"), value.get("not_before")
    return RetryState(
        failures=tuple(_moment(one) for one in failures) if isinstance(failures, tuple) else (),
        in_a_row=_whole(value.get("in_a_row")),
        not_before=None if not_before is None else _moment(not_before),
        refusal=_text(value.get("refusal")),
        mark=_text(value.get("mark")),
    )


def _moment(value: Json) -> datetime:
    try:
        found = datetime.fromisoformat(_text(value))
    except ValueError as error:
        raise WireError(f"{value!r:.80} is no time") from error
    if found.tzinfo is None:
        raise WireError(f"{value!r:.80} has no zone")
    return found


def _object(value: Json) -> JsonObject:
    if not isinstance(value, JsonObject):
        raise WireError(f"expected an object in {SYNC_STATE_FILE}, found {type(value).__name__}")
    return value


def _items(value: Json, count: int) -> tuple[Json, ...]:
    if not isinstance(value, tuple) or len(value) != count:
        raise WireError(f"expected a list of {count} in {SYNC_STATE_FILE}, found {value!r:.80}")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise WireError(f"expected a text in {SYNC_STATE_FILE}, found {value!r:.80}")
    return value


def _whole(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError(f"expected a number in {SYNC_STATE_FILE}, found {value!r:.80}")
    return value
