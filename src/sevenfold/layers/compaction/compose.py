"""Builds the new view from a draft: the summary, the user's words, restored files, and the kept messages.

Files that the agent had read are read again from disk, so the view shows them as they are now. If the view is
too large, restored content goes first, then kept rounds.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sevenfold.core.canonical import digest
from sevenfold.core.errors import FileDamaged, NotRegular, SevenfoldError
from sevenfold.core.events import Emit, Event, ExtraRestored, FileRestored, RestoreSkipped, WordsCut
from sevenfold.core.messages import Message, Text
from sevenfold.core.system import map_os_errors, run_blocking
from sevenfold.core.text.safe_text import CountTokens, truncate_tokens
from sevenfold.layers.compaction.job import CompactionRun, SummaryDraft
from sevenfold.layers.compaction.keep_policy import (
    RestoredFile,
    RestoreFacts,
    find_read_files,
    plan_restore,
    render_restored_extra,
    render_restored_file,
)
from sevenfold.layers.compaction.policy import CompactionStrategy, CompactSettings
from sevenfold.layers.compaction.summary import (
    SummaryHead,
    UserQuote,
    collect_user_quotes,
    extract_user_text,
    plan_quotes,
    render_summary_head,
    render_user_quotes,
    shorten_quote,
    without_quoted_requests,
)
from sevenfold.layers.compaction.summary_methods import generate_shorter_clips
from sevenfold.layers.compaction.trim import without_thinking
from sevenfold.store.files.disk import READ_FLAGS, SYSTEM_DISK, Disk, read_fully

MAX_RESTORED_BYTES = 1024 * 1024
"""Source files are smaller; of a larger one, a log or a dump, the beginning says little."""

BYTES_PER_TOKEN = 8
"""More than any text has, so that enough is read and no more."""

_LEAST_TOKENS = 50
"""Fewer lines of a file than this hold are of no use to anybody."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The beginning of a file."""

    text: str
    is_whole: bool


async def read_restored_blocks(
    facts: RestoreFacts,
    settings: CompactSettings,
    count: CountTokens,
    emit: Emit,
    *,
    folder: str = "",
    disk: Disk = SYSTEM_DISK,
) -> tuple[Text, ...]:
    """What returns to the view, as blocks. What does not is reported with the reason."""
    plan = plan_restore(facts, settings, count)
    for left in plan.left:
        emit(RestoreSkipped(left.what, left.reason))
    most_bytes = settings.restored_file_tokens * BYTES_PER_TOKEN
    reader = _Reader(disk, folder, facts.barred, most_bytes)
    starts = await run_blocking(lambda: [reader.read(path) for path in plan.files])
    blocks: list[Text] = []
    left_tokens = settings.restored_files_tokens
    for path, start in zip(plan.files, starts, strict=True):
        if isinstance(start, str):
            emit(RestoreSkipped(path, start))
            continue
        shown = truncate_tokens(start.text, min(settings.restored_file_tokens, left_tokens), count)
        if not shown or (left_tokens < _LEAST_TOKENS and len(shown) < len(start.text)):
            reason = "the budget for files is used up" if start.text else "it is empty"
            emit(RestoreSkipped(path, reason))
            continue
        is_cut = len(shown) < len(start.text) or not start.is_whole
        blocks.append(render_restored_file(RestoredFile(path, shown, is_cut)))
        left_tokens -= count(shown)
        emit(FileRestored(path, count(shown), is_cut))
    for extra in plan.extras:
        blocks.append(render_restored_extra(extra))
        emit(ExtraRestored(extra.kind, extra.title, count(extra.text), extra.is_cut))
    return tuple(blocks)


@dataclass(frozen=True, slots=True)
class _Reader:
    disk: Disk
    folder: str
    """What relative paths start from."""
    barred: frozenset[str]
    max_bytes: int

    def read(self, path: str) -> _Start | str:
        """As much of the file as the budget allows, or why it cannot be shown."""
        place = self._place(path)
        if not os.path.isabs(place):
            return "its path is relative, and nobody said to what"
        if place in {self._place(other) for other in self.barred}:
            return "transcripts, plans and instruction files are never restored"
        try:
            return self._read_start(place)
        except SevenfoldError as error:
            return str(error)

    def _place(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.folder, path))

    def _read_start(self, place: str) -> _Start:
        with map_os_errors(f"read {place} again"):
            # Symbolic links are not followed: a link that was put there later may point elsewhere.
            fd = self.disk.open(place, READ_FLAGS)
            try:
                found = self.disk.stat(fd)
                if not stat.S_ISREG(found.st_mode):
                    raise NotRegular(f"{place} is no plain file any more")
                if found.st_size > MAX_RESTORED_BYTES:
                    raise NotRegular(
                        f"it has {found.st_size:,} bytes now; at most {MAX_RESTORED_BYTES:,} are read again"
                    )
                data = read_fully(self.disk, fd, min(found.st_size, self.max_bytes))
                return _as_text(data, is_whole=found.st_size <= self.max_bytes)
            finally:
                self.disk.close(fd)


