"""Where a request asks to be cached, and the words with which the provider refuses."""

from __future__ import annotations

import pytest

from sevenfold.core.cache.prompt_cache import (
    FIVE_MINUTES,
    ONE_HOUR,
    CacheChoices,
    find_breakpoint_problems,
    find_breakpoints,
)
from sevenfold.core.json import JsonObject
from tests.core.cache_cases import (
    LONG,
    SHORT,
    Wire,
    ask,
    assistant,
    parts,
    request,
    result,
    text,
    thought,
    tool,
    user,
)


def told(body: JsonObject, choices: CacheChoices | None = None) -> list[str]:
    found = find_breakpoint_problems(body, choices) if choices else find_breakpoint_problems(body)
    return [problem.message for problem in found]


def marked(body: JsonObject) -> dict[str, str]:
    names = {FIVE_MINUTES: "5m", ONE_HOUR: "1h"}
    return {marker.path: names[marker.ttl] for marker in find_breakpoints(body)}


def four(*after: Wire) -> JsonObject:
    """Four markers and automatic caching."""
    blocks = [text(f"Part {number}.", cache_control=SHORT) for number in range(4)]
    return request(user(*blocks), *after, cache_control=SHORT)


@pytest.mark.rule("cache-25")
def test_a_marker_lives_five_minutes_or_an_hour() -> None:
    body = request(
        user(text("Hi", cache_control={"type": "ephemeral", "ttl": "5m"}), text("Ho", cache_control=SHORT)),
        system=[text("Be kind.", cache_control=LONG)],
    )
    assert marked(body) == {"system.0": "1h", "messages.0.content.0": "5m", "messages.0.content.1": "5m"}
    assert told(body) == []


@pytest.mark.rule("cache-25")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            request(system=[text("Hi", cache_control={"type": "ephemeral", "ttl": 3600})]),
            "system.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
        ),
        (
            request(user(text("Hi", cache_control={"type": "ephemeral", "ttl": "2h"}))),
            "messages.0.content.0.text.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
        ),
        (
            request(tools=[tool("look", cache_control={"type": "ephemeral", "ttl": "2h"})]),
            "tools.0.custom.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
        ),
        (
            request(tools=[{"type": "bash_20250124", "name": "bash", "cache_control": {"type": "forever"}}]),
            "tools.0.cache_control: Input tag 'forever' found using 'type' does not match any of the "
            "expected tags: 'ephemeral'",
        ),
        (
            request(user(text("Hi")), cache_control=True),
            "cache_control: Input should be a valid dictionary or object",
        ),
    ],
)
def test_any_other_marker_is_refused_and_marks_nothing(body: JsonObject, message: str) -> None:
    assert told(body) == [message]
    assert marked(body) == {}


@pytest.mark.rule("cache-25")
def test_a_null_is_no_marker() -> None:
    body = JsonObject({**request(user(text("Hi", cache_control=None))), "cache_control": None})
    assert marked(body) == {}
    assert told(body) == []


@pytest.mark.rule("cache-26")
def test_the_fifth_marker_is_refused() -> None:
    blocks = [text(f"Part {number}.", cache_control=SHORT) for number in range(5)]
    assert told(request(user(*blocks))) == [
        "A maximum of 4 blocks with cache_control may be provided. Found 5."
    ]
    assert told(request(user(*blocks[:4]))) == []


@pytest.mark.rule("cache-27")
def test_an_hour_after_five_minutes_is_refused_by_the_path_of_the_hour() -> None:
    body = request(
        user(text("a"), text("b"), text("c"), text("d"), text("e", cache_control=LONG)),
        system=[text("Be kind.", cache_control=SHORT)],
    )
    assert told(body) == [
        "messages.0.content.4.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
        "ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, "
        "`system`, `messages`."
    ]


@pytest.mark.rule("cache-27")
def test_automatic_caching_keeps_the_order_too() -> None:
    body = request(user(text("a", cache_control=SHORT), text("b")), cache_control=LONG)
    assert told(body)[0].startswith("cache_control.ttl: a ttl='1h' cache_control block must not come after")


