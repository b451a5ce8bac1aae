"""`sevenfold context`: what fills a session's window, and what its next compaction would do.

Shows the facts of `context_facts` on the screen, or as plain data.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import cast

from sevenfold.cli.inspect.context_facts import (
    ContextFacts,
    NextCompaction,
    find_session_id,
    read_context_facts,
)
from sevenfold.cli.screen import (
    Screen,
    TableCell,
    Tone,
    format_count,
    format_share,
    format_tokens,
    format_usd,
    render_bar,
    shorten_text,
)
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.prices import Cost
from sevenfold.core.requests import Breakpoint
from sevenfold.layers.compaction.policy import STRATEGY_TEXTS

_WIDTH = 80
_BAR_CHARS = 20
WINDOW_CHARS = 60
MAX_TOOL_ROWS = 8
"""Of each kind; the rest is one row."""

LEVEL_TONES: Mapping[str, Tone] = {"fine": "plain", "warning": "warning", "blocked": "error"}


def show_context(facts: ContextFacts, screen: Screen) -> None:
    _show_head(facts, screen)
    _show_window(facts, screen)
    _show_fill(facts, screen)
    _show_cut(facts.next_cut, facts, screen)
    _show_cache(facts, screen)


def describe_context(facts: ContextFacts) -> dict[str, object]:
    """The same as plain data."""
    window, filled, after = facts.thresholds, facts.breakdown, facts.next_cut
    plan = after.plan
    return {
        "session": facts.session,
        "project": facts.project,
        "model": facts.model,
        "tokens": facts.view.tokens,
        "is_billed": facts.is_billed,
        "level": facts.view.level,
        "percent_left": round(facts.view.percent_left, 2),
        "window": {
            "tokens": facts.window_tokens,
            "effective": window.effective,
            "auto_compact": window.auto_compact if window.is_automatic else None,
            "warning": window.warning,
            "blocking": window.blocking,
        },
        "messages": {"history": facts.history_messages, "view": len(facts.view.request.messages)},
        "filled": {
            "human": filled.human,
            "assistant": filled.assistant,
            "thinking": filled.thinking,
            "attachments": filled.attachments,
            "memory": filled.memory,
            "system_and_tools": facts.unlogged_tokens,
            "tool_requests": dict(filled.tool_requests),
            "tool_results": {tool: size for tool, size in filled.tool_results.items() if size >= 0},
            "cleared_by_provider": -min(0, filled.tool_results.get("", 0)),
            "repeated_reads": filled.repeated_reads,
        },
        "breakpoints": [
            {"level": mark.level, "index": mark.index, "block": mark.block, "ttl": _ttl(mark.ttl)}
            for mark in facts.breakpoints
        ],
        "spills": {
            "count": facts.spills.count,
            "bytes": facts.spills.size_bytes,
            "missing": facts.spills.missing,
        },
        "compactions": facts.compactions,
        "cleared_results": facts.cleared,
        "never_cleared": dict(facts.never_cleared),
        "next_cut": {
            "is_automatic": after.is_automatic,
            "is_stopped": after.is_stopped,
            "tokens_left": after.tokens_left,
            "is_due": after.is_due,
            "clears_results": after.clears_results,
            "rung": plan.strategy,
            "asks_model": after.asks_model,
            "skipped": {skip.strategy: skip.reason for skip in plan.skipped},
            "kept_messages": plan.kept_messages,
            "kept_tokens": plan.kept_tokens,
            "total_tokens": plan.total_tokens,
            "notes_tokens": plan.notes_tokens,
            "notes_covered": after.notes_covered,
            "failures_in_row": after.failures_in_row,
        },
        "spent": {
            share.who: {
                "calls": share.calls,
                "hit_rate": round(share.hit_rate, 4),
                "usd": _usd(share.cost),
                "usd_without_caching": _usd(share.cost_without_caching),
            }
            for share in (*facts.spent, facts.total)
        },
        "quarantined_lines": facts.quarantined,
    }


def _show_head(facts: ContextFacts, screen: Screen) -> None:
    screen.show_line(f"session {facts.session}", "strong")
    said = f"{format_count(facts.history_messages, 'message')} in all"
    parts = [facts.model, said, f"{format_count(len(facts.view.request.messages), 'message')} in view"]
    if facts.compactions:
        parts.append(format_count(facts.compactions, "compaction"))
    if facts.cleared:
        parts.append(f"{format_count(facts.cleared, 'result')} cleared")
    screen.show_line("  " + ", ".join(parts))
    screen.show_line(f"  {shorten_text(facts.project, _WIDTH - 2, is_path=True)}", "faint")
    if not facts.is_model_known:
        text = (
            f"  no table knows {shorten_text(facts.model, 30)}: a window of {facts.window_tokens:,} "
            f"is assumed"
        )
        screen.show_line(text, "warning")
    if facts.quarantined:
        text = f"  {format_count(facts.quarantined, 'line')} of the transcript could not be read"
        screen.show_line(text, "warning")


def _show_window(facts: ContextFacts, screen: Screen) -> None:
    """The window as one bar, and below it each point that something happens at."""
    window, tokens = facts.thresholds, facts.view.tokens
    full = max(1, facts.window_tokens)
    filled = render_bar(tokens / full, WINDOW_CHARS, has_unicode=screen.has_unicode)
    how = "billed, and estimated since" if facts.is_billed else "estimated, nothing was billed yet"
    screen.show("")
    screen.show_line(f"The window: {tokens:,} of {facts.window_tokens:,} tokens ({how})", "strong")
    empty = "░" if screen.has_unicode else "."
    rest = empty * (WINDOW_CHARS - len(filled))
    screen.show_cells(
        [
            TableCell("  "),
            TableCell(filled, LEVEL_TONES[facts.view.level]),
            TableCell(rest, "faint"),
            TableCell(f"  {facts.view.level}"),
        ]
    )
    limit = "automatic compaction" if window.is_automatic else "the end of the window"
    screen.show_line(f"  {facts.view.percent_left:.0f}% left until {limit}")
    points = [
        ("warning", window.warning),
        ("automatic compaction" if window.is_automatic else "compaction by hand only", window.auto_compact),
        ("new input is refused" if not window.is_automatic else "blocking", window.blocking),
        ("window less the room kept for the answer", window.effective),
    ]
    for name, point in sorted(points, key=lambda item: item[1]):
        text = f"{name} at {format_tokens(point)}"
        screen.show_line(_pointed(text, point / full), "warning" if tokens >= point else "faint")


def _pointed(text: str, share: float) -> str:
    """The text below the bar's place that it is about, on whichever side of it there is room."""
    place = 2 + min(WINDOW_CHARS - 1, max(0, round(share * WINDOW_CHARS)))
    if place + 2 + len(text) <= _WIDTH:
        return f"{'':{place}}^ {text}"
    return f"{text:>{place - 1}} ^"


def _show_fill(facts: ContextFacts, screen: Screen) -> None:
    rows = list(_fill_rows(facts))
    screen.show("")
    screen.show_line("What fills it", "strong")
    if not rows:
        screen.show_line("  nothing yet", "faint")
        return
    largest, whole = max(tokens for _, tokens in rows), sum(tokens for _, tokens in rows)
    screen.show_table(
        [
            TableCell(f"  {shorten_text(label, 38)}"),
            TableCell(f"{format_tokens(tokens):>8}"),
            TableCell(f"{format_share(tokens, whole):>6}"),
            TableCell(render_bar(tokens / largest, _BAR_CHARS, has_unicode=screen.has_unicode)),
        ]
        for label, tokens in rows
    )
    cleared = -min(0, facts.breakdown.tool_results.get("", 0))
    if cleared:
        screen.show_line(
            f"  {format_tokens(cleared)} tokens of it are cleared on the provider's side", "faint"
        )
    _show_never_cleared(facts, screen)
    repeated = facts.breakdown.repeated_reads
    if repeated:
        text = f"  {format_tokens(repeated)} tokens of it are files read again though nothing had changed"
        screen.show_line(text, "warning")
    spills = facts.spills
    if spills.count:
        lost = f"; {spills.missing} of the files are gone" if spills.missing else ""
        text = f"  {format_count(spills.count, 'large result')} on disk, {spills.size_bytes:,} bytes{lost}"
        screen.show_line(text, "warning" if lost else "faint")


def _show_never_cleared(facts: ContextFacts, screen: Screen) -> None:
    """The results that stay however old they get, and the setting that changes that."""
    if not facts.clears:
        screen.show_line("  old results are never cleared: layer 2 is switched off", "faint")
        return
    ordered = sorted(facts.never_cleared.items(), key=lambda item: -item[1])
    if not ordered:
        return
    named = ", ".join(f"{tool} ({format_tokens(tokens)})" for tool, tokens in ordered[:MAX_TOOL_ROWS])
    more = len(ordered) - MAX_TOOL_ROWS
    rest = f" and {format_count(more, 'other tool')}" if more > 0 else ""
    screen.show_line(f"  {shorten_text(f'never cleared: results of {named}{rest}', _WIDTH - 2)}", "faint")
    screen.show_line("  to change that, name tools in `clearable` of [microcompact]", "faint")


def _fill_rows(facts: ContextFacts) -> Iterator[tuple[str, int]]:
    filled = facts.breakdown
    rows = {
        "what people wrote": filled.human,
        "what the model wrote": filled.assistant,
        "thinking": filled.thinking,
        "summaries, reminders, attachments": filled.attachments,
        "memory": filled.memory,
        "system prompt, tools, not in the log": facts.unlogged_tokens,
        **_by_tool("results of", filled.tool_results),
        **_by_tool("calls of", filled.tool_requests),
    }
    yield from sorted(((label, size) for label, size in rows.items() if size > 0), key=lambda row: -row[1])


def _by_tool(what: str, sizes: Mapping[str, int]) -> dict[str, int]:
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    rows = {f"{what} {tool or 'an unknown tool'}": size for tool, size in ordered[:MAX_TOOL_ROWS]}
    rest = sum(size for _, size in ordered[MAX_TOOL_ROWS:])
    if rest:
        rows[f"{what} {len(ordered) - MAX_TOOL_ROWS} other tools"] = rest
    return rows


def _show_cut(after: NextCompaction, facts: ContextFacts, screen: Screen) -> None:
    plan = after.plan
    screen.show("")
    screen.show_line("The next compaction", "strong")
    if not after.is_automatic:
        screen.show_line("  comes by hand only: automatic compaction is off", "warning")
    elif after.is_stopped:
        screen.show_line("  comes by hand only: the last ones in a row helped nothing", "warning")
    elif after.tokens_left > 0:
        screen.show_line(f"  is due in {format_tokens(after.tokens_left)} tokens")
    elif after.is_due:
        screen.show_line("  is due with the next request", "warning")
    else:
        screen.show_line("  is not due: clearing results with the next request is enough")
    if after.clears_results:
        text = format_count(after.clears_results, "old result")
        screen.show_line(f"  the next request clears {text} first", "faint")
    screen.show_line(f"  method, if it ran now: {plan.strategy}: {STRATEGY_TEXTS.get(plan.strategy, '')}")
    kept = f"{format_count(plan.kept_messages, 'message')}, {format_tokens(plan.kept_tokens)} tokens"
    total = f"; the view would have {format_tokens(plan.total_tokens)}" if plan.total_tokens else ""
    screen.show_line(f"  kept word for word: {kept}{total}")
    for skip in plan.skipped:
        screen.show_line(f"  {skip.strategy} cannot be used: {skip.reason}", "faint")
    if plan.notes_tokens is None:
        screen.show_line("  notes: none written yet", "faint")
    else:
        far = f"cover {after.notes_covered} of {format_count(facts.history_messages, 'message')}"
        screen.show_line(f"  notes: {format_tokens(plan.notes_tokens)} tokens, {far}", "faint")
    if after.failures_in_row:
        screen.show_line(
            f"  the last {format_count(after.failures_in_row, 'summary call')} failed", "warning"
        )


def _show_cache(facts: ContextFacts, screen: Screen) -> None:
    screen.show("")
    screen.show_line("Cache and cost so far", "strong")
    if not facts.total.calls:
        screen.show_line("  no model call is recorded", "faint")
    shares = [*facts.spent, *([facts.total] if len(facts.spent) > 1 else [])]
    screen.show_table(
        [
            TableCell(f"  {shorten_text(share.who, 12)}"),
            TableCell(f"{format_count(share.calls, 'call'):>12}"),
            TableCell(f"{share.hit_rate:>6.1%} read from cache"),
            TableCell(f"{_spelled(share.cost):>8}"),
            TableCell(f"uncached {_spelled(share.cost_without_caching)}", "faint"),
        ]
        for share in shares
    )
    marks = ", ".join(_name_mark(mark) for mark in facts.breakpoints)
    told = f"the next request is cached up to {marks}" if marks else "the next request marks nothing"
    screen.show_line(f"  {shorten_text(told, _WIDTH - 2)}", "faint")


def _name_mark(mark: Breakpoint) -> str:
    """The place in the request, and for how long it is kept."""
    kept = "1 hour" if mark.ttl >= timedelta(hours=1) else "5 minutes"
    place = {"tools": "the tools", "system": "the system prompt"}.get(mark.level, f"message {mark.index + 1}")
    return f"{place} ({kept})"


def _ttl(ttl: timedelta) -> str:
    return "1h" if ttl >= timedelta(hours=1) else "5m"


def _usd(cost: Cost | None) -> float | None:
    return None if cost is None else float(cost.total)


def _spelled(cost: Cost | None) -> str:
    return format_usd(None if cost is None else cost.total)


def run_context(options: Namespace, screen: Screen) -> int:
    with open_workspace(cast("Path", options.project)) as workspace:
        session = find_session_id(workspace, cast("str", options.session))
        facts = read_context_facts(workspace, session, cast("str | None", options.model))
    if options.json:
        screen.show_json(describe_context(facts))
    else:
        show_context(facts, screen)
    return 0