def _as_text(data: bytes, *, is_whole: bool) -> _Start:
    if b"\0" in data:
        raise FileDamaged("it is no text")
    # Reading may stop inside a character.
    text = data.decode("utf-8", "replace" if is_whole else "ignore")
    if text.count("\N{REPLACEMENT CHARACTER}") > len(text) // 50:
        raise FileDamaged("it is no text in UTF-8")
    return _Start(text, is_whole)


QUOTES_SHARE = 5
"""At most this part of the target goes to the user's own words."""
RESTORED_SHARE = 4
"""At most this part of it goes to files that are read again, and as much to skills."""
EXTRA_SHARE = 16
"""At most this part of it goes to each other thing that is put back: in a small window all are cut before any
is left out."""
NOTES_STRATEGIES: frozenset[CompactionStrategy] = frozenset({"notes", "structural", "clip"})
"""Those whose text comes from notes, which hold the user's words too."""
NO_ROOM_REASON = "the view has no room for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedView:
    """A view that could be sent."""

    head: tuple[Message, ...]
    kept_from: int
    kept: tuple[Message, ...]
    tokens: int
    events: tuple[Event, ...] = ()
    """Events to emit if this view is used."""
    before: int = 0
    """How many messages of the head are the old view's own."""


async def compose_view(draft: SummaryDraft, run: CompactionRun) -> ComposedView:
    """The view of a draft. If it is too large, it loses in turn: restored files, other restored content, kept
    rounds, and the unanswered messages last."""
    found = wide = await _compose(draft, run)
    for narrower in _narrower(draft, run):
        if found.tokens < run.limit:
            break
        found = await _compose(narrower, run)
    return found if found is wide else replace(found, events=(*found.events, *_list_lost(wide, found)))


def _narrower(draft: SummaryDraft, run: CompactionRun) -> Iterator[SummaryDraft]:
    yield replace(draft, restores="extras")
    yield replace(draft, restores="nothing")
    if draft.strategy == "clip":
        yield from generate_shorter_clips(draft, run)
        return
    has_own_end = draft.kept is not None or run.job.part is not None or draft.block is not None
    if not has_own_end:
        alone = replace(draft, kept_from=run.unanswered())
        yield replace(alone, restores="extras")
        yield replace(alone, restores="nothing")
        if alone.kept_from < len(run.messages):
            yield replace(draft, kept_from=len(run.messages), restores="nothing")


def _list_lost(wide: ComposedView, found: ComposedView) -> Iterator[RestoreSkipped]:
    for event in wide.events:
        if event in found.events:
            continue
        if isinstance(event, FileRestored):
            yield RestoreSkipped(event.path, NO_ROOM_REASON)
        elif isinstance(event, ExtraRestored):
            yield RestoreSkipped(f"{event.kind} {event.title}", NO_ROOM_REASON)
        elif isinstance(event, RestoreSkipped):
            yield event


async def _compose(draft: SummaryDraft, run: CompactionRun) -> ComposedView:
    job = run.job
    kept = _kept(draft, run)
    before = _without_trailing_system(run.messages[: draft.before])
    events: list[Event] = []
    said = await _said(draft, run, events)
    restored: tuple[Text, ...] = ()
    if draft.restores != "nothing":
        restored = await _restored(kept, run, events, has_files=draft.restores == "all")
    summary = draft.summary
    if draft.strategy in NOTES_STRATEGIES:
        spoken = (extract_user_text(message) for message in kept if message.role == "user")
        summary = without_quoted_requests(summary, (*(item.text for item in said), *spoken))
    head = SummaryHead(
        strategy=draft.strategy, summary=summary, said=said, transcript=job.transcript, remark=draft.remark
    )
    opening = render_summary_head(head, restored)
    blocks = () if draft.block is None else (Message("assistant", (draft.block,)),)
    tokens = (
        run.sizer.frame_tokens
        + run.sizer.messages((*blocks, opening))
        + sum(job.counts[: len(before)])
        + _kept_tokens(draft, kept, run)
    )
    head_messages = (*before, *blocks, opening)
    return ComposedView(
        head=head_messages,
        kept_from=draft.kept_from,
        kept=kept,
        tokens=tokens,
        events=tuple(events),
        before=len(before),
    )


