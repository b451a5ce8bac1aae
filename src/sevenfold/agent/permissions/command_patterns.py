"""Patterns of commands, such as `git log *`: one simple command by its first words, whatever follows.

A pattern matches the words that bash would make of the line, and only where the line is nothing but words: no
pipeline, list, redirection, substitution, glob, assignment before the command, or program that runs another
one. Anything that this parser does not know for certain matches no pattern, and is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WILDCARD = " *"
"""At the end of a pattern: any words may follow."""

MAX_PATTERN_CHARS = 200
"""Of a pattern that is offered: a person has to read it."""

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./^-")
"""Characters that mean nothing but themselves outside quotes, wherever they stand in a word."""
_QUOTED = {"'": frozenset("'"), '"': frozenset('"$`\\!')}
"""By quote: what ends a quoted part, or is more than itself in it."""

_RESERVED = "! case coproc do done elif else esac fi for function if in select then time until while"
"""Words that begin more than a simple command."""

_RUNNERS = """
    . awk bash builtin bun bunx busybox chroot command csh dash deno direnv doas env eval exec expect fd find
    fish flock gawk gdb ionice ksh ld.so lua mawk nawk nice node nohup npx osascript parallel perl php pipx
    pkexec pnpx python ruby runuser screen script sed setarch setpriv setsid sh source ssh stdbuf strace su
    sudo systemd-run taskset tclsh time timeout tmux toybox trap unshare uvx watch xargs zsh
"""
"""Programs whose arguments name another program, or are one: first words say nothing of what such a command
does."""

_RUNNING_WORDS = """
    bundle: exec; conda: run; docker: exec run; git: bisect config filter-branch rebase submodule;
    go: generate run tool; hatch: run; kubectl: exec; mise: exec; nix: run; npm: exec x; pipenv: run;
    pnpm: dlx exec; podman: exec run; poetry: run; rbenv: exec; rye: run; uv: run tool; yarn: dlx exec
"""
"""The same of words after a program."""

_RESERVED_WORDS = frozenset(_RESERVED.split())
_RUNNER_NAMES = frozenset(_RUNNERS.split())
_RUNNER_WORDS = {
    program.strip(): frozenset(words.split())
    for program, _, words in (entry.partition(":") for entry in _RUNNING_WORDS.split(";"))
}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_VERSION = re.compile(r"[0-9.]+\Z")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*\Z")
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+\Z")


def parse_simple_command(line: str) -> tuple[str, ...] | None:
    """The words of a line that is one simple command and nothing else; None where it may be more."""
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(line):
        sign = line[at]
        if sign in " \t":
            words, word = (words if word is None else [*words, word]), None
        elif sign in _QUOTED:
            part = _read_quoted(line, at)
            if part is None:
                return None
            word, at = (word or "") + part, at + len(part) + 1
        elif sign in _BARE:
            word = (word or "") + sign
        else:
            return None
        at += 1
    words = words if word is None else [*words, word]
    if not words or words[0] in _RESERVED_WORDS or _ASSIGNMENT.match(words[0]):
        return None
    return tuple(words)


def _read_quoted(line: str, start: int) -> str | None:
    """The text between two quotes; None where it does not end, or is more than text."""
    quote = line[start]
    end = line.find(quote, start + 1)
    part = line[start + 1 : end] if end > 0 else ""
    is_plain = part.isprintable() and not _QUOTED[quote] & set(part)
    return part if end > 0 and is_plain else None


def is_wildcard(pattern: str) -> bool:
    """Whether any words may follow those of the pattern."""
    return pattern.endswith(WILDCARD)


def matches_command(pattern: str, command: str) -> bool:
    """Whether a pattern that ends with a wildcard covers all that a command does."""
    start = parse_simple_command(pattern.removesuffix(WILDCARD))
    words = parse_simple_command(command)
    if not is_wildcard(pattern) or start is None or words is None:
        return False
    return words[: len(start)] == start and not _runs_another(words)


def _runs_another(words: tuple[str, ...]) -> bool:
    program = words[0].rpartition("/")[2]
    # `python3.12` is `python`.
    program = _VERSION.sub("", program).rstrip("-") or program
    running = _RUNNER_WORDS.get(program, frozenset())
    return program in _RUNNER_NAMES or not running.isdisjoint(words[1:])


@dataclass(frozen=True, slots=True)
class PatternPreview:
    """What a pattern covers, by examples."""

    matched: str
    asked: str
    """Of the same program, and asked for all the same."""


def suggest_pattern(command: str) -> str | None:
    """A pattern for commands like this one; None where no first words say what they do.

    With a word after the program that looks like its subcommand, that too is in the pattern.
    """
    words = parse_simple_command(command)
    if words is None or _runs_another(words) or not _PROGRAM.match(words[0]):
        return None
    program, arguments = words[0], words[1:]
    if not arguments:
        pattern = program + WILDCARD
    elif _SUBCOMMAND.match(arguments[0]):
        pattern = f"{program} {arguments[0]}{WILDCARD}"
    elif arguments[0].startswith("-") and any(_SUBCOMMAND.match(word) for word in arguments[1:]):
        return None  # options first: which word is the subcommand, if one is, only the program knows
    else:
        pattern = program + WILDCARD
    return pattern if len(pattern) <= MAX_PATTERN_CHARS and matches_command(pattern, command) else None


def preview_pattern(pattern: str) -> PatternPreview:
    """Examples for a person who is about to allow it."""
    start = pattern.removesuffix(WILDCARD)
    return PatternPreview(f"{start} -x, {start} any words", f"{start} | sh, {start} > file, {start} $(cmd)")
