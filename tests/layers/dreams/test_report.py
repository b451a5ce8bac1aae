"""What a dream says for itself."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sevenfold.core.errors import InputError, StoreError
from sevenfold.core.memories import read_memory, write_memory
from sevenfold.layers.dreams.check import (
    RemovalReason,
    parse_removal_reason,
    parse_removal_reasons,
    render_dream_manifest,
    render_memory_diff,
)
from sevenfold.layers.dreams.publish import DreamRecord, DreamRecordStore
from sevenfold.store.files.folder import Folder


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("LET GO a.md: duplicate of b.md", RemovalReason(key="a.md", why="duplicate", of="b.md")),
        ("- LET GO `a.md`: duplicate of `b`.", RemovalReason(key="a.md", why="duplicate", of="b.md")),
        ('LET GO a: contradicted by b.md: "x is 1"',
         RemovalReason(key="a.md", why="contradicted", of="b.md", fact="x is 1")),
        ('LET GO a.md: stale: "x": since 2025, the file is gone',
         RemovalReason(key="a.md", why="stale", of="", fact="x", note="since 2025, the file is gone")),
        ("let go sub/a.md: stale: moved in 2025",
         RemovalReason(key="sub/a.md", why="stale", note="moved in 2025")),
        ('**LET GO** a.md: reworded in a.md: "x"',
         RemovalReason(key="a.md", why="reworded", of="a.md", fact="x")),
    ],
)  # fmt: skip
def test_a_line_of_the_answer_says_what_went_and_why(line: str, reason: RemovalReason) -> None:
    assert parse_removal_reasons(f"I am done.\n\n{line}\nLET GO of nothing else.") == (reason,)


@pytest.mark.parametrize("said", ["because", "", "obsolete: x", "duplicates"])
def test_what_is_no_reason_is_none(said: str) -> None:
    assert parse_removal_reason("a.md", said) is None


@given(some.text(max_size=200))
def test_no_answer_makes_the_reader_fail(answer: str) -> None:
    assert len(parse_removal_reasons(f"LET GO {answer}")) <= len(answer.splitlines()) + 1


def test_the_diff_shows_each_file_and_names_what_is_put_aside() -> None:
    before = {"a.md": "one\ntwo\n", "b.md": "old\n", "c.md": "same\n"}
    after = {"a.md": "one\n2\n", "archive/b.md": "old\n", "d.md": "new\n", "c.md": "same\n"}
    shown = render_memory_diff(before, after, ["a.md", "b.md", "archive/b.md", "d.md"])
    assert "--- a.md\n+++ a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" in shown
    assert "b.md is archived as archive/b.md\n" in shown
    assert "--- /dev/null\n+++ d.md\n" in shown
    assert "c.md" not in shown
    assert "--- archive" not in shown


def test_the_manifest_has_a_line_a_memory() -> None:
    memory = read_memory("a.md", write_memory("a", "when it rains", "user", "Stay in."))
    assert (
        render_dream_manifest([(memory, date(2026, 11, 15))]) == "- [user] a.md (2026-11-15): when it rains"
    )


def test_a_dream_that_did_nothing_says_so_in_one_line() -> None:
    record = DreamRecord(id="d1", started="", writer="model", outcome="unchanged")
    assert record.lines() == ["dream d1 found nothing to do"]
    refused = DreamRecord(id="d1", started="", writer="model", outcome="refused", reason="a fact was lost")
    assert refused.lines() == ["dream d1 was refused and changed nothing: a fact was lost"]


def test_a_dream_that_changed_something_says_what_and_how_to_take_it_back() -> None:
    record = DreamRecord(
        id="d2",
        started="",
        writer="model",
        outcome="published",
        transaction="t1",
        changed=("a.md", "b.md"),
        archived=("c.md",),
        waiting=("w1",),
        left_alone=("d.md: in use",),
        let_go=("x is 1: stale",),
    )
    assert record.lines() == [
        "dream d2 published",
        "  2 written",
        "  1 archived",
        "  left as it is: d.md: in use",
        "  dropped: x is 1: stale",
        "  something new waits for you: `sevenfold memory review`",
        "  `sevenfold dream undo d2` takes it back",
    ]


def test_records_of_dreams_are_read_back_the_newest_first_until_closed(tmp_path: Path) -> None:
    with Folder.open(tmp_path / "control", create=True) as control:
        kept = DreamRecordStore(control)
        first = DreamRecord(id="20260101", started="", writer="model", changed=("a.md",))
        later = DreamRecord(id="20260102", started="", writer="model")
        kept.write(first, "--- a.md\n")
        kept.write(later)
        assert kept.ids() == ["20260102", "20260101"]
        assert kept.read("20260101") == first
        assert (kept.diff("20260101"), kept.diff("20260102")) == ("--- a.md\n", "")
        with pytest.raises(InputError, match="there is no dream '20250101'"):
            kept.read("20250101")
        kept.close()
        with pytest.raises(StoreError):
            kept.ids()