@pytest.mark.rule("cache-28")
@pytest.mark.parametrize(
    "block", [thought("Hm."), {"type": "redacted_thinking", "data": "x"}], ids=["thinking", "redacted"]
)
def test_a_marker_on_thinking_is_refused(block: Wire) -> None:
    body = request(user(text("Hi")), assistant({**block, "cache_control": SHORT}))
    assert told(body) == [
        f"messages.1.content.0.{block['type']}.cache_control: Extra inputs are not permitted"
    ]
    assert marked(body) == {}


@pytest.mark.rule("cache-29")
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (request(user(text("", cache_control=SHORT))), "messages.0.content.0"),
        (request(system=[text("", cache_control=SHORT)]), "system.0"),
    ],
)
def test_a_marker_on_empty_text_is_refused(body: JsonObject, path: str) -> None:
    assert told(body) == [f"{path}.text: cache_control cannot be set for empty text blocks"]


@pytest.mark.rule("cache-30")
def test_a_marker_on_a_deferred_tool_is_refused() -> None:
    assert told(request(tools=[tool("smell", defer_loading=True, cache_control=SHORT)])) == [
        "Tool 'smell' cannot have both defer_loading=true and cache_control set. "
        "Tools with defer_loading cannot use prompt caching."
    ]


@pytest.mark.rule("cache-31")
def test_a_marker_in_a_passing_system_message_is_refused() -> None:
    note = {
        "role": "system",
        "content": [text("Hurry.", cache_control=SHORT)],
        "clear_at": "next_user_message",
    }
    (problem,) = find_breakpoint_problems(request(user(text("Hi")), note))
    assert (problem.kind, problem.path) == ("cleared message", "messages.1.content.0")


@pytest.mark.rule("cache-32")
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (request(user(text("Hi"))), "messages.0.content.0"),
        (request(user(result("a"))), "messages.0.content.0"),
        (request(user(text("Hi")), assistant(ask("a"), thought("Hm."))), "messages.1.content.0"),
        (request(user(text("Hi"), text(""), text(""))), "messages.0.content.0"),
        (request(user(text("")), system="Be kind."), "system.0"),
        (request(user(text("")), tools=[tool("a"), tool("b", defer_loading=True)]), "tools.0"),
    ],
    ids=["last", "result", "before thinking", "before empty text", "system", "tool"],
)
def test_automatic_caching_marks_the_last_block_that_can_be_cached(body: JsonObject, path: str) -> None:
    automatic = JsonObject({**body, "cache_control": JsonObject({"type": "ephemeral", "ttl": "1h"})})
    assert marked(automatic) == {path: "1h"}
    assert [part.path for part in parts(automatic) if part.ttl == ONE_HOUR] == [path]


@pytest.mark.rule("cache-32")
def test_automatic_caching_with_nothing_to_mark_is_skipped() -> None:
    body = request(user(text("")), cache_control=SHORT)
    assert (marked(body), told(body)) == ({}, [])


@pytest.mark.rule("cache-33")
def test_automatic_caching_adds_nothing_where_a_marker_stands() -> None:
    body = request(user(text("Hi", cache_control=LONG)), cache_control=LONG)
    (marker,) = find_breakpoints(body)
    assert not marker.is_automatic
    assert told(body) == []


@pytest.mark.rule("cache-34")
def test_automatic_caching_is_refused_where_a_marker_of_another_life_stands() -> None:
    (problem,) = find_breakpoint_problems(request(user(text("Hi", cache_control=LONG)), cache_control=SHORT))
    assert problem.kind == "automatic"
    assert "messages.0.content.0" in problem.message


@pytest.mark.rule("cache-35")
def test_automatic_caching_needs_one_of_the_four_places() -> None:
    (problem,) = find_breakpoint_problems(four(assistant(text("So."))))
    assert problem.message == "A maximum of 4 blocks with cache_control may be provided. Found 5."
    assert problem.kind == "automatic"


@pytest.mark.rule("cache-35")
def test_with_the_fourth_marker_on_the_last_block_automatic_caching_has_nothing_to_do() -> None:
    assert told(four()) == []
    assert told(four(), CacheChoices(full_auto_fails=True)) == [
        "A maximum of 4 blocks with cache_control may be provided. Found 5."
    ]
