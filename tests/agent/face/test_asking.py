"""A yes must be meant; everything else is a no, in the person's own words."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.face.asking import Asking, read_answer, render_question, render_request
from sevenfold.agent.face.brush import Brush
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.run.permissions import Answer, Question
from sevenfold.run.rules import Rule
from sevenfold.run.tool import Need

RULE = Rule("shell", "make *")


def question(name: str = "shell", rule: Rule | None = RULE, **given: object) -> Question:
    use = ToolUse(ToolUseId("t"), name, freeze_object(given))
    return Question(use, Need("run", command="make test", said="run make test"), "it runs a command", rule)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", Answer(True)),
        (" YES ", Answer(True)),
        ("s", Answer(True, "session")),
        ("always", Answer(True, "always")),
        ("n", Answer(False)),
        ("use pytest instead", Answer(False, words="use pytest instead")),
        ("yep", Answer(False, words="yep")),
        ("   ", None),
    ],
)
def test_an_answer_means_what_it_says(line: str, answer: Answer | None) -> None:
    assert read_answer(line, question()) == answer


def test_what_no_rule_can_cover_is_allowed_once() -> None:
    assert read_answer("always", question(rule=None)) == Answer(True)
    assert "always" not in render_question(question(rule=None), Brush())


@given(st.text(max_size=20))
def test_nothing_but_a_clear_yes_allows(line: str) -> None:
    answer = read_answer(line, question())
    is_clear = line.strip().lower() in {"y", "yes", "s", "session", "a", "always"}
    assert (answer is not None and answer.is_allowed) == is_clear


def test_a_question_names_the_rule_that_always_would_add() -> None:
    assert "shell(make *)" in render_question(question(), Brush(120))


def test_a_request_shows_what_would_change() -> None:
    shown = render_request(question("edit", old_string="a = 1\nb = 2", new_string="a = 1\nb = 3"), Brush())
    assert "-b = 2" in shown
    assert "+b = 3" in shown
    assert "it runs a command" in shown
    assert "+hello" in render_request(question("write", content="hello"), Brush())


def test_whoever_asks_waits_for_the_line_that_answers() -> None:
    async def story() -> None:
        asking = Asking()
        told: list[bool] = []
        asking.on_change = lambda: told.append(asking.question is not None)
        waiting = asyncio.create_task(asking.ask(question()))
        await asyncio.sleep(0)
        assert asking.hear("")
        assert asking.question is not None, "an empty line answers nothing"
        assert asking.hear("no, use tox")
        assert await waiting == Answer(False, words="no, use tox")
        assert not asking.hear("y"), "nothing is asked any more"
        assert told == [True, False]

    asyncio.run(story())


def test_a_question_that_is_given_up_is_closed() -> None:
    async def story() -> None:
        asking = Asking()
        waiting = asyncio.create_task(asking.ask(question()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert asking.question is None

    asyncio.run(story())
