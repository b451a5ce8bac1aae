"""Claude Code's transcripts, as its versions from 1 to 2.1 wrote them.

One line a content block, the call's usage on each. Sub-agents are sidechains of their parent's file, or files
of their own that the parent's file mirrors in progress lines. What `claude -p --output-format stream-json`
prints is read too.
"""

from __future__ import annotations

from collections.abc import Iterator

from sevenfold.core.errors import WireError
from sevenfold.core.messages import ToolUseId
from sevenfold.core.usage import Usage, read_usage
from sevenfold.store.foreign.entries import (
    MAIN,
    NO_KEY,
    Answered,
    CallId,
    Cleared,
    Compacted,
    Entry,
    ForeignSession,
    LaneId,
    LineKey,
    Said,
    Source,
    Unknown,
)
from sevenfold.store.foreign.fields import (
    NOTHING,
    Fields,
    as_fields,
    blocks,
    inner,
    listed,
    moment,
    name,
    text,
    whole,
)

CHATTER = frozenset(
    [
        *("agent-name", "ai-title", "api-request", "api-request-blob", "api-request-shape", "atis-latch"),
        *("cost-state", "custom-title", "file-history-snapshot", "last-prompt", "mode", "pr-link"),
        *("queue-operation", "rate_limit_event", "result", "stream_event", "summary", "tag", "tools-used"),
    ]
)
"""Lines about the session that are no part of the conversation."""

PROGRAM_TEXT = (
    "<command-",
    "<local-command-",
    "<system-reminder>",
    "<bash-",
    "[Request interrupted",
    "Caveat: ",
)
"""How text begins that the program put in on the user's behalf."""

NO_CALL = "<synthetic>"
"""The model of an answer that Claude Code wrote itself, such as an error message."""


class ClaudeReader:
    """Lines in, entries out. It remembers which sidechain a line belongs to, and the last usage it parsed."""

    __slots__ = ("_chains", "_session", "_usage", "_usage_wire")

    def __init__(self) -> None:
        self._session = ForeignSession()
        self._chains: dict[str, LaneId] = {}
        self._usage: Usage | None = None
        self._usage_wire: Fields = NOTHING

    def read(self, line: Fields) -> Iterator[Entry]:
        """What one line says; usually one entry, or none."""
        kind = name(line, "type")
        lane = self._lane(line)
        if kind in {"user", "assistant", "system", "attachment"}:
            yield from self._introduce(line, lane)
        match kind:
            case "user":
                yield from _said(line, lane)
            case "assistant":
                yield from self._answered(line, lane)
            case "system":
                yield from _boundary(line, lane)
            case "attachment":
                yield from _attached(line, lane)
            case "progress":
                yield from self._mirrored(inner(line, "data"))
            case _ if kind not in CHATTER:
                yield Unknown(kind or "(no type)")
            case _:
                pass

    def _introduce(self, line: Fields, lane: LaneId) -> Iterator[ForeignSession]:
        if lane != MAIN and self._session.session:
            return
        found = ForeignSession(
            name(line, "sessionId", "session_id") or self._session.session,
            name(line, "cwd") or self._session.project,
            name(line, "version") or self._session.version,
        )
        if found != self._session:
            self._session = found
            yield found

    def _lane(self, line: Fields) -> LaneId:
        agent = name(line, "agentId", "parent_tool_use_id")
        if line.get("isSidechain") is not True:
            return LaneId(agent) if "parent_tool_use_id" in line else MAIN
        own = name(line, "uuid")
        lane = LaneId(agent) if agent else self._chains.get(name(line, "parentUuid")) or LaneId(own)
        if not agent:
            # Several sub-agents may take turns in one file: only the chain of parents keeps them apart.
            self._chains[own] = lane
        return lane

    def _answered(self, line: Fields, lane: LaneId) -> Iterator[Entry]:
        message = inner(line, "message")
        said, model = blocks(message.get("content")), name(message, "model")
        key, at = LineKey(name(line, "uuid")), moment(line, "timestamp")
        if model == NO_CALL:
            yield Said(lane, key, at, "assistant", said, "attachment")
            return
        yield Answered(
            lane,
            key,
            at,
            CallId(name(message, "id")),
            model,
            said,
            self._read_usage(inner(message, "usage")),
            is_complete=bool(text(message, "stop_reason")),
            cleared_tokens=_cleared(message),
        )

    def _mirrored(self, shown: Fields) -> Iterator[Entry]:
        """A sub-agent's line, repeated in its parent's file for the screen."""
        line, lane = inner(shown, "message"), LaneId(name(shown, "agentId"))
        if name(shown, "type") != "agent_progress" or lane == MAIN:
            return
        if name(line, "type") == "assistant":
            yield from self._answered(line, lane)
        elif name(line, "type") == "user":
            yield from _said(line, lane)

    def _read_usage(self, wire: Fields) -> Usage | None:
        if wire == self._usage_wire:
            return self._usage  # the lines of one call repeat it
        try:
            self._usage = read_usage(wire) if wire else None
        except WireError:
            self._usage = None
        self._usage_wire = wire
        return self._usage


def _said(line: Fields, lane: LaneId) -> Iterator[Said]:
    message = inner(line, "message")
    said = blocks(message.get("content"))
    if said and name(message, "role") != "assistant":
        yield Said(
            lane, LineKey(name(line, "uuid")), moment(line, "timestamp"), "user", said, _source(line, message)
        )


def _source(line: Fields, message: Fields) -> Source:
    if line.get("isCompactSummary") is True:
        return "summary"
    content = message.get("content")
    first = (
        content
        if isinstance(content, str)
        else text(as_fields(next(iter(listed(message, "content")), None)), "text")
    )
    return "attachment" if line.get("isMeta") is True or first.startswith(PROGRAM_TEXT) else "human"


def _attached(line: Fields, lane: LaneId) -> Iterator[Said]:
    """What the program added by itself. Without its rendered form nobody knows what was sent."""
    said = blocks(line.get("rendered")) or blocks(inner(line, "attachment").get("content"))
    kind = name(inner(line, "attachment"), "type")
    source: Source = "memory" if kind == "instructions" or "memor" in kind else "attachment"
    if said:
        yield Said(lane, LineKey(name(line, "uuid")), moment(line, "timestamp"), "system", said, source)


def _boundary(line: Fields, lane: LaneId) -> Iterator[Entry]:
    at = moment(line, "timestamp")
    match name(line, "subtype"):
        case "compact_boundary":
            about = inner(line, "compactMetadata") or inner(line, "compact_metadata")
            kept = _keys(inner(about, "preservedMessages"), "allUuids", "uuids")
            first = LineKey(name(inner(about, "preservedSegment"), "headUuid"))
            yield Compacted(
                lane,
                at,
                whole(about, "preTokens") or whole(about, "pre_tokens"),
                kept,
                NO_KEY if kept else first,
            )
        case "microcompact_boundary":
            about = inner(line, "microcompactMetadata")
            cleared = frozenset(ToolUseId(item) for item in _keys(about, "compactedToolIds"))
            yield Cleared(lane, at, cleared, whole(about, "tokensSaved"))
        case _:
            pass


def _keys(about: Fields, *lists: str) -> frozenset[LineKey]:
    return frozenset(LineKey(item) for key in lists for item in listed(about, key) if isinstance(item, str))


def _cleared(message: Fields) -> int:
    """Tokens that the provider's context edits removed from the request."""
    edits = [as_fields(item) for item in listed(inner(message, "context_management"), "applied_edits")]
    return sum(whole(edit, "cleared_input_tokens") or 0 for edit in edits)
