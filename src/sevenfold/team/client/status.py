"""What is shared with a team, what waits, and conflicts: for a person who looks at it or resolves one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.core.errors import InputError
from sevenfold.core.memories import TEAM_PREFIX, Origin
from sevenfold.core.system import run_blocking
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.client.ports import SyncConflict, is_copy_of_text, original_key


def find_conflicts(team: TeamMemory) -> list[SyncConflict]:
    """Copies that were kept and not resolved yet, with the memory that each lies beside. A file that is only
    named like one is none."""
    return [
        SyncConflict(original_key(key), key)
        for key, local in sorted(team.files.read_all().items())
        if is_copy_of_text(key, local.checksum)
    ]


def find_conflict(team: TeamMemory, name: str) -> SyncConflict:
    """The one of that memory or copy; `InputError` where there is none, or more than one."""
    bare = name.removeprefix("team/").removesuffix(".md")
    known = find_conflicts(team)
    found = [one for one in known if f"{bare}.md" in (one.copy, one.key)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(one.copy for one in found or known) or "there is none"
    why = f"{name!r} has more than one" if found else f"{name!r} has no conflict"
    raise InputError(f"{why}; name one of these: {listed}")


def choose_conflict_text(team: TeamMemory, conflict: SyncConflict, take: str) -> str | None:
    """The text for the memory by `take`, `original` or `copy`; None: the one that is there."""
    files = team.files.read_all()
    if take == "original" and conflict.key not in files:
        raise InputError(f"{conflict.key} is not there any more; --take copy keeps the text of the copy")
    return files[conflict.copy].text if take == "copy" else None


@dataclass(frozen=True, slots=True)
class ResolvedConflict:
    conflict: SyncConflict
    text: str | None
    """For the memory from now on; None: it stays as it is."""
    seen: str | None
    """SHA-256 of the memory as the person saw it; None: there was none."""


async def settle_conflict(
    team: TeamMemory, memory: MemoryDir, resolved: ResolvedConflict, *, wait: timedelta
) -> None:
    """Write the text that was chosen, and delete the copy. Nothing is sent yet."""
    conflict, text = resolved.conflict, resolved.text
    if text is not None:
        why = f"resolved the conflict with {conflict.copy}"
        origin = Origin(who="user", why=why, said_by="user", is_accepted=True)
        write = Write(f"{TEAM_PREFIX}{conflict.key}", text, resolved.seen)
        await run_blocking(lambda: memory.commit([write], origin))
    await team.delete(conflict.copy, wait=wait)


def describe_team_status(team: TeamMemory) -> dict[str, object]:
    """What is joined, what waits and what is in the way; no server is asked. Blocks on the disk."""
    place, held = team.joined.membership, find_held(team)
    return {
        "joined": {
            "url": place.url,
            "repo": place.repo,
            "repo_name": place.repo_name,
            "org": place.org,
            "member": place.member,
        },
        "shared": sorted(team.files.read_all()),
        "unsent": sorted(team.read_unsent()),
        "held": held,
        "leaked": find_leaked(team, held),
        "conflicts": [{"memory": one.key, "copy": one.copy} for one in find_conflicts(team)],
        "refusal": team.ledger.read_retry().refusal,
    }


def find_held(team: TeamMemory) -> dict[str, str]:
    """What would not be sent, and why, as far as can be told here."""
    files, state = team.files.read_all(), team.ledger.read_state()
    held = {str(key): local.hold for key, local in files.items() if local.hold}
    for key, refused in state.refused.items():
        if key in files and files[key].checksum == refused.checksum:
            held[key] = refused.reason
    unsent = [key for key in team.read_unsent() if key in files and key not in held]
    blocked = team.screen.inspect({key: files[key].text for key in unsent})
    return held | {str(key): reason for key, reason in blocked.items()}


def find_leaked(team: TeamMemory, held: Mapping[str, str]) -> dict[str, str]:
    """What the server has, and would not get any more: its rule is newer, or it came from somebody else's."""
    files, unsent = team.files.read_all(), team.read_unsent()
    shared = {key: one.text for key, one in files.items() if key not in unsent and key not in held}
    return {str(key): reason for key, reason in team.screen.inspect(shared).items()}
