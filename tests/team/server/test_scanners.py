"""Large texts are looked through in processes of their own, which end with the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from sevenfold.core.secrets import describe_refusal
from sevenfold.team.server import scanning as scanning_module
from sevenfold.team.server.database import OrgId
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.scanning import SMALL_CHARS, BlockedFindings, SecretScanners, refuse_blocked

pytestmark = pytest.mark.story

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LARGE = "word " * SMALL_CHARS
ORG = OrgId("acme")
KEY = bytes(16)


@pytest.fixture
def scanning() -> Generator[SecretScanners]:
    scanning = SecretScanners()
    yield scanning
    scanning.close()


def test_what_a_large_text_holds_is_found_as_in_a_small_one(scanning: SecretScanners) -> None:
    async def look() -> list[list[str]]:
        texts = ("", LARGE)
        return [list(await scanning.find(ORG, {"a.md": text + SECRET}, KEY, ())) for text in texts]

    assert asyncio.run(look()) == [["a.md"], ["a.md"]]


def test_a_search_that_dies_is_told_and_the_next_is_done(
    scanning: SecretScanners, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> list[str]:
        return list(await scanning.find(ORG, {"a.md": LARGE + SECRET}, KEY, ()))

    with monkeypatch.context() as broken:
        broken.setattr(scanning_module, "find_blocked", _die)
        with pytest.raises(ApiError) as refused:
            asyncio.run(look())
    assert (refused.value.status, refused.value.retry) == (503, True)
    assert isinstance(refused.value.__cause__, BrokenProcessPool)
    assert asyncio.run(look()) == ["a.md"]


def _die(*_given: object) -> None:
    os._exit(1)


LONELY = f"""
import asyncio, os, signal
from sevenfold.team.server.scanning import SecretScanners

async def look():
    scanning = SecretScanners()
    await scanning.find("acme", {{"a.md": {LARGE!r}}}, bytes(16), ())
    [worker] = scanning._pool._processes
    os.kill(worker, signal.SIGTERM)  # as a supervisor sends it to all; the search goes on
    assert not await scanning.find("acme", {{"a.md": {LARGE!r}}}, bytes(16), ())
    print(worker, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(look())
"""


def test_a_process_that_searches_ends_with_a_server_that_was_killed(tmp_path: Path) -> None:
    program = tmp_path / "lonely.py"
    program.write_text(LONELY, encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    ends = time.monotonic() + 30
    while _is_alive(int(done.stdout)):
        assert time.monotonic() < ends, "it lives on"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_text_that_cannot_be_looked_through_is_not_said_to_hold_a_secret() -> None:
    unread: BlockedFindings = [
        {"rule": "refused", "name": describe_refusal("too much work"), "line": 1, "fingerprint": ""}
    ]
    with pytest.raises(ApiError, match="cannot be looked through") as refused:
        refuse_blocked({"a.md": unread}, 3)
    assert "seem to hold" not in str(refused.value)
    found: BlockedFindings = [{"rule": "jwt", "name": "JSON web token", "line": 1, "fingerprint": "x"}]
    with pytest.raises(ApiError, match="seem to hold a secret"):
        refuse_blocked({"a.md": unread, "b.md": found}, 3)
