"""Hooks: Claude Code's shapes in and out, real commands, and nothing left of them."""

from __future__ import annotations

import asyncio
import json
import os
import select
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.agent.hooks.config import (
    MAX_HOOK_TEXT_CHARS,
    Hook,
    HookEvent,
    HookResult,
    find_hooks,
    merge_hook_results,
    parse_hook_result,
    parse_hooks,
)
from sevenfold.agent.hooks.runner import (
    HOOK_SPILL_PREFIX,
    MAX_HOOK_OUTPUT_BYTES,
    HookContext,
    SessionHooks,
    execute_hook_command,
)
from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.permissions.rules import PermissionRules
from sevenfold.agent.tools.executor import ToolBatch, ToolExecutor
from sevenfold.core.errors import WireError
from sevenfold.core.events import HookFailed
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.settings.sections import HookSettings
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.instructions import InstructionPaths
from sevenfold.store.project.trust import TrustStore
from tests.agent.workshop import Noted, Plain

EDIT = ToolUse(ToolUseId("t1"), "edit", freeze_object({"file_path": "/a.py", "old_string": "a"}))
LOOK = ToolUse(ToolUseId("t1"), "look", freeze_object({"n": 1}))


def special(**fields: object) -> str:
    return json.dumps({"hookSpecificOutput": fields})


def hooks(folder: Path, *given: Hook, noted: Noted | None = None) -> SessionHooks:
    place = HookContext(
        session="s1",
        root=folder,
        cwd=folder,
        transcript=str(folder / "s1.jsonl"),
        environ={"PATH": os.environ["PATH"]},
    )
    return SessionHooks(given, place, noted or Noted())


def echoing(event: str, answer: str, **more: object) -> Hook:
    """A hook that answers this, whatever it is asked."""
    return Hook(event=event, command=f"cat >/dev/null; printf '%s' '{answer}'", **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("event", "code", "out", "err", "heard"),
    [
        ("PreToolUse", 2, "", "no such luck", HookResult(blocked="no such luck")),
        ("UserPromptSubmit", 0, "remember the tests", "", HookResult(context=("remember the tests",))),
        ("PostToolUse", 0, "only said", "", HookResult()),
        ("PreToolUse", 0, special(permissionDecision="deny", permissionDecisionReason="never"), "",
         HookResult(decision="deny", reason="never")),
        ("PreToolUse", 0, '{"decision": "approve"}', "", HookResult(decision="allow")),
        ("PreToolUse", 0, special(permissionDecision="allow", updatedInput={"n": 2}), "",
         HookResult(decision="allow", updated_input=freeze_object({"n": 2}))),
        ("PostToolUse", 0, special(updatedToolOutput="short", additionalContext="by the way"), "",
         HookResult(context=("by the way",), updated_output="short")),
        ("Stop", 0, '{"decision": "block", "reason": "the tests fail"}', "",
         HookResult(blocked="the tests fail")),
        ("Stop", 0, '{"continue": false, "stopReason": "enough", "systemMessage": "look"}', "",
         HookResult(notices=("look",), stop_reason="enough")),
    ],
)  # fmt: skip
def test_an_answer_says_what_claude_code_would_hear(
    event: str, code: int, out: str, err: str, heard: HookResult
) -> None:
    assert parse_hook_result(event, code, out, err) == heard  # pyright: ignore[reportArgumentType]


def test_an_answer_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(WireError):
        parse_hook_result("PreToolUse", 0, special(permissionDecision="perhaps"), "")
    with pytest.raises(WireError):
        parse_hook_result("PreToolUse", 0, "{broken", "")


LONG = "x" * MAX_HOOK_TEXT_CHARS + "y" * 5
LONG_ANSWERS: dict[str, tuple[HookEvent, int, str, str]] = {
    "context": ("SessionStart", 0, LONG, ""),
    "initial_messages": (
        "SessionStart",
        0,
        f'{{"hookSpecificOutput": {{"initialUserMessage": "{LONG}"}}}}',
        "",
    ),
    "blocked": ("Stop", 2, "", LONG),
    "stop_reason": ("Stop", 0, f'{{"continue": false, "stopReason": "{LONG}"}}', ""),
    "notices": ("Stop", 0, f'{{"systemMessage": "{LONG}"}}', ""),
    "updated_output": ("PostToolUse", 0, f'{{"hookSpecificOutput": {{"updatedToolOutput": "{LONG}"}}}}', ""),
    "reason": ("PreToolUse", 0, f'{{"decision": "block", "reason": "{LONG}"}}', ""),
}


@pytest.mark.parametrize("part", LONG_ANSWERS)
def test_any_long_text_of_an_answer_is_made_shorter(part: str) -> None:
    heard = parse_hook_result(*LONG_ANSWERS[part])
    assert heard.is_long
    short = heard.shortened(lambda text: text[:MAX_HOOK_TEXT_CHARS])
    assert not short.is_long
    assert getattr(short, part) != getattr(heard, part)


