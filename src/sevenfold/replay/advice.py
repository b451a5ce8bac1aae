"""What to do about the bill: advice with dollars, evidence, and a command or a setting, the largest first.

Pure: figures of a report in, advice out. Amounts overlap (a file that was read again may be a large result,
too), so they are never added up. Nothing is said about other models: whether a cheaper one would have done
the work is not in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from shlex import quote
from typing import Literal, TypeAlias

from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.tool_kinds import MCP_PREFIX, find_tool
from sevenfold.replay.bills import CostlyResult
from sevenfold.replay.calls import LONG_CACHE_TTL, SHORT_CACHE_TTL, BreakCause, CacheBreak
from sevenfold.replay.report import ReplayReport, SavingRange, SessionReport
from sevenfold.store.foreign.entries import AGENT_NAMES, ForeignAgent

MIN_ADVICE_USD = Decimal("0.10")
MIN_ADVICE_SHARE = Decimal("0.01")
"""Of what was spent. Advice on less than either is not worth reading."""
LARGE_RESULT_TOKENS = 10_000
PREVIEW_TOKENS = 2_000
"""What a large result could have been: its beginning, and where the rest is."""
MAX_EVIDENCE = 3

AdviceKind: TypeAlias = Literal["clearing", "pauses", "breaks", "reads", "results", "servers"]


@dataclass(frozen=True, slots=True)
class Evidence:
    text: str
    session: str = ""
    """The name of the session that shows it; "" where it is not one alone."""
    at: datetime | None = None
    usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    kind: AdviceKind
    cause: BreakCause | None = None
    """Of the breaks that it is about."""
    title: str
    why: str
    action: str
    command: str
    """What to type or to set; "" where there is nothing."""
    low_usd: Decimal | None
    """What it saves at least; None: only the most is known."""
    high_usd: Decimal
    is_estimated: bool = True
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayFindings:
    """A report and what follows from it."""

    report: ReplayReport
    saving: SavingRange | None = None
    """What Sevenfold would have saved; None where nothing could be played."""
    advice: tuple[Advice, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    session: SessionReport
    item: CacheBreak

    @property
    def usd(self) -> Decimal:
        return self.item.lost_usd or Decimal(0)


def plan_advice(
    report: ReplayReport, saving: SavingRange | None = None, catalog: Catalog = CATALOG
) -> tuple[Advice, ...]:
    """Everything that would save at least a hundredth of what was spent, and ten cents; the most first."""
    spent = report.totals.cost.total
    sessions = report.sessions
    found = [
        *_advise_clearing(saving, report),
        *_advise_pauses(sessions, catalog),
        *_advise_breaks(sessions),
        *_advise_reads(sessions),
        *_advise_results(sessions),
        *_advise_servers(sessions),
    ]
    least = max(MIN_ADVICE_USD, MIN_ADVICE_SHARE * spent)
    worth = [item for item in found if item.high_usd >= least]
    return tuple(sorted(worth, key=lambda item: (-item.high_usd, item.title)))


def _advise_clearing(saving: SavingRange | None, report: ReplayReport) -> Iterator[Advice]:
    if saving is None or saving.high <= 0:
        return
    low, high = (Decimal(str(round(part * saving.usd, 6))) for part in (saving.low, saving.high))
    part = f"{saving.low:.0%} to {saving.high:.0%}" if saving.low else f"up to {saving.high:.0%}"
    yield Advice(
        kind="clearing",
        title=f"Sevenfold would have saved {part} of {saving.describe_scope(report)}",
        why=(
            "It removes old tool results from the context when that costs less than sending them again. "
            f"Estimated on {_count(saving.sessions, 'session')}. The range is how far such "
            "estimates were off on sessions that were not used to tune them."
        ),
        action="Start your agent with `sevenfold run`, or use `sevenfold chat`. Session by session:",
        command="sevenfold replay --policy sevenfold",
        low_usd=low,
        high_usd=high,
    )


_HOUR_SETTINGS: dict[ForeignAgent, str] = {
    "claude-code": "export ENABLE_PROMPT_CACHING_1H=1",
    "sevenfold": '[cache]\nttl = "1h"',
    "messages": '"cache_control": {"type": "ephemeral", "ttl": "1h"}',
}


def _advise_pauses(sessions: Sequence[SessionReport], catalog: Catalog) -> Iterator[Advice]:
    """The 1-hour cache, for each agent where it would have cost less than the pauses did; for all other
    pauses, what they cost."""
    rest: list[_Found] = []
    for agent, name in _AGENTS.items():
        own = [session for session in sessions if session.agent == agent]
        pauses = _breaks(own, lambda item: item.cause == "idle")
        short = [found for found in pauses if _is_short_pause(found.item)]
        extra = sum((_hour_extra(session, catalog) for session in own), Decimal(0))
        lost = sum((found.usd for found in short), Decimal(0))
        if agent not in _HOUR_SETTINGS or lost <= extra:
            rest += pauses
            continue
        rest += [found for found in pauses if not _is_short_pause(found.item)]
        yield Advice(
            kind="pauses",
            cause="idle",
            title=f"Pauses of 5 minutes to an hour cost {_usd(lost)}: use the 1-hour cache",
            why=(
                f"{_count(len(short), 'time')} the cache had expired when the work went on. Writing to the "
                f"1-hour cache would have cost {_usd(extra)} more, so it saves {_usd(lost - extra)}."
            ),
            action=f"Set the 1-hour cache for {name}:",
            command=_HOUR_SETTINGS[agent],
            low_usd=lost - extra,
            high_usd=lost - extra,
            evidence=_evidence(short),
        )
    yield from _advise_cause("idle", _LONG_PAUSE, rest)


def _is_short_pause(item: CacheBreak) -> bool:
    is_five_minutes = item.life is not None and item.life <= SHORT_CACHE_TTL
    return is_five_minutes and item.gap is not None and item.gap <= LONG_CACHE_TTL


def _hour_extra(session: SessionReport, catalog: Catalog) -> Decimal:
    """What writing for an hour would have cost more than writing for five minutes did."""
    extra = Decimal(0)
    for bill in session.bills:
        tariff = catalog.find(bill.model).prices_at(session.first_at)
        if bill.cost and tariff and tariff.prices.written_5m:
            extra += bill.cost.written_5m * (tariff.prices.written_1h / tariff.prices.written_5m - 1)
    return extra


_AGENTS: dict[ForeignAgent, str] = {**AGENT_NAMES, "messages": "your agent"}


@dataclass(frozen=True, slots=True)
class _CauseAdvice:
    title: str
    why: str
    action: str
    command: str


_LONG_PAUSE = _CauseAdvice(
    "Pauses longer than the cache lives cost {}",
    "The cached context had expired, and all of it was written again. A 1-hour cache would cost more, or "
    "cannot be set.",
    "Begin a new session after a pause, or compact before it: then only the summary is written.",
    "/compact",
)
_CAUSES: dict[BreakCause, _CauseAdvice] = {
    "model switch": _CauseAdvice(
        "Switching the model in mid-session cost {}",
        "Each model has its own cache, so the whole context was written again for the other one.",
        "Choose the model when a session begins, or switch right after a compaction.",
        "/compact, then /model",
    ),
    "system prompt": _CauseAdvice(
        "A system prompt that changed cost {}",
        "Everything after the first changed byte was written again.",
        "Keep times, counters and lists that change out of the system prompt and out of CLAUDE.md.",
        "",
    ),
    "tools": _CauseAdvice(
        "Tools that changed in mid-session cost {}",
        "Tools stand before everything else, so a server that joins late breaks the whole cache.",
        "Start MCP servers with the session, and do not add or remove any while it runs.",
        "",
    ),
    "parameters": _CauseAdvice(
        "Parameters that changed in mid-session cost {}",
        "A change of thinking or of similar parameters makes the provider write messages again.",
        "Choose the thinking budget when a session begins.",
        "",
    ),
    "history": _CauseAdvice(
        "Messages that were rewritten cost {}",
        "An earlier message was not sent as before, so everything after it was written again.",
        "Run the agent behind the proxy: it names the first message that differs.",
        "sevenfold run claude",
    ),
    "unexplained": _CauseAdvice(
        "Breaks that the log does not explain cost {}",
        "Nothing in the log says why: requests are not in it, and a provider may drop an entry early.",
        "Run the agent behind the proxy: it compares requests and names what changed.",
        "sevenfold run claude",
    ),
}
"""A compaction and a clearing cost a break by design: nothing is to be done about those."""


def _advise_breaks(sessions: Sequence[SessionReport]) -> Iterator[Advice]:
    for cause, words in _CAUSES.items():
        yield from _advise_cause(cause, words, _breaks(sessions, lambda item, at=cause: item.cause == at))


def _advise_cause(cause: BreakCause, words: _CauseAdvice, found: Sequence[_Found]) -> Iterator[Advice]:
    lost = sum((item.usd for item in found), Decimal(0))
    if lost:
        yield Advice(
            kind="breaks",
            cause=cause,
            title=words.title.format(_usd(lost)),
            why=f"{_count(len(found), 'time')}: {words.why[0].lower()}{words.why[1:]}",
            action=words.action,
            command=words.command,
            low_usd=None,
            high_usd=lost,
            is_estimated=False,
            evidence=_evidence(found),
        )


def _advise_reads(sessions: Sequence[SessionReport]) -> Iterator[Advice]:
    total, rows = Decimal(0), list[Evidence]()
    files: set[str] = set()
    times = 0
    for session in sessions:
        price = _prompt_price(session)
        entered = session.fill.repeated_entered_tokens
        usd = session.fill.repeated_carried_tokens * price
        total += usd
        for item in session.repeated_reads:
            files.add(item.path)
            times += item.times
            part = usd * item.tokens / entered if entered else None
            text = f"{item.path}: read {_count(item.times, 'time')} again"
            rows.append(Evidence(text, session.name, usd=part))
    if not files:
        return
    yield Advice(
        kind="reads",
        title=f"{_count(len(files), 'unchanged file')} {'was' if len(files) == 1 else 'were'} read again, "
        f"{_count(times, 'time')} in all",
        why="The same content was already in the context. Every copy was sent with each later call.",
        action="Tell the agent so, in CLAUDE.md or AGENTS.md:",
        command="Do not read a file again that is in your context and has not changed.",
        low_usd=None,
        high_usd=total,
        evidence=_most(rows),
    )


def _advise_results(sessions: Sequence[SessionReport]) -> Iterator[Advice]:
    found: list[tuple[ForeignAgent, CostlyResult]] = [
        (session.agent, item)
        for session in sessions
        for item in session.costly_results
        if item.tokens >= LARGE_RESULT_TOKENS and item.usd is not None
    ]
    # A command is for one place: Codex reads a settings file, and other agents the variables of the shell.
    for is_codex in (False, True):
        part = [one for one in found if (one[0] == "codex") is is_codex]
        if part:
            yield _advise_large(part, is_codex=is_codex)


def _advise_large(found: Sequence[tuple[ForeignAgent, CostlyResult]], *, is_codex: bool) -> Advice:
    large = [item for _, item in found]
    limits = list(dict.fromkeys(filter(None, (_name_limit(agent, item.tool) for agent, item in found))))
    saved = sum((_saved(item) for item in large), Decimal(0))
    rows = [
        Evidence(
            f"{item.tool or 'tool'} {item.label}".strip()
            + f": ~{item.tokens:,} tokens, sent {item.sent:,} times",
            item.session,
            item.at,
            item.usd,
        )
        for item in large
    ]
    place = " in ~/.codex/config.toml" if is_codex else ""
    return Advice(
        kind="results",
        title=f"{_count(len(large), 'tool result')} {'of Codex ' if is_codex else ''}"
        f"of more than {LARGE_RESULT_TOKENS:,} tokens "
        f"cost {_usd(sum((item.usd or Decimal(0) for item in large), Decimal(0)))}",
        why=f"A preview of {PREVIEW_TOKENS:,} tokens of each saves this much, if the rest is not needed.",
        action="Read parts of files, and limit what tools may return" + (f"{place}:" if limits else "."),
        command="\n".join(limits),
        low_usd=None,
        high_usd=saved,
        evidence=_most(rows),
    )


def _name_limit(agent: ForeignAgent, tool: str) -> str:
    """The agent's own setting that limits what this tool returns."""
    if agent == "codex":
        return "tool_output_token_limit = 5000"
    if agent != "claude-code":
        return ""
    if tool.startswith(MCP_PREFIX):
        return "export MAX_MCP_OUTPUT_TOKENS=5000"
    kind = find_tool(tool)
    return _CLAUDE_CODE_LIMITS.get(kind.effect, "") if kind else ""


