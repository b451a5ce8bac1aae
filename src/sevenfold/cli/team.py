"""`sevenfold team`: memories that a team shares, by hand."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import TypeAlias, cast

from sevenfold.cli.memory_desk import by_hand
from sevenfold.cli.memory_past import show_diff
from sevenfold.cli.render import Screen
from sevenfold.cli.team_desk import PATIENCE, TeamDesk, find_conflicts, open_team_desk
from sevenfold.cli.team_join import join, leave
from sevenfold.cli.team_view import describe_report, show_report, show_status
from sevenfold.core.errors import InputError, TeamOffline
from sevenfold.core.memories import TEAM
from sevenfold.store.memory_changes import Write
from sevenfold.sync.protocol import MAX_FILE_BYTES
from sevenfold.sync.report import Conflict, Report
from sevenfold.sync.team_memory import TeamMemory

Doing: TypeAlias = Callable[[Namespace, TeamDesk], int]


def run(options: Namespace, screen: Screen) -> int:
    with open_team_desk(options, screen) as desk:
        return _DOING[cast("str", options.action)](options, desk)


def status(_: Namespace, desk: TeamDesk) -> int:
    show_status(desk)
    return 0


def pull(_: Namespace, desk: TeamDesk) -> int:
    return _told(desk, asyncio.run(desk.open_team().exchange(sends=False, wait=PATIENCE)))


def push(_: Namespace, desk: TeamDesk) -> int:
    return _told(desk, asyncio.run(desk.open_team().push(wait=PATIENCE)))


def conflicts(_: Namespace, desk: TeamDesk) -> int:
    team = desk.open_team()
    files, found = team.files.read_all(), find_conflicts(team)
    if desk.desk.is_json:
        desk.screen.show_json([{"memory": one.key, "copy": one.copy} for one in found])
        return 0
    for one in found:
        texts = [files[key].text if key in files else "" for key in (one.key, one.copy)]
        old, new = (text.splitlines(keepends=True) for text in texts)
        show_diff(desk.desk, "".join(unified_diff(old, new, one.key, one.copy)))
    if found:
        desk.screen.show_line("`sevenfold team resolve MEMORY --take original|copy` settles one", "faint")
    else:
        desk.screen.show_line("no conflicts", "faint")
    return 0


def resolve(options: Namespace, desk: TeamDesk) -> int:
    team = desk.open_team()
    conflict = _find_conflict(team, cast("str", options.memory))
    before = desk.desk.memory.find(f"{TEAM}{conflict.key}")
    text = _chosen(options, team, conflict)
    if text is not None:
        origin = by_hand(f"resolved the conflict with {conflict.copy}")
        seen = None if before is None else before.sha256
        desk.desk.memory.commit([Write(f"{TEAM}{conflict.key}", text, seen)], origin)
    asyncio.run(team.delete(conflict.copy, wait=PATIENCE))
    return _exchanged(desk, team, f"{conflict.key} is settled")


def delete(options: Namespace, desk: TeamDesk) -> int:
    team = desk.open_team()
    keys = [desk.find_key(team, name) for name in cast("list[str]", options.memories)]
    for key in keys:
        asyncio.run(team.delete(key, wait=PATIENCE))
    return _exchanged(desk, team, f"{', '.join(keys)}: deleted here")


def allow(options: Namespace, desk: TeamDesk) -> int:
    team = desk.open_team()
    team.screen.allow(cast("str", options.fingerprint), cast("str", options.reason))
    return _exchanged(desk, team, f"{options.fingerprint} may be shared")


def _find_conflict(team: TeamMemory, name: str) -> Conflict:
    bare = name.removeprefix("team/").removesuffix(".md")
    known = find_conflicts(team)
    found = [one for one in known if f"{bare}.md" in (one.copy, one.key)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(one.copy for one in found or known) or "there is none"
    why = f"{name!r} has more than one" if found else f"{name!r} has no conflict"
    raise InputError(f"{why}; name one of these: {listed}")


def _chosen(options: Namespace, team: TeamMemory, conflict: Conflict) -> str | None:
    """The text to write under the memory's name; None: the one that is there."""
    path = cast("Path | None", options.text)
    if path is None:
        files = team.files.read_all()
        if options.take == "original" and conflict.key not in files:
            raise InputError(f"{conflict.key} is not there any more; --take copy keeps the text of the copy")
        return files[conflict.copy].text if options.take == "copy" else None
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"{path} has {len(data):,} bytes; at most {MAX_FILE_BYTES:,} can be shared")
    return text


def _exchanged(desk: TeamDesk, team: TeamMemory, done: str) -> int:
    """Tell the others at once if that can be; it is as good as done if not."""
    try:
        report = asyncio.run(team.exchange(wait=PATIENCE))
    except TeamOffline as error:
        if desk.desk.is_json:
            desk.screen.show_json({"done": done, "sent": [], "waiting": str(error)})
        else:
            desk.screen.show_line(f"{done}; the others are told once the server can be reached ({error})")
        return 0
    if not desk.desk.is_json:
        desk.screen.show_line(done)
    return _told(desk, report)


def _told(desk: TeamDesk, report: Report) -> int:
    """1 where something was held back that a person has to see to."""
    if desk.desk.is_json:
        desk.screen.show_json(describe_report(report))
    else:
        show_report(report, desk.screen)
    return 1 if report.held or not report.is_settled else 0


_DOING: dict[str, Doing] = {
    "join": join,
    "status": status,
    "pull": pull,
    "push": push,
    "conflicts": conflicts,
    "resolve": resolve,
    "delete": delete,
    "allow": allow,
    "leave": leave,
}
