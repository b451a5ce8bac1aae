"""`sevenfold chat`: an agent at the terminal, or one answer for a script."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sevenfold.agent.face.asking import Asking
from sevenfold.agent.face.chat import Chat, Keyboard
from sevenfold.agent.face.house import House
from sevenfold.agent.face.one_shot import OutputForm, Shot, run_once
from sevenfold.agent.face.past import Past
from sevenfold.agent.face.plain_terminal import PlainTerminal
from sevenfold.agent.face.scene import Scene
from sevenfold.agent.face.terminal import Terminal
from sevenfold.agent.face.typed import read_typed
from sevenfold.agent.face.welcome import render_ways
from sevenfold.agent.local_file import read_agreed
from sevenfold.agent.setup import Setup, open_agent
from sevenfold.cli.context_facts import choose_session, list_known, read_context
from sevenfold.cli.context_view import show_context
from sevenfold.cli.narrow import fit_lines
from sevenfold.cli.piped import read_piped
from sevenfold.cli.render import Screen
from sevenfold.core.errors import InputError, ProviderMissing
from sevenfold.core.events import Event, SettingRefused
from sevenfold.run.permissions import Mode
from sevenfold.store.folder import Folder
from sevenfold.store.places import PlaceSettings
from sevenfold.store.sessions import SessionId
from sevenfold.store.settings_files import find_user_home

if TYPE_CHECKING:
    from sevenfold.agent.agent import Agent

LIBRARIES = ("prompt_toolkit", "rich")
"""What the terminal face is made of; a script needs neither."""

LEAVING = (signal.SIGTERM, signal.SIGHUP)
"""A supervisor, or a terminal that was closed: the session is closed in order."""


def run(options: Namespace, screen: Screen) -> int:
    try:
        setup = _setup(options)
        if options.print:
            return asyncio.run(_print(options, setup, screen))
        missing = [name for name in LIBRARIES if find_spec(name) is None]
        if missing:
            raise InputError(
                f"the terminal needs {' and '.join(missing)}; pip install 'sevenfold[chat]', "
                "or use -p PROMPT, which needs neither"
            )
        return asyncio.run(_chat(options, setup, screen))
    except ProviderMissing:
        for line in render_ways(os.environ, str(_home() / "settings.toml")):
            screen.note(line)
        return 2


def _setup(options: Namespace) -> Setup:
    project = cast("Path", options.project)
    wanted = "latest" if getattr(options, "continue") else cast("str | None", options.resume)
    if not options.print and (options.max_usd is not None or options.output != "text"):
        raise InputError("--output and --max-usd are for one answer: add -p")
    if options.fork and wanted is None:
        raise InputError("--fork needs a session to go on from: add --continue or --resume ID")
    session = choose_session(project, wanted, os.environ) if wanted is not None else None
    return Setup(
        project,
        model=cast("str", options.model),
        mode=cast("Mode | None", options.mode),
        session=session,
        is_fork=cast("bool", options.fork),
        max_rounds=cast("int | None", options.max_rounds),
    )


async def _print(options: Namespace, setup: Setup, screen: Screen) -> int:
    prompt = cast("str | None", options.prompt)
    # Python has no stdin where it was closed before the start.
    piped = read_piped(sys.stdin.fileno(), screen.note, is_needed=not prompt) if sys.stdin else ""
    text = "\n\n".join(part for part in (prompt, piped) if part)
    if not text.strip():
        raise InputError("-p has nothing to say; give it a PROMPT, or pipe something in")
    shot = Shot(cast("OutputForm", options.output), cast("float | None", options.max_usd))
    agent = await open_agent(replace(setup, emit=_Noting(screen)))
    try:
        typed = read_typed(text, agent.place.cwd)
        for problem in typed.problems:
            screen.note(problem)
        facts = await run_once(agent, typed.message, lambda line: _write(screen, line), shot)
        if facts.exit_code and shot.form == "text":
            why = "the budget is used up" if facts.is_over_budget else facts.end.reason
            screen.note(f"not finished: {why}; to go on: sevenfold chat --resume {facts.session[:12]}")
        return facts.exit_code
    finally:
        await agent.close()


@dataclass(frozen=True, slots=True)
class _Noting:
    """Says which settings were ignored, whatever form the answer has: nobody is there to be asked."""

    screen: Screen

    def __call__(self, event: Event) -> None:
        if isinstance(event, SettingRefused):
            self.screen.note(f"ignored: {event.key} of {event.source}: {event.reason}")


def _write(screen: Screen, line: str) -> None:
    screen.show(line)
    screen.flush()


async def _chat(options: Namespace, setup: Setup, screen: Screen) -> int:
    asking, confirming = Asking(), _Confirming(screen)
    setup = replace(setup, ask=asking.ask, confirm=confirming.ask)
    agent = await open_agent(setup)
    confirming.is_over = True
    with _open_past() as past:
        chat = Chat(agent, _house(setup), asking, lambda scene: _keyboard(scene, past, agent.place.cwd))
        loop = asyncio.get_running_loop()
        for number in LEAVING:
            loop.add_signal_handler(number, chat.leave)
        await chat.run(cast("str | None", options.prompt) or "")
    screen.note(f"to go on: sevenfold chat --resume {chat.agent.session.id[:12]}")
    return 0


def _keyboard(scene: Scene, past: Past, cwd: Path) -> Keyboard:
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return Terminal(scene, past, cwd)
    return PlainTerminal(scene)


def _house(setup: Setup) -> House:
    async def open_session(session: str | None) -> Agent:
        start = "clear" if session is None else setup.start
        return await open_agent(replace(setup, session=session, is_fork=False, start=start))

    async def describe_context(session: str) -> str:
        facts = await asyncio.to_thread(read_context, setup.project, SessionId(session), None, os.environ)
        with redirect_stdout(StringIO()) as page:
            show_context(facts, Screen())
        return fit_lines(page.getvalue().rstrip("\n"), shutil.get_terminal_size().columns)

    def memories(words: str) -> list[str]:
        from sevenfold.cli.memory import answer

        return answer(setup.project, words)

    return House(open_session, lambda: list_known(setup.project, os.environ), describe_context, memories)


@dataclass(slots=True)
class _Confirming:
    """Asks before the terminal is drawn: nothing of a repository's own runs unless a person agreed."""

    screen: Screen
    is_over: bool = False
    """The keyboard is the terminal's from now on, and a line read past it never comes: what agents and other
    sessions find meanwhile stays off, and is asked for at the next start."""

    async def ask(self, question: str) -> bool | None:
        if self.is_over or not sys.stdin.isatty():
            return None
        self.screen.note(f"{question} [y/N]")
        line = await _read_line(sys.stdin.fileno())
        return line.strip().lower() in ("y", "yes") if line else None  # the terminal was closed: no answer


async def _read_line(terminal: int) -> str:
    """A line that is typed. Not in a thread, which Ctrl-C cannot end before an Enter."""
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(terminal, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(terminal)
    # A terminal hands out whole lines.
    return os.read(terminal, 4_096).decode("utf-8", "replace")


def _home() -> Path:
    settings = read_agreed(Path(), os.environ)
    return settings.of(PlaceSettings).home_folder(find_user_home(os.environ))


@contextmanager
def _open_past() -> Generator[Past]:
    with Folder.open(_home(), create=True) as home:
        yield Past(home)
