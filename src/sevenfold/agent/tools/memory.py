"""The `memory` tool: notes for later sessions, one topic per file. The engine keeps the index."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, call_in_thread
from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.json import JsonObject, get_choice, get_string, object_schema
from sevenfold.core.memories import (
    MEMORY_KINDS,
    Memory,
    Origin,
    join_taint,
    read_memory,
    rewrite_memory,
    write_memory,
)
from sevenfold.core.secrets import refuse_secrets
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.memory.extraction.gate import MemoryDraft, find_unsaved_rule
from sevenfold.store.memory.changes import Remove, StoredMemory, Write
from sevenfold.store.memory.directory import DEFAULT_SCAN_LIMIT, MemoryDir
from sevenfold.store.memory.plan import ALREADY_ASKED

MAX_WRITTEN_MEMORY_BYTES = 64 * 1024
"""Of one memory: eight times what is ever put before a model at once."""

_ACTIONS = ("list", "read", "write", "delete")

_SAVED = Origin(who="agent", why="saved by the agent", said_by="model")
_FORGETTING = ("forget", "delete", "remove", "drop")

_ARTICLES = ("", " the", " my", " our")
"""What may stand before a name."""
_NAME = re.compile(r"(?:team/)?[a-z0-9][a-z0-9_-]{0,79}")

MEMORY_TOOL_SPEC = ToolSpec(
    "memory",
    "What is remembered of this project from session to session, one topic a memory. Save when the user asks "
    "for it, and only what neither code, history nor instruction files say. Check what it claims before "
    "acting on it.",
    object_schema(
        {
            "action": {"type": "string", "enum": list(_ACTIONS)},
            "name": {"type": "string", "description": "The topic in lower case, such as release-steps."},
            "type": {"type": "string", "enum": list(MEMORY_KINDS), "description": "With write."},
            "description": {
                "type": "string",
                "description": "With write: one line that says when it matters.",
            },
            "content": {
                "type": "string",
                "description": "With write: the memory itself, with absolute dates.",
            },
            "applies_to": {
                "type": "array",
                "items": {"type": "string"},
                "description": "With write, for a rule: the actions before which it is shown again, such as "
                "tool:shell, path:src/api/**, command:git push* or phase:before-commit.",
            },
        },
        ("action",),
    ),
)


class ConversationJudge(Protocol):
    """Whose words and wishes there are, by what was said."""

    def judge_change(self, before: Memory | None, after: Memory, /) -> Origin:
        """Who wants a memory to become this."""
        ...

    def judge_words(self, words: str, /) -> Origin:
        """Who said this."""
        ...

    def with_own_head(self, draft: MemoryDraft, known: Collection[str], /) -> MemoryDraft:
        """The same memory under a head of its own words, beside memories of these names."""
        ...

    def with_own_words(
        self, draft: MemoryDraft, before: Memory | None, after: Memory, /
    ) -> MemoryDraft | None:
        """The same in the user's own sentences, where it says theirs in other words."""
        ...


class UnknownConversation:
    """For whoever knows nothing of the conversation."""

    def judge_change(self, _before: Memory | None, _after: Memory, /) -> Origin:
        return _SAVED

    def judge_words(self, _words: str, /) -> Origin:
        return _SAVED

    def with_own_head(self, draft: MemoryDraft, _known: Collection[str], /) -> MemoryDraft:
        return draft

    def with_own_words(
        self, _draft: MemoryDraft, _before: Memory | None, _after: Memory, /
    ) -> MemoryDraft | None:
        return None


