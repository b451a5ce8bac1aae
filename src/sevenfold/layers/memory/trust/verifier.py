"""Checks what memories claim against the project: is what they name still there?

Cheap first: most paths are one look at the disk. A symbol is looked for in the project's files, as git would
list them; whether one is there is remembered until a file changes. What time did not suffice for is not
broken, and neither is what cannot be checked from here.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import cast

from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.memories import Origin
from sevenfold.core.text.command_lines import split_commands
from sevenfold.layers.memory.trust.claims import MemoryClaim, find_claims
from sevenfold.store.memory.changes import StoredMemory
from sevenfold.store.project.project import Project
from sevenfold.store.project.user_files import list_project_files, read_file_state, resolve_path

_MAX_FILE_BYTES = 2 * 1024 * 1024
"""A larger file is generated or no text."""
_MAX_READ_BYTES = 256 * 1024 * 1024

_RUNNERS = frozenset(["npm", "pnpm", "yarn", "bun"])
_LEAST_CHARS = 3
"""A part of a symbol that is shorter occurs everywhere."""
_FEW_WORDS = 8
"""For more words than this, taking all words of a file apart is faster than looking for each."""


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """A claim that could not be confirmed."""

    claim: MemoryClaim
    reason: str

    def __str__(self) -> str:
        return f"{self.claim.text} ({self.reason})"


def describe_broken_claims(broken: Iterable[BrokenClaim]) -> str:
    """What is said beside a memory that is put before a model; empty where nothing is broken."""
    named = ", ".join(map(str, broken))
    return f"could not be confirmed: {named}" if named else ""


class _OutOfTime(Exception):
    pass


def find_claim_root(project: Project, checkout: Path, origin: Origin) -> Path | None:
    """Against what a memory's claims are checked: the checkout, or the project that it was learnt in where
    several have one directory. None where that is not known or not there: nothing is broken then."""
    if not project.is_memory_shared:
        return checkout
    root = Path(origin.root)
    if not origin.root or not root.is_dir():
        return None
    return checkout if root == project.root else root


class ProjectVerifiers:
    """A verifier for each project that memories of one directory speak of. One thread at a time."""

    def __init__(self, project: Project, checkout: Path) -> None:
        self._project, self._checkout = project, checkout
        self._verifiers: dict[Path, ClaimVerifier] = {}

    def find(self, origin: Origin) -> ClaimVerifier | None:
        """None: what a memory of this origin claims cannot be checked from here."""
        root = find_claim_root(self._project, self._checkout, origin)
        return root and self._verifiers.setdefault(root, ClaimVerifier(root))

    def verify(self, stored: StoredMemory, budget: timedelta | None = None) -> tuple[BrokenClaim, ...]:
        """What a memory claims and is not there; see `ClaimVerifier.verify`."""
        verifier = self.find(stored.origin)
        return verifier.verify(stored.memory.body, budget) if verifier else ()

    def check_each(
        self, stored: Sequence[StoredMemory], claims: Sequence[Iterable[MemoryClaim]]
    ) -> list[tuple[BrokenClaim, ...]]:
        """The same for many memories, each with its claims: a project is listed and read once."""
        found: list[tuple[BrokenClaim, ...]] = [()] * len(stored)
        by_root: dict[Path, list[int]] = {}
        for at, one in enumerate(stored):
            verifier = self.find(one.origin)
            if verifier:
                by_root.setdefault(verifier.root, []).append(at)
        for root, places in by_root.items():
            broken = self._verifiers[root].check_each([claims[at] for at in places])
            for at, lost in zip(places, broken, strict=True):
                found[at] = lost
        return found


@dataclass(slots=True)
class ClaimVerifier:
    """Of one project; keep it for a session. Every method blocks on the disk; one thread at a time."""

    root: Path
    _known: dict[str, bool] = field(default_factory=dict[str, bool])
    """Words that were looked for: whether they are there."""
    _state: int = 0
    """Of the project's files, when they were."""

    def verify(self, body: str, budget: timedelta | None = None) -> tuple[BrokenClaim, ...]:
        """What a memory claims and is not there. With a budget, as far as that goes."""
        return self.check(find_claims(body), budget)

    def check(
        self, claims: Iterable[MemoryClaim], budget: timedelta | None = None
    ) -> tuple[BrokenClaim, ...]:
        """The same for claims that were found already, in their order. URLs are not looked at here."""
        return self._start(budget).find_broken(claims)

    def check_each(self, claims: Sequence[Iterable[MemoryClaim]]) -> list[tuple[BrokenClaim, ...]]:
        """The same for many memories: the project is listed once, and read at most once for all symbols."""
        listed = [tuple(some) for some in claims]
        checking = self._start(None)
        with suppress(SevenfoldError, _OutOfTime):
            checking.search_symbols(claim.text for some in listed for claim in some if claim.kind == "symbol")
        return [checking.find_broken(some) for some in listed]

    def _start(self, budget: timedelta | None) -> _Checking:
        return _Checking(root=Path(resolve_path(str(self.root))), verifier=self, on_time=_deadline(budget))

    def recall_word(self, word: str, state: int) -> bool | None:
        if state != self._state:
            self._known.clear()
            self._state = state
        return self._known.get(word)

    def note_word(self, word: str, *, is_there: bool) -> None:
        self._known[word] = is_there


