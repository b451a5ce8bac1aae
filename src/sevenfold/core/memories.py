"""A memory: one topic in one markdown file, with frontmatter that says what it is about and when it matters.

In order: reading and writing the file, the keys that shared memories may have, where a memory came from
(`Origin`), how often memories were used (`MemoryUses`), and the conditions of `applies_to`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal, NewType, TypeAlias, get_args

from sevenfold.core.errors import InputError, KeyRefused
from sevenfold.core.text.markdown import (
    MAX_HEAD_BYTES,
    FieldValue,
    MarkdownDocument,
    read_frontmatter,
    write_frontmatter,
)

MemoryKey = NewType("MemoryKey", str)
"""Its file below the memory folder: `topic.md`, `team/topic.md`. The grammar is `store/files/folder.py`'s."""

INDEX_FILE = "MEMORY.md"
MEMORY_KINDS = ("user", "feedback", "project", "reference")
"""Others are kept as they are, and mean nothing in particular."""

TEAM_PREFIX = "team/"
TEAM_FOLDER = "team"
"""In the state of a memory directory: what sync with a team keeps."""
LOGS_PREFIX = "logs/"
ARCHIVE_PREFIX = "archive/"
"""What a dream put aside: kept and restorable, and not brought up again."""

USER_WIDE_PREFIX = "~/"
"""Before the key of a memory for all projects, where it stands among those of one: no key begins so."""

_UNSHOWN = (LOGS_PREFIX, ARCHIVE_PREFIX)
_APPLIES_TO = "applies_to"


def is_indexed(key: str) -> bool:
    """Whether a memory stands in the index and may be recalled; logs and what was put aside do not."""
    return not key.startswith(_UNSHOWN)


@dataclass(frozen=True, slots=True)
class Memory:
    key: MemoryKey
    text: str
    """The whole file."""
    document: MarkdownDocument

    @property
    def name(self) -> str:
        return self.document.text("name") or self.key.rpartition("/")[2].removesuffix(".md")

    @property
    def description(self) -> str:
        """One line that says when it matters; the first of the body where the head has none."""
        return " ".join(self.document.text("description").split()) or _first_line(self.body)

    @property
    def kind(self) -> str:
        return self.document.text("type")

    @property
    def body(self) -> str:
        return self.document.body

    @property
    def applies_to(self) -> tuple[str, ...]:
        """When its text is to be shown before an action, as it stands; `core/memories.py` reads it."""
        return self.document.texts(_APPLIES_TO)

    def field(self, name: str) -> str:
        """Any field of the head; empty where it is not set."""
        return self.document.text(name)


def read_memory(key: str, text: str) -> Memory:
    """Never fails: without a head that can be read, everything is body."""
    return Memory(MemoryKey(key), text, read_frontmatter(text))


def write_memory(
    name: str,
    description: str,
    kind: str,
    body: str,
    *,
    applies_to: Sequence[str] = (),
) -> str:
    """The file of a new memory."""
    text = " ".join(description.split())
    fields: dict[str, FieldValue] = {"name": name, **({"description": text} if text else {}), "type": kind}
    if applies_to:
        fields[_APPLIES_TO] = tuple(applies_to)
    return write_frontmatter(fields, f"\n{body.strip()}\n")


def rewrite_memory(
    before: Memory, description: str, kind: str, body: str, *, applies_to: Sequence[str] | None = None
) -> str:
    """The file of a memory with another text. All else in its head stays, with None also when it applies."""
    if before.document.fault or not before.document.fields:
        kept = before.applies_to if applies_to is None else applies_to
        return write_memory(before.name, description, kind, body, applies_to=kept)
    text = change_body(before.text, f"\n{body.strip()}\n")
    for name, value, was in (("description", description, before.description), ("type", kind, before.kind)):
        text = text if value == was else change_field(text, name, value)
    if applies_to is not None and tuple(applies_to) != before.applies_to:
        text = change_field(text, _APPLIES_TO, applies_to or None)
    return text if before.field("name") else change_field(text, "name", before.name)


def change_body(text: str, body: str) -> str:
    """The file with another body; its head stays byte for byte."""
    return text.removesuffix(read_frontmatter(text).body) + body


