"""Layer 7, decisions: what is appended to a parent's messages for a fork, and what agents send each other.

Nothing before the appended messages changes, so the provider has cached all of it, and parallel forks of one
parent differ in their last text block alone. The second half is messages: addresses, kinds, and how a message
appears in a history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sevenfold.core.errors import InputError, WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Block, Message, Text, ToolResult, ToolUse
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.tool_kinds import PATH_KEYS, changes_memory, find_effect

FORK_MARK = "<sevenfold-fork>"
"""How a directive begins. History that ends in one is a fork's, and a fork starts no forks."""

OPEN_CALL_PLACEHOLDER = "[this call is being answered elsewhere; its result is not needed for what follows]"
"""The same for every call of every fork, so that parallel forks share all but their directive."""


@dataclass(frozen=True, slots=True)
class ToolPermit:
    """A tool that a fork may call."""

    tool: str
    path: str | None = None
    """The one file that it may be called on, spelled exactly like this; None: any file."""

    def covers(self, use: ToolUse) -> bool:
        if use.name != self.tool:
            return False
        # Every key is looked at, so that a second one cannot lead a tool elsewhere.
        named = [use.input[key] for key in PATH_KEYS if key in use.input]
        return self.path is None or (bool(named) and all(path == self.path for path in named))


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkBrief:
    """Instructions and permissions of a fork."""

    kind: str
    """The kind of work, for the bill: `summary`, `notes`, …"""
    directive: str
    allow: tuple[ToolPermit, ...] = ()
    """All other tools stay declared, since they are part of the prefix, and are denied when called."""
    max_rounds: int = 1
    max_tokens: int | None = None
    """The output limit of one answer; None: that of the parent."""
    ends_when_written: bool = False
    """An answer whose calls all write, and are all accepted, is the last. Another one would read the whole
    prefix again only to say that nothing is left to do."""

    def is_finished(self, uses: Sequence[ToolUse], results: Sequence[ToolResult]) -> bool:
        """Whether these calls leave nothing to do, so that no further answer is asked for."""
        return (
            self.ends_when_written
            and all(changes_memory(use) or find_effect(use) in ("write", "edit") for use in uses)
            and not any(result.is_error for result in results)
        )

    def denial(self, use: ToolUse) -> str | None:
        """Why this call is not allowed; None when it is."""
        if any(permit.covers(use) for permit in self.allow):
            return None
        named = [permit for permit in self.allow if permit.tool == use.name]
        if named:
            return f"{use.name} may only be used on {', '.join(str(permit.path) for permit in named)} here"
        tools = ", ".join(permit.tool for permit in self.allow) or "no tool"
        return f"{use.name} may not be used here ({tools} may); answer with what you know already"


def plan_fork(parent: Sequence[Message], brief: ForkBrief) -> tuple[Message, ...]:
    """The messages to append to the parent's own: answers to its open calls, and the directive, last."""
    if is_fork(parent):
        raise InputError(
            f"a {brief.kind} fork cannot start from a fork's messages; start it from the session's own"
        )
    directive = Text(f"{FORK_MARK}\n{brief.directive}")
    if parent and parent[-1].role == "system":
        # Nothing but an answer may follow a system message; a second one is part of the first.
        return (Message("system", (directive,)),)
    waiting = (ToolResult(use.id, OPEN_CALL_PLACEHOLDER) for use in find_open_calls(parent))
    blocks: tuple[Block, ...] = (*waiting, directive)
    return (Message("user", blocks),)


def is_fork(messages: Sequence[Message]) -> bool:
    """Whether these are the messages of a fork. Looks back to the last one that no model or tool wrote."""
    for message in reversed(messages):
        texts = [block for block in message.blocks if isinstance(block, Text)]
        if message.role != "assistant" and texts:
            return texts[-1].text.startswith(FORK_MARK)
    return False


