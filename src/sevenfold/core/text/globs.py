"""Path patterns: `*` and `?` within a name, `**` over any number of folders, `{a,b}` for either.

Also here: the rules of gitignore files, and the paths that a text or a command line names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

MAX_ALTERNATIVES = 64
"""Braces multiply: without a bound forty bytes of them make a million patterns."""

_BRACES = re.compile(r"\{([^{}]*)\}")


def expand_braces(pattern: str) -> tuple[str, ...]:
    """The patterns without braces that this one stands for; itself, where they are too many."""
    found = [pattern]
    while any(_BRACES.search(item) for item in found):
        found = [one for item in found for one in _first_braces(item)]
        if len(found) > MAX_ALTERNATIVES:
            return (pattern,)
    return tuple(dict.fromkeys(found))


def matches_name(pattern: str, name: str) -> bool:
    """Whether a pattern names this, be it one name or a line of words. Case counts."""
    return fnmatchcase(name, pattern)


def matches_path(pattern: str, path: str) -> bool:
    """Whether a pattern without braces names this path. Case counts; both are separated by `/`."""
    return matches_parts(pattern.split("/"), path.split("/"))


def matches_parts(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """The same for what stands between the slashes. Only the last `**` is ever gone back to: that is enough,
    and takes no more than one step for each pair of names."""
    at = here = 0
    star, resume = -1, 0
    while here < len(parts):
        if at < len(pattern) and pattern[at] == "**":
            star, resume = at, here
            at += 1
        elif at < len(pattern) and fnmatchcase(parts[here], pattern[at]):
            at += 1
            here += 1
        elif star >= 0:
            resume += 1
            at, here = star + 1, resume
        else:
            return False
    return all(part == "**" for part in pattern[at:])


def _first_braces(pattern: str) -> list[str]:
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return [f"{head}{choice}{tail}" for choice in found[1].split(",")]


# What git ignores, from its ignore files alone: running git would run what a repository configures.

_MAX_LINES = 5_000

_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    pattern: tuple[str, ...]
    above: tuple[str, ...]
    """The folder whose file says so, from the top."""
    is_folder: bool
    """It means folders alone."""
    is_negated: bool
    """It takes back what an earlier one ignored."""

    def names(self, parts: Sequence[str], *, is_folder: bool) -> bool:
        depth = len(self.above)
        if self.is_folder and not is_folder:
            return False
        return tuple(parts[:depth]) == self.above and matches_parts(self.pattern, parts[depth:])


def parse_ignore_rules(text: str, above: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
    """The rules of one ignore file."""
    lines = (line.removesuffix("\r") for line in text.split("\n")[:_MAX_LINES])
    return tuple(rule for rule in (_rule(line, above) for line in lines) if rule)


def is_ignored(parts: Sequence[str], rules: Iterable[IgnoreRule], *, is_folder: bool) -> bool:
    """Whether the last rule that names this path ignores it. Whoever asks has asked for the folders above."""
    ignored = False
    for rule in rules:
        # Only what would change the answer is worth a comparison.
        if rule.is_negated == ignored and rule.names(parts, is_folder=is_folder):
            ignored = not rule.is_negated
    return ignored


def _rule(line: str, above: tuple[str, ...]) -> IgnoreRule | None:
    line = _trimmed(line)
    if not line or line.startswith("#"):
        return None
    is_kept = line.startswith("!")
    body = line[1:] if is_kept else line.removeprefix("\\") if line[:2] in ("\\#", "\\!") else line
    is_folder, bare = body.endswith("/"), body.strip("/")
    if not bare:
        return None
    # A slash anywhere but at the end ties a pattern to its folder.
    is_tied = "/" in body.rstrip("/")
    names = tuple(_ESCAPED.sub(_unescaped, part) for part in bare.split("/"))
    inside = bare.endswith("/**")
    pattern = (*names[:-1], "*", "**") if inside else names
    return IgnoreRule(pattern if is_tied else ("**", *pattern), above, is_folder, is_kept)


def _unescaped(found: re.Match[str]) -> str:
    return f"[{found[1]}]" if found[1] in "*?[" else found[1]


def _trimmed(line: str) -> str:
    bare = line.rstrip(" \t")
    return f"{bare} " if bare.endswith("\\") and bare != line else bare


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
