"""Decides each tool call by mode and rules, and asks a person where needed.

A call declares what it accesses before it runs. The guard follows every link, decides on the real paths, and
passes those on: the tool opens what was approved and nothing else.

`Guard` is for a session, `ForkGuard` for forks and writers. `RuleSaver` stores permanent answers.
`CallReviewer` can add a message before a call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, Self, TypeAlias

from sevenfold.agent.permissions.rules import (
    PermissionRule,
    PermissionRules,
    RuleSubject,
    add_allow_rule,
    find_covering_rule,
    find_possible_rule,
    suggest_rule,
    suggest_wider_rule,
)
from sevenfold.agent.sandbox.folders import explain_guarded, explain_linked, explain_secret
from sevenfold.agent.tool import AccessKind, AccessRequest
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.events.agent import RuleKept, RuleLost
from sevenfold.core.messages import ToolUse
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.core.system import run_blocking
from sevenfold.store.project.settings_files import LOCAL_SETTINGS_FILE, find_user_home
from sevenfold.store.project.trust import TrustStore
from sevenfold.store.project.user_files import exclude_from_git, resolve_path

# Folders that may be read and edited without asking.

PermissionDecision: TypeAlias = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class PermissionVerdict:
    decision: PermissionDecision
    reason: str
    """For the model where it is denied, for a person where they are asked."""
    paths: tuple[str, ...] = ()
    """The checked paths, links followed: a tool opens these and nothing else."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Folders, wherever links lead when it is made. What may be edited may be read."""

    read: tuple[Path, ...] = ()
    edit: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        # Calls are checked by real paths, and many home folders are reached through a link.
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


GrantDuration: TypeAlias = Literal["once", "session", "always", "pattern", "edits"]
"""`always` and `pattern` are kept in settings: the narrow rule, or the wider one. `edits` switches to
`accept-edits`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """What a person is asked."""

    use: ToolUse
    need: AccessRequest
    reason: str
    rule: PermissionRule | None = None
    """What an answer for longer than once would allow; None: only this call can be allowed."""
    wider_rule: PermissionRule | None = None
    """A pattern that would allow calls like this one too; None: there is none."""
    may_accept_edits: bool = False
    """The answer may be to accept this edit and those that follow."""


@dataclass(frozen=True, slots=True)
class PermissionResponse:
    is_allowed: bool
    lasts: GrantDuration = "once"
    words: str = ""
    """What the person says to the model with it."""


AskPermission: TypeAlias = Callable[[PermissionRequest], Awaitable[PermissionResponse]]


SaveRule: TypeAlias = Callable[[PermissionRule], Awaitable[None]]
"""Stores what was allowed for always."""


async def deny_unattended(_question: PermissionRequest) -> PermissionResponse:
    """For a run that no person watches."""
    return PermissionResponse(
        False, words="nobody is there to be asked; do without it, or say what is needed"
    )


async def discard_rule(_rule: PermissionRule) -> None:
    """For a guard that allows nothing beyond its session."""


@dataclass(slots=True)
class Grants:
    """What was allowed for the session. Shared by the guards of a session and its agents."""

    rules: list[PermissionRule] = field(default_factory=list[PermissionRule])
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A person is asked one thing at a time."""


