"""Which hooks there are, and what a hook answers, in the formats of Claude Code, so that its hooks work here.

`find_hooks` reads the user's own files, and those of a repository once a person has agreed. `parse_hooks`
parses one file, and `parse_hook_result` what one hook answered:

{"hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "…"}]}]}}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from sevenfold.core.errors import FileMissing, SevenfoldError, WireError
from sevenfold.core.events import Emit, HooksIgnored, ignore_event
from sevenfold.core.json import Json, JsonObject, read_object, write_json
from sevenfold.core.settings.sections import HookSettings
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import CLAUDE_CODE_NAMES
from sevenfold.store.project.instructions import CachedFileReader, InstructionPaths
from sevenfold.store.project.trust import (
    Confirm,
    ConsentRequest,
    TrustStore,
    ask_consent,
    decline_confirmation,
)

# The events that hooks run at, and what a hook answers.

HookEvent: TypeAlias = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "Stop",
    "SubagentStop",
    "SessionEnd",
]
HookDecision: TypeAlias = Literal["allow", "ask", "deny"]

BLOCKING_EXIT_CODE = 2
"""The exit code that blocks what the hook was asked about."""

MAX_HOOK_TEXT_CHARS = 10_000
"""Of each text in an answer. What is longer fills a window with what nobody asked to see."""

ShortenText: TypeAlias = Callable[[str], str]

CONTEXT_EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact")
"""Events at which plain output is context; elsewhere only JSON says anything."""

UNSUPPORTED_FIELDS = ("sessionTitle", "watchPaths", "reloadSkills")
"""Of Claude Code's fields: sessions have no titles here, and neither files nor skills are watched."""

