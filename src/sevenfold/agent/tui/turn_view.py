"""What a turn prints.

Finished output is printed once; what still changes is drawn below it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from sevenfold.agent.loop.turn import (
    DeltaReceived,
    LayerActed,
    NoticePosted,
    RoundEnded,
    ToolEnded,
    ToolPrinted,
    ToolStarted,
    TurnEvent,
)
from sevenfold.agent.tool import ToolOutput
from sevenfold.agent.tools.executor import MAIN_AGENT
from sevenfold.agent.tui.cost_text import CacheState, CutBill, read_cache_state, read_cut_bill
from sevenfold.agent.tui.error_text import find_retry_remedy, render_retry
from sevenfold.agent.tui.event_text import render_event_text
from sevenfold.agent.tui.render.markdown_stream import MarkdownBlock, MarkdownStream, render_spaced
from sevenfold.agent.tui.render.status_line import WAITING, StatusLine, render_wait
from sevenfold.agent.tui.render.tool_lines import (
    SLOW_TOOL_TIME,
    cut_output_lines,
    cut_title,
    list_output_lines,
    render_tool_head,
)
from sevenfold.agent.tui.session_list import (
    MAX_ACTS,
    NO_PAST_USAGE,
    LayerAct,
    PastUsage,
    find_past_miss,
)
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.events import (
    AgentEnded,
    AgentStarted,
    CompactionStarted,
    CutRegistered,
    Event,
    ExtractionEnded,
    ExtraRestored,
    FileRestored,
    ForkEnded,
    HistoryCompacted,
    McpFailed,
    RetryScheduled,
    ToolDenied,
    VariablesHeld,
)
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.tool_kinds import Effect, find_effect
from sevenfold.providers.provider import Delta, TextDelta, ThinkingDelta

OUTPUT_PREVIEW_LINES = 5
"""Of a tool's output; the rest is folded."""
TOOL_PREVIEW_LINES: dict[Effect | None, int] = {"read": 0, "list": 3, "search": 5, "memory": 3}
"""Tools whose output tells a person less than that they ran."""
SHOWN_DIFF_LINES = 40
MAX_FOLDS = 30
"""Outputs that can still be unfolded."""
MAX_LIVE_LINES = 12
"""That are drawn anew with each change: few enough for any terminal."""
MAX_PRINTED_LINES = 3
"""Of what a running tool prints."""
_LABEL = re.compile(r"(?:[·›] |\S.{0,22}  +)(?=\S)")
"""What a line begins with, in a column of its own: a sign, or a name and two spaces."""
_THINKING_CHARS = 200
_PROMPT_CHARS = 100
_CHARS_A_TOKEN = 4


_TYPED_USE = ToolUse(ToolUseId(""), "shell", EMPTY_OBJECT)
"""Stands for a command that a person typed."""
_COMPACTION_STEPS = (CompactionStarted, FileRestored, ExtraRestored)


class TurnSurface(Protocol):
    """Where a turn is shown."""

    def renderer(self) -> TextRenderer: ...

    def put(self, text: str) -> None:
        """Print for good."""
        ...

    def refresh(self) -> None:
        """What is drawn below may have changed."""
        ...


@dataclass(frozen=True, slots=True)
class FoldedOutput:
    """A tool's output, of which only the beginning was shown."""

    title: str
    text: str
    read_more: Callable[[], str] | None = None
    """What else there is, read when it is unfolded."""
    is_diff: bool = False


@dataclass(frozen=True, slots=True)
class _Retry:
    event: RetryScheduled
    at: timedelta
    """When the request is sent again, by uptime."""


@dataclass(slots=True, kw_only=True)
class _Running:
    title: str
    tool: str
    since: timedelta
    """By uptime."""
    printed: deque[str] = field(default_factory=lambda: deque[str](maxlen=MAX_PRINTED_LINES))
    partial: str = ""

    def take(self, text: str) -> None:
        *lines, self.partial = (self.partial + text).split("\n")
        self.printed.extend(line for line in lines if line.strip())

    def tail(self) -> list[str]:
        shown = [*self.printed, self.partial] if self.partial.strip() else list(self.printed)
        return shown[-MAX_PRINTED_LINES:]


