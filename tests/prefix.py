"""No test may move the cached prefix unannounced: what every test sends is compared, request after request.

Views of the engine, and everything that goes through a provider, are noted while a test runs and compared
when it is over, with the cache model alone and none of the code under test: of that, only the cuts it
announced are asked for. Where the simulator answered, what came over the wire is compared too. A test that
moves the prefix on purpose says so: `@pytest.mark.moves_prefix(reason="…")`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import pytest

from sevenfold.core.cache.prompt_cache import (
    PromptDifference,
    PromptLevel,
    RenderedPrompt,
    find_first_difference,
    render_prompt,
)
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.json import Json, JsonObject, freeze
from sevenfold.core.messages import Message, write_message
from sevenfold.core.requests import ModelRequest, ModelResponse

if TYPE_CHECKING:
    from sevenfold.core.requests import Cut, PreparedRequest
    from sevenfold.session.cache.breakpoints import RequestBuilder
    from sevenfold.simulator.ledger import RequestRecord, RequestRecords

MAIN = "main"
RECENT = 4
"""Requests of the main conversation that a fork may have started from, while it went on."""

Send: TypeAlias = Callable[..., Awaitable[ModelResponse]]


@dataclass(slots=True, kw_only=True)
class Noted:
    """One request of a test."""

    owner: int
    """Which request path made it, or which provider was sent it."""
    request: ModelRequest
    cuts: tuple[Cut, ...] = ()
    is_view: bool = False
    reply_id: str | None = None
    prompt: RenderedPrompt | None = None
    view: Noted | None = None
    """The view that was sent with it; None for what no request path made."""


@dataclass(slots=True)
class SentRequests:
    """The requests that another one may go on from."""

    tips: list[Noted] = field(default_factory=list[Noted])
    recent: list[Noted] = field(default_factory=list[Noted])


class PrefixGuard:
    """Notes what one test sends, and says what moved."""

    def __init__(self) -> None:
        self.noted: list[Noted] = []
        self.wires: dict[str, RenderedPrompt] = {}
        self._kept: list[object] = []
        self._written: dict[int, Json] = {}

    @contextmanager
    def installed(self) -> Generator[None]:
        """Watch over everything that is sent meanwhile. A room that no test imports is not loaded for it."""
        with pytest.MonkeyPatch.context() as patch:
            if "sevenfold.session.cache.breakpoints" in sys.modules:
                from sevenfold.session.cache.breakpoints import RequestBuilder

                patch.setattr(RequestBuilder, "hand_out", self._noting_views(RequestBuilder.hand_out))
            if "sevenfold.simulator.ledger" in sys.modules:
                from sevenfold.simulator.ledger import RequestRecords

                patch.setattr(RequestRecords, "add", self._noting_wires(RequestRecords.add))
            for provider in provider_classes():
                patch.setattr(provider, "send", self._noting_sends(provider.send))
            yield

    def _noting_views(
        self, hand_out: Callable[[RequestBuilder], PreparedRequest]
    ) -> Callable[[RequestBuilder], PreparedRequest]:
        @functools.wraps(hand_out)
        def wrapped(builder: RequestBuilder) -> PreparedRequest:
            view = hand_out(builder)
            self._note(builder, view.request, view.cuts, is_view=True)
            return view

        return wrapped

    def _noting_sends(self, send: Send) -> Send:
        @functools.wraps(send)
        async def wrapped(
            provider: object, request: ModelRequest, *args: object, **named: object
        ) -> ModelResponse:
            noted = self._note(provider, request)
            reply = await send(provider, request, *args, **named)
            noted.reply_id = reply.id
            return reply

        return wrapped

    def _noting_wires(self, add: Callable[[RequestRecords, str, RequestRecord], None]) -> Callable[..., None]:
        @functools.wraps(add)
        def wrapped(records: RequestRecords, message_id: str, record: RequestRecord) -> None:
            self.wires[message_id] = record.sent
            add(records, message_id, record)

        return wrapped

    def _note(
        self, owner: object, request: ModelRequest, cuts: Sequence[Cut] = (), *, is_view: bool = False
    ) -> Noted:
        # Kept, so that no later object gets the same id.
        self._kept.append(owner)
        noted = Noted(owner=id(owner), request=request, cuts=tuple(cuts), is_view=is_view)
        self.noted.append(noted)
        return noted

    def violations(self) -> list[str]:
        """What moved, each in a line; empty when nothing did."""
        views = [item for item in self.noted if item.is_view]
        sent = [item for item in self.noted if not item.is_view]
        made = {id(view.request.messages): view for view in views}
        for item in sent:
            item.view = made.get(id(item.request.messages))
        return [*self._moved_views(views), *self._moved_sends(sent), *self._moved_wires(sent)]

    def _moved_views(self, views: Sequence[Noted]) -> Iterator[str]:
        """Each view must go on from the last of the same path, but for what its cuts explain."""
        last: dict[int, Noted] = {}
        for noted in views:
            before = last.get(noted.owner)
            last[noted.owner] = noted
            found = self._difference(before, noted) if before else None
            if found is not None and not is_announced(found, noted.cuts):
                yield told("a view", noted.request, found)

    def _moved_sends(self, sent: Sequence[Noted]) -> Iterator[str]:
        """What no path made must go on from something that was sent before, unless it shares nothing."""
        conversations: dict[tuple[int, str], SentRequests] = {}
        for noted in sent:
            own = conversations.setdefault((noted.owner, noted.request.purpose), SentRequests())
            if noted.view is None:
                main = conversations.setdefault((noted.owner, MAIN), SentRequests())
                yield from self._moved_send(noted, own, main)
            own.recent = [*own.recent, noted][-RECENT:]

    def _moved_send(self, noted: Noted, own: SentRequests, main: SentRequests) -> Iterator[str]:
        bases = [*reversed(own.tips), *(() if own is main else reversed(main.recent))]
        found = [(base, self._difference(base, noted)) for base in bases]
        base = next((item for item, difference in found if difference is None), None)
        own.tips = [*(tip for tip in own.tips if tip is not base), noted]
        if base is not None:
            yield from self._moved_wire(base, noted)
            return
        if own is not main:
            found = [(item, difference) for item, difference in found if reads_from(noted, item)]
        related = [difference for item, difference in found if difference and self._is_related(item, noted)]
        if related:
            yield told("a request", noted.request, max(related, key=lambda item: item.index))

    def _moved_wires(self, sent: Sequence[Noted]) -> Iterator[str]:
        """What went over the wire must go on wherever the views did."""
        last: dict[tuple[int, int], Noted] = {}
        for noted in sent:
            if noted.view is None:
                continue
            key = (noted.view.owner, noted.owner)
            before = last.get(key)
            last[key] = noted
            if before is not None and self._difference(before, noted) is None:
                yield from self._moved_wire(before, noted)

    def _moved_wire(self, before: Noted, noted: Noted) -> Iterator[str]:
        earlier, later = self.wires.get(before.reply_id or ""), self.wires.get(noted.reply_id or "")
        found = find_first_difference(earlier, later) if earlier and later else None
        if found is not None:
            yield told("a body on the wire", noted.request, found)

    def _difference(self, before: Noted, noted: Noted) -> PromptDifference | None:
        return find_first_difference(self._prompt(before), self._prompt(noted, self._prompt(before)))

    def _prompt(self, noted: Noted, after: RenderedPrompt | None = None) -> RenderedPrompt:
        if noted.prompt is None:
            noted.prompt = render_prompt(self._body(noted.request), _no_tokens, after=after)
        return noted.prompt

    def _body(self, request: ModelRequest) -> JsonObject:
        frame = request.frame
        wires = tuple(self._wire(message) for message in request.messages)
        named = {"model": frame.model, "system": frame.system, "tools": frame.tools, "messages": wires}
        return JsonObject({**frame.params, **named})

    def _wire(self, message: Message) -> Json:
        wire = self._written.get(id(message))
        if wire is None:
            wire = self._written[id(message)] = freeze(write_message(message))
        return wire

    def _is_related(self, before: Noted, noted: Noted) -> bool:
        """Whether both have a message's block in common; where nothing is shared, a conversation began."""
        return not _said(self._prompt(before)).isdisjoint(_said(self._prompt(noted)))


