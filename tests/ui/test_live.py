"""Running sessions: what of a transcript or a ledger is read while it grows."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sevenfold.ui.pages import UiPages, open_pages
from tests.ui.example import Machine, make_machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path)


def look(pages: UiPages) -> list[dict[str, Any]]:
    return json.loads(json.dumps(pages.watcher.snapshot()))["sessions"]


def test_our_session_and_one_behind_the_proxy_are_shown_with_their_bills(machine: Machine) -> None:
    machine.talk(3)
    machine.add_proxy(os.getpid())
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        pages.sessions.join()
        found = {one["source"]: one for one in look(pages)}
        ours, proxied = found["transcript"], found["proxy"]
        assert (ours["agent"], ours["calls"], ours["project"]) == ("sevenfold", 3, "project")
        assert ours["usd"] > 0
        assert ours["key"]
        assert ours["said"] == "uses Bash"
        assert (proxied["calls"], proxied["tokens"], proxied["read_tokens"]) == (2, 9_510, 9_000)
        assert proxied["usd"] == pytest.approx(0.17)
        assert proxied["said"].startswith("cache break: ")


def test_only_new_lines_are_read_and_a_half_written_one_waits(machine: Machine) -> None:
    path = machine.add_sample()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        before = look(pages)[0]["calls"]
        with path.open("ab") as file:
            file.write(b"".join(lines[20:-1]) + lines[-1][:40])
        grown = look(pages)[0]
        assert grown["calls"] > before
        with path.open("ab") as file:
            file.write(lines[-1][40:])
        after = look(pages)[0]
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        assert look(pages)[0] == after | {"key": look(pages)[0]["key"]}


def test_what_ended_long_ago_is_not_live(machine: Machine) -> None:
    old = datetime.now(UTC) - timedelta(hours=1)
    ledger, transcript = machine.add_proxy(2**22, now=old), machine.add_sample()
    for path in (ledger, transcript):
        os.utime(path, (old.timestamp(), old.timestamp()))
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        assert look(pages) == []


def test_a_damaged_ledger_costs_only_its_lines(machine: Machine) -> None:
    path = machine.add_proxy(os.getpid())
    with path.open("ab") as file:
        file.write(b'{"conversation": "c1", "dollars": "many", "read": -1, "break": 7}\nno json\n[1]\n')
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        (one,) = look(pages)
        assert (one["calls"], one["usd"]) == (2, pytest.approx(0.17))


def test_a_stream_says_at_once_how_things_are(machine: Machine) -> None:
    machine.add_proxy(os.getpid())

    async def read(pages: UiPages) -> list[bytes]:
        found: list[bytes] = []
        stream = pages.watcher.stream()
        async for part in stream:
            found.append(part)
            if len(found) == 4:
                break
        return found

    with machine.workspace() as workspace, open_pages(workspace) as pages:
        pages.sessions.join()
        first, *events = asyncio.run(read(pages))
    assert first.startswith(b"retry: ")
    assert {event.split(b"\n")[0] for event in events} == {
        b"event: sessions",
        b"event: live",
        b"event: memories",
    }
