"""`sevenfold replay --policy`: what recorded sessions would have cost under a policy for clearing results."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import cast

from sevenfold.cli.replay.policy_view import PolicyReport, describe_policy_report, show_policy_report
from sevenfold.cli.replay.sources import TranscriptSource, explain_no_transcripts
from sevenfold.cli.screen import Screen
from sevenfold.core.errors import InputError
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.policies import DEFAULT_POLICY
from sevenfold.replay.policies.policy_trial import CacheLifetime, PolicyFigures, PolicyQuestion, run_trials
from sevenfold.store.foreign.find import UnreadableFile


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
    dearest = sorted(trials.done, key=lambda trial: -trial.figures.keep_cost)
    total = reduce(add, (trial.figures for trial in dearest), PolicyFigures())
    skipped = (*place.unreadable, *trials.skipped)
    return PolicyReport(
        question=question, origin=place.origin, trials=tuple(dearest), total=total, skipped=skipped
    )


def _judge(total: PolicyFigures, screen: Screen) -> int:
    if not total.unannounced:
        return 0
    screen.fail(
        f"the cache broke {total.unannounced} times without a cut that explains it; expected none. "
        "This is a bug: please report it"
    )
    return 1
