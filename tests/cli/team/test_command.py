"""`sevenfold team` at the command line, against a live server."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import cast

import pytest

from sevenfold.cli import main
from sevenfold.core.memories import Origin
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir
from tests.team.laptops import Hall, Office, hall, office

PERSON = Origin(who="user", why="wrote it", said_by="user")


@pytest.fixture(scope="module", name="hall")
def hall_(tmp_path_factory: pytest.TempPathFactory) -> Generator[Hall]:
    with hall(tmp_path_factory.mktemp("hall")) as made:
        yield made


@pytest.fixture(name="office")
def office_(hall: Hall, tmp_path: Path) -> Generator[Office]:
    with office(hall, tmp_path) as made:
        yield made


class Terminal:
    """One person at one machine."""

    def __init__(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.home, self.root = place, place / "app"
        self.root.mkdir(parents=True)
        self._patch, self._capsys = monkeypatch, capsys

    def run(self, *words: str, stdin: str = "") -> int:
        self._patch.setenv("HOME", str(self.home))
        self._patch.setattr("sys.stdin", io.StringIO(stdin))
        self._capsys.readouterr()
        return main(["team", "--project", str(self.root), *words])

    def heard(self) -> str:
        said = self._capsys.readouterr()
        return said.out + said.err

    def ask(self, *words: str) -> Mapping[str, object]:
        self.run("--json", *words)
        return cast("Mapping[str, object]", json.loads(self._capsys.readouterr().out))

    def join(self, office: Office) -> None:
        assert self.run("join", office.live.url, "--token-stdin", stdin=f"{office.people.token}\n") == 0

    def write(self, key: str, text: str) -> None:
        with MemoryDir.for_project(self.root, environ={"HOME": str(self.home)}) as memory:
            memory.commit([Write(f"team/{key}", text, ANYTHING)], PERSON)

    def texts(self) -> dict[str, str]:
        with MemoryDir.for_project(self.root, environ={"HOME": str(self.home)}) as memory:
            return {key.removeprefix("team/"): memory.read(key).memory.text for key in memory.keys("team/")}


@pytest.fixture
def ada(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path / "ada", monkeypatch, capsys)


@pytest.fixture
def bob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path / "bob", monkeypatch, capsys)


def test_two_people_join_share_disagree_and_settle_it(office: Office, ada: Terminal, bob: Terminal) -> None:
    ada.write("deploy.md", "We deploy on Tuesdays.\n")
    ada.join(office)
    assert "joined acme/app" in (said := ada.heard())
    assert "1 memory sent" in said
    bob.join(office)
    assert bob.texts() == {"deploy.md": "We deploy on Tuesdays.\n"}

    ada.write("deploy.md", "We deploy on Wednesdays.\n")
    bob.write("deploy.md", "We deploy on Fridays.\n")
    assert ada.run("push") == 0
    assert bob.run("push") == 0
    assert "sevenfold team conflicts" in bob.heard()
    assert ada.run("pull") == 0
    assert ada.run("conflicts") == 0
    assert "+We deploy on Fridays." in ada.heard()
    (conflict,) = cast("list[dict[str, str]]", ada.ask("status")["conflicts"])
    assert conflict["memory"] == "deploy.md"

    assert ada.run("resolve", "deploy", "--take", "copy") == 0
    assert bob.run("pull") == 0
    assert ada.texts() == bob.texts() == {"deploy.md": "We deploy on Fridays.\n"}
    assert ada.ask("conflicts") == []


def test_the_token_lies_in_our_home_for_its_owner_alone_and_nowhere_else(
    office: Office, ada: Terminal
) -> None:
    ada.join(office)
    holding = [
        path
        for path in ada.home.rglob("*")
        if path.is_file() and office.people.token.encode() in path.read_bytes()
    ]
    assert [path.name for path in holding] == ["team-tokens.json"]
    assert stat.S_IMODE(holding[0].stat().st_mode) == 0o600
    assert office.people.token not in ada.heard()


def test_the_state_is_told_without_a_server(office: Office, ada: Terminal) -> None:
    assert ada.run() == 0
    assert "joined no server" in ada.heard()
    ada.join(office)
    ada.write("plan.md", "Ship it.\n")
    ada.write("key.md", "AKIA" + "Q3EGRIOZ7XKDWVTB\n")
    asked = len(office.live.lines)
    assert ada.run() == 0
    said = ada.heard()
    assert "to send: plan.md" in said
    assert "held back: key.md: line 1" in said
    assert len(office.live.lines) == asked
    told = ada.ask("status")
    assert told["unsent"] == ["key.md", "plan.md"]


def test_a_secret_is_held_back_with_a_failing_exit_code_and_can_be_allowed(
    office: Office, ada: Terminal
) -> None:
    ada.join(office)
    ada.write("key.md", "AKIA" + "Q3EGRIOZ7XKDWVTB\n")
    assert ada.run("push") == 1
    said = ada.heard()
    assert "Q3EGRIOZ7XKDWVTB" not in said
    fingerprint = said.partition("fingerprint ")[2].partition(")")[0]
    assert office.people.texts() == {}
    assert ada.run("allow", fingerprint, "--reason", " ") == 2
    ada.run("allow", fingerprint, "--reason", "the example of the manual")
    assert "found by the server" in ada.heard(), "the server has its own list"


def test_a_secret_that_is_shared_already_is_told_with_what_to_do(office: Office, ada: Terminal) -> None:
    office.people.put({"key.md": "AKIA" + "Q3EGRIOZ7XKDWVTB\n"})
    ada.join(office)
    ada.run("status")
    said = ada.heard()
    assert "shared already: key.md: line 1" in said
    assert "change it where it is used" in said
    assert "Q3EGRIOZ7XKDWVTB" not in said
    assert list(cast("dict[str, str]", ada.ask("status")["leaked"])) == ["key.md"]


def test_a_third_text_settles_a_conflict_and_a_missing_one_is_refused(
    office: Office, ada: Terminal, bob: Terminal, tmp_path: Path
) -> None:
    ada.join(office)
    bob.join(office)
    ada.write("plan.md", "A\n")
    bob.write("plan.md", "B\n")
    ada.run("push")
    bob.run("push")
    (tmp_path / "both.md").write_text("A and B\n")
    assert bob.run("resolve", "plan", "--text", str(tmp_path / "none.md")) == 2
    assert bob.run("resolve", "other", "--take", "copy") == 2
    assert bob.run("resolve", "plan", "--text", str(tmp_path / "both.md")) == 0
    ada.run("pull")
    assert ada.texts() == bob.texts() == {"plan.md": "A and B\n"}


def test_a_deletion_is_for_all_and_leaving_keeps_the_files(
    office: Office, ada: Terminal, bob: Terminal
) -> None:
    ada.write("plan.md", "A\n")
    ada.write("kept.md", "K\n")
    ada.join(office)
    bob.join(office)
    assert ada.run("delete", "nothing") == 2
    assert ada.run("delete", "plan") == 0
    bob.run("pull")
    assert bob.texts() == {"kept.md": "K\n"}
    assert bob.run("leave", "--forget-token") == 0
    assert bob.texts() == {"kept.md": "K\n"}
    assert bob.run("push") == 2
    assert "joined no server" in bob.heard()


@pytest.mark.parametrize(
    "url", ["memory.example.org", "http://memory.example.org", "https://me:pw@example.org", "file:///etc"]
)
def test_an_address_that_is_none_or_would_show_the_token_is_refused(ada: Terminal, url: str) -> None:
    assert ada.run("join", url, "--token-stdin", stdin="t\n") == 2


def test_joining_needs_a_token_that_is_good_and_a_repository_that_is_there(
    office: Office, ada: Terminal
) -> None:
    assert ada.run("join", office.live.url) == 2
    assert "--token-stdin" in ada.heard()
    assert ada.run("join", office.live.url, "--token-stdin", stdin="sfm_no_body\n") == 1
    assert ada.run("join", office.live.url, "--repo", "x", "--token-stdin", stdin=office.people.token) == 2
    assert "acme/app" in ada.heard()
    assert ada.ask("status") == {"joined": None}
