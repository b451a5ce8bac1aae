"""The server of the resident process, in this process: who is answered, with how much, and for how long."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from sevenfold.cli import main, resident
from sevenfold.core.clock import ManualClock
from sevenfold.resident import client
from sevenfold.resident.client import MAX_MESSAGE_BYTES, STATUS_ERROR, STATUS_OK, STATUS_RESTART
from sevenfold.resident.hook_script import run_hook
from sevenfold.resident.operations import ResidentOperations
from sevenfold.resident.server import (
    STUCK,
    ResidentServer,
    bind_socket,
    mark_stopping,
    take_resident_lock,
)

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
IDLE = timedelta(milliseconds=20)
"""Between two looks at the clock, which a test moves by itself."""


def serve(folder: Path, talk: Talk, clock: ManualClock | None = None, idle: timedelta = IDLE) -> None:
    """Run a server until the talk has ended, or it has ended itself."""

    async def play() -> None:
        server = ResidentServer(
            ResidentOperations(environ={"SEVENFOLD_HOME": str(folder)}), clock or ManualClock(), idle=idle
        )
        running = asyncio.create_task(server.serve(bind_socket(str(folder))))
        path = str(folder / client.SOCKET_NAME)
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            await talk(reader, writer)
        finally:
            writer.close()
            server.stop()
            await running

    asyncio.run(play())
    assert not (folder / client.SOCKET_NAME).exists()


def frame(**message: object) -> bytes:
    body = json.dumps({"arguments": {}, "environ": {}, **message}).encode()
    return len(body).to_bytes(4, "big") + body


async def read(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def test_one_connection_carries_many_requests_and_a_failure_ends_none_of_them(tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for message in (
            frame(operation="status"),
            frame(operation="explode"),
            (7).to_bytes(4, "big") + b"nothing",
            frame(operation="status", arguments=3),
            frame(operation="memory_read", arguments={"cwd": "/", "key": "../x"}),
            frame(operation="status"),
        ):
            writer.write(message)
        replies = [await read(reader) for _ in range(6)]
        assert [reply[:1] for reply in replies] == [STATUS_OK, *[STATUS_ERROR] * 4, STATUS_OK]
        assert json.loads(replies[1][1:])["error"] == "InputError"
        assert json.loads(replies[5][1:])["pid"] == os.getpid()

    serve(tmp_path, talk, idle=timedelta(hours=1))


def test_another_user_gets_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(_connected: object) -> int:
        return os.getuid() + 1

    monkeypatch.setattr(client, "find_peer_uid", other)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(operation="status"))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await read(reader)

    serve(tmp_path, talk, idle=timedelta(hours=1))


def test_a_system_that_does_not_say_who_asks_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("_socket.SO_PEERCRED")  # as on macOS

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (tmp_path / client.SOCKET_NAME).stat().st_mode & 0o777 == 0o600
        writer.write(frame(operation="status"))
        assert (await read(reader))[:1] == STATUS_OK

    serve(tmp_path, talk, idle=timedelta(hours=1))


def test_a_message_that_is_too_long_ends_the_connection_and_nothing_else(tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((MAX_MESSAGE_BYTES + 1).to_bytes(4, "big") + b"x" * 100)
        assert await reader.read() == b""
        again, more = await asyncio.open_unix_connection(str(tmp_path / client.SOCKET_NAME))
        more.write(frame(operation="status"))
        assert (await read(again))[:1] == STATUS_OK
        more.close()

    serve(tmp_path, talk, idle=timedelta(hours=1))


def test_a_newer_client_is_told_to_ask_again_and_an_older_one_is_answered(tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(operation="status", version="0.0.1", protocol=0))
        assert (await read(reader))[:1] == STATUS_OK
        writer.write(frame(operation="status", version="999.1"))
        assert await read(reader) == STATUS_RESTART
        assert await reader.read() == b""

    serve(tmp_path, talk, idle=timedelta(hours=1))


def test_it_ends_by_itself_when_nobody_has_asked_for_a_while(tmp_path: Path) -> None:
    clock = ManualClock()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock.pass_time(IDLE / 2)
        writer.write(frame(operation="status"))
        assert (await read(reader))[:1] == STATUS_OK
        ended = asyncio.ensure_future(reader.read())
        while not ended.done():
            clock.pass_time(IDLE)
            await asyncio.wait({ended}, timeout=IDLE.total_seconds())
        assert ended.result() == b""

    serve(tmp_path, talk, clock)


def test_a_request_that_never_ends_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, begun, release = ManualClock(), Event(), Event()
    service = ResidentOperations(environ={"SEVENFOLD_HOME": str(tmp_path)})

    def hang(*_: object) -> dict[str, object]:
        begun.set()
        release.wait()
        return {}

    monkeypatch.setattr(service, "run", hang)

    async def play() -> bool:
        server = ResidentServer(service, clock, idle=IDLE, stop_seconds=0.01)
        running = asyncio.create_task(server.serve(bind_socket(str(tmp_path))))
        _, writer = await asyncio.open_unix_connection(str(tmp_path / client.SOCKET_NAME))
        writer.write(frame(operation="status"))
        await asyncio.to_thread(begun.wait)
        assert not server.is_stuck
        clock.pass_time(STUCK)
        try:
            return await running
        finally:
            release.set()
            writer.close()

    assert asyncio.run(play()) is False
    assert not (tmp_path / client.SOCKET_NAME).exists()


def test_one_that_hangs_is_shown_and_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEVENFOLD_HOME", str(tmp_path))
    monkeypatch.setattr(resident, "STATUS_SECONDS", 0.05)
    monkeypatch.setattr(resident, "END_SECONDS", 0.05)
    killed: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        killed.append((pid, number))

    monkeypatch.setattr(os, "kill", kill)
    folder = client.make_run_folder(os.environ)
    lock = take_resident_lock(folder, 0)
    assert lock is not None
    with bind_socket(folder):  # it takes connections and says nothing
        assert main(["resident"]) == 1
        assert f"process {os.getpid()} does not answer" in capsys.readouterr().out
        found = resident.check_resident()
        assert (found.level, str(os.getpid()) in found.said) == ("broken", True)
        assert main(["resident", "stop", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["is_hung"] is True
    assert killed == [(os.getpid(), signal.SIGTERM), (os.getpid(), signal.SIGKILL)]
    os.close(lock)
    assert main(["resident"]) == 0
    assert "not running" in capsys.readouterr().out


def test_one_that_finishes_its_work_is_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEVENFOLD_HOME", str(tmp_path))
    folder = client.make_run_folder(os.environ)
    lock = take_resident_lock(folder, 0)
    assert lock is not None
    killed: list[int] = []

    def kill(_pid: int, number: int) -> None:
        """It hangs no longer when it is told to end."""
        killed.append(number)
        mark_stopping(lock)

    monkeypatch.setattr(os, "kill", kill)
    assert main(["resident", "stop", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"is_running": True, "pid": os.getpid(), "is_stopping": True}
    assert killed == [signal.SIGTERM]
    for command in (["resident", "stop"], ["resident"]):
        assert main(command) == 0
        assert "is stopping" in capsys.readouterr().out
    found = resident.check_resident()
    assert (found.level, "is stopping" in found.said) == ("fine", True)
    assert killed == [signal.SIGTERM]
    # One that has been stopping for long hangs.
    os.utime(Path(folder, client.LOCK_NAME), (0, 0))
    assert resident.check_resident().level == "broken"
    os.close(lock)


def test_a_server_that_is_told_to_stop_says_so_in_its_lock(tmp_path: Path) -> None:
    lock = take_resident_lock(str(tmp_path), 0)
    assert lock is not None
    server = ResidentServer(
        ResidentOperations(environ={"SEVENFOLD_HOME": str(tmp_path)}), ManualClock(), idle=IDLE, lock=lock
    )
    assert not (tmp_path / client.LOCK_NAME).read_text().endswith("stopping\n")
    server.stop()
    assert (tmp_path / client.LOCK_NAME).read_text().endswith("stopping\n")
    os.close(lock)


def test_a_process_that_an_earlier_holder_named_is_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEVENFOLD_HOME", str(tmp_path))
    monkeypatch.setattr(resident, "NAME_SECONDS", 0.0)
    lock = take_resident_lock(client.make_run_folder(os.environ), 0)
    assert lock is not None
    with subprocess.Popen(["sleep", "60"]) as other:
        for named in (f"{other.pid} 0.0\n", "", "x", f"{2**40} 0.0\n"):
            os.ftruncate(lock, 0)
            os.pwrite(lock, named.encode(), 0)
            assert main(["resident", "stop"]) == 0
            assert "not running" in capsys.readouterr().out
        assert other.poll() is None
        other.kill()
    os.close(lock)


def test_the_end_of_a_turn_is_told_again_if_nobody_answered(tmp_path: Path) -> None:
    environ = {"SEVENFOLD_HOME": str(tmp_path)}
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd")
    with bind_socket(client.make_run_folder(environ)) as listener:
        listener.setblocking(True)

        def take_all() -> None:
            """It takes what it is told, says nothing, and ends the connection."""
            for _ in events:
                connection, _address = listener.accept()
                with connection, connection.makefile("rb") as sent:
                    sent.read(int.from_bytes(sent.read(4), "big"))

        process = Thread(target=take_all)
        process.start()
        for event in events:
            assert run_hook(event, b"{}", environ, seconds=60) == b""
        process.join()
    left = [json.loads(Path(path).read_bytes())["arguments"] for path in client.list_messages(environ)]
    assert [one["event"] for one in left] == ["Stop", "SessionEnd"]
    assert run_hook("Stop", b"", environ, seconds=60) == b""
    assert "no input, or over" in Path(client.find_run_folder(environ), client.LOG_NAME).read_text()


def test_who_holds_the_lock_is_the_one_and_what_a_dead_one_left_is_replaced(tmp_path: Path) -> None:
    first = take_resident_lock(str(tmp_path), 0)
    assert first is not None
    assert take_resident_lock(str(tmp_path), 0) is None
    assert (tmp_path / client.LOCK_NAME).read_text().startswith(f"{os.getpid()} ")
    os.close(first)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / client.SOCKET_NAME))
    again = take_resident_lock(str(tmp_path), 0)
    assert again is not None
    bind_socket(str(tmp_path)).close()
    os.close(again)


def test_a_folder_that_is_somebody_elses_or_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError):
        client.make_run_folder({"SEVENFOLD_HOME": str(tmp_path)})
    deep = {"SEVENFOLD_HOME": f"/{'x' * 200}", "XDG_RUNTIME_DIR": str(tmp_path)}
    folder = client.make_run_folder(deep)
    assert Path(folder).parent == tmp_path
    assert os.stat(folder).st_mode & 0o777 == 0o700


def test_a_home_that_a_hook_makes_is_nobody_elses(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        folder = Path(client.make_run_folder({"HOME": str(tmp_path / "user")}))
    finally:
        os.umask(before)
    assert folder == tmp_path / "user/.sevenfold/run"
    assert [one.stat().st_mode & 0o777 for one in (folder, folder.parent)] == [0o700, 0o700]
