"""Reports made of values, for the tests of the page: as large, as odd and as hostile as a test wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from sevenfold.core.prices import Cost
from sevenfold.core.usage import TokenCounts
from sevenfold.replay.advice import ReplayFindings, plan_advice
from sevenfold.replay.bills import CostlyResult, ModelBill
from sevenfold.replay.calls import BREAK_CAUSES, BreakCause, CacheBreak
from sevenfold.replay.context_fill import MAX_SERIES_POINTS, ContextFill, FillShare, PointMark, SeriesPoint
from sevenfold.replay.mcp_servers import ServerUse
from sevenfold.replay.report import (
    DayBill,
    FileReport,
    LineCounts,
    RecordedClearing,
    RecordedCompaction,
    RepeatedRead,
    ReplayReport,
    SavingRange,
    SessionReport,
    build_replay_report,
)
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.transcripts import UnreadableFile

START = datetime(2026, 11, 3, 10, tzinfo=UTC)
MODEL = "claude-opus-5-5"
HOSTILE = (
    '</script><img src=x onerror="window.owned=1"><svg onload="window.owned=1">{{7*7}}${7*7}&lt;b&gt;\u2028'
)
ENDLESS = "w" * 400
"""A word that fits on no line."""


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def bill(usd: float | None, *, model: str = MODEL, calls: int = 12, estimated: int = 0) -> ModelBill:
    """So many dollars, spread over all kinds; None for a model without a price."""
    whole = Decimal(str(usd or 0))
    read, written_5m, written_1h, fresh, output = (whole * part / 100 for part in (50, 20, 10, 5, 15))
    cost = Cost(fresh=fresh, read=read, written_5m=written_5m, written_1h=written_1h, output=output)
    return ModelBill(
        model=model,
        calls=calls,
        tokens=TokenCounts(fresh=1_000, read=900_000, written_5m=30_000, written_1h=9_000, output=4_000),
        estimated_calls=estimated,
        estimated_output_tokens=100 * estimated,
        cost=None if usd is None else cost,
        estimated_usd=cost.output if estimated else Decimal(0),
        uncached_usd=None if usd is None else whole * 5,
        gap="model" if usd is None else None,
    )


def broke(
    minutes: float, cause: BreakCause = "idle", usd: str | None = "0.5", lost: int = 40_000
) -> CacheBreak:
    gap, life = timedelta(minutes=13), timedelta(minutes=5)
    price = None if usd is None else Decimal(usd)
    return CacheBreak(
        at=at(minutes),
        cause=cause,
        lost_tokens=lost,
        lost_usd=price,
        gap=gap,
        life=life,
        model=MODEL,
        prompt_tokens=lost + 9_000,
        read_tokens=9_000,
    )


def climb(
    points: int, marks: dict[int, PointMark] | None = None, *, has_times: bool = True
) -> tuple[SeriesPoint, ...]:
    """A context that grows call by call, one a minute."""
    named = marks or {}
    return tuple(
        SeriesPoint(
            call=call,
            at=at(call) if has_times else None,
            prompt_tokens=20_000 + 500 * call,
            read_tokens=0 if call in named else 18_000 + 500 * call,
            mark=named.get(call, ""),
        )
        for call in range(points)
    )


FILL = ContextFill(
    (
        FillShare("tool_result", "Read", 9_000, 500_000),
        FillShare("unlogged", "", 0, 300_000),
        FillShare("tool_request", "Read", 600, 60_000),
        FillShare("tool_result", "Bash", 2_000, 50_000),
        FillShare("thinking", "", 500, 20_000),
        FillShare("human", "", 100, 10_000),
    ),
    1_500,
    13_000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What a session is to hold; the rest is always the same."""

    name: str = "s1"
    project: str = "/srv/harbour"
    usd: float | None = 3.0
    model: str = MODEL
    breaks: tuple[CacheBreak, ...] = ()
    series: tuple[SeriesPoint, ...] = ()
    cuts: tuple[RecordedCompaction | RecordedClearing, ...] = ()
    estimated: int = 0
    sub_agent: str | None = None
    results: tuple[CostlyResult, ...] = ()
    reads: tuple[RepeatedRead, ...] = ()
    fill: ContextFill = FILL
    servers: tuple[ServerUse, ...] = ()
    day: str = "2026-11-03"
    agent: ForeignAgent = "claude-code"

    def tell(self) -> SessionReport:
        series = self.series or climb(12)
        paid = bill(self.usd, model=self.model, calls=series[-1].call + 1, estimated=self.estimated)
        return SessionReport(
            id=self.name,
            agent=self.agent,
            sub_agent=self.sub_agent,
            path=Path("/srv/logs", f"{self.name}.jsonl"),
            project=self.project,
            version="2.1.0",
            first_at=series[0].at,
            last_at=series[-1].at,
            unbilled_calls=0,
            uncounted_calls=0,
            bills=(paid,),
            days=(DayBill(self.day, paid),),
            servers=self.servers,
            breaks=self.breaks,
            compactions=tuple(item for item in self.cuts if isinstance(item, RecordedCompaction)),
            clearings=tuple(item for item in self.cuts if isinstance(item, RecordedClearing)),
            series=series,
            largest_prompt_tokens=max(point.prompt_tokens for point in series),
            fill=self.fill,
            repeated_reads=self.reads,
            costly_results=self.results,
        )