_STRENGTH: dict[HookDecision | None, int] = {None: 0, "allow": 1, "ask": 2, "deny": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """What hooks said, one or all together."""

    blocked: str | None = None
    """Why what they were asked about may not go on; None: it may."""
    decision: HookDecision | None = None
    """Of a tool call: whether to run it without asking, to ask, or not to run it."""
    reason: str = ""
    """Of the decision."""
    context: tuple[str, ...] = ()
    """To be told to the model."""
    notices: tuple[str, ...] = ()
    """To be told to the person."""
    updated_input: JsonObject | None = None
    """Another input for the tool; None: as it was."""
    updated_output: str | None = None
    """Another output of the tool; None: as it was."""
    stop_reason: str | None = None
    """Why the agent should stop altogether; None: it goes on."""
    initial_messages: tuple[str, ...] = ()
    """What the user is to have said first in a session."""
    unsupported: tuple[str, ...] = ()
    """Fields that ask for what is not done here."""

    @property
    def is_long(self) -> bool:
        """Whether a text in it is over what goes into a window."""
        own = (self.blocked, self.reason, self.updated_output, self.stop_reason)
        texts = (*own, *self.context, *self.notices, *self.initial_messages)
        return any(text is not None and len(text) > MAX_HOOK_TEXT_CHARS for text in texts)

    def shortened(self, shorten: ShortenText) -> HookResult:
        """The same with every such text made shorter."""
        return replace(
            self,
            blocked=None if self.blocked is None else shorten(self.blocked),
            reason=shorten(self.reason),
            context=tuple(map(shorten, self.context)),
            notices=tuple(map(shorten, self.notices)),
            updated_output=None if self.updated_output is None else shorten(self.updated_output),
            stop_reason=None if self.stop_reason is None else shorten(self.stop_reason),
            initial_messages=tuple(map(shorten, self.initial_messages)),
        )


NO_HOOK_RESULT = HookResult()


def parse_hook_result(event: HookEvent, code: int, out: str, err: str) -> HookResult:
    """One hook's answer; a `WireError` where its JSON cannot be read."""
    if code == BLOCKING_EXIT_CODE:
        return HookResult(blocked=err.strip() or out.strip() or "a hook blocked it")
    text = out.strip()
    if not text.startswith("{"):
        return HookResult(context=(text,)) if text and event in CONTEXT_EVENTS else NO_HOOK_RESULT
    return _read_json(event, read_object(text))


def merge_hook_results(results: Iterable[HookResult]) -> HookResult:
    """All of them together: the strictest decision counts, and of changes the last."""
    all_results = tuple(results)
    strictest = max(all_results, key=lambda one: _STRENGTH[one.decision], default=NO_HOOK_RESULT)
    return HookResult(
        blocked=next((one.blocked for one in all_results if one.blocked is not None), None),
        decision=strictest.decision,
        reason=strictest.reason,
        context=tuple(text for one in all_results for text in one.context),
        notices=tuple(text for one in all_results for text in one.notices),
        updated_input=next(
            (one.updated_input for one in reversed(all_results) if one.updated_input is not None), None
        ),
        updated_output=next(
            (one.updated_output for one in reversed(all_results) if one.updated_output is not None), None
        ),
        stop_reason=next((one.stop_reason for one in all_results if one.stop_reason is not None), None),
        initial_messages=tuple(text for one in all_results for text in one.initial_messages),
        unsupported=tuple(name for one in all_results for name in one.unsupported),
    )


def _read_json(event: HookEvent, wire: JsonObject) -> HookResult:
    special = wire.get("hookSpecificOutput")
    own = special if isinstance(special, JsonObject) else JsonObject()
    reason = _text(wire, "reason")
    is_blocked = wire.get("decision") == "block"
    # PreToolUse once said block and approve where it now says deny and allow.
    is_deciding = event == "PreToolUse"
    context = _text(own, "additionalContext")
    first = _text(own, "initialUserMessage") if event == "SessionStart" else ""
    notice = _text(wire, "systemMessage")
    given, output = own.get("updatedInput"), own.get("updatedToolOutput")
    return HookResult(
        blocked=(reason or "a hook blocked it") if is_blocked and not is_deciding else None,
        decision=_decision(wire, own) if is_deciding else None,
        reason=(_text(own, "permissionDecisionReason") or reason) if is_deciding else "",
        context=(context,) if context else (),
        notices=(notice,) if notice else (),
        updated_input=given if isinstance(given, JsonObject) else None,
        updated_output=None if output is None else _output(output),
        stop_reason=(_text(wire, "stopReason") or "a hook stopped it")
        if wire.get("continue") is False
        else None,
        initial_messages=(first,) if first else (),
        unsupported=tuple(name for name in UNSUPPORTED_FIELDS if own.get(name)),
    )


def _decision(wire: JsonObject, own: JsonObject) -> HookDecision | None:
    said = own.get("permissionDecision")
    match said, wire.get("decision"):
        case ("allow", _) | (None, "approve"):
            return "allow"
        case ("deny", _) | (None, "block"):
            return "deny"
        case ("ask" | "defer", _):
            return "ask"
        case (None, _):
            return None
        case _:
            raise WireError(f"permissionDecision is {said!r}; expected allow, deny or ask")


def _output(value: Json) -> str:
    return value if isinstance(value, str) else write_json(value).decode()


def _text(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    return value if isinstance(value, str) else ""


_EVENTS: dict[str, HookEvent] = {name: name for name in get_args(HookEvent)}

DEFAULT_HOOK_TIMEOUT = timedelta(minutes=10)
HOOK_TIMEOUTS: dict[HookEvent, timedelta] = {
    "UserPromptSubmit": timedelta(seconds=30),
    "SessionEnd": timedelta(seconds=1.5),
}
"""Where a person waits, or leaves, a hook gets less than the usual ten minutes."""

MAX_SHOWN_CHARS = 40
"""Of a value that cannot be used, in a message."""

_MIN_SECONDS = 0.01
"""No program answers in less, and a hook that protects would never be heard."""

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
    except (re.error, RecursionError, OverflowError) as error:
        found.problems.append(f"{event}: matcher {pattern!r:.80} is no regular expression: {error}")
        return
    for hook in _objects(group.get("hooks")):
        command, kind = hook.get("command"), hook.get("type", "command")
        if kind != "command" or not isinstance(command, str) or not command.strip():
            found.problems.append(f"{event}: a hook of type {kind!r} is not run; expected a command")
            continue
        if _is_ours(command):
            continue
        limit = _limit(event, hook.get("timeout"), found)
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


def _is_ours(command: str) -> bool:
    """Whether `sevenfold install` has put it there for another agent: here memory and rules work without."""
    if "hook_script.py" not in command:
        return False
    from sevenfold.resident.agent_configs import is_own_command

    return is_own_command(command)


def _limit(event: HookEvent, seconds: Json, found: HookList) -> timedelta:
    """How long a hook may take. One with a limit that cannot be used runs all the same: it may protect."""
    usual = HOOK_TIMEOUTS.get(event, DEFAULT_HOOK_TIMEOUT)
    if seconds is None:
        return usual
    used = usual
    if isinstance(seconds, (int, float, Decimal)) and not isinstance(seconds, bool):
        if _MIN_SECONDS <= seconds <= _MAX_SECONDS:
            return timedelta(seconds=float(seconds))
        used = timedelta(seconds=_MAX_SECONDS) if seconds > _MAX_SECONDS else usual
    found.problems.append(
        f"{event}: timeout is {_cut(str(seconds))}; expected seconds from {_MIN_SECONDS:g} to "
        f"{_MAX_SECONDS:,}, so that {used.total_seconds():g} are used"
    )
    return used


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 1]}…"


