"""What the request path costs per round, from 10,000 to a million tokens of history.

    python bench/request_path.py [--data FOLDER] [--short] [--json] [--runs N] [--peer PYTHON]

    memory   prepare + record, nothing on disk: CPU time
    disk     the same with a transcript and an fsync in each: real time
    attach   a caller's own list of dicts and SDK objects: finding the conversation, prepare and record
    peer     LangChain's SummarizationMiddleware and ContextEditingMiddleware on the same history: CPU time

FOLDER has recorded sessions, sent one after another as a single long conversation; without it the rounds are
made up, some 780 tokens each.

All but the one on disk are run several times in turn, each in a process of its own, so that one run's heap is
not in another's way, and the least of every tenth counts: other work on a machine only ever adds to it. What
the last tenth costs against the first is told by giving the same rounds to a young conversation, each in
turn, in one process; of these ratios the median counts.

Bars: the last tenth of the rounds costs at most 1.2 times the first, 1 ms in memory, 3 ms through `attach`
at the end, and a tenth of the peer. PYTHON is an interpreter that can import `langchain`; without it, this
one is tried. It is no dependency of ours.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any, TypeVar

from request_path_rounds import Round, rounds_of

from sevenfold.core.events import Event
from sevenfold.core.json import JsonObject, freeze, thaw
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolUse, write_message
from sevenfold.core.requests import ModelResponse, RequestParams
from sevenfold.core.usage import read_usage
from sevenfold.integrations.conversations import AttachedConversation, ConversationPool
from sevenfold.providers.anthropic.wire import MessagesBodyWriter
from sevenfold.session import Session

MODEL = "claude-opus-5"
WHOLE, SHORT = 1_000_000, 100_000
START = 10_000
"""Where the first tenth begins: below it there is hardly a history."""
SETTINGS: dict[str, dict[str, object]] = {"models": {MODEL: {"window_tokens": 2_000_000}}}
"""Wide enough that no compaction makes the view shorter than the history."""
SCHEMA = JsonObject({"type": "object"})
TOOLS = tuple(
    JsonObject({"name": name, "description": f"{name} it. " * 20, "input_schema": SCHEMA})
    for name in ("Query", "Fetch")
)
"""Tools whose results layer 2 does not clear, for the same reason."""
FRAME = RequestParams(model=MODEL, max_tokens=8_000, system="You work on a repository. " * 100, tools=TOOLS)
ADVICE = "pip install langchain into an environment of its own, and name its interpreter with --peer"
BARS = {"flat": 1.2, "memory_ms": 1.0, "attach_ms": 3.0, "peer": 10.0}

Measured = TypeVar("Measured")


@dataclass(slots=True)
class Series:
    """Seconds of each round, and the size of the history after it."""

    seconds: list[float] = field(default_factory=list[float])
    tokens: list[int] = field(default_factory=list[int])

    def add(self, seconds: float, tokens: int) -> None:
        self.seconds.append(seconds)
        self.tokens.append(tokens)

    def deciles(self) -> list[float]:
        """Milliseconds: the median of each tenth."""
        measured = [one for one, size in zip(self.seconds, self.tokens, strict=True) if size >= START]
        step = max(1, len(measured) // 10)
        parts = [measured[at * step : (at + 1) * step] for at in range(10)]
        return [median(part) * 1_000 for part in parts if part]


def least(runs: Sequence[Series]) -> list[float]:
    """Milliseconds of each tenth, where it was disturbed least."""
    return [min(parts) for parts in zip(*(run.deciles() for run in runs), strict=True)]


def reply_to(message: Message, number: int, prompt: int, before: int) -> ModelResponse:
    """As if the provider had billed what we counted."""
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": before,
        "cache_creation_input_tokens": max(0, prompt - before - 3),
        "output_tokens": 150,
    }
    wire = freeze(usage)
    assert isinstance(wire, JsonObject)
    return ModelResponse(
        message=message,
        usage=read_usage(usage),
        usage_wire=wire,
        stop_reason="tool_use",
        id=f"msg_{number}",
        model=MODEL,
    )


@dataclass(slots=True, kw_only=True)
class Own:
    """A conversation in our own append-only history, a round at a time."""

    session: Session
    timer: Callable[[], float]
    series: Series = field(default_factory=Series)
    number: int = 0
    tokens: int = 0

    @classmethod
    async def open(cls, home: Path | None, timer: Callable[[], float]) -> Own:
        environ = {"HOME": str(home or "/nonexistent")}
        session = await Session.open(FRAME, project=home, settings=SETTINGS, environ=environ)
        session.history.append(Message("user", "Please mend the parser."))
        return cls(session=session, timer=timer)

    async def grow(self, rounds: Iterator[Round], limit: int) -> None:
        while self.tokens < limit:
            await self.step(next(rounds))

    async def step(self, round_: Round) -> None:
        started = self.timer()
        view = await self.session.prepare()
        spent = self.timer() - started
        reply = reply_to(round_.answer, self.number, view.tokens, self.tokens)
        started = self.timer()
        await self.session.record(reply)
        self.series.add(spent + self.timer() - started, view.tokens)
        self.session.history.append(round_.result)
        self.number, self.tokens = self.number + 1, view.tokens


@dataclass(frozen=True, slots=True)
class Work:
    """How long a history, and of what."""

    limit: int
    data: Path | None


@dataclass(frozen=True, slots=True)
class Grown:
    """A conversation that grew to the end, and what its last tenth costs against the first of another."""

    series: Series
    ratio: float


async def measure_disk(work: Work, home: Path) -> Series:
    own = await Own.open(home, perf_counter)
    async with own.session:
        await own.grow(rounds_of(work.data), work.limit)
    return own.series


async def measure_memory(work: Work) -> Grown:
    """The last tenth's rounds go to this conversation and to a young one in turn, so that both have the same
    work and the same machine: what else runs on it changes within seconds by more than is asked for here."""
    rounds, limit = rounds_of(work.data), work.limit
    old, young = await Own.open(None, thread_time), await Own.open(None, thread_time)
    async with old.session, young.session:
        await young.grow(rounds_of(work.data), START)
        await old.grow(rounds, limit * 9 // 10)
        at, first = len(old.series.seconds), len(young.series.seconds)
        while old.tokens < limit:
            round_ = next(rounds)
            # Whoever comes second finds the round's own texts near: that is each of them in turn.
            first_to_go = (young, old) if old.number % 2 else (old, young)
            for own in first_to_go:
                await own.step(round_)
    ratio = median(old.series.seconds[at:]) / median(young.series.seconds[first:])
    return Grown(old.series, ratio)


@dataclass(slots=True, kw_only=True)
class Attached:
    """What `attach` does to each request, without HTTP."""

    events: list[Event] = field(default_factory=list[Event])
    ours: Series = field(default_factory=Series)
    body: Series = field(default_factory=Series)
    messages: list[Any] = field(default_factory=list[Any])
    changed_ms: float = 0.0
    after_change_ms: float = 0.0
    moved_ms: float = 0.0
    is_change_found: bool = False
    is_move_silent: bool = False

    async def run(self, work: Work) -> None:
        pool = ConversationPool[MessagesBodyWriter](open_conversation=self._open)
        self.messages.append({"role": "user", "content": "Please mend the parser."})
        rounds, number, tokens, before = rounds_of(work.data), 0, 0, 0
        while tokens < work.limit:
            tokens = await self._ask(pool, next(rounds), number, before)
            number, before = number + 1, tokens
        await self._disturb(pool)
        await pool.close()

    async def _open(
        self, frame: RequestParams, _: str, _messages: Sequence[object]
    ) -> AttachedConversation[MessagesBodyWriter]:
        environ = {"HOME": "/nonexistent"}
        session = await Session.open(
            frame, project=None, settings=SETTINGS, environ=environ, emit=self.events.append
        )
        return AttachedConversation(session=session, writer=MessagesBodyWriter())

    async def _ask(
        self, pool: ConversationPool[MessagesBodyWriter], round_: Round, number: int, before: int
    ) -> int:
        started = thread_time()
        conversation = (await pool.find(self.messages, FRAME)).conversation
        view = await conversation.session.prepare(self.messages, frame=FRAME)
        spent = thread_time() - started
        started = thread_time()
        conversation.writer.write(view.request, streams=False)
        self.body.add(thread_time() - started, view.tokens)
        reply = reply_to(round_.answer, number, view.tokens, before)
        started = thread_time()
        await conversation.session.record(reply)
        self.ours.add(spent + thread_time() - started, view.tokens)
        self.messages += [sdk_answer(round_.answer), write_message(round_.result)]
        return view.tokens

    async def _disturb(self, pool: ConversationPool[MessagesBodyWriter]) -> None:
        """The caller moves a cache marker, and then changes an old message in place."""
        told = len(self.events)
        self.messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
        self.moved_ms = await self._time(pool)
        del self.messages[-1]["content"][0]["cache_control"]
        self.messages[-3]["content"][0]["cache_control"] = {"type": "ephemeral"}
        self.moved_ms = max(self.moved_ms, await self._time(pool))
        self.is_move_silent = len(self.events) == told
        old = next(block for block in self._results(len(self.messages) // 2) if len(block["content"]) > 1)
        old["content"] = old["content"][:-1] + "!"
        self.changed_ms = await self._time(pool)
        self.is_change_found = any(type(event).__name__ == "HistoryChanged" for event in self.events[told:])
        self.messages.append({"role": "user", "content": "And now?"})
        self.after_change_ms = await self._time(pool)

    def _results(self, start: int) -> Iterator[dict[str, Any]]:
        """Results in text, from this message on."""
        for message in self.messages[start:]:
            has_results = message["role"] == "user" and not isinstance(message["content"], str)
            for block in message["content"] if has_results else ():
                if isinstance(block.get("content"), str):
                    yield block

    async def _time(self, pool: ConversationPool[MessagesBodyWriter]) -> float:
        started = thread_time()
        conversation = (await pool.find(self.messages, FRAME)).conversation
        await conversation.session.prepare(self.messages, frame=FRAME)
        return (thread_time() - started) * 1_000


def sdk_answer(message: Message) -> dict[str, Any]:
    """An answer as callers append it: the SDK's own objects in a dict."""
    return {"role": "assistant", "content": [sdk_block(block) for block in message.blocks]}