def report_of(
    *stories: Story, lines: LineCounts | None = None, unreadable: Sequence[UnreadableFile] = ()
) -> ReplayReport:
    sessions = tuple(story.tell() for story in stories)
    counted = lines or LineCounts(lines=120, length_bytes=2_500_000)
    return build_replay_report(
        [FileReport(path=Path("/srv/logs/all.jsonl"), agent="claude-code", lines=counted, sessions=sessions)],
        unreadable=unreadable,
    )


def result(session: str = "s1", tool: str = "Read", label: str = "/srv/harbour/tides.py") -> CostlyResult:
    return CostlyResult(
        session=session, tool=tool, label=label, at=at(3), tokens=4_000, sent=30, usd=Decimal("0.25")
    )


def rich_report() -> ReplayReport:
    """Three sessions that hold one of everything."""
    harbour = Story(
        name="aaaa1111",
        usd=9.0,
        estimated=3,
        series=climb(60, {20: "break", 33: "compaction", 40: "break", 50: "clearing"}),
        breaks=(
            broke(20, "idle", "1.25", 50_000),
            broke(33, "compaction", "0.30", 9_000),
            broke(40, "unexplained", "0.05", 2_000),
        ),
        cuts=(RecordedCompaction(at(32.9), 155_000, 53_000), RecordedClearing(at(49.9), 7, 30_000)),
        results=(result("aaaa1111"), result("aaaa1111", "Bash", "tail -n 120 var/import.log")),
        reads=(RepeatedRead("/srv/harbour/tides.py", 2, 3_000),),
    )
    lighthouse = Story(
        name="bbbb2222",
        project="/srv/lighthouse",
        usd=2.0,
        breaks=(broke(5, "idle", "0.75"), broke(8, "model switch")),
    )
    unpriced = Story(
        name="cccc3333", project="/srv/pier", usd=None, model="gpt-9", breaks=(broke(6, "idle", None),)
    )
    return report_of(
        harbour,
        lighthouse,
        unpriced,
        lines=LineCounts(900, 12_000_000, {"brand-new-kind": 4}, {"half a line": 1}),
        unreadable=[UnreadableFile(Path("/srv/logs/locked.jsonl"), "Permission denied")],
    )


def find_all(report: ReplayReport) -> ReplayFindings:
    """With advice, and a saving."""
    saving = SavingRange(0.21, 0.28, float(report.totals.cost.total), len(report.sessions))
    return ReplayFindings(report, saving, plan_advice(report, saving))


def hostile_report(text: str = HOSTILE) -> ReplayReport:
    """A stranger chose every name in it."""
    story = Story(
        name=text,
        project=f"/srv/{text}",
        model=text,
        breaks=(replace(broke(5), model=text),),
        sub_agent=text,
        results=(result(f"{text}/{text}", text, text),),
        reads=(RepeatedRead(text, 1, 10),),
        servers=(ServerUse(text, 3, 900_000, 0),),
        fill=ContextFill(
            (FillShare("tool_result", text, 5_000, 90_000), FillShare("tool_request", text, 10, 900))
        ),
    )
    return report_of(
        story,
        replace(story, name=f"other {text}", sub_agent=None, usd=None, model=f"x {text}"),
        lines=LineCounts(1, 1, {text: 1}, {text: 2}),
        unreadable=[UnreadableFile(Path("/srv", text), text)],
    )


def large_report(sessions: int = 500) -> ReplayReport:
    """Every session as long as a series gets, with twenty breaks and five results each."""
    series = climb(MAX_SERIES_POINTS, dict.fromkeys(range(10, MAX_SERIES_POINTS, 16), "break"))
    breaks = tuple(
        broke(call, BREAK_CAUSES[place % len(BREAK_CAUSES)], f"0.{place + 10}")
        for place, call in enumerate(range(10, MAX_SERIES_POINTS, 16))
    )
    return report_of(
        *(
            Story(
                name=f"{place:08x}-7f3a-4c51-9d2e-5b8f0a6c1e47",
                project=f"/srv/projects/number-{place % 23}",
                usd=1 + place / 7,
                series=series,
                breaks=breaks,
                results=tuple(result(f"{place:08x}", label=f"/srv/file_{line}.py") for line in range(5)),
            )
            for place in range(sessions)
        )
    )
