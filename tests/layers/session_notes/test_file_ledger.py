"""The files of a session: counted by what was done to each, under one spelling, and the oldest let go."""

from __future__ import annotations

import pytest

from sevenfold.layers.session_notes import file_ledger
from sevenfold.layers.session_notes.file_ledger import (
    MAX_GROUPED_FILES,
    FileFacts,
    FileLedger,
    find_result_paths,
    render_pointer_entries,
    render_working_entries,
)
from sevenfold.layers.session_notes.tool_calls import ToolAction


def ledger_of(*actions: ToolAction) -> FileLedger:
    ledger = FileLedger()
    for at, action in enumerate(actions, 1):
        ledger.take(action, at)
    return ledger


def facts_of(ledger: FileLedger) -> FileFacts:
    (facts,) = ledger.files()
    return facts


def test_each_kind_of_call_is_counted_as_what_it_is() -> None:
    ledger = ledger_of(
        ToolAction(kind="read", tool="x", paths=("a.py",)),
        ToolAction(kind="edit", tool="x", paths=("a.py",), changes=3),
        ToolAction(kind="edit", tool="x", paths=("a.py",)),
        ToolAction(kind="write", tool="x", paths=("a.py",)),
        ToolAction(kind="search", tool="x", mentions=("a.py",)),
    )
    facts = facts_of(ledger)
    assert (facts.reads, facts.edits, facts.writes, facts.mentions, facts.last) == (1, 4, 1, 1, 5)
    assert facts.render_outcome() == "written once, edited 4×, read once"
    assert facts.is_changed
    assert facts.is_opened


def test_what_counts_as_opened_and_as_changed() -> None:
    for facts, is_opened, is_changed in (
        (FileFacts(path="a.py", mentions=1), False, False),
        (FileFacts(path="a.py", reads=1), True, False),
        (FileFacts(path="a.py", edits=1), True, True),
        (FileFacts(path="a.py", writes=1), True, True),
    ):
        assert (facts.is_opened, facts.is_changed) == (is_opened, is_changed)


def test_a_call_that_failed_is_taken_back_and_never_below_nothing() -> None:
    edit = ToolAction(kind="edit", tool="x", paths=("a.py",), changes=2)
    write = ToolAction(kind="write", tool="x", paths=("a.py",))
    ledger = ledger_of(edit, edit, write, write)
    ledger.fail(edit)
    ledger.fail(write)
    facts = facts_of(ledger)
    assert (facts.edits, facts.writes, facts.failures) == (2, 1, 2)
    assert facts.render_outcome() == "written once, edited 2×, 2 failed"
    for _ in range(2):
        ledger.fail(edit)
        ledger.fail(write)
    ledger.fail(ToolAction(kind="read", tool="x", paths=("a.py", "never.py")))
    assert (facts.edits, facts.writes, facts.reads, facts.failures) == (0, 0, 0, 7)
    ledger = ledger_of(ToolAction(kind="edit", tool="x", paths=("a.py",)))
    ledger.fail(ToolAction(kind="edit", tool="x", paths=("a.py",)))
    assert facts_of(ledger).edits == 0


def test_the_newest_ranges_and_names_are_kept_each_once() -> None:
    reads = [
        ToolAction(kind="read", tool="x", paths=("a.py",), lines=f"{n}-{n + 9}") for n in (1, 10, 20, 30, 10)
    ]
    assert facts_of(ledger_of(*reads)).ranges == ["20-29", "30-39", "10-19"]
    names = [ToolAction(kind="read", tool="x", paths=("a.py",), names=(f"f{n}",)) for n in (*range(17), 5)]
    kept = [f"f{n}" for n in range(1, 17) if n != 5]
    assert list(facts_of(ledger_of(*names)).names) == [*kept, "f5"]


def test_those_met_last_come_first_and_the_one_not_met_for_longest_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_ledger, "_MAX_FILES", 3)
    ledger = ledger_of(
        *(ToolAction(kind="read", tool="x", paths=(name,)) for name in ("a", "b", "c", "a", "d"))
    )
    assert [facts.path for facts in ledger.files()] == ["d", "a", "c"]
    assert ledger.dropped == 1


