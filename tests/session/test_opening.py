"""What a session is opened with."""

from __future__ import annotations

from pathlib import Path

from sevenfold.cli.settings import SETTINGS_SECTIONS as ALL
from sevenfold.session.blocking import BlockingSession
from sevenfold.session.settings import SETTINGS_SECTIONS
from tests.session.talk import FRAME


def test_every_section_that_a_file_may_have_is_known_to_a_session() -> None:
    assert set(SETTINGS_SECTIONS) == set(ALL)


def test_a_section_that_no_session_reads_stops_none(tmp_path: Path) -> None:
    home = tmp_path / ".sevenfold"
    home.mkdir()
    (home / "settings.toml").write_text("[mail]\nwaiting = 5\n[lock]\nwait_seconds = 3\n")
    with BlockingSession.open(FRAME, project=tmp_path, environ={"HOME": str(tmp_path)}) as session:
        assert session.id
