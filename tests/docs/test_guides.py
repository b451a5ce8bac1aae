"""What the guides say to write into a settings file can be written into one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sevenfold.core.events import Event
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.project.settings_files import read_settings

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
SNIPPETS = [
    pytest.param(found, id=f"{page.stem}-{number}")
    for page in sorted(GUIDES.glob("*.md"))
    for number, found in enumerate(
        re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_snippet_is_taken_as_it_stands(snippet: str, tmp_path: Path) -> None:
    home, told = tmp_path / ".sevenfold", list[Event]()
    home.mkdir()
    (home / "settings.toml").write_text(snippet, encoding="utf-8")
    settings = read_settings(SETTINGS_SECTIONS, root=None, environ={"HOME": str(tmp_path)}, emit=told.append)
    assert told == [], "nothing in it is refused"
    before = read_settings(SETTINGS_SECTIONS, root=None, environ={"HOME": str(tmp_path / "nobody")})
    assert settings.sections != before.sections or "[models." in snippet, "it changes something"


def test_the_guides_have_snippets() -> None:
    assert len(SNIPPETS) >= 6
