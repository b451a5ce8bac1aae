"""`sevenfold replay --policy`: what recorded sessions would have cost under a policy for clearing results."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import cast

from sevenfold.cli.render import Screen
from sevenfold.cli.replay_places import Place, tell_nothing
from sevenfold.cli.replay_policy_view import Answer, describe_answer, show_answer
from sevenfold.core.errors import InputError
from sevenfold.replay.account import Terms
from sevenfold.replay.policies import OURS
from sevenfold.replay.trial import Figures, Lifetime, Question, run_trials
from sevenfold.store.foreign.find import Unreadable


def read_question(options: Namespace, terms: Terms) -> Question:
    """What the options ask."""
    named = cast("str", options.policy)
    price = cast("float | None", options.read_price)
    if price is not None and not 0 <= price <= 1:
        raise InputError(f"--read-price {price}: expected 0 to 1, the part of a fresh token's price; try 0.1")
    return Question(
        OURS if named == "sevenfold" else named, cast("Lifetime", options.ttl or "5m"), price, terms
    )


def run_policy(
    question: Question, places: Iterable[Place], screen: Screen, *, jobs: int | None, is_json: bool
) -> int:
    """Ask of the first place that holds a session. A break that no cut explains is a failure of ours."""
    skipped: tuple[Unreadable, ...] = ()
    for place in places:
        answer = _ask(question, place, screen, jobs)
        if answer.trials:
            if is_json:
                screen.show_json(describe_answer(answer))
            else:
                show_answer(answer, screen)
            return _judge(answer.total, screen)
        skipped += answer.skipped
    for item in skipped:
        screen.fail(f"{item.path}: {item.reason}")
    if not skipped:
        screen.fail(tell_nothing(question.terms.since))
    return 1


def _ask(question: Question, place: Place, screen: Screen, jobs: int | None) -> Answer:
    label = f"sending {len(place.found)} again" if len(place.found) > 1 else "sending it again"

    def tell(share: float) -> None:
        screen.show_progress(label, share)

    try:
        trials = run_trials(place.found, question, jobs=jobs, on_share=tell)
    finally:
        screen.clear_progress()
    dearest = sorted(trials.done, key=lambda trial: -trial.figures.keep_cost)
    total = reduce(add, (trial.figures for trial in dearest), Figures())
    skipped = (*place.unreadable, *trials.skipped)
    return Answer(question, place.origin, tuple(dearest), total, skipped)


def _judge(total: Figures, screen: Screen) -> int:
    if not total.unannounced:
        return 0
    screen.fail(
        f"the cache broke {total.unannounced} times without a cut that explains it; expected none. "
        "This is a bug: please report it"
    )
    return 1