class Sending(Protocol):
    """A provider's class."""

    send: Send


def provider_classes() -> tuple[type[Sending], ...]:
    """Every class of `providers` that sends, once some test has imported that package at all."""
    package = sys.modules.get("sevenfold.providers")
    return _find_provider_classes(package) if package else ()


@functools.lru_cache(maxsize=1)
def _find_provider_classes(package: ModuleType) -> tuple[type[Sending], ...]:
    """Looked for once, because every test asks for them."""
    return tuple(_read_provider_classes(package))


def _read_provider_classes(package: ModuleType) -> Iterator[type[Sending]]:
    for found in pkgutil.iter_modules(package.__path__):
        try:
            module = importlib.import_module(f"sevenfold.providers.{found.name}")
        except ImportError:
            # Its SDK is not installed, so no test can send with it either.
            continue
        for thing in vars(module).values():
            if not isinstance(thing, type) or thing.__module__ != module.__name__:
                continue
            if inspect.iscoroutinefunction(vars(thing).get("send")) and thing.__name__ != "Provider":
                yield cast("type[Sending]", thing)


def reads_from(noted: Noted, base: Noted) -> bool:
    """Whether a fork means to read what another request wrote: it marks one of the same messages."""
    theirs = {(mark.index, mark.block) for mark in base.request.breakpoints if mark.level == "messages"}
    own = {(mark.index, mark.block) for mark in noted.request.breakpoints if mark.level == "messages"}
    return not own.isdisjoint(theirs)


def is_announced(found: PromptDifference, cuts: Sequence[Cut]) -> bool:
    """Whether some cut was announced at or before the message that differs."""
    if not cuts:
        return False
    first = min(cut.first for cut in cuts)
    if found.cause == "message":
        return first <= int(found.path.split(".")[1])
    # That a request cites something follows from its messages.
    return first < 0 or found.path in {"citations"}


def told(what: str, request: ModelRequest, found: PromptDifference) -> str:
    return (
        f"{what} of {request.purpose!r} moved the prefix at {found.path} ({found.cause}) and no cut says so"
    )


def _said(prompt: RenderedPrompt) -> set[int]:
    placed = (block for block in prompt.blocks if block.level == "messages")
    return {hash((block.role, block.wire.without(CACHE_CONTROL))) for block in placed}


def _no_tokens(level: PromptLevel, block: JsonObject) -> int:
    return 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    marker = item.get_closest_marker("moves_prefix")
    if marker is not None:
        if not marker.kwargs.get("reason"):
            pytest.fail("moves_prefix needs a reason: @pytest.mark.moves_prefix(reason=…)", pytrace=False)
        return (yield)
    guard = PrefixGuard()
    with guard.installed():
        result = yield
    moved = guard.violations()
    if moved:
        way_out = "register the cut, or mark the test with moves_prefix(reason=…)"
        pytest.fail("\n".join([*moved, way_out]), pytrace=False)
    return result
