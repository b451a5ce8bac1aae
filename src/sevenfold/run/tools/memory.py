"""memory: what is worth knowing in later sessions, one file each; the index is kept by the engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.memories import KINDS, read_memory, write_memory
from sevenfold.core.memories import Memory as Remembered
from sevenfold.core.memory_secrets import refuse_secrets
from sevenfold.core.provenance import Origin
from sevenfold.layers.extract_gate import Draft
from sevenfold.run.tool import Need, OnProgress, ToolOutput, ToolSpec
from sevenfold.run.tools.inputs import answered, schema, text_of, word_of
from sevenfold.run.workplace import Workplace
from sevenfold.store.memory_changes import Remove, Write
from sevenfold.store.memory_dir import DEFAULT_SCAN, MemoryDir

MAX_BYTES = 64 * 1024
"""Of one memory: eight times what is ever put before a model at once."""

ACTIONS = ("list", "read", "write", "delete")

OriginOf: TypeAlias = Callable[[str], Origin]
"""Whose words a text is, by the conversation that it was written in."""
HeadOf: TypeAlias = Callable[[Draft, Collection[str]], Draft]
"""The same memory under a head of its own words, beside memories of these names."""

_FORGETTING = ("forget", "delete", "remove", "drop")

_NAME = re.compile(r"(?:team/)?[a-z0-9][a-z0-9_-]{0,79}")

SPEC = ToolSpec(
    "memory",
    "What is remembered of this project from session to session, one topic a memory. Save when the user asks "
    "for it, and only what neither code, history nor instruction files say. Check what it claims before "
    "acting on it.",
    schema(
        {
            "action": {"type": "string", "enum": list(ACTIONS)},
            "name": {"type": "string", "description": "The topic in lower case, such as release-steps."},
            "type": {"type": "string", "enum": list(KINDS), "description": "With write."},
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


def told_by_agent(_text: str) -> Origin:
    """For whoever knows nothing of the conversation."""
    return Origin("agent", "saved by the agent", said_by="model")


def as_it_is(draft: Draft, _known: Collection[str]) -> Draft:
    """The same."""
    return draft


@dataclass(slots=True)
class Memory:
    """The tool, over a project's memories."""

    memory: MemoryDir
    origin_of: OriginOf = told_by_agent
    """Whose words a body is. Set once there is a conversation to ask."""
    head_of: HeadOf = as_it_is
    """A name and a description that say no more than the body. Set with it."""
    spec: ToolSpec = SPEC

    def need(self, given: JsonObject, _place: Workplace) -> Need:
        action = word_of(given, "action", ACTIONS)
        if action == "list":
            return Need("read", (str(self.memory.path),), said="list memories")
        key = _key(given)
        if action == "write":
            _written(given)
        kind = "read" if action == "read" else "edit"
        return Need(kind, (f"{self.memory.path}/{key}",), said=f"{action} the memory {key}")

    async def run(self, given: JsonObject, _place: Workplace, _on_progress: OnProgress) -> ToolOutput:
        return await answered(lambda: ToolOutput(self._do(given)))

    def _do(self, given: JsonObject) -> str:
        match word_of(given, "action", ACTIONS):
            case "list":
                return "\n".join(self._list()) or "nothing is remembered yet"
            case "read":
                return self.memory.read(_key(given)).memory.text
            case "write":
                return self._write(_key(given), _written(given))
            case _:
                return self._delete(_key(given))

    def _list(self) -> Iterator[str]:
        count = len(self.memory.keys())
        for stored in self.memory.scan():
            memory = stored.memory
            yield f"- [{memory.kind or 'memory'}] {memory.key.removesuffix('.md')}: {memory.description}"
        if count > DEFAULT_SCAN:
            yield f"[{count:,} in all]"

    def _write(self, key: str, text: str) -> str:
        refuse_secrets(text)
        memory, there = read_memory(key, text), self.memory.find(key)
        origin = self.origin_of(memory.body)
        if origin.is_trusted:
            memory = self._headed(memory)
        key = memory.key
        change = Write(key, memory.text, there.sha256 if there else None)
        if not origin.is_trusted:
            self.memory.propose([change], origin, "the agent wrote it from what it had read elsewhere")
            return (
                f"{key} is not remembered yet: it says what was read elsewhere, not what the user said. It "
                "waits for the user, who can accept it with `sevenfold memory review`; tell them so"
            )
        self.memory.commit([change], origin)
        return f"remembered as {key}"

    def _headed(self, memory: Remembered) -> Remembered:
        name, said = memory.name, memory.description
        given = Draft(memory.key, name, said, memory.kind, memory.body, memory.applies_to)
        found = self.head_of(given, self.memory.keys())
        text = write_memory(
            found.name, found.description, found.kind, found.body, applies_to=found.applies_to
        )
        return memory if found == given else read_memory(found.key, text)

    def _delete(self, key: str) -> str:
        there = self.memory.find(key)
        if there is None:
            raise FileMissing(f"there is no memory {key.removesuffix('.md')!r}; list them first")
        change = Remove(key, there.sha256)
        name = re.sub(r"[-_/]", " ", key.removesuffix(".md"))
        # A page may want a rule of the user's forgotten: they have to have said so.
        wishes = [self.origin_of(f"{verb} {name}") for verb in _FORGETTING]
        origin = next((wish for wish in wishes if wish.is_trusted), wishes[0])
        if not origin.is_trusted:
            self.memory.propose([change], origin, "the agent wants it forgotten, and the user did not say so")
            return (
                f"{key} is not forgotten yet: the user did not ask for that by its name. It waits for them, "
                "and they can agree with `sevenfold memory review`; tell them so"
            )
        self.memory.commit([change], origin)
        return f"{key} is forgotten"


def _key(given: JsonObject) -> str:
    name = text_of(given, "name").removesuffix(".md")
    if not _NAME.fullmatch(name):
        raise InputError(f"name is {name!r:.80}; use 1 to 80 lower-case letters, digits, '-' and '_'")
    return f"{name}.md"


def _written(given: JsonObject) -> str:
    description = " ".join(text_of(given, "description").split())
    if not description:
        raise InputError("description is empty; say in one line when this memory matters")
    name = _key(given).rpartition("/")[2].removesuffix(".md")
    kind = word_of(given, "type", KINDS, "project")
    text = write_memory(name, description, kind, text_of(given, "content"), applies_to=_conditions(given))
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise InputError(f"a memory of {size:,} bytes is over the limit of {MAX_BYTES:,}; split it by topic")
    return text


def _conditions(given: JsonObject) -> tuple[str, ...]:
    said = given.get("applies_to", ())
    if not isinstance(said, tuple) or not all(isinstance(item, str) for item in said):
        raise InputError(f"applies_to is {said!r:.80}; use a list of texts such as tool:shell")
    return tuple(str(item) for item in said)
