"""The index on disk finds what the one in memory does, and goes on where another process left it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.core.errors import FileDamaged, LockBusy
from sevenfold.core.events import Event, IndexRebuilt
from sevenfold.layers.memory.search.large_index import DiskIndex, LargeIndex
from sevenfold.layers.memory.search.lexical import build_lexical_index
from sevenfold.store.files.folder import Folder
from tests.layers.memory.search.memories import stored

pytest.importorskip("tantivy")

TEXTS = {
    "retries.md": "The upstream allows seven attempts; a retrier stops before the eighth attempt.",
    "tests.md": "Run the tests with make test before every commit.",
    "parser.md": "parseHeader splits a header at its first colon; parse_header is the old one.",
    "colours.md": "Charts use the palette of the brand, never red beside green.",
    "budget.md": "The budget of attempts is kept in a header of the answer.",
}
QUESTIONS = [
    "attempts of the retrier",
    "how is a header parsed?",
    "parse_header",
    "red charts",
    "test test tests",
]


def filled(folder: Path) -> DiskIndex:
    index = DiskIndex.open(folder)
    for key, text in TEXTS.items():
        index.add(key, text, version="1")
    index.commit()
    return index


@pytest.mark.parametrize("question", QUESTIONS)
def test_disk_and_memory_agree(question: str, tmp_path: Path) -> None:
    on_disk, in_memory = filled(tmp_path), build_lexical_index(TEXTS.items())
    found = on_disk.rank(question, 3)
    assert [hit.key for hit in found] == [hit.key for hit in in_memory.rank(question, 3)]
    assert on_disk.weigh_query(question) == in_memory.weigh_query(question)
    on_disk.close()


def test_what_was_committed_is_there_in_another_process(tmp_path: Path) -> None:
    filled(tmp_path).close()
    again = DiskIndex.open(tmp_path)
    assert again.versions() == dict.fromkeys(TEXTS, "1")
    assert again.rank("palette", 5)[0].key == "colours.md"
    again.close()


def test_a_changed_and_a_removed_document_are_found_no_more(tmp_path: Path) -> None:
    index = filled(tmp_path)
    index.add("colours.md", "Charts are drawn by the page.", version="2")
    index.remove("tests.md")
    index.commit()
    assert index.rank("palette", 5) == []
    assert index.rank("commit", 5) == []
    assert [hit.key for hit in index.rank("charts", 5)] == ["colours.md"]
    assert len(index) == len(TEXTS) - 1
    assert index.versions()["colours.md"] == "2"
    index.close()


def test_a_question_without_words_finds_nothing(tmp_path: Path) -> None:
    index = filled(tmp_path)
    assert index.rank("the of and", 5) == []
    index.close()


def test_what_cannot_be_read_says_so_and_can_be_rebuilt(tmp_path: Path) -> None:
    filled(tmp_path).close()
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(FileDamaged, match="rebuilt"):
        DiskIndex.open(tmp_path)
    DiskIndex.discard(tmp_path)
    assert len(filled(tmp_path)) == len(TEXTS)


def test_a_second_writer_is_told_to_wait(tmp_path: Path) -> None:
    first, second = filled(tmp_path), DiskIndex.open(tmp_path)
    first.add("one.md", "one")
    with pytest.raises(LockBusy):
        second.add("two.md", "two")
    first.commit()
    second.add("two.md", "two")
    second.commit()
    assert [hit.key for hit in second.rank("two", 5)] == ["two.md"]
    first.close()
    second.close()


def test_a_large_directory_is_followed_by_hash(tmp_path: Path) -> None:
    memories = {key: stored(key, text) for key, text in TEXTS.items()}
    with Folder.open(tmp_path / "control", create=True) as control:
        index = LargeIndex.open(control, memories.get)
        index.update(memories.values())
        del memories["tests.md"]
        memories["colours.md"] = stored("colours.md", "Charts are drawn by the page.")
        index.update(memories.values())
        assert index.rank("commit") == ()
        assert index.rank("palette") == ()
        found = index.rank("which page draws the charts?")
        assert (found[0].key, found[0].meaning) == ("colours.md", None)
        assert set(found[0].overlap.words) == {"chart", "page"}
        index.close()


def test_a_large_index_that_is_damaged_is_made_anew_and_told(tmp_path: Path) -> None:
    events: list[Event] = []
    memories = {key: stored(key, text) for key, text in TEXTS.items()}
    with Folder.open(tmp_path / "control", create=True) as control:
        filled(tmp_path / "control/recall/words").close()
        (tmp_path / "control/recall/words/meta.json").write_text("{")
        index = LargeIndex.open(control, memories.get, emit=events.append)
        index.update(memories.values())
        assert index.rank("palette")[0].key == "colours.md"
        index.close()
    assert [type(event) for event in events] == [IndexRebuilt]
