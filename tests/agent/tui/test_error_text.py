"""An error says its code, and what to do about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sevenfold.agent.loop.choose_provider import find_key_variable
from sevenfold.agent.tui.error_text import render_error, render_retry
from sevenfold.core.errors import (
    InputError,
    Overloaded,
    PromptTooLong,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
    SevenfoldError,
    SignInRefused,
)
from sevenfold.core.events import RetryScheduled
from sevenfold.core.settings.sections import AgentSettings


@pytest.mark.parametrize(
    ("error", "variable", "words"),
    [
        (InputError("no such file"), "", ["error: no such file"]),
        (
            Overloaded("Overloaded", status=529, kind="overloaded_error"),
            "",
            ["529 overloaded_error", "/model"],
        ),
        (RateLimited(retry_after=timedelta(seconds=90)), "", ["429", "wait 90 s"]),
        (
            SignInRefused("invalid x-api-key", status=401),
            "ANTHROPIC_AUTH_TOKEN",
            ["401", "set ANTHROPIC_AUTH_TOKEN"],
        ),
        (SignInRefused("no key", status=401), "", ["no key was sent: set ANTHROPIC_API_KEY"]),
        (PromptTooLong(), "", ["/compact"]),
        (ProviderUnreachable("connection refused"), "", ["ANTHROPIC_BASE_URL"]),
        (ProviderRefused("no such model", status=404), "", ["404", "/model"]),
        (ReplyBroken("Overloaded", kind="overloaded_error"), "", ["overloaded_error", "/model"]),
    ],
)
def test_an_error_has_its_code_and_its_remedy(error: SevenfoldError, variable: str, words: list[str]) -> None:
    text = render_error(error, variable)
    assert [word for word in words if word not in text] == []
    assert "\n" not in text


@pytest.mark.parametrize(
    ("environ", "base_url", "expected"),
    [
        ({}, None, ""),
        (
            {"ANTHROPIC_API_KEY": "a", "ANTHROPIC_AUTH_TOKEN": "b", "OPENAI_API_KEY": "c"},
            None,
            "ANTHROPIC_API_KEY",
        ),
        ({"ANTHROPIC_AUTH_TOKEN": "b", "OPENAI_API_KEY": "c"}, None, "ANTHROPIC_AUTH_TOKEN"),
        ({"ANTHROPIC_BASE_URL": "http://x", "OPENAI_API_KEY": "c"}, None, ""),
        ({"OPENAI_API_KEY": "c"}, None, "OPENAI_API_KEY"),
        ({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "c"}, "http://x/v1", "OPENAI_API_KEY"),
    ],
)
def test_the_variable_that_is_named_is_the_one_whose_key_is_sent(
    environ: dict[str, str], base_url: str | None, expected: str
) -> None:
    assert find_key_variable(AgentSettings(base_url=base_url), environ) == expected


def test_a_failure_says_how_often_it_was_tried_and_a_stall_blames_no_address() -> None:
    error = Overloaded("Overloaded", status=529)
    assert "Overloaded (11 attempts); /model" in render_error(error, retries=10)
    stalled = ProviderUnreachable("no answer came within 600 seconds")
    stalled.should_retry = False
    assert render_error(stalled) == "error: no answer came within 600 seconds"


def test_a_retry_counts_down() -> None:
    event = RetryScheduled(model="m", retry=4, of=10, seconds=8.0, reason="529: Overloaded")
    assert render_retry(event, timedelta(seconds=5.2)) == "retry 4 of 10 in 5 s: 529: Overloaded"
    assert render_retry(event, timedelta(seconds=-1)).startswith("retry 4 of 10 in 0 s:")
