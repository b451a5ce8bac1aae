"""The rungs that ask no model: the notes, the structural notes, and the clip that always works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sevenfold.layers.compact_rounds import keep_from
from sevenfold.layers.compact_strip import with_short_results
from sevenfold.layers.compact_summary import carried_summary
from sevenfold.layers.cut_text import cut_tokens
from sevenfold.layers.notes_compact import CompactFacts, KeepPlan, NoPlan, choose_start, plan_compaction
from sevenfold.layers.session_notes import NotesSettings
from sevenfold.request.overflow_climb import Climb, Draft

SUMMARY_SHARE = 4
"""At most this part of the target goes to the text of a clip."""
KEPT_SHARE = 2
"""At most this part of it goes to the newest rounds."""
SHORT_BYTES = (20_000, 2_000, 200)
"""How long the results of the newest round may still be, tried in turn, where nothing else fits."""


def plan_notes(climb: Climb, settings: NotesSettings) -> KeepPlan | NoPlan:
    """Whether the notes can replace the history."""
    job = climb.job
    facts = CompactFacts(
        climb.messages,
        job.counts,
        job.notes.text,
        job.notes.template,
        job.notes.noted,
        climb.sizer.text(job.notes.text or ""),
        climb.sizer.frame_tokens,
        job.target,
        drops_thinking=not job.capabilities.rewrites_history,
    )
    return plan_compaction(facts, _narrowed(settings, climb.limit))


def draft_notes(plan: KeepPlan, climb: Climb) -> Draft:
    return Draft("notes", climb.job.notes.text or "", plan.start)


def draft_structural(climb: Climb, settings: NotesSettings) -> Draft:
    """What the session's structure tells, beside its newest messages."""
    job, end = climb.job, len(climb.messages)
    if job.part is not None and climb.part_index is not None:
        is_up_to = job.part.side == "up_to"
        kept_from, before = (climb.part_index, 0) if is_up_to else (end, climb.part_index)
        return Draft("structural", job.structural, kept_from, before)
    start = choose_start(climb.messages, job.counts, end - 1, _narrowed(settings, climb.limit))
    return Draft("structural", job.structural, climb.kept_from(start))


def _narrowed(settings: NotesSettings, target: int) -> NotesSettings:
    """In a small window less is kept: what stays must not fill most of it at once."""
    room = min(settings.keep_limit_tokens, target // KEPT_SHARE)
    return replace(settings, keep_limit_tokens=room, keep_tokens=min(settings.keep_tokens, room // 2))


def draft_clip(climb: Climb) -> Draft:
    """The newest rounds that fit, and a word on what was cut."""
    job = climb.job
    room = max(0, climb.limit - climb.sizer.frame_tokens)
    known = job.structural or carried_summary(climb.messages)
    text = cut_tokens(known, room // SUMMARY_SHARE, climb.sizer.text)
    budget = room // KEPT_SHARE
    start = keep_from(climb.rounds, budget, length=len(climb.messages))
    draft = Draft("clip", text, start)
    if start == len(climb.messages) and climb.rounds:
        draft = _with_last_round(draft, climb, budget)
    return _with_remark(draft, climb)


def narrower_clips(draft: Draft, climb: Climb) -> Iterator[Draft]:
    """Ever less of a clip, where the user's own words leave too little room for it: the newest round alone,
    nothing but a text, no text; and where we may not stay as we are, those words in a file."""
    end, last = len(climb.messages), climb.rounds[-1].start if climb.rounds else len(climb.messages)
    bare = replace(draft, restores="nothing")
    if draft.kept_from < last:
        yield _with_remark(replace(bare, kept_from=last), climb)
    alone = _with_remark(replace(bare, kept_from=end, kept=None), climb)
    yield alone
    yield replace(alone, summary="")
    if climb.job.trigger != "manual":
        yield replace(alone, summary="", folds_said=True)


def _with_remark(draft: Draft, climb: Climb) -> Draft:
    gone = sum(climb.job.counts[climb.head : draft.kept_from])
    remark = f"{draft.kept_from - climb.head} messages (about {gone:,} tokens) were cut to fit the window."
    return replace(draft, remark=remark)


def _with_last_round(draft: Draft, climb: Climb, budget: int) -> Draft:
    """The newest round with its results shortened, if that makes it fit; otherwise nothing is kept."""
    start = climb.rounds[-1].start
    where = f"all of it is in {climb.job.transcript}" if climb.job.transcript else "ask again for the rest"
    for max_bytes in SHORT_BYTES:
        kept = with_short_results(climb.messages[start:], max_bytes, where)
        if climb.sizer.messages(kept) <= budget:
            return replace(draft, kept_from=start, kept=kept)
    return draft
