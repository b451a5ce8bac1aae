"""What a session's transcript says about its context: what fills it, and what the next compaction would do.

Everything is read and nothing is written, so a session can be inspected while another process runs it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sevenfold.agent.tui.session_list import add_agent_costs
from sevenfold.core.canonical import Digest
from sevenfold.core.errors import InputError, WireError
from sevenfold.core.events import ignore_event
from sevenfold.core.prices import Catalog
from sevenfold.core.requests import (
    Breakpoint,
    PreparedRequest,
    RequestParams,
    choose_capabilities,
)
from sevenfold.core.tokens import Thresholds, TokenBreakdown
from sevenfold.core.usage import read_stored_usage
from sevenfold.layers.compaction.compactor import CompactionStateFile, PlannedCompaction
from sevenfold.layers.compaction.policy import MODEL_STRATEGIES
from sevenfold.layers.context import is_context_message
from sevenfold.layers.context.layer import CurrentContext
from sevenfold.layers.conversation_state import NoJournal
from sevenfold.layers.session_notes.notes_file import NotesFile, NotesRecord, read_notes_record
from sevenfold.session.cache.monitor import SpendSummary, UsageLedger
from sevenfold.session.opening import Workspace
from sevenfold.session.pipeline import (
    SessionResources,
    ViewSteps,
    build_compaction,
    build_notes,
    build_view_steps,
)
from sevenfold.session.rebuilding import rebuild_view
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    MessageRecord,
    ParentRecord,
    Record,
    UsageRecord,
)
from sevenfold.store.transcript.transcript import SessionEntry, SessionId, is_agent_session, list_sessions

_MAIN = "main"


@dataclass(frozen=True, slots=True)
class SpillFacts:
    count: int = 0
    size_bytes: int = 0
    missing: int = 0
    """Files that are named in the view and no longer there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCompaction:
    """What the next automatic compaction would do, were it now."""

    is_automatic: bool
    is_stopped: bool
    """The breaker is open: compactions in a row have helped nothing."""
    is_due: bool
    """Whether the next request compacts, after it has cleared results."""
    tokens_left: int
    """Of the view as it is, until it is due; 0 or less: now."""
    clears_results: int
    """Results that the next request clears first."""
    asks_model: bool
    plan: PlannedCompaction
    notes_covered: int
    failures_in_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFacts:
    session: SessionId
    project: str
    model: str
    window_tokens: int
    is_model_known: bool
    view: PreparedRequest
    is_billed: bool
    thresholds: Thresholds
    breakdown: TokenBreakdown
    unlogged_tokens: int
    """System prompt and tools, which no transcript holds: what was billed beyond what can be seen."""
    history_messages: int
    compactions: int
    cleared: int
    never_cleared: Mapping[str, int]
    """Tokens of results that layer 2 never clears, by tool."""
    clears: bool
    """Whether layer 2 clears anything here."""
    spills: SpillFacts
    next_cut: NextCompaction
    spent: tuple[SpendSummary, ...]
    total: SpendSummary
    quarantined: int
    """Lines of the transcript that could not be read."""

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        return self.view.request.breakpoints


@dataclass(slots=True, kw_only=True)
class _Scanned:
    """The whole transcript, gone through once."""

    catalog: Catalog
    messages: int = 0
    ledger: UsageLedger = field(init=False)
    model: str = ""
    frame: str = ""
    """What the last call's system prompt and tools hash to."""
    compactions: int = 0
    bad: int = 0

    def __post_init__(self) -> None:
        self.ledger = UsageLedger(self.catalog)

    def read(self, opened: SessionResources) -> None:
        assert opened.project is not None
        seen: set[RecordId] = set()
        for line in scan_transcript(opened.project.sessions, opened.id):
            if not isinstance(line, StoredRecord):
                self.bad += 1
            elif line.record.id not in seen:
                seen.add(line.record.id)
                self._take(line.record)

    def _take(self, record: Record) -> None:
        match record.body:
            case MessageRecord():
                self.messages += 1
            case BoundaryRecord():
                self.compactions += 1
            case UsageRecord():
                self._add_usage(record, record.body)
            case ParentRecord():
                # Calls from before it branched off another session are that one's.
                self.ledger = UsageLedger(self.catalog)
            case _:
                pass

    def _add_usage(self, record: Record, body: UsageRecord) -> None:
        if body.who == _MAIN:
            self.model, self.frame = body.model, body.frame
        try:
            usage = read_stored_usage(body.wire, body.dialect)
        except WireError:
            self.bad += 1
            return
        self.ledger.add_usage(body.who, body.model, usage, record.at)


def find_session_id(workspace: Workspace, wanted: str) -> SessionId:
    """The session of that id, or of the only id that begins so; `latest` is the one written to last."""
    known = list_recent_sessions(workspace)
    if not known:
        raise InputError(f"no session is kept for the project of {workspace.cwd}; {_OTHER}")
    if wanted == "latest":
        # A person means the last session of their own, unless agents alone have any.
        return next((entry.id for entry in known if not is_agent_session(entry.id)), known[0].id)
    found = [entry.id for entry in known if entry.id.startswith(wanted)]
    if wanted in found:
        return SessionId(wanted)
    if len(found) == 1:
        return found[0]
    listed = "\n".join(f"  {entry.id}  {entry.modified:%Y-%m-%d %H:%M}" for entry in known[:_MOST_LISTED])
    more = f"\n  and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    which = f"{len(found)} sessions begin with {wanted!r}" if found else f"no session is called {wanted!r}"
    if Path(wanted).exists():
        which += f", and {_FOREIGN}"
    raise InputError(f"{which}; known ones, the last first:\n{listed}{more}")


