"""Sessions that run now, ours and those behind the proxy, as a stream of server-sent events.

While somebody listens, transcripts and the proxy's ledgers are looked at every second. Of a file that grows
only the new lines are read. Events say what changed: `live` has all running sessions, `sessions` and
`memories` say that a list is out of date.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path, PurePath

from sevenfold.core.clock import Clock
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.json import read_object
from sevenfold.core.messages import Text, ToolUse
from sevenfold.core.prices import Catalog, compute_cost
from sevenfold.core.system import is_process_alive, run_blocking
from sevenfold.core.usage import Usage
from sevenfold.session.opening import Workspace
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ForeignAgent,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
    JsonFields,
    get_int,
    get_name,
    get_object,
    get_time,
)
from sevenfold.store.foreign.transcripts import FOREIGN_READERS, ForeignReader, detect_agent, scan_lines
from sevenfold.store.transcript.transcript import HOLDER
from sevenfold.ui.app import PageRoute, route_get
from sevenfold.ui.sessions import SessionCatalog

POLL_SECONDS = 1.0
KEEP_ALIVE_POLLS = 15
"""Polls without news after which a comment is sent: proxies and browsers drop silent connections."""
LIST_POLLS = 15
"""So often the list of sessions is read again: a session that grows is read whole for its bill."""
ACTIVE_FOR = timedelta(minutes=15)
"""Since the last line: an agent that thinks, or whose user does."""
WORKING_FOR = timedelta(seconds=60)
MAX_LIVE = 20
MAX_SAID_CHARS = 160
PROXY_LEDGERS = "proxy"
"""The folder below Sevenfold's home in which `sevenfold proxy` keeps a file for each run."""

_PID = re.compile(r"-(\d{1,9})\.jsonl$")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSession:
    key: str
    source: str
    """`transcript`, or `proxy`."""
    state: str
    """`working`: a line came just now; `open`: its process runs; `idle`: none of these."""
    agent: str
    project: str
    model: str
    calls: int
    tokens: int
    """Of the last prompt: what fills the context now."""
    read_tokens: int
    """Of these, from the cache."""
    usd: float | None
    """None: no price is known."""
    last_at: int | None
    said: str
    """The last thing that was said or done; of a proxy, why the cache broke last."""


@dataclass(slots=True, kw_only=True)
class LiveBill:
    """What the calls of one session cost so far."""

    catalog: Catalog
    calls: int = 0
    model: str = ""
    last: Usage | None = None
    is_unpriced: bool = False
    _settled: Decimal = Decimal(0)
    _current: Decimal = Decimal(0)
    _call: str = ""

    def add(self, call: str, model: str, usage: Usage, at: datetime | None) -> None:
        """Lines of one call repeat its usage: the last counts."""
        if not call or call != self._call:
            self._settled, self._current = self._settled + self._current, Decimal(0)
            self._call, self.calls = call, self.calls + 1
        self.model, self.last = model, usage
        when = (at or datetime.now(UTC)).date()
        cost = compute_cost(usage, self.catalog.find(model), when=when, catalog=self.catalog)
        self._current = cost.total if cost else Decimal(0)
        self.is_unpriced = self.is_unpriced or cost is None

    @property
    def usd(self) -> float | None:
        total = self._settled + self._current
        return None if self.is_unpriced and not total else float(total)


