"""Two requests are compared part by part, and the earliest change is named."""

from __future__ import annotations

import pytest

from sevenfold.core.cache.prompt_cache import PromptDifference, find_first_difference
from sevenfold.core.json import JsonObject
from tests.core.cache_cases import SHORT, Wire, ask, assistant, rendered, request, result, text, tool, user

IMAGE: Wire = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


def talk(*extra: Wire, **fields: object) -> JsonObject:
    whole: Wire = {"tools": [tool("look")], "system": [text("Be kind.", 100)]}
    turn = (user(text("Where?", 50)), assistant(ask("a")), user(result("a")))
    return request(*turn, *extra, **(whole | fields))


def between(before: JsonObject, after: JsonObject) -> PromptDifference | None:
    return find_first_difference(rendered(before), rendered(after))


@pytest.mark.rule("cache-54")
@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (talk(model="claude-opus-5-5"), PromptDifference("model", "model", 0, 180)),
        (talk(speed="fast"), PromptDifference("model", "speed", 1, 170)),
        (talk(tools=[tool("hear")]), PromptDifference("tools", "tools.0", 0, 180)),
        (talk(tools=[tool("look"), tool("hear")]), PromptDifference("tools", "tools.1", 1, 170)),
        (talk(system=[text("Be rude.", 100)]), PromptDifference("system", "system.0", 1, 170)),
        (talk(system=None), PromptDifference("system", "messages.0.content.0", 1, 170)),
        (
            request(user(text("When?", 50)), tools=[tool("look")], system=[text("Be kind.", 100)]),
            PromptDifference("message", "messages.0.content.0", 2, 70),
        ),
    ],
    ids=["model", "speed", "tools", "one tool more", "system", "no system", "message"],
)
def test_the_earliest_change_is_named_with_what_can_no_longer_be_read(
    after: JsonObject, expected: PromptDifference
) -> None:
    assert between(talk(), after) == expected


@pytest.mark.rule("cache-54")
def test_each_cause_has_the_name_that_diagnostics_give_it() -> None:
    changed = [
        talk(model="claude-opus-5-5"),
        talk(tools=[]),
        talk(system="x"),
        talk(tool_choice={"type": "any"}),
    ]
    found = [between(talk(), body) for body in (*changed, request(user(text("x")), tools=[tool("look")]))]
    reasons = [difference.reason for difference in found if difference]
    assert reasons == [
        "model_changed",
        "tools_changed",
        "system_changed",
        "unavailable",
        "system_changed",
    ]


@pytest.mark.rule("cache-54")
def test_a_model_that_changed_hides_every_later_change() -> None:
    difference = between(talk(), talk(model="claude-opus-5-5", system="x", tools=[]))
    assert difference is not None
    assert difference.reason == "model_changed"


@pytest.mark.rule("cache-55")
def test_going_on_is_no_difference_and_neither_is_stopping_short() -> None:
    longer = talk(assistant(text("There.")), user(text("Thanks.", cache_control=SHORT)))
    assert between(talk(), longer) is None
    assert between(longer, talk()) is None
    assert between(talk(), talk(user(IMAGE))) is None
    assert between(talk(), talk()) is None


@pytest.mark.rule("cache-55")
def test_a_marker_that_moved_is_no_difference() -> None:
    assert between(talk(), talk(cache_control=SHORT)) is None


@pytest.mark.rule("cache-56")
@pytest.mark.parametrize(
    ("after", "knob", "index"),
    [
        (talk(tool_choice={"type": "any"}), "tool_choice", 2),
        (talk(thinking={"type": "adaptive"}), "thinking", 2),
        (talk(output_config={"effort": "low"}), "effort", 2),
        (talk(output_config={"format": {"type": "json_schema", "schema": {}}}), "format", 2),
        (talk(output_config={"task_budget": {"type": "tokens", "total": 20_000}}), "task_budget", 2),
    ],
    ids=["tool choice", "thinking", "effort", "format", "task budget"],
)
def test_a_setting_that_changed_is_named(after: JsonObject, knob: str, index: int) -> None:
    difference = between(talk(), after)
    assert difference is not None
    assert (difference.cause, difference.path, difference.index) == ("params", knob, index)


@pytest.mark.rule("cache-56")
def test_a_setting_counts_only_from_its_own_level() -> None:
    difference = between(talk(), talk(system="x", tool_choice={"type": "any"}))
    assert difference is not None
    assert difference.cause == "system"


@pytest.mark.rule("cache-57")
def test_what_is_missed_is_the_rest_of_the_earlier_prompt() -> None:
    longer = talk(assistant(text("There.", 500)), user(text("Thanks.", 300)))
    shorter = talk(assistant(text("Here.")))
    assert between(longer, shorter) == PromptDifference("message", "messages.3.content.0", 5, 800)


@pytest.mark.rule("cache-58")
def test_a_difference_needs_neither_markers_nor_a_cache() -> None:
    unmarked, other = request(user(text("a"))), request(user(text("b")))
    assert between(unmarked, other) == PromptDifference("message", "messages.0.content.0", 0, 1)
