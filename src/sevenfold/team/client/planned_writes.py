"""What is to be written into the files for a step of the plan: the server's text, both in one, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sevenfold.core.text.three_way_merge import merge_lines
from sevenfold.team.client.conflicts import choose_copy_key
from sevenfold.team.client.ports import FileChange, LocalFiles
from sevenfold.team.client.state import LocalText
from sevenfold.team.client.sync_policy import MergeTexts, PullText, RemoveFile
from sevenfold.team.protocol import MAX_TEAM_FILE_BYTES, TeamEntry, TeamKey, compute_checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """What is to be written for one key, and what both ends will then have agreed on."""

    key: TeamKey
    entry: TeamEntry
    changes: tuple[FileChange, ...]
    is_merged: bool = False
    copy: TeamKey | None = None
    kept: str = ""


async def prepare_write(
    files: LocalFiles,
    here: Mapping[TeamKey, LocalText],
    key: TeamKey,
    step: PullText | RemoveFile | MergeTexts,
    text: str | None,
    base: TeamEntry | None,
) -> PlannedWrite:
    """`text` is the server's, if it has one."""
    mine = here.get(key)
    before = mine.checksum if mine else None
    if not isinstance(step, MergeTexts) or mine is None or text is None:
        kept = step.kept if isinstance(step, PullText) else None
        return PlannedWrite(
            key=key, entry=step.entry, changes=(FileChange(key, before, text),), kept=kept or ""
        )
    merged = await _merged(files, step, base, mine.text, text)
    if merged is not None:
        kept = "lost by the server, kept here" if step.is_older else ""
        return PlannedWrite(
            key=key, entry=step.entry, changes=(FileChange(key, before, merged),), is_merged=True, kept=kept
        )
    copy = choose_copy_key(key, mine.checksum, here)
    there = here.get(copy)
    both = (FileChange(copy, there.checksum if there else None, mine.text), FileChange(key, before, text))
    return PlannedWrite(key=key, entry=step.entry, changes=both, copy=copy)


async def _merged(
    files: LocalFiles, meet: MergeTexts, base: TeamEntry | None, ours: str, theirs: str
) -> str | None:
    """Both in one text; None where nobody can tell how."""
    if meet.is_older:
        # What was here once has been replaced since, and is not news. Anything else is somebody's.
        return ours if await files.body(compute_checksum(theirs)) is not None else None
    old = await files.body(base.checksum) if base and base.checksum else None
    merged = merge_lines(old, ours, theirs) if old is not None else None
    # Two texts that fit may be one that does not, and could never be sent.
    return merged if merged is None or len(merged.encode()) <= MAX_TEAM_FILE_BYTES else None


def choose_compatible(drafts: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """Without those that want another text in a file than one before them; their turn comes.

    Somebody who wrote the same as we did may have sent the same copy: then both want the same text there.
    """
    wanted: dict[TeamKey, str | None] = {}
    fitting: list[PlannedWrite] = []
    for draft in drafts:
        if all(wanted.get(change.key, change.text) == change.text for change in draft.changes):
            wanted |= {change.key: change.text for change in draft.changes}
            fitting.append(draft)
    return fitting