@dataclass(slots=True, kw_only=True)
class _Checking:
    """One look at a project: its files are listed at most once."""

    root: Path
    verifier: ClaimVerifier
    on_time: Callable[[], None]
    _files: tuple[str, ...] | None = None
    _names: str = ""
    """All of them in one text: a search in it is much faster than a loop."""
    _state: int = 0

    def find_broken(self, claims: Iterable[MemoryClaim]) -> tuple[BrokenClaim, ...]:
        found: list[BrokenClaim] = []
        # Those that cost a look come before those that may cost all the time there is.
        for claim in sorted(claims, key=lambda claim: claim.kind == "symbol"):
            try:
                reason = self.why_broken(claim)
            except (_OutOfTime, SevenfoldError):
                continue
            if reason:
                found.append(BrokenClaim(claim, reason))
        return tuple(found)

    def search_symbols(self, symbols: Iterable[str]) -> None:
        """Look for the words of all these symbols in one pass over the files."""
        files = self._listed()
        words = {part for symbol in symbols for part in _split_symbol(symbol)}
        self._look_for(
            [word for word in words if self.verifier.recall_word(word, self._state) is None], files
        )

    def why_broken(self, claim: MemoryClaim) -> str:
        self.on_time()
        match claim.kind:
            case "path":
                return "" if self._has_path(claim.text) else "no such file"
            case "symbol":
                return "" if self._has_symbol(claim.text) else "found in no file"
            case "command":
                return self._why_no_command(claim.text)
            case "url":
                return ""

    def _has_path(self, path: str) -> bool:
        if os.path.lexists(self.root / path):
            return True
        # Memories also name files from where one stands: `api/routes.py` for `src/api/routes.py`.
        self._listed()
        return f"/{path}\0" in self._names or f"/{path}/" in self._names

    def _has_symbol(self, symbol: str) -> bool:
        files = self._listed()
        unknown: list[str] = []
        for part in _split_symbol(symbol):
            known = self.verifier.recall_word(part, self._state)
            if known is False:
                return False
            unknown += [part] if known is None else []
        return not self._look_for(unknown, files)

    def _look_for(self, words: Sequence[str], files: Iterable[str]) -> set[str]:
        """Those of the words that stand in no file; what was found is remembered."""
        missing = self._search(words, files) if words else set[str]()
        for word in words:
            self.verifier.note_word(word, is_there=word not in missing)
        return missing

    def _search(self, words: Sequence[str], files: Iterable[str]) -> set[str]:
        missing = {word: re.compile(rb"(?<!\w)" + word.encode() + rb"(?!\w)") for word in words}
        left_bytes = _MAX_READ_BYTES
        for name in files:
            self.on_time()
            data = _read(str(self.root / name))
            left_bytes -= len(data)
            if left_bytes < 0:
                raise _OutOfTime
            for word in _find_words(missing, data):
                del missing[word]
            if not missing:
                break
        return set(missing)

    def _why_no_command(self, command: str) -> str:
        # What another machine or a container has is unknown here.
        for words in split_commands(command, depth=1):
            reason = self._why_no_target(words) or self._why_no_argument(words)
            if reason:
                return reason
        program = command.split(maxsplit=1)[0]
        if program.startswith("./") and not self._has_path(program.removeprefix("./")):
            return "no such file"
        return ""

    def _why_no_target(self, words: tuple[str, ...]) -> str:
        program, *rest = words
        if any(word.startswith("-") for word in rest[:1]):
            return ""  # another folder or another file: unknown here
        if program in ("make", "just") and rest:
            names = [word for word in rest if re.fullmatch(r"[\w.-]+", word)]
            recipes = _read_recipes(self.root, program)
            lost = [name for name in names if recipes is not None and name not in recipes]
            return f"{program} has no target {lost[0]}" if lost else ""
        if program in _RUNNERS and rest[:1] == ["run"] and len(rest) > 1:
            scripts = _read_scripts(self.root)
            return "" if scripts is None or rest[1] in scripts else f"package.json has no script {rest[1]}"
        return ""

    def _why_no_argument(self, words: tuple[str, ...]) -> str:
        """Files that a command is given, where they are surely meant to be there."""
        for word in words[1:]:
            path = word.removeprefix("./").partition("::")[0]
            if re.fullmatch(r"(?:[\w.@+-]+/)+[\w@+-]+\.\w{1,5}", path) and not self._has_path(path):
                return f"no such file: {path}"
        return ""

    def _listed(self) -> tuple[str, ...]:
        if self._files is None:

            def wanted(_path: str) -> bool:
                self.on_time()
                return True

            listing = list_project_files(str(self.root), wanted)
            if listing.is_cut:
                raise _OutOfTime
            self._files = tuple(file.path for file in listing.files)
            self._names = "".join(f"/{name}\0" for name in self._files)
            self._state = hash(tuple((file.path, file.modified_ns) for file in listing.files))
        return self._files


