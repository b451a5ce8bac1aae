"""What a tool call does, from its name and its arguments: the agents' own tools, and any that look alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import ToolUse
from sevenfold.core.token_portions import PATH_KEYS
from sevenfold.layers.structural_shell import find_paths, plan_shell

ActionKind: TypeAlias = Literal[
    "read", "edit", "write", "search", "run", "fetch", "plan", "delegate", "wait", "other"
]

KINDS: Mapping[str, ActionKind] = {
    **dict.fromkeys(("read", "read_file", "view", "view_file", "open_file", "notebookread"), "read"),
    **dict.fromkeys(("edit", "multiedit", "notebookedit", "apply_patch", "str_replace", "replace"), "edit"),
    **dict.fromkeys(("write", "write_file", "create_file", "create"), "write"),
    **dict.fromkeys(("grep", "glob", "ls", "list_dir", "list_files", "search", "file_search"), "search"),
    **dict.fromkeys(("bash", "shell", "exec_command", "run_command", "local_shell", "terminal"), "run"),
    **dict.fromkeys(("webfetch", "websearch", "web_search", "web_fetch", "fetch"), "fetch"),
    **dict.fromkeys(("todowrite", "update_plan", "taskcreate", "taskupdate", "exitplanmode"), "plan"),
    **dict.fromkeys(("task", "agent"), "delegate"),
    **dict.fromkeys(("write_stdin", "taskoutput", "bashoutput"), "wait"),
}
"""By the tool's name in lower case: Claude Code's and Codex's tools, and other common spellings."""

_COMMAND_KEYS = ("command", "cmd", "script")
_SOUGHT_KEYS = ("pattern", "query", "glob", "url", "prompt", "skill", "question")
_OLD_KEYS = ("old_string", "old_str", "old_text")
_NEW_KEYS = ("new_string", "new_str", "new_text", "content", "file_text", "new_source")

SCANNED_CHARS = 6_000
"""Of one argument: enough for nearly every edit, and a bound on the work for the rest."""
NAMES_EACH = 12
_DEFINITION = re.compile(
    r"(?:^|[\s(])(?:def|class|func|fn|function|type|interface|struct|enum|trait|module|const)\s+"
    r"(?:\([^()\n]*\)\s*)?([A-Za-z_]\w+)(?=\s*[(\[{<:=]|\s+(?:struct|interface|extends|implements)\b)"
)
_PATCHED = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Action:
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

    @property
    def subject(self) -> str:
        """What a later call must share with this one to count as the same thing tried again."""
        return self.command or (self.paths[0] if self.paths else self.sought)


def action_of(use: ToolUse) -> Action:
    """The call's kind and subject. Costs time in its first few thousand characters alone."""
    given = use.input
    kind = KINDS.get(use.name.lower()) or _kind_by_keys(given)
    match kind:
        case "run":
            return _shell_action(use.name, _command(given))
        case "edit" | "write":
            return _change(kind, use)
        case _:
            path = _first(given, PATH_KEYS)
            sought = _first(given, _SOUGHT_KEYS)
            return Action(
                kind,
                use.name,
                paths=(path,) if path and kind == "read" else (),
                mentions=_mentions(path if kind != "read" else "", sought),
                sought=sought,
                lines=_lines(given),
                searches=kind == "search",
            )


def _kind_by_keys(given: JsonObject) -> ActionKind:
    """For a tool nobody told us of: what its arguments look like."""
    if any(key in given for key in _OLD_KEYS):
        return "edit"
    has_path = any(isinstance(given.get(key), str) for key in PATH_KEYS)
    if has_path and any(key in given for key in _NEW_KEYS):
        return "write"
    if any(key in given for key in _COMMAND_KEYS):
        return "run"
    if "url" in given:
        return "fetch"
    if "pattern" in given or "query" in given:
        return "search"
    return "read" if has_path else "other"


def _command(given: JsonObject) -> str:
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, tuple):
            words = [word for word in value if isinstance(word, str)]
            # `bash -lc "…"` as a list: the last word is the line itself.
            return words[-1] if len(words) == 3 and words[1].startswith("-") else " ".join(words)
    return ""


def _shell_action(tool: str, command: str) -> Action:
    plan = plan_shell(command[:SCANNED_CHARS])
    kind: ActionKind = "edit" if plan.patched else "run"
    return Action(
        kind,
        tool,
        paths=plan.patched or plan.written or plan.read,
        mentions=plan.mentioned,
        command=command,
        changes=len(plan.patched),
        searches=plan.searches,
    )


def _change(kind: ActionKind, use: ToolUse) -> Action:
    patch = _first(use.input, ("input", "patch"))
    if "*** Begin Patch" in patch:
        changed = patched_paths(patch)
        return Action("edit", use.name, changed, names=_names(patch), changes=max(1, patch.count("\n@@")))
    path = _first(use.input, PATH_KEYS)
    edits = use.input.get("edits")
    each = [item for item in edits if isinstance(item, JsonObject)] if isinstance(edits, tuple) else []
    texts = [_first(item, keys) for item in (use.input, *each) for keys in (_OLD_KEYS, _NEW_KEYS)]
    return Action(
        kind,
        use.name,
        paths=(path,) if path else (),
        names=_names("\n".join(text[:SCANNED_CHARS] for text in texts[:20])),
        changes=max(1, len(each)),
    )


def patched_paths(patch: str) -> tuple[str, ...]:
    """The files that a patch in Codex's format adds, changes, moves or removes."""
    found = (match[2] or match[3] for match in _PATCHED.finditer(patch))
    return tuple(dict.fromkeys(path.strip() for path in found))


def _names(text: str) -> tuple[str, ...]:
    found = dict.fromkeys(match[1] for match in _DEFINITION.finditer(text[:SCANNED_CHARS]))
    return tuple(found)[:NAMES_EACH]


def _mentions(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for text in texts for path in _paths_of(text)))


def _paths_of(text: str) -> Iterator[str]:
    if text.startswith(("/", "./", "~/")) and not re.search(r"[\s*?{]", text):
        yield text
    else:
        yield from find_paths(text[:SCANNED_CHARS])


def _lines(given: JsonObject) -> str:
    first, size = _number(given.get("offset")), _number(given.get("limit"))
    if first is None and size is None:
        return ""
    start = first or 1
    return f"{start}-{start + size - 1}" if size else f"{start}-"


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _first(given: JsonObject, keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := given.get(key), str) and value), "")
