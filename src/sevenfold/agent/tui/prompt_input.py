"""The input line: keys, completion, history and buffered output, built on prompt_toolkit.

The library is imported when a terminal is opened, so classes that derive from it are defined in functions.
Also here: asking a person whether a tool may run.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.tui.slash_commands import SLASH_COMMANDS
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.errors import FileMissing, StoreError, WireError
from sevenfold.core.json import freeze, read_object, write_json
from sevenfold.core.messages import ToolUse
from sevenfold.store.files.disk import write_all
from sevenfold.store.files.folder import Folder

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output


# What a terminal shows around its input, and what handles its keys.
class InputDelegate(Protocol):
    """What stands around the input, and what its keys do."""

    def live(self, brush: TextRenderer) -> str:
        """What is still moving."""
        ...

    def question(self, brush: TextRenderer) -> str:
        """What is asked, while something is."""
        ...

    def status_line(self, columns: int) -> str: ...

    def interrupt(self, *, is_typed: bool) -> None:
        """Ctrl-C, with something in the input or nothing."""
        ...

    def unfold(self) -> None:
        """Ctrl-O."""
        ...


# Standard output in one write: an erased line and its replacement arrive together.
_ERRORS = "backslashreplace"
"""What the terminal's encoding cannot say is spelled out."""


class BufferedOutput:
    """As much of a text stream as a terminal library asks of one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._waiting: list[str] = []
        self._is_held = False

    @property
    def encoding(self) -> str:
        return self._stream.encoding or "utf-8"

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        self._waiting.append(text)
        return len(text)

    def flush(self) -> None:
        if self._is_held or not self._waiting:
            return
        text, self._waiting = "".join(self._waiting), []
        self._stream.write(text.encode(self.encoding, _ERRORS).decode(self.encoding))
        self._stream.flush()

    @contextmanager
    def batched(self) -> Generator[None]:
        """Let nothing out before the end of the block."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.flush()


# Lines typed before, in every session of this user: for the arrow keys and the search.
INPUT_HISTORY_FILE = "chat-history.jsonl"
MAX_INPUT_HISTORY_BYTES = 1_000_000
"""Of the newest lines; a year of typing."""

_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class InputHistory:
    """One JSON line an entry, oldest first; several chats may append side by side."""

    def __init__(self, home: Folder) -> None:
        self._home = home

    def read_all(self) -> list[str]:
        """Oldest first. A line that cannot be read is left out: a crash may have torn it."""
        entry = self._home.stat(INPUT_HISTORY_FILE)
        start = max(0, entry.size_bytes - MAX_INPUT_HISTORY_BYTES) if entry else 0
        with suppress(FileMissing):
            data = self._home.read_range(INPUT_HISTORY_FILE, start, MAX_INPUT_HISTORY_BYTES)
            lines = data.split(b"\n")[1 if start else 0 :]
            return [text for line in lines if line and (text := _text(line)) is not None]
        return []

    def add(self, text: str) -> None:
        line = write_json(freeze({"text": text})) + b"\n"
        with self._home.opened(INPUT_HISTORY_FILE, _APPENDING) as fd:
            # In one write, so that lines of two chats never mix. It is a convenience: nobody waits for fsync.
            write_all(self._home.disk, fd, line)


def _text(line: bytes) -> str | None:
    try:
        found = read_object(line).get("text")
    except WireError:
        return None
    return found if isinstance(found, str) else None


# Completions: names of commands, and paths after an @.
MAX_COMPLETIONS = 50
"""Candidates that a person may still look through."""
_MOST_SCANNED = 5_000
_AT = re.compile(r"(?:^|\s)@(\S*)$")


@dataclass(frozen=True, slots=True)
class CompletionCandidate:
    text: str
    replaces: int
    """How many characters before the cursor it stands for."""
    remark: str = ""


