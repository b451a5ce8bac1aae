"""The input side of a chat: menus and questions, what waits in the queue, and images."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.rewind import extract_typed_text, take_back_prompt
from sevenfold.agent.tui.background_view import find_shell_tool
from sevenfold.agent.tui.choice_menu import ChoiceMenu, MenuKey
from sevenfold.agent.tui.open_questions import OpenQuestions, QuestionSurface
from sevenfold.agent.tui.permission_prompt import PermissionPrompt
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import TurnSurface
from sevenfold.agent.tui.user_input import read_clipboard_image
from sevenfold.core.messages import Message, Text

IMAGE_FOLDER = "images"
"""In the session's folder: images of the clipboard."""


MAX_SHOWN_QUEUE = 4
"""Messages that are drawn above the input; the last ones, which are the ones to be taken back."""


@dataclass(frozen=True, slots=True)
class QueuedInput:
    text: str
    """As it was typed."""
    message: Message
    context: tuple[Text, ...]
    """What commands of the person's had printed before, which goes with it."""


@dataclass(slots=True)
class InputQueue:
    """The messages of one agent's inbox that were typed here."""

    on_taken: Callable[[QueuedInput], None]
    """Told of each when a round takes it in."""
    _waiting: list[QueuedInput] = field(default_factory=list[QueuedInput])

    def watch(self, agent: Agent) -> None:
        """From now on messages go to this agent."""
        self._waiting = []
        agent.inbox.on_taken = self._take

    def send(self, agent: Agent, typed: QueuedInput) -> None:
        self._waiting.append(typed)
        agent.post(typed.message)

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def take_back(self, agent: Agent) -> QueuedInput | None:
        """The last one, which no round has taken in yet; None: there is none."""
        while self._waiting:
            last = self._waiting.pop()
            if agent.inbox.take_back(last.message):
                return last
        return None

    def render(self, renderer: TextRenderer) -> str:
        shown = self._waiting[-MAX_SHOWN_QUEUE:]
        hidden = len(self._waiting) - len(shown)
        lines = [f"… {hidden} more"] if hidden else []
        lines += [renderer.cut(f"› {' '.join(item.text.split())}") for item in shown]
        if shown:
            lines.append("read at the next round; ↑ takes the last one back")
        return "\n".join(renderer.line(line, "faint") for line in lines)

    def _take(self, message: Message) -> None:
        found = next((item for item in self._waiting if item.message is message), None)
        if found is not None:
            self._waiting.remove(found)
            self.on_taken(found)


class ChatTerminal(TurnSurface, QuestionSurface, Protocol):
    """A terminal: where a turn is shown, and where lines come from.

    `is_typed` tells whether lines come from a person's keys, and not from a pipe. With `has_echo` the
    terminal itself shows what is typed.
    """

    has_echo: bool

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    async def read(self) -> str:
        """The next line; EOFError when the person leaves."""
        ...

    def settle(self) -> None:
        """Nothing is moving any more."""
        ...

    def leave(self) -> None:
        """Have `read` end."""
        ...

    def show_state(self, title: str) -> None:
        """What the chat is doing, for the title of a window."""
        ...

    def call_person(self, text: str) -> None:
        """A person is wanted, who may look elsewhere."""
        ...

    def clear_input(self) -> None:
        """Take back what is typed."""
        ...

    def offer_input(self, text: str) -> None:
        """Put a text into the input, if that is empty."""
        ...

    def stash_input(self) -> None:
        """Make room for an answer; `bring_back` restores what was typed."""
        ...

    def restore_input(self) -> None: ...


class ChatInput:
    """What a chat does with keys, beside lines that were sent."""

    def __init__(
        self, agent: Agent, asking: PermissionPrompt, make_keyboard: Callable[..., ChatTerminal]
    ) -> None:
        self.agent = agent
        self._keyboard = make_keyboard(self)
        self._context: list[Text] = []
        """What commands that the person ran have printed, for the next prompt."""
        self._asking = asking
        self._questions = OpenQuestions(asking, self._keyboard, self._person_wanted, str(agent.place.cwd))
        self._queue = InputQueue(self._queue_taken)
        self._queue.watch(agent)

    def say(self, text: str, tone: TextTone = "plain") -> None:
        """Print a line."""
        raise NotImplementedError

    def echo(self, typed: str) -> None:
        """Print what a person typed."""
        raise NotImplementedError

    def _person_wanted(self) -> None:
        """A question waits for an answer."""

    @property
    def menu(self) -> ChoiceMenu | None:
        return self._questions.menu

    @property
    def has_just_answered(self) -> bool:
        return self._questions.has_just_answered

    def press(self, key: MenuKey) -> bool:
        return self._questions.press(key)

    def type(self, sign: str) -> str | None:
        return self._questions.type(sign)

    async def choose(self, menu: ChoiceMenu) -> int | None:
        """Have the person choose a row; None: none of them."""
        return await self._questions.choosing.ask(menu)

    @property
    def has_menus(self) -> bool:
        """Whether a person can choose from a menu here."""
        return self._keyboard.is_typed

    def renderer(self) -> TextRenderer:
        return self._keyboard.renderer()

    def offer_input(self, text: str) -> None:
        """Put a text into the input, if that is empty."""
        self._keyboard.offer_input(text)

    def _send_later(self, typed: QueuedInput) -> None:
        """Have the next round read it."""
        self._queue.send(self.agent, typed)
        if not self._keyboard.is_typed:
            self.say(f"› {typed.text}  (read at the next round)", "faint")
        self._keyboard.refresh()

    def _queue_taken(self, taken: QueuedInput) -> None:
        if self._keyboard.is_typed:
            self.echo(taken.text)

    @property
    def has_queue(self) -> bool:
        return not self._queue.is_empty

    def take_back(self) -> str:
        taken = self._queue.take_back(self.agent)
        if taken is None:
            return ""
        self._context = [*taken.context, *self._context]
        return taken.text

    @property
    def has_foreground(self) -> bool:
        shell = find_shell_tool(self.agent)
        return shell is not None and shell.has_foreground

    def send_to_background(self) -> None:
        shell = find_shell_tool(self.agent)
        if shell is None or not shell.move_to_background():
            self.say("no more commands fit into the background; /kill NAME ends one", "warning")

    async def paste_image(self) -> str:
        folder = self.agent.place.session_folder
        if folder is None:
            return ""
        found = await asyncio.to_thread(read_clipboard_image, folder / IMAGE_FOLDER)
        if isinstance(found, str):
            self.say(found, "warning")
            return ""
        return f'@"{found}" '

    async def _return_prompt(self, prompt: Message | None) -> None:
        """A prompt that was interrupted before anything came of it goes back to the input, unless another one
        waits already."""
        if prompt is None or self.agent.inbox or not self._keyboard.is_typed:
            return
        if await take_back_prompt(self.agent, prompt):
            self.offer_input(extract_typed_text(prompt))
