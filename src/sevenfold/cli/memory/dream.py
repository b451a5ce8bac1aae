"""`sevenfold dream`: dream now; list, stop or undo dreams."""

from __future__ import annotations

import asyncio
import os
import signal
from argparse import Namespace
from collections.abc import Generator
from contextlib import AsyncExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from sevenfold.agent.loop.choose_provider import DEFAULT_MODEL, choose_provider
from sevenfold.agent.opening.background_work import make_dream_model
from sevenfold.agent.permissions.guard import ForkGuard, Reach
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.agent.tools.read import ReadTool
from sevenfold.agent.tools.search import GlobTool, GrepTool
from sevenfold.cli.screen import Screen, Tone
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.errors import InputError, ProviderMissing
from sevenfold.core.events import DreamDegraded, DreamProgressed, DreamSpared, Event
from sevenfold.core.settings.sections import AgentSettings
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.dreams.dreamer import Dreamer, DreamResult
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.layers.dreams.publish import DreamRecord
from sevenfold.layers.dreams.workspace import DreamModel
from sevenfold.session.budget import SpendSettings
from sevenfold.session.governor import GovernedProvider, Governor
from sevenfold.session.opening import Workspace
from sevenfold.store.files.locks import LockSettings

_TONES: dict[str, Tone] = {"+": "strong", "-": "faint", "@": "faint"}


def run_dream(options: Namespace, screen: Screen) -> int:
    action, wanted = cast("str", options.action), cast("str | None", options.dream)
    if action != "now" and (options.dry_run or options.mechanical):
        raise InputError(f"--dry-run and --mechanical go with a dream, and not with {action}")
    if action in ("now", "log", "stop") and wanted:
        raise InputError(f"`sevenfold dream {action}` takes no ID; show and undo do")
    with _opened(cast("Path", options.project), screen) as command:
        match action:
            case "now":
                return command.dream(options)
            case "log":
                return command.log(as_json=options.json)
            case "show":
                return command.show(command.find(wanted), as_json=options.json)
            case "undo":
                return command.undo(wanted, as_json=options.json)
            case _:
                return command.stop()


