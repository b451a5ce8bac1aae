"""The side query of recall: a cheap model chooses from what the search found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.text.fences import fence_text
from sevenfold.core.text.truncation import truncate_bytes
from sevenfold.layers.memory.recall.policy import RecallCandidate

RECALL_KIND = "recall"
"""Whose call it is, for the bill."""

SIDE_QUERY_TOKENS = 256
"""Five names take fifty."""

RECALL_PROMPT = "recall_select.md"
"""`{count}` is filled in."""

MAX_SIDE_PROMPT_BYTES = 4_000
MAX_DESCRIPTION_BYTES = 300
"""Of a description. What a memory is about is said in one line, and all of them are paid for."""


@dataclass(frozen=True, slots=True)
class ManifestLine:
    """A line of the manifest."""

    key: str
    kind: str
    modified: datetime
    description: str

    def __str__(self) -> str:
        kind = f"[{self.kind}] " if self.kind else ""
        about = truncate_bytes(" ".join(self.description.split()), MAX_DESCRIPTION_BYTES)
        return f"- {kind}{self.key} ({self.modified.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}): {about}"


def build_output_config(count: int) -> JsonObject:
    """What the answer must look like, as the Messages API takes it."""
    files = {"type": "array", "items": {"type": "string"}, "description": f"at most {count} names"}
    schema = {
        "type": "object",
        "properties": {"files": files},
        "required": ["files"],
        "additionalProperties": False,
    }
    return freeze_object({"format": {"type": "json_schema", "schema": schema}})


def render_side_query(instruction: str, prompt: str, manifest: Sequence[ManifestLine], count: int) -> str:
    """What the model is asked. Neither the prompt nor a description is an instruction to it."""
    lines = fence_text("notes", "\n".join(map(str, manifest)))
    asked = fence_text("request", truncate_bytes(prompt, MAX_SIDE_PROMPT_BYTES))
    return f"{asked}\n\n{lines}\n\n{instruction.replace('{count}', str(count))}"


def parse_recall_choice(
    answer: str, candidates: Sequence[RecallCandidate]
) -> tuple[RecallCandidate, ...] | None:
    """Those that the answer names, in its order, each once; a name that was not offered is dropped.

    None for an answer that is no list of names.
    """
    by_key = {one.key: one for one in candidates}
    start, end = answer.find("{"), answer.rfind("}")
    try:
        read: object = json.loads(answer[start : end + 1]) if start >= 0 else None
    except ValueError:
        return None
    named: object = cast("dict[str, object]", read).get("files") if isinstance(read, dict) else None
    if not isinstance(named, list):
        return None
    listed = cast("list[object]", named)
    keys = dict.fromkeys(name for name in listed if isinstance(name, str) and name in by_key)
    return tuple(by_key[key] for key in keys)
