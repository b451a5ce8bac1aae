"""Layer 7's messages: who is meant by an address, what a message may be, and how it reads in a history.

A message's id stands in the history as the first line of its block. That line is the proof that it was
delivered: a reader that died before acknowledging it finds it there, and delivers nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sevenfold.core.errors import InputError, WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Message, Text
from sevenfold.core.text.safe_text import fence_text

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
    """Who is meant: a name, `*`, `uds:<path>` or `bridge:<id>`."""
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
MailRequest: TypeAlias = ShutdownRequest | PlanApprovalRequest
MailResponse: TypeAlias = ShutdownResponse | PlanApprovalResponse

MAIL_TYPES = (
    "note",
    "shutdown_request",
    "shutdown_response",
    "plan_approval_request",
    "plan_approval_response",
)


def write_mail_message(letter: MailMessage) -> JsonObject:
    """Its JSON form, as it travels."""
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
    """What a JSON form says; `WireError` where it is none of ours."""
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

    def ask(self, request: MailRequest, to: str) -> None:
        self._asked.add(_Asked(request.request_id, to, isinstance(request, PlanApprovalRequest)))

    def settle(self, answer: MailResponse, sender: str) -> bool:
        """Whether this answers a request of ours; it is settled then."""
        asked = _Asked(answer.request_id, sender, isinstance(answer, PlanApprovalResponse))
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