@dataclass(slots=True, kw_only=True)
class TranscriptTail:
    """A transcript that grows: reads what is new."""

    path: Path
    agent: ForeignAgent
    bill: LiveBill
    offset: int = 0
    last_at: datetime | None = None
    project: str = ""
    said: str = ""
    _reader: ForeignReader = field(init=False)

    def __post_init__(self) -> None:
        self._reader = FOREIGN_READERS[self.agent]()

    def advance(self) -> None:
        for line in scan_lines(self.path, self.offset):
            if line.fault == "half-written":
                return
            self.offset = line.offset + line.length_bytes
            if not line.fault:
                self._take(line.fields)

    def _take(self, fields: JsonFields) -> None:
        for entry in self._reader.read(fields):
            if isinstance(entry, ForeignSession):
                self.project = entry.project or self.project
            elif isinstance(entry, (ForeignInput, ForeignOutput)) and entry.conversation == MAIN_CONVERSATION:
                self.last_at = entry.at or self.last_at
                self._note(entry)

    def _note(self, entry: ForeignInput | ForeignOutput) -> None:
        if isinstance(entry, ForeignOutput) and entry.usage is not None:
            self.bill.add(entry.call, entry.model, entry.usage, entry.at)
        if isinstance(entry, ForeignInput) and entry.source != "human":
            return
        for block in entry.blocks:
            if isinstance(block, ToolUse):
                self.said = f"uses {block.name}"
            elif isinstance(block, Text) and block.text.strip():
                who = "answer" if isinstance(entry, ForeignOutput) else "prompt"
                self.said = f"{who}: {' '.join(block.text.split())[:MAX_SAID_CHARS]}"


@dataclass(slots=True, kw_only=True)
class ProxyConversation:
    """A conversation behind a proxy, from the lines of its ledger."""

    agent: str = ""
    calls: int = 0
    model: str = ""
    tokens: int = 0
    read_tokens: int = 0
    usd: Decimal = Decimal(0)
    is_unpriced: bool = False
    last_at: datetime | None = None
    said: str = ""

    def add(self, entry: JsonFields) -> None:
        self.agent = get_name(entry, "agent") or self.agent
        self.model = get_name(entry, "model") or self.model
        self.last_at = get_time(entry, "at") or self.last_at
        read = get_int(entry, "read")
        if read is not None:
            parts = ("fresh", "read", "written_5m", "written_1h")
            self.calls, self.read_tokens = self.calls + 1, read
            self.tokens = sum(get_int(entry, part) or 0 for part in parts)
        try:
            self.usd += Decimal(get_name(entry, "dollars") or "0")
        except ArithmeticError:
            self.is_unpriced = True
        cause = get_name(get_object(entry, "break"), "cause")
        self.said = f"cache break: {cause}" if cause else self.said


@dataclass(slots=True, kw_only=True)
class LedgerTail:
    """A proxy's ledger that grows."""

    path: Path
    offset: int = 0
    conversations: dict[str, ProxyConversation] = field(default_factory=dict[str, ProxyConversation])

    def advance(self) -> None:
        for line in scan_lines(self.path, self.offset):
            if line.fault == "half-written":
                return
            self.offset = line.offset + line.length_bytes
            name = get_name(line.fields, "conversation")
            if name:
                self.conversations.setdefault(name, ProxyConversation()).add(line.fields)

    @property
    def is_running(self) -> bool:
        found = _PID.search(self.path.name)
        return found is not None and is_process_alive(int(found[1]))