@pytest.mark.parametrize(
    ("met", "kept"),
    [
        (("./src/a.py", "src/a.py"), ["src/a.py"]),
        (("src/a.py", "/home/me/src/a.py"), ["/home/me/src/a.py"]),
        (("src/a.py", "~/src/a.py", "src/a.py", "a.py"), ["~/src/a.py"]),
        (("/home/me/src/a.py", "src/a.py"), ["/home/me/src/a.py"]),
        (("/home/me/src/a.py", "rc/a.py"), ["rc/a.py", "/home/me/src/a.py"]),
        (("src/a.py", "lib/src/a.py"), ["lib/src/a.py", "src/a.py"]),
        (("/one/a.py", "/two/a.py"), ["/two/a.py", "/one/a.py"]),
        (("src/a.py", "src/b.py"), ["src/b.py", "src/a.py"]),
    ],
)
def test_two_spellings_of_one_path_are_one_file(met: tuple[str, ...], kept: list[str]) -> None:
    ledger = ledger_of(*(ToolAction(kind="read", tool="x", paths=(path,)) for path in met))
    assert [facts.path for facts in ledger.files()] == kept
    assert sum(facts.reads for facts in ledger.files()) == len(met)


def test_a_result_names_the_files_at_the_heads_of_its_lines_once() -> None:
    text = "src/a.py:12:def f()\nsrc/a.py-13-    x\n./b.md:4:word\nc.toml\nno path here: x.py\nd.py: found\n"
    assert list(find_result_paths(text)) == ["src/a.py", "./b.md", "c.toml", "d.py"]
    assert list(find_result_paths("x" * 60_000 + "\nlate.py\n")) == []


def test_opened_files_are_listed_with_what_was_done_and_changed_ones_weigh_more() -> None:
    ledger = ledger_of(
        ToolAction(kind="edit", tool="x", paths=("changed.py",), names=("f", "g")),
        ToolAction(kind="read", tool="x", paths=("read.py",), lines="1-9"),
        ToolAction(kind="search", tool="x", mentions=("named.py",)),
    )
    entries = render_working_entries(ledger.files())
    assert [(entry.text, entry.brief) for entry in entries] == [
        ("- read.py — read once, lines 1-9", "- read.py"),
        ("- changed.py — edited once; in it: f, g", "- changed.py"),
    ]
    assert [entry.weight for entry in entries] == [1.0, 40.0]
    much = FileFacts(path="a.py", reads=50)
    assert [entry.weight for entry in render_working_entries([much, much])] == [19.0, 19.0]


def test_documents_that_were_read_are_pointed_to_before_what_only_was_named() -> None:
    files = [
        FileFacts(path="README.md", reads=1),
        FileFacts(path="docs/unread.md", mentions=1),
        FileFacts(path="src/opened.py", reads=1),
        FileFacts(path="src/one.py", mentions=1),
        FileFacts(path="src/two.py", mentions=5),
        FileFacts(path="Makefile", reads=2),
    ]
    entries = render_pointer_entries(files)
    assert [(entry.text, entry.brief, entry.weight) for entry in entries] == [
        ("- README.md — read", "- README.md", 1_000.0),
        ("- Makefile — read", "- Makefile", 999.0),
        ("- docs/unread.md", "- docs/unread.md", 4.0),
        ("- src/one.py\n- src/two.py", "- src/: two.py, one.py", 23.75),
    ]


def test_a_folder_of_many_names_so_many_and_counts_the_rest() -> None:
    inside = [FileFacts(path=f"src/{n:02}.py", mentions=1) for n in range(MAX_GROUPED_FILES + 2)]
    (exact,) = render_pointer_entries(inside[:MAX_GROUPED_FILES])
    assert exact.brief.endswith("29.py")
    (entry,) = render_pointer_entries(inside)
    assert entry.brief.endswith("29.py and 2 more")
    assert entry.brief.count(".py") == MAX_GROUPED_FILES
    assert entry.weight == 100.0
