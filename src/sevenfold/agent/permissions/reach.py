"""How far a call may reach without anybody being asked: folders to read in, and folders to edit in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.agent.tool import AccessRequest
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.messages import ToolUse
from sevenfold.store.files.user_files import resolve_path

PermissionDecision: TypeAlias = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class PermissionVerdict:
    decision: PermissionDecision
    reason: str
    """For the model where it is denied, for a person where they are asked."""
    paths: tuple[str, ...] = ()
    """What was judged, links followed: a tool opens these and nothing else."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Folders, wherever links lead when it is made. What may be edited may be read."""

    read: tuple[Path, ...] = ()
    edit: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        # Calls are judged by real paths, and many a home folder is reached by a link.
        object.__setattr__(self, "read", tuple(Path(resolve_path(str(folder))) for folder in self.read))
        object.__setattr__(self, "edit", tuple(Path(resolve_path(str(folder))) for folder in self.edit))

    def may_read(self, real: str) -> bool:
        return any(Path(real).is_relative_to(folder) for folder in (*self.read, *self.edit))

    def may_edit(self, real: str) -> bool:
        # The folder itself is no file in it.
        return any(folder in Path(real).parents for folder in self.edit)

    def denial(self, need: AccessRequest, real: tuple[str, ...]) -> str | None:
        """Why a call is out of reach; None when it is not. `real` are the need's paths, links followed."""
        match need.kind:
            case "nothing":
                return None
            case "read":
                return _beyond(real, self.may_read, "read", (*self.read, *self.edit))
            case "edit":
                return _beyond(real, self.may_edit, "edited", self.edit)
            case "run" if need.profile == "read-only":
                return None
            case _:
                return f"a call that may {_ACTS[need.kind]} is not allowed here; go on without it"


class ForkGuard:
    """The guard of a fork or a writer: nobody is asked, and what is out of reach is denied."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach

    async def admit(self, _use: ToolUse, need: AccessRequest) -> PermissionVerdict:
        try:
            real = real_paths(need)
        except SevenfoldError as error:
            return PermissionVerdict("deny", str(error))
        reason = self.reach.denial(need, real)
        return (
            PermissionVerdict("allow", "", real)
            if reason is None
            else PermissionVerdict("deny", reason, real)
        )


def real_paths(need: AccessRequest) -> tuple[str, ...]:
    """The need's paths with every link followed, as of now."""
    return tuple(resolve_path(path) for path in need.paths)


_ACTS = {
    "run": "run a command that nothing holds",
    "fetch": "use the network",
    "message": "write to other agents",
    "spawn": "start an agent",
    "outside": "do anything (it is a tool of somebody else's)",
}


def _beyond(
    real: tuple[str, ...], may: Callable[[str], bool], done: str, folders: tuple[Path, ...]
) -> str | None:
    named = ", ".join(map(str, folders)) or "no folder"
    if not real:
        return f"it does not say what would be {done}; name a path"
    beyond = next((path for path in real if not may(path)), None)
    return None if beyond is None else f"{beyond} may not be {done} here, only what lies in {named}"
