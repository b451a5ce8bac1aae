"""A command at work: what runs, what holds it, and what it has printed."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.sandbox.command import CommandExit, SupervisedCommand
from sevenfold.agent.sandbox.command_output import MAX_OUTPUT_FILE_BYTES, CommandOutput
from sevenfold.agent.sandbox.folders import (
    LinkTarget,
    choose_writable_root,
    make_own_folder,
    move_aside,
    read_guarded,
)
from sevenfold.agent.sandbox.run_store import SandboxRunStore, report_moved
from sevenfold.agent.sandbox.sandbox import Sandbox
from sevenfold.agent.tool import OnProgress
from sevenfold.core.profile import SandboxProfile
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.tool_results.spill import SPILL_FOLDER

_decoder = getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command, and what is to hold it."""

    line: str
    profile: SandboxProfile
    description: str = ""


class SandboxJob:
    """Starts at once. Whoever has one closes it, which ends whatever still runs."""

    def __init__(
        self, wish: CommandRequest, sandbox: Sandbox, place: ToolContext, book: SandboxRunStore | None = None
    ) -> None:
        """With a book, what it may not make is moved aside even where we are killed before its end."""
        self.wish = wish
        self._place = place
        self._root = choose_writable_root(place) if wish.profile == "workspace" else None
        self._known: Mapping[str, LinkTarget | None] = {}
        if self._root is not None:
            make_own_folder(self._root)
            self._known = read_guarded(self._root)
        orders = sandbox.orders(wish.profile, wish.line, place)
        folder = place.session_folder
        self.output = CommandOutput(None if folder is None else folder / SPILL_FOLDER)
        self._note = book.note(self._root, self._known) if book and self._root else None
        try:
            self.command = SupervisedCommand(orders)
        except BaseException:
            self._strike_out(is_clean=True)
            raise
        self.notes: list[str] = []
        """What a reader must know beside the output."""
        self._is_cut = False

    async def watch(self, on_progress: OnProgress) -> None:
        """Take in what it prints until it has ended, or prints without end."""
        decoder = _decoder("replace")
        while part := await self.command.read():
            self.output.add(part)
            on_progress(decoder.decode(part))
            if self.output.is_flood:
                self.cut(f"it was ended: it printed more than {MAX_OUTPUT_FILE_BYTES // 2**20} MiB")
                return
        # It may have closed its output and gone on.
        await self.command.wait()

    def cut(self, reason: str) -> None:
        """Ask it to end, for this reason; how it ends says nothing then."""
        self._is_cut = True
        self.notes.append(reason)
        self.command.ask_to_end()

    async def close(self) -> CommandExit:
        """End it if it still runs, and everything that it started. Nothing of it is left afterwards."""
        try:
            ended = await self.command.close()
        finally:
            self.output.close()
            self._strike_out(is_clean=self.take_back())
        if not self._is_cut:
            self.notes += _notes(ended, self.wish.profile, self._root)
        return ended

    def take_back(self) -> bool:
        """What it made so far that programs obey is not left where they would find it; False where some of it
        could not be moved."""
        found = list(move_aside(self._root, self._known)) if self._root else []
        for moved in found:
            report_moved(moved, self._place.emit)
            if moved.failure:
                note = f"{moved.path} may not be made here, and could not be moved: {moved.failure}"
            else:
                note = f"{moved.path} may not be made here, since programs obey it: moved to {moved.moved_to}"
            self.notes.append(note)
        return not any(moved.failure for moved in found)

    def _strike_out(self, *, is_clean: bool) -> None:
        if self._note is not None:
            self._note.close(self._place.emit, is_clean=is_clean)

    def told(self, text: str) -> str:
        """An output with the notes below it."""
        lines = [text.rstrip("\n"), *(f"[{note}]" for note in self.notes)]
        return "\n".join(line for line in lines if line)


def _notes(ended: CommandExit, profile: SandboxProfile, root: Path | None) -> list[str]:
    if ended.failure:
        return [f"it did not run: {ended.failure}"]
    notes: list[str] = []
    if ended.is_crowded:
        notes.append("it was ended: it started too many processes")
    if ended.left:
        notes.append(
            f"{ended.left} of its processes still ran and were ended; use background to keep one running"
        )
    if ended.code:
        notes.append(f"exit code {ended.code}")
        if profile != "open":
            where = f"writes only in {root}" if root else "no writes"
            notes.append(f"it ran held: no network, {where}; access says what it needs")
    return notes