@dataclass(slots=True)
class MemoryTool:
    """The tool, over a project's memories."""

    memory: MemoryDir
    conversation: ConversationJudge = field(default_factory=UnknownConversation)
    """Set once there is one to ask."""
    spec: ToolSpec = MEMORY_TOOL_SPEC

    def need(self, given: JsonObject, _place: ToolContext) -> AccessRequest:
        action = get_choice(given, "action", _ACTIONS)
        if action == "list":
            return AccessRequest(kind="read", paths=(str(self.memory.path),), said="list memories")
        key = _key(given)
        if action == "write":
            _draft(given)
        kind = "read" if action == "read" else "edit"
        return AccessRequest(
            kind=kind, paths=(f"{self.memory.path}/{key}",), said=f"{action} the memory {key}"
        )

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        return await call_in_thread(lambda: ToolOutput(self._do(given)))

    def _do(self, given: JsonObject) -> str:
        match get_choice(given, "action", _ACTIONS):
            case "list":
                return "\n".join(self._list()) or "nothing is remembered yet"
            case "read":
                return self.memory.read(_key(given)).memory.text
            case "write":
                return self._write(_draft(given), keeps_conditions="applies_to" not in given)
            case _:
                return self._delete(_key(given))

    def _list(self) -> Iterator[str]:
        count = len(self.memory.keys())
        for stored in self.memory.scan():
            memory = stored.memory
            yield f"- [{memory.kind or 'memory'}] {memory.key.removesuffix('.md')}: {memory.description}"
        if count > DEFAULT_SCAN_LIMIT:
            yield f"[{count:,} in all]"

    def _write(self, draft: MemoryDraft, *, keeps_conditions: bool) -> str:
        stored = self.memory.find(draft.key)
        there = stored.memory if stored else None
        if there and keeps_conditions:
            draft = replace(draft, applies_to=there.applies_to)
        memory = _written(draft, there)
        unsaved = find_unsaved_rule(draft)
        if unsaved is not None:
            raise InputError(f"{unsaved.reason}; if the user wants it all the same: `sevenfold memory add`")
        refuse_secrets(memory.text)
        origin = self._judge(stored, memory)
        quoted = None if origin.is_trusted else self._quote(draft, stored, memory)
        if quoted is not None:
            draft, memory = quoted, _written(quoted, there)
            origin = replace(self._judge(stored, memory), why="saved by the agent, in the user's words")
        if origin.is_trusted and not (there and draft.description == there.description):
            memory = _written(self.conversation.with_own_head(draft, self.memory.keys()), there)
        change = Write(memory.key, memory.text, stored.sha256 if stored else None)
        if not origin.is_trusted and self.memory.was_asked([change]):
            return f"{memory.key} stays as it is: {ALREADY_ASKED}; `sevenfold memory review` shows what waits"
        if not origin.is_trusted:
            self.memory.propose([change], origin, "the agent wrote it from what it had read elsewhere")
            return (
                f"{memory.key} is not remembered yet: it says what was read elsewhere, takes away what the "
                "user did not, or applies when they did not say so. It waits for the user, who can accept it "
                "with `sevenfold memory review`; tell them so. What the user said is remembered at once when "
                "you write their whole sentence, in their words and their language"
            )
        self.memory.commit([change], origin)
        if quoted is None:
            return f"remembered as {memory.key}"
        return f"remembered as {memory.key}, in the words of the user: {quoted.body}"

    def _quote(self, draft: MemoryDraft, stored: StoredMemory | None, memory: Memory) -> MemoryDraft | None:
        """The same in the user's own sentences, where that can be trusted as it stands."""
        there = stored.memory if stored else None
        quoted = self.conversation.with_own_words(draft, there, memory)
        if quoted is None:
            return None
        written = _written(quoted, there)
        refuse_secrets(written.text)
        return quoted if self._judge(stored, written).is_trusted else None

    def _judge(self, stored: StoredMemory | None, memory: Memory) -> Origin:
        origin = self.conversation.judge_change(stored.memory if stored else None, memory)
        return replace(origin, taint=origin.taint | (join_taint(stored.origin) if stored else frozenset()))

    def _delete(self, key: str) -> str:
        there = self.memory.find(key)
        if there is None:
            raise FileMissing(f"there is no memory {key.removesuffix('.md')!r}; list them first")
        change = Remove(key, there.sha256)
        name = re.sub(r"[-_/]", " ", key.removesuffix(".md"))
        # A page may want a rule of the user's forgotten: they have to have said so.
        origins = [
            self.conversation.judge_words(f"{verb}{article} {name}")
            for verb in _FORGETTING
            for article in _ARTICLES
        ]
        origin = next((one for one in origins if one.is_trusted), origins[0])
        if not origin.is_trusted and self.memory.was_asked([change]):
            return f"{key} stays as it is: {ALREADY_ASKED}; `sevenfold memory review` shows what waits"
        if not origin.is_trusted:
            self.memory.propose([change], origin, "the agent wants it forgotten, and the user did not say so")
            return (
                f"{key} is not forgotten yet: the user did not ask for that by its name. It waits for them, "
                "and they can agree with `sevenfold memory review`; tell them so"
            )
        self.memory.commit([change], origin)
        return f"{key} is forgotten"


def _key(given: JsonObject) -> str:
    name = get_string(given, "name").removesuffix(".md")
    if not _NAME.fullmatch(name):
        raise InputError(f"name is {name!r:.80}; use 1 to 80 lower-case letters, digits, '-' and '_'")
    return f"{name}.md"


def _draft(given: JsonObject) -> MemoryDraft:
    description = " ".join(get_string(given, "description").split())
    if not description:
        raise InputError("description is empty; say in one line when this memory matters")
    key = _key(given)
    name = key.rpartition("/")[2].removesuffix(".md")
    kind, content = get_choice(given, "type", MEMORY_KINDS, "project"), get_string(given, "content")
    draft = MemoryDraft(
        key=key, name=name, description=description, kind=kind, body=content, applies_to=_conditions(given)
    )
    _written(draft, None)
    return draft


def _written(draft: MemoryDraft, before: Memory | None) -> Memory:
    """The memory as its file will say it; what the draft does not speak of stays."""
    if before:
        conditions = draft.applies_to
        text = rewrite_memory(before, draft.description, draft.kind, draft.body, applies_to=conditions)
    else:
        text = write_memory(
            draft.name, draft.description, draft.kind, draft.body, applies_to=draft.applies_to
        )
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_WRITTEN_MEMORY_BYTES:
        raise InputError(
            f"a memory of {size:,} bytes is over the limit of {MAX_WRITTEN_MEMORY_BYTES:,}; split it by topic"
        )
    return read_memory(draft.key, text)


def _conditions(given: JsonObject) -> tuple[str, ...]:
    said = given.get("applies_to", ())
    if not isinstance(said, tuple) or not all(isinstance(item, str) for item in said):
        raise InputError(f"applies_to is {said!r:.80}; use a list of texts such as tool:shell")
    return tuple(str(item) for item in said)
