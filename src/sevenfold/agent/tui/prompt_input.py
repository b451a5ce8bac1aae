"""The input itself: keys, completion and history, made of prompt_toolkit's parts.

The library is loaded when a terminal is opened and not before, so its classes are derived from in functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from sevenfold.agent.tui.buffered_output import BufferedOutput
from sevenfold.agent.tui.completion import list_completions
from sevenfold.agent.tui.input_delegate import InputDelegate
from sevenfold.agent.tui.input_history import InputHistory
from sevenfold.core.errors import StoreError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

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
