"""Each packaged prompt lies in the folder of its layer, and is found there."""

from __future__ import annotations

from pathlib import Path

import pytest

import sevenfold.layers
from sevenfold.layers.templates import read_template

FOLDER = Path(sevenfold.layers.__file__).parent
PROMPTS = sorted(path.name for path in FOLDER.rglob("prompts/*.md") if "compaction" not in path.parts)
"""Those of compaction are read by `compaction.summary_methods`, which has no override."""


def test_there_are_prompts() -> None:
    assert "dream.md" in PROMPTS
    assert len(PROMPTS) == len(set(PROMPTS)), "a user replaces a prompt by its file name alone"


@pytest.mark.parametrize("name", PROMPTS)
def test_a_packaged_prompt_is_read_from_its_layer(name: str) -> None:
    (path,) = FOLDER.rglob(f"prompts/{name}")
    assert read_template(None, name) == path.read_text(encoding="utf-8")
