"""Small sessions to take notes of, written as a person would tell them."""

from __future__ import annotations

from itertools import count

from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.sections import SectionedNotes, split_notes
from sevenfold.layers.session_notes.structural_notes import StructuralNotes

SETTINGS = NotesSettings()


class Told:
    """A session as it is told, and the notes of it."""

    def __init__(self) -> None:
        self.notes = StructuralNotes()
        self.messages: list[Message] = []
        self._ids = count(1)

    def user(self, text: str) -> Told:
        return self._add(Message("user", text))

    def reply(self, text: str) -> Told:
        return self._add(Message("assistant", text))

    def call(self, tool: str, result: str = "ok", *, failed: bool = False, **given: object) -> Told:
        use = ToolUseId(f"toolu_{next(self._ids)}")
        frozen = freeze(given)
        assert isinstance(frozen, JsonObject)
        self._add(Message("assistant", (Text(""), ToolUse(use, tool, frozen))))
        return self._add(Message("user", (ToolResult(use, result, is_error=failed or None),)))

    def _add(self, message: Message) -> Told:
        self.messages.append(message)
        self.notes.add(message)
        return self

    def render(self, settings: NotesSettings = SETTINGS) -> SectionedNotes:
        return split_notes(self.notes.render(settings))

    def section(self, name: str) -> str:
        return self.render().body(name)
