"""Claude Code's transcripts, as its versions from 1 to 2.1 wrote them.

One line a content block, the call's usage on each. Sub-agents are sidechains of their parent's file, or files
of their own that the parent's file repeats in progress lines. What `claude -p --output-format stream-json`
prints is read too. `claude_requests` reads what later versions write of their requests.
"""

from __future__ import annotations

from collections.abc import Iterator

from sevenfold.core.errors import WireError
from sevenfold.core.messages import ToolUseId
from sevenfold.core.usage import Usage, read_usage
from sevenfold.store.foreign.claude_requests import CostLog, SentRequests
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    NO_JSON_FIELDS,
    NO_LINE_KEY,
    CallId,
    ConversationId,
    ForeignClearing,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
    ForeignSource,
    JsonFields,
    LineKey,
    UnknownLine,
    as_blocks,
    as_fields,
    get_int,
    get_list,
    get_name,
    get_object,
    get_text,
    get_time,
)

SESSION_LINE_TYPES = frozenset(
    [
        *(
            "agent-name",
            "ai-title",
            "api-request-blob",
            "atis-latch",
            "custom-title",
            "file-history-snapshot",
            "last-prompt",
            "mode",
            "pr-link",
        ),
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

_NO_CALL = "<synthetic>"
"""The model of an answer that Claude Code wrote itself, such as an error message."""


class ClaudeReader:
    """Lines in, entries out. It remembers which sidechain a line belongs to, and the last usage it parsed."""

    __slots__ = ("_chains", "_costs", "_requests", "_session", "_usage", "_usage_wire")

    def __init__(self) -> None:
        self._requests, self._costs = SentRequests(), CostLog()
        self._session = ForeignSession()
        self._chains: dict[str, ConversationId] = {}
        self._usage: Usage | None = None
        self._usage_wire: JsonFields = NO_JSON_FIELDS

    def read(self, line: JsonFields) -> Iterator[ForeignEntry]:
        """What one line says; usually one entry, or none."""
        kind = get_name(line, "type")
        conversation = self._conversation(line)
        if kind in {"user", "assistant", "system", "attachment"}:
            yield from self._introduce(line, conversation)
        match kind:
            case "user":
                self._costs.note_agent(get_name(get_object(line, "toolUseResult"), "agentId"), is_shown=False)
                yield from _said(line, conversation)
            case "assistant":
                self._costs.note_agent(conversation, is_shown=conversation != MAIN_CONVERSATION)
                yield from self._answered(line, conversation)
            case "system":
                yield from self._bounded(line, conversation)
            case "api-request-shape" | "api-request" | "cost-state":
                yield from self._recorded(kind, line)
            case "attachment":
                yield from _attached(line, conversation)
            case "progress":
                yield from self._mirrored(get_object(line, "data"))
            case _ if kind not in SESSION_LINE_TYPES:
                yield UnknownLine(kind or "(no type)")
            case _:
                pass

    def _introduce(self, line: JsonFields, conversation: ConversationId) -> Iterator[ForeignSession]:
        if conversation != MAIN_CONVERSATION and self._session.session:
            return
        found = ForeignSession(
            get_name(line, "sessionId", "session_id") or self._session.session,
            get_name(line, "cwd") or self._session.project,
            get_name(line, "version") or self._session.version,
        )
        if found != self._session:
            self._session = found
            yield found

    def _conversation(self, line: JsonFields) -> ConversationId:
        agent = get_name(line, "agentId", "parent_tool_use_id")
        if line.get("isSidechain") is not True:
            return ConversationId(agent) if "parent_tool_use_id" in line else MAIN_CONVERSATION
        own = get_name(line, "uuid")
        conversation = (
            ConversationId(agent)
            if agent
            else self._chains.get(get_name(line, "parentUuid")) or ConversationId(own)
        )
        if not agent:
            # Several sub-agents may take turns in one file: only the chain of parents keeps them apart.
            self._chains[own] = conversation
        return conversation

    def _answered(self, line: JsonFields, conversation: ConversationId) -> Iterator[ForeignEntry]:
        message = get_object(line, "message")
        said, model = as_blocks(message.get("content")), get_name(message, "model")
        key, at = LineKey(get_name(line, "uuid")), get_time(line, "timestamp")
        if model == _NO_CALL:
            yield ForeignInput(
                conversation=conversation, key=key, at=at, role="assistant", blocks=said, source="attachment"
            )
            return
        call, usage = CallId(get_name(message, "id")), self._read_usage(get_object(message, "usage"))
        self._costs.note_call(call, model, usage)
        yield from self._requests.find_answered(get_name(line, "requestRef"), conversation)
        yield ForeignOutput(
            conversation=conversation,
            key=key,
            at=at,
            call=call,
            model=model,
            blocks=said,
            usage=usage,
            is_complete=bool(get_text(message, "stop_reason")),
            cleared_tokens=_cleared(message),
        )

    def _recorded(self, kind: str, line: JsonFields) -> Iterator[ForeignEntry]:
        if kind == "api-request-shape":
            self._requests.note_shape(line)
        elif kind == "api-request":
            self._requests.note_request(line)
        else:
            yield from self._costs.note_totals(line)

    def _bounded(self, line: JsonFields, conversation: ConversationId) -> Iterator[ForeignEntry]:
        for entry in _boundary(line, conversation):
            if isinstance(entry, ForeignCompaction):
                self._costs.note_compaction(get_name(line, "uuid"), entry.at)
            yield entry

    def _mirrored(self, shown: JsonFields) -> Iterator[ForeignEntry]:
        """A sub-agent's line, repeated in its parent's file for the screen."""
        line, conversation = get_object(shown, "message"), ConversationId(get_name(shown, "agentId"))
        if get_name(shown, "type") != "agent_progress" or conversation == MAIN_CONVERSATION:
            return
        if get_name(line, "type") == "assistant":
            self._costs.note_agent(conversation, is_shown=True)
            yield from self._answered(line, conversation)
        elif get_name(line, "type") == "user":
            yield from _said(line, conversation)

    def _read_usage(self, wire: JsonFields) -> Usage | None:
        if wire == self._usage_wire:
            return self._usage  # the lines of one call repeat it
        try:
            self._usage = read_usage(wire) if wire else None
        except WireError:
            self._usage = None
        self._usage_wire = wire
        return self._usage


def _said(line: JsonFields, conversation: ConversationId) -> Iterator[ForeignInput]:
    message = get_object(line, "message")
    said = as_blocks(message.get("content"))
    if said and get_name(message, "role") != "assistant":
        yield ForeignInput(
            conversation=conversation,
            key=LineKey(get_name(line, "uuid")),
            at=get_time(line, "timestamp"),
            role="user",
            blocks=said,
            source=_source(line, message),
        )


def _source(line: JsonFields, message: JsonFields) -> ForeignSource:
    if line.get("isCompactSummary") is True:
        return "summary"
    content = message.get("content")
    first = (
        content
        if isinstance(content, str)
        else get_text(as_fields(next(iter(get_list(message, "content")), None)), "text")
    )
    return "attachment" if line.get("isMeta") is True or first.startswith(PROGRAM_TEXT) else "human"


def _attached(line: JsonFields, conversation: ConversationId) -> Iterator[ForeignInput]:
    """What the program added by itself. Without its rendered form nobody knows what was sent."""
    said = as_blocks(line.get("rendered")) or as_blocks(get_object(line, "attachment").get("content"))
    kind = get_name(get_object(line, "attachment"), "type")
    source: ForeignSource = "memory" if kind == "instructions" or "memor" in kind else "attachment"
    if said:
        yield ForeignInput(
            conversation=conversation,
            key=LineKey(get_name(line, "uuid")),
            at=get_time(line, "timestamp"),
            role="system",
            blocks=said,
            source=source,
        )


def _boundary(line: JsonFields, conversation: ConversationId) -> Iterator[ForeignEntry]:
    at = get_time(line, "timestamp")
    match get_name(line, "subtype"):
        case "compact_boundary":
            about = get_object(line, "compactMetadata") or get_object(line, "compact_metadata")
            kept = _keys(get_object(about, "preservedMessages"), "allUuids", "uuids")
            first = LineKey(get_name(get_object(about, "preservedSegment"), "headUuid"))
            yield ForeignCompaction(
                conversation=conversation,
                at=at,
                before_tokens=get_int(about, "preTokens") or get_int(about, "pre_tokens"),
                kept=kept,
                kept_from=NO_LINE_KEY if kept else first,
            )
        case "microcompact_boundary":
            about = get_object(line, "microcompactMetadata")
            cleared = frozenset(ToolUseId(item) for item in _keys(about, "compactedToolIds"))
            yield ForeignClearing(conversation, at, cleared, get_int(about, "tokensSaved"))
        case _:
            pass


def _keys(about: JsonFields, *lists: str) -> frozenset[LineKey]:
    return frozenset(LineKey(item) for key in lists for item in get_list(about, key) if isinstance(item, str))


def _cleared(message: JsonFields) -> int:
    """Tokens that the provider's context edits removed from the request."""
    edits = [as_fields(item) for item in get_list(get_object(message, "context_management"), "applied_edits")]
    return sum(get_int(edit, "cleared_input_tokens") or 0 for edit in edits)
