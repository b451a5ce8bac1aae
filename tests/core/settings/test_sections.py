"""What sections compute from their values."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sevenfold.core.settings import PlaceSettings
from sevenfold.core.settings.sections import PermissionSettings, SyncSettings, TeamSettings


def test_numbers_are_times_in_the_unit_of_their_name() -> None:
    sync = SyncSettings(push_after_seconds=3, timeout_seconds=7)
    assert (sync.push_after, sync.timeout) == (timedelta(seconds=3), timedelta(seconds=7))
    assert PlaceSettings(sweep_hours=5).sweep_every == timedelta(hours=5)


def test_no_seconds_mean_no_reports_of_progress() -> None:
    assert TeamSettings(progress_seconds=1).progress_every == timedelta(seconds=1)
    assert TeamSettings(progress_seconds=0).progress_every is None


def test_an_agent_starts_in_the_mode_of_its_settings() -> None:
    assert PermissionSettings(mode="plan").start_mode == "plan"


def test_home_is_where_settings_say_or_in_the_users_own(tmp_path: Path) -> None:
    assert PlaceSettings(home=tmp_path / "kept").home_folder(tmp_path) == tmp_path / "kept"
    assert PlaceSettings().home_folder(tmp_path) == tmp_path / ".sevenfold"
