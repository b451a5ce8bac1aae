"""What a request is for, where it goes, and which conversation it belongs to. Pure: a body and headers in,
facts out.

Two messages are equal if they say the same: a text and a list with that text as its only block are equal, and
`cache_control` and the order of keys do not count.
"""

from __future__ import annotations

import json
import marshal
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from sevenfold.core.errors import InputError
from sevenfold.proxy.headers import is_local_host
from sevenfold.proxy.profiles import AgentProfile

WireFormat: TypeAlias = Literal["messages", "chat", "responses", "other"]
RequestPurpose: TypeAlias = Literal["turn", "sub-agent", "side request", "compaction", "count", "other"]
"""`turn`: the agent's main conversation. `side request`: a title, a suggestion, a probe."""

Fields: TypeAlias = dict[str, Any]
"""A JSON object as it was parsed."""
MAX_KNOWN_DIGESTS = 50_000
"""A few MB; the messages of about a hundred long conversations."""
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
    moved: str = ""
    """Where a block stands that the agent puts into another message each time, and what it says."""

    @property
    def is_model_call(self) -> bool:
        return self.wire != "other" and self.purpose != "count"


UNREAD_REQUEST = RequestFacts(wire="other", purpose="other")


def find_wire_format(path: str) -> WireFormat:
    if path.endswith(("/v1/messages", "/messages/count_tokens")):
        return "messages"
    if path.endswith("/chat/completions"):
        return "chat"
    return "responses" if path.endswith("/responses") else "other"


ANTHROPIC_API, OPENAI_API = "https://api.anthropic.com", "https://api.openai.com"
_OWN_VERSION = re.compile(r"/v\d+[a-z\d]*$")


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Where requests go to."""

    anthropic: str = ANTHROPIC_API
    openai: str = OPENAI_API

    def __post_init__(self) -> None:
        for url in (self.anthropic, self.openai):
            try:
                parts = urlsplit(url)
                is_address = parts.scheme in ("http", "https") and parts.netloc and parts.port != 0
                is_address = is_address and not parts.username and url.isprintable()
            except ValueError:  # a port that is no number, brackets around no address
                is_address = False
            if not is_address:
                raise InputError(
                    f"the upstream {url!r:.200} is no address; expected http(s)://HOST[:PORT][/PATH]"
                )

    def find(self, path: str, headers: Mapping[str, str], profile: AgentProfile | None = None) -> str:
        wire = find_wire_format(path)  # An Anthropic client names its key as below; OpenAI's as a bearer.
        is_messages = wire == "messages" or "anthropic-version" in headers or "x-api-key" in headers
        if wire == "other" and profile is not None and len(profile.apis) == 1:
            is_messages = "anthropic" in profile.apis  # a probe has no header that tells
        return (self.anthropic if is_messages else self.openai).rstrip("/")

    def leads_to(self, port: int) -> bool:
        """Whether requests would come back to this port of this machine."""
        parts = [urlsplit(url) for url in (self.anthropic, self.openai)]
        return any(one.port == port and is_local_host(one.netloc) for one in parts)

    def make_url(self, path: str, headers: Mapping[str, str], profile: AgentProfile | None = None) -> str:
        """The address for a path. A server that has a version of its own gets none of ours."""
        base = self.find(path, headers, profile)
        own = _OWN_VERSION.search(base)
        for version in (own[0], "/v1") if own else ():
            if path == version or path.startswith(f"{version}/"):
                return base + path[len(version) :]
        return base + path


def read_request(
    path: str, headers: Mapping[str, str], body: bytes, profile: AgentProfile | None
) -> RequestFacts:
    """What a request is. One that cannot be read is `other`: it is forwarded all the same."""
    fields = read_fields_of(path, body)
    return UNREAD_REQUEST if fields is None else describe_request(path, headers, fields, profile)


def read_fields_of(path: str, body: bytes) -> Fields | None:
    """The body of a model call; None where it is none, or cannot be read."""
    return _read_object(body) if find_wire_format(path) != "other" else None


@dataclass(slots=True)
class DigestCache:
    """Digests of what was said before. Each request says all of it again, mostly in the same form, and the
    form that equal messages share takes long to make. For any thread."""

    limit: int = MAX_KNOWN_DIGESTS
    _known: OrderedDict[bytes, str] = field(default_factory=OrderedDict[bytes, str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def digest(self, message: Any) -> str:
        """What `digest_message` says of a message."""
        try:
            # Version 2 writes equal values as equal bytes; later ones write references to shared objects.
            form = marshal.dumps(message, 2)
        except ValueError:  # nested too deeply
            return digest_message(message)
        key = blake2b(form, digest_size=16).digest()
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        made = digest_message(message)
        with self._lock:
            self._known[key] = made
            while len(self._known) > self.limit:
                self._known.popitem(last=False)
        return made


def describe_request(
    path: str,
    headers: Mapping[str, str],
    fields: Fields,
    profile: AgentProfile | None,
    *,
    digests: DigestCache | None = None,
) -> RequestFacts:
    digest_said = digests.digest if digests else digest_message
    wire = find_wire_format(path)
    said = list_said(wire, fields)
    instructions = [message for message in said if is_instruction(wire, message)]
    moving = profile.moving_tag if profile else ""
    return RequestFacts(
        wire=wire,
        purpose=_find_purpose(path, headers, fields, said, profile),
        model=_text(fields.get("model")),
        session=_find_session(headers, profile),
        system=_digest([_said(fields.get("system", fields.get("instructions"))), *map(_said, instructions)]),
        tools=digest_said(fields.get("tools")),
        messages=tuple(digest_said(one.message) for one in list_kept(wire, said, moving)),
        moved=_find_moved(said, moving) if moving else "",
    )


def _find_moved(said: Sequence[Any], tag: str) -> str:
    found = ((at, split_moving(message, tag).block) for at, message in enumerate(said))
    return next((_digest([at, block]) for at, block in found if block), "")


def list_said(wire: WireFormat, fields: Fields) -> list[Any]:
    """The messages of a body, or its input items; a lone text is a message."""
    return _list(fields.get("input" if wire == "responses" else "messages"))


def is_instruction(wire: WireFormat, message: Any) -> bool:
    """Whether a message is a part of the system prompt."""
    return wire == "chat" and _role(message) in _SYSTEM_ROLES


def digest_message(message: Any) -> str:
    """The same for two messages that say the same."""
    return _digest(_said(message))


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A message without the block that its agent moves."""

    at: int
    """Its place in the body; of one that the block splits in two, the place of the second part."""
    message: Any
    is_joined: bool = False
    """Whether it is put together from two parts."""


