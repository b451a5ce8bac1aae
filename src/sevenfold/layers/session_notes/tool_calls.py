"""What a tool call does, from its name and arguments, and how it ended, from the first and last lines of its
result.

It knows the tools of common agents, and recognizes unknown ones by their arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Text, ToolResult, ToolUse
from sevenfold.core.text.globs import find_shell_paths, find_text_paths
from sevenfold.core.tool_kinds import (
    COMMAND_KEYS,
    CONTENT_KEYS,
    NEW_TEXT_KEYS,
    OLD_TEXT_KEYS,
    PATH_KEYS,
    QUERY_KEYS,
    Effect,
    command_of,
    find_effect,
    find_tool,
    first_text,
    patch_of,
)
from sevenfold.layers.tool_results.policy import read_preview

ActionKind: TypeAlias = Literal[
    "read", "edit", "write", "search", "run", "fetch", "plan", "delegate", "wait", "other"
]

_KINDS: Mapping[Effect, ActionKind] = {
    "read": "read",
    "edit": "edit",
    "write": "write",
    "list": "search",
    "search": "search",
    "run": "run",
    "fetch": "fetch",
    "plan": "plan",
    "delegate": "delegate",
    "wait": "wait",
    "message": "other",
    "memory": "other",
}
"""By what a call does, where its tool is known."""

_NEW_KEYS = (*NEW_TEXT_KEYS, *CONTENT_KEYS)

_SCANNED_CHARS = 6_000
"""Of one argument: enough for nearly every edit, and a bound on the work for the rest."""
_NAMES_EACH = 12
_DEFINITION = re.compile(
    r"(?:^|[\s(])(?:def|class|func|fn|function|type|interface|struct|enum|trait|module|const)\s+"
    r"(?:\([^()\n]*\)\s*)?([A-Za-z_]\w+)(?=\s*[(\[{<:=]|\s+(?:struct|interface|extends|implements)\b)"
)
_PATCHED = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)


_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAction:
    """One tool call, as the notes see it."""

    kind: ActionKind
    tool: str
    paths: tuple[str, ...] = ()
    """Files that it reads or changes."""
    mentions: tuple[str, ...] = ()
    """Other paths among its arguments."""
    command: str = ""
    """The exact command line."""
    sought: str = ""
    """The pattern, query or address."""
    lines: str = ""
    """Which lines were read: `120-160`."""
    names: tuple[str, ...] = ()
    """Functions and classes that an edit defines or touches."""
    changes: int = 0
    """How many replacements one call makes."""
    searches: bool = False
    """Its result names files line by line."""

    def __post_init__(self) -> None:
        # Notes are lines under headings: a line break in a name must not start a line of its own.
        if any(map(_BREAKS.search, (*self.paths, *self.mentions, self.sought))):
            object.__setattr__(self, "paths", tuple(_BREAKS.sub(" ", path) for path in self.paths))
            object.__setattr__(self, "mentions", tuple(_BREAKS.sub(" ", path) for path in self.mentions))
            object.__setattr__(self, "sought", _BREAKS.sub(" ", self.sought))

    @property
    def subject(self) -> str:
        """What a later call must share with this one to count as the same thing tried again."""
        return self.command or (self.paths[0] if self.paths else self.sought)


def classify_call(use: ToolUse) -> ToolAction:
    """The call's kind and subject. Costs time in its first few thousand characters alone."""
    given = use.input
    kind = _kind(use)
    match kind:
        case "run":
            return _shell_action(use.name, command_of(given))
        case "edit" | "write":
            return _change(kind, use)
        case _:
            path = first_text(given, PATH_KEYS)
            sought = first_text(given, QUERY_KEYS)
            return ToolAction(
                kind=kind,
                tool=use.name,
                paths=(path,) if path and kind == "read" else (),
                mentions=_mentions(path if kind != "read" else "", sought),
                sought=sought,
                lines=_lines(given),
                searches=kind == "search",
            )


def _kind(use: ToolUse) -> ActionKind:
    tool = find_tool(use.name)
    if tool is not None and tool.effect == "run":
        return "run"  # also one that patches files: its command line names them
    effect = find_effect(use)
    known = _KINDS.get(effect) if effect is not None else None
    return known or _kind_by_keys(use.input)


def _kind_by_keys(given: JsonObject) -> ActionKind:
    """The kind of an unknown tool, by what its arguments look like."""
    if any(key in given for key in OLD_TEXT_KEYS):
        return "edit"
    has_path = any(isinstance(given.get(key), str) for key in PATH_KEYS)
    if has_path and any(key in given for key in _NEW_KEYS):
        return "write"
    if any(key in given for key in COMMAND_KEYS):
        return "run"
    if "url" in given:
        return "fetch"
    if "pattern" in given or "query" in given:
        return "search"
    return "read" if has_path else "other"


def _shell_action(tool: str, command: str) -> ToolAction:
    plan = find_shell_paths(command[:_SCANNED_CHARS])
    kind: ActionKind = "edit" if plan.patched else "run"
    return ToolAction(
        kind=kind,
        tool=tool,
        paths=plan.patched or plan.written or plan.read,
        mentions=plan.mentioned,
        command=command,
        changes=len(plan.patched),
        searches=plan.searches,
    )


