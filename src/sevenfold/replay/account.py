"""The account of one transcript file: its entries in order, each conversation with its bills, breaks and
context.

`read_account` reads the file. `ConversationAccount` follows one conversation in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sevenfold.core.events import Event
from sevenfold.core.messages import Block, Text, ToolResult
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.usage import TokenCounts, Usage
from sevenfold.replay.bills import BillBuilder, CallPrice, CallPricer, ResultCosts
from sevenfold.replay.calls import BreakDetector, CacheBreak, CallAssembler, RecordedCall, TranscriptStep
from sevenfold.replay.context_fill import ContextBlock, ContextTracker, PointMark, PointSeries, SeriesPoint
from sevenfold.replay.mcp_servers import ServerUses
from sevenfold.replay.report import (
    DayBill,
    FileReport,
    LineCounts,
    RecordedClearing,
    RecordedCompaction,
    RepeatedRead,
    SessionReport,
    local_day,
    merge_repeated_reads,
)
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ConversationId,
    ForeignAgent,
    ForeignClearing,
    ForeignCompaction,
    ForeignInput,
    ForeignRequest,
    ForeignSession,
    ForeignSideCall,
    UnknownLine,
)
from sevenfold.store.foreign.transcripts import LineTally, hash_call_id, read_own_project, read_transcript

FIRST_VALUE_SHARE = 0.5
"""A count below this share of what the answer weighs is a stream's first value: those are one to a dozen
tokens, while the estimate was within a quarter of every final count in the logs it was tried on."""


MAX_TITLE_CHARS = 100
"""A line of a list; longer ones are cut off there anyway."""
_COMMAND = re.compile(
    r"<command-name>\s*(?P<name>/[^<\s]+)\s*</command-name>"
    r"(?:.{0,200}?<command-args>(?P<arguments>[^<]{0,200})</command-args>)?",
    re.DOTALL,
)
"""A slash command as Claude Code records it."""


class _DayRow(NamedTuple):
    day: str
    model: str


@dataclass(slots=True, kw_only=True)
class _Found:
    """What the report will hold."""

    sums: dict[str, BillBuilder] = field(default_factory=dict[str, BillBuilder])
    breaks: list[CacheBreak] = field(default_factory=list[CacheBreak])
    compactions: list[RecordedCompaction] = field(default_factory=list[RecordedCompaction])
    clearings: list[RecordedClearing] = field(default_factory=list[RecordedClearing])
    reads: dict[str, RepeatedRead] = field(default_factory=dict[str, RepeatedRead])
    days: dict[_DayRow, BillBuilder] = field(default_factory=dict[_DayRow, BillBuilder])
    title: str = ""
    command: str = ""
    first_at: datetime | None = None
    last_at: datetime | None = None
    calls: int = 0
    unbilled: int = 0
    uncounted: int = 0
    simulated: int = 0
    """Calls that the simulator answered."""
    paid: int = 0
    """Those that it did not."""
    largest: int = 0


class ConversationAccount:
    """Takes the steps of one conversation in order."""

    __slots__ = (
        *("_contents", "_found", "_mark", "_pricer", "_prompt", "_results", "_series", "_servers", "_watch"),
    )

    def __init__(self, pricer: CallPricer) -> None:
        self._pricer = pricer
        self._contents = ContextTracker()
        self._results = ResultCosts()
        self._watch = BreakDetector()
        self._series = PointSeries()
        self._servers = ServerUses()
        self._found = _Found()
        self._mark: PointMark = ""
        self._prompt: int | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing in it counts here: no call, or only calls of another file."""
        return not self._found.calls and not self._found.unbilled

    def take(self, step: TranscriptStep, *, is_counted: bool) -> None:
        """One step. What is not counted still fills the context."""
        match step:
            case ForeignInput():
                self._say(step, is_counted=is_counted)
            case RecordedCall():
                self._call(step, is_counted=is_counted)
            case ForeignCompaction():
                self._compact(step, is_counted=is_counted)
            case ForeignClearing():
                self._clear(step, is_counted=is_counted)
            case ForeignRequest():
                self._watch.note_request(step.changed)
                if step.system or step.tools:
                    self._contents.set_prompt(step.system, step.tools)
                    self._servers.set_tools(step.tools)
            case ForeignSideCall():
                priced = self._pricer.price(step.usage, step.model, step.at)
                self._count(step.at, step.usage, priced, is_counted=is_counted)

    def report(
        self, facts: ForeignSession, agent: ForeignAgent, conversation: ConversationId, path: Path
    ) -> SessionReport:
        found = self._found
        session, fill = facts.session or path.stem, self._contents.fill()
        return SessionReport(
            id=session,
            agent=agent,
            sub_agent=conversation or None,
            path=path,
            title=found.title or found.command,
            project=facts.project,
            version=facts.version,
            first_at=found.first_at,
            last_at=found.last_at,
            unbilled_calls=found.unbilled,
            uncounted_calls=found.uncounted,
            is_simulated=found.simulated > 0 and not found.paid,
            bills=tuple(total.bill(model) for model, total in sorted(found.sums.items())),
            days=tuple(DayBill(row.day, total.bill(row.model)) for row, total in sorted(found.days.items())),
            servers=self._servers.finish(fill),
            breaks=tuple(found.breaks),
            compactions=tuple(found.compactions),
            clearings=tuple(found.clearings),
            series=self._series.points(),
            largest_prompt_tokens=found.largest,
            fill=fill,
            repeated_reads=merge_repeated_reads(found.reads.values()),
            costly_results=self._results.finish(f"{session}/{conversation}" if conversation else session),
        )

    def _say(self, said: ForeignInput, *, is_counted: bool) -> None:
        if not self._found.title:
            self._name(said)
        labels = [self._label(block) for block in said.blocks]
        items = self._contents.add(said.key, said.role, said.blocks, said.source)
        for item, label in zip(items, labels, strict=True):
            if item.result is None:
                continue
            tokens = self._contents.estimate([item])
            self._results.add(item.result, tokens, said.at)
            if item.is_repeated and is_counted:
                before = self._found.reads.get(label, RepeatedRead(label, 0, 0))
                self._found.reads[label] = RepeatedRead(
                    label, before.times + 1, before.tokens + round(tokens)
                )

    def _name(self, said: ForeignInput) -> None:
        text = "\n".join(block.text for block in said.blocks if isinstance(block, Text))
        if said.source == "human" and said.role == "user":
            self._found.title = _first_words(text)
        elif not self._found.command and (match := _COMMAND.search(text[:1_000])):
            self._found.command = _first_words(f"{match['name']} {match['arguments'] or ''}")

    def _label(self, block: Block) -> str:
        return self._results.label(block.tool_use_id) if isinstance(block, ToolResult) else ""

    def _call(self, call: RecordedCall, *, is_counted: bool) -> None:
        usage = call.usage
        if (is_simulated := call.is_simulated) is not None:
            self._found.simulated += is_simulated
            self._found.paid += not is_simulated
        if usage is None or not any(run.prompt for run in (usage, *usage.iterations)):
            self._found.unbilled += is_counted
            self._reply(call)
            return
        run = usage.last_run
        self._compact_inside(call, usage, is_counted=is_counted)
        if run is None or not run.prompt:
            # Such as one that only compacted: a bill, and nothing about the context.
            self._reply(call)
            self._count(call.at, usage, self._pricer.price(usage, call.model, call.at), is_counted=is_counted)
            return
        self._contents.bill(run.prompt, self._pricer.find(call.model), is_counted=is_counted)
        estimate = self._contents.estimate(self._reply(call))
        is_estimated = not call.is_output_final and usage.output < FIRST_VALUE_SHARE * estimate
        if is_estimated:
            usage = replace(usage, output=max(usage.output, round(estimate)))
        self._account(call, usage, run, is_estimated=is_estimated, is_counted=is_counted)

    def _reply(self, call: RecordedCall) -> list[ContextBlock]:
        self._results.ask(call.blocks)
        self._servers.note_calls(call.blocks)
        return [
            item for part in call.parts for item in self._contents.add(part.key, "assistant", part.blocks)
        ]

    def _account(
        self, call: RecordedCall, usage: Usage, run: TokenCounts, *, is_estimated: bool, is_counted: bool
    ) -> None:
        found = self._found
        priced = self._pricer.price(usage, call.model, call.at)
        broke = self._watch.check(call, run, priced.rates)
        mark, self._mark = self._mark or ("break" if broke else ""), ""
        self._prompt = run.prompt
        if is_counted:
            self._results.bill(run.prompt, run.read, priced.rates, is_break=broke is not None)
            if broke:
                found.breaks.append(broke)
            if mark == "compaction" and found.compactions and found.compactions[-1].after_tokens is None:
                found.compactions[-1] = replace(found.compactions[-1], after_tokens=run.prompt)
            self._series.add(
                SeriesPoint(
                    call=found.calls, at=call.at, prompt_tokens=run.prompt, read_tokens=run.read, mark=mark
                )
            )
            found.largest = max(found.largest, run.prompt)
        else:
            self._results.skip(run.prompt)
        self._count(call.at, usage, priced, is_estimated=is_estimated, is_counted=is_counted)

    def _count(
        self,
        at: datetime | None,
        usage: Usage,
        priced: CallPrice,
        *,
        is_counted: bool,
        is_estimated: bool = False,
    ) -> None:
        found = self._found
        if not is_counted:
            found.uncounted += 1
            return
        row = _DayRow(local_day(at), priced.row)
        for total in (
            found.sums.setdefault(priced.row, BillBuilder()),
            found.days.setdefault(row, BillBuilder()),
        ):
            total.add(usage, priced, is_estimated=is_estimated)
        found.calls += 1
        found.first_at, found.last_at = found.first_at or at, at or found.last_at

    def _compact_inside(self, call: RecordedCall, usage: Usage, *, is_counted: bool) -> None:
        """The provider summed the history up within the call itself."""
        for item in usage.iterations:
            if item.kind == "compaction":
                self._compact(
                    ForeignCompaction(conversation=call.conversation, at=call.at, before_tokens=item.prompt),
                    is_counted=is_counted,
                )

    def _compact(self, step: ForeignCompaction, *, is_counted: bool) -> None:
        self._drop(self._contents.cut(step.kept, step.kept_from))
        self._watch.note_cut("compaction")
        self._mark = "compaction"
        if is_counted:
            self._found.compactions.append(
                RecordedCompaction(step.at, step.before_tokens or self._prompt, None)
            )

    def _clear(self, step: ForeignClearing, *, is_counted: bool) -> None:
        self._drop(self._contents.clear(step.tool_use_ids))
        self._watch.note_cut("clearing")
        self._mark = self._mark or "clearing"
        if is_counted:
            self._found.clearings.append(RecordedClearing(step.at, len(step.tool_use_ids), step.saved_tokens))

    def _drop(self, left: Iterable[ContextBlock]) -> None:
        self._results.drop([item.result for item in left if item.result is not None])


