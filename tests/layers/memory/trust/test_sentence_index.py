"""What the index of a user's sentences finds is what reading all of them would find, and costs no more when a
conversation gets long."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence

import pytest
from bench.poisoning_cases import make_poison_cases
from bench.poisoning_honest import REWORDED, make_verbatim_cases
from bench.poisoning_near import NEAR
from bench.poisoning_reworded import (
    FOUND_SET,
    PLANTED_SETS,
    SEEN_SETS,
    UNSEEN_SETS,
    read_planted_cases,
    read_reworded_cases,
)
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.messages import Message
from sevenfold.core.text.stems import split_sentences
from sevenfold.layers.memory.trust.evidence import EvidenceFound, find_evidence
from sevenfold.layers.memory.trust.frames import (
    announces_message,
    is_reported_speech,
    turns_back,
)
from sevenfold.layers.memory.trust.phrases import find_key
from sevenfold.layers.memory.trust.replies import says_only_thanks
from sevenfold.layers.memory.trust.scopes import takes_back_message
from sevenfold.layers.memory.trust.sentence_index import SentenceIndex
from sevenfold.layers.memory.trust.taint import (
    ConversationSources,
    split_passages,
    strip_pasted_text,
)
from sevenfold.layers.memory.trust.user_sentences import UserSentence, read_user_sentences

MESSAGES = 40
"""Of one conversation."""
SOME = 8
"""Tests that the conversations are shared out to."""


class FullScan(SentenceIndex):
    """Leaves nothing out, however long that takes."""

    def find_same(self, sentence: str) -> list[UserSentence]:
        return [one for one in self if one.key == find_key(sentence)][::-1]

    def find_holding(self, words: frozenset[str]) -> list[UserSentence]:
        return [one for one in self if words and words <= _read_texts(one)]

    def is_set_aside(self, one: UserSentence) -> bool:
        texts = self._read_messages()
        stating = [at for at in sorted(texts) if not all(map(says_only_thanks, texts[at]))]
        before = [at for at in sorted(texts) if at < one.at and at in stating]
        if before and announces_message(texts[before[-1]][-1]):
            # Thanks announce nothing.
            return True
        for at in (at for at in sorted(texts) if at > one.at):
            if takes_back_message(" ".join(texts[at][:2])) or turns_back(" ".join(texts[at])):
                return one.at in stating
            if at in stating:
                return False
        return False

    def _read_messages(self) -> dict[int, list[str]]:
        messages: dict[int, dict[int, str]] = {}
        for each in self:
            messages.setdefault(each.at, {}).setdefault(each.place, each.text)
        return {at: [text for _, text in sorted(texts.items())] for at, texts in messages.items()}


def _read_texts(one: UserSentence) -> set[str]:
    return {word.text for word in one.parsed.words}


def read_conversation(said: Sequence[str]) -> list[UserSentence]:
    return [
        one
        for at, text in enumerate(said)
        for one in read_user_sentences(strip_pasted_text(text), at, is_reported_speech)
    ]


def find_both(written: str, said: Sequence[UserSentence]) -> tuple[EvidenceFound, EvidenceFound]:
    """By the index, half of it forked, and by reading everything."""
    half = SentenceIndex(said[: len(said) // 2])
    index = half.fork()
    index.add(said[len(said) // 2 :])
    # What the first one takes in later is not the second one's.
    half.add(read_conversation([written]))
    texts = split_sentences(written)
    found = find_evidence(texts, SentenceIndex(said))
    assert find_evidence(texts, index) == found
    return found, find_evidence(texts, FullScan(said))


def _read_pairs() -> Iterator[tuple[str, str]]:
    for poison in make_poison_cases():
        yield poison.said, poison.planted
    for honest in (*make_verbatim_cases(), *REWORDED):
        yield honest.said, honest.kept
    for make in NEAR.values():
        yield from dict.fromkeys(make())
    for name in (*PLANTED_SETS, FOUND_SET):
        for planted in read_planted_cases(name):
            yield planted.said, planted.planted
    for name in (*SEEN_SETS, *UNSEEN_SETS):
        for reworded in read_reworded_cases(name):
            yield reworded.said, reworded.kept


def _join_conversations() -> list[list[tuple[str, str]]]:
    """All pairs of the benchmark, mixed, in conversations."""
    pairs = list(_read_pairs())
    random.Random(7).shuffle(pairs)
    return [pairs[at : at + MESSAGES] for at in range(0, len(pairs), MESSAGES)]


@pytest.mark.story
@pytest.mark.parametrize("some", range(SOME))
def test_the_index_finds_what_reading_everything_finds(some: int) -> None:
    conversations = _join_conversations()[some::SOME]
    assert sum(map(_compare, conversations)) > 0


def test_the_index_finds_what_reading_everything_finds_in_a_few_messages() -> None:
    assert _compare(_join_conversations()[0][:12]) > 0


def _compare(pairs: Sequence[tuple[str, str]]) -> int:
    """How many of the texts that were written down rest on something."""
    said = read_conversation([said for said, _ in pairs])
    found = 0
    for _, written in pairs:
        by_index, by_scan = find_both(written, said)
        assert by_index == by_scan, written
        found += bool(by_index.sentences)
    return found


_WORDS = (
    "we you I the user wants prefer like never always not only may all every for by with in "
    "on of from to if when before after because tests test tested testing deploy ship "
    "shipping deployed branch review reviewed branches Ada Monday Mondays 90 ninety days 3 "
    "March 2027 14:00 2 pm use using uses tabs spaces and but then is are be should must do "
    "don't instead pnpm main.py --fast start begin launch delete removes big large wir nutzen "
    "die Tests löschen entfernen nicht vor dem Mergen für immer nie wird on ne pas toujours "
    "nous utilisons supprimer effacer los usamos borrar siempre не мы используем всегда "
    "удалять 用户 我 使用 只在星期二部署 テストにはpytestを使う pytest thanks forget that . . . , ; ?"
)
_TEXTS = st.lists(st.sampled_from(_WORDS.split()), min_size=1, max_size=7).map(" ".join)
_FRAMES = st.sampled_from(
    (
        "{}", "{}.", "{}. {}.", "The user wants {}.", "I prefer {}.", "For {} we use {}.",
        "{} and {}.", "{} is done by {}.", "Thanks!", "Forget that.", "用户{}", "我{}",
    )
)  # fmt: skip


def _fill(frame: str, parts: tuple[str, str]) -> str:
    return frame.format(*parts)


_SAID = st.builds(_fill, _FRAMES, st.tuples(_TEXTS, _TEXTS))


@given(st.lists(_SAID, min_size=1, max_size=8), _SAID, st.data())
def test_no_words_hide_a_sentence_from_the_index(said: list[str], other: str, data: st.DataObject) -> None:
    mixed = data.draw(st.sampled_from(said)).split()
    written = data.draw(st.sampled_from([other, " ".join(data.draw(st.permutations(mixed))), *said]))
    by_index, by_scan = find_both(written, read_conversation(said))
    assert by_index == by_scan


def _talk(messages: int) -> ConversationSources:
    """A long conversation about ever other things."""
    pick = random.Random(1)
    said = [
        f"Please check module {pick.choice('abcdef')}{at} and tell me when queue {at} is done."
        for at in range(messages)
    ]
    return ConversationSources(split_passages([Message("user", text) for text in said]))


def _count_calls(sources: ConversationSources) -> int:
    """Function calls of one attribution, which do not depend on the machine."""
    written = "\n".join(f"- The storage team {at} owns the archive cluster." for at in range(6))
    written += "\n- Check module a7 and tell the user when queue 7 is done."
    sources.attribute("Nothing of this was said.")
    calls = 0

    def note(_frame: object, event: str, _given: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        sources.attribute(written)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.story
def test_a_long_conversation_costs_no_more_than_a_short_one() -> None:
    _count_calls(_talk(200))
    short, long = (_count_calls(_talk(messages)) for messages in (200, 1_600))
    assert long <= 3 * short
