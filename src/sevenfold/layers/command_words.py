"""The words of a command line, simple command by simple command: for what looks at commands and allows none.

Wide on purpose: a command that is looked at once too often costs a line, and one that is missed costs what it
does. What a shell would make of variables and substitutions is not worked out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sevenfold.core.globs import matches_name

MAX_CHARS = 100_000
MAX_DEPTH = 3
"""Command lines inside words of command lines: `sudo bash -c "ssh host 'git push'"`."""

_TOKEN = re.compile(
    r"""[^\S\n]*(?:
        (?P<word>(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s;&|<>(){}`"'\\])+)
      | (?P<end>[;&|(){}`]+|\n)
      | (?P<redirect>\d*[<>]+&?\d*)
      | (?P<stray>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(r"""\"((?:[^"\\]|\\.)*)\"|'([^']*)'|\\(.)|(.)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`])')
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_PREFIXES = frozenset(
    [
        *("sudo", "doas", "env", "time", "nice", "nohup", "exec", "command", "builtin", "eval", "xargs"),
        *("timeout", "stdbuf", "setsid", "ionice", "then", "do", "else", "if", "while", "until", "!"),
        *("coproc", "strace", "watch"),
    ]
)
"""What stands before the command that is meant."""
_SHELLS = frozenset(
    ["bash", "sh", "zsh", "dash", "fish", "ksh", "eval", "ssh", "su", "docker", "podman", "trap"]
)
"""What takes a command line as one of its words."""


def split_commands(line: str, depth: int = MAX_DEPTH) -> tuple[tuple[str, ...], ...]:
    """The words of each simple command, bare: no quotes, assignments, redirections or words before it such as
    `sudo`, and programs without their folder."""
    commands: list[tuple[str, ...]] = []
    for words in _simple(line[:MAX_CHARS].replace("\\\n", "")):
        bare = _without_prefix(words)
        if not bare:
            continue
        commands.append(_called(bare))
        if len(bare) < len(words) and words[-len(bare) - 1].startswith("-"):
            # It may be the value of the option before it: `sudo -u ada git push`.
            commands += [_called(rest)] if (rest := _without_prefix(bare[1:])) else []
        takes_lines = not _SHELLS.isdisjoint(word.rpartition("/")[2] for word in words)
        for word in bare if depth > 1 else ():
            is_line = takes_lines or "$(" in word or "`" in word
            commands += split_commands(word, depth - 1) if is_line and " " in word else ()
    return tuple(commands)


def _called(words: Sequence[str]) -> tuple[str, ...]:
    return (words[0].rpartition("/")[2] or words[0], *words[1:])


def has_command(commands: Sequence[Sequence[str]], wanted: Sequence[str]) -> bool:
    """Whether one of the commands begins with these words; `*` in a word stands for any letters. Options may
    stand between them, with a value each: `git -C there push` is `git push`."""
    return bool(wanted) and any(_begins(command, wanted) for command in commands)


def _begins(command: Sequence[str], wanted: Sequence[str]) -> bool:
    if not command or not matches_name(wanted[0], command[0]):
        return False
    at, may_be_value = 1, False
    for want in wanted[1:]:
        while at < len(command) and not matches_name(want, command[at]):
            is_option = command[at].startswith("-")
            if not is_option and not may_be_value:
                return False
            may_be_value = is_option
            at += 1
        if at == len(command):
            return False
        at, may_be_value = at + 1, False
    return True


def _simple(line: str) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    is_target = False
    for token in _TOKEN.finditer(line):
        if token["word"] is not None:
            if not is_target:
                commands[-1].append(_bare(token["word"]))
            is_target = False
        elif token["redirect"] is not None:
            is_target = not token["redirect"][-1].isdigit()
        elif token["end"] is not None:
            commands.append([])
            is_target = False
    return commands


def _bare(word: str) -> str:
    return "".join(
        _ESCAPED.sub(r"\1", part[1]) if part[1] is not None else part[2] or part[3] or part[4] or ""
        for part in _PART.finditer(word)
    )


def _without_prefix(words: Sequence[str]) -> list[str]:
    at, may_skip_option = 0, False
    while at < len(words):
        word = words[at]
        if word.rpartition("/")[2] in _PREFIXES:
            may_skip_option = True
        elif not (_ASSIGNED.match(word) or (may_skip_option and re.match(r"-|\d+[smhd]?$", word))):
            break
        at += 1
    return list(words[at:])
