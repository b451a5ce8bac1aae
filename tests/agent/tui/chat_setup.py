"""A chat without a terminal: lines are handed in, and what is put is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.tui.chat import Chat
from sevenfold.agent.tui.custom_commands import CommandHelps, CustomCommand
from sevenfold.agent.tui.permission_prompt import PermissionPrompt
from sevenfold.agent.tui.session_list import NO_PAST_USAGE, PastUsage, SessionCard
from sevenfold.agent.tui.slash_commands import ChatServices
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import FileMissing


class Keys:
    """A keyboard that types what it is told to."""

    is_typed = True
    has_echo = False
    keys_pressed = 0

    def __init__(self) -> None:
        self.printed: list[str] = []
        self.titles: list[str] = []
        self.calls: list[str] = []
        self.typed = ""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._changed = asyncio.Event()

    def __enter__(self) -> None:
        """There is no terminal to prepare."""

    def __exit__(self, *_: object) -> None:
        """Nor to restore."""

    @property
    def text(self) -> str:
        return "\n".join(self.printed)

    def renderer(self) -> TextRenderer:
        return TextRenderer(100)

    def put(self, text: str) -> None:
        self.printed.append(text)
        self._changed.set()

    def refresh(self) -> None:
        self._changed.set()

    def settle(self) -> None:
        self._changed.set()

    async def read(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise EOFError
        return line

    def enter(self, line: str) -> None:
        self._lines.put_nowait(line)

    def leave(self) -> None:
        self._lines.put_nowait(None)

    def seconds_since_key(self) -> float:
        return 60.0

    def show_state(self, title: str) -> None:
        self.titles.append(title)

    def call_person(self, text: str) -> None:
        self.calls.append(text)

    def clear_input(self) -> None:
        self.typed = ""

    def offer_input(self, text: str) -> None:
        self.typed = self.typed or text

    def stash_input(self) -> None:
        self.put("(a question is asked)")

    def restore_input(self) -> None:
        self.put("(it is answered)")

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def wait_for(self, text: str) -> None:
        await self.wait_until(lambda: text in self.text)


@dataclass(slots=True, kw_only=True)
class ChatSetup:
    """A chat that runs, and its keyboard."""

    agent: Agent
    asking: PermissionPrompt = field(default_factory=PermissionPrompt)
    clock: ManualClock = field(default_factory=ManualClock)
    others: list[Agent] = field(default_factory=list[Agent])
    """Handed out one by one when another session is opened."""
    sessions: list[SessionCard] = field(default_factory=list[SessionCard])
    past: PastUsage = NO_PAST_USAGE
    """What the session was billed before, and left behind."""
    asked_memory: list[str] = field(default_factory=list[str])
    custom_commands: Sequence[CustomCommand] = ()
    is_written: bool = True
    """Whether the session has a file yet."""
    keys: Keys = field(default_factory=Keys)
    chat: Chat = field(init=False)

    def __post_init__(self) -> None:
        house = ChatServices(
            open_agent=self._open,
            sessions=lambda: self.sessions,
            past_usage=lambda _: self.past,
            describe_context=self._describe,
            memories=self._ask_memory,
            custom_commands=lambda: self.custom_commands,
            command_helps=CommandHelps(lambda: self.custom_commands, self.clock).list_helps,
        )
        self.chat = Chat(self.agent, house, self.asking, lambda _: self.keys, self.clock)

    def _ask_memory(self, words: str) -> list[str]:
        self.asked_memory.append(words)
        return ["- [A](a.md) — a hook"]

    async def _open(self, _session: str | None) -> Agent:
        return self.others.pop(0)

    async def _describe(self, session: str) -> str:
        if not self.is_written:
            raise FileMissing(f"there is no {session}")
        return f"the window of {session}"
