"""What the layers decided in each conversation, on disk, so that a restart of the proxy changes no byte.

A conversation is a file of JSON lines, which only grows: each request with the digests of its messages and
what was decided for it, and each answer with its size. A decision is durable before the request is sent that
carries it. `ConversationState` is what the lines say together; `StateStore` finds the conversation that a
request belongs to, in memory or on disk.

Texts that were added and what stands in for results are in these files. Messages and keys are not: a message
is a digest, and a client is a digest of its key with a random salt.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from hashlib import blake2b
from secrets import token_bytes, token_urlsafe

from sevenfold.core.errors import FileExists, FileMissing, StoreError, WireError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.messages import Message
from sevenfold.proxy.requests import RequestFacts
from sevenfold.store.files.folder import Folder

STATE_FOLDER, RUNS_FOLDER, SALT_FILE = "state", "runs", "salt"
MAX_STATE_BYTES = 32 * 1024 * 1024
MAX_LOADED_STATES = 200
"""Conversations in memory; the others are read again when they go on."""
MAX_ALIKE = 100
"""Conversations of one client, system prompt and tools that are read from disk for a request, the newest."""
MAX_KNOWN_BEGINNINGS = 10_000
"""Conversations that are not in memory, but of which it is known how they begin."""
STATE_LIFE = timedelta(days=30)
"""Since the last request of a conversation."""

STATE_LOST = "the state of this conversation is lost: earlier messages are forwarded as they came"


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that was sent, as far as later decisions depend on it."""

    messages: int
    started: datetime
    tokens: int = 0
    """Of its prompt, as billed; 0: nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What was decided for one request, all of it sent again with every later one."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """By the key of the message that each stands behind."""
    results: Mapping[str, str] = field(default_factory=dict[str, str])
    """What stands in for large results, by tool use."""
    cleared: Mapping[str, str] = field(default_factory=dict[str, str])
    """What stands in for old results, by tool use."""
    depth: int | None = None
    """How many of the oldest tool uses the provider clears; None: as many as before."""
    excluded: tuple[str, ...] = ()
    """Tools whose results the provider keeps."""
    reach: str = ""
    """The key of the last message with a result that the provider clears."""
    boundary: str = ""
    """The key of the last message that a compaction leaves out."""
    head: str = ""
    """What stands in for those messages."""
    saved_tokens: int = 0
    rewrite_tokens: int = 0
    """Of a clearing."""

    @property
    def is_empty(self) -> bool:
        return self == NO_DECISIONS

    @property
    def is_cut(self) -> bool:
        """Whether it changes what was sent before."""
        return bool(self.cleared or self.depth is not None or self.boundary)

    def to_json(self) -> dict[str, Json]:
        fields: dict[str, Json] = {
            "texts": JsonObject(dict(self.texts)),
            "results": JsonObject(dict(self.results)),
            "cleared": JsonObject(dict(self.cleared)),
            "depth": self.depth,
            "excluded": self.excluded,
            "reach": self.reach,
            "boundary": self.boundary,
            "head": self.head,
            "saved": self.saved_tokens,
            "rewritten": self.rewrite_tokens,
        }
        return {key: value for key, value in fields.items() if value or (key == "depth" and value == 0)}

    @classmethod
    def from_json(cls, line: JsonObject) -> Decisions:
        depth, excluded = line.get("depth"), line.get("excluded")
        return cls(
            texts=_texts(line.get("texts")),
            results=_texts(line.get("results")),
            cleared=_texts(line.get("cleared")),
            depth=depth if isinstance(depth, int) else None,
            excluded=tuple(map(str, excluded)) if isinstance(excluded, tuple) else (),
            reach=str(line.get("reach") or ""),
            boundary=str(line.get("boundary") or ""),
            head=str(line.get("head") or ""),
            saved_tokens=_count(line.get("saved")),
            rewrite_tokens=_count(line.get("rewritten")),
        )


NO_DECISIONS = Decisions()


def _make_set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass(slots=True, kw_only=True)
class ConversationState:
    """One conversation: what its requests held, and what was decided in it."""

    name: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    is_loaded: bool = False
    """Whether its file was read."""
    is_answered: threading.Event = field(default_factory=_make_set_event)
    """Not set while a request is on its way."""
    keys: tuple[str, ...] = ()
    """Of the messages of the last request."""
    texts: dict[str, str] = field(default_factory=dict[str, str])
    results: dict[str, str] = field(default_factory=dict[str, str])
    cleared: dict[str, str] = field(default_factory=dict[str, str])
    depth: int = 0
    excluded: tuple[str, ...] = ()
    reach: str = ""
    boundary: str = ""
    head: str = ""
    compacted_tokens: int = 0
    """About what the head is shorter than the messages that it stands for."""
    is_marked: bool = False
    """Whether the last request was given a breakpoint."""
    shared: int = 0
    """How many messages of its first request another conversation has sent."""
    requests: list[SeenRequest] = field(default_factory=list[SeenRequest])
    """Since the prefix last changed by itself."""
    steps: list[Decisions] = field(default_factory=list[Decisions])
    """One a request."""
    is_refused: bool = False
    """The provider has refused a changed request, and taken the original; in memory alone."""
    is_damaged: bool = False
    size_bytes: int = 0
    is_torn: bool = False
    """The last line was not written to its end."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """Tokens that each stand-in saves; in memory alone."""
    messages: list[Message] = field(default_factory=list[Message])
    """Of the last request; in memory alone."""
    extra: dict[str, object] = field(default_factory=dict[str, object])
    """What layers keep in memory and can make again."""

    @property
    def is_new(self) -> bool:
        return not self.keys

    def count_shared(self, keys: Sequence[str]) -> int:
        """How many messages at the beginning are those of the last request."""
        return next(
            (at for at, (one, other) in enumerate(zip(self.keys, keys, strict=False)) if one != other),
            min(len(self.keys), len(keys)),
        )

    def continues(self, keys: Sequence[str]) -> bool:
        """Whether these messages go on from the last request."""
        return self.count_shared(keys) == len(self.keys)

    def take(self, line: JsonObject) -> None:
        """Apply one line of the file."""
        match line.get("kind"):
            case "request":
                self._take_request(line)
            case "answer" if self.requests:
                last = self.requests[-1]
                self.requests[-1] = SeenRequest(last.messages, last.started, _count(line.get("tokens")))
            case "fork":
                self.texts |= _texts(line.get("texts"))
                self.results |= _texts(line.get("results"))
                self.cleared |= _texts(line.get("cleared"))
                self.shared = _count(line.get("shared"))
            case _:
                pass

    def _take_request(self, line: JsonObject) -> None:
        kept, added = _count(line.get("keep")), line.get("add")
        if kept < len(self.keys):
            # The client has changed what it sent: what was counted so far is of another prompt.
            self.requests, self.steps = [], []
            self.extra.clear()
        new = tuple(map(str, added)) if isinstance(added, tuple) else ()
        self.keys = (*self.keys[:kept], *new)
        decided = Decisions.from_json(line)
        self.texts |= decided.texts
        self.results |= decided.results
        self.cleared |= decided.cleared
        if decided.depth is not None:
            self.depth, self.excluded, self.reach = decided.depth, decided.excluded, decided.reach
        elif self.reach and self.reach not in self.keys:
            self.depth, self.excluded, self.reach = 0, (), ""
        if decided.boundary:
            self.boundary, self.head = decided.boundary, decided.head
            self.compacted_tokens = decided.saved_tokens
        elif self.boundary and self.boundary not in self.keys:
            self.boundary = self.head = ""
        self.is_marked, self.is_damaged = line.get("marked") is True, False
        self.requests.append(SeenRequest(len(self.keys), _moment(line.get("at"))))
        self.steps.append(decided)


class StateStore:
    """All conversations. For any thread; a conversation is used under its own lock."""

    def __init__(self, folder: Folder | None) -> None:
        self._folder = folder.subfolder(STATE_FOLDER) if folder is not None else None
        self._loaded: OrderedDict[str, ConversationState] = OrderedDict()
        self._beginnings: OrderedDict[str, str] = OrderedDict()
        """Of conversations that were in memory once: the key of the first message."""
        self._lock = threading.Lock()  # for these two, and never while a file is read or written
        self._salt = _read_salt(self._folder)

    def identify(self, key: str, user_agent: str) -> str:
        """Who a request comes from: by its key, which is not kept, and by how the client calls itself."""
        return f"{self._digest(key)} {user_agent}"

    def find(self, client: str, facts: RequestFacts, keys: Sequence[str]) -> ConversationState:
        """The conversation of a request; one that goes on from the beginning of another has what was decided
        for that beginning."""
        if facts.session:
            # Headers name it: neither the system prompt nor the version of the client matters.
            return self._get(self._digest(f"{client.partition(' ')[0]}|{facts.session}"))
        group = self._digest(f"{client}|{facts.system}|{facts.tools}")
        alike = self._list_loaded(group, keys)
        found = _find_longest(alike, keys)
        if found is None:
            alike += [self._get(name) for name in self._list_stored(group, keys)]
            found = _find_longest(alike, keys)
        if found is not None:
            return self._get(found.name)
        made = self._get(f"{group}-{token_urlsafe(6).replace('-', '_')}")
        nearest = max(alike, key=lambda one: one.count_shared(keys), default=None)
        if nearest is not None:
            self._fork(made, nearest, keys)
        return made

    def record(self, state: ConversationState, line: Mapping[str, Json], *, is_durable: bool) -> None:
        """Write a line and apply it. `StoreError`: nothing of it holds. Hold the lock of the conversation."""
        frozen = freeze_object(line)
        if self._folder is not None:
            data = (b"\n" if state.is_torn else b"") + write_json(frozen) + b"\n"
            state.size_bytes = self._folder.append(_file_of(state.name), data, durable=is_durable)
            state.is_torn = False
        state.take(frozen)

    def refresh(self, state: ConversationState) -> None:
        """Take in what another process has written. Hold the lock of the conversation."""
        if self._folder is None:
            return
        found = self._folder.stat(_file_of(state.name))
        size = found.size_bytes if found else 0
        if size != state.size_bytes:
            self._load(state)

    def prune(self, now: datetime) -> int:
        """Remove conversations that ended long ago; how many."""
        return 0 if self._folder is None else _prune(self._folder, (".jsonl", ".damaged"), now)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.close()

    def _digest(self, text: str) -> str:
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=12).hexdigest()

    def _get(self, name: str) -> ConversationState:
        with self._lock:
            state = self._loaded.get(name)
            if state is None:
                state = self._loaded[name] = ConversationState(name=name)
            self._loaded.move_to_end(name)
            while len(self._loaded) > MAX_LOADED_STATES:
                self._forget(*self._loaded.popitem(last=False))
        if not state.is_loaded:
            with state.lock:
                if not state.is_loaded:
                    self._load(state)
                    state.is_loaded = True
        return state

    def _forget(self, name: str, state: ConversationState) -> None:
        if state.keys:
            self._beginnings[name] = state.keys[0]
            self._beginnings.move_to_end(name)
            while len(self._beginnings) > MAX_KNOWN_BEGINNINGS:
                self._beginnings.popitem(last=False)

    def _list_loaded(self, group: str, keys: Sequence[str]) -> list[ConversationState]:
        """Conversations in memory that begin as this one does."""
        with self._lock:
            states = [state for name, state in self._loaded.items() if name.startswith(group)]
        # Another request may be reading one of them right now.
        read = (state if state.is_loaded else self._get(state.name) for state in states)
        return [state for state in read if state.count_shared(keys)]

    def _list_stored(self, group: str, keys: Sequence[str]) -> list[str]:
        """Conversations on disk that may begin as this one does, the newest last."""
        if self._folder is None:
            return []
        files = (name for name in self._folder.names() if name.startswith(group) and name.endswith(".jsonl"))
        names = [name.removesuffix(".jsonl") for name in files]
        with self._lock:
            known = {name: self._beginnings.get(name, keys[0]) for name in names if name not in self._loaded}
        maybe = [name for name, first in known.items() if first == keys[0]]
        if len(maybe) <= MAX_ALIKE:
            return maybe
        found = ((self._folder.stat(_file_of(name)), name) for name in maybe)
        dated = sorted((seen.modified_ns, name) for seen, name in found if seen is not None)
        return [name for _, name in dated[-MAX_ALIKE:]]

    def _load(self, state: ConversationState) -> None:
        fresh = ConversationState(name=state.name)
        if self._folder is not None:
            try:
                _fold(fresh, self._folder.read(_file_of(state.name), max_bytes=MAX_STATE_BYTES))
            except FileMissing:
                pass
            except (StoreError, WireError, ValueError):
                fresh = ConversationState(name=state.name, is_damaged=True)
                self._set_aside(self._folder, state.name)
        for one in fields(ConversationState):
            if one.name not in ("lock", "is_loaded", "is_answered", "is_refused"):
                setattr(state, one.name, getattr(fresh, one.name))

    def _set_aside(self, folder: Folder, name: str) -> None:
        """Keep a file that cannot be read, for whoever wants to know why, out of the way."""
        aside = f"{name}.damaged"
        with suppress(StoreError):
            folder.remove(aside)
        with suppress(StoreError):
            folder.move(_file_of(name), aside)

    def _fork(self, made: ConversationState, nearest: ConversationState, keys: Sequence[str]) -> None:
        shared = nearest.count_shared(keys)
        if shared:
            line: dict[str, Json] = {"kind": "fork", "shared": shared}
            for name in ("texts", "results", "cleared"):
                own: dict[str, str] = getattr(nearest, name)
                line[name] = freeze_object(
                    {key: text for key, text in own.items() if key.partition("/")[0] in keys[:shared]}
                )
            self.record(made, line, is_durable=True)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What the path of a run stands for."""

    agent: str
    project: str
    records_only: bool = False