def find_open_calls(messages: Sequence[Message]) -> tuple[ToolUse, ...]:
    """The calls of the last answer that have no result yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == "assistant":
            uses = (block for block in message.blocks if isinstance(block, ToolUse))
            return tuple(use for use in uses if use.id not in answered)
        answered.update(block.tool_use_id for block in message.blocks if isinstance(block, ToolResult))
    return ()


def takes_parallel_calls(params: JsonObject) -> bool:
    """Whether one answer may call several tools, as parameters of a request say."""
    choice = params.get("tool_choice")
    is_single = isinstance(choice, JsonObject) and choice.get("disable_parallel_tool_use") is True
    return not is_single and params.get("parallel_tool_calls") is not False


def render_denial(use: ToolUse, reason: str) -> ToolResult:
    """The result of a denied call."""
    return ToolResult(use.id, reason, is_error=True)


def thinking_budget(params: JsonObject) -> int:
    """The tokens a request sets aside for thinking, which its `max_tokens` must exceed; 0: none."""
    thinking = params.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, JsonObject) else None
    return budget if isinstance(budget, int) and not isinstance(budget, bool) else 0


# A message's id is the first line of its block in the history. It proves delivery: a reader that died before
# acknowledging the message finds the id there, and delivers nothing twice.

MAIL_MARK = "<sevenfold-mail "
LEAD_NAME = "lead"
"""Whoever started an agent, as the agent calls them: it need not know more of their name."""

MAX_SUMMARY_CHARS = 120
"""A line on a narrow terminal, and a half."""

_MARKED = re.compile(r"<sevenfold-mail ([A-Za-z0-9_-]{1,64})>\n")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
"""What can be a file's name and a mailbox's, and is easily typed."""


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """An agent of this project, in this process or another."""

    name: str


@dataclass(frozen=True, slots=True)
class BroadcastAddress:
    """All running agents except the sender."""


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """Another session on this machine."""

    path: str


@dataclass(frozen=True, slots=True)
class BridgeAddress:
    """A session somewhere else."""

    id: str


Address: TypeAlias = AgentAddress | BroadcastAddress | SocketAddress | BridgeAddress


def parse_address(text: str) -> Address:
    """The receiver: a name, `*`, `uds:<path>` or `bridge:<id>`."""
    if text == "*":
        return BroadcastAddress()
    kind, colon, rest = text.partition(":")
    if colon and kind == "uds" and rest.startswith("/"):
        return SocketAddress(rest)
    if colon and kind == "bridge" and rest:
        return BridgeAddress(rest)
    return AgentAddress(check_agent_name(text))


def check_agent_name(name: str) -> str:
    """The name itself, if an agent can have it."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:80]!r} names no agent; use a name of up to 64 letters, digits, '.', '_' and '-', "
            "or *, uds:/absolute/path or bridge:id"
        )
    return name


@dataclass(frozen=True, slots=True)
class NoteMessage:
    """Plain words."""

    text: str


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """Please end when you can."""

    request_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ShutdownResponse:
    """Yes, I end now; or no, and why."""

    request_id: str
    is_agreed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlanApprovalRequest:
    """May I do this?"""

    request_id: str
    plan: str


@dataclass(frozen=True, slots=True)
class PlanApprovalResponse:
    """Go ahead; or not so, and what to change."""

    request_id: str
    is_approved: bool
    feedback: str = ""


MailMessage: TypeAlias = (
    NoteMessage | ShutdownRequest | ShutdownResponse | PlanApprovalRequest | PlanApprovalResponse
)

MAIL_TYPES = (
    "note",
    "shutdown_request",
    "shutdown_response",
    "plan_approval_request",
    "plan_approval_response",
)


def write_mail_message(letter: MailMessage) -> JsonObject:
    """Its JSON form, as it is sent."""
    match letter:
        case NoteMessage():
            fields: dict[str, Json] = {"type": "note", "text": letter.text}
        case ShutdownRequest():
            fields = {"type": "shutdown_request", "request_id": letter.request_id, "reason": letter.reason}
        case ShutdownResponse():
            fields = {
                "type": "shutdown_response",
                "request_id": letter.request_id,
                "approve": letter.is_agreed,
                "reason": letter.reason,
            }
        case PlanApprovalRequest():
            fields = {"type": "plan_approval_request", "request_id": letter.request_id, "plan": letter.plan}
        case PlanApprovalResponse():
            fields = {
                "type": "plan_approval_response",
                "request_id": letter.request_id,
                "approve": letter.is_approved,
                "feedback": letter.feedback,
            }
    return JsonObject(fields)


def read_mail_message(wire: JsonObject) -> MailMessage:
    """Read the JSON form; `WireError` if it is not one of ours."""
    match wire.get("type"):
        case "note":
            return NoteMessage(_text(wire, "text"))
        case "shutdown_request":
            return ShutdownRequest(_request_id(wire), _text(wire, "reason", ""))
        case "shutdown_response":
            return ShutdownResponse(_request_id(wire), _switch(wire, "approve"), _text(wire, "reason", ""))
        case "plan_approval_request":
            return PlanApprovalRequest(_request_id(wire), _text(wire, "plan"))
        case "plan_approval_response":
            return PlanApprovalResponse(
                _request_id(wire), _switch(wire, "approve"), _text(wire, "feedback", "")
            )
        case other:
            raise WireError(f"a message of type {other!r} is not known; use one of {', '.join(MAIL_TYPES)}")


