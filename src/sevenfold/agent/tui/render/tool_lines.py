"""What a tool call that is over leaves on the screen: its line, and the lines that it printed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sevenfold.agent.loop.turn import ToolEnded
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.messages import Block, Text

SLOW_TOOL_TIME = timedelta(seconds=1)
"""From which on it is said how long a tool took."""


MAX_TITLE_ROWS = 3
"""Of a call: a program that was written into a command would fill the screen."""


def cut_title(title: str, renderer: TextRenderer) -> str:
    """What was called, or its beginning where that is long: the whole is there to be unfolded."""
    from rich.cells import cell_len

    cut = renderer.cut(title, MAX_TITLE_ROWS * (renderer.columns - 2))
    return cut if cell_len(cut) < cell_len(title) else title


def render_tool_head(title: str, seen: ToolEnded, lines: int, most: int) -> str:
    """One line for a call that is over: how it ended is said in words too, for a screen without colour."""
    is_error = seen.output.is_error
    remarks = [("denied" if seen.is_denied else "failed")] if is_error else []
    remarks += [f"({seen.took.total_seconds():.1f} s)"] if seen.took >= SLOW_TOOL_TIME else []
    remarks += [_count(lines, "line")] if lines and not most else []
    return "  ".join([f"{'✗' if is_error else '●'} {title}", *remarks])


def list_output_lines(content: str | tuple[Block, ...]) -> list[str]:
    if not isinstance(content, str):
        content = "\n".join(
            block.text if isinstance(block, Text) else f"[{type(block).__name__.lower()}]"
            for block in content
        )
    return content.rstrip().split("\n") if content.strip() else []


TAIL_PREVIEW_LINES = 3
"""From the end, where a command says how it went."""


def cut_output_lines(lines: Sequence[str], most: int, hint: str) -> list[str]:
    """Of more lines than are shown, the first and the last; `hint` tells how to see the others."""
    tail = TAIL_PREVIEW_LINES if most > TAIL_PREVIEW_LINES else 0
    return [*lines[: most - tail], f"… {len(lines) - most} more{hint}", *lines[len(lines) - tail :]]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