def sdk_block(block: Block) -> object:
    from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock

    match block:
        case Text():
            return TextBlock.construct(type="text", text=block.text)
        case Thinking():
            return ThinkingBlock(type="thinking", thinking=block.thinking, signature=block.signature or "")
        case ToolUse():
            given: dict[str, object] = {key: thaw(value) for key, value in block.input.items()}
            return ToolUseBlock(type="tool_use", id=block.id, name=block.name, input=given)
        case _:
            raise ValueError(f"an answer with {block!r} in it")


def run_memory(work: Work) -> Grown:
    gc.freeze()
    return asyncio.run(measure_memory(work))


def run_disk(work: Work) -> Series:
    gc.freeze()
    with tempfile.TemporaryDirectory() as home:
        return asyncio.run(measure_disk(work, Path(home)))


def run_attached(work: Work) -> Attached:
    gc.freeze()
    attached = Attached()
    asyncio.run(attached.run(work))
    # The figures go back to the parent process, and nothing else.
    attached.messages, attached.events = [], []
    return attached


def apart(run: Callable[[Work], Measured], work: Work) -> Measured:
    """What a run measures in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, work).result()


def measure_peer(python: str, data: Path | None, rounds: int) -> dict[str, Any]:
    """Milliseconds by history size, or why there are none."""
    wire: list[object] = [{"role": "user", "content": "Please mend the parser."}]
    for round_ in islice(rounds_of(data), rounds):
        wire += [write_message(round_.answer), write_message(round_.result)]
    shares = ("0.01", "0.1", "1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.json"
        path.write_text(json.dumps(wire), encoding="utf-8")
        script = Path(__file__).with_name("request_path_peer.py")
        done = subprocess.run(
            [python, str(script), str(path), *shares], capture_output=True, text=True, check=False
        )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return {"skipped": f"{why[0]}; {ADVICE}"}
    return json.loads(done.stdout)


def least_peer(peers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By history size the run that was disturbed least."""
    ran = [peer for peer in peers if "skipped" not in peer]
    if not ran:
        return peers[0]
    times = {size: min(peer["milliseconds"][size] for peer in ran) for size in ran[0]["milliseconds"]}
    return {**ran[0], "milliseconds": times}


