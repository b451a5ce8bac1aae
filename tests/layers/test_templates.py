"""Each packaged prompt lies in the folder of its layer, and is found there."""

from __future__ import annotations

from pathlib import Path

import pytest

import sevenfold.layers
from sevenfold.layers.templates import read_template
from sevenfold.store.files.folder import Folder

FOLDER = Path(sevenfold.layers.__file__).parent
PROMPTS = sorted(path.name for path in FOLDER.rglob("prompts/*.md"))


def test_there_are_prompts() -> None:
    assert "dream.md" in PROMPTS
    assert len(PROMPTS) == len(set(PROMPTS)), "a user replaces a prompt by its file name alone"


@pytest.mark.parametrize("name", PROMPTS)
def test_a_packaged_prompt_is_read_from_its_layer(name: str) -> None:
    (path,) = FOLDER.rglob(f"prompts/{name}")
    assert read_template(None, name) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PROMPTS)
def test_a_users_own_text_comes_before_the_packaged_one(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("My own words.", encoding="utf-8")
    with Folder.open(tmp_path) as templates:
        assert read_template(templates, name) == "My own words."
