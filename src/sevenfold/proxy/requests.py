"""What a request is for, and which conversation it belongs to. Pure: a body and headers in, facts out.

Two messages are equal if they say the same: a text and a list with that text as its only block are equal, and
`cache_control` and the order of keys do not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, cast

from sevenfold.proxy.profiles import AgentProfile

WireFormat: TypeAlias = Literal["messages", "chat", "responses", "other"]
RequestPurpose: TypeAlias = Literal["turn", "sub-agent", "side request", "compaction", "count", "other"]
"""`turn`: the agent's main conversation. `side request`: a title, a suggestion, a probe."""

_Fields: TypeAlias = dict[str, Any]
_SYSTEM_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """A request without its contents: what it is for, and digests that show where another one differs."""

    wire: WireFormat
    purpose: RequestPurpose
    model: str = ""
    session: str = ""
    """As the agent's own headers name it; empty where they do not."""
    system: str = ""
    tools: str = ""
    messages: tuple[str, ...] = ()
    """One digest a message."""

    @property
    def is_model_call(self) -> bool:
        return self.wire != "other" and self.purpose != "count"


def find_wire_format(path: str) -> WireFormat:
    if path.endswith(("/v1/messages", "/messages/count_tokens")):
        return "messages"
    if path.endswith("/chat/completions"):
        return "chat"
    return "responses" if path.endswith("/responses") else "other"


def read_request(
    path: str, headers: Mapping[str, str], body: bytes, profile: AgentProfile | None
) -> RequestFacts:
    """What a request is. One that cannot be read is `other`: it is forwarded all the same."""
    wire = find_wire_format(path)
    fields = _read_object(body) if wire != "other" else None
    if fields is None:
        return RequestFacts(wire="other", purpose="other")
    said = _list(fields.get("input" if wire == "responses" else "messages"))
    instructions = [message for message in said if _role(message) in _SYSTEM_ROLES and wire == "chat"]
    return RequestFacts(
        wire=wire,
        purpose=_find_purpose(path, headers, fields, said, profile),
        model=_text(fields.get("model")),
        session=_find_session(headers, profile),
        system=_digest([_said(fields.get("system", fields.get("instructions"))), *map(_said, instructions)]),
        tools=_digest(fields.get("tools")),
        messages=tuple(_digest(_said(message)) for message in said if message not in instructions),
    )


def _find_purpose(
    path: str, headers: Mapping[str, str], fields: _Fields, said: Sequence[Any], profile: AgentProfile | None
) -> RequestPurpose:
    if path.endswith("/count_tokens"):
        return "count"
    if fields.get("max_tokens") == 0 or _wants_schema(fields):
        return "side request"
    if profile and not fields.get("tools") and profile.has_tools:
        return "side request"
    kind = _read_codex_kind(headers)
    if kind and kind != "turn":
        return "compaction" if "compact" in kind else "side request"
    last = _last_text(said)
    if profile and any(phrase in last for phrase in profile.compaction_phrases):
        return "compaction"
    return "sub-agent" if profile and headers.get(profile.agent_header or "-") else "turn"


def _wants_schema(fields: _Fields) -> bool:
    """Whether the answer is to be data and not words."""
    output = _object(fields.get("output_config"))
    forms = (output.get("format"), fields.get("response_format"), _object(fields.get("text")).get("format"))
    return any(_object(form).get("type") == "json_schema" for form in forms)


def _read_codex_kind(headers: Mapping[str, str]) -> str:
    found = _read_object(headers.get("x-codex-turn-metadata", "").encode())
    return _text(found.get("request_kind")) if found else ""


def _find_session(headers: Mapping[str, str], profile: AgentProfile | None) -> str:
    if profile is None:
        return ""
    named = (headers.get(name, "") for name in profile.session_headers)
    session = next((value for value in named if value), "")
    agent = headers.get(profile.agent_header, "") if profile.agent_header else ""
    return f"{session}/{agent}" if agent else session


def _said(message: Any) -> Any:
    """The message in the one form that equal messages share."""
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        blocks = [_said(block) for block in cast("list[Any]", message)]
        return blocks[0]["text"] if len(blocks) == 1 and _is_plain_text(blocks[0]) else blocks
    if isinstance(message, dict):
        fields = cast("_Fields", message)
        return {key: _said(value) for key, value in fields.items() if key != "cache_control"}
    return message


def _is_plain_text(block: Any) -> bool:
    return isinstance(block, dict) and set(cast("_Fields", block)) == {"type", "text"}


def _last_text(said: Sequence[Any]) -> str:
    content = _said(_object(said[-1]).get("content")) if said else ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _digest(value: Any) -> str:
    if not value:
        return ""
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(data.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _read_object(data: bytes) -> _Fields | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("_Fields", value) if isinstance(value, dict) else None


def _object(value: Any) -> _Fields:
    return cast("_Fields", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return cast("list[Any]", value) if isinstance(value, list) else []


def _role(message: Any) -> str:
    return _text(_object(message).get("role"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
