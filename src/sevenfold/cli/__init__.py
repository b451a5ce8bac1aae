"""The command line. `main` turns every failure into one line on standard error and an exit code.

- `commands`: the table of commands; a command's module is imported when the command runs.
- `options/`: help and arguments of each command.
- `workspace`: the settings and the project that a command works with.
- `screen`: the only module that prints; formats numbers, wraps lines, and reads piped input.
- `chat_start`: draws the input line of a chat while `chat` is loaded.
- `chat`, `proxy`, `settings`, `layers`, `simulate`, `mcp`, `install`, `completion`, `ui`: one command each.
- `resident`: `hook` and `resident`.
- `inspect/`, `memory/`, `replay/`, `team/`, `tour/`: the other commands.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 1: it failed; 2: it was asked for wrongly; 130: interrupted; 141: unread."""
    if os.environ.get("HOME") == "":
        # The standard library takes an empty one for the root of the file system.
        del os.environ["HOME"]
    try:
        if (sys.argv[1:] if argv is None else list(argv)) == ["mcp"] and not _is_folder_gone():
            # An agent waits for it at its start, and everything below takes longer to load than this.
            from sevenfold.integrations.mcp_server.stdio import serve_stdio

            return serve_stdio()
        return _run_guarded(argv)
    except KeyboardInterrupt:  # at any moment: also while our own modules are loaded
        return 130


def _run_guarded(argv: Sequence[str] | None) -> int:
    from sevenfold.cli.screen import STDIO_SCREEN
    from sevenfold.core.errors import InputError, SevenfoldError

    try:
        code = _run(argv)
        STDIO_SCREEN.flush()
    except SystemExit as stop:  # argparse: after --help, --version or a mistake in the arguments
        return stop.code if isinstance(stop.code, int) else 1
    except SevenfoldError as error:
        STDIO_SCREEN.fail(str(error))
        return 2 if isinstance(error, InputError) else 1
    except BrokenPipeError:
        STDIO_SCREEN.mute()
        return 141
    except Exception as bug:
        if isinstance(bug, FileNotFoundError) and _is_folder_gone():
            STDIO_SCREEN.fail("the folder that you are in was removed; change to another one, then try again")
        else:
            STDIO_SCREEN.report_bug(bug)
        return 1
    return code


def _is_folder_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _run(argv: Sequence[str] | None) -> int:
    from sevenfold.cli.screen import STDIO_SCREEN

    if (sys.argv[1:] if argv is None else list(argv)) == ["--version"]:
        from sevenfold.core import __version__

        # Scripts ask for it, and the parsers of all commands take longer to load than the rest.
        STDIO_SCREEN.show_line(f"sevenfold {__version__}")
        return 0
    # What is loaded stays: looking for garbage in it meanwhile takes a seventh of a short command's time.
    gc.disable()
    try:
        from sevenfold.cli.commands import load_command, make_parser

        parser = make_parser(is_whole=False)
        options = parser.parse_args(argv)
        run = load_command(options.command) if options.command else None
    finally:
        if argv is None:
            gc.freeze()
        gc.enable()
    if run is None:
        STDIO_SCREEN.show_help(parser.format_help())
        return 2
    return run(options, STDIO_SCREEN)