def change_field(text: str, name: str, value: str | Sequence[str] | None) -> str:
    """The file with one field of its head changed, or taken out with None; all else stays byte for byte.

    A field that stands under `metadata:` is overruled by the one that is put on top.
    """
    written = value if isinstance(value, str) or value is None else tuple(value)
    fresh = "" if written is None else write_frontmatter({name: written}, "").split("\n")[1] + "\n"
    document = read_frontmatter(text)
    if document.fault:
        raise InputError(f"the head cannot be changed: {document.fault}")
    head = text.removesuffix(document.body)
    if not head:
        return f"---\n{fresh}---\n{text}" if fresh else text
    opening, *lines, closing = re.findall(r"[^\n]*\n|[^\n]+", head)
    at = next((n for n, line in enumerate(lines) if re.match(rf"{re.escape(name)}:(?:\s|$)", line)), None)
    start, end = (len(lines), len(lines)) if at is None else (at, _end_of_entry(lines, at))
    changed = [*lines[:start], fresh, *lines[end:]]
    size = len("".join(changed).encode("utf-8", "surrogatepass"))
    if size > MAX_HEAD_BYTES:
        raise InputError(f"a head of {size:,} bytes is over the {MAX_HEAD_BYTES:,} it may have; shorten it")
    return "".join([opening, *changed, closing]) + document.body


def _end_of_entry(lines: Sequence[str], at: int) -> int:
    """Past the lines that belong to the field at `at`: indented, or a list at the margin."""
    end = at + 1
    while end < len(lines) and (lines[end][0] in " \t" or lines[end].startswith("- ")):
        end += 1
    return end


_MARKUP = re.compile(r"\s*(?:(?:[-*_=]\s*){3,}|`{3,}.*|~{3,}.*|<!--.*|\|.*)?$")
"""A line that says nothing by itself: a rule, a fence, a comment, a row of a table."""
_LEAD = re.compile(r"\s*(?:(?:#{1,6}|[-*+>]|\d{1,3}[.)])\s+)*")
MAX_FIRST_LINE_CHARS = 200


def _first_line(body: str) -> str:
    """The first line of prose; of a table that stands alone, what heads its columns."""
    lines = [_LEAD.sub("", line, count=1).strip() for line in body.splitlines()]
    rows = (", ".join(filter(None, map(str.strip, line.split("|")))) for line in lines if line[:1] == "|")
    found = next((line for line in lines if not _MARKUP.match(line)), "") or next(rows, "")
    found = found.lstrip("# ")
    if len(found) <= MAX_FIRST_LINE_CHARS:
        return found
    return f"{found[:MAX_FIRST_LINE_CHARS].rpartition(' ')[0] or found[:MAX_FIRST_LINE_CHARS]} …"


# Keys of shared memories. Narrower than names of files on one disk: a team's folder is unpacked on systems
# that ignore case, reserve device names, or normalise text that is not ASCII.

WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)]
)
"""Files on Windows that are none, whatever follows the first dot."""
_INDEX = INDEX_FILE.casefold().removesuffix(".md")
"""Each device makes its own index, and takes none from others."""

MAX_KEY_PART_CHARS = 80
TEAM_KEY_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}(?:/[a-z0-9][a-z0-9_-]{0,79}){0,2}\.md", re.ASCII)


def is_team_key(key: str) -> bool:
    parts = key.removesuffix(".md").split("/")
    return bool(TEAM_KEY_PATTERN.fullmatch(key)) and parts[-1] != _INDEX and WINDOWS_DEVICES.isdisjoint(parts)


def check_team_key(key: str) -> None:
    """`KeyRefused` for a name that some system would lose, merge with another, or open elsewhere."""
    if not is_team_key(key):
        raise KeyRefused(
            f"{key[:100]!r} cannot be a shared memory's name; use 1 to 3 parts of 1 to "
            f"{MAX_KEY_PART_CHARS} of "
            "'a-z', '0-9', '_', '-', none of them a device's name such as 'con', and end with '.md'; "
            "'memory.md' is the index"
        )


# Where a memory came from. It is stored beside the text and never in it, where no agent can write.

ChangeAuthor: TypeAlias = Literal["user", "agent", "fork", "dream", "sync", "outside edit"]
"""Whose change it was. An outside edit is one that came past the engine: an editor's, or a script's."""

SaidBy: TypeAlias = Literal["user", "model", "tool output", "unknown"]

Taint: TypeAlias = Literal["tool", "web", "mcp", "mail", "outside edit", "team", "transcript"]
"""Which foreign hands the words went through."""

