"""`sevenfold memory undo` and `redo`, and memories for all projects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.core.memories import Origin
from sevenfold.layers.memory.recall.finder import recall
from sevenfold.layers.memory.rule_policy import RuleSettings
from sevenfold.layers.memory.rule_reader import MemoryRuleReader
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.files import MemoryLog
from sevenfold.store.memory.records import LoggedTransaction
from tests.cli.memory.conftest import Ask, Parse, opened

pytestmark = pytest.mark.usefixtures("project")


def test_undo_shows_the_size_and_the_start_of_a_large_change(
    ask: Ask, parsed: Parse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(60):
        (notes / f"note-{number:02}.md").write_text("One line.\n" * 5)
    ask("import", str(notes))
    passes: list[str] = []
    read = MemoryLog.read_transactions

    def counted(log: MemoryLog) -> Iterator[LoggedTransaction]:
        passes.append("read")
        return read(log)

    monkeypatch.setattr(MemoryLog, "read_transactions", counted)
    told = ask("undo")
    assert "note-08.md, note-09.md and 50 more" in told
    assert "0 lines added, 300 removed" in told
    assert len(told.splitlines()) < 210
    # One pass over the history a question, however many changes: each change asked for its own once.
    assert len(passes) < 15
    [shown] = [line for line in told.splitlines() if "shows all" in line]
    whole = ask(*shown.partition("`sevenfold memory ")[2].partition("`")[0].split())
    assert whole.count("-One line.") == 300
    assert parsed("redo")["diff"].count("+One line.") == 300


def test_undo_says_that_an_overtaken_edit_waits_again(ask: Ask, project: Path) -> None:
    ask("add", "port", "-m", "It listens on 8080.")
    with opened(project) as found, MemoryDir(found) as memory:
        (memory.path / "port.md").write_text("It listens on 6666.\n")
        [edit] = memory.notice()
        memory.commit([Write("port.md", "It listens on 9090.\n", ANYTHING)], Origin(who="user", why="test"))
        assert memory.waiting() == ()
    assert f"{edit.id} (port.md) waits for you again: `sevenfold memory review`" in ask("undo")


def test_undo_names_what_it_takes_back_and_redo_does_it_again(
    ask: Ask, parsed: Parse, capsys: pytest.CaptureFixture[str]
) -> None:
    ask("add", "a", "-m", "Tabs.")
    ask("add", "b", "-m", "Spaces.")
    ask("revert", parsed("log", "a")[0]["id"])
    assert "-Tabs." in ask("diff")
    told = ask("undo")
    assert "undone: a.md" in told
    assert "+Tabs." in told
    assert {item["key"] for item in parsed()} == {"a.md", "b.md"}
    again = parsed("undo")
    assert (again["keys"], again["step"], "-Spaces." in again["diff"]) == (["b.md"], "undo", True)
    assert "done again: b.md" in ask("redo")
    assert "no older changes" in ask("log")
    assert main(["memory", "log", "--limit", "2"]) == 0
    assert "5 older changes not shown; --limit 7" in capsys.readouterr().err


def test_a_memory_for_all_projects_is_kept_once_and_recalled_in_each(
    ask: Ask,
    parsed: Parse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    added = ask(
        "add", "--user", "packages", "-m", "Install packages with pnpm, never npm; see `src/gone.py`."
    )
    assert "for all projects" in added
    ask("--user", "add", "push", "-m", "Ask before you push.", "--applies-to", "command:git push")
    for name in ("project", "other"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        assert "2 more for all projects" in ask()
        assert parsed() == []
        assert main(["recall", "install packages with npm or pnpm?", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [one["key"] for one in found if one["is_recalled"]] == ["~/packages.md"]
        with opened(folder) as project, MemoryDir(project) as memory:
            [recalled] = recall(memory, "install packages with npm or pnpm?", environ={"HOME": str(tmp_path)})
            assert recalled.origin.said_by == "user"
            assert Path(recalled.path).read_text().endswith("see `src/gone.py`.\n")
            assert recalled.doubt == ""
            rules = MemoryRuleReader(memories=memory, settings=RuleSettings()).read()
            assert [rule.memory for rule in rules] == ["~/push.md"]
    assert [item["key"] for item in parsed("list", "--user")] == ["push.md", "packages.md"]
    assert "~/packages.md" in ask("search", "pnpm")
    assert "undone: push.md" in ask("undo", "--user")
    assert [item["key"] for item in parsed("--user", "list")] == ["packages.md"]
    assert "yours alone" in ask("add", "--user", "team/style", "-m", "Tabs.", code=2)
    assert ask("check", "--user")


def test_a_revert_without_a_difference_is_no_step_of_undo(ask: Ask, parsed: Parse) -> None:
    ask("add", "port", "-m", "It listens on 8080.")
    added = parsed("log")[0]["id"]
    ask("rm", "port")
    assert "nothing changed" in ask("revert", added)
    assert "+It listens on 8080." in ask("undo")
