"""The Anthropic memory tool (`memory_20250818`) served from a project's memories:

    with MemoryDir.for_project(".") as memory:
        runner = client.beta.messages.tool_runner(tools=[memory_tool(memory)], ...)

What the model writes is kept in the same folder as all other memories of the project: with a history,
without secrets, and for a person to review. `MemoryCommands` carries out the six commands of the tool.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sevenfold.core.errors import InputError, KeyRefused, MemoryConflict, SevenfoldError
from sevenfold.core.memories import (
    ARCHIVE_PREFIX,
    INDEX_FILE,
    LOGS_PREFIX,
    TEAM_PREFIX,
    Memory,
    Origin,
    Taint,
    change_field,
    read_memory,
)
from sevenfold.core.secrets import refuse_secrets
from sevenfold.core.system import run_blocking
from sevenfold.store.files.folder import check_memory_key
from sevenfold.store.memory.changes import Remove, StoredMemory, Write
from sevenfold.store.memory.directory import MemoryDir

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool
    from anthropic.types.beta import BetaMemoryTool20250818Param


# Nobody knows whose words a model writes here, so they are kept and shown to it again, but not trusted.
# Changes to the user's own memories wait for the user, unless the caller vouches for its model's input.

MEMORIES_ROOT = "/memories"
_MAX_LINES = 999_999
_MAX_VIEW_CHARS = 16_000
"""What the model is told that a view holds; the rest is had with a range."""
_DEPTH = 2
"""Of a listing."""
CONTEXT_LINES = 2
"""Lines before and after an edit that are shown with it."""

_KEPT = (TEAM_PREFIX, LOGS_PREFIX, ARCHIVE_PREFIX)
"""What others write; it can be read here, and not changed."""


PATH_FIELD = "memory_path"
"""In the head of a memory: the name that the model gave it, where the file has another."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What the model reads."""

    text: str
    is_error: bool = False


class _Refused(Exception):
    """What a command is answered with where it could not be done."""


