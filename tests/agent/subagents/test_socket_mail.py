"""Messages over a Unix socket: from the same user only, whole, and acknowledged when they are on disk."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenfold.agent.subagents import socket_mail
from sevenfold.agent.subagents.socket_mail import MailSocket, choose_socket_folder, send_over_socket
from sevenfold.core.errors import (
    AddressUnknown,
    InputError,
    MailboxFull,
    MailError,
    MessageTooLarge,
    PeerRefused,
)
from sevenfold.core.events import Event, PeerDismissed
from sevenfold.core.json import JsonObject, read_object
from sevenfold.store.mailbox import MAX_MAIL_BYTES, Mail, MailId

SENT = datetime(2026, 11, 15, tzinfo=UTC)


def letter(text: str = "Hello.", sender: str = "uds:/a.sock", name: str = "m1") -> Mail:
    return Mail(
        sender=sender,
        summary="a greeting",
        body=JsonObject({"type": "note", "text": text}),
        sent=SENT,
        id=MailId(name),
    )


class Ear:
    """What a session heard."""

    def __init__(self, error: Exception | None = None) -> None:
        self.heard: list[Mail] = []
        self.events: list[Event] = []
        self._error = error

    async def take(self, mail: Mail) -> None:
        if self._error:
            raise self._error
        self.heard.append(mail)


def talk(path: Path, ear: Ear, say: Callable[[], Awaitable[None]]) -> None:
    async def both() -> None:
        async with await MailSocket.listen(path, ear.take, emit=ear.events.append):
            await say()

    asyncio.run(both())


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short enough for a socket, whatever the test is called."""
    return tmp_path_factory.mktemp("s") / "run" / "ear.sock"


def test_a_message_arrives_as_it_was_sent(path: Path) -> None:
    ear = Ear()
    talk(path, ear, lambda: send_over_socket(path, letter("π" * 1_000)))
    assert ear.heard == [letter("π" * 1_000)]
    assert ear.events == []


def test_only_the_user_can_reach_the_socket_and_it_goes_with_the_session(path: Path) -> None:
    modes: list[int] = []

    async def look() -> None:
        modes.extend(stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent))

    talk(path, Ear(), look)
    assert modes == [0o600, 0o700]
    assert not path.exists()


def test_a_folder_that_others_could_enter_is_closed_to_them(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    talk(path, Ear(), lambda: send_over_socket(path, letter()))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_peer_of_another_user_is_not_listened_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ear = Ear()

    async def knock() -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        monkeypatch.setattr(socket_mail.os, "getuid", lambda: os.geteuid() + 1)
        told = read_object((await reader.read())[4:])
        writer.close()
        assert told["ok"] is False

    talk(path, ear, knock)
    assert ear.heard == []
    assert [type(event) for event in ear.events] == [PeerDismissed]
    assert "runs as user" in str(ear.events[0])


def test_a_socket_of_another_user_is_told_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ear = Ear()

    async def send() -> None:
        monkeypatch.setattr(socket_mail.os, "getuid", lambda: os.geteuid() + 1)
        with pytest.raises(PeerRefused, match="nothing was sent"):
            await send_over_socket(path, letter())

    talk(path, ear, send)
    assert ear.heard == []


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (struct.pack(">I", MAX_MAIL_BYTES + 1), "is announced"),
        (struct.pack(">I", 4) + b"nope", "not JSON"),
        (struct.pack(">I", 2) + b"{}", "sender is missing"),
        (struct.pack(">I", 900) + b"{", "bytes read"),
        (b"\0", "bytes read"),
    ],
)
def test_what_is_no_message_is_answered_with_the_reason_and_goes_no_further(
    path: Path, frame: bytes, said: str
) -> None:
    ear = Ear()

    async def send() -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(frame)
        writer.write_eof()
        told = read_object((await reader.read())[4:])
        writer.close()
        assert said in str(told["reason"])

    talk(path, ear, send)
    assert ear.heard == []
    assert len(ear.events) == 1


def test_nobody_over_a_socket_can_pass_for_an_agent_of_the_project(path: Path) -> None:
    async def send() -> None:
        with pytest.raises(MailError, match="is called uds:"):
            await send_over_socket(path, letter(sender="lead"))

    ear = Ear()
    talk(path, ear, send)
    assert ear.heard == []


def test_a_message_that_could_not_be_kept_is_not_acknowledged(path: Path) -> None:
    async def send() -> None:
        with pytest.raises(MailError, match="ada is full"):
            await send_over_socket(path, letter())

    talk(path, Ear(MailboxFull("ada is full")), send)


def test_a_message_over_the_limit_is_not_sent(path: Path) -> None:
    with pytest.raises(MessageTooLarge, match="put the content in a file"):
        asyncio.run(send_over_socket(path, letter("x" * MAX_MAIL_BYTES)))


def test_a_session_that_ended_is_nobody(path: Path) -> None:
    with pytest.raises(AddressUnknown, match="is not there"):
        asyncio.run(send_over_socket(path, letter()))


def test_a_socket_that_a_dead_session_left_is_taken_over(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))
    with pytest.raises(AddressUnknown, match="nobody listens"):
        asyncio.run(send_over_socket(path, letter()))
    ear = Ear()
    talk(path, ear, lambda: send_over_socket(path, letter()))
    assert ear.heard == [letter()]


def test_a_socket_that_is_in_use_is_not_taken_from_its_session(path: Path) -> None:
    ear = Ear()

    async def listen_too() -> None:
        with pytest.raises(MailError, match="another session may"):
            await MailSocket.listen(path, Ear().take)
        await send_over_socket(path, letter())

    talk(path, ear, listen_too)
    assert ear.heard == [letter()]


def test_a_file_in_the_place_of_a_socket_is_left_alone(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("mine")
    with pytest.raises(MailError, match="cannot listen"):
        asyncio.run(MailSocket.listen(path, Ear().take))
    assert path.read_text() == "mine"


def test_sockets_lie_where_their_path_is_short_enough() -> None:
    assert choose_socket_folder(Path("/home/ada/.sevenfold"), {}) == Path("/home/ada/.sevenfold/run")
    deep = Path("/home") / ("d" * 80)
    assert choose_socket_folder(deep, {"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7/sevenfold")
    assert choose_socket_folder(deep, {}) == Path(f"/tmp/sevenfold-{os.getuid()}")
    with pytest.raises(InputError, match="too long"):
        asyncio.run(MailSocket.listen(deep / "run" / "some-long-name.sock", Ear().take))


def test_whoever_is_cancelled_while_it_begins_to_listen_leaves_no_socket(path: Path) -> None:
    async def tell() -> None:
        listening = asyncio.create_task(MailSocket.listen(path, Ear().take))
        await asyncio.sleep(0)
        assert is_there(), "it is about to listen"
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening

    is_there = path.exists
    asyncio.run(tell())
    assert not is_there()