def _kept(draft: SummaryDraft, run: CompactionRun) -> tuple[Message, ...]:
    kept = tuple(run.messages[draft.kept_from :]) if draft.kept is None else draft.kept
    # What the signature covers is gone, so a model that checks it would refuse it.
    return kept if run.job.capabilities.rewrites_history else without_thinking(kept)


def _kept_tokens(draft: SummaryDraft, kept: Sequence[Message], run: CompactionRun) -> int:
    if len(kept) == len(run.messages) - draft.kept_from:
        return run.sizer.rewritten(kept, run.job, draft.kept_from)
    return run.sizer.messages(kept)


def _without_trailing_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """No user message may follow a system message, and the head is a user message."""
    end = len(messages)
    while end and messages[end - 1].role == "system":
        end -= 1
    return tuple(messages[:end])


async def _said(draft: SummaryDraft, run: CompactionRun, events: list[Event]) -> tuple[UserQuote, ...]:
    """The user's words of the part that goes out of view, those too long as preview and spill."""
    job = run.job
    start, stop = draft.before, draft.kept_from
    said = collect_user_quotes(
        run.messages[start:stop],
        is_summary=run.is_summary[start:stop],
        attachments={at - start for at in job.attachments},
    )
    total = max(1, min(run.settings.said_total_tokens, job.target // QUOTES_SHARE))
    own = min(run.settings.said_tokens, total)
    plan = plan_quotes(said, run.sizer.text, replace(run.settings, said_tokens=own, said_total_tokens=total))
    shown = list(said)
    for at in plan.long:
        known, text = said[at].pointer, said[at].text
        pointer = known or await _spill(text, "only its beginning is shown", run, events)
        shown[at] = shorten_quote(said[at], plan.max_tokens, run.sizer.text, pointer)
    fold = plan.fold
    # Their pointers count as well: of many short messages they are the larger part.
    room = max(0, run.limit - run.sizer.frame_tokens) // 2
    while draft.folds_said and fold < len(said) and run.sizer.text(render_user_quotes(shown[fold:])) > room:
        fold += max(1, (len(said) - fold) // 10)
    if fold:
        pointer = await _spill(render_user_quotes(said[:fold]), "they are not shown", run, events)
        shown[:fold] = [UserQuote(f"[{fold} earlier messages]", pointer)]
    return tuple(shown)


async def _spill(text: str, what: str, run: CompactionRun, events: list[Event]) -> str:
    name = f"said-{digest(text.encode('utf-8', 'surrogatepass'))[:16]}.txt"
    path = await run_blocking(lambda: run.job.spill(name, text))
    where = path or run.job.transcript
    if where:
        return f"{what}; all of it is in {where}"
    events.append(WordsCut(len(text)))
    return f"{what}; the rest is no longer at hand"


async def _restored(
    kept: Sequence[Message], run: CompactionRun, events: list[Event], *, has_files: bool
) -> tuple[Text, ...]:
    job, settings = run.job, run.settings
    seen: tuple[str, ...] = ()
    if has_files:
        seen = find_read_files(run.messages) if job.files_seen is None else job.files_seen
    plans = (extra.title for extra in job.extras if extra.kind == "plan")
    barred = frozenset((*job.barred_files, *plans, job.transcript)) - {""}
    facts = RestoreFacts(seen, frozenset(find_read_files(kept)), barred, job.extras)
    share = job.target // RESTORED_SHARE
    budgets = replace(
        settings,
        restored_files_tokens=min(settings.restored_files_tokens, share),
        restored_skills_tokens=min(settings.restored_skills_tokens, share),
        restored_extra_tokens=min(settings.restored_extra_tokens, job.target // EXTRA_SHARE),
    )
    return await read_restored_blocks(
        facts,
        budgets,
        run.sizer.text,
        events.append,
        folder=job.folder,
    )