@dataclass(frozen=True, slots=True)
class MemoryCommands:
    """Answers commands. Every method blocks on the disk."""

    memory: MemoryDir
    session: str = ""
    """Where the model's words belong to, for the history."""
    is_trusted: bool = False
    """The caller lets nothing foreign into its conversations."""

    def run(self, given: Mapping[str, object]) -> CommandResult:
        """The answer to a command as the API hands it out."""
        doing = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }.get(str(given.get("command")))
        try:
            if doing is None:
                raise _Refused(f"Error: Unknown command {given.get('command')!r:.80}")
            return CommandResult(doing(given))
        except _Refused as refused:
            return CommandResult(str(refused), is_error=True)
        except MemoryConflict as error:
            changed = ", ".join(error.keys)
            return CommandResult(f"Error: {changed} was changed meanwhile. View it again", is_error=True)
        except SevenfoldError as error:
            return CommandResult(f"Error: {error}", is_error=True)

    def _view(self, given: Mapping[str, object]) -> str:
        path = _path(given, "path")
        if path == INDEX_FILE:
            return _numbered(
                f"{MEMORIES_ROOT}/{INDEX_FILE}", self.memory.index_text().text, given.get("view_range")
            )
        stored = self._find(path)
        if stored is not None:
            seen = _VisibleText.of(stored.memory)
            return _numbered(_shown(_named(stored.memory)), seen.text, given.get("view_range"))
        listed = self._below(path)
        if path and not listed:
            raise _Refused(f"The path {_shown(path)} does not exist. Please provide a valid path.")
        return _listing(path, listed)

    def _create(self, given: Mapping[str, object]) -> str:
        path = _path(given, "path")
        key = self._own(path)
        if self._find(path) is not None or self.memory.find(key) is not None or self._below(path):
            raise _Refused(f"Error: File {_shown(path)} already exists")
        text = _with_name(_text(given, "file_text"), key, path)
        self._commit([_checked(key, text, None)], "created")
        return f"File created successfully at: {_shown(path)}"

    def _replace(self, given: Mapping[str, object]) -> str:
        stored = self._existing(given)
        old, new = _text(given, "old_str"), _text(given, "new_str", "")
        seen, shown = _VisibleText.of(stored.memory), _shown(_named(stored.memory))
        text = seen.text
        if not old or old not in text:
            raise _Refused(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {shown}."
            )
        at = text.index(old)
        lines = _lines_with(text, old)
        if len(lines) > 1:
            raise _Refused(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{', '.join(map(str, lines))}. Please ensure it is unique"
            )
        after = text[:at] + new + text[at + len(old) :]
        self._commit([_checked(stored.memory.key, seen.hidden + after, stored.sha256)], "edited")
        return f"The memory file has been edited.\n{_snippet(after, at, new)}"

    def _insert(self, given: Mapping[str, object]) -> str:
        stored = self._existing(given)
        seen = _VisibleText.of(stored.memory)
        lines = _lines(seen.text)
        at = given.get("insert_line")
        if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at <= len(lines):
            raise _Refused(
                f"Error: Invalid `insert_line` parameter: {at}. It should be within the range of lines of "
                f"the file: [0, {len(lines)}]"
            )
        added = _text(given, "insert_text").removesuffix("\n").split("\n")
        after = "\n".join([*lines[:at], *added, *lines[at:]]) + "\n"
        self._commit([_checked(stored.memory.key, seen.hidden + after, stored.sha256)], "edited")
        return f"The file {_shown(_named(stored.memory))} has been edited."

    def _delete(self, given: Mapping[str, object]) -> str:
        path = _path(given, "path")
        found = self._changed(path)
        self._commit([Remove(one.memory.key, one.sha256) for one in found], "deleted")
        return f"Successfully deleted {_shown(path)}"

    def _rename(self, given: Mapping[str, object]) -> str:
        old, new = _path(given, "old_path"), _path(given, "new_path")
        found = self._changed(old)
        is_file = len(found) == 1 and self._find(old) is not None
        names = [new if is_file else new + _named(one.memory)[len(old) :] for one in found]
        keys = [self._own(name) for name in names]
        if any(self.memory.find(key) is not None for key in keys) or self._find(new) or self._below(new):
            raise _Refused(f"Error: The destination {_shown(new)} already exists")
        changes: list[Write | Remove] = [Remove(one.memory.key, one.sha256) for one in found]
        for one, key, name in zip(found, keys, names, strict=True):
            changes.append(Write(key, _with_name(one.memory.text, key, name), None, one.origin))
        self._commit(changes, "renamed")
        return f"Successfully renamed {_shown(old)} to {_shown(new)}"

    def _find(self, path: str) -> StoredMemory | None:
        """The memory at a path; models leave the ending out, or take another."""
        if not path:
            return None
        named = (one for one in self.memory.scan(None) if one.memory.field(PATH_FIELD) == path)
        return self.memory.find(path) or next(named, None) or self.memory.find(f"{path}.md")

    def _existing(self, given: Mapping[str, object]) -> StoredMemory:
        path = _path(given, "path")
        self._refuse_kept(path)
        stored = self._find(path)
        if stored is None:
            raise _Refused(f"Error: The path {_shown(path)} does not exist. Please provide a valid path.")
        return stored

    def _changed(self, path: str) -> list[StoredMemory]:
        """The memory at a path, or all those below it."""
        if not path:
            raise _Refused(f"Error: Cannot change the {MEMORIES_ROOT} directory itself")
        self._refuse_kept(path)
        stored = self._find(path)
        found = [stored] if stored else list(self._below(path).values())
        if not found:
            raise _Refused(f"Error: The path {_shown(path)} does not exist")
        return found

    def _below(self, path: str) -> dict[str, StoredMemory]:
        """Those below a folder, by the names that the model knows them by."""
        keys = {*self.memory.keys(), *(self.memory.keys(f"{path}/") if path else ())}
        found = {_named(one.memory): one for key in sorted(keys) if (one := self.memory.find(key))}
        return {name: one for name, one in found.items() if name.startswith(f"{path}/" if path else "")}

    def _own(self, path: str) -> str:
        """The key that a path means, one of those that may be written here."""
        self._refuse_kept(path)
        try:
            return check_memory_key(path if path.endswith(".md") else f"{path}.md")
        except KeyRefused:
            key = _safe_key(path)
            if not key:
                raise
            return check_memory_key(key)

    def _refuse_kept(self, path: str) -> None:
        if path.removesuffix(".md").casefold() == INDEX_FILE.removesuffix(".md").casefold():
            raise _Refused(f"Error: {_shown(path)} is made of the files; write the file of a topic instead")
        if f"{path}/".startswith(_KEPT):
            raise _Refused(
                f"Error: {_shown(path)} cannot be changed here; write below {MEMORIES_ROOT} itself"
            )

    def _commit(self, changes: Sequence[Write | Remove], why: str) -> None:
        foreign: frozenset[Taint] = frozenset() if self.is_trusted else frozenset(["tool"])
        why = f"{why} with the memory tool"
        origin = Origin(who="agent", why=why, session=self.session, said_by="model", taint=foreign)
        if self.is_trusted or not any(self._is_users(change.key) for change in changes):
            self.memory.commit(changes, origin)
            return
        # A page may want a rule of the user's changed or forgotten, and nobody here knows who said so.
        if not self.memory.was_asked(changes):
            self.memory.propose(changes, origin, f"{why}, and the memory is the user's own")
        raise _Refused(
            "Error: this memory is the user's own and stays as it is until they agree; tell them that "
            "`sevenfold memory review` shows what waits"
        )

    def _is_users(self, key: str) -> bool:
        stored = self.memory.find(key)
        return stored is not None and stored.is_trusted


