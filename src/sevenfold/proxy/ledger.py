"""Every request that went through the proxy, with its cost and why the cache was not used.

`RequestTouch` is what the layers did to one request. `find_break` compares a request with the one before it
in its conversation. `ProxyLedger` finds that conversation, keeps the entries, and appends each to a file.
Contents and keys are in neither.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sevenfold.core.errors import StoreError
from sevenfold.core.json import Json, JsonObject, freeze_object, write_json
from sevenfold.core.prices import CATALOG, Catalog, Cost, compute_cost, compute_uncached_cost
from sevenfold.core.usage import Usage
from sevenfold.proxy.requests import RequestFacts
from sevenfold.store.files.folder import Folder

HEADER_PREFIX = "x-sevenfold-"
"""Of every header that the proxy adds to a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTouch:
    conversation: str = ""
    """As its state is filed."""
    is_changed: bool = False
    """Whether other bytes were sent than came."""
    acted: tuple[str, ...] = ()
    """Layers that decided something new."""
    saved: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens that were left out, by layer."""
    newly_saved: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of those, what would have been sent for the first time."""
    added: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens that were added, by layer; in the first request that has them."""
    cuts: tuple[str, ...] = ()
    """Changes of what was sent before that are meant."""
    failures: tuple[str, ...] = ()
    """Layers that failed, and why; what they would have done was left undone."""
    notes: tuple[str, ...] = ()
    """What else a person may want to know."""

    def to_json(self) -> JsonObject:
        fields: dict[str, object] = {
            "state": self.conversation,
            "changed": self.is_changed,
            "acted": self.acted,
            "saved": dict(self.saved),
            "added": dict(self.added),
            "cuts": self.cuts,
            "failures": self.failures,
            "notes": self.notes,
        }
        return freeze_object({key: value for key, value in fields.items() if value})

    def make_headers(self) -> list[tuple[bytes, bytes]]:
        """For the response: clients pass them on to whoever looks."""
        named: dict[str, Json] = {
            "conversation": self.conversation,
            "changed": "yes" if self.is_changed else "no",
            "layers": ", ".join(self.acted),
            "saved-tokens": str(sum(self.saved.values()) or ""),
            "cut": "; ".join(self.cuts),
            "failed": "; ".join(self.failures),
        }
        return [
            (f"{HEADER_PREFIX}{name}".encode(), _plain(str(value))) for name, value in named.items() if value
        ]


NO_TOUCH = RequestTouch()


def _plain(text: str) -> bytes:
    """As a header may hold it."""
    return " ".join(text.split()).encode("ascii", "replace")[:500]


DEFAULT_LIFETIME = timedelta(minutes=5)
"""How long a prompt stays cached unless the request asks for more."""
LONG_LIFETIME = timedelta(hours=1)
AUTOMATIC_LIFETIME = timedelta(minutes=30)
"""Where the provider caches by itself."""
MIN_BROKEN_TOKENS = 1_024
"""Less than the smallest prompt that is cached at all is no break."""
MAX_TRACKED_CONVERSATIONS = 500
"""That are remembered, the last ones; an older one begins anew."""

MOVED_BLOCK = "the agent put a block with the time into another message"


@dataclass(frozen=True, slots=True)
class LostPrefix:
    """Tokens that the request before had cached and this one was billed for again."""

    cause: str
    lost_tokens: int
    is_cut: bool = False
    """Whether somebody meant it: a layer, or the client by compacting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTarget:
    """Where a request was sent to."""

    method: str = ""
    path: str = ""
    """Without the query."""
    host: str = ""
    error: str = ""
    """Why no response came."""
    first_byte: timedelta = timedelta()
    """Between the request and the first byte of the response's body."""
    number: int = 0
    """Under which the request was written down before it was sent; 0: it was not."""

    def __str__(self) -> str:
        return f"{self.method} {self.path} at {self.host}"


