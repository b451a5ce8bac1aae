"""What Sevenfold would have saved, for a report: the most expensive sessions are played, and kept for later.

Playing reads a transcript once more, so it is done for as many as a first run can spare. Later runs find the
results among the stored reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal

from sevenfold.core.errors import InputError
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.calls import LONG_CACHE_TTL, SHORT_CACHE_TTL
from sevenfold.replay.parallel import ProcessPool, TaskDone, count_cores, do_tasks_inline
from sevenfold.replay.policies.saving import SavingTask, WeightedSaving, play_saving, sum_savings
from sevenfold.replay.report import PlayedSaving, ReplayReport, SavingRange, SessionReport
from sevenfold.replay.stored_reports import StoredReports
from sevenfold.store.foreign.transcripts import TranscriptFile, find_transcripts

MAX_PLAYED_SESSIONS = 40
MAX_PLAYED_BYTES = 32 * 1024 * 1024
"""A first run plays some 8 MB a second and core."""
INLINE_PLAY_BYTES = 4 * 1024 * 1024
"""Below this, starting processes takes longer than they would save."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    session: SessionReport
    file: TranscriptFile
    usd: Decimal
    """What its prompts cost."""


def read_saving(
    report: ReplayReport,
    terms: ReplayTerms,
    *,
    stored: StoredReports | None = None,
    jobs: int | None = None,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> SavingRange | None:
    """What the most expensive sessions would have saved; None where no one has a price or can be played."""
    chosen = list(_choose(report))
    files = [item.file for item in chosen]
    known = stored.read_savings(files) if stored else {}
    missing = [item for item in chosen if item.file.path not in known]
    played = _play(missing, terms, jobs or count_cores(), on_bytes)
    if stored and played:
        stored.write_savings(played)
    found = {**known, **{file.path: saving for file, saving in played.items()}}
    return sum_savings(
        WeightedSaving(float(item.usd), saving) for item in chosen if (saving := found.get(item.file.path))
    )


def _choose(report: ReplayReport) -> Iterator[_Candidate]:
    """Main conversations with a price, the most expensive first, up to what can be played in a moment."""
    room = MAX_PLAYED_BYTES
    count = 0
    for session in report.sessions:
        usd = session.totals.cost.total - session.totals.cost.output
        if session.sub_agent or usd <= 0 or count >= MAX_PLAYED_SESSIONS:
            continue
        try:
            files = find_transcripts([session.path]).files
        except InputError:  # it is gone since it was read
            continue
        if files and files[0].size_bytes <= room:
            room -= files[0].size_bytes
            count += 1
            yield _Candidate(session, files[0], usd)


def _play(
    chosen: Sequence[_Candidate], terms: ReplayTerms, jobs: int, on_bytes: Callable[[int], None]
) -> dict[TranscriptFile, PlayedSaving | None]:
    tasks = [_task(item, terms) for item in chosen]
    played: dict[TranscriptFile, PlayedSaving | None] = {}
    with ExitStack() as stack:
        for done in _run(tasks, sum(item.file.size_bytes for item in chosen), jobs, on_bytes, stack):
            result = done.result
            played[chosen[done.place].file] = result if isinstance(result, PlayedSaving) else None
    return played


def _run(
    tasks: Sequence[SavingTask], size_bytes: int, jobs: int, on_bytes: Callable[[int], None], stack: ExitStack
) -> Iterator[TaskDone[PlayedSaving | None]]:
    if jobs == 1 or len(tasks) < 2 or size_bytes < INLINE_PLAY_BYTES:
        return do_tasks_inline(play_saving, tasks, on_bytes)
    pool = ProcessPool[SavingTask, PlayedSaving | None](play_saving, min(jobs, len(tasks)))
    return stack.enter_context(pool).run(tasks, on_bytes)


def _task(item: _Candidate, terms: ReplayTerms) -> SavingTask:
    session = item.session
    bill = max(session.bills, key=lambda bill: bill.calls)
    model = terms.reprice or terms.catalog.find(bill.model)
    ttl = LONG_CACHE_TTL if session.totals.tokens.written_1h else SHORT_CACHE_TTL
    return SavingTask(session.path, session.agent, model, ttl)