@dataclass(slots=True, kw_only=True)
class Guard:
    """Decides each call of a session. `mode` may be changed at any time."""

    mode: PermissionMode
    rules: PermissionRules
    root: Path
    """The project's folder: read without asking, edited where the mode says so."""
    ask: AskPermission = deny_unattended
    reach: Reach = field(default_factory=Reach)
    """What may be read and edited beside the project without asking: spills, memory."""
    home: Path | None = None
    """This program's own files: an edit there is always asked for."""
    user_home: Path = field(default_factory=lambda: find_user_home(os.environ))
    save_rule: SaveRule = discard_rule
    may_run_sandboxed: bool = False
    """In `ask` mode: a command that a sandbox holds to the project need not be asked for."""
    grants: Grants = field(default_factory=Grants)

    def __post_init__(self) -> None:
        self.root, self.user_home = (
            Path(resolve_path(str(self.root))),
            Path(resolve_path(str(self.user_home))),
        )
        self.home = Path(resolve_path(str(self.home))) if self.home else None

    def decide(self, use: ToolUse, need: AccessRequest) -> PermissionVerdict:
        """What holds for this call before anybody is asked. Looks at links, and changes nothing."""
        try:
            return self._judge(self._case(use, need))
        except SevenfoldError as error:  # nobody can tell where such a path leads
            return PermissionVerdict("deny", str(error))

    def _judge(self, case: RuleSubject) -> PermissionVerdict:
        denied = find_possible_rule(self.rules.deny, case)
        if denied:
            return PermissionVerdict("deny", f"the rule {denied} forbids it", case.real)
        barred = self._barred(case.need)
        if barred:
            return PermissionVerdict("deny", barred, case.real)
        asked = find_possible_rule(self.rules.ask, case)
        # Whoever wrote the rule must not replace what is said of a guarded file or one outside the project.
        reasons = (self._why_ask(case), f"the rule {asked} asks for it" if asked else None)
        reason = "; ".join(filter(None, reasons))
        return (
            PermissionVerdict("ask", reason, case.real)
            if reason
            else PermissionVerdict("allow", "", case.real)
        )

    async def admit(self, use: ToolUse, need: AccessRequest) -> PermissionVerdict:
        """The same, with a person asked where that is needed: allowed or denied."""
        verdict = self.decide(use, need)
        if verdict.decision != "ask":
            return verdict
        async with self.grants.asking:
            # The answer to the question before may have settled this one.
            verdict = self.decide(use, need)
            return await self._asked(use, need, verdict) if verdict.decision == "ask" else verdict

    def is_hidden(self, real: str, tool: str = "read") -> bool:
        """Whether rules keep a file from being read, for tools that look through many."""
        case = RuleSubject(
            tool=tool,
            need=AccessRequest(kind="read", paths=(real,)),
            real=(real,),
            root=self.root,
            user_home=self.user_home,
        )
        return find_possible_rule(self.rules.deny, case) is not None

    async def _asked(
        self, use: ToolUse, need: AccessRequest, verdict: PermissionVerdict
    ) -> PermissionVerdict:
        case = replace(self._case(use, need), real=verdict.paths)
        rule = wider = None
        if not self._guarded(case):
            rule, wider = suggest_rule(case), suggest_wider_rule(case)
        may_accept = need.kind == "edit" and self.mode == "ask" and rule is not None
        answer = await self.ask(
            PermissionRequest(
                use=use,
                need=need,
                reason=verdict.reason,
                rule=rule,
                wider_rule=wider,
                may_accept_edits=may_accept,
            )
        )
        if not answer.is_allowed:
            said = f": {answer.words}" if answer.words else "; ask what to do instead, or go on without it"
            return PermissionVerdict("deny", f"the user did not allow it{said}", verdict.paths)
        await self._grant(answer.lasts, rule, wider if answer.lasts == "pattern" else None)
        return PermissionVerdict("allow", answer.words, verdict.paths)

    async def _grant(
        self, lasts: GrantDuration, rule: PermissionRule | None, wider: PermissionRule | None
    ) -> None:
        """Remember an answer for as long as it was meant."""
        if lasts == "edits" and rule is not None and self.mode == "ask":
            self.mode = "accept-edits"
        granted = wider or rule
        if granted is None or lasts in ("once", "edits"):
            return
        self.grants.rules.append(granted)
        if lasts in ("always", "pattern"):
            await self.save_rule(granted)

    def _case(self, use: ToolUse, need: AccessRequest) -> RuleSubject:
        return RuleSubject(
            tool=need.tool or use.name,
            need=need,
            real=real_paths(need),
            root=self.root,
            user_home=self.user_home,
        )

    def _barred(self, need: AccessRequest) -> str | None:
        """Why the mode itself rules a call out, whatever rules and people say."""
        if self.mode not in ("plan", "read-only"):
            return None
        if need.kind == "run" and need.profile != "read-only":
            return f"only a command with access read may run in {self.mode} mode"
        if self.mode == "plan":
            return _PLANNING if need.kind == "edit" and not self._is_own_edit(need) else None
        return _READING if need.kind in ("edit", "message", "outside") else None

    def _why_ask(self, case: RuleSubject) -> str | None:
        """Why a person is to be asked; None: nobody is."""
        if self.mode == "bypass":
            return None
        guarded = self._guarded(case)
        if guarded:
            return guarded
        if find_covering_rule((*self.rules.allow, *self.grants.rules), case):
            return None
        match case.need.kind:
            case "read":
                return self._why_ask_read(case)
            case "edit":
                return self._why_ask_edit(case)
            case "run":
                return self._why_ask_run(case.need)
            case kind:
                return _ASKED.get(kind)

    def _guarded(self, case: RuleSubject) -> str | None:
        """What even an allowing rule does not cover."""
        for path in case.real:
            if case.need.kind == "edit" and not self.reach.may_edit(path):
                reason = explain_guarded(path, self.root, self.home) or explain_linked(path, self.root)
            elif case.need.kind == "read" and not self.reach.may_read(path):
                reason = explain_secret(path, self.root)
            else:
                reason = None
            if reason:
                return f"{path}: {reason}"
        return self._guarded_name(case)

    def _guarded_name(self, case: RuleSubject) -> str | None:
        """The same for the names that a call gives: a link is obeyed by its own name."""
        if case.need.kind != "edit" or all(map(self.reach.may_edit, case.real)):
            return None
        for path in map(os.path.normpath, case.need.paths):
            reason = explain_guarded(path, self.root, self.home)
            if reason:
                return f"{path}: {reason}"
        return None

    def _why_ask_read(self, case: RuleSubject) -> str | None:
        outside = [path for path in case.real if not self._is_inside(path) and not self.reach.may_read(path)]
        return f"{outside[0]} lies outside the project" if outside else None

    def _why_ask_edit(self, case: RuleSubject) -> str | None:
        outside = [path for path in case.real if not self._is_inside(path) and not self.reach.may_edit(path)]
        if outside or not case.real:
            return f"{outside[0] if outside else 'it'} lies outside the project"
        is_own = all(map(self.reach.may_edit, case.real))
        return None if self.mode == "accept-edits" or is_own else "it changes a file"

    def _why_ask_run(self, need: AccessRequest) -> str | None:
        is_sandboxed = need.profile == "workspace" and (self.mode == "accept-edits" or self.may_run_sandboxed)
        return None if need.profile == "read-only" or is_sandboxed else "it runs a command"

    def _is_own_edit(self, need: AccessRequest) -> bool:
        real = real_paths(need)
        return bool(real) and all(map(self.reach.may_edit, real))

    def _is_inside(self, path: str) -> bool:
        return Path(path).is_relative_to(self.root)