_CLAUDE_CODE_LIMITS: dict[str, str] = {
    "read": "export CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS=5000",
    "run": "export BASH_MAX_OUTPUT_LENGTH=10000",
}


def _saved(item: CostlyResult) -> Decimal:
    return (item.usd or Decimal(0)) * (1 - Decimal(PREVIEW_TOKENS) / item.tokens)


def _advise_servers(sessions: Sequence[SessionReport]) -> Iterator[Advice]:
    """Servers of which no tool was called in any session."""
    used = {use.server for session in sessions for use in session.servers if use.calls}
    servers = {use.server for session in sessions for use in session.servers} - used
    for server in sorted(servers):
        rows: list[Evidence] = []
        tools = 0
        for session in sessions:
            for use in session.servers:
                if use.server == server:
                    usd = use.carried_tokens * _prompt_price(session)
                    tools = max(tools, use.tools)
                    rows.append(Evidence(f"~{use.carried_tokens:,} tokens of schemas", session.name, usd=usd))
        total = sum((row.usd or Decimal(0) for row in rows), Decimal(0))
        each = total / len(rows) if rows else total
        yield Advice(
            kind="servers",
            title=f"The MCP server {server} cost {_usd(each)} a session and was never used",
            why=f"The schemas of its {_count(tools, 'tool')} were sent with every call of "
            f"{_count(len(rows), 'session')}.",
            action="Remove the server, or switch it on only in the projects that need it.",
            command=f"claude mcp remove {quote(server)}",
            low_usd=total,
            high_usd=total,
            evidence=_most(rows),
        )


