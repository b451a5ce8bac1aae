"""The strategies of a compaction.

`SummaryRequester` has those that ask a model: a compaction block, a summary of the whole view, a summary of a
shortened view. `SummaryPrompts` are their prompts: the package's text, unless the caller has its own. The
functions at the end ask no model: the notes, the structural notes, and the clip, which always works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, replace

from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.clock import Clock
from sevenfold.core.errors import PromptTooLong, ReplyBroken
from sevenfold.core.events import Emit
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.core.messages import Compaction, Message
from sevenfold.core.models import Model
from sevenfold.core.prices import Catalog
from sevenfold.core.requests import Breakpoint, ModelRequest, ModelResponse, RequestParams
from sevenfold.core.text.safe_text import truncate_tokens
from sevenfold.layers.compaction.job import DIRECTIVE_TOKENS, CompactionRun, SummaryDraft, SummaryFailure
from sevenfold.layers.compaction.keep_policy import (
    NoNotesPlan,
    NotesCompactFacts,
    NotesKeepPlan,
    choose_notes_start,
    plan_notes_compaction,
)
from sevenfold.layers.compaction.policy import CompactionStrategy, CompactSettings
from sevenfold.layers.compaction.summary import (
    extract_user_text,
    find_carried_summary,
    parse_summary,
    render_summary_directive,
    render_summary_scope,
)
from sevenfold.layers.compaction.trim import (
    EXPECTED_SUMMARY_TOKENS,
    SummaryPathFacts,
    choose_kept_start,
    choose_summary_path,
    count_uncached_tokens,
    ensure_user_first,
    plan_trim,
    with_short_results,
    without_compaction_blocks,
    without_media,
    without_restored,
    without_system_role,
    without_thinking,
)
from sevenfold.layers.forks.policy import ForkBrief, find_open_calls
from sevenfold.layers.forks.runner import run_fork
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.templates import read_template
from sevenfold.providers.provider import Provider
from sevenfold.store.files.folder import Folder


@dataclass(frozen=True, slots=True)
class SummaryPrompts:
    summary: str
    """The directive of a fork. `{scope}` and `{instructions}` are filled in."""
    block: str
    """For a provider that makes compaction blocks itself. `{instructions}` is filled in."""


def read_summary_prompts(templates: Folder | None = None) -> SummaryPrompts:
    """Each from the user's folder of templates where it is there, else the one of the package."""
    return SummaryPrompts(
        read_template(templates, "summary.md"), read_template(templates, "summary_block.md")
    )


_KIND = "summary"
"""Whose calls these are, for the bill."""
COMPACTION_BLOCK_BETA = "compact-2026-09-04"
"""The header of a request that asks for a compaction block, and of every later one that carries it."""