@dataclass(frozen=True, slots=True)
class _DreamCommand:
    workspace: Workspace
    dreamer: Dreamer
    screen: Screen

    def dream(self, options: Namespace) -> int:
        dreamt = asyncio.run(self._dream(is_dry=options.dry_run, is_mechanical=options.mechanical))
        if options.json:
            self.screen.show_json({**asdict(dreamt.record), "diff": dreamt.diff})
        else:
            self._show(dreamt.record, dreamt.diff)
        return 0 if dreamt.record.outcome in ("completed", "unchanged", "previewed") else 1

    def log(self, *, as_json: bool) -> int:
        records = self._records()
        if as_json:
            self.screen.show_json([asdict(record) for record in records])
            return 0
        for record in records:
            counts = (
                f"{len(record.changed)} written, {len(record.removed)} gone, {len(record.archived)} aside"
            )
            self.screen.show_line(f"{record.id}  {record.outcome:10}  {record.writer:10}  {counts}")
        if not records:
            self.screen.show_line(
                "there was no dream yet; `sevenfold dream --dry-run` shows what one would do"
            )
        return 0

    def show(self, record: DreamRecord, *, as_json: bool) -> int:
        diff = self.dreamer.records.diff(record.id)
        if as_json:
            self.screen.show_json({**asdict(record), "diff": diff})
            return 0
        for step in record.steps:
            self.screen.show_line(f"  {step}", "faint")
        self._show(record, diff)
        return 0

    def undo(self, wanted: str | None, *, as_json: bool) -> int:
        done = [record for record in self._records() if record.transaction]
        record = _choose(done, wanted)
        found = self.workspace.memory.revert(record.transaction, f"dream {record.id} was undone")
        keys = [change.key for change in found.changes]
        if as_json:
            self.screen.show_json({"dream": record.id, "transaction": found.id, "keys": keys})
        else:
            self.screen.show_line(f"dream {record.id} is taken back: {', '.join(keys)}")
        return 0

    def stop(self) -> int:
        running = self.dreamer.find_running()
        if not running:
            raise InputError("no dream is under way")
        self.dreamer.records.ask_to_stop(running)
        self.screen.show_line(f"dream {running} is asked to stop; it changes nothing")
        return 0

    def find(self, wanted: str | None) -> DreamRecord:
        return _choose(self._records(), wanted)

    def _records(self) -> list[DreamRecord]:
        return self.dreamer.records.list(running=self.dreamer.find_running())

    async def _dream(self, *, is_dry: bool, is_mechanical: bool) -> DreamResult:
        task = asyncio.current_task()
        if task:
            with suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with AsyncExitStack() as exits:
            model = None if is_mechanical else await self._model(exits)
            return await self.dreamer.dream(model, is_dry=is_dry)

    async def _model(self, exits: AsyncExitStack) -> DreamModel | None:
        """The model that settings name, under the caps of background work; None where there is none."""
        workspace, settings = self.workspace, self.workspace.settings
        writer = settings.of(DreamSettings).writer
        if writer == "mechanical":
            return None
        emit = _ProgressPrinter(self.screen)
        model = workspace.catalog.find(settings.of(AgentSettings).model or DEFAULT_MODEL)
        try:
            provider = choose_provider(model, settings.of(AgentSettings), os.environ, emit)
        except ProviderMissing as error:
            if writer == "model":
                raise
            emit(DreamDegraded("", str(error)))
            return None
        exits.push_async_callback(provider.close)
        governor = Governor.open(workspace.home, settings.of(SpendSettings), emit=emit)
        exits.push_async_callback(governor.close)
        place = ToolContext(root=workspace.root, cwd=workspace.cwd, emit=emit)
        box = ToolExecutor((ReadTool(), GrepTool(), GlobTool()), place, ForkGuard(Reach()))
        return make_dream_model(GovernedProvider(provider, governor), model, box, workspace, emit)

    def _show(self, record: DreamRecord, diff: str) -> None:
        for line in diff.splitlines():
            self.screen.show_line(line, _TONES.get(line[:1], "plain"))
        for line in record.lines():
            self.screen.show_line(line, "plain" if line.startswith(" ") else "strong")


@contextmanager
def _opened(project: Path, screen: Screen) -> Generator[_DreamCommand]:
    emit = _ProgressPrinter(screen)
    with open_workspace(project, emit=emit) as workspace:
        settings, locks = workspace.settings.of(DreamSettings), workspace.settings.of(LockSettings)
        dreamer = Dreamer(
            workspace.project,
            workspace.memory,
            settings,
            locks=locks,
            templates=workspace.templates,
            emit=emit,
        )
        with closing(dreamer):
            yield _DreamCommand(workspace, dreamer, screen)


@dataclass(frozen=True, slots=True)
class _ProgressPrinter:
    """What is printed of a dream while it runs."""

    screen: Screen

    def __call__(self, event: Event) -> None:
        match event:
            case DreamProgressed(state=state, step=step):
                self.screen.note(f"{state}: {step}")
            case DreamDegraded(reason=reason):
                self.screen.note(f"note: without a model ({reason})")
            case DreamSpared(keys=keys, reason=reason):
                self.screen.note(f"note: {keys} is left as it is: {reason}")
            case _:
                pass


def _choose(records: list[DreamRecord], wanted: str | None) -> DreamRecord:
    """The one of that id, or whose id begins so; the last where none is named."""
    found = [record for record in records if record.id.startswith(wanted or "")]
    if not found or (wanted and len(found) > 1):
        said = f"{len(found) or 'no'} dreams begin with {wanted!r}" if wanted else "there is no dream yet"
        raise InputError(f"{said}; `sevenfold dream log` lists them")
    return found[0]
