"""The input line: keys, pasted text, history and buffered output, built on prompt_toolkit.

The library is imported when a terminal is opened, so classes that derive from it are defined in functions.
The input of a chat that still starts uses this module, so it imports nothing that takes long.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from sevenfold.agent.tui.input_keys import (
    KeyDelegate,
    PastedTexts,
    add_menu_keys,
    add_paste_key,
    add_work_keys,
    send_or_continue,
)
from sevenfold.agent.tui.render.reflow import count_rows_above, wraps_when_narrowed
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.errors import FileMissing, StoreError, WireError
from sevenfold.core.json import freeze, read_object, write_json

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.filters import Filter
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

    from sevenfold.store.files.folder import Folder


# What a terminal shows around its input, and what handles its keys.
class InputDelegate(KeyDelegate, Protocol):
    """What stands around the input, and what its keys do."""

    def live(self, renderer: TextRenderer) -> str:
        """What is still moving."""
        ...

    def question(self, renderer: TextRenderer) -> str:
        """What is asked, while something is."""
        ...

    def status_line(self, columns: int) -> str: ...

    def interrupt(self, *, is_typed: bool) -> None:
        """Ctrl-C, with something in the input or nothing."""
        ...

    def unfold(self) -> None:
        """Ctrl-O."""
        ...

    def cycle_mode(self) -> None:
        """Shift-Tab."""
        ...

    def own_commands(self) -> Mapping[str, str]:
        """Commands of the user and the project, with their help. Called in a thread."""
        ...

    def search_history(self, entries: Sequence[HistoryEntry], typed: str) -> None:
        """Ctrl-R, with what stood in the input. The entries are what was typed before, oldest first."""
        ...

    def show_keys(self) -> None:
        """A question mark in an empty input."""
        ...


# Standard output in one write: an erased line and its replacement arrive together.
_ERRORS = "backslashreplace"
"""What the terminal's encoding cannot say is spelled out."""


_ESCAPE, _SYNC_BEGIN, _SYNC_END = "\x1b", "\x1b[?2026h", "\x1b[?2026l"
"""Around what is redrawn: a terminal that knows this mode shows all of it at once, and others ignore it."""


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
        text = text.encode(self.encoding, _ERRORS).decode(self.encoding)
        try:
            self._stream.write(f"{_SYNC_BEGIN}{text}{_SYNC_END}" if _ESCAPE in text else text)
            self._stream.flush()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            # The window was closed. The signal for it may come later, or to the shell alone.
            drop_closed_terminal()
            signal.raise_signal(signal.SIGHUP)

    def hold(self) -> None:
        """Let nothing out before `release`."""
        self._is_held = True

    def release(self) -> None:
        self._is_held = False
        self.flush()

    @contextmanager
    def batched(self) -> Generator[None]:
        """Let nothing out before the end of the block."""
        self.hold()
        try:
            yield
        finally:
            self.release()


def drop_closed_terminal() -> None:
    """Where the terminal is gone, write to nowhere: every write would fail while the session closes."""
    for fd in (1, 2):
        with suppress(OSError):  # one that is not open, such as after `2>&-`
            if stat.S_ISCHR(os.fstat(fd).st_mode) and not os.isatty(fd):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, fd)
                os.close(nowhere)


