"""A yes must be meant; everything else is a no, in the person's own words."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRule
from sevenfold.agent.tool import AccessRequest
from sevenfold.agent.tui.permission_prompt import (
    PermissionPrompt,
    parse_permission_answer,
    render_permission_question,
    render_permission_request,
)
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId

RULE = PermissionRule("shell", "make *")


def question(name: str = "shell", rule: PermissionRule | None = RULE, **given: object) -> PermissionRequest:
    use = ToolUse(ToolUseId("t"), name, freeze_object(given))
    return PermissionRequest(
        use=use,
        need=AccessRequest(kind="run", command="make test", said="run make test"),
        reason="it runs a command",
        rule=rule,
    )


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", PermissionResponse(True)),
        (" YES ", PermissionResponse(True)),
        ("s", PermissionResponse(True, "session")),
        ("always", PermissionResponse(True, "always")),
        ("n", PermissionResponse(False)),
        ("use pytest instead", PermissionResponse(False, words="use pytest instead")),
        ("yep", PermissionResponse(False, words="yep")),
        ("   ", None),
    ],
)
def test_an_answer_means_what_it_says(line: str, answer: PermissionResponse | None) -> None:
    assert parse_permission_answer(line, question()) == answer


def test_what_no_rule_can_cover_is_allowed_once() -> None:
    assert parse_permission_answer("always", question(rule=None)) == PermissionResponse(True)
    assert "always" not in render_permission_question(question(rule=None), TextRenderer())


@given(st.text(max_size=20))
def test_nothing_but_a_clear_yes_allows(line: str) -> None:
    answer = parse_permission_answer(line, question())
    is_clear = line.strip().lower() in {"y", "yes", "s", "session", "a", "always"}
    assert (answer is not None and answer.is_allowed) == is_clear


def test_a_question_names_the_rule_that_always_would_add() -> None:
    assert "shell(make *)" in render_permission_question(question(), TextRenderer(120))


def test_a_request_shows_what_would_change() -> None:
    shown = render_permission_request(
        question("edit", old_string="a = 1\nb = 2", new_string="a = 1\nb = 3"), TextRenderer()
    )
    assert "-b = 2" in shown
    assert "+b = 3" in shown
    assert "it runs a command" in shown
    assert "+hello" in render_permission_request(question("write", content="hello"), TextRenderer())


def test_whoever_asks_waits_for_the_line_that_answers() -> None:
    async def story() -> None:
        asking = PermissionPrompt()
        told: list[bool] = []
        asking.on_change = lambda: told.append(asking.question is not None)
        waiting = asyncio.create_task(asking.ask(question()))
        await asyncio.sleep(0)
        assert asking.answer("")
        assert asking.question is not None, "an empty line answers nothing"
        assert asking.answer("no, use tox")
        assert await waiting == PermissionResponse(False, words="no, use tox")
        assert not asking.answer("y"), "nothing is asked any more"
        assert told == [True, False]

    asyncio.run(story())


def test_a_question_that_is_given_up_is_closed() -> None:
    async def story() -> None:
        asking = PermissionPrompt()
        waiting = asyncio.create_task(asking.ask(question()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert asking.question is None

    asyncio.run(story())
