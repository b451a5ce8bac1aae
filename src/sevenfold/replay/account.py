"""One file's account: its entries in order, each conversation with its own bills, breaks and contents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.events import Event
from sevenfold.core.models import Model
from sevenfold.replay.calls import CallAssembler, RecordedCall, TranscriptStep
from sevenfold.replay.conversation_account import ConversationAccount
from sevenfold.replay.pricing import CallPricer
from sevenfold.replay.report import FileReport, LineCounts
from sevenfold.store.foreign.duplicate_calls import hash_call_id
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ConversationId,
    ForeignAgent,
    ForeignSession,
    UnknownLine,
)
from sevenfold.store.foreign.transcripts import LineTally, read_transcript


@dataclass(frozen=True, slots=True)
class ReplayTerms:
    """What is counted, and at which prices."""

    catalog: Catalog = CATALOG
    reprice: Model | None = None
    since: datetime | None = None
    """Calls before this are context, and no cost."""


def read_account(
    path: Path,
    agent: ForeignAgent,
    terms: ReplayTerms,
    *,
    foreign: frozenset[int] = frozenset(),
    on_bytes: Callable[[int], None] | None = None,
) -> FileReport:
    """Read a transcript and account for it. `foreign` are the digests of calls that another file counts."""
    events: list[Event] = []
    pricer = CallPricer(terms.catalog, terms.reprice, events.append)
    tally, assembler, facts = LineTally(), CallAssembler(), ForeignSession()
    lanes: dict[ConversationId, ConversationAccount] = {}

    def take(step: TranscriptStep) -> None:
        if step.lane not in lanes:
            lanes[step.lane] = ConversationAccount(pricer)
        lanes[step.lane].take(step, is_counted=_is_counted(step, terms.since, foreign))

    for entry in read_transcript(path, agent, tally, on_bytes):
        if isinstance(entry, ForeignSession):
            facts = entry
        elif not isinstance(entry, UnknownLine):
            for step in assembler.take(entry):
                take(step)
    for step in assembler.finish():
        take(step)
    ordered = sorted(lanes.items(), key=lambda item: item[0] != MAIN_CONVERSATION)
    sessions = (lane.report(facts, agent, name, path) for name, lane in ordered if not lane.is_empty)
    counts = LineCounts(tally.lines, tally.length_bytes, dict(tally.unknown), {**tally.faults})
    return FileReport(path=path, agent=agent, lines=counts, sessions=tuple(sessions), events=tuple(events))


def _is_counted(step: TranscriptStep, since: datetime | None, foreign: frozenset[int]) -> bool:
    if since is not None and step.at is not None and step.at < since:
        return False
    return not (isinstance(step, RecordedCall) and step.id and hash_call_id(step.id) in foreign)