# Lines typed before, in every session of this user: for the arrow keys and the search.
INPUT_HISTORY_FILE = "chat-history.jsonl"
MAX_INPUT_HISTORY_BYTES = 1_000_000
"""Of the newest lines; a year of typing."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    text: str
    at: datetime | None = None
    """Earlier versions did not write it."""


class InputHistory:
    """One JSON line an entry, oldest first; several chats may append side by side."""

    def __init__(self, home: Folder) -> None:
        self._home = home

    def read_all(self) -> list[str]:
        """The texts, oldest first."""
        return [entry.text for entry in self.read_entries()]

    def read_entries(self) -> list[HistoryEntry]:
        """Oldest first. A line that cannot be read is left out: a crash may have torn it."""
        entry = self._home.stat(INPUT_HISTORY_FILE)
        start = max(0, entry.size_bytes - MAX_INPUT_HISTORY_BYTES) if entry else 0
        with suppress(FileMissing):
            data = self._home.read_range(INPUT_HISTORY_FILE, start, MAX_INPUT_HISTORY_BYTES)
            lines = data.split(b"\n")[1 if start else 0 :]
            return [entry for line in lines if line and (entry := _read_entry(line)) is not None]
        return []

    def add(self, text: str) -> None:
        line = write_json(freeze({"text": text, "at": datetime.now(UTC).isoformat()})) + b"\n"
        # It is a convenience: nobody waits for fsync.
        self._home.append(INPUT_HISTORY_FILE, line, durable=False)


def _read_entry(line: bytes) -> HistoryEntry | None:
    try:
        found = read_object(line)
    except WireError:
        return None
    text, at = found.get("text"), found.get("at")
    if not isinstance(text, str):
        return None
    with suppress(ValueError):
        return HistoryEntry(text, datetime.fromisoformat(at) if isinstance(at, str) else None)
    return HistoryEntry(text)


MENU_ROWS = 9
"""Below the input, while a menu may open: else the status line stands there at once."""
_COMPLETABLE = re.compile(r"""^/[^\s/]*$|(?:^|\s)@(?:"[^"\n]*|\S*)$""")
MIN_INPUT_ROWS = 3
"""The input takes a third of the screen at most and scrolls then: what is drawn from the first row on would
be left in the scrollback of some terminals when it is erased."""


def may_complete(before: str) -> bool:
    """Whether a command or a file is being typed before the cursor: only then is there a menu."""
    return _COMPLETABLE.search(before) is not None


@cache
def find_session_class() -> type[PromptSession[str]]:
    """The library's session, of which a long text does not fill the screen."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.layout import Dimension

    class LimitedSession(PromptSession[str]):
        def _get_default_buffer_control_height(self) -> Dimension:
            height = super()._get_default_buffer_control_height()
            most = max(MIN_INPUT_ROWS, self.output.get_size().rows // 3)
            return Dimension(min=min(height.min, most), max=most)

    return LimitedSession


def make_prompt_session(
    pane: BufferedOutput,
    delegate: InputDelegate,
    past: InputHistory,
    cwd: Path,
    pastes: PastedTexts,
    *,
    has_vi_keys: bool = False,
) -> PromptSession[str]:
    """An input of several lines that leaves nothing behind when it is sent: whoever reads it prints it."""
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.styles import Style

    @Condition
    def is_completing() -> bool:
        return may_complete(get_app().current_buffer.document.text_before_cursor)

    def find_rows_above(amount: int, columns: int) -> int:
        return count_rows_above(session, amount, columns)

    session = find_session_class()(
        multiline=True,
        vi_mode=has_vi_keys,
        erase_when_done=True,
        complete_while_typing=is_completing,
        complete_in_thread=True,
        enable_suspend=True,
        key_bindings=make_key_bindings(delegate, pastes, past),
        completer=make_completer(cwd, delegate),
        history=make_prompt_history(past, pastes),
        output=make_prompt_output(pane, find_rows_above if wraps_when_narrowed(os.environ) else None),
        style=Style.from_dict({"bottom-toolbar": "noreverse"}),
        prompt_continuation="  ",
        reserve_space_for_menu=0,
    )
    return session


def make_key_bindings(delegate: InputDelegate, pastes: PastedTexts, past: InputHistory) -> KeyBindings:
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition, is_searching
    from prompt_toolkit.key_binding import KeyBindings

    from sevenfold.agent.tui.completion import take_completion

    keys, typing = KeyBindings(), ~is_searching
    is_empty = Condition(lambda: not get_app().current_buffer.text)

    @keys.add("enter", filter=typing)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not take_completion(buffer):
            send_or_continue(event, pastes)

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def go_on(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-c", filter=typing)
    @keys.add("<sigint>", filter=typing)
    def interrupt(event: KeyPressEvent) -> None:
        delegate.interrupt(is_typed=bool(event.current_buffer.text))

    @keys.add("c-d", filter=typing)
    def leave(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text:
            buffer.delete()
        else:
            event.app.exit(exception=EOFError)

    @keys.add("c-o")
    def unfold(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        whole = pastes.unfold(buffer.text)
        if whole == buffer.text:
            delegate.unfold()
        else:
            buffer.text, buffer.cursor_position = whole, len(whole)

    @keys.add("c-r")
    def search(event: KeyPressEvent) -> None:
        with suppress(StoreError):
            entries, typed = past.read_entries(), event.current_buffer.text
            event.current_buffer.reset()
            delegate.search_history(entries, typed)

    # Named here for whoever reads; the library holds on to them.
    _ = (send, go_on, interrupt, leave, unfold, search)
    _add_chat_keys(keys, delegate, pastes, typing, is_empty)
    add_work_keys(keys, delegate, typing, is_empty, pastes.unfold)
    add_menu_keys(keys, delegate, typing, is_empty)
    return keys


def _add_chat_keys(
    keys: KeyBindings, delegate: InputDelegate, pastes: PastedTexts, typing: Filter, is_empty: Filter
) -> None:
    from prompt_toolkit.filters import has_completions, vi_insert_mode

    # With the keys of vi, Esc leaves the insert mode first.
    @keys.add("escape", filter=typing & ~vi_insert_mode)
    def escape(event: KeyPressEvent) -> None:
        if event.current_buffer.complete_state:
            event.current_buffer.cancel_completion()
        else:
            delegate.escape()

    @keys.add("s-tab", filter=typing & ~has_completions)
    def cycle_mode(_: KeyPressEvent) -> None:
        delegate.cycle_mode()

    @keys.add("?", filter=typing & is_empty)
    def show_keys(_: KeyPressEvent) -> None:
        delegate.show_keys()

    _ = (escape, cycle_mode, show_keys)
    add_paste_key(keys, pastes)


def make_completer(cwd: Path, delegate: InputDelegate) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    from sevenfold.agent.tui.completion import ProjectFiles, list_completions

    files = ProjectFiles(cwd)

    class Names(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            del complete_event  # whoever asked, the answer is the same
            for found in list_completions(document.text_before_cursor, files, delegate.own_commands()):
                yield Completion(found.text, -found.replaces, display_meta=found.remark)

    return Names()


def make_prompt_history(past: InputHistory, pastes: PastedTexts) -> History:
    from prompt_toolkit.history import History

    class Lines(History):
        def load_history_strings(self) -> Iterable[str]:
            with suppress(StoreError):
                yield from reversed(past.read_all())

        def store_string(self, string: str) -> None:
            # A line that cannot be kept is still sent.
            with suppress(StoreError):
                past.add(pastes.unfold(string))

    return Lines()


_UNSEEN_RANGES = (
    *((0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200B), (0x200E, 0x200F), (0x2028, 0x202E)),
    *((0x2060, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F)),
)
"""Characters that hide, or turn round, what stands beside them. The library spells out other controls."""


def spell_unseen_characters() -> None:
    """Have the library show them in the input line and its menus, where a file's name may bring them in."""
    from prompt_toolkit.layout.screen import Char

    for first, last in _UNSEEN_RANGES:
        Char.display_mappings.update({chr(code): f"<{code:x}>" for code in range(first, last + 1)})


def make_prompt_output(
    pane: BufferedOutput, find_rows_above: Callable[[int, int], int] | None = None
) -> Output:
    """`find_rows_above` tells where a drawing begins that the terminal has wrapped since."""
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.output.vt100 import Vt100_Output

    spell_unseen_characters()

    class Screen(Vt100_Output):
        asked_columns = drawn_columns = 0
        """What the library was told last, and what it drew with."""

        def get_size(self) -> Size:
            size = super().get_size()
            self.asked_columns = size.columns
            return size

        def get_rows_below_cursor_position(self) -> int:
            # Never asked of the terminal: its answer may come when nobody reads any more, and be shown.
            return 1

        def enable_autowrap(self) -> None:
            # What ends a drawing; the terminal may have another size by now.
            super().enable_autowrap()
            self.drawn_columns = self.asked_columns

        def cursor_up(self, amount: int) -> None:
            columns = self.get_size().columns
            if find_rows_above is not None and columns < self.drawn_columns:
                amount = find_rows_above(amount, columns)
                self.drawn_columns = columns
            super().cursor_up(amount)

        def erase_down(self) -> None:
            # From the first place of the screen on, some terminals would move all of it into the scrollback.
            self.write_raw(" ")
            super().erase_down()
            self.write_raw("\b")

    def size() -> Size:
        import shutil

        columns, rows = shutil.get_terminal_size()
        return Size(rows=rows, columns=columns)

    return Screen(cast("TextIO", pane), size, enable_cpr=False)