def _split_symbol(symbol: str) -> list[str]:
    return [part for part in re.split(r"\W+", symbol) if len(part) >= _LEAST_CHARS]


def _find_words(patterns: Mapping[str, re.Pattern[bytes]], data: bytes) -> list[str]:
    """Those of the words that stand in a text."""
    if len(patterns) <= _FEW_WORDS:
        return [word for word, pattern in patterns.items() if word.encode() in data and pattern.search(data)]
    here = frozenset(re.findall(rb"\w+", data))
    return [
        word
        for word, pattern in patterns.items()
        if (word.encode() in here if word.isascii() else pattern.search(data))
    ]


def _deadline(budget: timedelta | None) -> Callable[[], None]:
    if budget is None:
        return lambda: None
    end = time.monotonic() + budget.total_seconds()

    def on_time() -> None:
        if time.monotonic() > end:
            raise _OutOfTime

    return on_time


def _read(real: str) -> bytes:
    """A text file of the project; empty where it is none, too large or gone."""
    try:
        data = read_file_state(real, max_bytes=_MAX_FILE_BYTES).data
    except SevenfoldError:
        return b""
    return b"" if b"\0" in data[:8192] else data


def _read_first(root: Path, names: Iterable[str]) -> str | None:
    for name in names:
        try:
            return read_file_state(str(root / name), max_bytes=_MAX_FILE_BYTES).data.decode(
                "utf-8", "replace"
            )
        except FileMissing:
            continue
    return None


_RECIPE_FILES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}


def _read_recipes(root: Path, program: str) -> frozenset[str] | None:
    """What `make` or `just` can be asked for; None where that is made up as it runs, or there is no file."""
    text = _read_first(root, _RECIPE_FILES[program])
    if text is None or re.search(r"^(?:-?include|import|mod)\b|^[^\t\n#]*%[^\n]*:|^\$\(", text, re.MULTILINE):
        return None
    return frozenset(_recipes(text))


def _recipes(text: str) -> Iterator[str]:
    for line in re.finditer(r"^@?([A-Za-z0-9_./ -]+?)(?: [^:=\n]*)?:(?!=)", text, re.MULTILINE):
        yield from line[1].split()


def _read_scripts(root: Path) -> frozenset[str] | None:
    text = _read_first(root, ["package.json"])
    try:
        package: object = json.loads(text) if text else None
    except ValueError:
        return None
    scripts = cast("dict[str, object]", package).get("scripts", {}) if isinstance(package, dict) else None
    return frozenset(cast("dict[str, object]", scripts)) if isinstance(scripts, dict) else None
