"""A menu is answered with one key, and what was meant as a text stays a text."""

from __future__ import annotations

import asyncio

import pytest

from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRule
from sevenfold.agent.tool import AccessRequest
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu, ChoicePrompt, FilterMenu
from sevenfold.agent.tui.open_questions import TYPING_PAUSE_SECONDS, OpenQuestions
from sevenfold.agent.tui.permission_prompt import READ_ONLY_RESPONSE, PermissionPrompt
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import ToolUse, ToolUseId

QUESTION = PermissionRequest(
    use=ToolUse(ToolUseId("t"), "shell", EMPTY_OBJECT),
    need=AccessRequest(kind="run", command="git log -5", said="git log -5"),
    reason="it runs a command",
    rule=PermissionRule("shell", "git log -5"),
    wider_rule=PermissionRule("shell", "git log *"),
    may_accept_edits=True,
)


class Paper:
    """A surface that keeps what happens on it."""

    is_typed = True
    keys_pressed = 0

    def __init__(self, pause: float = 60.0) -> None:
        self.pause, self.done = pause, list[str]()

    def renderer(self) -> TextRenderer:
        return TextRenderer(100)

    def put(self, text: str) -> None:
        self.done.append(text)

    def refresh(self) -> None:
        """Nothing is drawn."""

    def stash_input(self) -> None:
        self.done.append("stash")

    def restore_input(self) -> None:
        self.done.append("restore")

    def seconds_since_key(self) -> float:
        return self.pause


def menu(rows: int = 3) -> ChoiceMenu:
    return ChoiceMenu(
        title="which?", choices=[Choice(label=f"row {number}") for number in range(1, rows + 1)]
    )


def test_arrows_go_round_and_enter_chooses() -> None:
    asked = menu()
    for key in ("up", "up", "down"):
        asked.press(key)
    assert "› 3 row 3" in asked.render(TextRenderer())
    asked.press("enter")
    assert asked.chosen == 2


def test_a_long_menu_shows_the_rows_around_the_selected_one_and_numbers_mean_those() -> None:
    asked = menu(40)
    asked.selected = 20
    shown = asked.render(TextRenderer(40))
    assert len(shown.split("\n")) == 12
    assert "› 5 row 21" in shown
    asked.type("1")
    assert asked.chosen == 16


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_no_row_is_wider_than_the_terminal(columns: int) -> None:
    wide = ChoiceMenu(title="", choices=[Choice(label="a word " * 60, remark="a remark " * 30)])
    assert all(len(line) <= columns for line in wide.render(TextRenderer(columns)).split("\n"))


async def ask(*keys: str, pause: float = 60.0) -> tuple[PermissionResponse | None, str, OpenQuestions]:
    """Press these keys at a question; its answer if it has one, and what went into the input."""
    asking, paper, typed = PermissionPrompt(), Paper(pause), ""
    questions = OpenQuestions(asking, paper, lambda: None)
    waiting = asyncio.create_task(asking.ask(QUESTION))
    await asyncio.sleep(0)
    for key in keys:
        if key in ("up", "down", "enter", "tab"):
            questions.press(key)
        elif typed or questions.menu is None:
            typed += key
        else:
            typed += questions.type(key) or ""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if waiting.done():
        return await waiting, typed, questions
    waiting.cancel()
    return None, typed, questions


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (("y",), PermissionResponse(True)),
        (("n",), PermissionResponse(False)),
        (("2",), PermissionResponse(True, "edits")),
        (("5",), PermissionResponse(True, "pattern")),
        (("a", "enter"), PermissionResponse(True, "always")),
        (("s", "enter"), PermissionResponse(True, "session")),
        (("p", "enter"), PermissionResponse(True, "pattern")),
        (("down", "enter"), PermissionResponse(True, "edits")),
        (("r", "enter"), READ_ONLY_RESPONSE),
        (("up", "up", "enter"), PermissionResponse(False)),
    ],
)
def test_one_key_answers_or_a_letter_and_enter(keys: tuple[str, ...], answer: PermissionResponse) -> None:
    assert asyncio.run(ask(*keys))[0] == answer


