"""Events of the disk. Import them from `core.events`."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.messages import ToolUseId


@dataclass(frozen=True, slots=True)
class EventsLost:
    """A session's events cannot be written down: `stats` and `doctor` will not know of them. Told once."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class InstructionSkipped:
    """An instruction file, or one that it imports, is not read."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseReclaimed:
    """A holder died or overstayed, and its lock was taken over."""

    lock: str
    previous_token: int
    token: int
    reason: str


@dataclass(frozen=True, slots=True)
class LineQuarantined:
    """A transcript line failed its check: left in place, never read as a record."""

    transcript: str
    offset: int
    length_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class LockFaceFailed:
    """A lock is held, or was let go, and the file that shows it to other programs could not be written."""

    lock: str
    reason: str


@dataclass(frozen=True, slots=True)
class LockRebuilt:
    """A lock's record could not be read and was started again, above any token it can have held."""

    lock: str
    token: int
    reason: str


@dataclass(frozen=True, slots=True)
class MailQuarantined:
    """A message in a mailbox could not be trusted: moved aside, not shown to the agent."""

    mailbox: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResultSpilled:
    """A tool result went to disk and a preview stands in for it."""

    tool_use_id: ToolUseId
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SettingRefused:
    """A setting was ignored: its source may not make it, nobody has agreed to the file of the repository that
    makes it, or it cannot be used and may not stop us."""

    source: str
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckpointFailed:
    """What a file held before an edit could not be stored: the edit was made, and cannot be taken back."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class SpillFailed:
    """A tool result could not be stored, so it stays in the context whole."""

    tool_use_id: ToolUseId
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class SweepFailed:
    """Half-made files of writers that died could not be looked for; the project is open all the same."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class TailSealed:
    """A writer died in mid-line; the fragment was closed off so that it spoils nothing after it."""

    transcript: str
    offset: int


@dataclass(frozen=True, slots=True)
class TempSwept:
    """Half-made files of writers that died were removed."""

    folder: str
    count: int


@dataclass(frozen=True, slots=True)
class TranscriptFailed:
    """Records could not be written: the session goes on, they are tried again, and until then a crash would
    lose them."""

    transcript: str
    waiting: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorktreeDisowned:
    """A worktree names a repository that does not name it back, so it counts as a project of its own."""

    worktree: str
    claimed: str