def _first_words(text: str) -> str:
    """A page may be shared, so what seems to hold a secret is not quoted."""
    # Only here: a later run reads no transcript.
    from sevenfold.store.session_index.finder import hide_secrets

    head = text[: 4 * MAX_TITLE_CHARS]
    words = " ".join(head.split())
    short = words if len(words) <= MAX_TITLE_CHARS else f"{words[: MAX_TITLE_CHARS - 1]}…"
    return hide_secrets(short, head)


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
    tally, assembler = LineTally(), CallAssembler()
    # Our own transcripts do not name their project: their folder does.
    facts = ForeignSession(project=read_own_project(path) if agent == "sevenfold" else "")
    conversations: dict[ConversationId, ConversationAccount] = {}

    def take(step: TranscriptStep) -> None:
        if step.conversation not in conversations:
            conversations[step.conversation] = ConversationAccount(pricer)
        conversations[step.conversation].take(step, is_counted=_is_counted(step, terms.since, foreign))

    for entry in read_transcript(path, agent, tally, on_bytes):
        if isinstance(entry, ForeignSession):
            facts = entry
        elif not isinstance(entry, UnknownLine):
            for step in assembler.take(entry):
                take(step)
    for step in assembler.finish():
        take(step)
    ordered = sorted(conversations.items(), key=lambda item: item[0] != MAIN_CONVERSATION)
    sessions = (
        conversation.report(facts, agent, name, path)
        for name, conversation in ordered
        if not conversation.is_empty
    )
    counts = LineCounts(tally.lines, tally.length_bytes, dict(tally.unknown), {**tally.faults})
    return FileReport(path=path, agent=agent, lines=counts, sessions=tuple(sessions), events=tuple(events))


def _is_counted(step: TranscriptStep, since: datetime | None, foreign: frozenset[int]) -> bool:
    if since is not None and step.at is not None and step.at < since:
        return False
    return not (isinstance(step, RecordedCall) and step.id and hash_call_id(step.id) in foreign)
