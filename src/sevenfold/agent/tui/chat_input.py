"""The input side of a chat: lines that wait, `!` and `#`, menus and questions, and images."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.rewind import extract_typed_text, take_back_prompt
from sevenfold.agent.tui.background_view import find_shell_tool
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu, FilterMenu, MenuKey
from sevenfold.agent.tui.error_text import render_error
from sevenfold.agent.tui.open_questions import OpenQuestions, QuestionSurface
from sevenfold.agent.tui.permission_prompt import PermissionPrompt
from sevenfold.agent.tui.prompt_input import HistoryEntry
from sevenfold.agent.tui.session_list import render_age
from sevenfold.agent.tui.slash_commands import ChatServices
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import TurnSurface, TurnView
from sevenfold.agent.tui.user_input import read_clipboard_image
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import Message, Text
from sevenfold.core.text.safe_text import fence_text, truncate_bytes

SHELL_PREFIX, MEMORY_PREFIX = "!", "#"
MAX_TOLD_BYTES = 30_000
"""Of what a command printed: a tool result of that size would go to disk."""
IMAGE_FOLDER = "images"
"""In the session's folder: images of the clipboard."""


MAX_PREVIEW_LINES = 4
"""Of what was typed before."""
MAX_SHOWN_QUEUE = 4
"""Messages that are drawn above the input; the last ones, which are the ones to be taken back."""


@dataclass(frozen=True, slots=True)
class TypedLine:
    text: str
    is_typed: bool
    """Whether a person typed it here: only then does it begin with `!` or `#` to be obeyed."""


@dataclass(slots=True)
class TypedLines:
    """Lines that were entered and are not carried out yet: what follows a long command waits for it."""

    _waiting: list[TypedLine] = field(default_factory=list[TypedLine])
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_closed: bool = False

    def put(self, line: TypedLine) -> None:
        self._waiting.append(line)
        self._changed.set()

    def close(self) -> None:
        """There will be no more."""
        self._is_closed = True
        self._changed.set()

    async def get(self) -> TypedLine | None:
        """The next one; None: it was the last."""
        while not self._waiting:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.pop(0)

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self._waiting]

    def take_back(self) -> str:
        """The last one; empty: there is none."""
        return self._waiting.pop().text if self._waiting else ""


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
        return render_waiting([item.text for item in self._waiting], "read at the next round", renderer)

    def _take(self, message: Message) -> None:
        found = next((item for item in self._waiting if item.message is message), None)
        if found is not None:
            self._waiting.remove(found)
            self.on_taken(found)


def render_waiting(texts: Sequence[str], until: str, renderer: TextRenderer) -> str:
    """What was sent and waits, and what for."""
    shown = texts[-MAX_SHOWN_QUEUE:]
    hidden = len(texts) - len(shown)
    lines = [f"… {hidden} more"] if hidden else []
    lines += [renderer.cut(f"› {' '.join(text.split())}") for text in shown]
    if shown:
        lines.append(f"{until}; ↑ takes the last one back")
    return "\n".join(renderer.line(line, "faint") for line in lines)


