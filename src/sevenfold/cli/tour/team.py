"""The last part of the tour: two users and a team server, each a process of its own, driven by commands."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from sevenfold.cli.tour.script import TourStep
from sevenfold.core.errors import SimulatorError
from sevenfold.store.safe_git import init_repository

_LIBRARIES = ("apsw", "httpx2", "msgspec", "prometheus_client")

_LONGEST_SECONDS = 60
"""That the tour waits for a command which takes a second."""

_MEMORY = "team/deploy-days"
FAKE_KEY = "AKIA" + "Q3EGRT5XNP2LMWVB"
"""Nobody's, and in two parts, so that those who look for keys in repositories find none here."""
EDITOR_SCRIPT = """\
import sys
from pathlib import Path

old, new, name = sys.argv[1:]
path = Path(name)
path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
"""
"""What the people of the tour edit with."""

TEAM_STEP = TourStep(
    title="A team",
    narration="A team server on this machine and two users, Ada and Ben. These are the commands that you "
    "would type.",
    prompt="",
    replies=(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamStep:
    """Something that one of them does, and why it is shown."""

    who: str
    words: tuple[str, ...]
    narration: str = ""
    edit: tuple[str, str] = ("", "")
    """What is replaced by what, in a memory that is edited."""
    status: int = 0
    """How the command ends."""
    is_shown: bool = True
    """Whether the tour prints it."""

    @property
    def shown(self) -> str:
        command = " ".join(f"'{word}'" if " " in word else word for word in self.words)
        change = f"   ({self.edit[0]} → {self.edit[1]})" if self.edit[0] else ""
        return f"{self.who} $ sevenfold {command}{change}"


TEAM_STEPS = (
    TeamStep(
        who="ada",
        words=("memory", "add", _MEMORY, "-m", "The shop is deployed on Tuesdays."),
        narration="Ada adds a memory for the team.",
    ),
    TeamStep(who="ada", words=("team", "push")),
    TeamStep(
        who="ben",
        words=("team", "pull"),
        narration="Ben receives it. In a session this happens automatically.",
    ),
    TeamStep(who="ben", words=("recall", "when is the shop deployed?")),
    TeamStep(
        who="ada",
        words=("memory", "edit", _MEMORY),
        narration="Both edit it at the same time.",
        edit=("Tues", "Wednes"),
    ),
    TeamStep(who="ada", words=("team", "push"), is_shown=False),
    TeamStep(who="ben", words=("memory", "edit", _MEMORY), edit=("Tues", "Mon")),
    TeamStep(who="ben", words=("team", "push")),
    TeamStep(
        who="ben",
        words=("team", "conflicts"),
        narration="Nothing is overwritten. Both see the conflict, and either resolves it.",
    ),
    TeamStep(who="ben", words=("team", "resolve", "deploy-days", "--take", "copy")),
    TeamStep(
        who="ben",
        words=("memory", "add", "team/access", "-m", f"Deploy with {FAKE_KEY}."),
        narration="A secret is refused before it is written, and checked again before it is sent.",
        status=2,
    ),
    TeamStep(who="ada", words=("team", "pull"), is_shown=False),
    TeamStep(who="ada", words=("memory", "show", _MEMORY), narration="Ada has the resolved text."),
)


@dataclass(frozen=True, slots=True)
class StepOutput:
    step: TeamStep
    output: str


@dataclass(slots=True)
class TeamDemo:
    """A folder with a server's database and a home and a repository for each person."""

    folder: Path
    environ: Mapping[str, str]
    url: str = ""
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def open(self) -> None:
        for who in ("admin", "ada", "ben"):
            shop = self._shop(who)
            shop.mkdir(parents=True)
            init_repository(shop)
        (self.folder / "edit.py").write_text(EDITOR_SCRIPT, encoding="utf-8")

    async def found(self) -> None:
        """Make the organisation, its people and their repository, as an admin does."""
        self.tokens["ada"] = _token(await self.run("admin", "serve", "init", "acme", "ada", "--json"))
        await self.run("admin", "serve", "member", "add", "acme", "ben")
        scopes = ("--scope", "memory:read", "--scope", "memory:write")
        made = await self.run("admin", "serve", "token", "add", "acme", "ben", *scopes, "--json")
        self.tokens["ben"] = _token(made)
        await self.run("admin", "serve", "repo", "claim", "acme", "acme/shop")

    async def join(self, who: str) -> None:
        await self.run(who, "team", "join", self.url, "--token-stdin", given=self.tokens[who])

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        server = await self._start("admin", "serve", "--quiet", "--port", str(port))
        try:
            await _wait_for(port, server)
            yield
        finally:
            if server.returncode is None:
                server.terminate()
            await server.communicate()

    async def do(self, step: TeamStep) -> StepOutput:
        old, new = step.edit
        editor = f'"{sys.executable}" "{self.folder}/edit.py" {old} {new}'
        output = await self.run(step.who, *step.words, status=step.status, EDITOR=editor)
        return StepOutput(step, output.replace(f"{self.folder}/", ""))

    async def run(self, who: str, *words: str, given: str = "", status: int = 0, **environ: str) -> str:
        """A command of somebody's; what it said."""
        process = await self._start(who, *words, **environ)
        async with asyncio.timeout(_LONGEST_SECONDS):
            said, _ = await process.communicate(given.encode())
        output = said.decode("utf-8", "replace")
        if process.returncode != status:
            raise SimulatorError(f"the tour's `sevenfold {' '.join(words)}` failed: {output.strip()}")
        return output

    async def _start(self, who: str, *words: str, **environ: str) -> asyncio.subprocess.Process:
        home = self.folder / who
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sevenfold", *words),
            cwd=self._shop(who),
            env={**self.environ, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100", **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _shop(self, who: str) -> Path:
        return self.folder / who / "shop"


def find_missing_libraries() -> Sequence[str]:
    """The libraries that a server needs and that are not installed."""
    return [name for name in _LIBRARIES if find_spec(name) is None]


async def play_team_steps(folder: Path, environ: Mapping[str, str]) -> AsyncGenerator[StepOutput]:
    """Have the two share what they know, step by step."""
    office = TeamDemo(folder, environ)
    office.open()
    await office.found()
    async with office.serving():
        await office.join("ada")
        await office.join("ben")
        for step in TEAM_STEPS:
            yield await office.do(step)


class TeamRun:
    """The steps, played on a thread of their own while the reader is still at another part."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder, self._environ = folder, environ
        self._outputs = queue.SimpleQueue[StepOutput | BaseException | None]()
        self._is_stopped = False

    @contextmanager
    def playing(self) -> Generator[None]:
        thread = threading.Thread(target=lambda: asyncio.run(self._play()), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_stopped = True
            thread.join()

    async def _play(self) -> None:
        try:
            async with aclosing(play_team_steps(self._folder, self._environ)) as outputs:
                async for output in outputs:
                    self._outputs.put(output)
                    if self._is_stopped:
                        return
        except BaseException as error:
            self._outputs.put(error)
        self._outputs.put(None)

    def read_outputs(self) -> Iterator[StepOutput]:
        """Each step when it is done."""
        while (output := self._outputs.get()) is not None:
            if isinstance(output, BaseException):
                raise SimulatorError("the tour's team part failed") from output
            yield output


def _token(output: str) -> str:
    return str(json.loads(output)["token"])


async def _wait_for(port: int, server: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(_LONGEST_SECONDS):
        while server.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
    raise SimulatorError("the tour's server ended before it answered")
