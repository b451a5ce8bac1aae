"""What may not leave: texts, names, and what is only whole in a row of files."""

from __future__ import annotations

from collections.abc import Generator
from hashlib import sha256
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError
from sevenfold.store.files.folder import Folder
from sevenfold.team.client import screening
from sevenfold.team.client.screening import ALLOWED_FILE, SecretScreen
from sevenfold.team.protocol import TeamKey

DIGITS = sha256(b"made up").hexdigest()
NAME = TeamKey(f"dop_v1_{DIGITS}.md")
LINES = "a\n"
"""Thirty thousand of them are too much at once."""
SECRET = "AKIA" + "Q3EGRIOZ7XKDWVTB"


@pytest.fixture(name="screen")
def screen_(tmp_path: Path) -> Generator[SecretScreen]:
    with Folder.open(tmp_path) as folder:
        yield SecretScreen(folder)


def test_a_secret_in_a_name_is_held_back_too_and_can_be_allowed(screen: SecretScreen) -> None:
    texts = {TeamKey("plain.md"): "harmless\n", NAME: "harmless too\n"}
    blocked = screen.inspect(texts)
    assert list(blocked) == [NAME]
    assert blocked[NAME].startswith("in its name: line 1: DigitalOcean")
    assert DIGITS[10:30] not in blocked[NAME]
    screen.allow(blocked[NAME].partition("fingerprint ")[2].rstrip(")"), "made up")
    assert screen.inspect(texts) == {}


def test_the_key_of_the_fingerprints_is_held_back_itself(screen: SecretScreen, tmp_path: Path) -> None:
    screen.read()
    kept = (tmp_path / ALLOWED_FILE).read_text()
    blocked = screen.inspect({TeamKey("a.md"): f"What lies beside it:\n\n    {kept}\n"})
    assert "Sevenfold fingerprint key" in blocked[TeamKey("a.md")]


def test_names_beside_each_other_are_no_secret(screen: SecretScreen) -> None:
    keys = [TeamKey(f"dop_v1_{DIGITS[:at]}.md") for at in range(60)]
    assert screen.inspect(dict.fromkeys(keys, "harmless\n")) == {}


def test_texts_that_are_too_much_at_once_are_looked_through_in_pairs(screen: SecretScreen) -> None:
    """Each of them is an ordinary text, and none may be held back for its company."""
    texts = {TeamKey(f"m{at}.md"): f"{LINES * 12_000}{at}\n" for at in range(3)}
    assert screen.inspect(texts) == {}


def test_a_secret_across_two_long_texts_is_still_found(screen: SecretScreen) -> None:
    texts = {
        TeamKey("a.md"): f"{LINES * 15_500} {SECRET[:9]}",
        TeamKey("b.md"): f"{SECRET[9:]} {LINES * 15_500}",
        TeamKey("c.md"): "harmless\n",
    }
    assert list(screen.inspect(texts)) == ["a.md", "b.md"]


def test_what_cannot_be_looked_through_even_around_the_seam_stays(
    screen: SecretScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screening, "SEAM_CHARS", 10**6)
    blocked = screen.inspect(dict.fromkeys([TeamKey("a.md"), TeamKey("b.md")], LINES * 15_500))
    assert set(blocked) == {"a.md", "b.md"}
    assert all("more work" in reason for reason in blocked.values())


@pytest.mark.parametrize("fingerprint", ["", "4be2c1d09a77", "4BE2C1D09A774BE2C1D0", "../../etc/passwd"])
def test_only_a_fingerprint_can_be_allowed(screen: SecretScreen, fingerprint: str) -> None:
    with pytest.raises(InputError, match="no fingerprint"):
        screen.allow(fingerprint, "because")


@pytest.mark.parametrize(
    "data", ["", "{", "[]", "{}", '{"key":"zz","allowances":[]}', '{"key":"00","allowances":[3]}']
)
def test_what_was_allowed_is_never_guessed(screen: SecretScreen, data: str, tmp_path: Path) -> None:
    (tmp_path / ALLOWED_FILE).write_text(data)
    with pytest.raises(InputError):
        screen.inspect({TeamKey("a.md"): "text"})