def _objects(value: Json) -> Iterator[JsonObject]:
    yield from (item for item in value if isinstance(item, JsonObject)) if isinstance(value, tuple) else ()


# Which files define hooks, and whether a person has agreed to them.

USER_HOOKS_FILE = "hooks.json"


_PROJECT_FILE = ".sevenfold/hooks.json"


CLAUDE_SETTINGS_FILE = ".claude/settings.json"


CLAUDE_LOCAL_SETTINGS_FILE = ".claude/settings.local.json"


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file that may hold hooks."""

    path: Path
    beneath: Path
    """The folder that it may not lead out of."""
    dialect: HookDialect = "own"
    needs_trust: bool = False

    @property
    def name(self) -> str:
        return self.path.relative_to(self.beneath).as_posix()


@dataclass(frozen=True, slots=True)
class HookSource:
    """A file that was read: its hooks, and what cannot be used of it."""

    file: HookFile
    found: HookList
    agreed: bytes = b""
    """What a person agrees to: the hooks alone, however else the file changes."""

    def request(self) -> ConsentRequest:
        """What a person is asked about a repository's hooks."""
        path, wants = self.file.path, tuple(f"{hook.event}: {hook.command}" for hook in self.found.hooks)
        listed = "\n".join(f"  {want}" for want in wants)
        return ConsentRequest(
            name=self.file.name,
            path=path,
            content=self.agreed,
            wants=wants,
            question=f"{path} wants to run these commands of the repository's own:\n{listed}\n"
            f"Run all {len(wants)} of them, now and whenever the file says the same?",
        )


def list_hook_files(settings: HookSettings, folders: InstructionPaths) -> Iterator[HookFile]:
    """Every file that is looked at, the user's own first."""
    if not settings.enabled:
        return
    yield HookFile(folders.home / USER_HOOKS_FILE, folders.home)
    if settings.claude_user_file:
        yield HookFile(folders.user_home / CLAUDE_SETTINGS_FILE, folders.user_home, "claude")
    root = folders.root
    if root is None or root == folders.user_home:
        return
    yield HookFile(root / _PROJECT_FILE, root, needs_trust=True)
    if settings.claude_files:
        yield HookFile(root / CLAUDE_SETTINGS_FILE, root, "claude", needs_trust=True)
        # By its name this file is the user's own. But an archive can contain it, and a sandboxed command can
        # write it, so its hooks run only once a person has agreed.
        yield HookFile(root / CLAUDE_LOCAL_SETTINGS_FILE, root, "claude", needs_trust=True)


async def find_hooks(
    settings: HookSettings,
    folders: InstructionPaths,
    trust: TrustStore | None = None,
    *,
    confirm: Confirm = decline_confirmation,
    emit: Emit = ignore_event,
) -> tuple[Hook, ...]:
    """All hooks that may run. Those that may not run are reported, with the reason."""
    hooks: list[Hook] = []
    for source in await run_blocking(lambda: read_hook_sources(settings, folders)):
        for problem in source.found.problems:
            emit(HooksIgnored(str(source.file.path), problem))
        if not source.found.hooks:
            continue
        if source.file.needs_trust:
            request = source.request()
            consent = await ask_consent(request, trust, confirm)
            if consent != "agreed":
                emit(HooksIgnored(str(source.file.path), request.explain(consent)))
                continue
        hooks += source.found.hooks
    return tuple(hooks)


def read_hook_sources(settings: HookSettings, folders: InstructionPaths) -> tuple[HookSource, ...]:
    """Every file that is there, whether or not its hooks may run. Blocks on the disk."""
    return tuple(filter(None, map(_read, list_hook_files(settings, folders))))


def _read(file: HookFile) -> HookSource | None:
    try:
        config = read_object(CachedFileReader().read(file.path, (file.beneath,)).text)
        agreed = write_json(config.get("hooks"), sort_keys=True)
        return HookSource(file, parse_hooks(config, source=str(file.path), dialect=file.dialect), agreed)
    except FileMissing:
        return None
    except SevenfoldError as error:
        return HookSource(file, HookList(problems=[str(error)]))