def _named(memory: Memory) -> str:
    """What the model calls it."""
    return memory.field(PATH_FIELD) or memory.key


def _with_name(text: str, key: str, path: str) -> str:
    """The text with the name that the model gave it in its head, where the key is another."""
    fields = {*read_memory(key, text).document.fields}
    if key == path:
        if PATH_FIELD not in fields:
            return text
        return read_memory(key, text).body if fields == {PATH_FIELD} else change_field(text, PATH_FIELD, None)
    try:
        return change_field(text, PATH_FIELD, path)
    except InputError:  # what begins as a head and is none is the model's text
        return change_field("", PATH_FIELD, path) + text


_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def _safe_key(path: str) -> str:
    """A file for a name with spaces or other letters; empty for one that is hidden, or means a device."""
    if not path.isprintable() or any(part.startswith((".", "-")) for part in path.split("/")):
        return ""
    bare = unicodedata.normalize("NFKD", path.removesuffix(".md")).encode("ascii", "ignore").decode()
    parts = [_ODD.sub("-", part).strip(".-") or "note" for part in bare.split("/")]
    if all(parts) and _ODD.sub("", path) == path.replace("/", ""):
        return ""  # it has no odd letter: what is wrong with it stays wrong
    return f"{'/'.join(parts)[:150]}-{hashlib.sha256(path.encode()).hexdigest()[:8]}.md"


@dataclass(frozen=True, slots=True)
class _VisibleText:
    """A memory's text as the model sees it, and what is hidden before that: a head that holds only its name,
    or repeats its text, so that no sentence would be found once."""

    hidden: str
    text: str

    @classmethod
    def of(cls, memory: Memory) -> _VisibleText:
        head, body = memory.text.removesuffix(memory.body), memory.body
        description = memory.document.text("description")
        if head and not {*memory.document.fields} - {PATH_FIELD}:
            return cls(head, body)
        if head and description and description in body:
            return cls(head + body[: len(body) - len(body.lstrip("\n"))], body.lstrip("\n"))
        return cls("", memory.text)


def _checked(key: str, text: str, base: str | None) -> Write:
    if text.count("\n") >= _MAX_LINES:
        raise _Refused(f"File {_shown(key)} exceeds maximum line limit of {_MAX_LINES:,} lines.")
    refuse_secrets(text)
    return Write(key, text, base)


def _path(given: Mapping[str, object], name: str) -> str:
    """What lies below the root; empty: the root itself. Whatever else is in it, keys' grammar refuses."""
    path = _text(given, name)
    below = path.removeprefix(MEMORIES_ROOT)
    if not path.startswith(MEMORIES_ROOT) or (below and not below.startswith("/")):
        raise _Refused(f"Error: Path must start with {MEMORIES_ROOT}, got: {path:.200}")
    parts = below.strip("/").split("/")
    if any(part in (".", "..") for part in parts) or "\\" in path or "%" in path or "\0" in path:
        raise _Refused(f"Error: Path {path:.200} would escape {MEMORIES_ROOT} directory")
    return unicodedata.normalize("NFC", "/".join(parts))