def summarise(
    grown: Sequence[Grown], disk: Series, runs: Sequence[Attached], peer: dict[str, Any]
) -> dict[str, Any]:
    own, ratios = [run.series for run in grown], [run.ratio for run in grown]
    parts, kept = least(own), disk.deciles()
    through = least([run.ours for run in runs])
    report: dict[str, Any] = {
        "runs": len(own),
        "rounds": len(own[0].seconds),
        "tokens": own[0].tokens[-1],
        "memory_deciles_ms": [round(part, 4) for part in parts],
        "memory_ms": round(min(median(run.seconds) for run in own) * 1_000, 4),
        "memory_ratio": round(median(ratios), 3),
        "memory_ratios": [round(ratio, 3) for ratio in ratios],
        "disk_deciles_ms": [round(part, 3) for part in kept],
        "disk_ratio": round(kept[-1] / kept[0], 3),
        "attach_deciles_ms": [round(part, 3) for part in through],
        "attach_last_ms": round(through[-1], 3),
        "attach_lasts_ms": [round(run.ours.deciles()[-1], 3) for run in runs],
        "attach_body_last_ms": round(least([run.body for run in runs])[-1], 3),
        "attach_marker_moved_ms": round(min(run.moved_ms for run in runs), 3),
        "attach_marker_moved_is_silent": all(run.is_move_silent for run in runs),
        "attach_changed_ms": round(min(run.changed_ms for run in runs), 3),
        "attach_change_is_found": all(run.is_change_found for run in runs),
        "attach_after_change_ms": round(min(run.after_change_ms for run in runs), 3),
        "peer": peer,
    }
    times: Sequence[float] = list(peer.get("milliseconds", {}).values())
    if times:
        report["peer_ratio_memory"] = round(times[-1] / parts[-1], 1)
        report["peer_ratio_attach"] = round(times[-1] / report["attach_last_ms"], 1)
    return report