@pytest.mark.parametrize("text", ["stop", "explain it", "always use tox", "please wait", "use tox"])
def test_what_begins_like_a_choice_and_goes_on_is_a_text(text: str) -> None:
    answer, typed, questions = asyncio.run(ask(*text))
    assert (answer, typed) == (None, text)
    assert questions.answer(text) is False, "the question of this test is over"


def test_tab_has_any_text_typed_and_an_empty_line_goes_back() -> None:
    async def story() -> None:
        asking, paper = PermissionPrompt(), Paper()
        questions = OpenQuestions(asking, paper, lambda: None)
        waiting = asyncio.create_task(asking.ask(QUESTION))
        await asyncio.sleep(0)
        questions.press("tab")
        assert questions.menu is None
        assert "say why" in questions.render(paper.renderer())
        assert questions.answer("")
        assert questions.menu is not None
        questions.press("tab")
        assert questions.answer("you forgot the tests")
        assert await waiting == PermissionResponse(False, words="you forgot the tests")
        assert paper.done[1:] == ["stash", "restore"]

    asyncio.run(story())


def test_keys_of_a_person_who_is_typing_are_text_until_a_pause() -> None:
    answer, typed, questions = asyncio.run(ask("y", "e", "s", pause=TYPING_PAUSE_SECONDS / 2))
    assert (answer, typed) == (None, "yes")
    assert not questions.answer("yes"), "the line is said to the agent"


def test_the_preview_says_where_a_rule_is_kept_and_what_it_covers() -> None:
    async def story() -> str:
        asking, paper = PermissionPrompt(), Paper()
        questions = OpenQuestions(asking, paper, lambda: None)
        waiting = asyncio.create_task(asking.ask(QUESTION))
        await asyncio.sleep(0)
        questions.type("p")
        shown = questions.render(TextRenderer(160))
        waiting.cancel()
        return shown

    shown = asyncio.run(story())
    assert "always: shell(git log *)" in shown
    assert "kept in .sevenfold/settings.local.toml, which git does not list" in shown
    assert "still asks for git log | sh" in shown


def test_the_selected_row_is_shown_whole_where_its_line_is_cut() -> None:
    prices = "$4 in, $20 out, $0.2 cached  1,000k tokens"
    rows = [Choice(label=f"claude-opus-{number}  {prices}") for number in (5, 6)]
    for menu in (ChoiceMenu(title="models", choices=rows), FilterMenu(title="models", choices=rows)):
        narrow, wide = menu.render(TextRenderer(40)), menu.render(TextRenderer(100))
        assert "1,000k tokens" in " ".join(narrow.split())
        assert "claude-opus-6  $4 in, $20 out" in narrow
        assert wide.count("claude-opus-5") == 1


def test_a_line_answers_a_menu_where_only_lines_are_read() -> None:
    async def story(line: str) -> int | None:
        prompt = ChoicePrompt()
        waiting = asyncio.create_task(prompt.ask(menu()))
        await asyncio.sleep(0)
        assert prompt.answer(line)
        return await waiting

    assert asyncio.run(story("2")) == 1
    assert asyncio.run(story("9")) is None
    assert asyncio.run(story("")) is None


def test_a_long_text_that_was_pasted_leaves_the_menu_on_the_screen() -> None:
    pasted = "\n".join(f"row {number}" for number in range(500))
    menu = FilterMenu(title="typed", choices=[Choice(label=" ".join(pasted.split()), remark=pasted)])
    shown = menu.render(TextRenderer(40)).split("\n")
    assert shown[0] == "typed"
    assert len(shown) < 20
    assert shown.count("    …") == 2


def test_what_is_agreed_to_is_read_whole_in_a_narrow_terminal() -> None:
    label = "yes, in this session, for exactly this command"
    menu = ChoiceMenu(title="", choices=[Choice(label="yes"), Choice(label=label, letter="s")], wraps=True)
    shown = menu.render(TextRenderer(40)).split("\n")
    assert " ".join(" ".join(shown[1:3]).split()) == f"2 s {label}"
