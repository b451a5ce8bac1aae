"""Simple commands in a shell command line: bare words, no comments, redirections or here-documents; also the
arrays that they assign, and what they print."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

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
_CONTROLS = {"n": "\n", "t": "\t"}
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
    end: str = ""
    """What stands between it and the next command: `|`, `&&`, `)`."""


def parse_commands(line: str) -> list[SimpleCommand]:
    """The simple commands of a line, or of several; some may have no words."""
    reader = _Reader(line.replace("\\\n", ""))
    reader.read()
    return reader.commands


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayValue:
    """An array that a command assigns: `a=(git push)`."""

    name: str
    is_longer: bool
    """It goes on with what it held: `a+=(push)`."""
    first: int
    last: int
    """The commands as which its elements were read."""
    words: tuple[str, ...]


_ASSIGNED_ARRAY = re.compile(r"([A-Za-z_]\w*)(\+?)=")


def find_arrays(commands: list[SimpleCommand]) -> Iterator[ArrayValue]:
    """The arrays in these commands; none whose elements are more than words."""
    for at, command in enumerate(commands):
        match = _ASSIGNED_ARRAY.fullmatch(command.words[-1]) if command.words and command.end == "(" else None
        if match is None:
            continue
        inside = range(at + 1, len(commands))
        last = next((here for here in inside if commands[here].end != "\n"), at)
        if commands[last].end.startswith(")"):
            words = tuple(word for one in commands[at + 1 : last + 1] for word in one.words)
            yield ArrayValue(name=match[1], is_longer=bool(match[2]), first=at + 1, last=last, words=words)


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
                self.commands[-1].end = ("<" if redirect == "<" else "") + token["end"]
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
            has_no_end = name in self._endless or len(self._endless) >= MAX_OPEN_HEREDOCS
            end = None if has_no_end else _find_end(name, self._line, at)
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
        return re.sub(r"\\(.)", lambda found: _CONTROLS.get(found[1], found[1]), part[2], flags=re.DOTALL)
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


# What commands print, near enough to find commands in it.

_PRINTERS = frozenset(["echo", "printf"])
_DECODES = re.compile(r"-i?[dD]i?|--decode")


def find_printed_texts(commands: Sequence[Sequence[str]], heredocs: Sequence[str]) -> Iterator[str]:
    """What the commands of a pipeline print, also decoded where one of them decodes base64."""
    decoders = [one for one in commands if _is_decoder(one)]
    for text in map(_printed, (one for one in commands if one[0] in _PRINTERS)):
        yield text
        yield from _decode(text) if decoders else ()
    given = [word for one in decoders for word in one[1:]]
    for text in (*given, *(heredocs if decoders else ())):
        yield from _decode(text)


def _is_decoder(command: Sequence[str]) -> bool:
    is_openssl = command[0] == "openssl" and not {"base64", "-base64"}.isdisjoint(command)
    return (is_openssl or command[0] == "base64") and any(map(_DECODES.fullmatch, command))


def _decode(text: str) -> Iterator[str]:
    with suppress(ValueError):
        yield b64decode("".join(text.split()), validate=True).decode()


def _printed(command: Sequence[str]) -> str:
    words = list(command[1:])
    while words and re.fullmatch(r"-[neE]+|--", words[0]):
        del words[0]
    if command[0] == "echo":
        text = " ".join(words)
    else:
        text, *values = words or [""]
        for value in values:
            text = text.replace("%s", value, 1) if "%s" in text else f"{text} {value}"
    return text.replace("\\n", "\n").replace("%s", " ")
