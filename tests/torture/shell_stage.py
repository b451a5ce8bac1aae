"""Where hostile commands run: a project, what lies around it and must stay as it is, and doors to nowhere."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from sevenfold.agent.sandbox.kernel import PR_SET_CHILD_SUBREAPER, prctl

SECRET = "this-key-must-never-be-shown"
KEY = "this-variable-must-never-be-shown"
SYSTEM_FOLDERS = (
    "/",
    "/tmp",
    "/var/tmp",
    "/etc",
    "/etc/profile.d",
    "/usr/local/bin",
    "/root",
    "/run",
    "/dev",
)
GUARDED = (".git", ".envrc", ".claude", ".sevenfold")


class Stage:
    """One for each worker, so that whatever happens is known to be its doing."""

    def __init__(self, place: Path, number: int) -> None:
        self.path = place / f"stage{number}"
        self.project, self.outside, self.home = (self.path / name for name in ("project", "outside", "home"))
        self.mark = f"sevenfold-mark-{os.getpid()}-{number}"
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self._lay_outside()
        self.lay_project()
        self._tcp = self._exits.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._udp = self._exits.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._udp.bind(("127.0.0.1", 0))
        self._unix = self._listen(str(self.outside / "door"))
        self._abstract = self._listen("\0" + self.mark)
        for door in (self._tcp, self._udp, self._unix, self._abstract):
            door.setblocking(False)
        # Its name is in its arguments, for those who kill by name.
        self.victim = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()", self.mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.outside,
            start_new_session=True,
        )
        self._outside_digest = digest(self.outside) + digest(self.home)
        self._project_digest = digest(self.project)
        self._guarded_digest = self._digest_guarded()
        return self

    def __exit__(self, *_: object) -> None:
        self.victim.kill()
        self.victim.communicate()
        self._exits.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def fill(self, text: str) -> str:
        """A line of the corpus, for this stage."""
        places = {
            "{out}": str(self.outside),
            "{home}": str(self.home),
            "{mark}": self.mark,
            "{port}": str(self._tcp.getsockname()[1]),
            "{udp}": str(self._udp.getsockname()[1]),
            "{unix}": str(self.outside / "door"),
            "{abstract}": self.mark,
            "{victim}": str(self.victim.pid),
            "{agent}": str(os.getpid()),
        }
        for name, value in places.items():
            text = text.replace(name, value)
        return text

    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return kept | {"HOME": str(self.home), "CORPUS_API_KEY": KEY, "CORPUS_TOKEN": KEY}

    def damage(self, *, may_change: bool) -> list[str]:
        """What was done that may not be, and all as it was again afterwards."""
        found: list[str] = []
        if digest(self.outside) + digest(self.home) != self._outside_digest:
            found.append("something outside was changed")
            self._lay_outside()
            self._outside_digest = digest(self.outside) + digest(self.home)
        found += self._knocks()
        if self.victim.poll() is not None or _state(self.victim.pid) == "T":
            found.append("another process was ended or stopped")
        is_changed = digest(self.project) != self._project_digest
        if is_changed and not may_change:
            found.append("the project was changed")
        if is_changed and self._digest_guarded() != self._guarded_digest:
            found.append("what programs obey was changed in the project")
        if is_changed:
            self.lay_project()
            self._project_digest = digest(self.project)
            self._guarded_digest = self._digest_guarded()
        return found

    def traces(self) -> list[str]:
        """Files anywhere on the system that bear the mark."""
        found: list[str] = []
        for folder in SYSTEM_FOLDERS:
            with suppress(OSError):
                found += [f"{folder}/{name}" for name in os.listdir(folder) if self.mark in name]
        return [*found, "the name of the machine"] if self.mark in os.uname().nodename else found

    def _knocks(self) -> list[str]:
        found: list[str] = []
        doors = {"a TCP": self._tcp, "a Unix": self._unix, "an abstract": self._abstract}
        for name, door in doors.items():
            with suppress(BlockingIOError):
                door.accept()[0].close()
                found.append(f"{name} socket was reached")
        with suppress(BlockingIOError):
            self._udp.recv(10)
            found.append("a UDP socket was reached")
        return found

    def _listen(self, name: str) -> socket.socket:
        door = self._exits.enter_context(socket.socket(socket.AF_UNIX))
        door.bind(name)
        door.listen()
        return door

    def _lay_outside(self) -> None:
        for folder in (self.outside / "sub", self.home / ".ssh", self.home / ".config" / "autostart"):
            folder.mkdir(parents=True, exist_ok=True)
        for name in ("canary", "sub/canary"):
            (self.outside / name).write_text(SECRET, encoding="utf-8")
        for name in (".bashrc", ".profile", ".ssh/id_rsa", ".ssh/authorized_keys"):
            (self.home / name).write_text(SECRET, encoding="utf-8")
        with suppress(FileNotFoundError):
            (self.outside / "new").unlink()

    def lay_project(self) -> None:
        """Empty it and fill it again."""
        shutil.rmtree(self.project, ignore_errors=True)
        for folder in ("deep", ".git/hooks", ".claude", ".sevenfold", "hooks"):
            (self.project / folder).mkdir(parents=True)
        for name in (
            "a.txt",
            "b.txt",
            "deep/c.txt",
            ".envrc",
            ".git/config",
            ".git/HEAD",
            ".claude/settings.json",
        ):
            (self.project / name).write_text("x a\n", encoding="utf-8")
        (self.project / "a.list").write_text("a.txt\n", encoding="utf-8")
        for name in ("evil", "a", "hooks/pre-commit"):
            (self.project / name).write_text(f"#!/bin/sh\necho x > {self.outside}/new\n", encoding="utf-8")
            (self.project / name).chmod(0o755)
        links = {
            "link": "../outside",
            "file_link": "../outside/canary",
            "absolute_link": str(self.outside / "canary"),
            "chain": "file_link",
            "deep/up": "../..",
        }
        for name, target in links.items():
            (self.project / name).symlink_to(target)
        os.mkfifo(self.project / "fifo")

    def _digest_guarded(self) -> str:
        kept = "".join(digest(self.project / name) for name in GUARDED)
        new = [
            name for name in os.listdir(self.project) if name in (".mcp.json", ".vscode", ".bashrc", ".npmrc")
        ]
        return f"{kept} {new}"


def digest(place: Path) -> str:
    """Names, kinds, modes, owners, sizes, times and contents of everything below, and of the place itself."""
    found = hashlib.sha256()
    for path in (place, *sorted(place.rglob("*"))):
        about = path.lstat()
        found.update(f"{path}|{about.st_mode}|{about.st_uid}|{about.st_gid}|{about.st_nlink}|".encode())
        if stat.S_ISREG(about.st_mode):
            found.update(f"{about.st_mtime_ns}|".encode() + path.read_bytes())
        elif stat.S_ISLNK(about.st_mode):
            found.update(os.readlink(path).encode())
    return found.hexdigest()


@contextmanager
def adopting() -> Generator[None]:
    """Whatever loses its parent below us comes to us for the length of a block, where it can be counted."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0)


def children() -> list[int]:
    """Our own, and those that were adopted."""
    listing = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return [int(pid) for pid in listing.split()]


def strays(known: set[int]) -> list[str]:
    """Processes that came to us when their own parent ended: nobody may."""
    found: list[str] = []
    own = Path("/proc/self/cmdline").read_bytes()
    for pid in children():
        with suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            is_known = pid in known or not line or line == own or b"sandbox.supervisor" in line
            found += [] if is_known else [line.replace(b"\0", b" ").decode("utf-8", "replace")[:100]]
    return found


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