@pytest.mark.parametrize("kept", ["in a file", "nowhere", "with a full disk"])
def test_of_a_long_text_the_beginning_is_shown_and_where_the_rest_is(tmp_path: Path, kept: str) -> None:
    (tmp_path / "file").touch()
    folder = {"in a file": tmp_path, "nowhere": None, "with a full disk": tmp_path / "file"}[kept]
    noted = Noted()
    place = HookContext(
        session="s", root=tmp_path, cwd=tmp_path, environ={"PATH": "/usr/bin:/bin"}, folder=folder
    )
    said = f"head -c {MAX_HOOK_TEXT_CHARS} /dev/zero | tr '\\0' x; echo yyyyy"
    [text] = asyncio.run(
        SessionHooks([Hook(event="SessionStart", command=said)], place, noted).ask("SessionStart")
    ).context
    assert text.startswith("x" * MAX_HOOK_TEXT_CHARS)
    assert "yyyyy" not in text
    assert len(noted.of("HookFailed")) == (kept == "with a full disk")
    if kept == "in a file":
        [spilled] = (tmp_path / HOOK_SPILL_PREFIX).iterdir()
        assert str(spilled) in text
        assert spilled.read_text() == LONG


def test_of_several_hooks_the_strictest_counts() -> None:
    heard = merge_hook_results(
        [HookResult(decision="allow"), HookResult(decision="deny", reason="no"), HookResult(decision="ask")]
    )
    assert (heard.decision, heard.reason) == ("deny", "no")


@pytest.mark.parametrize(
    ("matcher", "tool", "does"),
    [
        ("", "edit", True),
        ("*", "edit", True),
        ("Edit|Write", "edit", True),
        ("edit", "edit", True),
        ("Bash", "shell", True),
        ("Bash", "edit", False),
        ("mcp__.*", "mcp__github__search", True),
        ("Edi", "edit", False),
    ],
)
def test_a_matcher_knows_our_names_and_claude_codes(matcher: str, tool: str, does: bool) -> None:
    assert Hook(event="PreToolUse", command="true", matcher=matcher).matches(tool) is does


def test_a_hook_is_told_what_claude_code_would_tell_it(tmp_path: Path) -> None:
    hook = Hook(
        event="PreToolUse",
        command='cat > told.json; printf "%s" "$CLAUDE_PROJECT_DIR" > dir',
        dialect="claude",
    )
    asyncio.run(hooks(tmp_path, hook).ask_before(EDIT))
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {
        "session_id": "s1",
        "transcript_path": str(tmp_path / "s1.jsonl"),
        "cwd": str(tmp_path),
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        "tool_name": "Edit",
        "tool_input": {"file_path": "/a.py", "old_string": "a"},
        "tool_use_id": "t1",
    }
    assert (tmp_path / "dir").read_text() == str(tmp_path)


def test_a_hook_that_fails_is_told_and_changes_nothing(tmp_path: Path) -> None:
    noted = Noted()
    broken = Hook(event="PreToolUse", command="echo why >&2; exit 3")
    assert asyncio.run(hooks(tmp_path, broken, noted=noted).ask_before(LOOK)) == HookResult()
    assert "code 3: why" in str(noted.of("HookFailed"))


def test_a_hook_that_asks_for_what_is_not_to_be_had_is_told_and_the_rest_counts(tmp_path: Path) -> None:
    noted, asks = Noted(), special(sessionTitle="Friday", reloadSkills=True, additionalContext="be brief")
    heard = asyncio.run(hooks(tmp_path, echoing("SessionStart", asks), noted=noted).ask("SessionStart"))
    assert heard.context == ("be brief",)
    (event,) = noted.of("HookFailed")
    assert isinstance(event, HookFailed)
    assert "sessionTitle, reloadSkills" in event.reason


def test_a_hook_that_is_late_is_killed_with_all_it_started(tmp_path: Path) -> None:
    noted = Noted()
    late = Hook(event="PreToolUse", command="sleep 300 & echo $! > child; wait", limit=timedelta(seconds=0.3))
    asyncio.run(hooks(tmp_path, late, noted=noted).ask_before(LOOK))
    assert "took over 0.3 s" in str(noted.of("HookFailed"))
    assert ends(int((tmp_path / "child").read_text()))


def test_a_hook_is_killed_when_whoever_asked_is_cancelled(tmp_path: Path) -> None:
    async def tell() -> None:
        os.mkfifo(tmp_path / "ready")
        command = "sleep 300 & echo $! > ready; wait"
        asking = asyncio.create_task(
            hooks(tmp_path, Hook(event="PreToolUse", command=command)).ask_before(LOOK)
        )
        child = await asyncio.to_thread((tmp_path / "ready").read_text)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert ends(int(child))

    asyncio.run(tell())


