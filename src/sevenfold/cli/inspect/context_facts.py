"""What a session's transcript says about its context: what fills it, and what the next compaction would do.

Everything is read and nothing is written, so a session can be inspected while another process runs it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sevenfold.core.canonical import Digest
from sevenfold.core.errors import InputError, StoreError, WireError
from sevenfold.core.events import ignore_event
from sevenfold.core.messages import Message
from sevenfold.core.prices import Catalog
from sevenfold.core.requests import (
    ENGINE_ENTRY,
    Breakpoint,
    ModelResponse,
    PreparedRequest,
    RequestParams,
    choose_capabilities,
)
from sevenfold.core.tokens import Thresholds, TokenBreakdown
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.core.usage import read_stored_usage
from sevenfold.layers.compaction.compactor import CompactionStateFile
from sevenfold.layers.compaction.job import (
    CompactionJob,
    CompactionNotes,
    CompactionRun,
    start_compaction_run,
)
from sevenfold.layers.compaction.keep_policy import NoNotesPlan, NotesKeepPlan
from sevenfold.layers.compaction.policy import (
    MODEL_STRATEGIES,
    BreakerState,
    CompactSettings,
    SkippedStrategy,
    StrategyFacts,
    choose_strategy,
)
from sevenfold.layers.compaction.summary_methods import explain_no_block, plan_notes_draft
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.session_notes.notes_file import NotesFile, read_notes_record
from sevenfold.layers.session_notes.policy import truncate_notes
from sevenfold.layers.session_notes.structural_notes import StructuralNotes
from sevenfold.layers.templates import read_notes_texts
from sevenfold.session.cache.monitor import SpendSummary, UsageLedger
from sevenfold.session.opening import SessionResources, Workspace
from sevenfold.session.pipeline import ViewSteps, build_view_steps, rebuild_view
from sevenfold.store.transcript.journal import NoJournal
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import BoundaryRecord, MessageRecord, Record, RecordId, UsageRecord
from sevenfold.store.transcript.transcript import SessionEntry, SessionId, list_sessions

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
    tokens_left: int
    """Until it is due; 0 or less: now."""
    strategy: str
    asks_model: bool
    skipped: tuple[SkippedStrategy, ...]
    kept_messages: int
    kept_tokens: int
    total_tokens: int | None
    """Of the view after it, where that can be told without asking anybody."""
    notes_tokens: int | None
    """None: there are no notes."""
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
    ids: list[RecordId] = field(default_factory=list[RecordId])
    notes: StructuralNotes = field(default_factory=StructuralNotes)
    book: UsageLedger = field(init=False)
    model: str = ""
    frame: str = ""
    """What the last call's system prompt and tools hash to."""
    compactions: int = 0
    bad: int = 0

    def __post_init__(self) -> None:
        self.book = UsageLedger(self.catalog)

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
                self.ids.append(record.id)
                self.notes.add(record.body.message, "human")
            case BoundaryRecord():
                self.compactions += 1
            case UsageRecord():
                self._book(record, record.body)
            case _:
                pass

    def _book(self, record: Record, body: UsageRecord) -> None:
        if body.who == _MAIN:
            self.model, self.frame = body.model, body.frame
        try:
            usage = read_stored_usage(body.wire, body.dialect)
        except WireError:
            self.bad += 1
            return
        reply = ModelResponse(
            message=Message("assistant", ""),
            usage=usage,
            usage_wire=body.wire,
            model=body.model,
            dialect=body.dialect,
        )
        self.book.add(body.who, body.model, reply, record.at)


def find_session_id(workspace: Workspace, wanted: str) -> SessionId:
    """The session of that id, or of the only id that begins so; `latest` is the one written to last."""
    known = list_recent_sessions(workspace)
    if not known:
        raise InputError(f"no session is kept for the project of {workspace.cwd}; {_OTHER}")
    if wanted == "latest":
        return known[0].id
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
        name = model or scanned.model
        if not name:
            raise InputError(
                f"session {session} holds no model call yet, so its window is not known; "
                "name a model with --model"
            )
        steps = _rebuild(opened, name, scanned.frame if name == scanned.model else "")
        return _facts(opened, steps, scanned)


