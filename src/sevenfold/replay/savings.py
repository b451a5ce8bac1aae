"""What Sevenfold would have saved, for a report: the most expensive sessions are played, and kept for later.

Playing reads a transcript once more, so it is done for as many as a first run can spare. Later runs find the
results among the stored reports. `bench/saving.py` compares the estimate with the real request path, and says
how far the two lie apart on sessions that the correction has not seen: that is the range.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from sevenfold.core.errors import InputError
from sevenfold.core.models import Model
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.calls import LONG_CACHE_TTL, SHORT_CACHE_TTL
from sevenfold.replay.parallel import ProcessPool, count_cores, do_tasks_inline
from sevenfold.replay.report import PlayedSaving, ReplayReport, SavingRange, SessionReport
from sevenfold.replay.stored_reports import StoredReports
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.transcripts import TranscriptFile, find_transcripts

MAX_PLAYED_SESSIONS = 40
MAX_PLAYED_BYTES = 32 * 1024 * 1024
"""A first run plays some 8 MB a second and core."""
INLINE_PLAY_BYTES = 4 * 1024 * 1024
"""Below this, starting processes takes longer than they would save."""


ERROR_MEAN = 0.003
"""How much larger the cost through the request path is than the estimate, as a part of keeping everything."""
ERROR_SPREAD = 0.022
"""The standard deviation of that, from session to session. Both by `bench/saving.py`."""
RANGE_DEVIATIONS = 1.64
"""Of nine sessions in ten."""


@dataclass(frozen=True, slots=True)
class WeightedSaving:
    usd: float
    """What the prompts of the session cost."""
    played: PlayedSaving


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
    plays_all: bool = False,
) -> SavingRange | None:
    """What the most expensive sessions would have saved, or all of them, however long that takes; None where
    no one has a price or can be played."""
    chosen = list(_choose(report, plays_all=plays_all))
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


def sum_savings(sessions: Iterable[WeightedSaving]) -> SavingRange | None:
    """What all of them together would have saved. The sessions of one person err alike, so a range of many is
    as wide as that of one."""
    known = [item for item in sessions if item.usd > 0 and item.played.keep_cost > 0]
    whole = sum(item.usd for item in known)
    if not known or not whole:
        return None
    kept = sum(item.usd * item.played.cost / item.played.keep_cost for item in known)
    mean = 1 - kept / whole - ERROR_MEAN
    reach = RANGE_DEVIATIONS * ERROR_SPREAD
    return SavingRange(max(0.0, mean - reach), max(0.0, mean + reach), whole, len(known))


def _choose(report: ReplayReport, *, plays_all: bool) -> Iterator[_Candidate]:
    """Main conversations with a price, the most expensive first, up to what can be played in a moment."""
    room, most = (sys.maxsize, sys.maxsize) if plays_all else (MAX_PLAYED_BYTES, MAX_PLAYED_SESSIONS)
    count = 0
    for session in report.sessions:
        usd = session.totals.cost.total - session.totals.cost.output
        if session.sub_agent or usd <= 0 or count >= most:
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
    if not chosen:
        return {}
    # Only here: it brings the policies, which a later run does not need.
    from sevenfold.replay.policies.saving import SavingTask, play_saving

    tasks = [SavingTask(*_describe(item, terms)) for item in chosen]
    size = sum(item.file.size_bytes for item in chosen)
    played: dict[TranscriptFile, PlayedSaving | None] = {}
    with ExitStack() as stack:
        if jobs == 1 or len(tasks) < 2 or size < INLINE_PLAY_BYTES:
            results = do_tasks_inline(play_saving, tasks, on_bytes)
        else:
            pool = ProcessPool[SavingTask, PlayedSaving | None](play_saving, min(jobs, len(tasks)))
            results = stack.enter_context(pool).run(tasks, on_bytes)
        for done in results:
            result = done.result
            played[chosen[done.place].file] = result if isinstance(result, PlayedSaving) else None
    return played


def _describe(item: _Candidate, terms: ReplayTerms) -> tuple[Path, ForeignAgent, Model, timedelta]:
    """The fields of a `SavingTask`."""
    session = item.session
    bill = max(session.bills, key=lambda bill: bill.calls)
    model = terms.reprice or terms.catalog.find(bill.model)
    ttl = LONG_CACHE_TTL if session.totals.tokens.written_1h else SHORT_CACHE_TTL
    return session.path, session.agent, model, ttl
