"""memory: what is worth knowing in later sessions, one file each; the index is kept by the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sevenfold.core.errors import FileDamaged, FileMissing, InputError, NotRegular
from sevenfold.core.frontmatter import read_frontmatter, write_frontmatter
from sevenfold.core.json import JsonObject
from sevenfold.run.tool import Need, OnProgress, ToolOutput, ToolSpec
from sevenfold.run.tools.inputs import answered, schema, text_of, word_of
from sevenfold.run.workplace import Workplace
from sevenfold.store.folder import Folder
from sevenfold.store.mutex import edit_file

INDEX = "MEMORY.md"
MAX_INDEX_BYTES = 256 * 1024
MAX_BYTES = 64 * 1024
"""Of one memory: eight times what is ever put before a model at once."""
MAX_LINE_CHARS = 150
MAX_LISTED = 200

ACTIONS = ("list", "read", "write", "delete")
TYPES = ("user", "feedback", "project", "reference")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")

SPEC = ToolSpec(
    "memory",
    "What is remembered of this project from session to session, one topic a memory. Save when the user asks "
    "for it, and only what neither code, history nor instruction files say. Check what it claims before "
    "acting on it.",
    schema(
        {
            "action": {"type": "string", "enum": list(ACTIONS)},
            "name": {"type": "string", "description": "The topic in lower case, such as release-steps."},
            "type": {"type": "string", "enum": list(TYPES), "description": "With write."},
            "description": {
                "type": "string",
                "description": "With write: one line that says when it matters.",
            },
            "content": {
                "type": "string",
                "description": "With write: the memory itself, with absolute dates.",
            },
        },
        ("action",),
    ),
)


@dataclass(frozen=True, slots=True)
class Memory:
    """The tool, over a project's memory folder."""

    folder: Folder
    control: Folder
    """Where the mutex of the index lies, out of the agent's reach."""
    spec: ToolSpec = SPEC

    def need(self, given: JsonObject, _place: Workplace) -> Need:
        action = word_of(given, "action", ACTIONS)
        if action == "list":
            return Need("read", (str(self.folder.path),), said="list memories")
        name = _key(given)
        if action == "write":
            _written(given)
        kind = "read" if action == "read" else "edit"
        return Need(kind, (f"{self.folder.path}/{name}",), said=f"{action} the memory {name}")

    async def run(self, given: JsonObject, _place: Workplace, _on_progress: OnProgress) -> ToolOutput:
        return await answered(lambda: ToolOutput(self._do(given)))

    def _do(self, given: JsonObject) -> str:
        match word_of(given, "action", ACTIONS):
            case "list":
                return "\n".join(self._list()) or "nothing is remembered yet"
            case "read":
                return self._read(_key(given))
            case "write":
                return self._write(_key(given), given)
            case _:
                return self._delete(_key(given))

    def _list(self) -> Iterator[str]:
        keys = [name for name in self.folder.names() if name.endswith(".md") and name != INDEX]
        for key in keys[:MAX_LISTED]:
            try:
                document = read_frontmatter(self._read(key))
            except (FileMissing, FileDamaged, NotRegular):
                continue
            kind = document.text("type") or "memory"
            yield f"- [{kind}] {key.removesuffix('.md')}: {document.text('description')}"
        if len(keys) > MAX_LISTED:
            yield f"[{len(keys):,} in all]"

    def _read(self, key: str) -> str:
        return self.folder.read(key, max_bytes=MAX_BYTES).decode("utf-8", "replace")

    def _write(self, key: str, given: JsonObject) -> str:
        self.folder.replace(key, _written(given))
        self._index(key, _line(key, text_of(given, "description")))
        return f"remembered as {key}"

    def _delete(self, key: str) -> str:
        if self.folder.entry(key) is None:
            raise FileMissing(f"there is no memory {key.removesuffix('.md')!r}; list them first")
        self._index(key, "")
        self.folder.remove(key)
        return f"{key} is forgotten"

    def _index(self, key: str, line: str) -> None:
        edit_file(
            self.folder,
            INDEX,
            lambda before: _indexed((before or b"").decode("utf-8", "replace"), key, line).encode(),
            control=self.control,
            max_bytes=MAX_INDEX_BYTES,
        )


def _indexed(index: str, key: str, line: str) -> str:
    """The index with this line for a memory, or without one; every other line is somebody's own."""
    lines = index.rstrip("\n").split("\n") if index.strip() else []
    at = next((at for at, other in enumerate(lines) if f"]({key})" in other), len(lines))
    kept = [other for other in lines if f"]({key})" not in other]
    return "\n".join([*kept[:at], *([line] if line else []), *kept[at:]]) + "\n"


def _key(given: JsonObject) -> str:
    name = text_of(given, "name").removesuffix(".md")
    if not _NAME.fullmatch(name):
        raise InputError(f"name is {name!r:.80}; use 1 to 80 lower-case letters, digits, '-' and '_'")
    return f"{name}.md"


def _written(given: JsonObject) -> bytes:
    description = " ".join(text_of(given, "description").split())
    if not description:
        raise InputError("description is empty; say in one line when this memory matters")
    fields = {
        "name": _key(given).removesuffix(".md"),
        "description": description,
        "type": word_of(given, "type", TYPES, "project"),
    }
    data = write_frontmatter(fields, f"\n{text_of(given, 'content').strip()}\n").encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise InputError(
            f"a memory of {len(data):,} bytes is over the limit of {MAX_BYTES:,}; split it by topic"
        )
    return data


def _line(key: str, description: str) -> str:
    line = f"- [{key.removesuffix('.md')}]({key}) — {' '.join(description.split())}"
    return line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"