class TurnView:
    """Shows one session's turns on a surface, and keeps what the status line says."""

    stall: timedelta | None = None
    """How long an answer may bring nothing new; None: not known."""

    def __init__(
        self,
        surface: TurnSurface,
        status: StatusLine,
        *,
        root: str = "",
        unfolding: str = "",
        clock: Clock | None = None,
    ) -> None:
        """`root` is left out of paths in it; `unfolding` says how to see what is folded."""
        self._surface, self._clock = surface, clock or SystemClock()
        self._root, self._unfolding = root.rstrip("/"), unfolding
        self.status = status
        self.folds: deque[FoldedOutput] = deque(maxlen=MAX_FOLDS)
        self.past = NO_PAST_USAGE
        """Of a session that goes on, until its first answer."""
        self.acts: deque[LayerAct] = deque(maxlen=MAX_ACTS)
        """What layers did, the newest last."""
        self.caches: dict[str, CacheState] = {}
        """What each model has in its cache, as its last answer left it."""
        self.model = ""
        """Whose answers come, by its name in the catalog."""
        self.bill_after_cut: CutBill | None = None
        """Of the first round after the last cut."""
        self._is_after_cut = False
        self.asked_diffs: dict[ToolUseId, str] = {}
        """Changes that were shown when they were asked for: they need not be shown again."""
        self._steps: deque[str] = deque(maxlen=MAX_ACTS)
        """Of a compaction: they unfold from its line."""
        self.read_summary: Callable[[], str] | None = None
        """The summary that stands for what came before."""
        self.is_echoed = False
        """What a person types stands on the screen already."""
        self.is_verbose = False
        """Output is shown whole."""
        self._stream = MarkdownStream()
        self._thinking = ""
        self._waits_for = WAITING
        self._retry: _Retry | None = None
        self.retries = 0
        """How often the last request was sent again, before anything of its answer came."""
        self._last_event_at = timedelta()
        """When anything came last, by uptime."""
        self._turn_tokens, self._streamed_chars = 0, 0
        self._running: dict[ToolUseId, _Running] = {}
        self._command: _Running | None = None
        """What the person runs, beside the turn."""
        self._is_after_tool = False
        self._prompt = ""

    @property
    def cache(self) -> CacheState | None:
        """What the last answer left in the cache of the model that is asked next."""
        return self.caches.get(self.model)

    @property
    def phase(self) -> str:
        """What the turn is doing now, in a few words."""
        running = next(iter(self._running.values()), None)
        if running:
            return f"running {running.tool}"
        now, retry = self._clock.uptime(), self._retry
        if retry is not None and retry.at > now:
            return render_retry(retry.event, retry.at - now)
        silence = now - (retry.at if retry else self._last_event_at)
        attempt = f"retry {retry.event.retry} of {retry.event.of}: " if retry else ""
        return attempt + render_wait(self._waits_for, silence, self.stall)

    @property
    def turn_tokens(self) -> int:
        """That the model wrote in this turn: as billed for ended rounds, estimated for this one."""
        return self._turn_tokens + self._streamed_chars // _CHARS_A_TOKEN

    def take_up(self, past: PastUsage, limit_tokens: int) -> None:
        """What is known of a session that goes on, instead of what was known of another one."""
        self.caches, self.acts = dict(past.caches), deque(past.acts, maxlen=MAX_ACTS)
        self.bill_after_cut, self._is_after_cut = past.bill_after_cut, False
        self.past = past
        tokens = past.context_tokens
        limit = limit_tokens if tokens else 0
        self.status = replace(self.status, context_tokens=tokens, limit_tokens=limit, news="")

    def begin_command(self, command: str) -> None:
        """A command runs that the person typed."""
        title = self._title(_TYPED_USE, command)
        self._command = _Running(title=title, tool="shell", since=self._clock.uptime())
        self._surface.refresh()

    def watch_command(self, printed: str) -> None:
        if self._command is not None:
            self._command.take(printed)
            self._surface.refresh()

    def end_command(self, output: ToolOutput | None) -> None:
        """It is over, or was interrupted."""
        command, self._command = self._command, None
        if command is None:
            return
        if output is None:
            self._show_interrupted(command)
            return
        took = self._clock.uptime() - command.since
        self._running[_TYPED_USE.id] = command
        self._show_ended(ToolEnded(use=_TYPED_USE, output=output, took=took, said=""))

    def watch(self, seen: TurnEvent) -> None:
        self._last_event_at = self._clock.uptime()
        match seen:
            case DeltaReceived():
                self._retry = None
                self._stream_in(seen.delta)
            case ToolStarted():
                self._end_text()
                self._running[seen.use.id] = self._begin_tool(seen)
            case ToolPrinted():
                if seen.use.id in self._running:
                    self._running[seen.use.id].take(seen.text)
            case ToolEnded():
                self._show_ended(seen)
            case RoundEnded():
                self._end_round(seen)
            case LayerActed():
                self._show_act(seen)
            case NoticePosted():
                self.say(seen.text, "warning" if seen.is_warning else "accent")
        self._surface.refresh()

    def say(self, text: str, tone: TextTone = "plain") -> None:
        """A line of our own: above what is still being said, which it does not split."""
        self._is_after_tool = False
        label = _LABEL.match(text)
        self._surface.put(self._surface.renderer().line(text, tone, hang=label.end() if label else 0))

    def begin(self, typed: str) -> None:
        """A turn begins with what was typed."""
        self.echo(typed)
        self._prompt = " ".join(typed.split())[:_PROMPT_CHARS]
        self._turn_tokens, self._streamed_chars, self.retries = 0, 0, 0
        self._last_event_at = self._clock.uptime()
        # What a layer did in the turn before is no news any more.
        self.status = replace(self.status, is_working=True, news="")
        self._surface.refresh()

    def echo(self, typed: str) -> None:
        """Print what a person typed, unless the terminal has shown it."""
        self._is_after_tool = False
        if self.is_echoed:
            return
        self._surface.put(f"\n{self._surface.renderer().prompt(typed)}")

    def end(self) -> None:
        """The turn is over, however it ended."""
        self._retry, self._waits_for = None, WAITING
        self._end_text()
        for running in self._running.values():
            self._show_interrupted(running)
        self._running.clear()
        self.status = replace(self.status, is_working=False)
        self._surface.refresh()

    def live(self, renderer: TextRenderer) -> str:
        """What is still moving, in a few lines."""
        parts = [self._thinking_line(renderer)] if self._thinking else []
        growing = self._stream.growing(renderer.columns)
        if growing is not None:
            parts.append(render_spaced(renderer, growing))
        for running in (*self._running.values(), *([self._command] if self._command else [])):
            took = self._clock.uptime() - running.since
            seconds = f"  {int(took.total_seconds())} s" if took >= SLOW_TOOL_TIME else ""
            head = renderer.cut(f"○ {running.title}", renderer.columns - len(seconds))
            parts.append(renderer.line(f"{head}{seconds}", "accent"))
            tail = [renderer.cut(line, renderer.columns - 2) for line in running.tail()]
            parts += [renderer.line(line, "faint", indent=2) for line in tail]
        lines = "\n".join(parts).split("\n") if parts else []
        return "\n".join(lines[-MAX_LIVE_LINES:])

    def unfold(self, back: int = 1) -> bool:
        """Print the output that was folded last, or one before it; False when there is none."""
        if not 1 <= back <= len(self.folds):
            return False
        fold, renderer = self.folds[-back], self._surface.renderer()
        text = "\n".join(part for part in (fold.text, fold.read_more() if fold.read_more else "") if part)
        shown = renderer.diff(text) if fold.is_diff else renderer.line(text, "faint", indent=2)
        self._surface.put(f"{renderer.line(fold.title, 'accent')}\n{shown}".rstrip("\n"))
        return True

    def fold(self, title: str, text: str, *, is_diff: bool = False) -> None:
        """Keep what is not shown whole, so that it can be unfolded."""
        self.folds.append(FoldedOutput(title, text, is_diff=is_diff))

    def _begin_tool(self, seen: ToolStarted) -> _Running:
        title = self._title(seen.use, seen.said)
        return _Running(title=title, tool=seen.use.name, since=self._clock.uptime())

    def _stream_in(self, delta: Delta) -> None:
        self.retries = 0
        if isinstance(delta, TextDelta | ThinkingDelta):
            self._streamed_chars += len(delta.text)
        if isinstance(delta, TextDelta):
            self._thinking, self._waits_for = "", "writing"
            self._put_blocks(self._stream.feed(delta.text))
            if settled := self._stream.settle(self._surface.renderer(), MAX_LIVE_LINES):
                self._put_blocks((settled,))
        elif isinstance(delta, ThinkingDelta):
            self._thinking = (self._thinking + delta.text)[-_THINKING_CHARS:]
            self._waits_for = "thinking"

    def _end_text(self) -> None:
        self._thinking = ""
        self._put_blocks(self._stream.end())

    def _put_blocks(self, blocks: Iterable[MarkdownBlock]) -> None:
        renderer = self._surface.renderer()
        for block in blocks:
            self._surface.put(render_spaced(renderer, block))
            self._is_after_tool = False

    def _thinking_line(self, renderer: TextRenderer) -> str:
        words, room = " ".join(self._thinking.split()), max(renderer.columns - 12, 10)
        last = words[-room:]
        # The end of what is thought, from a whole word on where there is one.
        shown = last if len(words) <= room else last.partition(" ")[2] or last
        return renderer.line(f"thinking  {shown}", "faint")

    def _show_ended(self, seen: ToolEnded) -> None:
        running = self._running.pop(seen.use.id, None)
        title = running.title if running else self._title(seen.use, seen.said)
        renderer, output = self._surface.renderer(), seen.output
        lines = list_output_lines(output.content) if not output.diff else []
        most = OUTPUT_PREVIEW_LINES
        if not output.is_error:
            most = TOOL_PREVIEW_LINES.get(find_effect(seen.use), OUTPUT_PREVIEW_LINES)
        most = len(lines) if self.is_verbose else most
        shown = title if self.is_verbose else cut_title(title, renderer)
        if shown != title and len(lines) <= most:
            self.fold(title, "\n".join(lines))
            shown += self._unfolding_hint
        head = render_tool_head(shown, seen, len(lines), most)
        parts = [renderer.line(head, "error" if output.is_error else "good", hang=2)]
        if output.diff and self.asked_diffs.pop(seen.use.id, "") != output.diff:
            parts.append(self._render_diff(title, output.diff, renderer))
        parts += [renderer.line(line, "faint", indent=2) for line in self._fold(title, lines, most)]
        # Tools in a row stand close together.
        self._surface.put(("" if self._is_after_tool else "\n") + "\n".join(parts))
        self._is_after_tool = len(parts) == 1

    def _render_diff(self, title: str, diff: str, renderer: TextRenderer) -> str:
        if self.is_verbose:
            return renderer.diff(diff)
        if diff.count("\n") > SHOWN_DIFF_LINES:
            self.fold(title, diff, is_diff=True)
        return renderer.diff(diff, SHOWN_DIFF_LINES, self._unfolding)

    def _show_interrupted(self, running: _Running) -> None:
        """A call that has no result, with what it had printed last."""
        renderer = self._surface.renderer()
        took = self._clock.uptime() - running.since
        remark = f"  ({took.total_seconds():.1f} s)" if took >= SLOW_TOOL_TIME else ""
        head = f"✗ {cut_title(running.title, renderer)}  interrupted{remark}"
        parts = [renderer.line(head, "warning", hang=2)]
        parts += [renderer.line(line, "faint", indent=2) for line in running.tail()]
        self._surface.put("\n" + "\n".join(parts))

    def _fold(self, title: str, lines: list[str], most: int) -> list[str]:
        """Head and tail of an output that is too long; the whole can be unfolded."""
        if len(lines) <= most:
            return lines
        self.fold(title, "\n".join(lines))
        return cut_output_lines(lines, most, self._unfolding_hint) if most else []

    @property
    def _unfolding_hint(self) -> str:
        return f"  ({self._unfolding})" if self._unfolding else ""

    def _title(self, use: ToolUse, said: str) -> str:
        words = " ".join(said.split()).replace(f"{self._root}/", "") if self._root else " ".join(said.split())
        return words if use.name in words.split()[:2] else f"{use.name} {words}".rstrip()

    def _end_round(self, seen: RoundEnded) -> None:
        self._end_text()
        self._waits_for, self._retry, self.retries = WAITING, None, 0
        past, self.past = self.past, NO_PAST_USAGE
        missed = find_past_miss(past, self.model, seen.reply.usage, seen.started or self._clock.now())
        if missed is not None and not self._is_after_cut:
            self._show_act(LayerActed(missed))
        if self._is_after_cut:
            self.bill_after_cut, self._is_after_cut = read_cut_bill(seen.reply.usage, self.model), False
        self._turn_tokens, self._streamed_chars = self._turn_tokens + seen.reply.usage.output, 0
        usage, started = seen.reply.usage, seen.started or self._clock.now()
        state = read_cache_state(usage, started, self.cache, dialect=seen.reply.dialect)
        if state is not None:
            self.caches[self.model] = state
        else:
            self.caches.pop(self.model, None)
        self.status = replace(self.status, context_tokens=seen.context_tokens, limit_tokens=seen.limit_tokens)

    def _is_said(self, event: Event) -> bool:
        """Whether it was said before, or something else says it; `/layers` has all."""
        match event:
            case McpFailed():  # a server is tried again many times, and /mcp has its state
                past = (act.event for act in self.acts if isinstance(act.event, McpFailed))
                return (event.server, event.reason) in ((one.server, one.reason) for one in past)
            case VariablesHeld():  # an agent lacks what its starter does
                return any(act.event == event for act in self.acts)
            case ToolDenied():  # the call itself says so when it ends
                return event.who == MAIN_AGENT
            case ExtractionEnded():  # what was remembered has a line of its own
                return not (event.waiting or event.refused)
            case AgentEnded() | ForkEnded():  # a message says so, or what came of it
                return event.outcome == "answered"
            case _:  # the call says so
                return isinstance(event, AgentStarted)

    def _show_act(self, seen: LayerActed) -> None:
        is_said = self._is_said(seen.event)
        self.acts.append(LayerAct(self._clock.now(), seen.event, self._prompt, self.model))
        if isinstance(seen.event, CutRegistered):
            self.bill_after_cut, self._is_after_cut = None, True
        if is_said:
            return
        if isinstance(seen.event, RetryScheduled):
            self._show_retry(seen.event)
            return
        shown = render_event_text(seen.event)
        if shown is None:
            return
        text = f"layer {shown.layer}: {shown.text}" if shown.layer else shown.text
        if isinstance(seen.event, _COMPACTION_STEPS):
            self._steps.append(shown.text)
            return  # the line of the compaction unfolds to them
        if isinstance(seen.event, HistoryCompacted):
            self.status = replace(self.status, context_tokens=seen.event.tokens_after)
            cut, self.caches = self.cache, {}
            if cut is not None:
                self.caches[self.model] = replace(cut, tokens=seen.event.tokens_after, is_cut=True)
            self.folds.append(FoldedOutput(text, "\n".join(self._steps), self.read_summary))
            self._steps.clear()
            text += self._unfolding_hint
        self.status = replace(self.status, news=text)
        self.say(f"· {text}", "warning" if shown.is_warning else "faint")

    def _show_retry(self, event: RetryScheduled) -> None:
        """One line for all attempts: the line of the turn counts them."""
        self._retry = _Retry(event, self._clock.uptime() + timedelta(seconds=event.seconds))
        self.retries = event.retry
        shown = render_event_text(event)
        if event.retry == 1 and shown is not None:
            self.say(f"· {shown.text}", "warning")
            if remedy := find_retry_remedy(event):
                self.say(remedy, "warning")