_DROPPED = "[The oldest rounds of this conversation are left out here.]"
OVERSHOOT_MARGIN = 1.1
"""Our counts are estimates: drop a little more than was stated rather than ask once more."""
_WINDOW_SHARE = 8
"""At most this part of the window is asked for as the summary."""
_KEPT_SHARE = 4
"""At most this part of the target goes to rounds that are kept beside a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequester:
    """Asks a model for summaries, and checks the answers."""

    provider: Provider
    settings: CompactSettings
    prompts: SummaryPrompts
    catalog: Catalog
    clock: Clock
    emit: Emit

    async def ask(self, strategy: CompactionStrategy, run: CompactionRun) -> SummaryDraft | SummaryFailure:
        match strategy:
            case "block":
                return await self._ask_block(run)
            case "trimmed":
                return await self._ask_trimmed(run)
            case _:
                return await self._ask_whole(run)

    async def _ask_block(self, run: CompactionRun) -> SummaryDraft | SummaryFailure:
        """Ask the provider for a compaction block: the same parameters and messages, plus instructions."""
        request = run.job.request
        kept_from = self._kept_start("block", run)
        directive = render_summary_directive(self.prompts.block, instructions=run.instructions)
        compaction: dict[str, Json] = {"type": "summarize", "instructions": directive}
        params = {**request.frame.params.without("context_management"), "compaction": JsonObject(compaction)}
        betas = tuple(dict.fromkeys((*request.frame.betas, COMPACTION_BLOCK_BETA)))
        frame = replace(request.frame, params=JsonObject(params), betas=betas)
        asked = ModelRequest(frame, request.messages[:kept_from], _within(request, kept_from), _KIND)
        reply = await self._send(run, self.provider.send(asked))
        if isinstance(reply, SummaryFailure):
            return reply
        blocks = [block for block in reply.message.blocks if isinstance(block, Compaction)]
        if len(blocks) != 1 or not (blocks[0].content or "").strip():
            return SummaryFailure("unusable", f"no compaction block came (stopped by {reply.stop_reason})")
        return SummaryDraft(
            strategy="block", summary=blocks[0].content or "", kept_from=kept_from, block=blocks[0]
        )

    async def _ask_whole(self, run: CompactionRun) -> SummaryDraft | SummaryFailure:
        """On the unchanged prefix, or on a stripped copy where the prices say so."""
        job, part = run.job, run.job.part
        end, kept_from, before, scope = len(run.messages), 0, 0, ""
        if part is None or run.part_index is None:
            kept_from = self._kept_start("summary", run)
        elif part.side == "up_to":
            end = kept_from = run.part_index
        else:
            kept_from, before = end, run.part_index
            scope = render_summary_scope(extract_user_text(run.messages[before]) or "…")
        request = replace(job.request, messages=run.messages[:end], breakpoints=_within(job.request, end))
        request = self._choose_request(run, request)
        summary = await self._ask_fork(run, request, scope)
        if isinstance(summary, SummaryFailure):
            return summary
        return SummaryDraft(strategy="summary", summary=summary, kept_from=kept_from, before=before)

    async def _ask_trimmed(self, run: CompactionRun) -> SummaryDraft | SummaryFailure:
        """Ask without the oldest rounds; drop more of them each time the prompt is still too long."""
        rounds = run.rounds[run.dropped :]
        overshoot = None if run.overshoot is None else round(run.overshoot * OVERSHOOT_MARGIN)
        trim = plan_trim(rounds, overshoot, self.settings)
        run.dropped += trim.rounds
        # Thinking is signed over rounds that were dropped, so none of it can be sent.
        left = without_thinking((*run.messages[: run.head], *run.messages[trim.stop :]))
        is_opened = bool(left) and any(isinstance(block, Compaction) for block in left[0].blocks)
        messages = left if is_opened else ensure_user_first(left, _DROPPED)
        marks = tuple(mark for mark in run.job.request.breakpoints if mark.level != "messages")
        # No request continues this one, so only the system prompt and tools are worth writing to the cache.
        frame = _unmarked(run.job.request.frame)
        request = replace(run.job.request, frame=frame, messages=messages, breakpoints=marks)
        summary = await self._ask_fork(run, request, "")
        if isinstance(summary, SummaryFailure):
            return summary
        kept_from = self._kept_start("trimmed", run)
        remark = f"Its first {run.dropped} rounds did not fit and are not in the summary."
        return SummaryDraft(strategy="trimmed", summary=summary, kept_from=kept_from, remark=remark)

    def _kept_start(self, strategy: CompactionStrategy, run: CompactionRun) -> int:
        return choose_summary_start(strategy, run, self.settings)

    def _choose_request(self, run: CompactionRun, request: ModelRequest) -> ModelRequest:
        job, count = run.job, len(request.messages)
        sent = count if job.sent_messages is None else min(job.sent_messages, count)
        stripped = without_thinking(without_media(without_restored(request.messages)))
        stripped_tokens = run.sizer.frame_tokens + run.sizer.rewritten(stripped, job)
        others = [self.catalog.find(name, self.emit) for name in self.settings.summary_models]
        facts = SummaryPathFacts(
            model=run.model,
            is_warm=job.is_warm,
            whole_tokens=job.tokens_before - sum(job.counts[count:]),
            stripped_tokens=stripped_tokens,
            others=others,
            when=self.clock.now().date(),
            unread_tokens=count_uncached_tokens(request.messages, job.counts[:count], run.model, sent),
        )
        choice = choose_summary_path(facts)
        if choice.is_warm:
            return request
        if choice.model is run.model:
            return replace(request, frame=_unmarked(request.frame), messages=stripped, breakpoints=())
        return _for_model(choice.model, request.frame, stripped)

    async def _ask_fork(self, run: CompactionRun, request: ModelRequest, scope: str) -> str | SummaryFailure:
        directive = render_summary_directive(self.prompts.summary, instructions=run.instructions, scope=scope)
        brief = ForkBrief(kind=_KIND, directive=directive, max_tokens=self._max_tokens(run))
        reply = await self._send(run, self._run(request, brief))
        return reply if isinstance(reply, SummaryFailure) else parse_summary_reply(reply)

    def _max_tokens(self, run: CompactionRun) -> int:
        """The limit for a summary: it leaves space for the view even in a small window."""
        window = run.job.window_tokens or run.model.window_tokens
        most = min(run.model.max_output_tokens, max(EXPECTED_SUMMARY_TOKENS, window // _WINDOW_SHARE))
        return min(self.settings.summary_max_tokens, most)

    async def _run(self, request: ModelRequest, brief: ForkBrief) -> ModelResponse:
        return (await run_fork(request, brief, self.provider, emit=self.emit)).last

    async def _send(
        self, run: CompactionRun, sending: Awaitable[ModelResponse]
    ) -> ModelResponse | SummaryFailure:
        run.calls += 1
        seconds = self.settings.summary_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                reply = await sending
        except PromptTooLong as error:
            run.overshoot = _scaled(error, run)
            return SummaryFailure("too long", str(error))
        except ReplyBroken as error:
            return SummaryFailure("broken", str(error))
        except TimeoutError:
            return SummaryFailure(
                "refused", f"no answer within {seconds} s (compact.summary_timeout_seconds)"
            )
        except Exception as error:  # whatever a provider raises, the session continues
            return SummaryFailure("refused", f"{type(error).__name__}: {error}")
        run.replies.append(reply)
        return reply


def choose_summary_start(strategy: CompactionStrategy, run: CompactionRun, settings: CompactSettings) -> int:
    """Where the messages begin that are kept beside what a model writes of the whole view."""
    if strategy == "block":
        return run.unanswered()
    return run.newest(min(settings.keep_tokens, run.limit // _KEPT_SHARE))


def parse_summary_reply(reply: ModelResponse) -> str | SummaryFailure:
    """The summary in an answer, or why it holds none: an incomplete summary is a failure."""
    match reply.stop_reason:
        case "model_context_window_exceeded":
            return SummaryFailure("too long", "the window was full before the summary was written")
        case "max_tokens":
            return SummaryFailure("unusable", "the summary was cut off at its token limit")
        case "refusal":
            return SummaryFailure("unusable", "the model refused to write a summary")
        case _:
            pass
    if reply.tool_uses:
        names = ", ".join(use.name for use in reply.tool_uses)
        return SummaryFailure("unusable", f"the model called {names} instead of writing a summary")
    parsed = parse_summary(reply.text)
    return SummaryFailure("unusable", parsed.problem) if parsed.problem else parsed.summary


def explain_no_block(run: CompactionRun, settings: CompactSettings) -> str:
    """Why no compaction block can be asked for; empty when one can."""
    if not run.job.capabilities.compacts_on_demand:
        return "the model makes no compaction blocks on demand"
    if not settings.blocks_enabled:
        return "compact.blocks_enabled is off"
    params = run.job.request.frame.params
    if _is_clearing(params):
        # If nothing were cleared, the prefix would be longer and not the cached one.
        return "it cannot be combined with clearing on the provider's side"
    output = params.get("output_config")
    choice = params.get("tool_choice")
    budget = output.get("task_budget") if isinstance(output, JsonObject) else None
    barred = {
        "stop_sequences": bool(params.get("stop_sequences")),
        "thread": params.get("thread") is not None,
        "a forced tool_choice": isinstance(choice, JsonObject) and choice.get("type") in ("any", "tool"),
        "output_config.format": isinstance(output, JsonObject) and output.get("format") is not None,
        "a task budget": isinstance(budget, JsonObject) and budget.get("remaining") is not None,
        "calls without results": bool(find_open_calls(run.messages[: run.unanswered()])),
    }
    return next((f"it cannot be combined with {name}" for name, there in barred.items() if there), "")


def _is_clearing(params: JsonObject) -> bool:
    """Whether the provider clears anything from this prompt."""
    management = params.get("context_management")
    edits = management.get("edits") if isinstance(management, JsonObject) else None
    return isinstance(edits, tuple) and any(
        isinstance(edit, JsonObject) and edit.get("keep") not in ("all", JsonObject({"type": "all"}))
        for edit in edits
    )


def _within(request: ModelRequest, end: int) -> tuple[Breakpoint, ...]:
    return tuple(mark for mark in request.breakpoints if mark.level != "messages" or mark.index < end)


def _unmarked(frame: RequestParams) -> RequestParams:
    """The parameters without automatic caching, which marks the last block of a request."""
    return (
        replace(frame, params=frame.params.without(CACHE_CONTROL)) if CACHE_CONTROL in frame.params else frame
    )


def _for_model(model: Model, frame: RequestParams, messages: tuple[Message, ...]) -> ModelRequest:
    """The stripped view for another model, without what only the session's own model accepts."""
    plain = without_compaction_blocks(messages)
    if not model.takes_system_role:
        plain = without_system_role(plain)
    own = RequestParams(
        model=model.name,
        max_tokens=min(frame.max_tokens, model.max_output_tokens),
        system=frame.system,
        tools=frame.tools,
        params=EMPTY_OBJECT,
    )
    return ModelRequest(own, ensure_user_first(plain, _DROPPED))


