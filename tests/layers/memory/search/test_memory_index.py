"""The index follows the directory, forgets what is gone, and computes nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.events import Event, IndexRebuilt
from sevenfold.layers.memory.search.memory_index import (
    EMBEDDED_AT_ONCE,
    LONG_QUESTION,
    MemoryIndex,
    TextCache,
    build_search_text,
    shorten_query,
)
from sevenfold.layers.memory.search.vectors import BACKGROUND_PROMPTS
from sevenfold.store.files.folder import Folder
from tests.layers.memory.search.memories import Encoding, stored

RETRIES = stored("retries.md", "The upstream allows seven attempts; a retrier stops before the eighth.")
TESTS = stored("tests.md", "Run the tests with make test before every commit.")
COLOURS = stored("colours.md", "Charts use the palette of the brand, never red beside green.")


def filled(*memories: object, encoding: Encoding | None = None) -> MemoryIndex:
    index = MemoryIndex(TextCache(None), encoding.encoder if encoding else None)
    index.update(memory for memory in (RETRIES, TESTS, COLOURS) if not memories or memory in memories)
    return index


def embed_all(index: MemoryIndex) -> None:
    while index.embed():
        pass


def test_the_memory_that_a_question_is_about_comes_first() -> None:
    found = filled().rank("how many attempts does the retrier get?")
    assert found[0].key == "retries.md"
    assert found[0].overlap.words[:2] == ("attempt", "retrier")


def test_a_memory_that_left_the_directory_is_not_found() -> None:
    index = filled()
    index.update([TESTS])
    assert [one.key for one in index.rank("attempts of the retrier")] == []
    assert len(index) == 1


def test_a_changed_text_is_found_by_its_new_words_alone() -> None:
    index = filled()
    index.update([stored("tests.md", "Continuous integration runs everything.")])
    assert [one.key for one in index.rank("integration")] == ["tests.md"]
    assert index.rank("commit") == ()


def test_logs_and_what_a_dream_put_aside_are_not_indexed() -> None:
    index = filled()
    index.update(
        [TESTS, stored("archive/old.md", "attempts"), stored("logs/2020/01/2020-01-01.md", "attempts")]
    )
    assert index.rank("attempts") == ()


def test_words_answer_until_vectors_are_there() -> None:
    index = filled(encoding=Encoding())
    assert index.waiting == 3 + 1
    assert index.rank("attempts of the retrier")[0].key == "retries.md"
    assert index.rank("attempts of the retrier")[0].meaning is None


def test_without_an_encoder_there_are_no_vectors_to_compute() -> None:
    index = filled()
    assert (index.has_vectors, index.waiting, index.embed()) == (False, 0, 0)


def test_vectors_are_computed_once_and_what_is_left_is_counted() -> None:
    index, encoding = MemoryIndex(TextCache(None)), Encoding()
    many = [stored(f"m{number}.md", f"text {number}") for number in range(EMBEDDED_AT_ONCE + 2)]
    index.update(many)
    index.use(encoding.encoder, [*many, stored("gone.md", "not indexed")])
    assert (index.has_vectors, index.waiting) == (True, EMBEDDED_AT_ONCE + 3)
    assert [index.embed() for _ in range(4)] == [EMBEDDED_AT_ONCE + 2, 2, 0, 0]
    assert len(encoding.texts) == EMBEDDED_AT_ONCE + 2 + len(BACKGROUND_PROMPTS)


def test_vectors_find_what_no_word_does() -> None:
    index = filled(encoding=Encoding())
    embed_all(index)
    found = index.rank("zzz " + COLOURS.memory.body.replace(" ", ""))
    assert found[0].key == "colours.md"
    assert found[0].overlap.words == ()
    assert found[0].meaning is not None
    assert found[0].margin is not None


def test_a_margin_is_measured_over_prompts_about_something_else() -> None:
    index = filled(encoding=Encoding())
    embed_all(index)
    asked = [(prompt, index.rank(prompt)) for prompt in BACKGROUND_PROMPTS]
    nearest = [max(one.margin or 0.0 for one in found) for _, found in asked]
    assert sum(nearest) / len(nearest) == pytest.approx(0.0, abs=0.01)
    before = max(one.margin or 0.0 for one in index.rank(TESTS.memory.body))
    assert before > max(nearest)
    # With what is in the directory, the background changes.
    index.update([COLOURS])
    assert index.rank(COLOURS.memory.body)[0].margin != before


def test_words_of_talk_say_nothing_unless_a_memory_is_named_after_them() -> None:
    index = filled()
    talk = index.rank("please run it before you commit this")[0]
    telling = index.rank("does the upstream allow the retrier so many attempts?")[0]
    assert talk.overlap.share > 0.6
    assert talk.overlap.evidence < telling.overlap.evidence / 2
    other = MemoryIndex(TextCache(None))
    other.update([stored("other.md", TESTS.memory.body)])
    assert other.rank("run the tests")[0].overlap.evidence < index.rank("run the tests")[0].overlap.evidence


def test_a_word_that_a_long_memory_holds_once_says_less_than_in_a_short_one_or_in_a_description() -> None:
    said = "The kestrel machine restarts on Fridays."
    words = " ".join(f"entry{at}" for at in range(400))
    index = MemoryIndex(TextCache(None))
    texts = {
        "short.md": said,
        "long.md": f"notes\n{said} {words}",
        "about.md": f"about kestrel\n{said} {words}",
    }
    index.update([stored(key, text) for key, text in texts.items()])
    found = {one.key: one.overlap for one in index.rank("what about kestrel?")}
    assert len({one.rare_words for one in found.values()}) == 1
    assert 2 * found["long.md"].evidence < min(found["short.md"].evidence, found["about.md"].evidence)


def test_words_side_by_side_in_both_say_more_than_apart() -> None:
    index = MemoryIndex(TextCache(None))
    index.update([stored("queue.md", "A failed payment goes to the retry queue.")])
    apart, together = (
        index.rank(asked)[0] for asked in ("does a queue need a retry?", "clear the retry queue")
    )
    assert apart.overlap.words == together.overlap.words
    assert apart.overlap.evidence < together.overlap.evidence


def test_nothing_is_computed_twice_for_the_same_text(tmp_path: Path) -> None:
    with Folder.open(tmp_path / "control", create=True) as control:
        first, again = Encoding(), Encoding()
        for encoding in (first, again):
            index = MemoryIndex.open(control, encoder=encoding.encoder)
            index.update([RETRIES, TESTS])
            embed_all(index)
            index.update([RETRIES])
            index.close()
    assert len(first.texts) == 2 + len(BACKGROUND_PROMPTS)
    assert again.texts == [build_search_text(TESTS.memory)]


def test_a_damaged_file_is_told_of_and_made_anew(tmp_path: Path) -> None:
    events: list[Event] = []
    with Folder.open(tmp_path / "control", create=True) as control:
        control.subfolder("recall").close()
        control.replace("recall/texts.db", b"this is no database, and long enough to be read as one" * 40)
        index = MemoryIndex.open(control, emit=events.append)
        index.update([RETRIES])
        assert index.rank("attempts")[0].key == "retries.md"
        index.close()
        MemoryIndex.open(control, emit=events.append).close()
    assert [type(event) for event in events] == [IndexRebuilt]


def test_a_file_that_is_damaged_while_in_use_costs_nothing_but_its_work(tmp_path: Path) -> None:
    events: list[Event] = []
    path = tmp_path / "texts.db"
    cache = TextCache(path, emit=events.append)
    cache.add_words({f"{n:064}": [{"word": n}] for n in range(1, 500)})
    cache.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    cache = TextCache(path, emit=events.append)
    index = MemoryIndex(cache)
    index.update([RETRIES])
    assert index.rank("attempts")[0].key == "retries.md"
    assert {type(event) for event in events} == {IndexRebuilt}


def test_the_words_of_a_text_that_is_gone_are_not_kept(tmp_path: Path) -> None:
    with Folder.open(tmp_path / "control", create=True) as control:
        index = MemoryIndex.open(control)
        index.update([stored("secret.md", "the xylophone is in the cellar"), TESTS])
        index.update([TESTS])
        index.close()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "control/recall").iterdir())
    assert b"xylophon" not in kept
    assert b"commit" in kept


@given(st.text())
def test_a_long_question_keeps_its_beginning_and_its_end(text: str) -> None:
    asked = "start" + text * 400 + "end"
    short = shorten_query(asked)
    assert len(short) <= LONG_QUESTION + 1
    assert short.startswith("start")
    assert short.endswith("end")


TEXTS = st.sampled_from(["retry budget", "header parser", "cache of headers", "budget of the cache", "x"])
DIRECTORIES = st.dictionaries(st.sampled_from(["a.md", "b.md", "c.md", "d.md"]), TEXTS)


@given(st.lists(DIRECTORIES, min_size=1, max_size=5), TEXTS)
def test_an_index_that_followed_answers_as_a_fresh_one(directories: list[dict[str, str]], asked: str) -> None:
    followed, fresh = (MemoryIndex(TextCache(None), Encoding().encoder) for _ in range(2))
    for directory in directories:
        followed.update(stored(key, text) for key, text in directory.items())
        embed_all(followed)
    fresh.update(stored(key, text) for key, text in directories[-1].items())
    embed_all(fresh)
    one, other = (
        {found.key: (round(found.score, 4), found.overlap) for found in index.rank(asked)}
        for index in (followed, fresh)
    )
    assert one == other


def test_what_stands_far_behind_the_beginning_of_a_long_text_is_near_too(tmp_path: Path) -> None:
    long = stored("long.md", "Letters.\n" + "aaa bbb ccc " * 150 + "zzz qqq " * 50)
    encoder = Encoding().encoder
    whole, asked = encoder.encode([build_search_text(long.memory), "zqzqzq"])
    with Folder.open(tmp_path / "control", create=True) as control:
        for _ in range(2):  # computed, and then read from the cache
            index = MemoryIndex.open(control, encoder=encoder)
            index.update([long, TESTS])
            embed_all(index)
            near = {one.key: one.meaning or 0.0 for one in index.rank("zqzqzq")}
            assert near["long.md"] > float(whole @ asked) + 0.1
            index.close()
