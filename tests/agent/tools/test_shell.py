"""The shell tool: what runs, for how long, held by what, and what the model is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.permissions.rules import PermissionRules
from sevenfold.agent.sandbox import folders, job
from sevenfold.agent.sandbox import job as job_module
from sevenfold.agent.sandbox.command import CommandExit
from sevenfold.agent.sandbox.job import MAX_TASKS
from sevenfold.agent.sandbox.sandbox import Sandbox
from sevenfold.agent.tools.shell import (
    MAX_COMMAND_BYTES,
    STRICTEST_FIRST,
    TaskOutputTool,
    TaskStopTool,
    choose_profile,
)
from sevenfold.core.errors import InputError
from sevenfold.core.events import GuardedLeft, GuardedMoved, SandboxFailed
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode
from sevenfold.core.tool_kinds import SandboxProfile
from tests.agent.sandboxes import Bench, make_sandbox, text_of

HELD = make_sandbox("namespaces")
NOTHING = Sandbox(why_not="there is no such thing here")


def profile_of(bench: Bench, **given: object) -> SandboxProfile:
    return bench.shell.need(freeze_object({"command": "ls", **given}), bench.place).profile


def test_a_command_is_answered_with_what_it_printed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    output = asyncio.run(bench.run("echo out; echo err >&2; pwd"))
    assert text_of(output) == f"out\nerr\n{bench.place.root}"
    assert not output.is_error
    assert "".join(bench.printed).startswith("out\nerr\n")


def test_a_command_that_fails_says_so_and_what_held_it(tmp_path: Path) -> None:
    output = asyncio.run(Bench(tmp_path).run("echo no; exit 3"))
    assert output.is_error
    said = "no\n[exit code 3]\n[it ran in the sandbox: no network, writes only in "
    assert text_of(output).startswith(said)


def test_a_command_that_takes_too_long_is_ended_with_all_it_printed(tmp_path: Path) -> None:
    output = asyncio.run(Bench(tmp_path).run("echo before; sleep 300", timeout_seconds=1))
    assert output.is_error
    assert text_of(output) == "before\n[it was ended after 1 s]"


def test_a_command_sent_to_the_background_goes_on_as_a_task(tmp_path: Path) -> None:
    async def story() -> None:
        bench = Bench(tmp_path)
        assert not bench.shell.move_to_background(), "nothing runs"
        printed = asyncio.Event()
        given = freeze_object({"command": "echo before; while [ ! -e go ]; do :; done; echo after"})
        running = asyncio.create_task(bench.shell.run(given, bench.place, lambda _: printed.set()))
        await printed.wait()
        assert bench.shell.has_foreground
        assert bench.shell.move_to_background()
        output = await running
        assert text_of(output).startswith("before\n[the user sent it to the background as task-1;")
        assert not output.is_error
        assert not bench.shell.has_foreground
        (task,) = bench.tasks.running()
        (bench.place.root / "go").touch()
        await task.over.wait()
        assert task.job.output.text() == "before\nafter\n"
        assert task.state == "ended with exit code 0"

    asyncio.run(story())


def test_a_command_that_no_longer_fits_into_the_background_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[job.SandboxJob] = []
    close = job.SandboxJob.close

    async def note(self: job.SandboxJob) -> CommandExit:
        closed.append(self)
        return await close(self)

    async def story() -> None:
        bench = Bench(tmp_path)
        printed = asyncio.Event()
        given = freeze_object({"command": "echo before; while :; do :; done"})
        running = asyncio.create_task(bench.shell.run(given, bench.place, lambda _: printed.set()))
        await printed.wait()
        assert bench.shell.move_to_background()
        monkeypatch.setattr(job, "MAX_TASKS", 0)  # others were started first
        monkeypatch.setattr(job.SandboxJob, "close", note)
        with pytest.raises(InputError, match="which is the most"):
            await running
        assert len(closed) == 1
        assert not bench.shell.has_foreground

    asyncio.run(story())


def test_a_command_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "MAX_OUTPUT_FILE_BYTES", 3 * 1024 * 1024)
    monkeypatch.setattr(job, "MAX_OUTPUT_FILE_BYTES", 3 * 1024 * 1024)
    output = asyncio.run(Bench(tmp_path).run("yes"))
    text = text_of(output)
    assert text.endswith("[it was ended: it printed more than 3 MiB]")
    (kept,) = (tmp_path / "session" / "tool-results").iterdir()
    assert f"all of it is in {kept}" in text
    assert len(text) < 1024 * 1024 + 1_000


def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    asyncio.run(bench.run("exec >&- 2>&-; sleep 0.2; echo late > late"))
    assert (bench.place.root / "late").read_text(encoding="utf-8") == "late\n"


def test_processes_left_running_are_told(tmp_path: Path) -> None:
    text = text_of(asyncio.run(Bench(tmp_path).run("sleep 300 & echo started")))
    assert text.startswith("started\n[1 of its processes still ran and were ended")


def test_a_cancelled_command_leaves_nothing_running(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def run() -> None:
        started = asyncio.Event()
        running = asyncio.create_task(
            bench.run("echo up; sleep 0.4; touch late", on_progress=lambda _: started.set())
        )
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await bench.run("sleep 0.6; ls")).content == ""

    asyncio.run(run())


def test_what_a_command_makes_and_may_not_is_moved_aside(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    text = text_of(asyncio.run(bench.run("mkdir .git && echo made")))
    aside = str(bench.place.root / ".git.held-back-1")
    assert bench.events == [GuardedMoved(str(bench.place.root / ".git"), aside)]
    assert text.startswith("made\n[")
    assert aside in text


def test_a_link_that_a_command_puts_something_else_in_place_of_is_moved_aside(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (bench.place.root / "real").mkdir()
    link = bench.place.root / ".vscode"
    link.symlink_to("real")
    asyncio.run(bench.run("rm .vscode && mkdir .vscode && echo {} > .vscode/tasks.json"))
    assert bench.events == [GuardedMoved(str(link), f"{link}.held-back-1")]
    assert not link.exists()


def test_what_a_background_command_made_is_moved_aside_before_an_open_one_would_obey_it(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, mode="bypass")

    async def run() -> str:
        await bench.run("mkdir .husky; touch made; sleep 300", background=True, access="write")
        await bench.run("until test -e made; do :; done", access="read")
        try:
            return text_of(await bench.run("ls -d .husky*"))
        finally:
            await bench.tasks.close()

    assert asyncio.run(run()) == ".husky.held-back-1"
    husky = str(bench.place.root / ".husky")
    assert bench.events == [GuardedMoved(husky, f"{husky}.held-back-1")]


def test_what_cannot_be_moved_aside_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "not permitted")

    bench = Bench(tmp_path)
    monkeypatch.setattr(folders.os, "rename", refuse)
    text = text_of(asyncio.run(bench.run("mkdir .husky")))
    husky = str(bench.place.root / ".husky")
    assert bench.events == [GuardedLeft(husky, "not permitted")]
    assert text == f"[{husky} may not be made here, and could not be moved: not permitted]"


def test_settings_that_the_next_agent_would_obey_cannot_even_be_made(tmp_path: Path) -> None:
    """Moved aside at its end, they would count for as long as the command runs."""
    bench = Bench(tmp_path)
    line = "mkdir -p .sevenfold; echo > .sevenfold/settings.local.toml || mv .sevenfold x || rmdir .sevenfold"
    assert asyncio.run(bench.run(line)).is_error
    assert list((bench.place.root / ".sevenfold").iterdir()) == []
    assert bench.events == []


@pytest.mark.parametrize(
    ("mode", "profile"),
    [
        ("plan", "read-only"),
        ("read-only", "read-only"),
        ("ask", "workspace"),
        ("accept-edits", "workspace"),
        ("bypass", "open"),
    ],
)
def test_a_mode_says_what_holds_a_command_that_does_not(
    tmp_path: Path, mode: PermissionMode, profile: SandboxProfile
) -> None:
    assert profile_of(Bench(tmp_path, mode)) == profile


@pytest.mark.parametrize("mode", PERMISSION_MODES)
@pytest.mark.parametrize(
    ("access", "profile"), [("read", "read-only"), ("write", "workspace"), ("open", "open")]
)
def test_a_command_may_say_what_it_needs(
    tmp_path: Path, mode: PermissionMode, access: str, profile: SandboxProfile
) -> None:
    assert profile_of(Bench(tmp_path, mode), access=access) == profile


@pytest.mark.parametrize("sandbox", [HELD, NOTHING])
@pytest.mark.parametrize("most", STRICTEST_FIRST)
@pytest.mark.parametrize("mode", PERMISSION_MODES)
def test_no_command_gets_more_than_its_place_allows(
    sandbox: Sandbox, most: SandboxProfile, mode: PermissionMode
) -> None:
    wishes: Sequence[SandboxProfile | None] = (None, *STRICTEST_FIRST)
    for wanted in wishes:
        chosen = choose_profile(wanted, mode, most, sandbox)
        assert STRICTEST_FIRST.index(chosen) <= STRICTEST_FIRST.index(most)


@pytest.mark.parametrize("mode", PERMISSION_MODES)
@pytest.mark.parametrize("access", ["", "read", "write", "open"])
def test_without_asking_nothing_runs_that_is_not_held(
    tmp_path: Path, mode: PermissionMode, access: str
) -> None:
    """Whatever is said and whatever there is: only bypass runs an open command without asking."""
    for sandbox in (HELD, NOTHING):
        bench = Bench(tmp_path, mode, sandbox)
        given = freeze_object({"command": "ls"} | ({"access": access} if access else {}))
        need = bench.shell.need(given, bench.place)
        verdict = Guard(mode=mode, rules=PermissionRules(), root=bench.place.root).decide(
            ToolUse(ToolUseId("x"), "shell", given), need
        )
        if verdict.decision == "allow" and need.profile == "open":
            assert mode == "bypass"
        if mode in ("plan", "read-only") and need.profile != "read-only":
            assert verdict.decision == "deny"


@pytest.mark.parametrize(
    ("mode", "access"), [("plan", ""), ("read-only", ""), ("ask", "write"), ("bypass", "read")]
)
def test_where_nothing_holds_what_must_be_held_is_refused(
    tmp_path: Path, mode: PermissionMode, access: str
) -> None:
    bench = Bench(tmp_path, mode, NOTHING)
    given = {"command": "touch ran"} | ({"access": access} if access else {})
    output = asyncio.run(bench.shell.run(freeze_object(given), bench.place, bench.printed.append))
    assert output.is_error
    assert "there is no such thing here" in text_of(output)
    assert not (bench.place.root / "ran").exists()
    assert [type(event) for event in bench.events] == [SandboxFailed]


@pytest.mark.parametrize("mode", ["ask", "accept-edits"])
def test_where_nothing_holds_a_mode_that_asks_can_run_a_command_open(
    tmp_path: Path, mode: PermissionMode
) -> None:
    bench = Bench(tmp_path, mode, NOTHING)
    assert profile_of(bench) == "open"
    assert text_of(asyncio.run(bench.run("echo ran"))) == "ran"


def test_a_fork_only_reads_whatever_it_asks_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "bypass")
    bench.place = replace(bench.place, confined_to="read-only")
    assert asyncio.run(bench.run("touch ran", access="open")).is_error
    assert not (bench.place.root / "ran").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "command is missing"),
        ({"command": " "}, "expected a command line"),
        ({"command": "a\0b"}, "without NUL"),
        ({"command": "x" * (MAX_COMMAND_BYTES + 1)}, "put a longer one into a file"),
        ({"command": "ls", "access": "all"}, "expected one of"),
        ({"command": "ls", "timeout_seconds": 601}, "from 1 to 600"),
        ({"command": "ls", "background": "maybe"}, "expected true or false"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(tmp_path: Path, given: dict[str, object], told: str) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(InputError, match=told):
        bench.shell.need(freeze_object(given), bench.place)


def test_a_person_is_shown_the_description_or_the_command(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    need = bench.shell.need(freeze_object({"command": "ls -l", "description": "List files"}), bench.place)
    assert (need.kind, need.command, need.said) == ("run", "ls -l", "List files")
    assert bench.shell.need(freeze_object({"command": "ls -l"}), bench.place).said == "ls -l"


def test_a_task_runs_on_is_read_piece_by_piece_and_its_end_is_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def run() -> list[str]:
        reading = TaskOutputTool(bench.tasks)
        started = await bench.run("echo one; cat go; echo two; exit 4", background=True, description="Count")
        assert text_of(started).startswith("task-1 runs in the background")
        first = await bench.call(reading, task="task-1", wait_seconds=60)
        second = await bench.call(reading, task="task-1")
        return [text_of(first), text_of(second), text_of(await bench.call(reading))]

    first, second, listed = asyncio.run(run())
    assert first.startswith("task-1 (Count): ended with exit code 4\none\n")
    assert "two\n[exit code 4]" in first
    assert second.startswith("task-1 (Count): ended with exit code 4\n[exit code 4]")
    assert listed == "task-1 (Count): ended with exit code 4"
    assert bench.ended == ["task-1 (Count): ended with exit code 4"]


def test_a_task_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def run() -> str:
        await bench.run("sleep 300 & sleep 300", background=True)
        assert [task.state for task in bench.tasks.running()] == ["running"]
        assert [extra.text for extra in TaskOutputTool(bench.tasks).extras()] == [bench.tasks.all()[0].line]
        told = text_of(await bench.call(TaskStopTool(bench.tasks), task="task-1"))
        assert bench.tasks.running() == ()
        return told

    assert asyncio.run(run()) == "task-1 (sleep 300 & sleep 300): stopped\n[it was stopped]"
    assert bench.ended == [], "whoever stopped it knows"
    assert bench.tasks.extras() == ()


def test_all_tasks_end_with_the_agent(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def run() -> list[str]:
        for _ in range(3):
            await bench.run("trap '' TERM; sleep 300", background=True)
        await bench.tasks.close()
        return [task.state for task in bench.tasks.all()]

    assert asyncio.run(run()) == ["stopped"] * 3


def test_a_task_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(InputError, match="no task 'task-9'; there are: none"):
        asyncio.run(bench.call(TaskOutputTool(bench.tasks), task="task-9"))


def test_a_loop_that_starts_tasks_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sevenfold.agent.sandbox.job.MAX_TASKS", 2)
    bench = Bench(tmp_path)

    async def run() -> None:
        for _ in range(2):
            await bench.run("sleep 300", background=True)
        with pytest.raises(InputError, match="2 tasks are running"):
            await bench.run("sleep 300", background=True)
        await bench.tasks.close()

    asyncio.run(run())
    assert MAX_TASKS > 2
