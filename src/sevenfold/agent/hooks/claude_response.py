"""What a tool returned, as the object that Claude Code hands to its hooks, so that these work here unchanged.

Claude Code tells a hook what became of a file, not what the model was told of it. So the file is read before
and after an edit.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse
from sevenfold.core.tool_kinds import MCP_PREFIX, PATH_KEYS, find_effect, first_text
from sevenfold.store.project.user_files import read_file_state, resolve_path

MAX_FILE_BYTES = 1024 * 1024
"""Of a file that a hook is shown. Claude Code does not edit larger ones either."""

_CONTEXT_LINES = 3

_Response: TypeAlias = dict[str, object]


def read_before(use: ToolUse, cwd: Path) -> str | None:
    """What the file holds that a call is about to change; None: nothing, or the call changes none."""
    return _read(use, cwd) if find_effect(use) in ("edit", "write") else None


def build_claude_response(
    use: ToolUse, response: str, took: timedelta, *, cwd: Path, before: str | None
) -> object:
    """The `tool_response` of Claude Code for this call; the text itself for tools that it does not have."""
    if use.name.startswith(MCP_PREFIX):
        return [{"type": "text", "text": response}]
    build = _BUILDERS.get(find_effect(use) or "")
    if build is None:
        return response
    milliseconds = round(took.total_seconds() * 1_000)
    return build(_Call(use, response, milliseconds, cwd, before))


class _Call:
    """A call and what came of it."""

    def __init__(self, use: ToolUse, response: str, milliseconds: int, cwd: Path, before: str | None) -> None:
        self.use, self.given, self.response = use, use.input, response
        self.milliseconds, self.before = milliseconds, before
        self.path = str(cwd / first_text(use.input, PATH_KEYS))
        self.cwd = cwd


def _ran(call: _Call) -> _Response:
    return {
        "stdout": call.response,
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }


def _was_read(call: _Call) -> _Response:
    lines = (_read(call.use, call.cwd) or "").split("\n")
    start, count = _number(call.given, "offset", 1), _number(call.given, "limit", len(lines))
    shown = lines[max(0, start - 1) : max(0, start - 1) + count]
    file = {
        "filePath": call.path,
        "content": "\n".join(shown),
        "numLines": len(shown),
        "startLine": start,
        "totalLines": len(lines),
    }
    return {"type": "text", "file": file}


def _was_edited(call: _Call) -> _Response:
    after = _read(call.use, call.cwd) or ""
    return {
        "filePath": call.path,
        "oldString": first_text(call.given, ("old_string",)),
        "newString": first_text(call.given, ("new_string",)),
        "originalFile": call.before,
        "structuredPatch": _diff(call.before or "", after),
        "userModified": False,
        "replaceAll": call.given.get("replace_all") is True,
    }


def _was_written(call: _Call) -> _Response:
    content = first_text(call.given, ("content",))
    is_new = call.before is None
    return {
        "type": "create" if is_new else "update",
        "filePath": call.path,
        "content": content,
        "structuredPatch": [] if is_new else _diff(call.before or "", content),
        "originalFile": call.before,
        "userModified": False,
    }


def _was_listed(call: _Call) -> _Response:
    names = call.response.splitlines()
    return {
        "filenames": names,
        "durationMs": call.milliseconds,
        "numFiles": len(names),
        "truncated": False,
        "totalMatches": len(names),
        "countIsComplete": True,
    }


def _was_found(call: _Call) -> _Response:
    lines = call.response.splitlines()
    return {
        "mode": "content",
        "numFiles": 0,
        "filenames": [],
        "content": call.response,
        "numLines": len(lines),
        "totalLines": len(lines),
    }


def _was_fetched(call: _Call) -> _Response:
    return {
        "bytes": len(call.response.encode("utf-8", "replace")),
        "code": 200,
        "codeText": "OK",
        "result": call.response,
        "durationMs": call.milliseconds,
        "url": first_text(call.given, ("url", "query")),
    }


_BUILDERS: Mapping[str, Callable[[_Call], _Response]] = {
    "run": _ran,
    "read": _was_read,
    "edit": _was_edited,
    "write": _was_written,
    "list": _was_listed,
    "search": _was_found,
    "fetch": _was_fetched,
}


def _read(use: ToolUse, cwd: Path) -> str | None:
    named = first_text(use.input, PATH_KEYS)
    if not named:
        return None
    try:
        state = read_file_state(resolve_path(str(cwd / named)), max_bytes=MAX_FILE_BYTES)
    except SevenfoldError:
        return None
    return state.data.decode("utf-8", "replace")


def _number(given: JsonObject, key: str, otherwise: int) -> int:
    value = given.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise


def _diff(before: str, after: str) -> list[_Response]:
    """Hunks as Claude Code describes them."""
    old, new = before.splitlines(), after.splitlines()
    hunks: list[_Response] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT_LINES):
        lines: list[str] = []
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [*(f"-{line}" for line in old[i1:i2]), *(f"+{line}" for line in new[j1:j2])]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks
