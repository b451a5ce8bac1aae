"""`sevenfold replay --policy`: what recorded sessions would have cost under a policy for clearing results.

Parses the options, runs the trials, and shows the result on a terminal or as JSON.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import reduce
from operator import add
from statistics import median
from typing import cast

from sevenfold.cli.replay.sources import TranscriptSource, explain_no_transcripts
from sevenfold.cli.screen import (
    ELLIPSIS,
    Screen,
    TableCell,
    format_count,
    format_share,
    format_tokens,
    format_usd,
    shorten_text,
)
from sevenfold.core.errors import InputError
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.policies import DEFAULT_POLICY
from sevenfold.replay.policies.policy_trial import (
    CacheLifetime,
    PolicyFigures,
    PolicyQuestion,
    PolicyTrial,
    run_trials,
)
from sevenfold.replay.report import ReportOrigin
from sevenfold.store.foreign.transcripts import (
    UnreadableFile,
)

_FORMAT = 1
_MOST_ROWS = 10
NAME_CHARS = 20
LIFETIME_LABELS = {"5m": "5 minutes", "1h": "1 hour"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    question: PolicyQuestion
    origin: ReportOrigin
    trials: tuple[PolicyTrial, ...]
    """Dearest first."""
    total: PolicyFigures
    skipped: tuple[UnreadableFile, ...]

    def usd(self, cost_of: Callable[[PolicyFigures], float]) -> Decimal | None:
        """Of the sessions whose model has a price; None: of none."""
        known = [usd for trial in self.trials if (usd := trial.usd(cost_of(trial.figures))) is not None]
        return sum(known, Decimal(0)) if known else None


def show_policy_report(answer: PolicyReport, screen: Screen) -> None:
    total, question = answer.total, answer.question
    counts = f"{format_count(len(answer.trials), 'session')}, {format_count(total.calls, 'call')}"
    screen.show_line(f"Under {question.policy}: {counts}", "strong")
    screen.show_line(
        f"A cache that lives {LIFETIME_LABELS[question.lifetime]}; prompts only, without output.", "faint"
    )
    if answer.origin == "sample":
        screen.show_line(
            "No session of yours was found, so this is the sample that comes with Sevenfold.", "warning"
        )
    screen.show("")
    screen.show_table(
        [
            TableCell(f"  {line.label}", "faint"),
            TableCell(f"{line.value:>9}", "strong"),
            TableCell(line.remark, "faint"),
        ]
        for line in _headlines(answer)
    )
    _show_path(answer, screen)
    _show_figures(answer, screen)
    _show_remarks(answer, screen)


def describe_policy_report(answer: PolicyReport) -> dict[str, object]:
    """For programs; `docs/replay.md` describes it."""
    question = answer.question
    reprice = question.terms.reprice
    return {
        "format": _FORMAT,
        "origin": answer.origin,
        "policy": question.policy,
        "ttl": question.lifetime,
        "read_price": question.read_price,
        "repriced": reprice.name if reprice else None,
        "total": {
            **_described(answer.total),
            "keep_usd": _number(answer.usd(_keep_cost)),
            "usd": _number(answer.usd(_cost)),
            "priced_sessions": sum(trial.rated.fresh_usd is not None for trial in answer.trials),
        },
        "sessions": [
            {
                "path": str(trial.path),
                "model": trial.rated.model,
                "prices": {**asdict(trial.rated.prices), "from": trial.rated.source},
                "is_billed": trial.is_billed,
                **_described(trial.figures),
                "keep_usd": _number(trial.usd(trial.figures.keep_cost)),
                "usd": _number(trial.usd(trial.figures.cost)),
            }
            for trial in answer.trials
        ],
        "skipped": [{"path": str(item.path), "reason": item.reason} for item in answer.skipped],
    }


@dataclass(frozen=True, slots=True)
class _Line:
    label: str
    value: str
    remark: str


def _headlines(answer: PolicyReport) -> Iterator[_Line]:
    total = answer.total
    keep_usd, usd = answer.usd(_keep_cost), answer.usd(_cost)
    priced = sum(trial.rated.fresh_usd is not None for trial in answer.trials)
    of_all = f" for {priced:,} of {len(answer.trials):,} sessions" if priced < len(answer.trials) else ""
    yield _Line("keeping everything", _tokens(total.keep_cost), _dollars(keep_usd, of_all))
    yield _Line("under the policy", _tokens(total.cost), _dollars(usd, of_all))
    yield _Line("against keeping", f"{total.ratio:.3f}", f"{format_count(total.cuts, 'cut')}")
    yield _Line("unannounced breaks", str(total.unannounced), "of the cache; must be 0")
    yield _Line("largest prompt", format_tokens(total.peak_tokens), _kept(total))
    again = f"of it, for {format_count(total.rereads, 'result')} read again"
    yield _Line("re-read tax", _percent(total.tax_share), again)
    yield _Line("still in view", _percent(total.view_share), f"of {total.wanted:,} later uses of a result")
    yield _Line(
        "one pointer away", _percent(total.pointer_share), "of them, by a file or spill that is named"
    )
    ratios = [trial.figures.optimum_ratio for trial in answer.trials]
    spread = f"median {median(ratios):.3f}, worst {max(ratios):.3f}; " if len(ratios) > 1 else ""
    yield _Line("cost / optimum", f"{total.optimum_ratio:.3f}", f"{spread}by figures")


def _show_path(answer: PolicyReport, screen: Screen) -> None:
    """What the request path says, a session a row."""
    if len(answer.trials) < 2:
        return
    words = ("calls", "   keep", " policy", " ratio", "re-read", "cuts", "   peak")
    _show_rows("Through the request path", words, answer.trials, _path_cells, screen)


def _show_figures(answer: PolicyReport, screen: Screen) -> None:
    """What the figures say, a session a row."""
    if len(answer.trials) < 2:
        return
    words = ("   cost", "optimum", " ratio", "in view", "pointer")
    _show_rows("By the figures", words, answer.trials, _figure_cells, screen)


def _show_rows(
    title: str,
    words: Sequence[str],
    trials: Sequence[PolicyTrial],
    cells_of: Callable[[PolicyFigures], list[str]],
    screen: Screen,
) -> None:
    screen.show("")
    screen.show_line(title, "strong")
    head = [TableCell(f"  {'session':{NAME_CHARS}}", "faint"), *(TableCell(word, "faint") for word in words)]
    rows = [
        [TableCell(f"  {_short(trial.path.stem):{NAME_CHARS}}"), *map(TableCell, cells_of(trial.figures))]
        for trial in trials[:_MOST_ROWS]
    ]
    screen.show_table([head, *rows])
    if len(trials) > _MOST_ROWS:
        screen.show_line(f"  and {len(trials) - _MOST_ROWS:,} more; --json lists them all", "faint")


def _path_cells(figures: PolicyFigures) -> list[str]:
    return [
        f"{figures.calls:>5,}",
        f"{_tokens(figures.keep_cost):>7}",
        f"{_tokens(figures.cost):>7}",
        f"{figures.ratio:>6.3f}",
        f"{_percent(figures.tax_share):>7}",
        f"{figures.cuts:>4}",
        f"{format_tokens(figures.peak_tokens):>7}",
    ]


def _figure_cells(figures: PolicyFigures) -> list[str]:
    return [
        f"{_tokens(figures.played_cost):>7}",
        f"{_tokens(figures.optimum_cost):>7}",
        f"{figures.optimum_ratio:>6.3f}",
        f"{_percent(figures.view_share):>7}",
        f"{_percent(figures.pointer_share):>7}",
    ]


def _show_remarks(answer: PolicyReport, screen: Screen) -> None:
    lines = ["Costs are in tokens at the price of fresh input."]
    assumed = sum(trial.rated.source == "assumed" for trial in answer.trials)
    if assumed:
        lines.append(f"{format_count(assumed, 'session')} of a model without a price: cache reads at 0.1.")
    unbilled = sum(not trial.is_billed for trial in answer.trials)
    if unbilled:
        lines.append(f"{format_count(unbilled, 'session')} without a bill: their sizes are estimates.")
    signed = sum(trial.rated.is_signed for trial in answer.trials)
    if signed:
        lines.append(
            f"{format_count(signed, 'session')} of a model that signs its thinking: there the provider"
        )
        lines.append("clears the oldest results, as each request says.")
    screen.show("")
    for line in lines:
        screen.show_line(line, "faint")
    for reason, count in Counter(item.reason for item in answer.skipped).most_common():
        screen.show_line(shorten_text(f"{format_count(count, 'file')} skipped: {reason}", 80), "warning")


def _described(figures: PolicyFigures) -> dict[str, object]:
    return {
        **asdict(figures),
        "ratio": figures.ratio,
        "optimum_ratio": figures.optimum_ratio,
        "tax_share": figures.tax_share,
        "view_share": figures.view_share,
        "pointer_share": figures.pointer_share,
    }


def _short(name: str) -> str:
    """A session is known by how its name begins, its sub-agents by how theirs end."""
    return (
        name if len(name) <= NAME_CHARS else f"{name[:8]}{ELLIPSIS}{name[8 + len(ELLIPSIS) - NAME_CHARS :]}"
    )


def _keep_cost(figures: PolicyFigures) -> float:
    return figures.keep_cost


def _cost(figures: PolicyFigures) -> float:
    return figures.cost


def _tokens(cost: float) -> str:
    return format_tokens(round(cost))


def _kept(total: PolicyFigures) -> str:
    return f"tokens; {format_tokens(total.keep_peak_tokens)} with everything kept"


def _dollars(usd: Decimal | None, remark: str) -> str:
    return "tokens" if usd is None else f"tokens, {format_usd(usd)}{remark}"


def _percent(share: float | None) -> str:
    return "-" if share is None else format_share(share, 1)


def _number(usd: Decimal | None) -> float | None:
    return None if usd is None else float(usd)


def parse_policy_question(options: Namespace, terms: ReplayTerms) -> PolicyQuestion:
    """What the options ask."""
    named = cast("str", options.policy)
    price = cast("float | None", options.read_price)
    if price is not None and not 0 <= price <= 1:
        raise InputError(f"--read-price {price}: expected 0 to 1, the part of a fresh token's price; try 0.1")
    return PolicyQuestion(
        DEFAULT_POLICY if named == "sevenfold" else named,
        cast("CacheLifetime", options.ttl or "5m"),
        price,
        terms,
    )


def show_policy_costs(
    question: PolicyQuestion,
    places: Iterable[TranscriptSource],
    screen: Screen,
    *,
    jobs: int | None,
    is_json: bool,
) -> int:
    """Ask of the first place that holds a session. A break that no cut explains is a failure of ours."""
    skipped: tuple[UnreadableFile, ...] = ()
    for place in places:
        answer = _ask(question, place, screen, jobs)
        if answer.trials:
            if is_json:
                screen.show_json(describe_policy_report(answer))
            else:
                show_policy_report(answer, screen)
            return _judge(answer.total, screen)
        skipped += answer.skipped
    for item in skipped:
        screen.fail(f"{item.path}: {item.reason}")
    if not skipped:
        screen.fail(explain_no_transcripts(question.terms.since))
    return 1


def _ask(question: PolicyQuestion, place: TranscriptSource, screen: Screen, jobs: int | None) -> PolicyReport:
    label = f"sending {len(place.found)} again" if len(place.found) > 1 else "sending it again"

    def tell(share: float) -> None:
        screen.show_progress(label, share)

    try:
        trials = run_trials(place.found, question, jobs=jobs, on_share=tell)
    finally:
        screen.clear_progress()
    by_cost = sorted(trials.done, key=lambda trial: -trial.figures.keep_cost)
    total = reduce(add, (trial.figures for trial in by_cost), PolicyFigures())
    skipped = (*place.unreadable, *trials.skipped)
    return PolicyReport(
        question=question, origin=place.origin, trials=tuple(by_cost), total=total, skipped=skipped
    )


def _judge(total: PolicyFigures, screen: Screen) -> int:
    if not total.unannounced:
        return 0
    screen.fail(
        f"the cache broke {total.unannounced} times without a cut that explains it; expected none. "
        "This is a bug: please report it"
    )
    return 1
