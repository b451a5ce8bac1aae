"""A thin HTTP client and the teams that use it: the load must cost less than what is loaded."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias, cast

from sevenfold.cli.team.serve import open_database
from sevenfold.team.protocol import compute_checksum
from sevenfold.team.server.database import OrgId, Tx
from sevenfold.team.server.people import add_member, add_org, add_token, new_row_id
from sevenfold.team.server.policy import ServerLimits
from sevenfold.team.server.repos import claim_repo

MEMORY = "/api/v1/memory"
Json: TypeAlias = "dict[str, object]"


@dataclass(frozen=True, slots=True)
class Tenant:
    tokens: tuple[str, ...]
    repos: tuple[str, ...]


def make_tenant(url: str, name: str, *, tokens: int, repos: int) -> Tenant:
    """An organisation with so many laptops and repositories."""
    database, org = open_database(url), OrgId(new_row_id())
    now_ms = int(time.time() * 1000)

    def make(tx: Tx) -> Tenant:
        add_org(tx, org, name, now_ms)
        add_member(tx, org, "ada", "owner", now_ms)
        day = timedelta(days=1)
        scopes = ("memory:read", "memory:write")
        made = tuple(add_token(tx, org, "ada", scopes, now_ms, lasts=day).text for _ in range(tokens))
        claimed = tuple(
            claim_repo(tx, org, f"r{number}", "", "bench", now_ms, ServerLimits(repos=10**6)).id
            for number in range(repos)
        )
        return Tenant(made, claimed)

    try:
        return database.write(org, make).result()
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Json:
        return cast("Json", json.loads(self.body))


@dataclass(slots=True, kw_only=True)
class Laptop:
    """One connection that is kept, with its token."""

    port: int
    token: str
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    seen: dict[str, int] = field(default_factory=dict[str, int])
    """The version of each key that it wrote last."""

    async def ask(self, method: str, path: str, body: object = None, extra: str = "") -> Reply:
        """`OSError` where the connection breaks; the next call makes a new one."""
        try:
            if self.writer is None or self.reader is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            raw = b"" if body is None else json.dumps(body).encode()
            head = (
                f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self.token}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(raw)}\r\n{extra}\r\n"
            )
            self.writer.write(head.encode() + raw)
            return await _read_reply(self.reader)
        except (OSError, EOFError) as error:
            self.close()
            raise OSError(str(error)) from error

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def _read_reply(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    status = int(head[0].split()[1])
    size = int(headers.get("content-length", "0")) if status != 304 else 0
    return Reply(status, headers, await reader.readexactly(size) if size else b"")


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of the requests of a scenario."""

    seconds: list[float] = field(default_factory=list[float])
    """Of each operation, retries included."""
    done: int = 0
    gave_up: int = 0
    conflicts: int = 0
    refused: int = 0
    """429 and 503: asked to wait."""

    def percentile(self, share: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0


MOST_ATTEMPTS = 9
"""One to send the body, and eight."""
WAIT_SECONDS = 0.05


async def push(laptop: Laptop, repo: str, key: str, text: str, tally: Tally) -> int | None:
    """Bodies, then a commit; told of another's, it commits against that. The sequence number, or None."""
    began, expected, checksum = time.perf_counter(), laptop.seen.get(key, 0), compute_checksum(text)
    is_sent = False
    for attempt in range(MOST_ATTEMPTS):
        change = {"key": key, "expected": expected, "checksum": checksum}
        commit = {
            "id": compute_checksum(f"{laptop.token[-12:]} {key} {expected} {checksum}"),
            "changes": [change],
        }
        path, body = ("commit", commit) if is_sent else ("bodies", {"bodies": [text]})
        try:
            reply = await laptop.ask("POST", f"{MEMORY}/{path}?repo={repo}", body)
        except OSError:
            await asyncio.sleep(min(1.0, WAIT_SECONDS * 2**attempt))
            continue
        if reply.status == 200 and is_sent:
            tally.done += 1
            tally.seconds.append(time.perf_counter() - began)
            laptop.seen[key] = cast("int", reply.json()["seq"])
            return laptop.seen[key]
        if reply.status == 409:
            tally.conflicts += 1
            expected = cast("dict[str, dict[str, int]]", reply.json()["conflicts"])[key]["version"]
        elif reply.status == 200:
            is_sent = True
        else:
            tally.refused += 1
            await asyncio.sleep(float(reply.headers.get("retry-after", "1")))
    tally.gave_up += 1
    return None


@dataclass(frozen=True, slots=True)
class Process:
    """The processor's time of a process and of its children, as the kernel counts it."""

    pid: int

    def seconds(self) -> float:
        return sum(_cpu_seconds(pid) for pid in _family(self.pid))


def _family(pid: int) -> Sequence[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return ()
    return [pid, *(member for child in children for member in _family(int(child)))]


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100