def _scaled(error: PromptTooLong, run: CompactionRun) -> int | None:
    """The stated overshoot in our own tokens, which the rounds are counted in."""
    if error.overshoot is None or not error.tokens:
        return None
    ours = run.job.tokens_before + DIRECTIVE_TOKENS
    return round((error.overshoot + DIRECTIVE_TOKENS) * min(2.0, max(0.5, ours / error.tokens)))


# The strategies that ask no model.

SUMMARY_SHARE = 4
"""At most this part of the target goes to the text of a clip."""
_KEPT_TEXT_SHARE = 2
"""At most this part of it goes to the newest rounds."""
_SHORT_BYTES = (20_000, 2_000, 200)
"""How long the results of the newest round may still be, tried in turn, where nothing else fits."""


def plan_notes_draft(run: CompactionRun, settings: NotesSettings) -> NotesKeepPlan | NoNotesPlan:
    """Whether the notes can replace the history."""
    job = run.job
    facts = NotesCompactFacts(
        messages=run.messages,
        tokens=job.counts,
        notes=job.notes.text,
        template=job.notes.template,
        noted=job.notes.noted,
        notes_tokens=run.sizer.text(job.notes.text or ""),
        overhead_tokens=run.sizer.frame_tokens,
        target_tokens=job.target,
        drops_thinking=not job.capabilities.rewrites_history,
    )
    return plan_notes_compaction(facts, _narrowed(settings, run.limit))


