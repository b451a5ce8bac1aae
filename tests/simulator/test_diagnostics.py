"""Why a prompt could not be read from the cache, as the service tells it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sevenfold.core.json import JsonObject
from tests.simulator.asking import MARK, PROSE, Answer, Asker, assistant, text, tool, user

BASE: dict[str, object] = {"tools": [tool("look"), tool("walk")], "system": "Be brief."}
SAID: list[object] = [user(PROSE), assistant("Yes."), "And?"]


def asked(ask: Asker, previous: object, *said: object, **fields: object) -> Answer:
    return ask.create(*(said or SAID), **{**BASE, **fields}, diagnostics={"previous_message_id": previous})


def reason(answer: Answer) -> object:
    return answer.at("diagnostics", "cache_miss_reason", "type")


@pytest.mark.rule("diagnostics-1")
def test_nothing_is_diagnosed_unasked_at_first_or_without_a_change(ask: Asker) -> None:
    assert "diagnostics" not in ask.create(*SAID, **BASE).body
    first = asked(ask, None)
    assert first.body["diagnostics"] is None
    again = asked(ask, first.at("id"), *SAID, assistant("So."), "More?")
    assert again.body["diagnostics"] is None


@pytest.mark.rule("diagnostics-2")
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"model": "claude-opus-4-8"}, "model_changed"),
        ({"tools": [tool("look")]}, "tools_changed"),
        ({"tools": [tool("walk"), tool("look")]}, "tools_changed"),
        ({"system": "Be long."}, "system_changed"),
        ({"system": "Be long.", "tools": [tool("look")]}, "tools_changed"),
        ({"system": "Be long.", "model": "claude-opus-4-8"}, "model_changed"),
    ],
)
def test_the_earliest_change_is_named(ask: Asker, change: dict[str, object], kind: str) -> None:
    first = asked(ask, None)
    answer = asked(ask, first.at("id"), **change)
    assert reason(answer) == kind
    missed = answer.at("diagnostics", "cache_miss_reason", "cache_missed_input_tokens")
    assert isinstance(missed, int)
    assert 500 < missed <= first.usage.prompt


@pytest.mark.rule("diagnostics-2")
def test_a_changed_message_is_named(ask: Asker) -> None:
    first = asked(ask, None)
    answer = asked(ask, first.at("id"), user(PROSE), assistant("No."), "And?")
    assert reason(answer) == "messages_changed"
    missed = answer.at("diagnostics", "cache_miss_reason", "cache_missed_input_tokens")
    assert isinstance(missed, int)
    assert 0 < missed < 50


@pytest.mark.rule("diagnostics-2")
def test_another_speed_counts_as_another_model(ask: Asker) -> None:
    first = asked(ask, None, model="claude-opus-5-5")
    assert reason(asked(ask, first.at("id"), model="claude-opus-5-5", speed="fast")) == "model_changed"


@pytest.mark.rule("diagnostics-3")
def test_a_request_that_is_not_known_is_not_compared(ask: Asker) -> None:
    first = asked(ask, None)
    told = asked(ask, "msg_unknown").body["diagnostics"]
    assert told == JsonObject({"cache_miss_reason": JsonObject({"type": "previous_message_not_found"})})
    assert reason(asked(ask, first.at("id"), key="another")) == "previous_message_not_found"


@pytest.mark.rule("diagnostics-4")
@pytest.mark.parametrize(
    "change",
    [
        {"tool_choice": {"type": "none"}},
        {"thinking": {"type": "adaptive"}},
        {"output_config": {"effort": "low"}},
        {"betas": ["context-management-2025-06-27"]},
        {"betas": ["context-management-2025-06-27"], "context_management": {"edits": []}},
    ],
    ids=["tool_choice", "thinking", "effort", "betas", "edits"],
)
def test_a_changed_parameter_is_not_explained(ask: Asker, change: dict[str, object]) -> None:
    first = asked(ask, None)
    told = asked(ask, first.at("id"), **change).body["diagnostics"]
    assert told == JsonObject({"cache_miss_reason": JsonObject({"type": "unavailable"})})


@pytest.mark.rule("diagnostics-5")
def test_an_expired_cache_is_no_change(ask: Asker) -> None:
    marked = user(text(PROSE, cache_control=MARK))
    first = asked(ask, None, marked)
    ask.sim.advance(timedelta(hours=2))
    later = asked(ask, first.at("id"), marked)
    assert later.usage.read == 0
    assert later.body["diagnostics"] is None
    assert ask.sim.last.expired == "messages.0.content.0"
