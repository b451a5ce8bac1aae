"""A command under its supervisor: whatever it starts ends with it, and it ends with whoever started it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sevenfold.agent.sandbox.command import SupervisedCommand
from sevenfold.agent.sandbox.sandbox import Sandbox
from sevenfold.core.tool_kinds import SandboxProfile
from tests.agent.sandboxes import make_sandbox, place_in, run_line

every = pytest.mark.parametrize("profile", ["read-only", "workspace", "open"])

LEAVING = [
    "{stay} &",
    "nohup {stay} > /dev/null 2>&1 & disown",
    "setsid -f {stay}",
    "(setsid {stay} &) & exit 0",
    "python3 -c 'import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    'os.execlp("sleep", "{name}", "300")\'',
    "trap '' TERM HUP; (trap '' TERM HUP; {stay}) & sleep 0.05",
    "exec >&- 2>&-; {stay} & exit 0",
]


def pids_of(name: str) -> list[int]:
    """Processes that are called so."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [int(path.parent.name)] if path.read_bytes().startswith(name.encode()) else []
    return found


def staying(template: str, folder: Path) -> tuple[str, str]:
    name = f"stay-{os.getpid()}-{folder.name}"
    return template.replace("{stay}", f"bash -c 'exec -a {name} sleep 300'").replace("{name}", name), name


@every
@pytest.mark.parametrize("template", LEAVING)
def test_nothing_that_a_command_started_stays(tmp_path: Path, profile: SandboxProfile, template: str) -> None:
    line, name = staying(template, tmp_path)
    asyncio.run(run_line(make_sandbox("namespaces"), profile, line, place_in(tmp_path)))
    assert pids_of(name) == []


@every
def test_a_command_ends_with_the_exit_code_of_the_shell(tmp_path: Path, profile: SandboxProfile) -> None:
    sandbox, place = make_sandbox("namespaces"), place_in(tmp_path)
    for line, code in (("exit 7", 7), ("kill -TERM $$", 143), ("true", 0), ("no-such-program", 127)):
        printed = asyncio.run(run_line(sandbox, profile, line, place))
        assert (printed.ended.code, printed.ended.failure) == (code, "")


@every
def test_closing_ends_what_still_runs(tmp_path: Path, profile: SandboxProfile) -> None:
    line, name = staying("echo up; trap '' TERM; {stay}", tmp_path)

    async def run() -> int:
        command = SupervisedCommand(
            make_sandbox("namespaces").build_launch_spec(profile, line, place_in(tmp_path))
        )
        assert await command.read() == b"up\n"
        return (await command.close()).code

    assert asyncio.run(run()) == 128 + signal.SIGKILL
    assert pids_of(name) == []


@every
def test_a_polite_end_lets_a_command_tidy_up(tmp_path: Path, profile: SandboxProfile) -> None:
    async def run() -> bytes:
        line = "trap 'echo tidy; exit 3' TERM; echo up; while :; do sleep 0.01; done"
        command = SupervisedCommand(
            make_sandbox("namespaces").build_launch_spec(profile, line, place_in(tmp_path))
        )
        assert await command.read() == b"up\n"
        command.ask_to_end()
        printed = b""
        while part := await command.read():
            printed += part
        assert (await command.wait()).code == 3
        await command.close()
        return printed

    assert b"tidy\n" in asyncio.run(run())


@pytest.mark.story
@every
def test_a_command_dies_with_an_agent_that_is_killed(tmp_path: Path, profile: SandboxProfile) -> None:
    line, name = staying("echo up; {stay}", tmp_path)
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from sevenfold.agent.sandbox.command import SupervisedCommand\n"
        "from tests.agent.sandboxes import make_sandbox, place_in\n"
        "async def run():\n"
        "    sandbox, place = make_sandbox('namespaces'), place_in(Path(sys.argv[2]))\n"
        f"    orders = sandbox.build_launch_spec({profile!r}, sys.argv[1], place)\n"
        "    command = SupervisedCommand(orders)\n"
        "    print((await command.read()).decode(), flush=True)\n"
        "    await command.wait()\n"
        "asyncio.run(run())"
    )
    agent = subprocess.Popen(
        [sys.executable, "-c", script, line, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        text=True,
    )
    assert agent.stdout
    assert agent.stdout.readline() == "up\n"
    agent.kill()
    agent.communicate()
    until = time.monotonic() + 20
    while pids_of(name) and time.monotonic() < until:
        threading.Event().wait(0.02)
    assert pids_of(name) == []


def test_a_command_sees_no_file_of_ours_and_an_empty_input(tmp_path: Path) -> None:
    (tmp_path / "ours").write_text("x", encoding="utf-8")
    with (tmp_path / "ours").open() as file:
        os.set_inheritable(file.fileno(), True)
        line = "cat; ls -l /proc/self/fd | grep -c -- '->'; ls -l /proc/self/fd"
        printed = asyncio.run(run_line(Sandbox(), "open", line, place_in(tmp_path)))
    assert printed.text.startswith("4\n"), printed.text
    assert "ours" not in printed.text


def test_a_supervisor_that_is_killed_is_told(tmp_path: Path) -> None:
    async def run() -> str:
        command = SupervisedCommand(
            Sandbox().build_launch_spec("open", "kill -9 $PPID; sleep 0.1", place_in(tmp_path))
        )
        while await command.read():
            pass
        return (await command.close()).failure

    assert "ended from outside" in asyncio.run(run())


def test_nobody_waits_for_the_output_of_a_process_that_got_away(tmp_path: Path) -> None:
    """One that became another user's cannot be killed; here its supervisor is gone instead."""

    async def run() -> str:
        line, name = staying("setsid -f {stay}; echo up; kill -9 $PPID", tmp_path)
        command = SupervisedCommand(Sandbox().build_launch_spec("open", line, place_in(tmp_path)))
        printed = b""
        while part := await command.read():
            printed += part
        assert printed == b"up\n"
        assert "outside" in (await command.close()).failure
        return name

    name = asyncio.run(run())
    while not (found := pids_of(name)):
        pass  # it was started, and has not got its name yet
    (pid,) = found
    os.kill(pid, signal.SIGKILL)
