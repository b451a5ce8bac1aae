"""A chat: what is typed becomes a turn, a command or an answer, and nothing that is typed is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.agent.tool import Tool
from sevenfold.agent.tui.cost_text import CacheState
from sevenfold.agent.tui.permission_prompt import PermissionPrompt
from sevenfold.agent.tui.session_list import PastUsage, SessionCard
from sevenfold.core.errors import Overloaded, SignInRefused
from sevenfold.core.messages import Text
from sevenfold.core.usage import Usage
from sevenfold.providers.scripted import ScriptedProvider, ScriptedStep, make_response
from sevenfold.session.cache.monitor import UsageLedger
from sevenfold.store.transcript.transcript import SessionEntry
from tests.agent.tui.chat_setup import ChatSetup
from tests.agent.workshop import Plain, Shop

LONG = 1_000_000
"""Turns of the loop that a tool takes which is only ever interrupted."""

Play = Callable[[ChatSetup], Awaitable[None]]


def play(
    folder: Path,
    steps: Sequence[ScriptedStep],
    story: Play,
    tools: Sequence[Tool] | None = None,
    sessions: int = 1,
    prepare: Callable[[ChatSetup], None] | None = None,
) -> ScriptedProvider:
    """Run a story at a desk, then leave; the chat must end by itself."""

    async def tell(models: ScriptedProvider) -> None:
        asking = PermissionPrompt()
        shop = Shop(home=folder, provider=models, tools=tools or [Plain()])
        agents = [await shop.open(ask=asking.ask) for _ in range(sessions)]
        desk = ChatSetup(agent=agents[0], asking=asking, others=agents[1:])
        if prepare is not None:
            prepare(desk)
        async with asyncio.timeout(60):
            running = asyncio.create_task(desk.chat.run())
            await asyncio.sleep(0)
            await story(desk)
            desk.keys.leave()
            await running

    with ScriptedProvider(steps) as models:
        asyncio.run(tell(models))
    return models


def test_what_is_typed_is_answered(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Where is the cat?")
        await desk.keys.wait_for("On the mat.")
        assert "› Where is the cat?" in desk.keys.text

    models = play(tmp_path, [make_response("On the **mat**.".replace("**", ""))], story)
    assert len(models.requests) == 1


def test_what_is_typed_in_a_turn_is_heard_in_that_turn(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Go.")
        await desk.keys.wait_until(lambda: "look" in desk.chat.live(desk.keys.renderer()))
        desk.keys.enter("And be quick.")
        await desk.keys.wait_for("Quick.")
        assert "› And be quick." in desk.keys.text

    models = play(tmp_path, [make_response(calls={"look": {"waits": 2_000}}), make_response("Quick.")], story)
    last = [block.text for block in models.requests[-1].messages[-1].blocks if isinstance(block, Text)]
    assert any("And be quick." in text for text in last)


def test_a_question_is_answered_by_the_next_line(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.typed = "half a"
        desk.keys.enter("Build it.")
        await desk.keys.wait_for("(a question is asked)")
        assert "y yes" in desk.chat.question(desk.keys.renderer())
        desk.keys.enter("use ninja")
        await desk.keys.wait_for("Then not.")
        assert "(it is answered)" in desk.keys.text

    tool = Plain(name="shell", kind="run")
    models = play(
        tmp_path,
        [make_response(calls={"shell": {"command": "make"}}), make_response("Then not.")],
        story,
        [tool],
    )
    assert tool.log == []
    assert "use ninja" in str(models.requests[-1].messages[-1])


def test_a_yes_lets_the_tool_run(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Build it.")
        await desk.keys.wait_for("(a question is asked)")
        desk.keys.enter("y")
        await desk.keys.wait_for("Built.")

    tool = Plain(name="shell", kind="run")
    play(
        tmp_path,
        [make_response(calls={"shell": {"command": "make"}}), make_response("Built.")],
        story,
        [tool],
    )
    assert len(tool.log) == 2


def test_ctrl_c_interrupts_the_turn_and_the_chat_goes_on(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Go.")
        await desk.keys.wait_until(lambda: "look" in desk.chat.live(desk.keys.renderer()))
        desk.chat.interrupt(is_typed=True)
        await desk.keys.wait_for("interrupted; what was done stays done")
        desk.clock.pass_time(timedelta(seconds=3))
        desk.keys.enter("And now?")
        await desk.keys.wait_for("Here I am.")

    play(tmp_path, [make_response(calls={"look": {"waits": LONG}}), make_response("Here I am.")], story)


def test_a_ctrl_c_for_each_of_two_turns_does_not_leave(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        for number in (1, 2):
            desk.keys.enter("Go.")
            await desk.keys.wait_until(lambda: "look" in desk.chat.live(desk.keys.renderer()))
            desk.chat.interrupt(is_typed=True)
            await desk.keys.wait_until(lambda count=number: desk.keys.text.count("interrupted;") == count)
            await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        desk.keys.enter("And now?")
        await desk.keys.wait_for("Here I am.")

    calls = make_response(calls={"look": {"waits": LONG}})
    play(tmp_path, [calls, calls, make_response("Here I am.")], story)


@pytest.mark.parametrize(("seconds", "is_over"), [(1, True), (3, False)])
def test_ctrl_c_twice_leaves_only_within_two_seconds(tmp_path: Path, seconds: int, is_over: bool) -> None:
    desks: list[ChatSetup] = []

    async def story(desk: ChatSetup) -> None:
        desks.append(desk)
        desk.chat.interrupt(is_typed=False)
        assert "Ctrl-C again leaves" in desk.keys.text
        desk.clock.pass_time(timedelta(seconds=seconds))
        desk.chat.interrupt(is_typed=False)
        desk.keys.enter("/mode plan")
        if not is_over:
            await desk.keys.wait_for("the mode is plan")

    play(tmp_path, [], story)
    assert ("the mode is plan" in desks[0].keys.text) == (not is_over)


def test_ctrl_c_on_a_half_typed_line_takes_the_line(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.typed = "half a"
        desk.chat.interrupt(is_typed=True)
        assert desk.keys.typed == ""
        assert "Ctrl-C again" not in desk.keys.text

    play(tmp_path, [], story)


def test_leaving_in_a_turn_closes_the_session_whole(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Go.")
        await desk.keys.wait_until(lambda: "look" in desk.chat.live(desk.keys.renderer()))
        desk.keys.enter("/quit")
        await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        assert "interrupted" in str(desk.chat.agent.session.history[-1])

    play(tmp_path, [make_response(calls={"look": {"waits": LONG}})], story)


def test_a_failed_turn_is_told_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Go.")
        await desk.keys.wait_for("error: busy")
        await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        desk.keys.enter("Again.")
        await desk.keys.wait_for("Now.")

    play(tmp_path, [Overloaded("busy"), make_response("Now.")], story)


def test_what_is_posted_while_nobody_works_begins_a_turn(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.chat.agent.post("the build is done")
        await desk.keys.wait_for("Good to know.")

    play(tmp_path, [make_response("Good to know.")], story)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/help", "Ctrl-R"),
        ("/cost", "no model was asked yet"),
        ("/context", "the window of"),
        ("/memory", "- [A](a.md) — a hook"),
        ("/dream", "found nothing to do"),
        ("/agents", "agents"),
        ("/tasks", "nothing runs in the background"),
        ("/kill 7", "no task '7'"),
        ("/expand", "0 outputs are folded"),
        ("/mode plan", "the mode is plan"),
        ("/mode fast", "there is no mode 'fast'"),
        ("/model claude-haiku-4-5", "the model is claude-haiku-4-5"),
        ("/model gpt-none", "no table knows gpt-none"),
        ("/resume", "no session is kept"),
        ("/status", "claude-opus-5-5"),
        ("/why", "neither broken nor cut"),
        ("/layers", "no layer has done anything"),
        ("/recalled", "no memory was recalled"),
        ("/permissions", "mode ask"),
        ("/mcp", "no MCP server is in use"),
        ("/hooks", "no hooks are in use"),
        ("/skills", "there are no skills"),
        ("/verbose", "output is shown whole"),
        ("/export", "nothing was said yet"),
        ("/resume zz", "no sessions begin with 'zz'"),
        ("/compact", "error:"),
        ("/nonsense", "there is no command /nonsense"),
    ],
)
def test_every_command_says_something_true(tmp_path: Path, line: str, answer: str) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter(line)
        await desk.keys.wait_for(answer)

    play(tmp_path, [], story)


def test_before_the_first_words_the_context_is_empty_and_no_file_is_missed(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.is_written = False
        desk.keys.enter("/context")
        await desk.keys.wait_for("nothing was said yet")

    play(tmp_path, [], story)


def test_a_command_that_needs_peace_waits_for_the_end_of_the_turn(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Go.")
        await desk.keys.wait_until(lambda: "look" in desk.chat.live(desk.keys.renderer()))
        desk.keys.enter("/compact")
        await desk.keys.wait_for("/compact waits for the end of the turn")
        desk.chat.interrupt(is_typed=False)
        await desk.keys.wait_for("interrupted")

    play(tmp_path, [make_response(calls={"look": {"waits": LONG}})], story)


def test_what_a_session_cost_is_told_by_whose_calls(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Hello.")
        await desk.keys.wait_for("Hi.")
        await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        desk.keys.enter("/cost")
        await desk.keys.wait_for("saved  ")
        assert "conversation  $" in desk.keys.text
        assert "1 call, 0% of the prompt from the cache" in desk.keys.text
        assert "without Sevenfold  at least $" in desk.keys.text

    play(tmp_path, [make_response("Hi.")], story)


def test_a_new_session_leaves_the_old_one_to_be_resumed(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        first, second = desk.chat.agent, desk.others[0]
        desk.keys.enter("/clear")
        await desk.keys.wait_for(f"/resume {first.session.id[:12]} goes back")
        assert desk.chat.agent is second
        entry = SessionEntry(first.session.id, 9, datetime(2026, 11, 15, tzinfo=UTC))
        desk.sessions.append(SessionCard(entry=entry, title="Mend the parser", spent_usd=0.25))
        desk.keys.enter("/resume")
        await desk.keys.wait_until(lambda: desk.chat.menu is not None)
        assert "Mend the parser" in desk.chat.question(desk.keys.renderer())
        desk.chat.press("escape")

    play(tmp_path, [], story, sessions=2)


def test_the_status_line_names_model_and_mode(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        assert desk.chat.status_line(80) == "ask  $0.00  opus-5-5"

    play(tmp_path, [], story)


def test_the_status_line_counts_what_layers_are_billed_after_the_turn(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Hello.")
        await desk.keys.wait_for("Hi.")
        await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        desk.chat.agent.subagent_usage.add_usage(
            "extraction", "claude-opus-4-5", Usage(fresh=1_000_000), date(2026, 11, 15)
        )
        assert "$5.00" in desk.chat.status_line(80)
        desk.keys.enter("/cost")
        await desk.keys.wait_for(f"{'in all':19}$5.00")

    play(tmp_path, [make_response("Hi.")], story)


def test_mail_to_a_session_that_was_taken_up_later_is_heard(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        second = desk.others[0]
        desk.keys.enter("/clear")
        await desk.keys.wait_for("a new session")
        second.post("the build is done")
        await desk.keys.wait_for("Good to know.")
        assert "a message came in" in desk.keys.text

    play(tmp_path, [make_response("Good to know.")], story, sessions=2)


def test_a_failure_that_may_pass_shows_its_code_and_enter_tries_again(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Hello.")
        await desk.keys.wait_for("error 529 overloaded_error: busy")
        await desk.keys.wait_for("Enter tries again")
        await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        desk.keys.enter("")
        await desk.keys.wait_for("Now.")

    busy = Overloaded("busy", status=529, kind="overloaded_error")
    play(tmp_path, [busy, make_response("Now.")], story)


def test_a_refused_key_says_what_to_do(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Hello.")
        await desk.keys.wait_for("error 401: no such key; no key was sent")
        assert "Enter tries again" not in desk.keys.text

    play(tmp_path, [SignInRefused("no such key", status=401)], story)


def test_a_resumed_session_shows_its_end_and_all_that_it_cost(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Hello.")
        await desk.keys.wait_for("Hi.")
        await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        before = UsageLedger()
        before.add_usage("main", "claude-opus-4-5", Usage(fresh=1_000_000), date(2026, 11, 15))
        desk.past = PastUsage(spent=before.spent())
        desk.others.append(desk.chat.agent)
        await desk.chat.switch_session("the same")
        assert desk.keys.text.count("Hi.") == 2
        assert "$5.00" in desk.chat.status_line(80)
        assert [(one.who, one.calls) for one in desk.chat.spent] == [("main", 2)]

    play(tmp_path, [make_response("Hi.")], story)


def test_the_cache_goes_cold_on_the_screen_while_nobody_does_anything(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.chat.view.caches["claude-opus-5-5"] = CacheState(9_000, desk.clock.now(), timedelta(minutes=5))
        await desk.keys.wait_until(lambda: "cache warm 5 min" in desk.chat.status_line(100))
        desk.clock.pass_time(timedelta(minutes=6))
        # Nothing is typed: the terminal is told to draw again all the same.
        await desk.keys.wait_until(lambda: "cache cold: next prompt +$" in desk.chat.status_line(100))

    play(tmp_path, [], story)


def test_another_model_has_a_cache_of_its_own(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        view, later = desk.chat.view, timedelta(minutes=5)
        view.caches["claude-opus-5-5"] = CacheState(9_000, datetime.now(UTC), later)
        view.status = replace(view.status, context_tokens=9_000, limit_tokens=100_000)
        desk.keys.enter("/model claude-haiku-4-5")
        await desk.keys.wait_for("the model is claude-haiku-4-5")
        assert "cache" not in desk.chat.status_line(100), "it has nothing yet"
        desk.keys.enter("/model claude-opus-5-5")
        await desk.keys.wait_for("the model is claude-opus-5-5")
        assert "still has some of them in its cache" in " ".join(desk.keys.text.split())
        assert "cache warm" in desk.chat.status_line(100)

    play(tmp_path, [], story)


def test_shift_tab_goes_through_the_modes_and_never_to_bypass(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        seen: list[str] = []
        for _ in range(4):
            desk.chat.cycle_mode()
            seen.append(desk.chat.agent.mode)
        assert seen == ["accept-edits", "plan", "read-only", "ask"]

    play(tmp_path, [], story)


def test_text_after_a_hash_is_remembered(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("# it's pnpm here")
        await desk.keys.wait_for("/memory undo takes it back")
        assert desk.asked_memory == ["add '--text=it'\"'\"'s pnpm here'"]

    play(tmp_path, [], story)


def test_a_question_mark_shows_the_keys(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.chat.show_keys()
        assert "Shift-Tab" in desk.keys.text

    play(tmp_path, [], story)


@pytest.mark.parametrize("text", ["# Title\nand more", "!rm -rf x\nplease"])
def test_text_of_several_lines_is_said_whatever_it_begins_with(tmp_path: Path, text: str) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter(text)
        await desk.keys.wait_for("Read.")
        assert desk.asked_memory == []

    play(tmp_path, [make_response("Read.")], story)


def test_a_line_that_was_piped_in_is_said_whatever_it_begins_with(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.is_typed = False
        desk.keys.enter("#include <stdio.h>")
        await desk.keys.wait_for("Read.")
        assert desk.asked_memory == []

    play(tmp_path, [make_response("Read.")], story)