def list_completions(before: str, cwd: Path) -> tuple[CompletionCandidate, ...]:
    """For the text before the cursor, the best first; looks into folders, and at nothing in them."""
    if before.startswith("/") and " " not in before and "/" not in before[1:]:
        word = before[1:].lower()
        names = (slash for slash in SLASH_COMMANDS if slash.name.startswith(word))
        return tuple(CompletionCandidate(f"/{slash.name}", len(before), slash.help) for slash in names)
    mention = _AT.search(before)
    return _list_paths(mention[1], cwd) if mention else ()


def _list_paths(typed: str, cwd: Path) -> tuple[CompletionCandidate, ...]:
    folder, _, start = typed.rpartition("/")
    shown = f"{folder}/" if "/" in typed else ""
    found: list[str] = []
    try:
        with os.scandir(cwd / Path(shown or ".").expanduser()) as entries:
            for at, entry in enumerate(entries):
                if at == _MOST_SCANNED:
                    break
                if entry.name.lower().startswith(start.lower()) and _is_wanted(entry.name, start):
                    found.append(entry.name + ("/" if entry.is_dir() else ""))
    except OSError:
        return ()
    best = sorted(found, key=lambda name: (name.startswith("."), name.lower()))[:MAX_COMPLETIONS]
    return tuple(CompletionCandidate(shown + name, len(typed)) for name in best)


def _is_wanted(name: str, start: str) -> bool:
    """Hidden files only for whoever asks for them; names with spaces could not be told from two words."""
    return (start.startswith(".") or not name.startswith(".")) and not re.search(r"\s", name)


LINE_CONTINUATION = "\\"
"""Before Enter: the text goes on in a new line."""