def _prompt_price(session: SessionReport) -> Decimal:
    """What one prompt token cost on average in a session."""
    totals = session.totals
    prompt = totals.tokens.prompt
    return (totals.cost.total - totals.cost.output) / prompt if prompt else Decimal(0)


def _breaks(sessions: Iterable[SessionReport], keeps: Callable[[CacheBreak], bool]) -> list[_Found]:
    return [_Found(session, item) for session in sessions for item in session.breaks if keeps(item)]


def _evidence(found: Sequence[_Found]) -> tuple[Evidence, ...]:
    return _most(
        [
            Evidence(
                f"{item.item.lost_tokens:,} tokens again" + _after(item.item),
                item.session.name,
                item.item.at,
                item.item.lost_usd,
            )
            for item in found
        ]
    )


def _after(item: CacheBreak) -> str:
    minutes = round(item.gap.total_seconds() / 60) if item.gap else 0
    if minutes >= 120:
        return f" after {_count(round(minutes / 60), 'hour')}"
    return f" after {_count(minutes, 'minute')}" if minutes else ""


def _most(rows: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(sorted(rows, key=lambda row: -(row.usd or Decimal(0)))[:MAX_EVIDENCE])


def _usd(amount: Decimal) -> str:
    return f"${amount:,.2f}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def describe_advice(advice: Advice) -> dict[str, object]:
    """As plain JSON data."""
    return {
        "kind": advice.kind,
        "cause": advice.cause,
        "title": advice.title,
        "why": advice.why,
        "action": advice.action,
        "command": advice.command or None,
        "low_usd": None if advice.low_usd is None else float(advice.low_usd),
        "high_usd": float(advice.high_usd),
        "is_estimated": advice.is_estimated,
        "evidence": [
            {
                "text": item.text,
                "session": item.session or None,
                "at": item.at.isoformat() if item.at else None,
                "usd": None if item.usd is None else float(item.usd),
            }
            for item in advice.evidence
        ],
    }
