"""What a memory claims to be there: paths, symbols, commands and URLs that its text names.

A claim has to look like one beyond doubt: a memory that is doubted without reason is as bad as one that is
trusted without reason. Sentences that say that something is gone or yet to come claim nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

ClaimKind: TypeAlias = Literal["path", "symbol", "command", "url"]

MAX_CLAIMS = 40
"""Of one memory. One that names more is a listing, and its first forty tell whether it still holds."""
_MAX_CHARS = 64 * 1024

_FENCED = re.compile(
    r"^(?P<fence>```+|~~~+)[ \t]*(?P<tongue>[\w+-]*)[^\n]*\n(?P<text>.*?)^(?P=fence)", re.M | re.S
)
_SHELLS = frozenset(["sh", "bash", "shell", "console", "zsh"])
_SPAN = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_URL = re.compile(r"https?://[^\s<>()\[\]{}\"'`|\\]+")
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")
_ENDING = (
    "bash|c|cc|cfg|conf|cpp|cs|css|csv|go|gradle|h|hpp|html|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|lua|md|"
    "mjs|"
    "php|pl|proto|py|pyi|rb|rs|rst|scala|sh|sql|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml|zig"
)
_PATH = re.compile(r"(?:[\w.@+-]+/)+[\w.@+-]*")
_CODE_FILE = re.compile(
    r"[\w@+-][\w.@+-]*\.(?:c|cc|cpp|cs|go|h|hpp|java|js|jsx|kt|lua|php|py|rb|rs|scala|sh|sql|swift|ts|tsx|"
    r"vue)"
)
_FILE_NAME = re.compile(rf"\.(?:{_ENDING})$")
_BARE_PATH = re.compile(rf"(?<![\w./:@$~*`-])(?:[\w.@+-]+/)+[\w.@+-]*\.(?:{_ENDING})(?![\w/])")
_PLACE = re.compile(r"(?::\d+(?::\d+)?|#L\d+(?:-L?\d+)?|::[\w.]+)$")
_NAME = r"[A-Za-z_]\w*"
_SYMBOL = re.compile(rf"({_NAME}(?:(?:\.|::|#){_NAME})*)(\(\))?")
_DISTINCT = re.compile(r"_[a-z0-9]|[a-z0-9]_|[a-z0-9][A-Z]|[A-Z]{2,}_[A-Z]")
_PROGRAMS = (
    *("make", "just", "npm", "pnpm", "yarn", "bun", "cargo", "go", "python3?", "pytest", "uv", "tox", "nox"),
    *("poetry", "pip3?", "docker", "git", "ruff", "mypy", "node", "npx", "deno", "bundle", "rake", "mix"),
    *("gradle", "mvn", "cmake", "ctest", "bazel", "terraform", "kubectl", "helm", r"\./[\w./-]+"),
)
_COMMAND = re.compile(rf"(?:\$ )?((?:{'|'.join(_PROGRAMS)})(?: [^\n]+)?)")
_GONE_OR_TO_COME = (
    *("removed?", "deleted?", "dropped", "gone", "no longer", "not (?:exist|there|use)", "doesn't exist"),
    *("renamed", "moved", "replaced?s?", "instead of", "used to", "formerly", "obsolete", "deprecated"),
    *("never", "avoid", "do not", "don't", "planned", "will (?:be|add|live|become)", "todo"),
    *("to be (?:added|created|written)", "should (?:be created|add)", r"e\.g\.", "for example", "such as"),
)
_UNCLAIMED = re.compile(rf"\b(?:{'|'.join(_GONE_OR_TO_COME)})\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"[<>{}*?$%…\[\]]|\.\.\.|\bfoo\b|\bYYYY\b|\bexample\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MemoryClaim:
    """Something that a memory names as if it were there."""

    kind: ClaimKind
    text: str


def find_claims(body: str) -> tuple[MemoryClaim, ...]:
    """The claims of a memory's body, each once, in order."""
    found: dict[MemoryClaim, None] = {}
    for claim in _claims(body[:_MAX_CHARS]):
        found[claim] = None
        if len(found) == MAX_CLAIMS:
            break
    return tuple(found)


def _claims(body: str) -> Iterator[MemoryClaim]:
    for block in _FENCED.finditer(body):
        if block["tongue"].lower() in _SHELLS:
            yield from _in_script(block["text"])
    for sentence in _SENTENCE.split(_FENCED.sub("", body)):
        if not _UNCLAIMED.search(_prose(sentence)):
            yield from _in_sentence(sentence)


def _prose(sentence: str) -> str:
    """The words of a sentence without what it names: `todo/list.py` is no plan."""
    return _BARE_PATH.sub(" ", _SPAN.sub(" ", _LINK.sub(" ", _URL.sub(" ", sentence))))


def _in_script(text: str) -> Iterator[MemoryClaim]:
    """Of a console, only what was typed."""
    lines = [line.strip() for line in text.splitlines()]
    typed = [line for line in lines if line.startswith("$ ")] or lines
    for line in typed:
        command = _COMMAND.fullmatch(line)
        if command and not _PLACEHOLDER.search(command[1]):
            yield MemoryClaim("command", command[1])


def _in_sentence(sentence: str) -> Iterator[MemoryClaim]:
    for match in _URL.finditer(sentence):
        url = match[0].rstrip(".,;:!?")
        if not _PLACEHOLDER.search(url.partition("?")[0]):
            yield MemoryClaim("url", url)
    prose = _URL.sub(" ", sentence)
    for link in _LINK.finditer(prose):
        yield from _read_path(link[1])
    for span in _SPAN.finditer(prose):
        yield from _in_span(span[1].strip())
    for bare in _BARE_PATH.finditer(_LINK.sub(" ", _SPAN.sub(" ", prose))):
        yield from _read_path(bare[0])


def _in_span(text: str) -> Iterator[MemoryClaim]:
    if _PLACEHOLDER.search(text):
        return
    command = _COMMAND.fullmatch(text)
    if command and (" " in text or text.startswith("./")):
        yield MemoryClaim("command", command[1])
        return
    yield from _read_path(text)
    symbol = None if _FILE_NAME.search(text) else _SYMBOL.fullmatch(text)
    if symbol and (symbol[2] or _DISTINCT.search(text) or re.search(r"\w(?:\.|::|#)\w", text)):
        yield MemoryClaim("symbol", symbol[1])


def _read_path(text: str) -> Iterator[MemoryClaim]:
    """A path inside the project: what lies elsewhere is another machine's as often as not."""
    bare = _PLACE.sub("", text).removeprefix("./")
    if bare.startswith(("/", "~", "-")) or ".." in bare.split("/") or _PLACEHOLDER.search(bare):
        return
    # `and/or`, `client/server` and `1/2` are words: a path has an ending, or parts enough. A bare name is
    # often that of a file somewhere else, unless it is code's.
    is_path = _PATH.fullmatch(bare) and re.search(r"/.*\.\w+$|/.*/|^\.\w+/\w", bare)
    if re.search(r"[A-Za-z]", bare) and (is_path or _CODE_FILE.fullmatch(bare)):
        yield MemoryClaim("path", bare.rstrip("/"))