def _change(kind: ActionKind, use: ToolUse) -> ToolAction:
    patch = patch_of(use.input)
    if patch:
        changed = find_patched_paths(patch)
        return ToolAction(
            kind="edit",
            tool=use.name,
            paths=changed,
            names=_names(patch),
            changes=max(1, patch.count("\n@@")),
        )
    path = first_text(use.input, PATH_KEYS)
    edits = use.input.get("edits")
    each = [item for item in edits if isinstance(item, JsonObject)] if isinstance(edits, tuple) else []
    texts = [first_text(item, keys) for item in (use.input, *each) for keys in (OLD_TEXT_KEYS, _NEW_KEYS)]
    return ToolAction(
        kind=kind,
        tool=use.name,
        paths=(path,) if path else (),
        names=_names("\n".join(text[:_SCANNED_CHARS] for text in texts[:20])),
        changes=max(1, len(each)),
    )


def find_patched_paths(patch: str) -> tuple[str, ...]:
    """The files that a patch in Codex's format adds, changes, moves or removes."""
    found = (match[2] or match[3] for match in _PATCHED.finditer(patch))
    return tuple(dict.fromkeys(path.strip() for path in found))


def _names(text: str) -> tuple[str, ...]:
    found = dict.fromkeys(match[1] for match in _DEFINITION.finditer(text[:_SCANNED_CHARS]))
    return tuple(found)[:_NAMES_EACH]


def _mentions(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for text in texts for path in _paths_of(text)))


def _paths_of(text: str) -> Iterator[str]:
    if text.startswith(("/", "./", "~/")) and not re.search(r"[\s*?{]", text):
        yield text
    else:
        yield from find_text_paths(text[:_SCANNED_CHARS])


def _lines(given: JsonObject) -> str:
    first, size = _number(given.get("offset")), _number(given.get("limit"))
    if first is None and size is None:
        return ""
    start = first or 1
    return f"{start}-{start + size - 1}" if size else f"{start}-"


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


HEAD_CHARS = 3_000
TAIL_CHARS = 1_200
"""A result is looked at where it begins and where it ends: work that does not grow with its size."""

ERROR_CHARS = 320
_EXIT = re.compile(
    r"(?:^|\n)\s*(?:Process exited with code|Exit code:?|exit_code\"?:|exit status)\s*(-?\d+)", re.I
)
_ENDED_BADLY = re.compile(r"FAIL(?:ED)?\b|make: \*\*\*|.*\bERROR task failed|=+ .*\b\d+ failed\b")
"""How a command ends that failed behind a pipe, whose exit code is another's."""
_WRAPPING = re.compile(r"</?tool_use_error>")
_BROKEN = re.compile(
    r"error|fail|panic|fatal|exception|denied|not found|undefined|cannot|traceback|unexpected|invalid",
    re.IGNORECASE,
)
_ENVELOPE = re.compile(r"(?:Chunk ID|Wall time|Process exited|Original token count|Exit code|Output)\b.*")
_SAID = re.compile(r"the user said:\n(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    failed: bool
    error: str = ""
    """The first lines that say what went wrong; empty when nothing did."""
    last: str = ""
    """The last line: where most commands say how they ended."""
    text: str = ""
    """All of it, as it came."""
    said: str = ""
    """What the user said when they refused the call."""


def find_call_outcome(result: ToolResult) -> CallOutcome:
    """Costs the same for a line and for a megabyte."""
    text = read_preview(_text(result))
    head, tail = text[:HEAD_CHARS], text[-TAIL_CHARS:]
    said = _SAID.search(head) if result.is_error else None
    code = _EXIT.search(head[:400])
    last = _last_line(tail)
    failed = bool(result.is_error) or (code is not None and code[1] != "0") or bool(_ENDED_BADLY.match(last))
    return CallOutcome(
        failed=failed,
        error=_error(head, tail) if failed else "",
        last=last,
        text=text,
        said=said[1].strip() if said else "",
    )


def _text(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, str):
        return content
    return "\n".join(item.text for item in content or () if isinstance(item, Text))


def _error(head: str, tail: str) -> str:
    """The lines that name the fault, or the first ones where none does."""
    text = head if len(head) < HEAD_CHARS else f"{head}\n{tail}"
    lines = [line.strip() for line in _WRAPPING.sub("", text).splitlines()]
    lines = [line for line in lines if line and not _ENVELOPE.fullmatch(line)]
    telling = [line for line in lines if _BROKEN.search(line)]
    chosen: list[str] = []
    for line in telling[:4] or lines[:3]:
        if sum(map(len, chosen)) + len(line) > ERROR_CHARS and chosen:
            break
        chosen.append(line[:ERROR_CHARS])
    return " / ".join(chosen)


def _last_line(tail: str) -> str:
    lines = tail.rstrip().rsplit("\n", 1)
    line = lines[-1].strip()
    return "" if _ENVELOPE.fullmatch(line) else line