class RunStore:
    """The runs, by a digest of their token, so that a restarted proxy still knows them."""

    def __init__(self, folder: Folder | None) -> None:
        self._folder = folder.subfolder(RUNS_FOLDER) if folder is not None else None

    def write(self, token: str, run: StoredRun) -> None:
        if self._folder is not None:
            fields = {"agent": run.agent, "project": run.project, "records_only": run.records_only}
            self._folder.replace(_run_file(token), write_json(JsonObject(fields)))

    def read(self, token: str) -> StoredRun | None:
        if self._folder is None:
            return None
        try:
            found = read_object(self._folder.read(_run_file(token), max_bytes=64 * 1024))
        except (StoreError, WireError):
            return None
        return StoredRun(
            str(found.get("agent") or ""),
            str(found.get("project") or ""),
            found.get("records_only") is True,
        )

    def prune(self, now: datetime) -> int:
        """Remove runs that were begun long ago; how many."""
        return 0 if self._folder is None else _prune(self._folder, ".json", now)

    def remove(self, token: str) -> None:
        if self._folder is not None:
            with suppress(StoreError):
                self._folder.remove(_run_file(token), durable=False)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.close()


def _find_longest(states: Sequence[ConversationState], keys: Sequence[str]) -> ConversationState | None:
    """The conversation that these messages go on from."""
    found = [one for one in states if one.keys and one.continues(keys)]
    return max(found, key=lambda one: len(one.keys), default=None)


