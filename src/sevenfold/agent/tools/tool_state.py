"""State that a tool keeps for a session outside its history, which a compaction cuts: small files in the
session's folder, available again when the session is resumed or branched.
"""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import Emit, ToolStateLost
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.core.tool_context import ToolContext
from sevenfold.store.files.folder import Folder

PLAN_FILE = "plan.md"
TODO_FILE = "todo.json"
SKILLS_FILE = "skills.json"

_MAX_BYTES = 1024 * 1024
"""Far more than a plan, a list or some names take."""


@dataclass(slots=True)
class ToolState:
    """One such file, in JSON. What cannot be read or written is reported, and lost."""

    name: str
    place: ToolContext | None = None
    """None, or one without a folder: nothing is kept."""

    def read(self) -> JsonObject | None:
        if self.place is None or self.place.session_folder is None:
            return None
        try:
            with Folder.open(self.place.session_folder) as folder:
                return read_object(folder.read(self.name, max_bytes=_MAX_BYTES))
        except FileMissing:
            return None
        except SevenfoldError as error:
            self.lose(str(error))
            return None

    def write(self, state: JsonObject) -> None:
        if self.place is None or self.place.session_folder is None:
            return
        try:
            with Folder.open(self.place.session_folder) as folder:
                folder.replace(self.name, write_json(state))
        except SevenfoldError as error:
            self.lose(str(error))

    def lose(self, reason: str) -> None:
        if self.place is not None:
            self.place.emit(ToolStateLost(self.name, reason))


def copy_tool_state(parent: Folder, child: Folder, emit: Emit) -> None:
    """Give a session that branches off what the tools of the other had kept."""
    for name in (PLAN_FILE, TODO_FILE, SKILLS_FILE):
        try:
            child.replace(name, parent.read(name, max_bytes=_MAX_BYTES))
        except FileMissing:
            continue
        except SevenfoldError as error:
            emit(ToolStateLost(name, str(error)))