def print_report(report: dict[str, Any]) -> None:
    print(f"{report['rounds']:,} rounds, {report['tokens']:,} tokens of history at the end\n")
    for way in ("memory", "disk", "attach"):
        figures = " ".join(f"{figure:6.2f}" for figure in report[f"{way}_deciles_ms"])
        print(f"{way + ', by tenths':<20}{figures}  ms")
    print()
    for line in lines_of(report):
        mark = "" if line.is_met is None else "  met" if line.is_met else "  MISSED"
        print(f"{line.name:<32}{line.figure}{mark}")


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    figure: str
    is_met: bool | None = None
    """None where there is no bar."""


def lines_of(report: dict[str, Any]) -> Iterator[Line]:
    own, flat, through = report["memory_ms"], report["memory_ratio"], report["attach_last_ms"]
    moved, changed = report["attach_marker_moved_is_silent"], report["attach_change_is_found"]
    yield Line("memory: median of all rounds", f"{own} ms", own <= BARS["memory_ms"])
    each = ", ".join(map(str, report["memory_ratios"]))
    yield Line("memory: last tenth / first", f"{flat} (each run: {each})", flat <= BARS["flat"])
    yield Line("disk: last tenth / first", str(report["disk_ratio"]))
    each = ", ".join(map(str, report["attach_lasts_ms"]))
    yield Line("attach: at the end", f"{through} ms (each run: {each})", through <= BARS["attach_ms"])
    yield Line("attach: writing the body", f"{report['attach_body_last_ms']} ms")
    silent = "no cut" if moved else "A CUT"
    yield Line("attach: a marker moved", f"{report['attach_marker_moved_ms']} ms, {silent}", moved)
    found = "found" if changed else "NOT FOUND"
    yield Line("attach: an old message changed", f"{report['attach_changed_ms']} ms once, {found}", changed)
    yield Line("attach: the request after it", f"{report['attach_after_change_ms']} ms")
    peer = report["peer"]
    if "skipped" in peer:
        yield Line("langchain", f"skipped: {peer['skipped']}")
        return
    times = ", ".join(f"{size} messages {time:.2f} ms" for size, time in peer["milliseconds"].items())
    yield Line(f"langchain {peer['version']}", times)
    for way in ("memory", "attach"):
        ratio = report[f"peer_ratio_{way}"]
        # On a short history there is little to be slow with.
        is_met = ratio >= BARS["peer"] if report["tokens"] >= WHOLE else None
        yield Line(f"langchain / {way}", f"{ratio} times", is_met)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with sessions/claude*/*.jsonl in it")
    parser.add_argument("--short", action="store_true", help=f"up to {SHORT:,} tokens instead of {WHOLE:,}")
    parser.add_argument("--json", action="store_true", help="print figures alone")
    parser.add_argument(
        "--peer", metavar="PYTHON", default=sys.executable, help="an interpreter with langchain"
    )
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="how often each is run (5)")
    asked = parser.parse_args()
    work = Work(SHORT if asked.short else WHOLE, asked.data)
    runs = range(max(1, asked.runs))
    own: list[Grown] = []
    attached: list[Attached] = []
    peers: list[dict[str, Any]] = []
    for number in runs:
        print(f"\r· run {number + 1} of {len(runs)}", end="", file=sys.stderr, flush=True)
        own.append(apart(run_memory, work))
        attached.append(apart(run_attached, work))
        peers.append(measure_peer(asked.peer, asked.data, len(own[0].series.seconds)))
    disk = apart(run_disk, replace(work, limit=min(work.limit, 3 * SHORT)))
    print(file=sys.stderr)
    report = summarise(own, disk, attached, least_peer(peers))
    if asked.json:
        print(json.dumps(report))
    else:
        print_report(report)


if __name__ == "__main__":
    main()
