"""Progress lines: short, only when something changed, and asked the cheaper way."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path

import pytest

from sevenfold.agent.loop.choose_provider import (
    SideCallFacts,
    SideModelChoice,
    choose_side_model,
)
from sevenfold.agent.subagents.subagent_runner import (
    MAX_PROGRESS_CHARS,
    PROGRESS_OUTPUT_TOKENS,
    ProgressReporter,
    parse_progress_line,
)
from sevenfold.core.errors import Overloaded
from sevenfold.core.events import ProgressSkipped
from sevenfold.core.prices import CATALOG, find_cheapest_model
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.crews import Crew, Lead, said

DAY = date(2026, 11, 15)
OPUS, HAIKU = CATALOG.find("claude-opus-5-5"), CATALOG.find("claude-haiku-5-5")


@pytest.mark.parametrize(
    ("prefix", "tail", "way"),
    [
        (150_000, 1_000, "cheap"),
        (20_000, 60_000, "fork"),
    ],
)
def test_prices_decide_who_is_asked(prefix: int, tail: int, way: SideModelChoice) -> None:
    assert (
        choose_side_model(
            SideCallFacts(
                prefix_tokens=prefix,
                tail_tokens=tail,
                own=OPUS,
                cheap=HAIKU,
                day=DAY,
                output_tokens=PROGRESS_OUTPUT_TOKENS,
            )
        )
        == way
    )


def test_without_a_known_price_the_agents_own_model_is_asked() -> None:
    unknown = CATALOG.find("my-own-model")
    assert (
        choose_side_model(
            SideCallFacts(
                prefix_tokens=10**6,
                tail_tokens=1,
                own=unknown,
                cheap=HAIKU,
                day=DAY,
                output_tokens=PROGRESS_OUTPUT_TOKENS,
            )
        )
        == "fork"
    )
    assert (
        choose_side_model(
            SideCallFacts(
                prefix_tokens=10**6,
                tail_tokens=1,
                own=OPUS,
                cheap=None,
                day=DAY,
                output_tokens=PROGRESS_OUTPUT_TOKENS,
            )
        )
        == "fork"
    )
    assert find_cheapest_model(unknown, CATALOG, DAY) is None


def test_the_cheap_model_is_the_cheapest_of_the_same_maker() -> None:
    found = find_cheapest_model(OPUS, CATALOG, DAY)
    assert found is not None
    assert found.name.startswith("claude-haiku")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("Reading store/mailbox.py", "Reading store/mailbox.py"),
        ('\n "Fixing   parse_address." \nBecause', "Fixing parse_address"),
        ("", ""),
        ("word " * 50, ("word " * 50)[: MAX_PROGRESS_CHARS - 1] + "…"),
    ],
)
def test_a_line_is_the_words_alone(answer: str, line: str) -> None:
    assert parse_progress_line(answer) == line


def test_an_agent_is_asked_once_for_what_it_does_and_not_again_until_it_has_done_more(tmp_path: Path) -> None:
    with ScriptedProvider(
        [make_response(calls={"look": {"n": 1}}), make_response("One."), make_response("Two.")],
        by_purpose={"progress": [make_response("Looking at one"), Overloaded("busy")]},
    ) as models:
        crew = Crew(home=tmp_path, provider=models)
        lines = ProgressReporter(CATALOG, crew.noted)

        async def tell(lead: Lead) -> None:
            agent = lead.agent
            assert await lines.ask("ada", agent) == "", "it has not begun"
            await agent.run_turn("Go.")
            assert await lines.ask("ada", agent) == "Looking at one"
            assert await lines.ask("ada", agent) == ""
            await agent.run_turn("Go on.")
            assert await lines.ask("ada", agent) == "", "it failed, which costs the line and nothing else"

        async def run() -> None:
            async with crew.lead() as lead:
                await tell(lead)

        asyncio.run(run())
    asked = [request for request in models.requests if request.purpose == "progress"]
    assert "3 to 5 words" in said(asked[0].messages)
    skipped = crew.noted.of("ProgressSkipped")
    assert isinstance(skipped[0], ProgressSkipped)
    assert skipped[0].name == "ada"