def _prune(folder: Folder, endings: str | tuple[str, ...], now: datetime) -> int:
    oldest, removed = (now - STATE_LIFE).timestamp() * 1e9, 0
    for name in folder.names():
        found = folder.stat(name) if name.endswith(endings) else None
        if found is not None and found.modified_ns < oldest:
            with suppress(FileMissing):
                folder.remove(name, durable=False)
                removed += 1
    return removed


def _run_file(token: str) -> str:
    return f"{blake2b(token.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}.json"


def _read_salt(folder: Folder | None) -> bytes:
    """The same for all processes, so that each knows the conversations of the others."""
    if folder is None:
        return token_bytes(16)
    with suppress(FileExists):
        if folder.stat(SALT_FILE) is None:
            folder.create(SALT_FILE, token_bytes(16))
    return folder.read(SALT_FILE, max_bytes=64)[:16]


def _fold(state: ConversationState, data: bytes) -> None:
    """Apply all lines of a file; `WireError` where one cannot be read that was written whole."""
    state.size_bytes = len(data)
    *lines, rest = data.split(b"\n")
    state.is_torn = bool(rest)
    for line in lines:
        # A writer that died within a line had not sent what the line is about.
        is_torn = line.startswith(b'{"kind":') and not line.endswith(b"}")
        if line and not is_torn:
            state.take(read_object(line))


def _file_of(name: str) -> str:
    return f"{name}.jsonl"


def _texts(value: Json) -> dict[str, str]:
    return {key: str(text) for key, text in value.items()} if isinstance(value, JsonObject) else {}


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _moment(value: Json) -> datetime:
    return datetime.fromisoformat(str(value))