NO_TARGET = RequestTarget()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyEntry:
    """One request."""

    at: datetime
    agent: str
    conversation: str
    facts: RequestFacts
    status: int
    usage: Usage | None = None
    """None where the response named none."""
    cost: Cost | None = None
    """None where nothing was billed, or no price is known."""
    cost_without_caching: Cost | None = None
    cache_break: LostPrefix | None = None
    touch: RequestTouch = NO_TOUCH
    target: RequestTarget = NO_TARGET

    @property
    def is_unreachable(self) -> bool:
        """Whether the server that it was for gave no answer at all."""
        return bool(self.target.error)

    def to_json(self) -> JsonObject:
        facts, usage, lost = self.facts, self.usage, self.cache_break
        fields: dict[str, Json] = {
            "at": self.at.isoformat(),
            "agent": self.agent or None,
            "conversation": self.conversation or None,
            "purpose": facts.purpose,
            "model": facts.model or None,
            "status": self.status,
            "method": self.target.method or None,
            "path": self.target.path or None,
            "host": self.target.host or None,
            "error": self.target.error or None,
            "first_byte_ms": round(self.target.first_byte.total_seconds() * 1000),
            "dollars": None if self.cost is None else str(self.cost.total),
            "dollars_without_caching": (
                None if self.cost_without_caching is None else str(self.cost_without_caching.total)
            ),
            "break": None
            if lost is None
            else JsonObject(
                {
                    "cause": lost.cause,
                    "lost_tokens": lost.lost_tokens,
                    **({"is_cut": True} if lost.is_cut else {}),
                }
            ),
            "layers": self.touch.to_json() if self.touch is not NO_TOUCH else None,
            "request": self.target.number or None,
        }
        if usage is not None:
            names = ("fresh", "read", "written_5m", "written_1h", "output")
            fields |= {name: getattr(usage, name) for name in names}
        return JsonObject({key: value for key, value in fields.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Previous:
    """The last request of a conversation."""

    name: str
    at: datetime
    facts: RequestFacts
    usage: Usage | None
    lifetime: timedelta = DEFAULT_LIFETIME
    """Of what it has in the cache."""

    @property
    def cached_tokens(self) -> int:
        """What a request that goes on from here finds in the cache."""
        usage = self.usage
        if usage is None:
            return 0
        # A provider that caches by itself keeps the whole prompt, and need not say so.
        return usage.read + usage.written if self.facts.wire == "messages" else usage.prompt


def find_break(previous: RequestFacts, current: RequestFacts) -> str:
    """Where a request differs from what the one before it had cached; empty: it goes on from there."""
    if previous.model != current.model:
        return f"the model changed from {previous.model} to {current.model}"
    if previous.tools != current.tools:
        return "the tools changed"
    if previous.system != current.system:
        return "the system prompt changed"
    pairs = enumerate(zip(previous.messages, current.messages, strict=False))
    at = next((index for index, (one, other) in pairs if one != other), None)
    if at is not None:
        return f"message {at + 1} of {len(current.messages)} changed"
    if len(current.messages) < len(previous.messages):
        return "messages were left out"
    return MOVED_BLOCK if previous.moved != current.moved else ""


@dataclass(slots=True, kw_only=True)
class ProxyLedger:
    """Entries in the order of the responses. Safe to use from several threads."""

    folder: Folder | None = None
    """Where the file is; None: nowhere."""
    name: str = "requests.jsonl"
    catalog: Catalog = CATALOG
    watch: Callable[[ProxyEntry], None] | None = None
    """Told of each entry."""
    entries: list[ProxyEntry] = field(default_factory=list[ProxyEntry])
    write_error: str = ""
    """Why the file lacks entries, if it does."""
    _conversations: OrderedDict[str, _Previous] = field(default_factory=OrderedDict[str, _Previous])
    _begun: int = 0
    _sent: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, at: datetime, agent: str) -> int:
        """Write down that a request goes out, before it does; its number, for its target. Blocks.

        Whatever is killed then, the file says that a request has no bill.
        """
        with self._lock:
            self._sent += 1
            self._write(JsonObject({"sent": self._sent, "at": at.isoformat(), "agent": agent}))
            return self._sent

    def add(
        self,
        *,
        at: datetime,
        agent: str,
        client: str,
        facts: RequestFacts,
        status: int,
        usage: Usage | None,
        touch: RequestTouch = NO_TOUCH,
        target: RequestTarget = NO_TARGET,
    ) -> ProxyEntry:
        """Book one request. `client` tells apart those who share neither conversations nor caches."""
        with self._lock:
            previous = self._find_previous(client, facts)
            entry = ProxyEntry(
                at=at,
                agent=agent,
                conversation=previous.name if previous else self._begin(facts),
                facts=facts,
                status=status,
                usage=usage,
                cost=self._price(compute_cost, facts, usage, at),
                cost_without_caching=self._price(compute_uncached_cost, facts, usage, at),
                cache_break=_explain(previous, at, facts, usage, touch),
                touch=touch,
                target=target,
            )
            if facts.is_model_call and usage is not None:
                self._remember(client, entry)
            # Digests of messages are for finding the next request, and are kept once a conversation.
            entry = replace(entry, facts=replace(facts, messages=()))
            self.entries.append(entry)
            self._write(entry.to_json())
        if self.watch is not None:
            self.watch(entry)
        return entry

    def _price(
        self, price: Callable[..., Cost | None], facts: RequestFacts, usage: Usage | None, at: datetime
    ) -> Cost | None:
        if usage is None:
            return None
        return price(usage, self.catalog.find(facts.model), when=at.date(), catalog=self.catalog)

    def _find_previous(self, client: str, facts: RequestFacts) -> _Previous | None:
        """By the session that the headers name; else the conversation of the same client that this request
        goes on from."""
        if not facts.is_model_call:
            return None
        if facts.session:
            return self._conversations.get(_key(client, facts, facts.session))
        start = _key(client, facts, "")
        alike = [one for key, one in self._conversations.items() if key.startswith(start)]
        ranked = [(rank, one) for one in alike if (rank := _rank(one.facts, facts)) is not None]
        return max(ranked, key=lambda pair: pair[0], default=(0, None))[1]

    def _begin(self, facts: RequestFacts) -> str:
        if not facts.is_model_call:
            return ""
        self._begun += 1
        return f"c{self._begun}"

    def _remember(self, client: str, entry: ProxyEntry) -> None:
        facts = entry.facts
        key = _key(client, facts, facts.session or entry.conversation)
        known = self._conversations.get(key)
        lifetime = _find_lifetime(entry, known.lifetime if known else DEFAULT_LIFETIME)
        self._conversations[key] = _Previous(
            name=entry.conversation, at=entry.at, facts=facts, usage=entry.usage, lifetime=lifetime
        )
        self._conversations.move_to_end(key)
        if len(self._conversations) > MAX_TRACKED_CONVERSATIONS:
            self._conversations.popitem(last=False)

    def _write(self, fields: JsonObject) -> None:
        if self.folder is None:
            return
        try:
            # What did not fit may have left a part of a line.
            line = (b"\n" if self.write_error else b"") + write_json(fields) + b"\n"
            self.folder.append(self.name, line, durable=False)
        except StoreError as error:
            self.write_error = str(error)


def _key(client: str, facts: RequestFacts, session: str) -> str:
    """A side request has its own prompt, and is never joined with the conversation that it is about."""
    kind = "turn" if facts.purpose in ("turn", "compaction") else facts.purpose
    return f"{client}|{kind}|{session}"


def _rank(previous: RequestFacts, current: RequestFacts) -> tuple[bool, bool, int] | None:
    """How well a request goes on from another; None: it is of another conversation.

    With the same system prompt and tools it goes on from all messages, or one of them changed behind an
    answer that both have. With others it goes on from all messages, an answer among them.
    """
    pairs = zip(previous.messages, current.messages, strict=False)
    shared = next(
        (at for at, (one, other) in enumerate(pairs) if one != other),
        min(len(previous.messages), len(current.messages)),
    )
    goes_on = shared == len(previous.messages)
    is_same = (previous.system, previous.tools) == (current.system, current.tools)
    is_longer = len(current.messages) > len(previous.messages)
    is_known = goes_on if is_same else goes_on and is_longer and shared > 1
    return (is_same and goes_on, is_same, shared) if is_known or (is_same and shared > 1) else None


def _find_lifetime(entry: ProxyEntry, before: timedelta) -> timedelta:
    """How long what a request left in the cache stays there; one that wrote nothing changes nothing."""
    if entry.facts.wire != "messages":
        return AUTOMATIC_LIFETIME
    if entry.usage is None or not entry.usage.written:
        return before
    return LONG_LIFETIME if entry.usage.written_1h else DEFAULT_LIFETIME


def _explain(
    previous: _Previous | None, at: datetime, facts: RequestFacts, usage: Usage | None, touch: RequestTouch
) -> LostPrefix | None:
    """What a request lost of what the one before it had cached, and why."""
    if previous is None or previous.usage is None or usage is None:
        return None
    lost = previous.cached_tokens - usage.read
    if lost < MIN_BROKEN_TOKENS:
        return None
    if previous.facts.purpose == "compaction" and facts.purpose == "turn":
        return LostPrefix("the client compacted its conversation", lost, is_cut=True)
    if touch.cuts:
        return LostPrefix("; ".join(touch.cuts), lost, is_cut=True)
    difference = find_break(previous.facts, facts)
    pause = at - previous.at
    if not difference and pause > previous.lifetime:
        difference = f"{pause.total_seconds() / 60:.0f} minutes passed"
    return LostPrefix(difference or "unexplained", lost)