def ends(pid: int) -> bool:
    """Whether a process ends, within seconds; a killed one needs a moment."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(10_000))
    finally:
        os.close(fd)


def test_output_without_end_is_read_and_dropped(tmp_path: Path) -> None:
    command = f"head -c {MAX_HOOK_OUTPUT_BYTES + 9} /dev/zero | tr '\\0' x"
    ended = asyncio.run(
        execute_hook_command(
            command, b"", cwd=tmp_path, environ=dict(os.environ), limit=timedelta(seconds=30)
        )
    )
    assert ended.code == 0
    assert len(ended.out.partition("\n")[0]) == MAX_HOOK_OUTPUT_BYTES
    assert "the rest was dropped" in ended.out


def test_a_child_that_holds_the_pipes_open_holds_up_nobody(tmp_path: Path) -> None:
    command = "sleep 30 & echo $! > child; printf done"
    ended = asyncio.run(
        execute_hook_command(
            command, b"", cwd=tmp_path, environ=dict(os.environ), limit=timedelta(seconds=20)
        )
    )
    assert (ended.code, ended.out) == (0, "done")
    os.kill(int((tmp_path / "child").read_text()), 9)


def toolbox(folder: Path, given: Sequence[Hook], noted: Noted | None = None) -> ToolExecutor:
    place = ToolContext(root=folder, cwd=folder, emit=noted or Noted())
    guard = Guard(mode="ask", rules=PermissionRules(), root=folder)
    return ToolExecutor([Plain(), Plain(name="run", kind="run")], place, guard, hooks(folder, *given))


def test_a_hook_denies_a_call_and_the_model_hears_why(tmp_path: Path) -> None:
    deny = echoing("PreToolUse", special(permissionDecision="deny", permissionDecisionReason="on Sundays"))
    results = asyncio.run(toolbox(tmp_path, [deny]).run([LOOK]))
    assert "on Sundays" in str(results[0].content)


def test_a_hook_allows_what_would_be_asked_for(tmp_path: Path) -> None:
    call = ToolUse(ToolUseId("t1"), "run", freeze_object({"command": "make", "n": 1}))
    assert asyncio.run(toolbox(tmp_path, []).run([call]))[0].is_error
    allow = echoing("PreToolUse", special(permissionDecision="allow"))
    assert asyncio.run(toolbox(tmp_path, [allow]).run([call]))[0].content == "run 1"


def test_a_hook_changes_the_input_and_the_output(tmp_path: Path) -> None:
    before = echoing("PreToolUse", special(updatedInput={"n": 7}))
    results = asyncio.run(toolbox(tmp_path, [before]).run([LOOK]))
    assert results[0].content == "look 7"
    after = echoing("PostToolUse", special(updatedToolOutput="brief", additionalContext="see also"))
    answers = ToolBatch(uses=(LOOK,))
    asyncio.run(toolbox(tmp_path, [after]).run([LOOK], answers=answers))
    assert answers.results()[0].content == "brief"
    assert answers.context == ["PostToolUse hook additional context: see also"]


def test_a_file_with_mistakes_keeps_its_good_hooks() -> None:
    config = {
        "hooks": {
            "PreToolUse": [
                {"matcher": "(", "hooks": [{"type": "command", "command": "a"}]},
                {
                    "hooks": [
                        {"type": "prompt", "prompt": "b"},
                        {"type": "command", "command": "c", "timeout": 5},
                    ]
                },
            ],
            "Sometimes": [],
        }
    }
    found = parse_hooks(freeze_object(config), source="f", dialect="own")
    assert [(hook.command, hook.limit.total_seconds()) for hook in found.hooks] == [("c", 5)]
    assert len(found.problems) == 3


def write_hooks(path: Path, command: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}
    path.write_text(json.dumps(config))


async def yes(_question: str) -> bool:
    return True


def test_hooks_of_a_repository_run_once_a_person_has_agreed_and_until_they_change(tmp_path: Path) -> None:
    home, root = tmp_path / ".sevenfold", tmp_path / "project"
    write_hooks(home / "hooks.json", "mine")
    write_hooks(root / ".sevenfold" / "hooks.json", "theirs")
    write_hooks(root / ".claude" / "settings.json", "theirs too")
    write_hooks(tmp_path / ".claude" / "settings.json", "for another agent")
    folders, noted = InstructionPaths(home=home, user_home=tmp_path, root=root), Noted()
    with Folder.open(tmp_path / "control", create=True) as control:
        trust = TrustStore(control)

        def commands(**more: object) -> list[str]:
            found = find_hooks(HookSettings(), folders, trust, emit=noted, **more)  # pyright: ignore[reportArgumentType]
            return [hook.command for hook in asyncio.run(found)]

        assert commands() == ["mine"]
        assert len(noted.of("HooksIgnored")) == 2
        assert commands(confirm=yes) == ["mine", "theirs", "theirs too"]
        assert commands() == ["mine", "theirs", "theirs too"]
        write_hooks(root / ".sevenfold" / "hooks.json", "changed")
        assert commands() == ["mine", "theirs too"]


def test_hooks_can_be_switched_off_and_the_users_other_agent_joined(tmp_path: Path) -> None:
    write_hooks(tmp_path / ".claude" / "settings.json", "for another agent")
    folders = InstructionPaths(home=tmp_path / ".sevenfold", user_home=tmp_path)
    joined = asyncio.run(find_hooks(HookSettings(claude_user_file=True), folders))
    assert [(hook.command, hook.dialect) for hook in joined] == [("for another agent", "claude")]
    assert asyncio.run(find_hooks(HookSettings(enabled=False, claude_user_file=True), folders)) == ()
