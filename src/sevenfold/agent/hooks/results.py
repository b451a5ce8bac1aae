"""The events that hooks run at, and what a hook answers.

Both follow Claude Code's formats, so hooks written for it work here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, read_object, write_json

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
    given: JsonObject | None = None
    """Another input for the tool; None: as it was."""
    output: str | None = None
    """Another output of the tool; None: as it was."""
    halted: str | None = None
    """Why the agent should stop altogether; None: it goes on."""
    first: tuple[str, ...] = ()
    """What the user is to have said first in a session."""
    unheeded: tuple[str, ...] = ()
    """Fields that ask for what is not done here."""

    @property
    def is_long(self) -> bool:
        """Whether a text in it is over what goes into a window."""
        own = (self.blocked, self.reason, self.output, self.halted)
        texts = (*own, *self.context, *self.notices, *self.first)
        return any(text is not None and len(text) > MAX_HOOK_TEXT_CHARS for text in texts)

    def shortened(self, shorten: ShortenText) -> HookResult:
        """The same with every such text made shorter."""
        return replace(
            self,
            blocked=None if self.blocked is None else shorten(self.blocked),
            reason=shorten(self.reason),
            context=tuple(map(shorten, self.context)),
            notices=tuple(map(shorten, self.notices)),
            output=None if self.output is None else shorten(self.output),
            halted=None if self.halted is None else shorten(self.halted),
            first=tuple(map(shorten, self.first)),
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


def merge_hook_results(heard: Iterable[HookResult]) -> HookResult:
    """All of them together: the strictest decision counts, and of changes the last."""
    all_heard = tuple(heard)
    strictest = max(all_heard, key=lambda one: _STRENGTH[one.decision], default=NO_HOOK_RESULT)
    return HookResult(
        blocked=next((one.blocked for one in all_heard if one.blocked is not None), None),
        decision=strictest.decision,
        reason=strictest.reason,
        context=tuple(text for one in all_heard for text in one.context),
        notices=tuple(text for one in all_heard for text in one.notices),
        given=next((one.given for one in reversed(all_heard) if one.given is not None), None),
        output=next((one.output for one in reversed(all_heard) if one.output is not None), None),
        halted=next((one.halted for one in all_heard if one.halted is not None), None),
        first=tuple(text for one in all_heard for text in one.first),
        unheeded=tuple(name for one in all_heard for name in one.unheeded),
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
        given=given if isinstance(given, JsonObject) else None,
        output=None if output is None else _output(output),
        halted=(_text(wire, "stopReason") or "a hook stopped it") if wire.get("continue") is False else None,
        first=(first,) if first else (),
        unheeded=tuple(name for name in UNSUPPORTED_FIELDS if own.get(name)),
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
