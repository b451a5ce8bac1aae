"""What a dream reads of memories that several projects have in one directory."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sevenfold.core.memories import Origin
from sevenfold.layers.dreams.policy import DreamSettings
from tests.layers.dreams.dream_cases import Bedroom


def test_projects_that_share_a_directory_put_aside_only_what_is_broken_in_their_own(tmp_path: Path) -> None:
    shared, settings = tmp_path / "shared", DreamSettings(stale_days=90)
    with Bedroom(tmp_path, settings, name="one", memory_dir=shared) as one:
        (one.root / "kept.py").touch()
        one.put("kept", "The parser of one is in `kept.py`.")
        one.put("gone", "The lexer of one is in `src/gone.py`.")
        one.put("theirs", "It came with a folder: `src/lost.py`.", origin=Origin(who="sync", why="test"))
    with Bedroom(tmp_path, settings, name="two", memory_dir=shared) as two:
        two.put("edited", "The emitter of two is in `src/gone.py`.")
    with Bedroom(tmp_path, settings, name="one", memory_dir=shared) as one:
        one.put("edited", "The emitter of two is in `src/gone.py`, and more.")
    with Bedroom(tmp_path, settings, name="two", memory_dir=shared) as two:
        two.clock.pass_time(timedelta(days=100))
        (two.root.parent / "one").rename(tmp_path / "away")
        assert two.dream().record.outcome == "unchanged"
        (tmp_path / "away").rename(two.root.parent / "one")
        assert two.dream().record.archived == ("archive/gone.md",)
        assert two.texts().keys() == {"kept.md", "theirs.md", "edited.md"}
