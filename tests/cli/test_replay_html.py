"""`sevenfold replay --html FILE`: the page is written, and the user is told where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sevenfold.cli import main
from tests.replay.logs import answered, asked, usage, write_log


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    bill = usage(fresh=5, read=90_000, written=1_000, output=300)
    path = write_log(tmp_path / "logs" / "s.jsonl", asked("Go"), answered("msg_1", bill, seconds=5))
    monkeypatch.chdir(tmp_path)
    return path


def payload(page: Path) -> dict[str, object]:
    text = page.read_text(encoding="utf-8")
    return json.loads(text.partition('id="report">')[2].partition("</script>")[0])


def test_the_page_is_written_and_the_headline_and_its_place_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["replay", "logs", "--html", "page.html"]) == 0
    said = capsys.readouterr()
    assert "1 session, 1 call" in said.out
    assert "By model" not in said.out
    assert f"the page is in {tmp_path / 'page.html'} (0.1 MB)" in said.out
    assert said.err == ""
    assert payload(tmp_path / "page.html")["files"] == 1


def test_json_stays_json_beside_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["replay", "logs", "--html", "page.html", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["files"] == 1
    assert "the page is in" in said.err
    assert (tmp_path / "page.html").exists()


def test_a_tilde_is_the_users_home(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    assert main(["replay", "logs", "--html", "~/page.html"]) == 0
    assert str(tmp_path / "home" / "page.html") in capsys.readouterr().out


def test_the_page_says_what_a_repriced_report_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["replay", "logs", "--html", "page.html", "--reprice", "claude-haiku-4-5"]) == 0
    told = payload(tmp_path / "page.html")
    assert told["repriced"] == "claude-haiku-4-5"
    assert "about 30% more for the same text" in str(told["remarks"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("logs", "is a folder"),
        ("nowhere/page.html", "does not exist"),
        ("logs/s.jsonl", "is there and is no page"),
    ],
)
def test_a_place_that_cannot_hold_a_page_is_told_before_anything_is_read(
    capsys: pytest.CaptureFixture[str], log: Path, name: str, reason: str
) -> None:
    before = log.read_bytes()
    assert main(["replay", "no such log", "--html", name]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: --html '{name}'")
    assert reason in said.err
    assert log.read_bytes() == before


def test_nothing_read_is_no_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["replay", "empty", "--html", "page.html"]) == 1
    assert not (tmp_path / "page.html").exists()
    assert "no transcript was found there" in capsys.readouterr().err


def test_no_page_is_written_of_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["replay", "empty", "--html", "page.html", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["files"] == 0
    assert not (tmp_path / "page.html").exists()