CHANGE_AUTHORS: tuple[ChangeAuthor, ...] = get_args(ChangeAuthor)
SAID_BY: tuple[SaidBy, ...] = get_args(SaidBy)
TAINTS: tuple[Taint, ...] = get_args(Taint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who changed a memory, why, and whose words they are."""

    who: ChangeAuthor
    why: str
    session: str = ""
    messages: tuple[str, ...] = ()
    """Ids of the records of that session that it came from."""
    said_by: SaidBy = "unknown"
    taint: frozenset[Taint] = frozenset()
    is_accepted: bool = False
    """A person has read it and agreed."""
    evidence: tuple[str, ...] = ()
    """The user's own sentences that say it, verbatim and in their language."""
    root: str = ""
    """In a directory that projects share: the root of the project that it was learnt in, if one is known."""
    author: str = ""
    """The teammate who wrote it, by the name that the team's server authenticated."""

    @property
    def is_trusted(self) -> bool:
        """Whether it may act as more than a quotation: nothing foreign in it, or a person agreed."""
        return self.is_accepted or not self.taint


IMPORTED_WHY = "taken in from"
"""How the reason begins where memories were copied from another folder."""


def join_taint(*origins: Origin) -> frozenset[Taint]:
    """What a text made of several carries on: all that is in any of them and that nobody accepted."""
    return frozenset(taint for origin in origins if not origin.is_accepted for taint in origin.taint)


# How often memories were put into a prompt, what came of it, and how warm that leaves each of them.

MemoryUseKind: TypeAlias = Literal["recalled", "shown", "unchanged", "changed", "given up", "acknowledged"]
"""`recalled` beside a prompt, or `shown` as a rule before an action; and then that action was repeated
unchanged, changed, or given up, and the rule acknowledged where it asks for that."""

MEMORY_USE_KINDS: tuple[MemoryUseKind, ...] = (
    "recalled",
    "shown",
    "unchanged",
    "changed",
    "given up",
    "acknowledged",
)

WARMING_KINDS: frozenset[MemoryUseKind] = frozenset({"recalled", "shown"})
"""What counts as a use; the others say what became of one."""

HALF_LIFE = timedelta(days=30)
"""A memory nobody needed for a month is worth half of what it was: about how long a piece of work lasts."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    memory: str
    """Its key."""
    kind: MemoryUseKind


@dataclass(frozen=True, slots=True)
class MemoryUses:
    """All uses of one memory."""

    counts: Mapping[MemoryUseKind, int] = field(
        default_factory=lambda: MappingProxyType[MemoryUseKind, int]({})
    )
    last: datetime | None = None
    """When it was last recalled or shown."""
    warmth: float = 0.0
    """As of then: each use adds one, and half of it is gone after every `HALF_LIFE`."""

    def count(self, kind: MemoryUseKind) -> int:
        return self.counts.get(kind, 0)

    def warmth_at(self, now: datetime) -> float:
        """0 for one that was never used, near it for one not used in a long time."""
        if self.last is None:
            return 0.0
        # A clock that was set back makes nothing warmer.
        return self.warmth * 0.5 ** (max(timedelta(), now - self.last) / HALF_LIFE)

    def with_use(self, kind: MemoryUseKind, now: datetime) -> MemoryUses:
        more: dict[MemoryUseKind, int] = {**self.counts, kind: self.count(kind) + 1}
        counts = MappingProxyType(more)
        if kind not in WARMING_KINDS:
            return replace(self, counts=counts)
        return MemoryUses(counts, max(now, self.last or now), self.warmth_at(now) + 1.0)


NO_USES = MemoryUses()


def add_uses(
    before: Mapping[str, MemoryUses], uses: Iterable[MemoryUse], now: datetime
) -> dict[str, MemoryUses]:
    """The same with these more."""
    after = dict(before)
    for use in uses:
        after[use.memory] = after.get(use.memory, NO_USES).with_use(use.kind, now)
    return after


# The conditions of `applies_to`. One that holds is enough:
#
#     tool:shell             a call of this tool; `*` stands for any letters: tool:mcp__github__*
#     path:src/api/**        a file that is read, edited or named in a command; relative to the project
#     command:git push       a command that begins with these words; `*` as above
#     phase:before-commit    a moment of the work: see `RULE_PHASES`
#
# Nothing is guessed: a condition that cannot be read is refused with the reason.

ConditionKind: TypeAlias = Literal["tool", "path", "command", "phase"]


RulePhase: TypeAlias = Literal[
    "planning", "before-edit", "before-commit", "before-push", "before-install", "before-delete"
]


RULE_PHASES: dict[RulePhase, tuple[str, ...]] = {
    "planning": (),
    "before-edit": (),
    "before-commit": (
        *("git commit", "git merge", "git cherry-pick", "git revert", "git rebase", "git am"),
        *("gh pr merge", "glab mr merge", "jj commit", "jj describe", "hg commit"),
    ),
    "before-push": (
        *("git push", "jj git push", "hg push", "gh pr create", "gh pr merge"),
        *("glab mr create", "glab mr merge", "git send-email"),
    ),
    "before-install": (
        *("pip* install", "python* -m pip install", "pipx install", "conda install", "mamba install"),
        *("uv add", "uv sync", "uv pip install", "uv pip sync", "uv tool install", "rye add", "rye sync"),
        *("poetry add", "poetry install", "poetry sync", "pdm add", "pdm install", "pdm sync"),
        *("yarn |", "yarn install", "pnpm i", "bun i", "npm add", "bundle |", "bundle install"),
        *("apk add", "dnf install", "yum install", "microdnf install", "pacman -S*", "zypper install"),
        *("composer install", "composer require", "nix-env -i*"),
        *("npm install", "npm i", "npm ci", "yarn add", "pnpm add", "pnpm install", "bun add", "bun install"),
        *("cargo add", "cargo install", "go get", "go install", "gem install", "bundle add", "brew install"),
        *("apt install", "apt-get install", "npm install-clean", "deno add", "deno install", "dotnet add"),
        *("dotnet tool install", "snap install", "choco install", "winget install", "rustup component add"),
        *("rustup target add", "rustup toolchain install", "zypper in", "brew bundle", "nix profile install"),
        *(
            "nix profile add",
            "mise install",
            "asdf install",
            "mix deps.get",
            "flutter pub add",
            "dart pub add",
        ),
    ),
    "before-delete": (
        *("rm", "rmdir", "unlink", "shred", "git rm", "git clean", "git branch -d", "git branch -D"),
        *("git worktree remove", "git stash drop", "git stash clear", "rimraf", "trash", "trash-put"),
        *("Remove-Item", "del"),
    ),
}
"""Each moment, and the commands that are it; `|` stands for the end, with nothing but options before it. A
plan that is handed in or begun is `planning`, and a call that changes a file is `before-edit`: those two are
known by what the call says of itself."""


MAX_CONDITIONS = 32
"""Of one memory: with more it applies to everything, and instruction files are the place for that."""


_MAX_PATTERN_CHARS = 200


GATE_KEY = "gate"


ACKNOWLEDGE_GATE = "acknowledge"
"""The one `gate` there is: the call runs once the model has named the memory in its own words."""


_TOOL = re.compile(r"[A-Za-z0-9_.*?-]+")


_KINDS = ("tool", "path", "command", "phase")


@dataclass(frozen=True, slots=True)
class RuleCondition:
    kind: ConditionKind
    pattern: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.pattern}"


@dataclass(frozen=True, slots=True)
class RefusedCondition:
    """What stands in `applies_to` and is no condition."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedConditions:
    found: tuple[RuleCondition, ...] = ()
    refused: tuple[RefusedCondition, ...] = ()


def parse_conditions(applies_to: Sequence[str]) -> ParsedConditions:
    """The conditions of a memory, and what could not be read as one."""
    found: list[RuleCondition] = []
    refused: list[RefusedCondition] = []
    for text in applies_to[:MAX_CONDITIONS]:
        read = _read_condition(text.strip())
        if isinstance(read, RefusedCondition):
            refused.append(read)
        elif read not in found:
            found.append(read)
    if len(applies_to) > MAX_CONDITIONS:
        rest = f"{len(applies_to) - MAX_CONDITIONS} more"
        refused.append(RefusedCondition(rest, f"a memory has at most {MAX_CONDITIONS} conditions; split it"))
    return ParsedConditions(tuple(found), tuple(refused))


def _read_condition(text: str) -> RuleCondition | RefusedCondition:
    kind, colon, pattern = text.partition(":")
    pattern = pattern.strip()
    if not colon or kind not in _KINDS:
        return RefusedCondition(
            text[:_MAX_PATTERN_CHARS], "expected tool:NAME, path:PATTERN, command:WORDS or phase:NAME"
        )
    reason = _why_not(kind, pattern)
    if reason:
        return RefusedCondition(text[:_MAX_PATTERN_CHARS], reason)
    return RuleCondition(kind, pattern)


def _why_not(kind: ConditionKind, pattern: str) -> str:
    if not pattern or len(pattern) > _MAX_PATTERN_CHARS or not pattern.isprintable():
        return f"expected 1 to {_MAX_PATTERN_CHARS} printable characters behind {kind}:"
    match kind:
        case "tool":
            return "" if _TOOL.fullmatch(pattern) else "expected a tool's name, such as shell or mcp__*"
        case "phase":
            return "" if pattern in RULE_PHASES else f"expected one of {', '.join(RULE_PHASES)}"
        case "path":
            is_inside = not pattern.startswith(("/", "~")) and ".." not in pattern.split("/")
            return "" if is_inside else "expected a path inside the project, such as src/api/**"
        case "command":
            is_plain = not re.search(r"[;&|<>`$()\"']", pattern)
            return "" if is_plain else "expected the words that a command begins with, such as git push"
