"""`/rewind`: choosing an earlier message, and what goes back to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.rewind import (
    RewindOutcome,
    RewindPoint,
    list_rewind_points,
    plan_rewind,
    rewind_agent,
    undo_rewind,
)
from sevenfold.agent.tools.checkpoints import FileRestore
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu
from sevenfold.agent.tui.text_renderer import TextTone

UNDO_WORD = "undo"
COMMANDS_STAY = "what commands changed is not taken back"
_MAX_NAMED_FILES = 5


class RewindingChat(Protocol):
    """A chat, as far as going back needs it."""

    agent: Agent

    def say(self, text: str, tone: TextTone = "plain") -> None: ...

    async def choose(self, menu: ChoiceMenu) -> int | None:
        """Have the person choose a row; None: none of them."""
        ...

    def offer_input(self, text: str) -> None:
        """Put a text into the input, if that is empty."""
        ...


async def run_rewind(chat: RewindingChat, argument: str) -> None:
    """Go back to a message that the person chooses, or undo that."""
    if argument == UNDO_WORD:
        _tell(chat, await undo_rewind(chat.agent), "undone")
        return
    points = list_rewind_points(chat.agent)
    if not points:
        chat.say("there is no earlier message to go back to", "faint")
        return
    at = await chat.choose(
        ChoiceMenu(
            title="go back to before which message?",
            choices=[Choice(label=point.words) for point in points],
        )
    )
    if at is None:
        chat.say("nothing has changed", "faint")
        return
    plan = await plan_rewind(chat.agent, points[at].place)
    if not await _rewind(chat, points[at], plan):
        chat.say("nothing has changed", "faint")


async def _rewind(chat: RewindingChat, point: RewindPoint, plan: Sequence[FileRestore]) -> bool:
    """Ask what goes back, and do it; False where the person decides against it."""
    restored = [item for item in plan if item.state == "restore"]
    rows = [Choice(label="the conversation", letter="c", remark="files stay as they are")]
    if restored:
        named = f"{_list_files(restored)}; {COMMANDS_STAY}"
        rows = [
            Choice(label="the conversation and the files", letter="b", remark=named),
            *rows,
            Choice(label="the files", letter="f", remark=f"{named}; the model is told"),
        ]
    for item in plan:
        if item.state in ("changed", "lost"):
            chat.say(_explain_kept(item, _relative(chat, item.path)), "warning")
    rows.append(Choice(label="nothing", letter="n"))
    at = await chat.choose(ChoiceMenu(title="what goes back?", choices=rows))
    chosen = "n" if at is None else rows[at].letter
    if chosen == "n":
        return False
    files = plan if chosen in ("b", "f") else ()
    _tell(chat, await rewind_agent(chat.agent, point, files, keeps_conversation=chosen == "f"), "went back")
    if chosen != "f":
        chat.offer_input(point.text)
    return True


def _tell(chat: RewindingChat, done: RewindOutcome, verb: str) -> None:
    parts: list[str] = []
    if done.messages:
        moved = "left the conversation and are in the transcript" if done.words else "are back"
        parts.append(f"{done.messages} messages {moved}")
    if done.restored:
        names = (_relative(chat, path) for path in done.restored)
        parts.append(f"files put back: {', '.join(names)}")
    parts.append(COMMANDS_STAY)
    chat.say(f"{verb}: {'; '.join(parts)}", "good")
    for item in done.kept:
        chat.say(_explain_kept(item, _relative(chat, item.path)), "warning")
    if verb != "undone":
        chat.say(f"/rewind {UNDO_WORD} undoes it", "faint")


def _relative(chat: RewindingChat, path: str) -> str:
    return path.removeprefix(f"{chat.agent.place.root}/")


def _explain_kept(item: FileRestore, name: str) -> str:
    if item.state == "lost":
        return f"{name} stays as it is: what it held then is no longer kept"
    return f"{name} stays as it is: somebody else changed it since the last edit of a tool"


def _list_files(restored: Sequence[FileRestore]) -> str:
    named = ", ".join(item.path.rpartition("/")[2] for item in restored[:_MAX_NAMED_FILES])
    more = len(restored) - _MAX_NAMED_FILES
    return f"{named} and {more} more" if more > 0 else named
