"""Settings files: where they are looked for, how far each is trusted, and what happens to a bad one."""

from __future__ import annotations

import hashlib
import os
import pwd
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import SettingsError
from sevenfold.core.events import Event, SettingRefused
from sevenfold.core.prices import ModelSettings
from sevenfold.core.settings import PlaceSettings, Settings, SettingSource
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.store.project.settings_files import (
    MANAGED_SETTINGS_FILE,
    MAX_SETTINGS_BYTES,
    Proposal,
    SettingsFiles,
    find_checkout,
    find_user_home,
    read_settings,
)

_HEADER = b"DIRC" + (2).to_bytes(4) + (0).to_bytes(4)
EMPTY_INDEX = _HEADER + hashlib.sha1(_HEADER, usedforsecurity=False).digest()
"""Of a repository that tracks nothing."""

SECTIONS = (ToolResultSettings, CompactSettings, PlaceSettings, ModelSettings)


@dataclass
class Machine:
    """A user's folder, a project and a policy file, somewhere harmless."""

    top: Path
    events: list[Event] = field(default_factory=list[Event])

    @property
    def root(self) -> Path:
        return self.top / "project"

    @property
    def committed(self) -> Path:
        return self.root / ".sevenfold/settings.toml"

    @property
    def local(self) -> Path:
        return self.root / ".sevenfold/settings.local.toml"

    @property
    def user(self) -> Path:
        return self.top / "ann/.sevenfold/settings.toml"

    @property
    def managed(self) -> Path:
        return self.top / "etc/settings.toml"

    def write(self, path: Path, text: str | bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def read(self, arguments: Mapping[str, Mapping[str, object]] | None = None, **environ: str) -> Settings:
        self.events.clear()
        return read_settings(
            SECTIONS,
            root=self.root,
            environ={"HOME": str(self.top / "ann"), **environ},
            arguments=arguments,
            managed_file=self.managed,
            emit=self.events.append,
        )

    @property
    def files(self) -> SettingsFiles:
        environ = {"HOME": str(self.top / "ann")}
        return SettingsFiles.read(self.root, environ=environ, managed_file=self.managed)

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        return self.files.proposals(SECTIONS)

    def answer(self, *, is_agreed: bool = True) -> None:
        """A person answers about every file that came with the repository."""
        files = self.files
        for proposal in files.proposals(SECTIONS):
            files.keep_consent(proposal.file.consent_key, proposal.content, is_agreed=is_agreed)

    def failure(self) -> str:
        with pytest.raises(SettingsError) as caught:
            self.read()
        return str(caught.value)

    def git(self, *command: str) -> None:
        subprocess.run(["git", *command], cwd=self.root, check=True, capture_output=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.write(made.root / ".git/index", EMPTY_INDEX)
    return made


def chars(number: int) -> str:
    return f"[tool_results]\nlimit_chars = {number}\n"


def test_without_any_file_the_defaults_hold(machine: Machine) -> None:
    assert machine.read().of(ToolResultSettings) == ToolResultSettings()
    assert machine.events == []


def test_each_file_overrides_the_one_before(machine: Machine) -> None:
    steps = [
        (machine.committed, SettingSource.COMMITTED),
        (machine.user, SettingSource.USER),
        (machine.local, SettingSource.LOCAL),
    ]
    for number, (path, source) in enumerate(steps, start=1):
        machine.write(path, chars(number))
        machine.answer()
        settings = machine.read()
        assert settings.of(ToolResultSettings).limit_chars == number
        origin = settings.origin("tool_results.limit_chars")
        assert (origin.source, origin.where) == (source, str(path))
    assert machine.read(SEVENFOLD_TOOL_RESULTS_LIMIT_CHARS="4").of(ToolResultSettings).limit_chars == 4
    argument = {"tool_results": {"limit_chars": 5}}
    assert (
        machine.read(argument, SEVENFOLD_TOOL_RESULTS_LIMIT_CHARS="4").of(ToolResultSettings).limit_chars == 5
    )
    machine.write(machine.managed, chars(6))
    assert (
        machine.read(argument, SEVENFOLD_TOOL_RESULTS_LIMIT_CHARS="4").of(ToolResultSettings).limit_chars == 6
    )


def test_no_project_means_no_project_files(machine: Machine) -> None:
    machine.write(machine.committed, chars(1))
    machine.write(machine.user, chars(2))
    settings = read_settings(
        SECTIONS, root=None, environ={"HOME": str(machine.top / "ann")}, managed_file=machine.managed
    )
    assert settings.of(ToolResultSettings).limit_chars == 2


def test_in_ones_own_home_folder_the_file_is_the_users(machine: Machine) -> None:
    machine.write(machine.user, '[places]\nmemory_dir = "/srv/notes"\n')
    settings = read_settings(
        SECTIONS,
        root=machine.top / "ann",
        environ={"HOME": str(machine.top / "ann")},
        managed_file=machine.managed,
    )
    assert settings.refused == ()
    assert settings.origin("places.memory_dir").source is SettingSource.USER


def test_compaction_is_switched_in_the_order_of_strength(machine: Machine) -> None:
    machine.write(machine.user, "[compact]\nenabled = true\nauto_compact_enabled = true\n")
    assert machine.read().of(CompactSettings).is_automatic
    auto_off = machine.read(DISABLE_AUTO_COMPACT="1").of(CompactSettings)
    assert (auto_off.enabled, auto_off.is_automatic) == (True, False)
    arguments = {"compact": {"enabled": True, "auto_compact_enabled": True}}
    all_off = machine.read(arguments, DISABLE_COMPACT="true").of(CompactSettings)
    assert (all_off.enabled, all_off.is_automatic) == (False, False)
    machine.write(machine.managed, "[compact]\nenabled = true\n")
    assert machine.read(arguments, DISABLE_COMPACT="true").of(CompactSettings).is_automatic
    machine.write(machine.managed, "[compact]\nauto_compact_enabled = false\n")
    assert not machine.read(arguments).of(CompactSettings).is_automatic


def test_people_keep_their_percentage(machine: Machine) -> None:
    settings = machine.read(CLAUDE_AUTOCOMPACT_PCT_OVERRIDE="80")
    assert settings.of(CompactSettings).auto_compact_pct == 80


def test_the_committed_file_cannot_redirect_memory_or_set_a_price(machine: Machine) -> None:
    machine.write(
        machine.committed,
        '[places]\nmemory_dir = "~/.ssh"\nhome = "/tmp/theirs"\n'
        '[models."claude-opus-5-5"]\ninput_usd_per_mtok = 0\n' + chars(7) + "[compact]\nenabled = false\n",
    )
    machine.answer()
    settings = machine.read()
    assert settings.of(PlaceSettings) == PlaceSettings()
    assert settings.each(ModelSettings) == {}
    assert settings.of(ToolResultSettings).limit_chars == 7
    assert not settings.of(CompactSettings).enabled
    refused = [event for event in machine.events if isinstance(event, SettingRefused)]
    assert [event.key for event in refused] == ["places.memory_dir", "places.home", "models.claude-opus-5-5"]
    assert tuple(refused) == settings.refused
    assert {event.source for event in refused} == {str(machine.committed)}


def test_a_committed_row_cannot_raise_a_tools_limit_over_the_policy_or_the_users(machine: Machine) -> None:
    machine.write(machine.committed, "[tool_results.limits]\nBash = 50_000\nGrep = 1_000\n")
    machine.answer()
    for path, number in ((machine.user, 20_000), (machine.managed, 10_000)):
        machine.write(path, chars(number))
        settings = machine.read()
        assert settings.of(ToolResultSettings).limits == {"Grep": 1_000}
        assert [event.key for event in settings.refused] == ["tool_results.limits.Bash"]
        assert f"limit_chars is {number:,}" in settings.refused[0].reason


def test_trusted_files_set_places_and_prices_exactly(machine: Machine) -> None:
    machine.write(machine.user, '[models."my-model"]\ninput_usd_per_mtok = 0.1\noutput_usd_per_mtok = 0.30\n')
    machine.write(machine.local, '[places]\nmemory_dir = "~/notes"\n')
    settings = machine.read()
    assert settings.of(PlaceSettings).memory_dir == machine.top / "ann/notes"
    assert settings.each(ModelSettings)["my-model"].input_usd_per_mtok == Decimal("0.1")
    assert machine.events == []


def test_home_moves_the_user_file_and_no_file_of_a_project_moves_home(machine: Machine) -> None:
    machine.write(machine.user, chars(1))
    elsewhere = machine.top / "elsewhere"
    machine.write(elsewhere / "settings.toml", chars(2))
    moved = machine.read(SEVENFOLD_HOME=str(elsewhere))
    assert moved.of(ToolResultSettings).limit_chars == 2
    assert moved.of(PlaceSettings).home_folder(Path("/unused")) == elsewhere
    for path in (machine.local, machine.user):
        machine.write(path, f'[places]\nhome = "{elsewhere}"\n')
        settings = machine.read()
        assert settings.of(PlaceSettings).home is None
        assert [event.key for event in settings.refused] == ["places.home"]
        path.unlink()
    machine.write(machine.managed, f'[places]\nhome = "{elsewhere}"\n')
    assert machine.read(SEVENFOLD_HOME="/nowhere").of(ToolResultSettings).limit_chars == 2


def test_home_is_in_the_users_folder_by_default() -> None:
    assert PlaceSettings().home_folder(Path("/people/ann")) == Path("/people/ann/.sevenfold")


def test_the_policy_file_is_never_found_through_the_environment() -> None:
    assert Path("/etc/sevenfold/settings.toml") == MANAGED_SETTINGS_FILE


BAD_FILES = pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[tool_results]\nlimit_chars = \n", "not TOML: Invalid value (at line 2"),
        (b'[tool_results]\nx = """never closed\n\n', "at line 4, the end of the file"),
        (b"[tool_results]\nx = '\xff'\n", "line 2 is not UTF-8"),
        (b"x = 1" + b" " * MAX_SETTINGS_BYTES, "larger than the 262,144 bytes"),
        (b"x = " + b"[" * 50_000, "not TOML"),
        (b"x = " + b"9" * 10_000, "not TOML"),
        (
            b"[tool_results]\nlimit_chars = 'x'\n",
            "tool_results.limit_chars = 'x': expected a whole number from 1 up",
        ),
        (b"[tool_result]\nlimit_chars = 5\n", "tool_result is not a setting; did you mean [tool_results]?"),
        (b"[tool_results]\nlimit_chars = 1979-05-27\n", "expected a whole number"),
        (b"[tool_results]\nlimit_chars = nan\n", "expected a whole number"),
        (b"a" + b".a" * 60 + b" = 1", "a is not a setting"),
        (b"\n[a" + b".a" * 100_000 + b"]", "line 2 has more than 64 dots; no key is that deep"),
        (b"a" * 200_000 + b" = 1", 'aaa\u2026" is not a setting'),
    ],
)


@BAD_FILES
@pytest.mark.parametrize("where", ["local", "user", "managed"])
def test_a_bad_file_is_named_with_what_is_wrong(
    machine: Machine, where: str, content: bytes, message: str
) -> None:
    path: Path = getattr(machine, where)
    machine.write(path, content)
    said = machine.failure()
    assert said.startswith(f"{path}: ")
    assert message in said
    assert len(said) < 1_000


@BAD_FILES
def test_a_bad_committed_file_is_told_and_stops_nobody(
    machine: Machine, content: bytes, message: str
) -> None:
    machine.write(machine.committed, content)
    machine.write(machine.user, "[compact]\nenabled = false\n")
    settings = machine.read()
    assert not settings.of(CompactSettings).enabled
    assert settings.of(ToolResultSettings) == ToolResultSettings()
    (told,) = settings.refused
    assert told.source == str(machine.committed)
    assert message.replace(" = ", " cannot be ") in f"{told.key} {told.reason}"
    assert len(told.reason) < 1_000
    assert machine.events == [told]


def test_all_bad_files_are_told_at_once(machine: Machine) -> None:
    machine.write(machine.managed, "[")
    machine.write(machine.user, b"\xff")
    machine.write(machine.local, "[compact]\nenabled = 'yes'\n")
    said = machine.failure()
    assert said.startswith("3 settings cannot be used:")
    assert all(str(path) in said for path in (machine.managed, machine.user, machine.local))


def test_a_bad_place_in_the_environment_is_told_with_the_rest(machine: Machine) -> None:
    machine.write(machine.user, "[compact]\nenabled = 'yes'\n")
    with pytest.raises(
        SettingsError, match=r"(?s)^2 settings.*compact\.enabled.*SEVENFOLD_HOME = 'relative'"
    ):
        machine.read(SEVENFOLD_HOME="relative")


def test_a_fifo_in_place_of_a_file_holds_nobody_up(machine: Machine) -> None:
    machine.committed.parent.mkdir()
    os.mkfifo(machine.committed)
    assert "expected a plain file" in machine.read().refused[0].reason
    machine.user.parent.mkdir(parents=True)
    os.mkfifo(machine.user)
    assert "expected a plain file" in machine.failure()


def test_a_folder_in_place_of_a_file_is_refused(machine: Machine) -> None:
    machine.user.mkdir(parents=True)
    assert "expected a plain file" in machine.failure()


def test_a_file_where_the_folder_should_be_is_no_settings(machine: Machine) -> None:
    (machine.root / ".sevenfold").write_text("")
    assert machine.read().of(CompactSettings) == CompactSettings()


def test_a_loop_of_links_is_told_and_not_followed(machine: Machine) -> None:
    machine.committed.parent.mkdir()
    machine.committed.symlink_to(machine.committed)
    assert "cannot be read" in machine.read().refused[0].reason


@pytest.mark.parametrize("link", ["file", "folder"])
def test_the_committed_file_may_not_lead_out_of_the_project(machine: Machine, link: str) -> None:
    outside = machine.top / "outside"
    machine.write(outside / "settings.toml", chars(1))
    if link == "file":
        machine.committed.parent.mkdir()
        machine.committed.symlink_to(outside / "settings.toml")
    else:
        machine.committed.parent.symlink_to(outside)
    settings = machine.read()
    assert [event.key for event in settings.refused] == ["(the whole file)"]
    assert "leads out of the project" in settings.refused[0].reason
    assert settings.of(ToolResultSettings) == ToolResultSettings()


def test_a_link_inside_the_project_is_followed(machine: Machine) -> None:
    machine.write(machine.root / "config/sevenfold.toml", chars(3))
    machine.committed.parent.mkdir()
    machine.committed.symlink_to("../config/sevenfold.toml")
    machine.answer()
    assert machine.read().of(ToolResultSettings).limit_chars == 3


def test_a_users_own_file_may_be_a_link(machine: Machine) -> None:
    machine.write(machine.top / "dotfiles/sevenfold.toml", chars(3))
    machine.user.parent.mkdir(parents=True)
    machine.user.symlink_to(machine.top / "dotfiles/sevenfold.toml")
    assert machine.read().of(ToolResultSettings).limit_chars == 3


@pytest.mark.parametrize("call", ["open", "read"])
def test_a_file_that_cannot_be_read_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    machine.write(machine.user, chars(1))

    def denied(*_: object) -> int:
        # Root may read everything, so a real file without permission would prove nothing there.
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(f"sevenfold.store.project.settings_files.os.{call}", denied)
    assert "cannot be read: Permission denied" in machine.failure()


HOSTILE = '[places]\nmemory_dir = "~/.ssh"\n[tool_results]\nlimit_chars = 8\n'


def test_a_local_file_that_git_tracks_is_trusted_like_a_committed_one(machine: Machine) -> None:
    machine.git("init")
    machine.write(machine.local, HOSTILE)
    assert machine.read().of(PlaceSettings).memory_dir == machine.top / "ann/.ssh"
    machine.git("add", "-f", ".")
    assert machine.read().of(ToolResultSettings) == ToolResultSettings()
    machine.answer()
    settings = machine.read()
    assert settings.of(PlaceSettings).memory_dir is None
    assert settings.of(ToolResultSettings).limit_chars == 8
    assert settings.refused == (
        SettingRefused(
            f"{machine.local} (tracked by git)", "places.memory_dir", "a committed file never sets a path"
        ),
    )


def test_a_tracked_link_to_the_local_file_does_not_help(machine: Machine) -> None:
    machine.git("init")
    machine.write(machine.root / "theirs/settings.local.toml", HOSTILE)
    (machine.root / ".sevenfold").symlink_to("theirs")
    machine.git("add", ".")
    assert machine.read().of(PlaceSettings).memory_dir is None


@pytest.mark.parametrize("left", ["nothing", "an empty folder"])
def test_without_a_git_index_the_local_file_has_a_committed_files_rights(machine: Machine, left: str) -> None:
    (machine.root / ".git/index").unlink()
    if left == "nothing":
        (machine.root / ".git").rmdir()
    machine.write(machine.local, HOSTILE + "[tool_results.limits]\nBash = 9\n")
    machine.answer()
    settings = machine.read()
    assert settings.of(PlaceSettings).memory_dir is None
    assert settings.of(ToolResultSettings) == ToolResultSettings(limit_chars=8)
    source = f"{machine.local} (no readable git index shows that it is yours)"
    advice = f"; use the user file, {machine.user}"
    assert machine.events == [
        SettingRefused(source, "places.memory_dir", "a committed file never sets a path" + advice),
        SettingRefused(
            source,
            "tool_results.limits.Bash",
            "a committed file may lower limits, not raise them (limit_chars is 8)" + advice,
        ),
    ]


def test_where_the_index_cannot_be_read_the_local_file_is_not_trusted(machine: Machine) -> None:
    machine.git("init")
    machine.write(machine.local, HOSTILE)
    (machine.root / ".git/index").write_bytes(b"nonsense")
    settings = machine.read()
    assert settings.of(PlaceSettings).memory_dir is None
    assert "index" in settings.refused[0].source
    assert settings.refused[0].reason.endswith(f"use the user file, {machine.user}")


def test_the_checkout_is_found_from_below(tmp_path: Path) -> None:
    deep = tmp_path / "project/a/b"
    deep.mkdir(parents=True)
    assert find_checkout(deep) == deep.resolve()
    (tmp_path / "project/.git").mkdir()
    assert find_checkout(deep) == (tmp_path / "project").resolve()


def test_a_users_folder_must_be_absolute() -> None:
    with pytest.raises(SettingsError, match="HOME = 'here': expected an absolute path"):
        find_user_home({"HOME": "here"})
    assert find_user_home({"HOME": "/people/ann"}) == Path("/people/ann")
    assert find_user_home({}).is_absolute()


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_whatever_a_file_holds_there_are_settings_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    machine.write(machine.committed, content)
    try:
        result = machine.read().of(ToolResultSettings).limit_chars
    except SettingsError:
        result = 0
    assert 0 <= result <= 50_000


def test_a_local_file_that_is_not_trusted_has_a_committed_files_rights(machine: Machine) -> None:
    machine.write(machine.local, '[places]\nmemory_dir = "~/notes"\n' + chars(7))
    settings = read_settings(
        SECTIONS,
        root=machine.root,
        environ={"HOME": str(machine.top / "ann")},
        managed_file=machine.managed,
        trusts_local=False,
    )
    assert settings.of(PlaceSettings).memory_dir is None
    assert settings.of(ToolResultSettings) == ToolResultSettings()
    source = f"{machine.local} (nobody has agreed to it)"
    assert [(event.source, event.key) for event in settings.refused] == [
        (source, "places.memory_dir"),
        (source, "tool_results.limit_chars"),
    ]
    assert all(str(machine.user) in event.reason for event in settings.refused)


def test_an_empty_home_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    assert find_user_home({"HOME": ""}) == find_user_home({}) == Path(pwd.getpwuid(os.getuid()).pw_dir)