def _text(given: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = given.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise InputError(f"{name} is missing, or no text")
    return value


def _shown(path: str) -> str:
    return f"{MEMORIES_ROOT}/{path}" if path else MEMORIES_ROOT


def _numbered(shown: str, text: str, view_range: object) -> str:
    lines = _lines(text)
    numbered = "\n".join(f"{at:6}\t{lines[at - 1]}" for at in _range(view_range, len(lines)))
    answer = f"Here's the content of {shown} with line numbers:\n{numbered}"
    if len(answer) <= _MAX_VIEW_CHARS:
        return answer
    return f"{answer[:_MAX_VIEW_CHARS]}\n[cut at {_MAX_VIEW_CHARS:,} characters; use view_range for the rest]"


def _range(view_range: object, count: int) -> range:
    """The numbers of the lines that are wanted."""
    if view_range is None:
        return range(1, count + 1)
    given = list(cast("Sequence[object]", view_range)) if isinstance(view_range, list | tuple) else []
    match given:
        case [int(first), int(last)] if 1 <= first <= max(count, 1) and (last == -1 or last >= first):
            return range(first, (count if last == -1 else min(last, count)) + 1)
        case _:
            raise _Refused(
                f"Error: Invalid `view_range` parameter: {given}. Its first element should be within the "
                f"range of lines of the file: [1, {count}], and its second not before it, or -1"
            )


def _listing(path: str, found: Mapping[str, StoredMemory]) -> str:
    """Sizes of files and of folders with all that is in them, as `du -h` shows them."""
    base = len(path) + 1 if path else 0
    sizes: dict[str, int] = {path: 0}
    for key, stored in found.items():
        size = len(stored.memory.text.encode("utf-8", "replace"))
        parts = key[base:].split("/")
        sizes[path] += size
        for depth in range(1, min(len(parts), _DEPTH) + 1):
            name = key[:base] + "/".join(parts[:depth])
            sizes[name] = sizes.get(name, 0) + size
    lines = (f"{_size(size)}\t{_shown(name)}" for name, size in sorted(sizes.items()))
    return "\n".join(
        (
            f"Here're the files and directories up to {_DEPTH} levels deep in {_shown(path)}, excluding "
            "hidden items and node_modules:",
            *lines,
        )
    )


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "K"):
        if size < 1024:
            return f"{size:.0f}{unit}" if unit == "B" else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}M"


def _lines(text: str) -> list[str]:
    """As they are numbered; what else Python takes for the end of a line is part of one."""
    return text.removesuffix("\n").split("\n") if text else []


def _lines_with(text: str, part: str) -> list[int]:
    """The lines at which a text holds a part, one for each time."""
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(part, at + 1)
    return found


def _snippet(text: str, at: int, new: str) -> str:
    lines = _lines(text)
    first = text.count("\n", 0, at)
    last = first + new.count("\n")
    shown = range(max(0, first - CONTEXT_LINES), min(len(lines), last + CONTEXT_LINES + 1))
    return "\n".join(f"{line + 1:6}\t{lines[line]}" for line in shown)


def memory_tool(memory: MemoryDir, *, session: str = "", is_trusted: bool = False) -> BetaBuiltinFunctionTool:
    """A tool for `Anthropic`. It does not close the memories it was given.

    With `is_trusted` the caller vouches that nothing foreign enters its conversations.
    """
    # Here, since who does without the SDK does without its libraries.
    from anthropic.lib.tools import BetaBuiltinFunctionTool

    commands = MemoryCommands(memory, session, is_trusted)

    class MemoryTool(BetaBuiltinFunctionTool):
        def to_dict(self) -> BetaMemoryTool20250818Param:
            return _declared()

        def call(self, input: object) -> str:  # noqa: A002 - the SDK's name for it
            return _answer(commands, input)

    return MemoryTool()


def async_memory_tool(
    memory: MemoryDir, *, session: str = "", is_trusted: bool = False
) -> BetaAsyncBuiltinFunctionTool:
    """The same for `AsyncAnthropic`."""
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool

    commands = MemoryCommands(memory, session, is_trusted)

    class MemoryTool(BetaAsyncBuiltinFunctionTool):
        def to_dict(self) -> BetaMemoryTool20250818Param:
            return _declared()

        async def call(self, input: object) -> str:  # noqa: A002 - the SDK's name for it
            return await run_blocking(lambda: _answer(commands, input))

    return MemoryTool()


def _declared() -> BetaMemoryTool20250818Param:
    return {"type": "memory_20250818", "name": "memory"}


def _answer(commands: MemoryCommands, given: object) -> str:
    from anthropic.lib.tools import ToolError

    answer = commands.run(cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {})
    if answer.is_error:
        raise ToolError(answer.text)
    return answer.text
