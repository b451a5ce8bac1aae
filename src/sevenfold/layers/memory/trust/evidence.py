"""Which sentence of the user a memory rests on. The default is that there is none.

A memory is the user's when each of its sentences is one of theirs, word for word: marks and capitals may
differ, and nothing else. That sentence has to be an assertion: not a question, not what somebody else said,
not text that was announced, pasted or hidden. A memory in other words is exchanged for their sentence first
(`quotation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sevenfold.core.text.stems import normalize_text
from sevenfold.layers.memory.trust.frames import is_question, is_record_line, is_reported_speech
from sevenfold.layers.memory.trust.phrases import NOT, ParsedSentence
from sevenfold.layers.memory.trust.sentence_index import SentenceIndex
from sevenfold.layers.memory.trust.tokens import has_hidden_text
from sevenfold.layers.memory.trust.user_sentences import UserSentence


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """The user's sentences that a text rests on, and the sentences of it that rest on none."""

    sentences: tuple[UserSentence, ...] = ()
    unsupported: tuple[str, ...] = ()


def find_evidence(sentences: Sequence[str], said: Iterable[UserSentence] | SentenceIndex) -> EvidenceFound:
    """What these sentences of a memory rest on. `said`: all that the user said, in order; where several texts
    are asked about, as an index."""
    index = said if isinstance(said, SentenceIndex) else SentenceIndex(said)
    support = [_find_support(sentence, index) for sentence in sentences]
    support = [
        one or _find_context(text, support, index) for text, one in zip(sentences, support, strict=True)
    ]
    while True:
        places = {(one.at, one.place) for one in support if one is not None}
        needed = _find_needed(support)
        # What limits a sentence has to be kept with it; a question or a report does not stand alone.
        whole = [
            one
            if one
            and all((one.at, place) in places for place in one.needs)
            and (one.is_asserted or (one.at, one.place) in needed)
            else None
            for one in support
        ]
        if whole == support:
            break
        support = whole
    unsupported = tuple(text for text, one in zip(sentences, support, strict=True) if one is None)
    found = {(one.at, one.place): one for one in support if one is not None}
    return EvidenceFound(tuple(found.values()), unsupported)


def _find_support(sentence: str, said: SentenceIndex) -> UserSentence | None:
    """Where the user said this, the newest first: who changed their mind means what they said last."""
    if has_hidden_text(sentence):
        return None
    found = (one for one in said.find_same(sentence) if one.is_asserted and not said.is_set_aside(one))
    newest = next(found, None)
    return None if newest is None or _is_revoked(newest, said) else newest


def _find_context(
    sentence: str, support: Iterable[UserSentence | None], said: SentenceIndex
) -> UserSentence | None:
    """The question or the report of the user that this is, mark by mark, where an assertion has to be kept
    with it: "Could you proofread this?". "Skip the review?" is no evidence of "Skip the review."."""
    needed = _find_needed(support)
    same = (
        one
        for one in said.find_same(sentence)
        if (one.at, one.place) in needed
        and _read_marks(one.text) == _read_marks(sentence)
        and (is_question(one.text, one.grammar) or is_reported_speech(one.text))
        and not is_record_line(one.text)
    )
    return None if has_hidden_text(sentence) else next(same, None)


def _find_needed(support: Iterable[UserSentence | None]) -> set[tuple[int, int]]:
    """Messages and places of what the assertions among them have to be kept with."""
    return {(one.at, place) for one in support if one is not None and one.is_asserted for place in one.needs}


def _read_marks(text: str) -> str:
    marks = (mark for mark in normalize_text(text) if not mark.isalnum() and not mark.isspace())
    return "".join(marks).strip(".;")


def _is_revoked(one: UserSentence, said: SentenceIndex) -> bool:
    """Whether the user said the opposite later."""
    words, negations = _content(one.parsed)
    return any(
        (later.at, later.place) > (one.at, one.place) and _content(later.parsed)[1] != negations
        for later in said.find_holding(words)
    )


def _content(parsed: ParsedSentence) -> tuple[frozenset[str], int]:
    texts = [word.text for word in parsed.words]
    return frozenset(text for text in texts if text != NOT), texts.count(NOT)
