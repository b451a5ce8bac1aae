"""`sevenfold serve` as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.contracts.source_tree import run, tool

WAIT_SECONDS = 60


def make_team(url: str) -> dict[str, str]:
    """An organisation with its owner's token and a repository, made by the commands."""
    first = run([tool("sevenfold"), "serve", "init", "acme", "ada", "--db", url, "--json"])
    assert first.returncode == 0, first.stderr
    claimed = run([tool("sevenfold"), "serve", "repo", "claim", "acme", "acme/app", "--db", url, "--json"])
    assert claimed.returncode == 0, claimed.stderr
    return {"token": json.loads(first.stdout)["token"], "repo": json.loads(claimed.stdout)[0]["id"]}


class Served:
    """One server process, on a port that it chose, or on the one given."""

    def __init__(self, url: str, folder: Path, *, port: int = 0, options: Sequence[str] = ()) -> None:
        self._log = (folder / f"serve-{port}.log").open("ab")
        self.process = subprocess.Popen(
            [tool("sevenfold"), "serve", "--db", url, "--port", str(port), "--quiet", *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("serving "), line
        self.url = line.split()[1]
        self.port = int(self.url.rpartition(":")[2])

    def end(self) -> int:
        """Ask it to end, and wait."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def kill(self) -> None:
        self.process.kill()
        self._wait()

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.end()

    def _wait(self) -> int:
        code = self.process.wait(WAIT_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        return code