_PLANNING = "nothing may be changed while a plan is being made; finish the plan and present it first"


_READING = "this session is read-only; say what you would change instead"


_ASKED: dict[AccessKind, str] = {
    "fetch": "it sends a request to the network",
    "outside": "it is a tool of somebody else's",
}


# Permanent answers: stored in the project's settings, or reported as lost.


@dataclass(frozen=True, slots=True)
class RuleSaver:
    """Keeps rules for one project; a guard's `keep` is `RuleSaver(root).keep`."""

    root: Path
    emit: Emit = ignore_event
    trust: TrustStore | None = None
    """Where it is kept what a person has agreed to; None: nobody is asked about the file."""

    async def save(self, rule: PermissionRule) -> None:
        try:
            kept = await run_blocking(lambda: self._save(str(rule)))
        except SevenfoldError as error:
            kept = RuleLost(str(rule), str(error))
        self.emit(kept)

    def _save(self, rule: str) -> RuleKept:
        path = add_allow_rule(self.root, rule, self.trust)
        reason = exclude_from_git(self.root, LOCAL_SETTINGS_FILE)
        return RuleKept(rule, str(path), f", which git would list: {reason}" if reason else "")


# Messages to the model right before a call runs.


@dataclass(frozen=True, slots=True)
class CallNotice:
    hold: str = ""
    """The call is not run: it gets this for a result."""
    note: str = ""
    """It is run, and this comes before its result."""


NO_CALL_NOTICE = CallNotice()


class CallReviewer(Protocol):
    """Asked before every call that nothing denies."""

    async def before(self, use: ToolUse, need: AccessRequest, beside: Sequence[ToolUse], /) -> CallNotice:
        """What to say before this call; `beside` are all calls of the same answer."""
        ...

    def branch(self) -> Self:
        """The same for a fork, which sees what was said so far and nothing that is said from now on."""
        ...
