"""What Claude Code writes of its requests since 2.1.325: what was sent, and what all of it has cost.

- `api-request-shape`: the system prompt and the tools, once for each version of them.
- `api-request`: one for each request: parameters, the shape, and the hashes of its messages, less those that
  the request before it had. The messages themselves are in `api-request-blob` lines.
- `cost-state`: running totals by model. They include calls that no other line shows, such as a compaction's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sevenfold.core.usage import MAX_COUNT, TokenCounts, Usage
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    CallId,
    ConversationId,
    ForeignRequest,
    ForeignSideCall,
    JsonFields,
    RequestChange,
    as_fields,
    get_int,
    get_list,
    get_name,
    get_object,
    get_text,
    get_time,
)

_UNCOMPARED = frozenset({"model", "max_tokens", "metadata"})
"""Parameters that are no part of the cache's key, or are told apart elsewhere."""

_MAX_KEPT_REQUESTS = 64
"""A request refers to the one before it, and an answer to one of a few that are under way."""
_T = TypeVar("_T")
_MAX_KEPT_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class _Shape:
    system: str
    tools: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What a request is compared by."""

    at: datetime | None
    shape: str
    parameters: str
    messages: tuple[str, ...]


class SentRequests:
    """Follows the requests of one file. One counts when its answer comes: others are for titles and such."""

    __slots__ = ("_last", "_prompts", "_recent", "_shapes")

    def __init__(self) -> None:
        self._shapes: dict[str, _Shape] = {}
        self._recent: dict[str, _Request] = {}
        """By id, as others refer to them."""
        self._last: dict[ConversationId, str] = {}
        """The request that was answered last."""
        self._prompts: dict[ConversationId, str] = {}

    def note_shape(self, line: JsonFields) -> None:
        shape = get_object(line, "shape")
        texts = (get_text(as_fields(block), "text") for block in get_list(shape, "system"))
        self._shapes[get_name(line, "shapeHash")] = _Shape(
            "\n".join(texts), "\n".join(_dump(tool) for tool in get_list(shape, "tools"))
        )
        _forget_oldest(self._shapes)

    def note_request(self, line: JsonFields) -> None:
        params = get_object(line, "params")
        base = self._recent.get(get_name(line, "base"))
        kept = base.messages[: get_int(line, "keep") or 0] if base else ()
        self._recent[get_name(line, "id")] = _Request(
            at=get_time(line, "timestamp"),
            shape=get_name(line, "shapeHash"),
            parameters=_dump({key: value for key, value in params.items() if key not in _UNCOMPARED}),
            messages=(*kept, *(item for item in get_list(line, "tail") if isinstance(item, str))),
        )
        _forget_oldest(self._recent)

    def find_answered(self, id_: str, conversation: ConversationId) -> Iterator[ForeignRequest]:
        """The request that a line of an answer refers to; nothing for its other lines."""
        now, before = self._recent.get(id_), self._recent.get(self._last.get(conversation, ""))
        if now is None or self._last.get(conversation) == id_:
            return
        self._last[conversation] = id_
        shape = self._shapes.get(now.shape)
        is_new = shape is not None and self._prompts.get(conversation) != now.shape
        if is_new:
            self._prompts[conversation] = now.shape
        yield ForeignRequest(
            conversation=conversation,
            at=now.at,
            changed=self._compare(before, now) if before else "",
            system=shape.system if shape and is_new else "",
            tools=shape.tools if shape and is_new else "",
        )

    def _compare(self, before: _Request, now: _Request) -> RequestChange:
        old, new = self._shapes.get(before.shape), self._shapes.get(now.shape)
        if old and new and old.system != new.system:
            return "system prompt"
        if old and new and old.tools != new.tools:
            return "tools"
        if before.parameters != now.parameters:
            return "parameters"
        return "" if now.messages[: len(before.messages)] == before.messages else "history"


def _forget_oldest(kept: dict[str, _T]) -> None:
    while len(kept) > _MAX_KEPT_REQUESTS:
        del kept[next(iter(kept))]


def _dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


class CostLog:
    """Finds what compactions cost: what the totals grew by around one, less the calls that the log shows.

    The totals include sub-agents, whose files are read and billed by themselves. Where one ran at the same
    time, nothing is said of the compaction: what it cost would be counted twice.
    """

    __slots__ = ("_boundary", "_calls", "_has_agent", "_shown", "_totals")

    def __init__(self) -> None:
        self._totals: dict[str, TokenCounts] = {}
        self._calls: dict[str, tuple[str, Usage]] = {}
        self._boundary: tuple[str, datetime | None] | None = None
        self._shown: set[str] = set()
        """Sub-agents whose calls are in this file."""
        self._has_agent = False
        """Whether one ran since the last totals whose calls are elsewhere."""

    def note_agent(self, agent: str, *, is_shown: bool) -> None:
        if is_shown and len(self._shown) < _MAX_KEPT_CALLS:
            self._shown.add(agent)
        self._has_agent = self._has_agent or (bool(agent) and agent not in self._shown)

    def note_call(self, call: str, model: str, usage: Usage | None) -> None:
        if usage is not None and len(self._calls) < _MAX_KEPT_CALLS:
            self._calls[call] = (model, usage)

    def note_compaction(self, key: str, at: datetime | None) -> None:
        self._boundary = (key, at)

    def note_totals(self, line: JsonFields) -> Iterator[ForeignSideCall]:
        now = {
            name[:200]: _read_totals(as_fields(counts))
            for name, counts in get_object(line, "modelUsage").items()
        }
        before, calls, boundary, has_agent = self._totals, self._calls, self._boundary, self._has_agent
        self._totals, self._calls, self._boundary, self._has_agent = now, {}, None, False
        if boundary is None or has_agent:
            return
        key, at = boundary
        for model, counts in now.items():
            logged = [
                usage for name, usage in calls.values() if name == model or name.startswith(f"{model}-")
            ]
            rest = _subtract(counts, [before.get(model, TokenCounts()), *logged])
            if rest is not None and rest.prompt:
                yield ForeignSideCall(
                    conversation=MAIN_CONVERSATION,
                    at=at,
                    call=CallId(f"compaction {key} {model}"),
                    model=model,
                    usage=rest,
                )


def _read_totals(counts: JsonFields) -> TokenCounts:
    written = get_int(counts, "cacheCreationInputTokens") or 0
    hour = min(get_int(counts, "cacheCreationEphemeral1hInputTokens") or 0, written)
    return TokenCounts(
        fresh=get_int(counts, "inputTokens") or 0,
        read=get_int(counts, "cacheReadInputTokens") or 0,
        written_5m=written - hour,
        written_1h=hour,
        output=get_int(counts, "outputTokens") or 0,
        thinking=get_int(counts, "thinkingTokens") or 0,
    )


def _subtract(whole: TokenCounts, parts: list[TokenCounts]) -> Usage | None:
    """What is left; None where the parts are no parts of it, as after a restart that began to count anew."""
    left = {
        name: getattr(whole, name) - sum(getattr(part, name) for part in parts)
        for name in ("fresh", "read", "written_5m", "written_1h", "output")
    }
    if not all(0 <= count <= MAX_COUNT for count in left.values()):
        return None
    return Usage(**left)
