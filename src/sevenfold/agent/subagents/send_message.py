"""The tool that sends a message from one agent to another."""

from __future__ import annotations

from typing import Protocol
from uuid import uuid4

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_string, object_schema
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.forks.mail import (
    MAIL_TYPES,
    Address,
    MailMessage,
    NoteMessage,
    parse_address,
    read_mail_message,
)

SEND_MESSAGE_NAME = "send_message"

_SPEC = ToolSpec(
    SEND_MESSAGE_NAME,
    "Say something to another agent. `to` is its name; `lead` for whoever started you; `*` for everyone who "
    "runs; or uds:<path> for another session on this machine. A running agent hears it when its next round "
    "begins; a stopped one is taken up again from where it was. Nobody answers inside this call: an answer "
    "comes as a message. What you write as plain text is seen by nobody but your own user or starter.",
    object_schema(
        {
            "to": {"type": "string", "description": "a name, lead, *, uds:<path> or bridge:<id>"},
            "summary": {"type": "string", "description": "the message in 3 to 10 words, for display"},
            "message": {
                "description": "text, or one of the structured messages",
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {
                            "type": {"enum": list(MAIL_TYPES[1:])},
                            "request_id": {"type": "string"},
                            "approve": {"type": "boolean"},
                            "reason": {"type": "string"},
                            "feedback": {"type": "string"},
                            "plan": {"type": "string"},
                        },
                        "required": ["type"],
                    },
                ],
            },
        },
        ("to", "message"),
    ),
)


class MessageRouter(Protocol):
    """Whoever can bring a message to an address."""

    async def send(self, sender: str, to: Address, letter: MailMessage, summary: str) -> str:
        """What became of it, in a line for the sender."""
        ...


class SendMessageTool:
    """One agent's pen. It cannot sign with another's name."""

    def __init__(self, courier: MessageRouter, sender: str) -> None:
        self._courier, self._sender = courier, sender

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def need(self, given: JsonObject, _place: ToolContext, /) -> AccessRequest:
        to = get_string(given, "to")
        parse_address(to)
        self._letter(given)
        return AccessRequest(kind="message", said=f"message to {to}: {get_string(given, 'summary', '')}")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress, /) -> ToolOutput:
        to, letter = parse_address(get_string(given, "to")), self._letter(given)
        return ToolOutput(
            await self._courier.send(self._sender, to, letter, get_string(given, "summary", ""))
        )

    def _letter(self, given: JsonObject) -> MailMessage:
        message = given.get("message")
        if isinstance(message, str):
            return NoteMessage(message)
        if not isinstance(message, JsonObject):
            raise InputError("message is missing; expected text or one of the structured messages")
        if str(message.get("type")).endswith("_request") and "request_id" not in message:
            message = JsonObject({**message, "request_id": uuid4().hex[:12]})
        return read_mail_message(message)