def list_kept(wire: WireFormat, said: Sequence[Any], tag: str = "") -> list[KeptMessage]:
    """What is said beside the system prompt, without the block in this tag. Where the block splits a message
    of the model in two, it is one again, as in the requests that come later."""
    kept: list[KeptMessage] = []
    is_behind_block = False
    for at, message in enumerate(said):
        if is_instruction(wire, message):
            continue
        left = split_moving(message, tag).message if tag else message
        if left is None:
            is_behind_block = True
            continue
        joined = _join(kept[-1].message, left) if is_behind_block and kept else None
        if joined is None:
            kept.append(KeptMessage(at, left))
        else:
            kept[-1] = KeptMessage(at, joined, is_joined=True)
        is_behind_block = False
    return kept


def _join(first: Any, second: Any) -> Any:
    """Two parts of one message of the model; None where they are none."""
    if not _role(first) == _role(second) == "assistant":
        return None
    one, other = _object(first), _object(second)
    if not other.get("content"):  # Chat Completions: words in one part, calls in the other
        return {**one, **{key: value for key, value in other.items() if value is not None}}
    blocks = [*_as_blocks(one.get("content")), *_as_blocks(other["content"])]
    return {**one, **other, "content": blocks}


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("list[Any]", content) if isinstance(content, list) else []


@dataclass(frozen=True, slots=True)
class SplitMessage:
    """A message, and a block in it that its agent moves from message to message."""

    message: Any
    """Without the block; None where nothing else is in it."""
    block: str = ""


def split_moving(message: Any, tag: str) -> SplitMessage:
    """Take out the text in this tag, which is no part of what is said."""
    fields, opening, closing = _object(message), f"<{tag}>", f"</{tag}>"
    content = fields.get("content")
    if _role(message) != "user":
        return SplitMessage(message)
    if isinstance(content, str) and content.startswith(opening):
        text, _, rest = content.partition(closing)
        rest = rest.lstrip("\n")
        return SplitMessage({**fields, "content": rest} if rest else None, text + closing)
    if not isinstance(content, list):
        return SplitMessage(message)
    blocks = cast("list[Any]", content)
    texts = [text for block in blocks if (text := _text(_object(block).get("text"))).startswith(opening)]
    if not texts:
        return SplitMessage(message)
    kept = [block for block in blocks if not _text(_object(block).get("text")).startswith(opening)]
    return SplitMessage({**fields, "content": kept} if kept else None, texts[-1])


def _find_purpose(
    path: str, headers: Mapping[str, str], fields: Fields, said: Sequence[Any], profile: AgentProfile | None
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
    if profile and profile.side_phrases and _has_side_phrase(fields, said, profile):
        return "side request"
    return "sub-agent" if profile and headers.get(profile.agent_header or "-") else "turn"


def _has_side_phrase(fields: Fields, said: Sequence[Any], profile: AgentProfile) -> bool:
    """Whether the system prompt, which may be the first message, asks for something else than a turn."""
    instructions = [_object(one).get("content") for one in said[:1] if _role(one) in _SYSTEM_ROLES]
    prompts = (_said(one) for one in (fields.get("system"), *instructions))
    system = " ".join(" ".join(_flatten(one)) for one in prompts)
    words = " ".join(system.split())
    return any(phrase in words for phrase in profile.side_phrases)


def _flatten(value: Any) -> list[str]:
    """The texts of a content in the form that equal ones share."""
    blocks = cast("list[Any]", value) if isinstance(value, list) else [value]
    texts = (_object(block).get("text", block) for block in blocks)
    return [text for text in texts if isinstance(text, str)]


def _wants_schema(fields: Fields) -> bool:
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
    # Where an agent names a session and a thread in it, both tell conversations apart.
    named = (headers.get(name, "") for name in profile.session_headers)
    session = "/".join(dict.fromkeys(value for value in named if value))
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
        fields = cast("Fields", message)
        return {key: _said(value) for key, value in fields.items() if key != "cache_control"}
    return message


def _is_plain_text(block: Any) -> bool:
    return isinstance(block, dict) and set(cast("Fields", block)) == {"type", "text"}


def _last_text(said: Sequence[Any]) -> str:
    """What was said last, but for the context of hooks, which some agents put behind it."""
    last = next((message for message in reversed(said) if _role(message) not in _SYSTEM_ROLES), None)
    content = _said(_object(last).get("content"))
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _digest(value: Any) -> str:
    if not value:
        return ""
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(data.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _read_object(data: bytes) -> Fields | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("Fields", value) if isinstance(value, dict) else None


def _object(value: Any) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return cast("list[Any]", value) if isinstance(value, list) else []


def _role(message: Any) -> str:
    return _text(_object(message).get("role"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
