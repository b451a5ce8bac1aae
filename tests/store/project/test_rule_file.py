"""A rule is added to a person's own file, which stays as they wrote it."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from sevenfold.agent.permissions.rules import add_allow_rule
from sevenfold.core.errors import SettingsError
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.settings_files import LOCAL_SETTINGS_FILE
from sevenfold.store.project.trust import TrustStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("tracked")
    for words in (["init", "-q"], ["add", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_file_is_made_for_the_first_rule_and_grows_with_the_next(root: Path) -> None:
    path = add_allow_rule(root, "shell(make test)")
    add_allow_rule(root, 'shell(echo "a")')
    add_allow_rule(root, "shell(make test)")
    assert path == root / LOCAL_SETTINGS_FILE
    assert tomllib.loads(path.read_text()) == {
        "permissions": {"allow": ['shell(echo "a")', "shell(make test)"]}
    }


@pytest.mark.parametrize(
    "text",
    [
        "# mine\n[compact]\nauto_compact_pct = 80  # why\n",
        '# mine\n[permissions]\ndeny = ["shell(rm)"]\n',
        '# mine\n[permissions] # all\nallow = [\n  "read", # this\n]\n[compact]\nenabled = true',
        '[permissions]\nallow = []\n# "mine',
        '[permissions]\ndeny = []\n[permissions.x]\n# mine\nallow = ["y"]',
    ],
)
def test_every_line_that_was_there_stays(text: str, root: Path) -> None:
    path = root / LOCAL_SETTINGS_FILE
    path.parent.mkdir()
    path.write_text(text)
    before = tomllib.loads(text)
    add_allow_rule(root, "web_fetch(example.org)")
    after = tomllib.loads(path.read_text())
    assert after["permissions"].pop("allow")[0] == "web_fetch(example.org)"
    assert after.get("compact") == before.get("compact")
    assert all(line in path.read_text() for line in text.splitlines() if "mine" in line)


@pytest.mark.parametrize(
    "text",
    ['permissions = {deny = ["x"]}', 'permissions.allow = ["x"]', "not toml", "[permissions]\nallow = 1"],
)
def test_a_file_that_is_written_otherwise_is_left_alone(text: str, root: Path) -> None:
    path = root / LOCAL_SETTINGS_FILE
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(SettingsError):
        add_allow_rule(root, "read")
    assert path.read_text() == text


def test_a_file_that_would_not_be_trusted_is_not_written(tmp_path: Path, root: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(SettingsError, match="user file"):
        add_allow_rule(bare, "read")
    path = add_allow_rule(root, "read")
    subprocess.run(["git", "add", "-f", LOCAL_SETTINGS_FILE], cwd=root, check=True)
    with pytest.raises(SettingsError, match="user file"):
        add_allow_rule(root, "edit")
    assert tomllib.loads(path.read_text()) == {"permissions": {"allow": ["read"]}}


def test_a_link_out_of_the_project_is_not_written_through(tmp_path: Path, root: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (root / ".sevenfold").symlink_to(outside)
    with pytest.raises(SettingsError, match="leads out"):
        add_allow_rule(root, "read")
    assert list(outside.iterdir()) == []


def test_trust_goes_on_to_the_changed_file_but_not_to_one_that_nobody_agreed_to(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Folder.open(tmp_path_factory.mktemp("control")) as control:
        trust = TrustStore(control)
        path = add_allow_rule(root, "shell(make)", trust)
        add_allow_rule(root, "shell(ls)", trust)
        assert trust.is_trusted(LOCAL_SETTINGS_FILE, path.read_bytes())
        path.write_text('[permissions]\nallow = ["shell"]\n')
        for rule in ("shell(make)", "shell"):
            with pytest.raises(SettingsError, match="nobody has agreed"):
                add_allow_rule(root, rule, trust)
        assert not trust.is_trusted(LOCAL_SETTINGS_FILE, path.read_bytes())