def _rebuild(opened: SessionResources, model: str, frame_digest: str) -> ViewSteps:
    frame = RequestParams(model=model, max_tokens=0)
    deps = replace(opened.deps, journal=NoJournal(), spills=None)
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
        history_messages=len(scanned.ids),
        compactions=scanned.compactions,
        cleared=len(conversation.cleared),
        never_cleared={
            tool: tokens
            for tool, tokens in breakdown.tool_results.items()
            if tool and tokens > 0 and not steps.clearing.clearable.allows(tool)
        },
        clears=steps.clearing.is_active,
        spills=_spills(opened, steps),
        next_cut=_next_cut(opened, steps, scanned, view),
        spent=scanned.book.spent(),
        total=scanned.book.total(),
        quarantined=scanned.bad,
    )


def _spills(opened: SessionResources, steps: ViewSteps) -> SpillFacts:
    stored = [item for item in steps.spilling.decisions.values() if item.spill is not None]
    spills = opened.deps.spills
    paths = [spills.path_of(item) for item in stored] if spills else []
    missing = sum(1 for item in paths if item and not os.path.exists(item))
    return SpillFacts(len(stored), sum(item.size_bytes for item in stored), missing)


def _next_cut(
    opened: SessionResources, steps: ViewSteps, scanned: _Scanned, view: PreparedRequest
) -> NextCompaction:
    settings, conversation, window = opened.deps.settings, steps.conversation, steps.window
    state = CompactionStateFile(opened.folder).read()
    notes = _notes(opened, conversation, scanned)
    job = CompactionJob(
        request=view.request,
        tokens_before=view.tokens,
        target=window.thresholds.auto_compact,
        counts=[conversation.tally.estimate_of(item.weight) for item in conversation.shown],
        capabilities=conversation.capabilities,
        weigh=conversation.tally.estimate_block,
        window_tokens=window.tokens,
        notes=notes,
        structural=scanned.notes.render(settings.notes, notes.template),
    )
    climb = start_compaction_run(job, conversation.model, settings.compact)
    plan = plan_notes_draft(climb, settings.notes)
    step = choose_strategy(_ladder(climb, plan, state, settings.compact), settings.compact)
    kept_from = plan.start if isinstance(plan, NotesKeepPlan) and step.rung == "notes" else _kept_from(climb)
    return NextCompaction(
        is_automatic=settings.compact.is_automatic,
        is_stopped=state.is_thrashing(settings.compact),
        tokens_left=window.thresholds.auto_compact - view.tokens,
        strategy=step.rung,
        asks_model=step.rung in MODEL_STRATEGIES,
        skipped=step.skipped,
        kept_messages=len(climb.messages) - kept_from,
        kept_tokens=sum(job.counts[kept_from:]),
        total_tokens=plan.total_tokens if isinstance(plan, NotesKeepPlan) and step.rung == "notes" else None,
        notes_tokens=None if notes.text is None else climb.sizer.text(notes.text),
        notes_covered=read_notes_record(opened.folder).covered_by(notes.text) if opened.folder else 0,
        failures_in_row=state.failures_in_row,
    )


def _kept_from(climb: CompactionRun) -> int:
    """Where what stays begins, of a summary or of structural notes."""
    return climb.newest(min(climb.settings.keep_tokens, climb.job.target // 4))


def _ladder(
    climb: CompactionRun, plan: NotesKeepPlan | NoNotesPlan, state: BreakerState, settings: CompactSettings
) -> StrategyFacts:
    return StrategyFacts(
        trigger="auto",
        attempts=(),
        failures_in_row=state.failures_in_row,
        notes_missing=plan.reason if isinstance(plan, NoNotesPlan) else "",
        has_structural=bool(climb.job.structural.strip()),
        block_missing=explain_no_block(climb, settings),
        fits_window=climb.fits_window,
        can_trim=climb.can_trim,
        has_rounds=bool(climb.rounds),
        is_thrashing=state.is_thrashing(settings),
    )


def _notes(opened: SessionResources, conversation: Conversation, scanned: _Scanned) -> CompactionNotes:
    """The notes as a compaction would load them, and the message of the view that they end with."""
    template = read_notes_texts(opened.templates).template
    if opened.folder is None:
        return CompactionNotes(template=template)
    try:
        text = NotesFile(opened.folder).read()
    except StoreError:
        text = None
    if text is None:
        return CompactionNotes(template=template)
    covered = read_notes_record(opened.folder).covered_by(text)
    shown = truncate_notes(text, opened.deps.settings.notes, estimate_text_tokens).text
    last = scanned.ids[covered - 1] if 0 < covered <= len(scanned.ids) else None
    entries = conversation.entries
    places = {
        entries[item.entry].id: at for at, item in enumerate(conversation.shown) if item.entry != ENGINE_ENTRY
    }
    return CompactionNotes(shown, places.get(last) if last else None, template)
