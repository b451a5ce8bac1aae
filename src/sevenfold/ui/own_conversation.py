"""A session of ours, as it was said and as each of its requests was sent.

What was said is every message of the transcript, with large tool results read from their files. What was sent
with a call is rebuilt as a resumed session is: byte for byte, from the records before that call.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from sevenfold.core.canonical import Digest
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.events import ignore_event
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolUse
from sevenfold.core.requests import ENGINE_ENTRY, RequestParams, choose_capabilities
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.compaction.layer import TOKENS_KEY
from sevenfold.layers.compaction.policy import STRATEGY_TEXTS
from sevenfold.layers.conversation import DROPPED_KEY, Conversation
from sevenfold.layers.conversation_state import NoJournal
from sevenfold.layers.microcompact.layer import CLEARED_KEY, MEMORIES_KEY, REWRITTEN_KEY, SAVED_KEY
from sevenfold.session.opening import Workspace
from sevenfold.session.pipeline import build_view_steps, select_pipeline_settings
from sevenfold.session.rebuilding import rebuild_view
from sevenfold.session.settings import SessionDeps
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, resume, scan_transcript
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    DecisionRecord,
    KeptSegment,
    MessageRecord,
    Record,
    UsageRecord,
)
from sevenfold.ui.blocks import (
    ShownCut,
    ShownItem,
    ShownMessage,
    choose_source,
    note_results,
    show_blocks,
)

MAX_SHOWN_SPILL_BYTES = 4 * 1024 * 1024

_ADDED = {
    "attachment": "Added by Sevenfold: context such as the date, instructions or a reminder.",
    "memory": "Added by Sevenfold: memories that the prompt is about.",
    "summary": "Added by Sevenfold: stands in for the messages that compaction left out.",
}
_LAYERS = {1: "Layer 1, tool-result storage", 2: "Layer 2, microcompaction", 4: "Layer 4, compaction"}


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A model call of the conversation."""

    offset: int
    """Of its usage: what stands before that was known when the request was sent."""
    model: str
    frame: str
    at: datetime


@dataclass(slots=True, kw_only=True)
class OwnTranscript:
    """The whole transcript of a session, gone through once."""

    path: Path
    items: list[ShownItem] = field(default_factory=list[ShownItem])
    calls: list[OwnCall] = field(default_factory=list[OwnCall])
    decisions: dict[str, SpillDecision] = field(default_factory=dict[str, SpillDecision])
    cleared: dict[str, str] = field(default_factory=dict[str, str])
    """Why a tool result is not sent any more, by the id of its use."""
    tools: dict[str, str] = field(default_factory=dict[str, str])
    _seen: set[RecordId] = field(default_factory=set[RecordId])
    _left_out: dict[str, str] = field(default_factory=dict[str, str])
    """Why a message is not sent any more, by its id."""

    @property
    def session(self) -> str:
        return self.path.stem

    @classmethod
    def read(cls, path: Path) -> OwnTranscript:
        found = cls(path=path)
        with Folder.open(path.parent) as folder:
            for line in scan_transcript(folder, path.stem):
                if isinstance(line, StoredRecord) and line.record.id not in found._seen:
                    found._seen.add(line.record.id)
                    found._take(line.record, line.offset)
        return found

    def said(self) -> list[ShownItem]:
        """Every message, each with what became of it."""
        notes = self._note_results()
        return [
            note_results(replace(item, note=self._left_out.get(item.id, "")), notes)
            if isinstance(item, ShownMessage)
            else item
            for item in self.items
        ]

    def _note_results(self) -> dict[str, str]:
        spilled = {
            use: f"{_LAYERS[1]}: {decision.size_bytes:,} bytes are in a file, and a preview is sent."
            for use, decision in self.decisions.items()
            if decision.preview is not None
        }
        return {**spilled, **self.cleared}

    def _take(self, record: Record, offset: int) -> None:
        match record.body:
            case MessageRecord(message):
                self._add_message(record, message)
            case UsageRecord(model=model, who="main", frame=frame):
                self.calls.append(OwnCall(offset, model, frame, record.at))
            case DecisionRecord(decision):
                self.decisions[decision.tool_use_id] = decision
            case BoundaryRecord():
                self._add_boundary(record, record.body)
            case CutRecord():
                self._add_cut(record, record.body)
            case _:
                pass

    def _add_message(self, record: Record, message: Message) -> None:
        self.tools |= {block.id: block.name for block in message.blocks if isinstance(block, ToolUse)}
        blocks = show_blocks(message.blocks, self.tools)
        self.items.append(
            ShownMessage(
                role=message.role,
                source=choose_source(blocks, message.role, "human"),
                blocks=blocks,
                at=record.at,
                call=len(self.calls) - 1 if message.role == "assistant" and self.calls else None,
                id=record.id,
            )
        )

    def _add_boundary(self, record: Record, boundary: BoundaryRecord) -> None:
        by = "by hand" if boundary.trigger == "manual" else "by itself, because the window was nearly full"
        kept = self._find_kept(boundary.kept)
        gone = [item.id for item in self.items if isinstance(item, ShownMessage) and item.id not in kept]
        when = f"{record.at:%Y-%m-%d %H:%M}"
        for id_ in gone:
            self._left_out.setdefault(
                id_, f"Left out by the compaction of {when} (UTC): a summary stands in."
            )
        self.items.append(
            ShownCut(
                title=_LAYERS[4],
                reason=f"compacted {by}",
                lines=(
                    f"{boundary.tokens_before:,} tokens before it",
                    f"messages still sent as they were: {len(kept):,}; no longer sent: {len(gone):,}",
                ),
                at=record.at,
                call=len(self.calls),
                layer=4,
            )
        )

    def _find_kept(self, kept: KeptSegment | None) -> set[str]:
        if kept is None:
            return set()
        ids = [item.id for item in self.items if isinstance(item, ShownMessage)]
        with suppress(ValueError):
            return {*ids[ids.index(kept.head) : ids.index(kept.tail) + 1]}
        return set()

    def _add_cut(self, record: Record, cut: CutRecord) -> None:
        last = self.items[-1] if self.items else None
        if cut.layer == 4 and isinstance(last, ShownCut) and last.layer == 4:
            # The boundary said the rest of it.
            self.items[-1] = replace(last, lines=(*_explain_method(cut), *last.lines, *_explain_after(cut)))
            return
        for id_ in _texts(cut.detail, DROPPED_KEY):
            self._left_out[id_] = f"Dropped: {cut.reason}."
        title = _LAYERS.get(cut.layer, "The calling program")
        note = f"{title} cleared it: {cut.reason}."
        cleared = cut.detail.get(CLEARED_KEY)
        uses = list(cleared) if isinstance(cleared, JsonObject) else []
        self.cleared |= dict.fromkeys(uses, note)
        self.items.append(
            ShownCut(
                title=title,
                reason=cut.reason,
                lines=tuple(_explain_clearing(cut.detail, len(uses))),
                at=record.at,
                call=len(self.calls),
                layer=cut.layer,
            )
        )

    def read_spill(self, use_id: str) -> str | None:
        """The whole of a tool result that was stored; None where it was not, or is gone."""
        decision = self.decisions.get(use_id)
        if decision is None or decision.spill is None:
            return None
        try:
            with Folder.open(self.path.with_suffix("")) as folder:
                data = folder.read(decision.spill, max_bytes=MAX_SHOWN_SPILL_BYTES)
        except SevenfoldError:
            return None
        return data.decode("utf-8", "replace")


