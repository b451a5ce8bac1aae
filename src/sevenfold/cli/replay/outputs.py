"""What `sevenfold replay` makes of its findings: text, JSON, CSV, lists, a page and a picture."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sevenfold.cli.replay.contents import name_session
from sevenfold.cli.replay.view import show_advice, show_replay_header, show_replay_report
from sevenfold.cli.screen import (
    Screen,
    TableCell,
    format_count,
    format_share,
    format_tokens,
    format_usd,
    shorten_text,
)
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.advice import ReplayFindings, describe_advice
from sevenfold.replay.groups import BillGroup, GroupKind, group_sessions, render_csv
from sevenfold.replay.page import build_page, write_file_whole, write_page
from sevenfold.replay.picture import draw_picture
from sevenfold.replay.report import ReplayReport, describe_replay_report

SVG_OPENING = b"<svg "
PAGE_REFRESH_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChoice:
    """What is wanted of a report."""

    is_json: bool = False
    html: Path | None = None
    svg: Path | None = None
    by: GroupKind | None = None
    is_csv: bool = False
    opens: bool = False
    """In the browser."""
    is_watching: bool = False


def publish_findings(found: ReplayFindings, choice: OutputChoice, terms: ReplayTerms, screen: Screen) -> None:
    """Print it and write what was asked for. What was written is told beside it."""
    report = found.report
    remarks = list(remark_on_prices(report, terms))
    # Beside JSON and CSV it would be in a program's way.
    tell = screen.note if choice.is_json or choice.is_csv else screen.show_line
    if choice.is_json:
        screen.show_json(describe_findings(found))
    elif choice.is_csv:
        kind = choice.by or "session"
        screen.show_text(render_csv(group_sessions(report.sessions, kind), kind).rstrip("\n"))
    elif choice.by:
        show_replay_header(report, screen)
        labels = {item.name: name_session(item) for item in report.sessions}
        groups = group_sessions(report.sessions, choice.by)
        show_groups(groups, choice.by, screen, labels if choice.by == "session" else {})
    elif choice.html or choice.svg:
        show_replay_header(report, screen)
        show_advice(found.advice, report.totals.cost.total, screen, is_short=True)
    else:
        show_replay_report(report, screen, remarks, found.advice)
    if choice.html:
        _write_html(found, choice, remarks, tell)
    if choice.svg:
        path = write_file_whole(choice.svg, draw_picture(report, found.saving), "the picture")
        tell(f"the picture is in {path}")


def describe_findings(found: ReplayFindings) -> dict[str, object]:
    """The report as JSON, with what follows from it."""
    saving = found.saving
    return {
        **describe_replay_report(found.report),
        "advice": [describe_advice(item) for item in found.advice],
        "would_have_saved": saving
        and {
            "low_share": saving.low,
            "high_share": saving.high,
            "of_usd": saving.usd,
            "sessions": saving.sessions,
            "of_sessions": found.report.priced_sessions,
        },
    }


def _write_html(
    found: ReplayFindings, choice: OutputChoice, remarks: Sequence[str], tell: Callable[[str], None]
) -> None:
    assert choice.html is not None
    remark = " ".join(remarks)
    page = build_page(
        found.report,
        made_at=SystemClock().now(),
        remarks=[remark] if remark else [],
        findings=found,
        refresh_seconds=PAGE_REFRESH_SECONDS if choice.is_watching else None,
    )
    target = write_page(choice.html, page)
    tell(f"the page is in {target} ({len(page) / 1e6:.1f} MB): open it in a browser")
    if choice.opens and not webbrowser.open(target.as_uri()):
        tell("no browser could be started: open the page yourself")


_MOST_GROUPS = 60


def show_groups(
    groups: Sequence[BillGroup], kind: GroupKind, screen: Screen, labels: Mapping[str, str]
) -> None:
    """A table: one row a day, week, project, model or session, with the label of a key instead of it."""
    screen.show("")
    screen.show_line(f"By {kind}", "strong")
    words = (f"  {kind:34}", "sessions", "  calls", " tokens", "   hit", "lost", "     dollars")
    rows = [
        [
            TableCell(
                f"  {shorten_text(labels.get(group.key, group.key), 34, is_path=kind == 'project'):34}"
            ),
            TableCell(f"{group.sessions:>8,}"),
            TableCell(f"{group.totals.calls:>7,}"),
            TableCell(f"{format_tokens(group.totals.tokens.prompt + group.totals.tokens.output):>7}"),
            TableCell(f"{format_share(group.totals.tokens.read, group.totals.tokens.prompt):>6}"),
            TableCell(f"{format_usd(group.lost_usd) if group.lost_usd else '–':>7}"),
            TableCell(f"{_spent(group):>12}", "strong"),
        ]
        for group in groups[:_MOST_GROUPS]
    ]
    screen.show_table([[TableCell(word, "faint") for word in words], *rows])
    if len(groups) > _MOST_GROUPS:
        screen.show_line(
            f"  and {format_count(len(groups) - _MOST_GROUPS, 'more row')}; --csv has all", "faint"
        )


def _spent(group: BillGroup) -> str:
    totals = group.totals
    if totals.calls == totals.unpriced_calls:
        return "unpriced"
    return ("~" if totals.estimated_usd else "") + format_usd(totals.cost.total)


def remark_on_prices(report: ReplayReport, terms: ReplayTerms) -> Iterator[str]:
    if terms.reprice is None:
        return
    own = {terms.catalog.find(bill.model).tokenizer for bill in report.bills}
    if own - {terms.reprice.tokenizer}:
        yield "token counts are those of the models that were used: the newer tokenizer counts"
        yield "about 30% more for the same text, so a change of model changes them too"


def resolve_svg_path(text: str) -> Path:
    """Where a picture of that name would go; `InputError` where something else is there."""
    try:
        path = Path(text).expanduser().resolve()
        if not path.parent.is_dir() or (path.exists() and not path.is_file()):
            raise InputError(f"--svg {text!r}: name a file in a folder that is there, such as replay.svg")
        beginning = path.read_bytes()[: len(SVG_OPENING)] if path.exists() else b""
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name, ~nobody
        raise InputError(f"--svg {text!r} cannot be used: {error}") from error
    if beginning and beginning != SVG_OPENING:
        raise InputError(f"--svg {text!r} is there and is no picture of ours, so it is not written over")
    return path
