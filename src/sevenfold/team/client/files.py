"""The team's folder: the shared part of a project's memory, through the one door that memories have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sevenfold.core.errors import FileMissing, MemoryConflict
from sevenfold.core.memories import TEAM_PREFIX
from sevenfold.core.provenance import Origin
from sevenfold.core.team_keys import is_team_key
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.memory.changes import Remove, StoredMemory, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.team.client.ports import FileChange
from sevenfold.team.client.state import LocalText
from sevenfold.team.protocol import MAX_TEAM_FILE_BYTES, Checksum, TeamKey, compute_checksum

_PREFIX = "sha256:"
NOT_UTF8 = "it is no plain UTF-8 text; save it as such"
BAD_NAME = "its name is none that every system can have; use a-z, 0-9, '_' and '-'"
_TOO_LARGE = f"it is larger than {MAX_TEAM_FILE_BYTES:,} bytes; split it"
_WAITS = "it was edited past the engine; accept or reject that with `sevenfold memory review`"


class TeamFiles:
    """What is under `team/`. What it receives is told apart from what was written here: it is tainted."""

    def __init__(self, memory: MemoryDir) -> None:
        self._memory = memory

    async def scan(self) -> Mapping[TeamKey, LocalText]:
        return await run_blocking(self.read_all)

    async def body(self, checksum: Checksum) -> str | None:
        try:
            return await run_blocking(lambda: self._memory.body(checksum.removeprefix(_PREFIX)))
        except FileMissing:
            return None

    async def write(self, changes: Sequence[FileChange], mark: str) -> bool:
        try:
            await run_blocking(lambda: self._commit(changes, mark))
        except MemoryConflict:
            return False
        return True

    async def was_written(self, mark: str) -> bool:
        why = _received(mark)
        log = await run_blocking(lambda: self._memory.log(limit=None))
        return any(one.origin.who == "sync" and one.origin.why == why for one in log)

    def read_all(self) -> dict[TeamKey, LocalText]:
        """Every file of it. Blocks on the disk."""
        found = {
            TeamKey(key.removeprefix(TEAM_PREFIX)): _local(stored)
            for key in self._memory.keys(TEAM_PREFIX)
            if (stored := self._memory.find(key)) is not None
        }
        for waiting in self._memory.waiting():
            for change in waiting.changes:
                if change.key.startswith(TEAM_PREFIX):
                    key = TeamKey(change.key.removeprefix(TEAM_PREFIX))
                    text = found[key].text if key in found else ""
                    found[key] = LocalText(text, compute_checksum(text), _WAITS)
        return found

    def _commit(self, changes: Sequence[FileChange], mark: str) -> None:
        """A text that was here under another name is still its writer's; every other one is the team's."""
        known = {
            one.sha256: one.origin for one in map(self._memory.find, self._memory.keys(TEAM_PREFIX)) if one
        }
        received = Origin(who="sync", why=_received(mark), taint=frozenset({"team"}))
        self._memory.commit([_change(change, known) for change in changes], received)


def _received(mark: str) -> str:
    return f"received from the team (exchange {mark})"


def _local(stored: StoredMemory) -> LocalText:
    text, checksum = stored.memory.text, Checksum(f"{_PREFIX}{stored.sha256}")
    return LocalText(text, checksum, _hold(stored, text, checksum))


def _hold(stored: StoredMemory, text: str, checksum: Checksum) -> str:
    if not is_team_key(stored.memory.key.removeprefix(TEAM_PREFIX)):
        return BAD_NAME
    if compute_checksum(text) != checksum:
        return NOT_UTF8
    return _TOO_LARGE if len(text.encode()) > MAX_TEAM_FILE_BYTES else ""


def _change(change: FileChange, known: Mapping[str, Origin]) -> Write | Remove:
    key, base = f"{TEAM_PREFIX}{change.key}", change.before and change.before.removeprefix(_PREFIX)
    if change.text is None:
        assert base is not None, f"{key} is not there, and cannot be removed"
        return Remove(key, base)
    sha256 = compute_checksum(change.text).removeprefix(_PREFIX)
    return Write(key, change.text, base, known.get(sha256))