_MOST_LISTED = 10
_OTHER = "`sevenfold chat` begins one; or name another project with --project"
_FOREIGN = "a file is read by `sevenfold replay`"


def list_recent_sessions(workspace: Workspace) -> Sequence[SessionEntry]:
    """The sessions of a project, the one written to last first."""
    if not workspace.project_folder.is_dir():
        return ()  # to look must not make one
    return list_sessions(workspace.project.sessions)


def read_context_facts(workspace: Workspace, session: SessionId, model: str | None) -> ContextFacts:
    """Look at a session as it stands on the disk."""
    opened = SessionResources.open(workspace, session, emit=ignore_event, looks_only=True)
    with opened.exits:
        scanned = _Scanned(catalog=opened.deps.catalog)
        scanned.read(opened)
        if opened.project is not None:
            add_agent_costs(scanned.ledger, opened.project.sessions, opened.id, opened.deps.catalog)
        name = model or scanned.model
        if not name:
            raise InputError(
                f"session {session} holds no model call yet, so its window is not known; "
                "name a model with --model"
            )
        # Nothing that is asked of the layers below may be written down.
        opened = replace(opened, deps=replace(opened.deps, journal=NoJournal(), emit=ignore_event))
        steps = _rebuild(opened, name, scanned.frame if name == scanned.model else "")
        return _facts(opened, steps, scanned)


def _rebuild(opened: SessionResources, model: str, frame_digest: str) -> ViewSteps:
    frame = RequestParams(model=model, max_tokens=0)
    deps = replace(opened.deps, spills=None)
    steps = build_view_steps(frame, choose_capabilities(deps.catalog.find(model), "anthropic"), deps)
    if frame_digest:
        # System prompt and tools are not stored; their hash tells which thinking belongs to them.
        steps.conversation.binding = Digest(frame_digest)
    assert opened.resumed is not None
    rebuild_view(steps, opened.resumed)
    return steps


def _facts(opened: SessionResources, steps: ViewSteps, scanned: _Scanned) -> ContextFacts:
    conversation, window, view = steps.conversation, steps.window, steps.requests.build()
    breakdown, count = conversation.tally.breakdown(), conversation.tally.count()
    assert opened.project is not None
    return ContextFacts(
        session=opened.id,
        project=str(opened.project.root),
        model=conversation.frame.model,
        window_tokens=window.tokens,
        is_model_known=conversation.model.is_known,
        view=view,
        is_billed=not count.is_wholly_estimated,
        thresholds=window.thresholds,
        breakdown=breakdown,
        unlogged_tokens=0 if count.is_wholly_estimated else max(0, count.tokens - breakdown.total),
        history_messages=scanned.messages,
        compactions=scanned.compactions,
        cleared=len(conversation.cleared),
        never_cleared={
            tool: tokens
            for tool, tokens in breakdown.tool_results.items()
            if tool and tokens > 0 and not steps.clearing.clearable.allows(tool)
        },
        clears=steps.clearing.is_active,
        spills=_spills(opened, steps),
        next_cut=asyncio.run(_forecast(opened, steps)),
        spent=scanned.ledger.spent(),
        total=scanned.ledger.total(),
        quarantined=scanned.bad,
    )


def _spills(opened: SessionResources, steps: ViewSteps) -> SpillFacts:
    stored = [item for item in steps.spilling.decisions.values() if item.spill is not None]
    spills = opened.deps.spills
    paths = [spills.path_of(item) for item in stored] if spills else []
    missing = sum(1 for item in paths if item and not os.path.exists(item))
    return SpillFacts(len(stored), sum(item.size_bytes for item in stored), missing)


async def _forecast(opened: SessionResources, steps: ViewSteps) -> NextCompaction:
    """Ask the layers that act, on this copy of the view: first the clearing, then the compaction.

    What hooks would add is not known, and the context counts as it stands in the view.
    """
    conversation, window, settings = steps.conversation, steps.window, opened.deps.settings.compact
    compaction = build_compaction(steps, opened, None)
    notes = build_notes(steps, opened, None, compaction.spill)
    assert opened.project is not None
    notes.catch_up(opened.project.sessions, steps.conversation.entries)
    left, cleared = window.thresholds.auto_compact - conversation.tokens, len(conversation.cleared)
    await steps.clearing.run(window.thresholds)
    shown = (item.message for item in conversation.shown if is_context_message(item.message))
    plan = compaction.plan(
        steps.requests.build(), await notes.read_sources(writes=False), CurrentContext(next(shown, None))
    )
    text, record = NotesFile(opened.folder).read() if opened.folder else None, NotesRecord()
    if opened.folder is not None:
        record = read_notes_record(opened.folder)
    return NextCompaction(
        is_automatic=settings.is_automatic,
        is_stopped=compaction.is_stopped,
        is_due=window.thresholds.is_compact_due(conversation.tokens) and not compaction.is_stopped,
        tokens_left=left,
        clears_results=len(conversation.cleared) - cleared,
        asks_model=plan.strategy in MODEL_STRATEGIES,
        plan=plan,
        notes_covered=record.covered_by(text),
        failures_in_row=CompactionStateFile(opened.folder).read().failures_in_row,
    )