class LiveWatcher:
    """Looks for running sessions. `snapshot` blocks; `stream` is for one browser."""

    def __init__(self, workspace: Workspace, catalog: SessionCatalog, clock: Clock) -> None:
        self._workspace, self._sessions, self._clock = workspace, catalog, clock
        self._lock = threading.Lock()
        self._tails: dict[Path, TranscriptTail | None] = {}
        self._ledgers: dict[Path, LedgerTail] = {}

    def routes(self) -> Sequence[PageRoute]:
        return (route_get("live", lambda _: self.snapshot()),)

    def snapshot(self) -> object:
        """All running sessions, those that did something last first."""
        with self._lock:
            found = [*self._read_transcripts(), *self._read_ledgers()]
        found.sort(key=lambda one: (-(one.last_at or 0), one.key))
        return {"sessions": [asdict(one) for one in found[:MAX_LIVE]]}

    def _read_transcripts(self) -> Iterator[LiveSession]:
        since_ns = (self._clock.now() - ACTIVE_FOR).timestamp() * 1e9
        active = [item for item in self._sessions.find_files()[0] if item.modified_ns >= since_ns]
        self._tails = {item.path: self._tails[item.path] for item in active if item.path in self._tails}
        known = {str(one.report.path): one for one in reversed(self._sessions.read(0).sessions)}
        for item in sorted(active, key=lambda item: -item.modified_ns)[:MAX_LIVE]:
            tail = self._follow(item.path)
            if tail is None:
                continue
            listed = known.get(str(item.path))
            modified = datetime.fromtimestamp(item.modified_ns / 1e9, UTC)
            project = tail.project or (listed.report.project if listed else "")
            last = tail.bill.last
            yield LiveSession(
                key=listed.key if listed else "",
                source="transcript",
                state=self._choose_state(modified, is_open=_is_held(item.path)),
                agent=tail.agent,
                project=PurePath(project).name,
                model=tail.bill.model,
                calls=tail.bill.calls,
                tokens=last.prompt if last else 0,
                read_tokens=last.read if last else 0,
                usd=tail.bill.usd,
                last_at=round(modified.timestamp()),
                said=tail.said,
            )

    def _follow(self, path: Path) -> TranscriptTail | None:
        with suppress(SevenfoldError):
            if path not in self._tails:
                agent = detect_agent(path)
                bill = LiveBill(catalog=self._workspace.catalog)
                self._tails[path] = agent and TranscriptTail(path=path, agent=agent, bill=bill)
            tail = self._tails[path]
            if tail is not None:
                tail.advance()
            return tail
        return None

    def _read_ledgers(self) -> Iterator[LiveSession]:
        since = self._clock.now() - ACTIVE_FOR
        for path in sorted((self._workspace.home / PROXY_LEDGERS).glob("*.jsonl"))[-MAX_LIVE:]:
            tail = self._ledgers.setdefault(path, LedgerTail(path=path))
            try:
                modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                if not tail.is_running and modified < since:
                    continue
                tail.advance()
            except (OSError, SevenfoldError):
                continue
            for name, one in tail.conversations.items():
                if one.last_at is None or one.last_at < since:
                    continue
                yield LiveSession(
                    key=f"{path.stem}/{name}",
                    source="proxy",
                    state=self._choose_state(one.last_at, is_open=tail.is_running),
                    agent=one.agent or "unknown agent",
                    project="",
                    model=one.model,
                    calls=one.calls,
                    tokens=one.tokens,
                    read_tokens=one.read_tokens,
                    usd=float(one.usd) if one.usd or not one.is_unpriced else None,
                    last_at=round(one.last_at.timestamp()),
                    said=one.said,
                )

    def _choose_state(self, last: datetime, *, is_open: bool) -> str:
        if self._clock.now() - last < WORKING_FOR:
            return "working"
        return "open" if is_open else "idle"

    async def stream(self) -> AsyncIterator[bytes]:
        """Events for one browser, until it goes."""
        sent: dict[str, object] = {}
        poll = quiet = 0
        yield b"retry: 2000\n\n"
        while True:
            if poll % LIST_POLLS == LIST_POLLS - 1:
                self._sessions.refresh()
            news = await run_blocking(self._collect)
            changed = {name: value for name, value in news.items() if sent.get(name) != value}
            for name, value in changed.items():
                data = json.dumps(value, separators=(",", ":"))
                yield f"event: {name}\ndata: {data}\n\n".encode()
            sent |= changed
            poll, quiet = poll + 1, 0 if changed else quiet + 1
            if quiet >= KEEP_ALIVE_POLLS:
                quiet = 0
                yield b": still here\n\n"
            await asyncio.sleep(POLL_SECONDS)

    def _collect(self) -> Mapping[str, object]:
        news: dict[str, object] = {"sessions": self._sessions.read(0).number}
        with suppress(SevenfoldError):
            news["live"] = self.snapshot()
        with suppress(SevenfoldError):
            memory = self._workspace.memory
            news["memories"] = {"generation": str(memory.generation()), "waiting": len(memory.waiting())}
        return news


def _is_held(path: Path) -> bool:
    """Whether the process runs that opened this session of ours last."""
    with suppress(OSError, SevenfoldError):
        pid = read_object((path.with_suffix("") / HOLDER).read_bytes()).get("pid")
        return isinstance(pid, int) and is_process_alive(pid)
    return False
