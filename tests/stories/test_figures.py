"""The figures of a chat are the provider's: what it says of cost, cache and a switch of models is billed."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Simulator
from tests.stories.living import Place
from tests.stories.stage import ESCAPE, Stage
from tests.stories.walk import WIDTHS, Walk, flatten

pytestmark = pytest.mark.story

MILLION = Decimal(1_000_000)
TO_FIVE_MINUTE_CACHE, FROM_CACHE = Decimal(5), Decimal("0.2")
"""Dollars a million tokens of claude-opus-5-5, written and read."""


def brain(prompt: Prompt) -> str:
    return f"You said: {prompt.last_text.rpartition(chr(10))[2]}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def find_figures(pattern: str, text: str) -> list[Decimal]:
    """Those of the last place."""
    found = re.findall(pattern, flatten(text))
    assert found, f"{pattern} is in {text}"
    return [Decimal(figure.replace(",", "")) for figure in found[-1]]


def read_paid(place: Place) -> Decimal:
    total = place.sim.ledger.total_cost()
    assert total is not None
    return total.total


def test_a_chat_says_what_the_provider_bills(place: Place) -> None:
    with place.chat(columns=100) as stage:
        walk = Walk(stage, 100, [])
        walk.enter("one", "You said: one")
        check_cache(place, walk)
        check_switch(place, walk)
        walk.enter("/model claude-opus-5-5", "the model is claude-opus-5-5")
        walk.enter("/cost", f"in all ${read_paid(place):.4f}")
        walk.check_end()
    replayed = json.loads(place.run("replay", str(place.transcripts()[0]), "--json").stdout)
    assert round(Decimal(str(replayed["total"]["usd"]["total"])), 6) == round(read_paid(place), 6)


def check_cache(place: Place, walk: Walk) -> None:
    """It is warm for as long as it says, and a longer pause costs what it says."""
    (minutes, price) = find_figures(r"cache warm (\d+) min, then \+\$([\d.]+)", walk.stage.shown)
    first = place.sim.last.usage
    assert price == round(first.written_5m * (TO_FIVE_MINUTE_CACHE - FROM_CACHE) / MILLION, 4)
    place.sim.advance(timedelta(minutes=int(minutes), seconds=-1))
    walk.enter("two", "You said: two")
    assert place.sim.last.usage.read == first.written_5m, "just before its end it is warm"
    (minutes, price) = find_figures(r"cache warm (\d+) min, then \+\$([\d.]+)", walk.stage.shown)
    place.sim.advance(timedelta(minutes=int(minutes), seconds=1))
    kept = place.sim.last.usage
    walk.enter("three", "You said: three")
    cold = place.sim.last.usage
    assert cold.read == 0, "just after its end it is cold"
    lost = kept.read + kept.written_5m
    assert 0 <= cold.written_5m - lost <= 100, "what was lost, and the new prompt"
    assert price == round(lost * (TO_FIVE_MINUTE_CACHE - FROM_CACHE) / MILLION, 4)


def check_switch(place: Place, walk: Walk) -> None:
    """It bills what was said before it happened."""
    walk.enter("/model claude-haiku-4-5", "the model is claude-haiku-4-5")
    stated = r"bills the ([\d,]+) tokens of the context again, for about \$([\d.]+)"
    tokens, price = find_figures(stated, walk.stage.everything)
    walk.stage.enter("four")
    walk.see("You said: four")
    walk.stage.wait_until(lambda: is_idle(walk.stage, "haiku-4-5"), "the turn is over")
    billed = place.sim.last
    assert billed.cost is not None
    # Its tokens are longer: the context has fewer of them, too few for its cache.
    assert billed.usage.written_5m == 0
    assert abs(billed.usage.fresh - tokens) <= tokens / 50, "and the new prompt adds a little"
    assert abs(billed.cost.fresh - price) <= price / 50


def is_idle(stage: Stage, model: str) -> bool:
    return stage.is_drawn and model in stage.shown and "working" not in stage.shown


@WIDTHS
def test_why_names_the_message_from_which_a_rewind_changed_the_prompt(place: Place, columns: int) -> None:
    with place.chat(columns=columns) as stage:
        walk = Walk(stage, columns, [])
        walk.enter("the first words", "You said: the first words")
        walk.enter("the second words", "You said: the second words")
        stage.type(ESCAPE)
        stage.type(ESCAPE)
        walk.see_now("go back to before which message?")
        stage.type("1")
        walk.see_now("what goes back?")
        stage.type("\r")
        walk.see("went back: 2 messages left the conversation and are in the transcript")
        stage.wait_until(lambda: "› the second words" in stage.shown.split("went back")[1], "it returns")
        stage.type("\x15")
        walk.enter("others", "You said: others")
        walk.enter(
            "/why",
            "the user went back to an earlier message",
            "changed from message",
            "nothing; what is sent from now on is read from the cache again",
        )
        walk.check_end()
