"""The commands in a command line, however they are dressed: for what looks at commands and allows none.

Wide on purpose: a command that is looked at once too often costs a line, and one that is missed costs what it
does. What a shell would make of variables, aliases and scripts is not worked out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sevenfold.core.text.globs import matches_name
from sevenfold.core.text.shell_parser import SimpleCommand, parse_commands

_MAX_CHARS = 100_000
_MAX_DEPTH = 3
"""Command lines inside words of command lines: `sudo bash -c "ssh host 'git push'"`."""
MAX_COMMAND_STARTS = 40
"""Words among which the command that is meant begins, and commands that run one another."""
MAX_REMOTE_READINGS = 8
"""Readings of `ssh` and its like: each is read as a line of its own."""

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_GLUED = re.compile(r"(?:-[A-Za-z]|--[a-z-]+=)(?=\S)")
_KEYWORDS = frozenset(["then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", "coproc"])
_WRAPPERS = {
    **dict.fromkeys(("sudo", "doas", "env", "nice", "nohup", "exec", "command", "builtin", "eval"), 0),
    **dict.fromkeys(("xargs", "stdbuf", "setsid", "ionice", "strace", "ltrace", "watch", "nsenter"), 0),
    **dict.fromkeys(("unshare", "busybox", "parallel", "npx", "caffeinate", "chronic"), 0),
    **dict.fromkeys(("timeout", "flock", "chroot", "taskset", "chrt", "function", "script"), 1),
    **dict.fromkeys(("uv", "poetry", "pipenv", "bundle"), 1),
}
"""What runs the command behind it, and how many words of its own stand between, options not counted."""
_ELSEWHERE = {"ssh": 1, "docker": 2, "podman": 2, "kubectl": 2}
"""The same, where the command runs somewhere else: of the host, or of `exec` and the container."""
_SHELLS = frozenset(
    [
        *("bash", "sh", "zsh", "dash", "fish", "ksh", "eval", "su", "trap"),
        *("env", "flock", "watch", "script", "parallel", *_ELSEWHERE),
    ]
)
"""What takes a command line as one of its words, or is fed with one."""
_FINDERS = frozenset(["find", "fd", "fdfind"])
_EXECUTING = frozenset(["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"])
_VALUED = {
    "git": frozenset(["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"])
}
"""Programs whose options are known: those that take the next word, before the word that says what to do."""


def split_commands(line: str, depth: int = _MAX_DEPTH) -> tuple[tuple[str, ...], ...]:
    """The words of each command, bare: no quotes, assignments or redirections, and programs without their
    folder. What `sudo` and its like run follows as a command of its own.

    With a depth of 1 nothing is looked for inside of words, or in what runs on another machine.
    """
    found: list[tuple[str, ...]] = []
    for simple in parse_commands(line[:_MAX_CHARS]):
        commands = [*_readings(simple.words)]
        found += commands
        for inner in _inner_lines(simple, commands) if depth > 1 else ():
            found += split_commands(inner, depth - 1)
    return tuple(found)


def has_command(commands: Sequence[Sequence[str]], wanted: Sequence[str]) -> bool:
    """Whether one of the commands begins with these words; `*` in a word stands for any letters. Options may
    stand between them, with a value each: `git -C there push` is `git push`."""
    return bool(wanted) and any(_begins(command, wanted) for command in commands)


def _readings(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A simple command, and those that it runs in turn: each that it could be, for only the program knows
    which of its options take the next word."""
    seen, left = set[int](), [0]
    while left and len(seen) < MAX_COMMAND_STARTS:
        at = left.pop()
        while at < len(words) and (words[at] in _KEYWORDS or _ASSIGNED.match(words[at])):
            at += 1
        if at >= len(words) or at in seen:
            continue
        seen.add(at)
        program = words[at].rpartition("/")[2] or words[at]
        yield (program, *words[at + 1 :])
        if program in _WRAPPERS:
            left += _starts(words, at + 1, _WRAPPERS[program])
        elif program in _FINDERS:
            if "-delete" in words[at:]:
                yield ("rm",)
            behind = range(at + 2, min(len(words), at + MAX_COMMAND_STARTS))
            left += [start for start in behind if words[start - 1] in _EXECUTING]


def _starts(words: Sequence[str], at: int, operands: int) -> set[int]:
    """Where the command behind a wrapper may begin: after its options, any of which may have a value, and
    after so many words of its own."""
    found, seen = set[int](), set[tuple[int, int, bool]]()
    left = [(at, operands, False)]
    while left:
        state = left.pop()
        here, owed, is_value = state
        if here >= min(len(words), at + MAX_COMMAND_STARTS) or state in seen:
            continue
        seen.add(state)
        is_option = words[here].startswith("-")
        if is_option or _ASSIGNED.match(words[here]) or words[here] == "compose":
            left.append((here + 1, owed, is_option))
            continue
        if is_value:
            left.append((here + 1, owed, False))
        if owed:
            left.append((here + 1, owed - 1, False))
        else:
            found.add(here)
    return found


def _inner_lines(simple: SimpleCommand, commands: Sequence[Sequence[str]]) -> Iterator[str]:
    """Command lines that a command holds in its words, is fed with, or hands to another machine."""
    yield from simple.substituted
    if not _SHELLS.isdisjoint(word.rpartition("/")[2] for word in simple.words):
        yield from (_GLUED.sub("", word, count=1) for word in simple.words if " " in word or "\n" in word)
        yield from simple.fed
    for command in commands:
        if command[0] in _ELSEWHERE:
            starts = sorted(_starts(command, 1, _ELSEWHERE[command[0]]))[:MAX_REMOTE_READINGS]
            yield from (" ".join(command[start : start + MAX_COMMAND_STARTS]) for start in starts)


def _begins(command: Sequence[str], wanted: Sequence[str]) -> bool:
    if not command or not matches_name(wanted[0], command[0]):
        return False
    valued = _VALUED.get(command[0])
    at = 1
    for want in wanted[1:]:
        may_be_value = False
        while at < len(command) and (_takes_next(valued, command[at]) or not matches_name(want, command[at])):
            is_option = command[at].startswith("-")
            if not is_option and not may_be_value:
                return False
            # Of a program that is known the value goes with its option, and is never what is wanted.
            at += 2 if _takes_next(valued, command[at]) else 1
            may_be_value = is_option and valued is None
        if at >= len(command):
            return False
        at, valued = at + 1, None
    return True


def _takes_next(valued: frozenset[str] | None, word: str) -> bool:
    return valued is not None and word in valued