def summarize_mail(letter: MailMessage, given: str = "") -> str:
    """A few words for display: the sender's own, or made from what is said."""
    words = given or _said(letter)
    line = " ".join(words.split())
    return line if len(line) <= MAX_SUMMARY_CHARS else f"{line[: MAX_SUMMARY_CHARS - 1]}…"


def render_mail(mail_id: str, sender: str, letter: MailMessage) -> str:
    """How a message enters the history: named, fenced, and as somebody else's words."""
    head = (
        f"{MAIL_MARK}{mail_id}>\nA message from {' '.join(sender.split())!r}, another agent and not the user"
    )
    match letter:
        case NoteMessage():
            return f"{head}:\n{fence_text('message', letter.text)}"
        case ShutdownRequest():
            why = f"\n{fence_text('reason', letter.reason)}" if letter.reason else ""
            ask = _ask_for(letter.request_id, "shutdown_response", "reason")
            return f"{head}, who asks you to end.{why}\n{ask}"
        case ShutdownResponse():
            said = "agrees to end" if letter.is_agreed else "will not end now"
            why = f"\n{fence_text('reason', letter.reason)}" if letter.reason else ""
            return f"{head}, who {said} (request {letter.request_id}).{why}"
        case PlanApprovalRequest():
            ask = _ask_for(letter.request_id, "plan_approval_response", "feedback")
            return f"{head}, who asks you to approve a plan:\n{fence_text('plan', letter.plan)}\n{ask}"
        case PlanApprovalResponse():
            said = "approved: carry it out" if letter.is_approved else "not approved: change it and ask again"
            more = f"\n{fence_text('feedback', letter.feedback)}" if letter.feedback else ""
            return f"{head}, about your plan (request {letter.request_id}): {said}.{more}"


def find_mail_ids(messages: Sequence[Message]) -> Iterator[str]:
    """The ids of the messages that these hold, each as it comes."""
    for message in messages:
        # A model and a tool can write any text: only what we put there ourselves proves something.
        for block in message.blocks if message.role != "assistant" else ():
            found = _MARKED.match(block.text) if isinstance(block, Text) else None
            if found:
                yield found[1]


@dataclass(frozen=True, slots=True)
class _Asked:
    request_id: str
    who: str
    is_plan: bool


@dataclass(slots=True)
class PendingRequests:
    """Requests that wait for an answer. Only the one who was asked can give it, and once."""

    _asked: set[_Asked] = field(default_factory=set["_Asked"])

    def ask(self, sent: MailMessage, to: str) -> None:
        """Remember what was sent, if it is a request."""
        if isinstance(sent, (ShutdownRequest, PlanApprovalRequest)):
            self._asked.add(_Asked(sent.request_id, to, isinstance(sent, PlanApprovalRequest)))

    def settle(self, received: MailMessage, sender: str) -> bool:
        """False for an answer to no request of ours. A request that is answered is settled."""
        if not isinstance(received, (ShutdownResponse, PlanApprovalResponse)):
            return True
        asked = _Asked(received.request_id, sender, isinstance(received, PlanApprovalResponse))
        if asked not in self._asked:
            return False
        self._asked.remove(asked)
        return True


def _ask_for(request_id: str, kind: str, words: str) -> str:
    return (
        f'Answer with send_message and the message {{"type": "{kind}", "request_id": "{request_id}", '
        f'"approve": true or false, "{words}": "…"}}.'
    )


def _said(letter: MailMessage) -> str:
    match letter:
        case NoteMessage():
            return letter.text
        case ShutdownRequest():
            return f"asks to end: {letter.reason}" if letter.reason else "asks to end"
        case ShutdownResponse():
            return "ends" if letter.is_agreed else f"goes on: {letter.reason}"
        case PlanApprovalRequest():
            return f"asks for approval: {letter.plan}"
        case PlanApprovalResponse():
            return "approves the plan" if letter.is_approved else f"wants another plan: {letter.feedback}"


def _request_id(wire: JsonObject) -> str:
    value = _text(wire, "request_id")
    if not _NAME.fullmatch(value):
        raise WireError(f"request_id is {value[:80]!r}; use the one that the request came with")
    return value


def _text(wire: JsonObject, key: str, default: str | None = None) -> str:
    value = wire.get(key, default)
    if not isinstance(value, str):
        raise WireError(f"{key} is {value!r}; expected text")
    return value


def _switch(wire: JsonObject, key: str) -> bool:
    value = wire.get(key)
    if not isinstance(value, bool):
        raise WireError(f"{key} is {value!r}; expected true or false")
    return value
