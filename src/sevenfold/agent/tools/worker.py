"""Work in a separate process that the kernel ends when its time is up.

Without arguments it searches files for a pattern: Python's regular expressions can take forever on a hostile
pattern, and block every thread meanwhile. With a number of seconds it turns HTML from standard input into
markdown: 400 KB of comment signs keep the parser busy for two minutes. The script is run by its path and
imports only the standard library at its top, so that modules of a project are never imported.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import stat
import sys
from typing import cast

_MAX_FILE_BYTES = 8 * 1024 * 1024
_MAX_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
MAX_GREP_LINE_CHARS = 500
_LEFT_OUT = ("script", "style", "noscript", "template", "svg", "iframe", "nav", "footer")


def _limit(seconds: float) -> None:
    # The default action of the alarm ends the process wherever it is, in the middle of a match too.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))


def _search() -> None:
    asked: dict[str, object] = json.load(sys.stdin)
    _limit(float(str(asked["seconds"])))
    try:
        pattern = re.compile(str(asked["pattern"]), re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as error:
        _say({"error": str(error)})
        return
    for path in cast("list[str]", asked["files"]):
        lines = _read_lines(str(asked["root"]), path)
        found = [at for at, line in enumerate(lines) if pattern.search(line)]
        if found:
            _say(
                {"path": path, "count": len(found), "lines": _shown(lines, found, int(str(asked["context"])))}
            )


def _shown(lines: list[str], found: list[int], context: int) -> list[tuple[int, str, bool]]:
    """The lines that match and those around them: number, text, whether it matches."""
    hits = set(found)
    near = {at for hit in found for at in range(max(0, hit - context), min(len(lines), hit + context + 1))}
    return [(at + 1, lines[at][:MAX_GREP_LINE_CHARS], at in hits) for at in sorted(near)]


def _read_lines(root: str, path: str) -> list[str]:
    """The lines of a text file; none where it is something else, or cannot be read."""
    try:
        fd = _open(f"{root}/{path}" if path else root)
    except OSError:
        return []
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_FILE_BYTES:
            return []
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(_MAX_FILE_BYTES)
    finally:
        os.close(fd)
    if b"\0" in data[:8192]:
        return []
    return (
        data.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n").split("\n") if data else []
    )


def _open(real: str) -> int:
    """As the tools open files: one folder at a time, following no link."""
    *folders, name = real.split("/")[1:]
    step = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
    current = os.open("/", step)
    try:
        for folder in folders:
            below = os.open(folder, step, dir_fd=current)
            os.close(current)
            current = below
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=current)
    finally:
        os.close(current)


def _say(found: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def _convert(seconds: float) -> None:
    # Not at the top: whoever looks through our modules does not need them.
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    _limit(seconds)
    page = BeautifulSoup(sys.stdin.buffer.read().decode("utf-8", "replace"), "html.parser")
    for node in page(_LEFT_OUT):
        node.decompose()
    try:
        text = MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(page)
    except RecursionError:
        text = page.get_text("\n")  # nested too deep to be worth its form
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _convert(float(sys.argv[1]))
    else:
        _search()
