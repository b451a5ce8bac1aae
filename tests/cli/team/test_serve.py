"""`sevenfold serve`: the commands of whoever runs a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.cli.team.serve import redact_url

Told = pytest.CaptureFixture[str]


@pytest.fixture
def db(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/team.db"


def told(capsys: Told, *words: str) -> object:
    """What a command prints as JSON."""
    assert main(["serve", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def names(rows: object) -> list[str]:
    assert isinstance(rows, list)
    return [row["name"] for row in rows]  # pyright: ignore[reportUnknownVariableType]


def test_the_first_organisation_is_made_with_its_owner_and_a_token(db: str, capsys: Told) -> None:
    assert main(["serve", "init", "acme", "ada", "--db", db]) == 0
    said = capsys.readouterr().out
    assert "shown once" in said
    assert "sfm_" in said
    assert names(told(capsys, "org", "list", "--db", db)) == ["acme"]
    assert names(told(capsys, "member", "list", "acme", "--db", db)) == ["ada"]


def test_people_tokens_and_repositories_come_and_go(db: str, capsys: Told) -> None:
    main(["serve", "init", "acme", "ada", "--db", db])
    for words in (
        ["org", "add", "globex"],
        ["member", "add", "acme", "bob", "--role", "reader"],
        ["member", "role", "acme", "bob", "--role", "writer"],
        ["token", "add", "acme", "bob", "--scope", "memory:read", "--days", "7"],
        ["repo", "claim", "acme", "acme/app", "--remote", "git@github.com:acme/app.git"],
        ["allow", "acme", "0123456789abcdef0123", "--reason", "an example"],
    ):
        assert main(["serve", *words, "--db", db]) == 0
    capsys.readouterr()
    tokens = told(capsys, "token", "list", "acme", "--db", db)
    assert isinstance(tokens, list)
    [bobs] = [one for one in tokens if one["member"] == "bob"]  # pyright: ignore[reportUnknownVariableType]
    assert (bobs["scopes"], bobs["revoked"]) == ("memory:read", False)
    assert main(["serve", "token", "revoke", "acme", str(bobs["id"]), "--db", db]) == 0  # pyright: ignore[reportUnknownArgumentType]
    assert main(["serve", "member", "remove", "acme", "bob", "--db", db]) == 0
    capsys.readouterr()
    assert names(told(capsys, "member", "list", "acme", "--db", db)) == ["ada"]
    assert names(told(capsys, "repo", "list", "acme", "--db", db)) == ["acme/app"]
    assert main(["serve", "audit", "acme", "--db", db, "--limit", "20"]) == 0
    audit = capsys.readouterr().out
    for verb in (
        "member.add",
        "member.change",
        "member.remove",
        "token.revoke",
        "repo.claim",
        "secret.allow",
    ):
        assert verb in audit
    assert "sfm_" not in audit


def test_a_backup_is_restored_into_another_database(db: str, capsys: Told, tmp_path: Path) -> None:
    main(["serve", "init", "acme", "ada", "--db", db])
    saved, other = str(tmp_path / "team.backup"), f"sqlite:///{tmp_path}/other.db"
    assert main(["serve", "backup", saved, "--db", db]) == 0
    assert main(["serve", "restore", saved, "--db", other]) == 0
    capsys.readouterr()
    assert names(told(capsys, "org", "list", "--db", other)) == ["acme"]
    assert main(["serve", "restore", saved, "--db", other]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["member"], "expected one of member add"),
        (["member", "add", "acme"], "takes ORG NAME"),
        (["member", "add", "nobody", "bob"], "no organisation 'nobody'"),
        (["init", "acme", "ada"], "already"),
        (["token", "add", "acme", "ada", "--days", "0"], "--days is 0"),
        (["token", "add", "acme", "ada", "--scope", "root"], "'root' is no scope"),
        (["member", "role", "acme", "ada", "--role", "king"], "'king' is no role"),
        (["device", "approve", "acme", "ABCD-EFGH", "ada"], "no device waits"),
        (["allow", "acme", "x", "--reason", "y"], "no fingerprint"),
        (["run", "--rate", "0"], "--rate is 0"),
        (["run", "acme"], "is no action"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(db: str, capsys: Told, words: list[str], said: str) -> None:
    main(["serve", "init", "acme", "ada", "--db", db])
    capsys.readouterr()
    assert main(["serve", *words, "--db", db]) == 2
    assert said in capsys.readouterr().err


def test_without_a_database_named_it_is_a_file_in_our_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Told
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["serve", "init", "acme", "ada"]) == 0
    assert list(tmp_path.rglob("team.db"))
    capsys.readouterr()
    assert names(told(capsys, "org", "list")) == ["acme"]


def test_an_action_on_a_database_that_is_not_there_makes_none(tmp_path: Path, capsys: Told) -> None:
    """A typo would else be answered with an empty backup."""
    for words in (["backup", str(tmp_path / "b")], ["audit", "acme"], ["token", "list", "acme"]):
        assert main(["serve", *words, "--db", f"sqlite:///{tmp_path}/typo.db"]) == 2
        assert "there is no database" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///team.db", "sqlite:///team.db"),
        ("postgresql://ada:hunter2@db/team", "postgresql://…"),
        ("postgresql://db/team?password=hunter2", "postgresql://…"),
        ("postgresql://db/team", "postgresql://db/team"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert redact_url(url) == shown
