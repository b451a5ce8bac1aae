"""Which conversation a request belongs to: one client may carry several, and requests do not name theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakSet

from sevenfold.core.errors import ClientClosed, FileMissing, InputError, SessionBusy
from sevenfold.core.events import Emit
from sevenfold.core.json import Json, JsonObject, freeze_object, thaw
from sevenfold.core.requests import RequestParams
from sevenfold.core.system import run_blocking
from sevenfold.providers.provider import Provider
from sevenfold.session import Session
from sevenfold.session.earlier import EarlierSession, find_earlier_session
from sevenfold.session.history import SharedCount
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.session.pipeline import SessionResources

WriterT = TypeVar("WriterT")
"""What writes the requests of a conversation for its API."""

MAX_CONVERSATIONS = 32
"""Conversations held at once, unless more than that are being answered. One that is let go of costs its next
request a cold start, nothing more."""

CLIENT_CLOSED = (
    "this attached client is closed; attach the client again, or call open() on what attach returned"
)

CLOSED_BEFORE_ANSWER = "the client was closed before the answer was whole"

PARAM_FIELDS = frozenset({"model", "max_tokens", "system", "tools", "messages", "stream"})


class ParamsReader:
    """Frames from request bodies; the same one again as long as nothing in it changed."""

    def __init__(self) -> None:
        self._copy: dict[str, object] = {}
        self._betas: tuple[str, ...] = ()
        self._frame: RequestParams | None = None

    def read(self, body: Mapping[str, object], betas: tuple[str, ...]) -> RequestParams:
        rest = {key: value for key, value in body.items() if key not in ("messages", "stream")}
        if self._frame is None or rest != self._copy or betas != self._betas:
            wire = freeze_object(rest)
            self._copy = {key: thaw(value) for key, value in wire.items()}
            self._betas, self._frame = betas, _frame(wire, betas)
        return self._frame


@dataclass(eq=False, slots=True, kw_only=True)
class AttachedConversation(Generic[WriterT]):
    """One conversation."""

    session: Session
    writer: WriterT
    api: str = ""
    """Of a client that has several: a conversation stays with one."""
    writing: threading.Lock = field(default_factory=threading.Lock)
    """A blocking client may be called from several threads, and the writer serves one at a time."""
    in_flight: WeakSet[InFlightRequest[WriterT]] = field(default_factory=WeakSet)

    @property
    def awaits_answer(self) -> bool:
        """Whether somebody waits for a whole answer."""
        return any(not passage.is_streamed for passage in self.in_flight)


@dataclass(eq=False, slots=True, weakref_slot=True)
class InFlightRequest(Generic[WriterT]):
    """A request on its way: its conversation stays open until it was answered, or nobody holds this any more,
    as when a stream is left behind without a word."""

    conversation: AttachedConversation[WriterT]
    is_streamed: bool = False
    """Whether the caller reads the answer piece by piece, and may leave it."""

    def finish(self) -> None:
        self.conversation.in_flight.discard(self)


@dataclass(slots=True, kw_only=True)
class ConversationPool(Generic[WriterT]):
    """All conversations of a client, the one used last at the end."""

    open_conversation: Callable[
        [RequestParams, str, Sequence[object]], Awaitable[AttachedConversation[WriterT]]
    ]
    """Given what is asked for, the API that it is asked of, and the messages."""
    conversations: list[AttachedConversation[WriterT]] = field(
        default_factory=list[AttachedConversation[WriterT]]
    )
    is_closed: bool = False
    unfinished: list[AttachedConversation[WriterT]] = field(
        default_factory=list[AttachedConversation[WriterT]]
    )
    """Conversations whose answer was under way when the client was closed: each is closed with it."""
    _frames: ParamsReader = field(default_factory=ParamsReader)
    _choosing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(
        self, messages: Sequence[object], frame: RequestParams, api: str = "", *, is_streamed: bool = False
    ) -> InFlightRequest[WriterT]:
        """Into the conversation that these messages go on with; a new one where there is none."""
        async with self._choosing:
            self._refuse_if_closed()
            conversation = self._known(messages, api)
            if conversation is None:
                conversation = await self.open_conversation(frame, api, messages)
                if self.is_closed:
                    # It was closed meanwhile, and waits for this.
                    await conversation.session.close()
                self._refuse_if_closed()
                await self._make_room()
            else:
                self.conversations.remove(conversation)
            self.conversations.append(conversation)
            passage = InFlightRequest(conversation, is_streamed)
            conversation.in_flight.add(passage)
            return passage

    async def finish(self, passage: InFlightRequest[WriterT]) -> None:
        """A request is over. If the client was closed meanwhile, its conversation is closed now."""
        passage.finish()
        conversation = passage.conversation
        if conversation in self.unfinished and not conversation.awaits_answer:
            self.unfinished.remove(conversation)
            await conversation.session.close()

    def read_frame(self, body: Mapping[str, object], betas: tuple[str, ...]) -> RequestParams:
        return self._frames.read(body, betas)

    async def close(self) -> None:
        """Close all of them, also where one cannot be closed; the first error is raised then.

        One that waits for a whole answer, which is paid for, is closed when the answer is recorded. A stream
        is not waited for: its reader may never come back.
        """
        self.is_closed = True
        errors: list[Exception] = []
        async with self._choosing:
            while self.conversations:
                conversation = self.conversations.pop()
                if conversation.awaits_answer:
                    self.unfinished.append(conversation)
                    continue
                try:
                    await conversation.session.close()
                except Exception as error:
                    errors.append(error)
        # The next one to open it may run on another event loop.
        self._choosing = asyncio.Lock()
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"another session was not closed: {type(other).__name__}: {other}")
            raise errors[0]

    def _refuse_if_closed(self) -> None:
        if self.is_closed:
            raise ClientClosed(CLIENT_CLOSED)

    async def _make_room(self) -> None:
        """Let go of those used longest ago, but of none that still waits for an answer."""
        idle = [conversation for conversation in self.conversations if not conversation.in_flight]
        for conversation in idle[: max(0, len(self.conversations) + 1 - MAX_CONVERSATIONS)]:
            self.conversations.remove(conversation)
            await conversation.session.close()

    def _known(self, messages: Sequence[object], api: str) -> AttachedConversation[WriterT] | None:
        """The conversation with most in common: all of it or, where something was changed, at least half and
        more than one message.

        What is shared from the start counts first: conversations that only go on alike are not the same.
        """
        best, most = None, SharedCount(0, 0)
        for conversation in self.conversations:
            if conversation.api != api:
                continue
            shared, known = conversation.session.count_shared(messages), conversation.session.followed
            is_enough = shared.total == known or shared.total >= max(2, known / 2)
            if shared > most and is_enough:
                best, most = conversation, shared
        return best


@dataclass(slots=True, kw_only=True)
class SessionOpener:
    """Opens the sessions of a client, all in one workspace, which is opened with the first."""

    options: WorkspaceOptions
    emit: Emit
    adds_context: bool
    clearable: Mapping[str, bool] | None = None
    _workspace: Workspace | None = None

    async def open(
        self, frame: RequestParams, provider: Provider, messages: Sequence[object] = ()
    ) -> Session:
        """The session that these messages go on with, or a new one. `provider` is who writes summaries and
        notes."""
        opened = await run_blocking(lambda: self._open_resources(messages, frame))
        session = await Session.start(frame, opened, provider)
        if self.adds_context:
            await session.add_context()
        return session

    def _open_resources(self, messages: Sequence[object], frame: RequestParams) -> SessionResources:
        workspace = self._open_workspace()
        earlier = None
        if not workspace.is_in_memory:
            earlier = find_earlier_session(workspace.project.sessions, messages, frame)
        resumed = self._resume(workspace, earlier) if earlier is not None else None
        return resumed or SessionResources.open(workspace, clearable=self.clearable)

    def _resume(self, workspace: Workspace, earlier: EarlierSession) -> SessionResources | None:
        """None where it is no longer what was found."""
        try:
            opened = SessionResources.open(workspace, earlier.id, clearable=self.clearable)
        except (SessionBusy, FileMissing):
            # Whoever has it open goes on with it, and these messages are a copy; or somebody removed it.
            return None
        if earlier.is_unchanged(workspace.project.sessions):
            return opened
        opened.exits.close()  # another process went on with it meanwhile
        return None

    def close(self) -> None:
        workspace, self._workspace = self._workspace, None
        if workspace is not None:
            workspace.close()

    def _open_workspace(self) -> Workspace:
        """One call at a time, as `ConversationPool` opens sessions."""
        if self._workspace is None:
            workspace = Workspace.open(self.options)
            workspace.listen(self.emit)
            self._workspace = workspace
        return self._workspace


def _frame(wire: JsonObject, betas: tuple[str, ...]) -> RequestParams:
    model, most = wire.get("model"), wire.get("max_tokens")
    system, tools = wire.get("system"), wire.get("tools")
    return RequestParams(
        model=model if isinstance(model, str) else "",
        max_tokens=_whole("max_tokens", most),
        system=system if isinstance(system, str) else _objects("system", system),
        tools=_objects("tools", tools),
        params=wire.without(*PARAM_FIELDS),
        betas=betas,
    )


def _whole(name: str, value: Json) -> int:
    """0 where it was left out: the provider says whether it may be."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value or 0
    raise InputError(f"{name} is {value!r}; expected a whole number")


def _objects(name: str, value: Json) -> tuple[JsonObject, ...]:
    if value is None:
        return ()
    if not isinstance(value, tuple):
        raise InputError(f"{name} is {value!r}; expected a list of objects")
    for at, item in enumerate(value):
        if not isinstance(item, JsonObject):
            raise InputError(f"{name}[{at}] is {item!r}; expected an object")
    return tuple(item for item in value if isinstance(item, JsonObject))
