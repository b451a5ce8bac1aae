"""Prompt texts: the template and the directive of the notes, and any other, from the user's folder or from
the package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sevenfold.core.errors import FileMissing
from sevenfold.store.files.folder import Folder

TEMPLATE, _PROMPT = "notes_template.md", "notes_update.md"
MAX_TEXT_BYTES = 64 * 1024

_LAYERS = {
    "dream.md": "dreams",
    "extraction.md": "memory/extraction",
    "living_doc.md": "living_docs",
    "notes_template.md": "session_notes",
    "notes_update.md": "session_notes",
    "recall_select.md": "memory/recall",
    "summary.md": "compaction",
    "summary_block.md": "compaction",
    "team_memory.md": "memory/extraction",
}
"""The layer whose folder holds each text."""


@dataclass(frozen=True, slots=True)
class NotesTexts:
    template: str
    prompt: str
    """`{path}`, `{tool}`, `{notes}` and `{condense}` are filled in."""


def read_notes_texts(templates: Folder | None = None) -> NotesTexts:
    """Each text from the folder of overrides where it is there, else the one that comes with the package."""
    return NotesTexts(read_template(templates, TEMPLATE), read_template(templates, _PROMPT))


def read_template(templates: Folder | None, name: str) -> str:
    """A person's own text of this name, or the one that comes with the package."""
    if templates is not None:
        try:
            return templates.read(name, max_bytes=MAX_TEXT_BYTES).decode("utf-8", "replace")
        except FileMissing:
            pass
    return _packaged(name)


@cache
def _packaged(name: str) -> str:
    return files("sevenfold.layers").joinpath(_LAYERS[name], "prompts", name).read_text(encoding="utf-8")
