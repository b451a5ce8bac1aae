"""The strategies that ask no model: the notes, the structural notes, and the clip, which always works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sevenfold.core.text.truncation import truncate_tokens
from sevenfold.layers.compaction.job import CompactionRun, SummaryDraft
from sevenfold.layers.compaction.notes_policy import (
    NoNotesPlan,
    NotesCompactFacts,
    NotesKeepPlan,
    choose_notes_start,
    plan_notes_compaction,
)
from sevenfold.layers.compaction.summary import find_carried_summary
from sevenfold.layers.compaction.trim import choose_kept_start, with_short_results
from sevenfold.layers.session_notes.policy import NotesSettings

SUMMARY_SHARE = 4
"""At most this part of the target goes to the text of a clip."""
_KEPT_TEXT_SHARE = 2
"""At most this part of it goes to the newest rounds."""
_SHORT_BYTES = (20_000, 2_000, 200)
"""How long the results of the newest round may still be, tried in turn, where nothing else fits."""


def plan_notes_draft(climb: CompactionRun, settings: NotesSettings) -> NotesKeepPlan | NoNotesPlan:
    """Whether the notes can replace the history."""
    job = climb.job
    facts = NotesCompactFacts(
        messages=climb.messages,
        tokens=job.counts,
        notes=job.notes.text,
        template=job.notes.template,
        noted=job.notes.noted,
        notes_tokens=climb.sizer.text(job.notes.text or ""),
        overhead_tokens=climb.sizer.frame_tokens,
        target_tokens=job.target,
        drops_thinking=not job.capabilities.rewrites_history,
    )
    return plan_notes_compaction(facts, _narrowed(settings, climb.limit))


def draft_notes(plan: NotesKeepPlan, climb: CompactionRun) -> SummaryDraft:
    return SummaryDraft(rung="notes", summary=climb.job.notes.text or "", kept_from=plan.start)


def draft_structural(climb: CompactionRun, settings: NotesSettings) -> SummaryDraft:
    """The structural notes, beside the newest messages."""
    job, end = climb.job, len(climb.messages)
    if job.part is not None and climb.part_index is not None:
        is_up_to = job.part.side == "up_to"
        kept_from, before = (climb.part_index, 0) if is_up_to else (end, climb.part_index)
        return SummaryDraft(rung="structural", summary=job.structural, kept_from=kept_from, before=before)
    start = choose_notes_start(climb.messages, job.counts, end - 1, _narrowed(settings, climb.limit))
    return SummaryDraft(rung="structural", summary=job.structural, kept_from=climb.kept_from(start))


def _narrowed(settings: NotesSettings, target: int) -> NotesSettings:
    """In a small window less is kept, so that the kept messages do not fill most of it at once."""
    room = min(settings.keep_limit_tokens, target // _KEPT_TEXT_SHARE)
    return replace(settings, keep_limit_tokens=room, keep_tokens=min(settings.keep_tokens, room // 2))


def draft_clip(climb: CompactionRun) -> SummaryDraft:
    """The newest rounds that fit, and a remark on what was cut."""
    job = climb.job
    room = max(0, climb.limit - climb.sizer.frame_tokens)
    known = job.structural or find_carried_summary(climb.messages)
    text = truncate_tokens(known, room // SUMMARY_SHARE, climb.sizer.text)
    budget = room // _KEPT_TEXT_SHARE
    start = choose_kept_start(climb.rounds, budget, length=len(climb.messages))
    draft = SummaryDraft(rung="clip", summary=text, kept_from=start)
    if start == len(climb.messages) and climb.rounds:
        draft = _with_last_round(draft, climb, budget)
    return _with_remark(draft, climb)


def generate_shorter_clips(draft: SummaryDraft, climb: CompactionRun) -> Iterator[SummaryDraft]:
    """Ever shorter clips, for when the user's own words leave too little space: the newest round alone, only
    a text, no text; and as a last resort the user's words in a file."""
    end, last = len(climb.messages), climb.rounds[-1].start if climb.rounds else len(climb.messages)
    bare = replace(draft, restores="nothing")
    if draft.kept_from < last:
        yield _with_remark(replace(bare, kept_from=last), climb)
    alone = _with_remark(replace(bare, kept_from=end, kept=None), climb)
    yield alone
    yield replace(alone, summary="")
    if climb.job.trigger != "manual":
        yield replace(alone, summary="", folds_said=True)


def _with_remark(draft: SummaryDraft, climb: CompactionRun) -> SummaryDraft:
    gone = sum(climb.job.counts[climb.head : draft.kept_from])
    remark = f"{draft.kept_from - climb.head} messages (about {gone:,} tokens) were cut to fit the window."
    return replace(draft, remark=remark)


def _with_last_round(draft: SummaryDraft, climb: CompactionRun, budget: int) -> SummaryDraft:
    """The newest round with its results shortened, if that makes it fit; otherwise nothing is kept."""
    start = climb.rounds[-1].start
    where = f"all of it is in {climb.job.transcript}" if climb.job.transcript else "ask again for the rest"
    for max_bytes in _SHORT_BYTES:
        kept = with_short_results(climb.messages[start:], max_bytes, where)
        if climb.sizer.messages(kept) <= budget:
            return replace(draft, kept_from=start, kept=kept)
    return draft