def _shorten(text: str) -> str:
    first = text.split("\n")[:MAX_PREVIEW_LINES]
    return "\n".join([*first, "…"] if text.count("\n") >= MAX_PREVIEW_LINES else first)


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
        self._lines = TypedLines()
        self._searching: asyncio.Task[None] | None = None
        self._doing: asyncio.Task[None] | None = None
        """The command that is carried out."""
        self._started_doing, self._doing_what = timedelta(), ""
        """Since when, by uptime, and which."""

    def say(self, text: str, tone: TextTone = "plain") -> None:
        """Print a line."""
        raise NotImplementedError

    def echo(self, typed: str) -> None:
        """Print what a person typed."""
        raise NotImplementedError

    view: TurnView
    services: ChatServices

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

    async def _confirm(self, question: str) -> bool:
        """Ask where lines are read, because a line of a pasted text looks like one that was typed."""
        rows = [Choice(label="no", letter="n"), Choice(label="yes", letter="y")]
        return await self.choose(ChoiceMenu(title=question, choices=rows)) == 1

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
            sign = "waits:" if self._keyboard.renderer().is_spoken else "›"
            self.say(f"{sign} {typed.text}  (read at the next round)", "faint")
        self._keyboard.refresh()

    def _queue_taken(self, taken: QueuedInput) -> None:
        if self._keyboard.is_typed:
            self.echo(taken.text)

    @property
    def is_doing(self) -> bool:
        """A command of the person's is carried out."""
        return self._doing is not None and not self._doing.done()

    async def _do_shortcut(self, typed: str, *, is_sure: bool) -> None:
        """A line that begins with `!` or `#`."""
        words = typed.strip(SHELL_PREFIX + MEMORY_PREFIX + " ")
        if not words:
            self.say("!command runs a command, and #text remembers the text", "faint")
        elif typed.startswith(SHELL_PREFIX):
            await self._run_command(typed, is_sure=is_sure)
        else:
            await self._remember(typed.removeprefix(MEMORY_PREFIX).strip(), is_sure=is_sure)

    async def _run_command(self, typed: str, *, is_sure: bool) -> None:
        """`!command` runs it, shows what it prints, and tells the model with the next prompt; `!!` does not
        tell. Whoever types a command has allowed it."""
        is_told = not typed.startswith(SHELL_PREFIX * 2)
        command = typed.lstrip(SHELL_PREFIX).strip()
        if not is_sure and not await self._confirm(f"run {command}?"):
            self.say("it was not run", "faint")
            return
        tool = find_shell_tool(self.agent)
        if tool is None:
            self.say("this agent has no shell", "warning")
            return
        # Who has typed it waits as long as they like, and can interrupt it.
        given = {"command": command, "access": "open", "timeout_seconds": tool.longest_seconds}
        self.view.begin_command(command)
        try:
            output = await tool.run(freeze_object(given), self.agent.place, self.view.watch_command)
        except SevenfoldError as error:
            self.view.end_command(None)
            self.say(render_error(error), "error")
            return
        except asyncio.CancelledError:
            self.view.end_command(None)
            raise
        printed = output.content if isinstance(output.content, str) else ""
        self.view.end_command(output)
        if is_told:
            cut = truncate_bytes(printed, MAX_TOLD_BYTES)
            more = f"\n[{len(printed) - len(cut):,} more characters]" if len(cut) < len(printed) else ""
            self._context.append(Text(fence_text("user-command", f"$ {command}\n{cut}{more}")))

    async def _remember(self, text: str, *, is_sure: bool) -> None:
        """`#text` writes a memory."""
        if not is_sure and not await self._confirm(f"remember: {text}?"):
            self.say("it is not remembered", "faint")
            return
        try:
            lines = await asyncio.to_thread(self.services.memories, f"add {shlex.quote(f'--text={text}')}")
        except SevenfoldError as error:
            self.say(render_error(error), "error")
            return
        # What follows names the command of a shell; here there is a shorter way.
        done = " ".join(lines).partition(" (")[0]
        self.say(f"{done}; /memory undo takes it back", "faint")

    def search_history(self, entries: Sequence[HistoryEntry], typed: str) -> None:
        """Have the person choose from what they typed before; `typed` is what they look for."""
        newest = list({entry.text: entry for entry in entries}.values())[::-1]
        if self.menu is not None or self._questions.is_asking or not newest:
            self.offer_input(typed)
            return
        now = datetime.now(UTC)
        rows = [
            Choice(
                label=f"{render_age(now - entry.at) if entry.at else '':>8}  {' '.join(entry.text.split())}",
                remark=_shorten(entry.text) if "\n" in entry.text else "",
            )
            for entry in newest
        ]
        menu = FilterMenu(title="what you typed before", choices=rows)
        menu.filter(typed)
        # Open at once: the next key may be here already.
        answered = self._questions.choosing.open(menu)

        async def finish() -> None:
            await self._questions.choosing.wait(menu, answered)
            self.offer_input(typed if menu.original is None else newest[menu.original].text)

        self._searching = asyncio.create_task(finish())

    def _render_waiting(self, renderer: TextRenderer) -> str:
        behind = self._lines.texts if self.is_doing else []
        until = f"done after {self._doing_what.split()[0]}" if behind else ""
        parts = (self._queue.render(renderer), render_waiting(behind, until, renderer))
        return "\n".join(part for part in parts if part)

    @property
    def has_queue(self) -> bool:
        return not self._queue.is_empty or bool(self._lines.texts)

    def take_back(self) -> str:
        if typed := self._lines.take_back():
            return typed
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
