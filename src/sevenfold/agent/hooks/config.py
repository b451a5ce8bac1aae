"""Parses the hooks of one settings file, which has the format of Claude Code's settings:

{"hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "…"}]}]}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias, get_args

from sevenfold.agent.hooks.results import HookEvent
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.tool_kinds import CLAUDE_CODE_NAMES

_EVENTS: dict[str, HookEvent] = {name: name for name in get_args(HookEvent)}

DEFAULT_HOOK_TIMEOUT = timedelta(minutes=10)
HOOK_TIMEOUTS: dict[HookEvent, timedelta] = {
    "UserPromptSubmit": timedelta(seconds=30),
    "SessionEnd": timedelta(seconds=1.5),
}
"""Where a person waits, or leaves, a hook gets less than the usual ten minutes."""

_MAX_SECONDS = 3_600
"""However long a file says."""

HookDialect: TypeAlias = Literal["own", "claude"]
"""Whose names of tools a hook was written for."""

_PLAIN = re.compile(r"[\w|]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A command that is asked at an event."""

    event: HookEvent
    command: str
    matcher: str = ""
    """Names of tools (or sources, or triggers) between `|`, or a regular expression; empty: all."""
    limit: timedelta = DEFAULT_HOOK_TIMEOUT
    dialect: HookDialect = "own"
    source: str = ""
    """The file that it stands in."""

    def matches(self, subject: str) -> bool:
        """Whether it matches this tool, source or trigger, by our name for it or Claude Code's."""
        if self.matcher in ("", "*") or not subject:
            return True
        subjects = (subject, CLAUDE_CODE_NAMES.get(subject, subject))
        if _PLAIN.fullmatch(self.matcher):
            return not set(self.matcher.split("|")).isdisjoint(subjects)
        return any(re.search(self.matcher, one) for one in subjects)

    def tool_name(self, name: str) -> str:
        return CLAUDE_CODE_NAMES.get(name, name) if self.dialect == "claude" else name


@dataclass(slots=True)
class HookList:
    """What one file says: its hooks, and what cannot be used of it."""

    hooks: list[Hook] = field(default_factory=list[Hook])
    problems: list[str] = field(default_factory=list[str])


def parse_hooks(config: JsonObject, *, source: str, dialect: HookDialect) -> HookList:
    """The hooks of a file. What is wrong is a problem in words, and the rest counts."""
    found = HookList()
    events = config.get("hooks")
    if events is None:
        return found
    if not isinstance(events, JsonObject):
        found.problems.append(f"hooks is {type(events).__name__}; expected an object by event")
        return found
    for name, groups in events.items():
        event = _EVENTS.get(name)
        if event is None:
            found.problems.append(f"{name}: no event of that name; there are {', '.join(_EVENTS)}")
            continue
        for group in _objects(groups):
            _read_group(event, group, Hook(event=event, command="", source=source, dialect=dialect), found)
    return found


def _read_group(event: HookEvent, group: JsonObject, like: Hook, found: HookList) -> None:
    matcher = group.get("matcher")
    pattern = matcher if isinstance(matcher, str) else ""
    try:
        re.compile(pattern if pattern != "*" else "")
    except re.error as error:
        found.problems.append(f"{event}: matcher {pattern!r} is no regular expression: {error}")
        return
    for hook in _objects(group.get("hooks")):
        command, kind = hook.get("command"), hook.get("type", "command")
        if kind != "command" or not isinstance(command, str) or not command.strip():
            found.problems.append(f"{event}: a hook of type {kind!r} is not run; expected a command")
            continue
        limit = _limit(event, hook.get("timeout"))
        found.hooks.append(
            Hook(
                event=event,
                command=command,
                matcher=pattern,
                limit=limit,
                dialect=like.dialect,
                source=like.source,
            )
        )


def _limit(event: HookEvent, seconds: Json) -> timedelta:
    usual = HOOK_TIMEOUTS.get(event, DEFAULT_HOOK_TIMEOUT)
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or seconds <= 0:
        return usual
    return timedelta(seconds=min(float(seconds), _MAX_SECONDS))


def _objects(value: Json) -> Iterator[JsonObject]:
    yield from (item for item in value if isinstance(item, JsonObject)) if isinstance(value, tuple) else ()
