"""A folder full of traps, and keys that try to get out of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

CANARY = b"canary: nobody inside may ever see this"
FRIENDS = ("a.md", "b.md", "deep", "deep/c.md", "deep/deeper", "deep/deeper/d.md", "x", "x.md", "Case.md")
"""Names that are what they seem."""

TRAPS = (
    *("file_link", "file_absolute", "chain", "chain2", "dangling", "loop", "proc_file", "hard.md", "fifo"),
    *("null", "zero", "socket", "dir_link", "dir_absolute", "up", "cwd", "root", "self_fd", "dir_chain"),
)
INSIDE_TRAPS = (
    "",
    "/canary.md",
    "/new.md",
    "/sub/canary.md",
    "/outside/canary.md",
    "/etc/passwd",
    "/deep/c.md",
)
PARTS = (
    *(
        "..",
        ".",
        "",
        " ",
        "~",
        "*",
        "?",
        "-",
        "--help",
        "-rf",
        "...",
        ".git",
        ".tmp-x",
        ".ssh",
        "%2e%2e",
        "..%2f",
    ),
    *(
        "..\\..",
        "C:",
        "C:\\x",
        "\\\\host\\share",
        "file:x",
        "a:ads",
        "a.md:stream",
        "$HOME",
        "`id`",
        "$(id)",
        "a\nb",
    ),
    *(
        "con",
        "CON.md",
        "nul",
        "aux.txt",
        "com1",
        "LPT9.log",
        "a.",
        "a ",
        " a",
        "a..",
        "CASE.md",
        "case.MD",
        "A.md",
    ),
    *("ａ.md", "é.md", "é.md", "‥", "․․", "a\u202egpj.md", "a\u200b.md", "\ufeffa", "ſ.md", "K.md", "ß", "İ"),
    *(
        "a\0.md",
        "\0",
        "a.md\0/../../x",
        "\udc80",
        "\ud800",
        "x" * 200,
        "x" * 256,
        "x" * 5000,
        "名前.md",
        "..a",
        "a..",
    ),
)


class Outside:
    """What must stay as it is: its files, their content, names, modes and times."""

    def __init__(self, place: Path) -> None:
        self.path = place
        (place / "sub").mkdir(parents=True)
        (place / "canary.md").write_bytes(CANARY)
        (place / "sub" / "canary.md").write_bytes(CANARY)

    def digest(self) -> str:
        found = hashlib.sha256()
        for path in sorted(self.path.rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
            found.update(f"{path}|{about.st_mode}|{about.st_mtime_ns}|".encode() + content)
        # Whoever gets out altogether is likely to end up at the top.
        found.update(repr(sorted(os.listdir("/"))).encode())
        return f"{found.hexdigest()} {self.path.lstat().st_mtime_ns}"


def set_traps(root: Path, outside: Path) -> None:
    """Empty the folder and fill it again."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "deep" / "deeper").mkdir(parents=True)
    for name in ("a.md", "b.md", "deep/c.md", "deep/deeper/d.md", "Case.md"):
        (root / name).write_bytes(b"inside")
    links = {
        "file_link": "../outside/canary.md",
        "file_absolute": str(outside / "canary.md"),
        "chain": "chain2",
        "chain2": "file_link",
        "dangling": "../outside/new.md",
        "loop": "loop",
        "proc_file": f"/proc/self/root{outside}/canary.md",
        "dir_link": "../outside",
        "dir_absolute": str(outside),
        "dir_chain": "dir_link",
        "up": "..",
        "cwd": "/proc/self/cwd",
        "root": "/proc/self/root",
        "self_fd": "/proc/self/fd",
        "deep/dir_link": "../../outside",
        "deep/deeper/up": "../../..",
    }
    for name, target in links.items():
        os.symlink(target, root / name)
    os.link(outside / "canary.md", root / "hard.md")
    os.mkfifo(root / "fifo")
    with suppress(OSError):
        # Only root may make them; without, the names are merely missing.
        os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mknod(root / "socket", stat.S_IFSOCK | 0o600)


def hostile_keys(random: Random, outside: Path) -> Iterator[str]:
    """Keys without end: half could pass for good ones and lead into a trap, half are odd in themselves."""
    while True:
        kind = random.random()
        if kind < 0.35:
            yield random.choice(TRAPS) + random.choice(INSIDE_TRAPS) * random.randrange(2)
        elif kind < 0.5:
            yield random.choice(("deep/dir_link", "deep/deeper/up", "deep/../dir_link")) + random.choice(
                INSIDE_TRAPS
            )
        elif kind < 0.6:
            yield random.choice(FRIENDS)
        elif kind < 0.65:
            start = random.choice(("", "/", "//", "./", "deep/../", "x/../../"))
            yield start + str(outside / random.choice(("canary.md", "new.md")))
        else:
            yield _odd_key(random)


def _odd_key(random: Random) -> str:
    """Odd parts in any order, now and then with any characters at all."""
    choices = (*PARTS, *FRIENDS, *TRAPS)
    parts = [
        random.choice(choices) if random.random() < 0.85 else _any_text(random)
        for _ in range(random.choice((1, 1, 2, 3, 5, 9)))
    ]
    return random.choice(("", "", "", "/", "../", "../outside/")) + "/".join(parts)


def _any_text(random: Random) -> str:
    return "".join(chr(random.choice((random.randrange(128), random.randrange(0x11000)))) for _ in range(4))