def make_prompt_session(
    pane: BufferedOutput, scene: InputDelegate, past: InputHistory, cwd: Path
) -> PromptSession[str]:
    """An input of several lines that leaves nothing behind when it is sent: whoever reads it prints it."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.styles import Style

    return PromptSession(
        multiline=True,
        erase_when_done=True,
        complete_while_typing=False,
        enable_suspend=True,
        key_bindings=make_key_bindings(scene),
        completer=make_completer(cwd),
        history=make_prompt_history(past),
        output=make_prompt_output(pane),
        style=Style.from_dict({"bottom-toolbar": "noreverse"}),
        prompt_continuation="  ",
        reserve_space_for_menu=6,
    )


def make_key_bindings(scene: InputDelegate) -> KeyBindings:
    from prompt_toolkit.filters import is_searching
    from prompt_toolkit.key_binding import KeyBindings

    keys, typing = KeyBindings(), ~is_searching

    @keys.add("enter", filter=typing)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith(LINE_CONTINUATION):
            buffer.delete_before_cursor(len(LINE_CONTINUATION))
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def go_on(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-c", filter=typing)
    @keys.add("<sigint>", filter=typing)
    def interrupt(event: KeyPressEvent) -> None:
        scene.interrupt(is_typed=bool(event.current_buffer.text))

    @keys.add("c-d", filter=typing)
    def leave(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text:
            buffer.delete()
        else:
            event.app.exit(exception=EOFError)

    @keys.add("c-o")
    def unfold(_: KeyPressEvent) -> None:
        scene.unfold()

    # Named here for whoever reads; the library holds on to them.
    _ = (send, go_on, interrupt, leave, unfold)
    return keys


def make_completer(cwd: Path) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    class Names(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            del complete_event  # whoever asked, the answer is the same
            for found in list_completions(document.text_before_cursor, cwd):
                yield Completion(found.text, -found.replaces, display_meta=found.remark)

    return Names()


def make_prompt_history(past: InputHistory) -> History:
    from prompt_toolkit.history import History

    class Lines(History):
        def load_history_strings(self) -> Iterable[str]:
            with suppress(StoreError):
                yield from reversed(past.read_all())

        def store_string(self, string: str) -> None:
            # A line that cannot be kept is still sent.
            with suppress(StoreError):
                past.add(string)

    return Lines()


def make_prompt_output(pane: BufferedOutput) -> Output:
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.output.vt100 import Vt100_Output

    class Screen(Vt100_Output):
        def get_rows_below_cursor_position(self) -> int:
            # Never asked of the terminal: its answer may come when nobody reads any more, and be shown.
            return 1

    def size() -> Size:
        import shutil

        columns, rows = shutil.get_terminal_size()
        return Size(rows=rows, columns=columns)

    return Screen(cast("TextIO", pane), size, enable_cpr=False)


# Whether a tool may run: what is shown, and what an answer means.

YES_WORDS = frozenset({"y", "yes"})
NO_WORDS = frozenset({"n", "no"})
SESSION_WORDS = frozenset({"s", "session"})
ALWAYS_WORDS = frozenset({"a", "always"})

REQUEST_PREVIEW_LINES = 30
"""Of a change or a command, before it is allowed."""


def parse_permission_answer(line: str, question: PermissionRequest) -> PermissionResponse | None:
    """What a typed answer means; None when it says nothing, and the question stands.

    Whatever is no answer we know is a no in the person's own words: a yes must be meant.
    """
    said = line.strip()
    word = said.lower()
    if not said:
        return None
    if word in YES_WORDS:
        return PermissionResponse(True)
    if word in SESSION_WORDS | ALWAYS_WORDS:
        if question.rule is None:
            return PermissionResponse(True)
        return PermissionResponse(True, "always" if word in ALWAYS_WORDS else "session")
    return PermissionResponse(False) if word in NO_WORDS else PermissionResponse(False, words=said)


def render_permission_question(question: PermissionRequest, brush: TextRenderer) -> str:
    """The line that is answered."""
    longer = ""
    if question.rule is not None:
        longer = f"  s yes, in this session  a always ({question.rule})"
    return brush.line(f"allow it?  y yes{longer}  n no  or say what to do instead", "warning")


def render_permission_request(question: PermissionRequest, brush: TextRenderer) -> str:
    """What is asked for, and why it is asked: printed once, above."""
    use, need = question.use, question.need
    title = need.said or use.name
    parts = [brush.line(f"{use.name} asks: {title}" if use.name not in title else title, "warning")]
    change = need.diff or _change(use)
    if need.command and need.command not in title:
        parts.append(brush.line(_beginning(need.command), indent=2))
    if change:
        parts.append(brush.diff(change, REQUEST_PREVIEW_LINES))
    if question.reason:
        parts.append(brush.line(question.reason, "faint", indent=2))
    return "\n" + "\n".join(parts)


@dataclass(slots=True)
class _Open:
    question: PermissionRequest
    answered: asyncio.Future[PermissionResponse]


class PermissionPrompt:
    """The question that is open, if one is. Whoever asks waits; whoever reads the keyboard answers."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self.on_change: Callable[[], None] = _nobody

    @property
    def question(self) -> PermissionRequest | None:
        return self._open.question if self._open else None

    async def ask(self, question: PermissionRequest) -> PermissionResponse:
        """Open a question and wait. One at a time: the guard sees to that."""
        self._open = _Open(question, asyncio.get_running_loop().create_future())
        self.on_change()
        try:
            return await self._open.answered
        finally:
            self._open = None
            self.on_change()

    def answer(self, line: str) -> bool:
        """Take a line as the answer; False when nothing was asked."""
        if self._open is None:
            return False
        answer = parse_permission_answer(line, self._open.question)
        if answer is not None and not self._open.answered.done():
            self._open.answered.set_result(answer)
        return True


def _nobody() -> None:
    """Nobody watches yet."""


def _beginning(text: str) -> str:
    lines = text.split("\n")
    hidden = len(lines) - REQUEST_PREVIEW_LINES
    return "\n".join(lines[:REQUEST_PREVIEW_LINES]) + (f"\n… {hidden} more lines" if hidden > 0 else "")


def _change(use: ToolUse) -> str:
    """What an edit or a new file would change, where the file may not be looked at before it is allowed: the
    place in the file is not known."""
    old, new = use.input.get("old_string"), use.input.get("new_string")
    if use.name == "write":
        old, new = "", use.input.get("content")
    if not isinstance(old, str) or not isinstance(new, str):
        return ""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
