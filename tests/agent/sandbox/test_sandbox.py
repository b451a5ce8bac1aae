"""What holds a command: nothing outside is changed, read or reached, and what needs to work works."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.sandbox import sandbox as sandbox_module
from sevenfold.agent.sandbox.command import SupervisedCommand
from sevenfold.agent.sandbox.folders import list_readable_folders, move_aside, read_guarded
from sevenfold.agent.sandbox.kernel import ARCHITECTURES, build_seccomp_filter
from sevenfold.agent.sandbox.sandbox import (
    SANDBOXED_PROFILES,
    Sandbox,
    SandboxBackend,
    find_bubblewrap,
    probe_sandbox,
)
from sevenfold.core.events import Event, SandboxFailed
from sevenfold.core.settings.sections import SandboxSettings
from sevenfold.core.tool_kinds import SandboxProfile, ToolContext
from tests.agent.sandboxes import make_sandbox, place_in, run_line, ways
from tests.store.repos import git, make_repo

both = pytest.mark.parametrize("way", ways())
held = pytest.mark.parametrize("profile", SANDBOXED_PROFILES)


def told(sandbox: Sandbox, profile: SandboxProfile, line: str, place: ToolContext) -> str:
    return asyncio.run(run_line(sandbox, profile, line, place)).text


@both
def test_a_workspace_command_writes_in_the_project_and_in_scratch_space_of_its_own(
    tmp_path: Path, way: SandboxBackend
) -> None:
    place = place_in(tmp_path)
    line = 'echo one > a; chmod +x a; mv a b; mkdir d; ln b d/c; echo two > "$TMPDIR/x"; cat b "$TMPDIR/x"'
    assert told(make_sandbox(way), "workspace", line, place) == "one\ntwo\n"
    assert (place.root / "b").stat().st_mode & 0o100
    assert told(make_sandbox(way), "workspace", 'ls "$TMPDIR"', place) == "", "each has its own"


@both
def test_a_read_only_command_changes_nothing_and_reads_the_project(
    tmp_path: Path, way: SandboxBackend
) -> None:
    place = place_in(tmp_path)
    (place.root / "a").write_text("one\n", encoding="utf-8")
    before = (place.root / "a").stat()
    text = told(
        make_sandbox(way),
        "read-only",
        "cat a; echo x > a; chmod 777 a; touch -d 2001-01-01 a; rm a; : > b",
        place,
    )
    assert text.startswith("one\n")
    after = (place.root / "a").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert os.listdir(place.root) == ["a"]


@both
@held
def test_nothing_outside_is_changed_or_read(
    tmp_path: Path, way: SandboxBackend, profile: SandboxProfile
) -> None:
    place = place_in(tmp_path)
    outside = tmp_path / "outside"
    outside.write_text("theirs\n", encoding="utf-8")
    outside.chmod(0o640)
    (place.root / "link").symlink_to(outside)
    line = (
        f"cat {outside} link; echo x > {outside}; echo x > link; chmod 777 link; rm -f {outside}; echo done"
    )
    text = told(make_sandbox(way), profile, line, place)
    assert "theirs" not in text
    assert text.endswith("done\n")
    assert outside.read_text(encoding="utf-8") == "theirs\n"
    assert outside.stat().st_mode & 0o777 == 0o640


@both
@held
@pytest.mark.parametrize(
    "line",
    [
        "exec 3<>/dev/tcp/127.0.0.1/9",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'",
    ],
)
def test_no_kind_of_socket_can_be_opened(
    tmp_path: Path, way: SandboxBackend, profile: SandboxProfile, line: str
) -> None:
    assert "ermission" in told(make_sandbox(way), profile, line, place_in(tmp_path))


SET_ID = {
    "chmod u+s": "cp /bin/true made; chmod u+s made",
    "chmod g+s": "cp /bin/true made; chmod 2755 made",
    "install": "install -m 4755 /bin/true made",
    "open": "python3 -c 'import os; os.open(\"made\", os.O_CREAT | os.O_RDWR, 0o4755)'",
    "fchmod": "python3 -c 'import os; os.fchmod(os.open(\"made\", os.O_CREAT | os.O_RDWR), 0o4755)'",
    "fchmodat": 'touch made; python3 -c \'import os; os.chmod("made", 0o4755, dir_fd=os.open(".", 0))\'',
    "mknod": "python3 -c 'import os; os.mknod(\"made\", 0o104755)'",
}


@both
@pytest.mark.parametrize("line", SET_ID.values(), ids=SET_ID)
def test_no_file_is_made_that_runs_with_the_rights_of_its_owner(
    tmp_path: Path, way: SandboxBackend, line: str
) -> None:
    """Any user of the machine could start it, also long after the command."""
    place = place_in(tmp_path)
    answer = told(make_sandbox(way), "workspace", f"umask 0; {line}", place)
    assert "ermi" in answer, answer
    made = place.root / "made"
    assert not made.exists() or not made.stat().st_mode & 0o6000
    assert "fine" in told(
        make_sandbox(way), "workspace", "install -m 755 /bin/true ok && ./ok && echo fine", place
    )


KERNEL_FILES = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/suid_dumpable"),
    *("/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled"),
)


@both
@pytest.mark.parametrize("profile", SANDBOXED_PROFILES)
def test_no_setting_of_the_kernel_can_be_opened_for_writing(
    tmp_path: Path, way: SandboxBackend, profile: SandboxProfile
) -> None:
    """Root owns them: one names a program that the kernel starts outside when a process crashes."""
    opened = "".join(f"{{ : >> {name}; }} 2>/dev/null && echo opened {name}\n" for name in KERNEL_FILES)
    answer = told(make_sandbox(way), profile, f"{opened}echo tried", place_in(tmp_path))
    assert "tried" in answer
    assert "opened" not in answer


@both
def test_what_programs_obey_in_a_project_cannot_be_changed_moved_or_removed(
    tmp_path: Path, way: SandboxBackend
) -> None:
    place = place_in(tmp_path)
    (place.root / ".git").mkdir()
    (place.root / ".git" / "config").write_text("ours\n", encoding="utf-8")
    (place.root / ".envrc").write_text("ours\n", encoding="utf-8")
    line = (
        "echo x > .git/config; mv .git g; rm -rf .git; rm .envrc; echo x > .envrc; echo y > .git/new; : > a"
    )
    told(make_sandbox(way), "workspace", line, place)
    assert (place.root / ".git" / "config").read_text(encoding="utf-8") == "ours\n"
    assert (place.root / ".envrc").read_text(encoding="utf-8") == "ours\n"
    assert sorted(os.listdir(place.root)) == [".envrc", ".git", "a"]
    assert os.listdir(place.root / ".git") == ["config"]


def test_new_names_that_programs_obey_are_moved_aside(tmp_path: Path) -> None:
    (tmp_path / ".envrc").write_text("before\n", encoding="utf-8")
    known = read_guarded(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git.held-back-1").mkdir()
    (tmp_path / "plain").touch()
    moved = list(move_aside(tmp_path, known))
    assert [(Path(one.path).name, Path(one.moved_to).name) for one in moved] == [(".git", ".git.held-back-2")]
    assert sorted(os.listdir(tmp_path)) == [".envrc", ".git.held-back-1", ".git.held-back-2", "plain"]


def test_a_link_that_programs_obey_is_moved_aside_once_it_leads_elsewhere(tmp_path: Path) -> None:
    """Only what it leads to can be mounted read-only, and neither the link nor the way to there."""
    for name in ("same", "other", "way/there"):
        (tmp_path / name).mkdir(parents=True)
    leads = {".git": "same", ".vscode": "other", ".husky": "way/there", ".envrc": "nowhere"}
    for name, target in leads.items():
        (tmp_path / name).symlink_to(target)
    known = read_guarded(tmp_path)
    (tmp_path / ".vscode").unlink()
    (tmp_path / ".vscode").mkdir()
    (tmp_path / "way").rename(tmp_path / "moved")
    (tmp_path / "way" / "there").mkdir(parents=True)
    (tmp_path / "nowhere").touch()
    moved = list(move_aside(tmp_path, known))
    assert [Path(one.path).name for one in moved] == [".envrc", ".husky", ".vscode"]
    assert (tmp_path / ".git").is_symlink()


@both
@held
def test_keys_are_not_in_the_environment_of_what_is_held(
    tmp_path: Path, way: SandboxBackend, profile: SandboxProfile
) -> None:
    place = place_in(tmp_path, MY_API_KEY="hidden", GH_TOKEN="hidden", SSH_AUTH_SOCK="hidden", PLAIN="shown")
    text = told(make_sandbox(way), profile, "env; cat /proc/self/environ", place)
    assert "hidden" not in text
    assert "PLAIN=shown" in text


def test_an_open_command_has_the_users_own_environment(tmp_path: Path) -> None:
    assert told(Sandbox(), "open", "echo $MY_API_KEY", place_in(tmp_path, MY_API_KEY="mine")) == "mine\n"


@both
def test_git_runs_no_program_that_a_repository_names_while_it_only_looks(
    tmp_path: Path, way: SandboxBackend
) -> None:
    place = place_in(tmp_path)
    git = ["git", "-C", str(place.root)]
    subprocess.run([*git, "init", "-q"], check=True)
    (place.root / "evil").write_text("#!/bin/sh\necho ran >&2\n", encoding="utf-8")
    (place.root / "evil").chmod(0o755)
    subprocess.run([*git, "config", "core.fsmonitor", "./evil"], check=True)
    text = told(make_sandbox(way), "read-only", "git status --short", place)
    assert text == "?? evil\n"


@both
@held
def test_git_can_look_at_a_worktree_whose_repository_lies_elsewhere(
    tmp_path: Path, way: SandboxBackend, profile: SandboxProfile
) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run(["git", "-C", str(main), "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run(["git", "-C", str(main), "worktree", "add", "-q", str(tree)], check=True)
    (tree / "new").touch()
    place = replace(place_in(tmp_path), root=tree, cwd=tree)
    text = told(
        make_sandbox(way),
        profile,
        f"git status --short; git log --format=%s; echo x > {main}/.git/HEAD",
        place,
    )
    assert text.startswith("?? new\nfirst\n")
    assert (main / ".git" / "HEAD").read_text(encoding="utf-8").startswith("ref:")


@both
def test_memory_files_and_processes_are_bounded(tmp_path: Path, way: SandboxBackend) -> None:
    place, sandbox = place_in(tmp_path), make_sandbox(way)
    assert "MemoryError" in told(sandbox, "workspace", "python3 -c 'bytearray(10**9)'", place)
    told(sandbox, "workspace", "head -c 20M /dev/zero > big", place)
    assert (place.root / "big").stat().st_size == 4 * 1024 * 1024
    crowd = "for i in $(seq 60); do sleep 30 & done; sleep 30"
    ended = asyncio.run(run_line(sandbox, "workspace", crowd, place)).ended
    assert ended.is_crowded


def test_a_shell_can_neither_see_nor_signal_other_processes(tmp_path: Path) -> None:
    text = told(
        make_sandbox("namespaces"),
        "read-only",
        f"kill -0 {os.getpid()}; ls /proc | grep -c '^[0-9]'",
        place_in(tmp_path),
    )
    assert "No such process" in text
    assert int(text.splitlines()[-1]) < 10


def test_capabilities_beyond_files_are_given_up(tmp_path: Path) -> None:
    text = told(make_sandbox("namespaces"), "workspace", "grep CapEff /proc/self/status", place_in(tmp_path))
    assert int(text.split()[1], 16) & ~0b11011 == 0


def test_a_command_that_cannot_be_held_does_not_run(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    orders = make_sandbox("namespaces").build_launch_spec("workspace", "touch ran", place)
    orders.writable.append("/no/such/folder")

    async def run() -> str:
        command = SupervisedCommand(orders)
        return (await command.close() if await command.read() else await command.wait()).failure

    assert "/no/such/folder" in asyncio.run(run())
    assert os.listdir(place.root) == []


def test_a_trial_finds_what_holds_here() -> None:
    events: list[Event] = []
    found = asyncio.run(probe_sandbox(SandboxSettings(), os.environ, events.append))
    assert all(map(found.supports, SANDBOXED_PROFILES)), found.why_not
    assert events == []


def test_without_landlock_bubblewrap_is_tried_and_without_both_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox_module, "read_landlock_version", lambda: 0)
    found = asyncio.run(probe_sandbox(SandboxSettings(), os.environ))
    assert set(found.means.values()) == ({"bubblewrap"} if find_bubblewrap() else set())
    monkeypatch.setattr(sandbox_module, "find_bubblewrap", lambda: None)
    events: list[Event] = []
    found = asyncio.run(probe_sandbox(SandboxSettings(), os.environ, events.append))
    assert found.means == {}
    assert "install bubblewrap" in found.why_not
    assert events == [SandboxFailed(profile, found.why_not) for profile in SANDBOXED_PROFILES]


def test_a_sandbox_that_is_turned_off_holds_nothing() -> None:
    found = asyncio.run(probe_sandbox(SandboxSettings(enabled=False), os.environ))
    assert found.means == {}
    assert "sandbox.enabled" in found.why_not


def test_a_trial_notices_what_does_not_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def open_orders(self: Sandbox, profile: SandboxProfile, command: str, place: ToolContext) -> object:
        return held_orders(self, "open", command, place)

    held_orders = Sandbox.build_launch_spec
    monkeypatch.setattr(Sandbox, "build_launch_spec", open_orders)
    found = asyncio.run(probe_sandbox(SandboxSettings(), os.environ))
    assert found.means == {}
    assert "could signal the agent" in found.why_not or "got out of its folder" in found.why_not


def test_a_trial_notices_a_sandbox_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "read_landlock_version", lambda: 0)
    monkeypatch.setattr(sandbox_module, "find_bubblewrap", lambda: "/bin/false")
    found = asyncio.run(probe_sandbox(SandboxSettings(), os.environ))
    assert found.means == {}
    assert "a trial failed" in found.why_not


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_filter_is_made_of_whole_lines_and_jumps_nowhere_beyond_its_end(machine: str) -> None:
    strict, loose = (
        build_seccomp_filter(machine, may_change=False),
        build_seccomp_filter(machine, may_change=True),
    )
    assert len(strict) > len(loose)
    for program in (strict, loose):
        assert len(program) % 8 == 0
        count = len(program) // 8
        for at in range(count):
            code, far = program[at * 8], max(program[at * 8 + 2 : at * 8 + 4])
            assert code == 0x06 or at + 1 + far < count


def test_a_home_is_never_readable_as_a_whole(tmp_path: Path) -> None:
    place = place_in(tmp_path, PATH=f"{tmp_path}:{tmp_path}/bin:{tmp_path}/tools/bin:relative:/usr/bin")
    found = list_readable_folders(place, ())
    assert str(tmp_path) not in found
    assert f"{tmp_path}/tools" not in found
    assert {f"{tmp_path}/bin", f"{tmp_path}/tools/lib"} <= set(found)


def test_a_link_in_place_of_the_repository_makes_no_other_folder_readable(tmp_path: Path) -> None:
    place, theirs = place_in(tmp_path), make_repo(tmp_path / "theirs") / ".git"
    (tmp_path / "keys").mkdir()
    for folder in (tmp_path / "keys", theirs):
        (folder / "id").write_text("theirs\n", encoding="utf-8")
        (place.root / ".git").symlink_to(folder)
        for way in ways():
            for profile in SANDBOXED_PROFILES:
                assert "theirs" not in told(make_sandbox(way), profile, "cat .git/id; true", place)
        (place.root / ".git").unlink()


@pytest.mark.parametrize("target", ["../outside", "nowhere", "held", "/etc/passwd"])
@both
def test_commands_run_in_a_project_whose_guarded_names_are_links(
    tmp_path: Path, way: SandboxBackend, target: str
) -> None:
    place, outside = place_in(tmp_path), tmp_path / "outside"
    for path in (outside, place.root / "held"):
        path.write_text("before\n", encoding="utf-8")
    (place.root / "CLAUDE.md").symlink_to(target)
    text = told(make_sandbox(way), "workspace", "echo pwned > CLAUDE.md; echo pwned > held; echo done", place)
    assert text.endswith("done\n")
    assert outside.read_text(encoding="utf-8") == "before\n"
    is_held = target == "held"
    assert (place.root / "held").read_text(encoding="utf-8") == ("before\n" if is_held else "pwned\n")


def test_the_history_of_a_worktree_is_readable_where_its_repository_knows_it(tmp_path: Path) -> None:
    main = make_repo(tmp_path / "main")
    git(main, "worktree", "add", "--quiet", str(tmp_path / "project"))
    place = place_in(tmp_path)
    assert str(main / ".git") in list_readable_folders(place, ())
    for way in ways():
        assert "first" in told(make_sandbox(way), "read-only", "git log --format=%s", place)
