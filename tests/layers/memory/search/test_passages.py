"""A long text is found by what one part of it says, and short texts as ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.memory.search.lexical import build_lexical_index
from sevenfold.layers.memory.search.memory_index import MemoryIndex, TextCache
from sevenfold.layers.memory.search.passages import WORDS_PART_CHARS, PassageIndex, count_parts
from sevenfold.layers.memory.search.vectors import cut_text
from tests.layers.memory.search.memories import Encoding, stored

WORDS = st.sampled_from(["budget", "retry", "window", "limit", "parser", "kestrel"])
TEXTS = st.lists(WORDS, max_size=400).map(" ".join)
FILLER = "The meeting went on and the palette of the brand was shown again. "


def indexed(documents: dict[str, str]) -> PassageIndex:
    index = PassageIndex()
    for key, text in documents.items():
        index.add(key, count_parts(text))
    return index


def order(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda key: (-scores[key], key))


def test_words_that_stand_together_in_a_long_text_count_more_than_words_far_apart() -> None:
    filler = FILLER * 40
    together = f"{filler}The retrier stops before the eighth attempt. {filler}"
    apart = f"The retrier is new. {filler}The eighth meeting. {filler}Another attempt to stop."
    documents = {"apart.md": apart, "together.md": together, "short.md": "lunch"}
    question = "when does the retrier stop, at the eighth attempt?"
    assert order(indexed(documents).score(question))[0] == "together.md"


@given(
    st.dictionaries(
        st.sampled_from(["a.md", "b.md", "c.md"]), TEXTS.map(lambda text: text[:WORDS_PART_CHARS])
    )
)
def test_short_texts_score_as_they_do_as_wholes(documents: dict[str, str]) -> None:
    index = indexed(documents)
    assert index.score("budget of the window") == build_lexical_index(documents.items()).score(
        "budget of the window"
    )


@given(st.lists(st.tuples(st.sampled_from(["a.md", "b.md", "c.md"]), st.none() | TEXTS), max_size=8), TEXTS)
def test_after_any_changes_it_answers_as_a_fresh_one(
    changes: list[tuple[str, str | None]], question: str
) -> None:
    index, left = PassageIndex(), dict[str, str]()
    for key, text in changes:
        if text is None:
            index.remove(key)
            left.pop(key, None)
        else:
            index.add(key, count_parts(text))
            left[key] = text
    fresh = indexed(left)
    assert len(index) == len(left)
    found, expected = index.score(question), fresh.score(question)
    assert found.keys() == expected.keys()
    assert all(abs(found[key] - expected[key]) < 1e-9 for key in found)


@given(st.text(alphabet="ab \n", max_size=5_000), st.integers(2, 1_000))
def test_the_parts_of_a_text_are_all_of_it(text: str, size: int) -> None:
    parts = list(cut_text(text, size))
    assert "".join(parts) == text
    assert all(len(part) <= size for part in parts)
    assert len(parts) == 1 or all(parts)


def test_a_prompt_of_two_matters_is_near_to_what_each_of_them_is_about() -> None:
    first, second = "abcabc" * 110, "xyzxyz" * 110
    memories = [stored("first.md", first), stored("second.md", second), stored("other.md", "mnopq" * 100)]
    index = MemoryIndex(TextCache(None), Encoding().encoder)
    index.update(memories)
    while index.embed():
        pass
    found = index.rank(f"{first}\n{second}")
    assert {one.key for one in found[:2]} == {"first.md", "second.md"}


def test_where_every_memory_shares_only_talk_with_the_prompt_the_meaning_decides() -> None:
    talk, near = stored("talk.md", "please continue, thanks"), stored("near.md", "zzzz")
    others = [stored(f"m{number}.md", f"thanks {number}") for number in range(8)]
    index = MemoryIndex(TextCache(None), Encoding().encoder)
    index.update([talk, near, *others])
    while index.embed():
        pass
    assert index.rank("thanks zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz")[0].key == "near.md"