def _explain_method(cut: CutRecord) -> tuple[str, ...]:
    method = cut.reason.removeprefix("compaction by ")
    return (f"{cut.reason}: {STRATEGY_TEXTS[method]}",) if method in STRATEGY_TEXTS else (cut.reason,)


def _explain_after(cut: CutRecord) -> tuple[str, ...]:
    tokens = cut.detail.get(TOKENS_KEY)
    return (f"{tokens:,} tokens after it",) if isinstance(tokens, int) else ()


def _explain_clearing(detail: JsonObject, results: int) -> list[str]:
    counts = (
        (results, "tool results are sent as a short note from here on"),
        (detail.get(SAVED_KEY), "tokens fewer in every request after it"),
        (detail.get(REWRITTEN_KEY), "tokens after the first of them are written to the cache again"),
        (detail.get(MEMORIES_KEY), "recalled memories are left out too"),
    )
    return [f"{count:,} {text}" for count, text in counts if isinstance(count, int) and count]


def _texts(detail: JsonObject, key: str) -> list[str]:
    found = detail.get(key)
    return [item for item in found if isinstance(item, str)] if isinstance(found, tuple) else []


def read_sent(transcript: OwnTranscript, workspace: Workspace, call: int) -> list[ShownItem]:
    """The messages of the request of this call, as the model got them."""
    if not 0 <= call < len(transcript.calls):
        raise InputError(f"there is no call {call + 1}; the session has {len(transcript.calls):,}")
    asked = transcript.calls[call]
    deps = SessionDeps(
        settings=select_pipeline_settings(workspace.settings),
        catalog=workspace.catalog,
        clock=SystemClock(),
        emit=ignore_event,
        journal=NoJournal(),
        estimator=workspace.estimator,
    )
    capabilities = choose_capabilities(workspace.catalog.find(asked.model), "anthropic")
    steps = build_view_steps(RequestParams(model=asked.model, max_tokens=0), capabilities, deps)
    if asked.frame:
        # System prompt and tools are not stored; their hash tells which thinking belongs to them.
        steps.conversation.binding = Digest(asked.frame)
    with Folder.open(transcript.path.parent) as folder:
        resumed = resume(folder, transcript.session, end=asked.offset)
    rebuild_view(steps, resumed)
    return _show_view(steps.conversation, transcript)


def _show_view(conversation: Conversation, transcript: OwnTranscript) -> list[ShownItem]:
    cleared = {use: transcript.cleared.get(use, f"{_LAYERS[2]} cleared it.") for use in conversation.cleared}
    spilled = {
        use: f"{_LAYERS[1]}: a preview of {decision.size_bytes:,} bytes."
        for use, decision in transcript.decisions.items()
        if decision.preview is not None
    }
    notes = {**spilled, **cleared}
    items: list[ShownItem] = []
    for item in conversation.shown:
        blocks = show_blocks(item.message.blocks, transcript.tools)
        is_added = item.entry == ENGINE_ENTRY
        source = item.origin if is_added else choose_source(blocks, item.message.role, item.origin)
        message = ShownMessage(
            role=item.message.role,
            source=source,
            blocks=blocks,
            note=_ADDED.get(item.origin, "") if is_added else "",
        )
        items.append(note_results(message, notes))
    return items