def draft_notes(plan: NotesKeepPlan, run: CompactionRun) -> SummaryDraft:
    return SummaryDraft(strategy="notes", summary=run.job.notes.text or "", kept_from=plan.start)


def draft_structural(run: CompactionRun, settings: NotesSettings) -> SummaryDraft:
    """The structural notes, beside the newest messages."""
    job, end = run.job, len(run.messages)
    if job.part is not None and run.part_index is not None:
        is_up_to = job.part.side == "up_to"
        kept_from, before = (run.part_index, 0) if is_up_to else (end, run.part_index)
        return SummaryDraft(strategy="structural", summary=job.structural, kept_from=kept_from, before=before)
    start = choose_notes_start(run.messages, job.counts, end - 1, _narrowed(settings, run.limit))
    return SummaryDraft(strategy="structural", summary=job.structural, kept_from=run.kept_from(start))


def _narrowed(settings: NotesSettings, target: int) -> NotesSettings:
    """In a small window less is kept, so that the kept messages do not fill most of it at once."""
    room = min(settings.keep_limit_tokens, target // _KEPT_TEXT_SHARE)
    return replace(settings, keep_limit_tokens=room, keep_tokens=min(settings.keep_tokens, room // 2))


def draft_clip(run: CompactionRun) -> SummaryDraft:
    """The newest rounds that fit, and a remark on what was cut."""
    job = run.job
    room = max(0, run.limit - run.sizer.frame_tokens)
    known = job.structural or find_carried_summary(run.messages)
    text = truncate_tokens(known, room // SUMMARY_SHARE, run.sizer.text)
    budget = room // _KEPT_TEXT_SHARE
    start = choose_kept_start(run.rounds, budget, length=len(run.messages))
    draft = SummaryDraft(strategy="clip", summary=text, kept_from=start)
    if start == len(run.messages) and run.rounds:
        draft = _with_last_round(draft, run, budget)
    return _with_remark(draft, run)


def generate_shorter_clips(draft: SummaryDraft, run: CompactionRun) -> Iterator[SummaryDraft]:
    """Ever shorter clips, for when the user's own words leave too little space: the newest round alone, only
    a text, no text; and as a last resort the user's words in a file."""
    end, last = len(run.messages), run.rounds[-1].start if run.rounds else len(run.messages)
    bare = replace(draft, restores="nothing")
    if draft.kept_from < last:
        yield _with_remark(replace(bare, kept_from=last), run)
    alone = _with_remark(replace(bare, kept_from=end, kept=None), run)
    yield alone
    yield replace(alone, summary="")
    if run.job.trigger != "manual":
        yield replace(alone, summary="", folds_said=True)


def _with_remark(draft: SummaryDraft, run: CompactionRun) -> SummaryDraft:
    gone = sum(run.job.counts[run.head : draft.kept_from])
    remark = f"{draft.kept_from - run.head} messages (about {gone:,} tokens) were cut to fit the window."
    return replace(draft, remark=remark)


def _with_last_round(draft: SummaryDraft, run: CompactionRun, budget: int) -> SummaryDraft:
    """The newest round with its results shortened, if that makes it fit; otherwise nothing is kept."""
    start = run.rounds[-1].start
    where = f"all of it is in {run.job.transcript}" if run.job.transcript else "ask again for the rest"
    for max_bytes in _SHORT_BYTES:
        kept = with_short_results(run.messages[start:], max_bytes, where)
        if run.sizer.messages(kept) <= budget:
            return replace(draft, kept_from=start, kept=kept)
    return draft
