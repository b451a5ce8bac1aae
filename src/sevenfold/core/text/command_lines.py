"""The commands in a shell command line, and the paths that they name.

For code that looks at commands; it permits none. It errs on the side of finding too much: a command that is
looked at in vain costs a line, and a command that is missed costs what it does. Variables, aliases and
scripts are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sevenfold.core.text.globs import matches_name

# The parser reads quotes, comments, redirections and here-documents as a shell does, up to simple commands.

_TOKEN = re.compile(
    r"""[^\S\n]*(?:
        (?P<comment>\#[^\n]*)
      | (?P<duplicate>\d*[<>]&(?:\d+|-))
      | (?:\d*|&)(?P<redirect><<-|<<<|[<>]+)[&|]?
      | (?P<word>(?:\$?"(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|'[^']*'|\\.|[^\s;&|<>()`"'\\])+)
      | (?P<end>[;&|()`]+|\n)
      | (?P<stray>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(r"""\$?"((?:[^"\\]|\\.)*)"|\$'((?:[^'\\]|\\.)*)'|'([^']*)'|\\(.)|(.)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`])')
MAX_OPEN_HEREDOCS = 50
"""Here-documents that are looked for and have no end: then `<<` means something else in this line."""
_DOCUMENT = ("<<", "<<-")
_STRING = "<<<"


@dataclass(slots=True)
class SimpleCommand:
    words: list[str] = field(default_factory=list[str])
    """Without quotes, and without redirections but for a here-string."""
    heredocs: list[str] = field(default_factory=list[str])
    """Here-documents on its row, also those that another command of the row may pass on to it."""
    substituted: list[str] = field(default_factory=list[str])
    """Command lines whose output stands in its words, or in a here-document."""


def parse_commands(line: str) -> list[SimpleCommand]:
    """The simple commands of a line, or of several; some may have no words."""
    reader = _Reader(line.replace("\\\n", ""))
    reader.read()
    return reader.commands


class _Reader:
    def __init__(self, line: str) -> None:
        self._line = line
        self.commands = [SimpleCommand()]
        self._row = 0
        """The first command of this row."""
        self._awaited: list[str] = []
        """How the here-documents of this row end, as that is written."""
        self._endless: set[str] = set()
        """Ends that do not come any more."""

    def read(self) -> None:
        at, redirect = 0, ""
        while token := _TOKEN.match(self._line, at):
            at = token.end()
            if token["word"] is not None:
                self._take(token["word"], redirect)
                redirect = ""
            elif token["redirect"] is not None:
                redirect = token["redirect"]
            elif token["end"] is not None:
                redirect = ""
                at = self._end_row(at) if token["end"] == "\n" else at
                self.commands.append(SimpleCommand())

    def _take(self, word: str, redirect: str) -> None:
        if redirect in _DOCUMENT:
            self._awaited.append(word)
        elif redirect in ("", _STRING):
            command, bare = self.commands[-1], _bare(word)
            command.words.append(bare)
            command.substituted += _substituted(bare)

    def _end_row(self, at: int) -> int:
        """Past the here-documents that follow a row."""
        row, awaited = self.commands[self._row :], self._awaited
        self._row, self._awaited = len(self.commands), []
        for written in awaited:
            name = _bare(written)
            is_hopeless = name in self._endless or len(self._endless) >= MAX_OPEN_HEREDOCS
            end = None if is_hopeless else _find_end(name, self._line, at)
            if end is None:
                self._endless.add(name)
                break  # it was none: `$((1 << x))`
            body, at = self._line[at : end.start()], end.end()
            for command in row:
                command.heredocs.append(body)
            if name == written:
                row[0].substituted += _substituted(body)
        return at


def _find_end(name: str, line: str, at: int) -> re.Match[str] | None:
    return re.compile(rf"^\t*{re.escape(name)}$", re.MULTILINE).search(line, at)


def _bare(word: str) -> str:
    return "".join(map(_plain, _PART.finditer(word)))


def _plain(part: re.Match[str]) -> str:
    if part[1] is not None:
        return _ESCAPED.sub(r"\1", part[1])
    if part[2] is not None:
        return re.sub(r"\\(.)", r"\1", part[2], flags=re.DOTALL)
    return part[3] or part[4] or part[5] or ""


def _substituted(text: str) -> Iterator[str]:
    yield from re.findall(r"`([^`]*)`", text)
    for opened in re.finditer(r"\$\(", text):
        depth = 1
        for closed in re.finditer(r"[()]", text[opened.end() :]):
            depth += 1 if closed[0] == "(" else -1
            if not depth:
                yield text[opened.end() : opened.end() + closed.start()]
                break


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
        yield from simple.heredocs
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


# Paths, as far as the text shows them: good enough for notes, never for a permission.

MAX_PATHS_EACH = 40
"""Of one text. A listing of hundreds of files is named by the folder that was listed."""

_ENDINGS = (
    "bash|bat|c|cc|cfg|conf|cpp|cs|css|csv|env|ex|exs|go|gradle|h|hpp|html|ini|ipynb|java|js|json|jsonl|jsx|kt|"
    "lock|lua|md|mod|php|pl|proto|py|pyi|rb|rs|rst|scala|sh|sql|sum|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|"
    "yaml|yml|zig|zsh"
)
_PATH = re.compile(
    r"(?<![\w./:@$~*-])"
    rf"(?:~?/|\.{{1,2}}/)?(?:[\w.@+-]+/)+(?:[\w.@+-]*\w)?|(?<![\w./:@$~*-])[\w.-]*\w\.(?:{_ENDINGS})\b"
)
_READER = re.compile(r"(?:^|[;&(])\s*(?:cat|sed -n|head|tail|nl|less|bat|wc)\b")
_SEARCHER = re.compile(r"(?:^|[;&(|])\s*(?:rg|grep|egrep|find|fd|ls|ag|git (?:grep|ls-files|diff|status))\b")
_WRITER = re.compile(r">>?\s*['\"]?([\w./~@+-]+)|\btee\s+(?:-a\s+)?([\w./~@+-]+)|\bsed -i\S*\s")
_PATCH = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^\s*\2\s*$", re.MULTILINE | re.DOTALL)
_QUIET = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellPaths:
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    patched: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    searches: bool = False
    """Its output names files, one a line or one at the head of a line."""


def find_shell_paths(command: str) -> ShellPaths:
    """Which files a command line reads, writes or names. A guess: shells are not parsed here."""
    patched = tuple(dict.fromkeys(path.strip() for path in _PATCH.findall(command)))
    if patched:
        return ShellPaths(patched=patched)
    line = _HEREDOC.sub("", command)
    paths = find_text_paths(line)
    written = tuple(path for match in _WRITER.finditer(line) if (path := match[1] or match[2] or "") in paths)
    if written:
        return ShellPaths(written=written, mentioned=tuple(path for path in paths if path not in written))
    searches = bool(_SEARCHER.search(line))
    if _READER.search(line):
        return ShellPaths(read=paths, searches=searches)
    return ShellPaths(mentioned=paths, searches=searches)


def find_text_paths(text: str) -> tuple[str, ...]:
    """What looks like a path in a text, each once, in order."""
    found: dict[str, None] = {}
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".")
        if path not in _QUIET and len(path) > 3 and not _is_noise(path):
            found[path] = None
            if len(found) == MAX_PATHS_EACH:
                break
    return tuple(found)


def _is_noise(path: str) -> bool:
    """A version, a number or a date looks like a path to the pattern."""
    return not re.search(r"[A-Za-z]{2}", path)
