"""What a command line touches, as far as its text tells: a pointer for the notes, never a permission."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
