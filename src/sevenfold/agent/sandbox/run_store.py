"""Records of running sandboxed commands: which guarded names a project had when the command started.

Files that the command adds to those, and that programs would obey, are moved aside even if the agent was
killed meanwhile. Records lie where no command can write.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from sevenfold.agent.sandbox.folders import LinkTarget, MovedFile, move_aside
from sevenfold.core.errors import FileDamaged, FileMissing, LockBusy, StoreError, WireError
from sevenfold.core.events import Emit, GuardedLeft, GuardedMoved, SweepFailed
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex

SANDBOX_RUNS_FOLDER = "held"
_SUFFIX = ".json"
MAX_NOTE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxRunRecord:
    """One command's, until it has ended and what it made is moved aside."""

    folder: Folder
    name: str
    held: ExitStack

    def close(self, emit: Emit, *, is_clean: bool) -> None:
        """Strike it out; where something could not be moved it stays, for the next start to try again."""
        with self.held:
            try:
                if is_clean:
                    _remove(self.folder, self.name)
            except StoreError as error:
                emit(SweepFailed(str(self.folder.path), str(error)))


class SandboxRunStore:
    """The sandboxed commands of one project that run now, in its control folder."""

    def __init__(self, control: Folder) -> None:
        self._control = control

    def note(self, root: Path, known: Mapping[str, LinkTarget | None]) -> SandboxRunRecord:
        """For a command that starts now. Blocks on the disk."""
        name = uuid4().hex
        with ExitStack() as held:
            folder = held.enter_context(self._control.subfolder(SANDBOX_RUNS_FOLDER))
            # In this order: a record whose lock nobody holds is taken for that of a dead process.
            held.enter_context(mutex(folder, name))
            folder.replace(f"{name}{_SUFFIX}", _write(root, known))
            return SandboxRunRecord(folder, name, held.pop_all())

    def sweep(self, emit: Emit) -> None:
        """Move aside what commands of killed processes made, and report it. What cannot be moved is
        reported, and tried again the next time. Blocks on the disk."""
        try:
            folder = self._control.subfolder(SANDBOX_RUNS_FOLDER, create=False)
        except FileMissing:
            return
        with folder:
            for key in folder.names():
                name = key.removesuffix(_SUFFIX)
                if name == key:
                    continue
                with suppress(LockBusy), mutex(folder, name, wait=timedelta()):
                    self._settle(folder, name, emit)

    def _settle(self, folder: Folder, name: str, emit: Emit) -> None:
        try:
            wire = read_object(folder.read(f"{name}{_SUFFIX}", max_bytes=MAX_NOTE_BYTES))
        except FileMissing:
            return  # its command ended meanwhile
        except (FileDamaged, WireError) as error:
            emit(GuardedLeft(str(folder.path / f"{name}{_SUFFIX}"), str(error)))
            return
        root = Path(str(wire.get("root", "")))
        moved = list(move_aside(root, _read_known(wire.get("known")))) if root.is_dir() else []
        for item in moved:
            report_moved(item, emit)
        if not any(item.failure for item in moved):
            _remove(folder, name)


def report_moved(moved: MovedFile, emit: Emit) -> None:
    if moved.failure:
        emit(GuardedLeft(moved.path, moved.failure))
    else:
        emit(GuardedMoved(moved.path, moved.moved_to))


def _remove(folder: Folder, name: str) -> None:
    """Before the lock is let go of: whoever waits for it finds that its file is gone."""
    folder.remove(f"{name}{_SUFFIX}")
    folder.remove(f"{name}.mutex")


def _write(root: Path, known: Mapping[str, LinkTarget | None]) -> bytes:
    links = {
        name: None if link is None else {"text": link.text, "device": link.device, "inode": link.inode}
        for name, link in known.items()
    }
    return write_json(freeze_object({"root": str(root), "known": links}))


def _read_known(wire: Json) -> dict[str, LinkTarget | None]:
    return {name: _read_run_link(link) for name, link in wire.items()} if isinstance(wire, JsonObject) else {}


def _read_run_link(wire: Json) -> LinkTarget | None:
    if not isinstance(wire, JsonObject):
        return None
    device, inode = wire.get("device"), wire.get("inode")
    return LinkTarget(
        str(wire.get("text", "")),
        device if isinstance(device, int) else 0,
        inode if isinstance(inode, int) else 0,
    )
