"""Real sessions, replayed call by call: what `tokens.py` and `token_weights.py` measure on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import fmean, median

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object, write_json
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolResult, ToolUse, read_message
from sevenfold.core.prices import Catalog
from sevenfold.core.tokens import Tally, TokenEstimator
from sevenfold.core.usage import Usage, read_openai_usage, read_usage

COLD_CALLS = 10
"""The first calls of a session, in which there is little or nothing to learn from."""


@dataclass(frozen=True, slots=True)
class Line:
    message: Message
    usage: Usage | None
    model: str
    has_boundary: bool


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One API call as estimated just before it and billed with it."""

    session: str
    number: int
    """From 0 in its session."""
    model: str
    estimate: int
    billed: int
    prompt: int

    @property
    def error(self) -> float:
        return (self.estimate - self.billed) / self.billed


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a set of calls shows; errors are shares of what was billed."""

    calls: int
    median: float
    p95: float
    bias: float
    """The sum of the estimates against the sum of the bills."""
    mean_error: float
    cold_median: float
    grew_not: int
    """Calls whose prompt did not grow: no relative error, and in none of the figures above."""
    bias_with_them: float
    p95_with_them: float
    """With each of them counted as wholly wrong."""
    whole_median: float
    """Of the canonical count: the last real total plus the estimate, against the real total."""
    whole_p95: float


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Calls on which no estimate of the new part can be measured."""

    first_of_session: int
    after_boundary: int


def block_bytes(block: Block) -> int:
    """A block's own content as UTF-8; tool input as JSON."""
    match block:
        case Text():
            return _size(block.text)
        case Thinking():
            return _size(block.thinking)
        case ToolUse():
            return len(write_json(block.input))
        case ToolResult():
            content = block.content or ""
            return _size(content) if isinstance(content, str) else sum(block_bytes(item) for item in content)
        case _:
            return 0


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def read_sessions(data: Path, folders: str) -> list[Session]:
    """Every session in the folders whose name starts so; none is an empty list."""
    files = sorted(data.glob(f"sessions/{folders}*/*.jsonl"))
    return [Session(file.stem, tuple(_read_lines(file))) for file in files]


def read_claude_sessions(data: Path) -> list[Session]:
    """Every Claude session, sub-agents included. Without any there is nothing to measure."""
    sessions = read_sessions(data, "claude")
    if not sessions:
        raise SystemExit(f"error: no claude*/*.jsonl in {data / 'sessions'}; give --data the folder above it")
    return sessions


def _read_lines(file: Path) -> Iterator[Line]:
    with file.open("rb") as source:
        for raw in source:
            line = read_object(raw)
            meta = line.get("meta")
            meta = meta if isinstance(meta, JsonObject) else EMPTY_OBJECT
            model = meta.get("model")
            yield Line(
                read_message(line.without("meta")),
                _read_usage(meta.get("usage")),
                model if isinstance(model, str) else "",
                "boundary" in meta,
            )


def _read_usage(wire: Json) -> Usage | None:
    """None where no call was made: some programs log an answer of their own, with a bill of nothing."""
    if not isinstance(wire, JsonObject):
        return None
    usage = read_openai_usage(wire) if "cached_input_tokens" in wire else read_usage(wire)
    return usage if usage.prompt else None


def regrouped(session: Session) -> Session:
    """Codex logs each tool request with its result, and the usage after the last request of a response.

    So all replies since the usage before belong to one response, and the results between them came after it.
    """
    lines: list[Line] = []
    replies: list[Line] = []
    results: list[Line] = []
    for line in session.lines:
        if line.message.role != "assistant":
            (results if replies else lines).append(line)
            continue
        replies.append(line)
        if line.usage is not None:
            blocks = tuple(block for reply in replies for block in reply.message.blocks)
            has_boundary = any(reply.has_boundary for reply in replies)
            lines.append(Line(Message("assistant", blocks), line.usage, line.model, has_boundary))
            lines += results
            replies, results = [], []
    return Session(session.name, tuple(lines))


def replay(session: Session, estimator: TokenEstimator, drill: float = 1.0) -> Iterator[Call]:
    """The session again, call by call. `drill` multiplies every bill, as an unknown tokenizer would."""
    catalog = Catalog()
    model = ""
    tally = Tally(catalog.find(model), estimator=estimator)
    billed_before: int | None = None
    number = 0
    for line in session.lines:
        if line.has_boundary:
            tally.cut(())
            billed_before = None
        if line.usage is None:
            tally.add(line.message)
            continue
        if line.model != model:
            model = line.model
            tally.switch_model(catalog.find(model))
        usage = Usage(fresh=round(line.usage.prompt * drill))
        if billed_before is not None:
            estimate = tally.count().tokens - billed_before
            yield Call(
                session=session.name,
                number=number,
                model=model,
                estimate=estimate,
                billed=usage.prompt - billed_before,
                prompt=usage.prompt,
            )
        tally.bill(usage, line.message, is_output_known=False)
        billed_before = usage.prompt
        number += 1


def replay_all(sessions: Iterable[Session], estimator: TokenEstimator, drill: float = 1.0) -> list[Call]:
    return [call for session in sessions for call in replay(session, estimator, drill)]


def measure_each(parts: Mapping[str, Sequence[Call]]) -> dict[str, Figures]:
    """The figures of each part that has any."""
    return {name: measure(calls) for name, calls in parts.items() if any(call.billed > 0 for call in calls)}


def measure(calls: Sequence[Call]) -> Figures:
    grew = [call for call in calls if call.billed > 0]
    cold = [abs(call.error) for call in grew if call.number < COLD_CALLS]
    errors = sorted(abs(call.error) for call in grew)
    whole = sorted(abs(call.estimate - call.billed) / call.prompt for call in grew)
    return Figures(
        calls=len(grew),
        median=median(errors),
        p95=_at(errors, 0.95),
        bias=_bias(grew),
        mean_error=fmean(call.error for call in grew),
        cold_median=median(cold) if cold else 0.0,
        grew_not=len(calls) - len(grew),
        bias_with_them=_bias(calls),
        p95_with_them=_at([*errors, *[inf] * (len(calls) - len(grew))], 0.95),
        whole_median=median(whole),
        whole_p95=_at(whole, 0.95),
    )


def exclusions(sessions: Iterable[Session]) -> Exclusions:
    """What the two rules leave out."""
    first = boundary = 0
    for session in sessions:
        is_first, is_after = True, False
        for line in session.lines:
            is_after = is_after or line.has_boundary
            if line.usage is not None:
                first += is_first
                boundary += is_after and not is_first
                is_first = is_after = False
    return Exclusions(first, boundary)


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _bias(calls: Sequence[Call]) -> float:
    return sum(call.estimate for call in calls) / sum(call.billed for call in calls) - 1
