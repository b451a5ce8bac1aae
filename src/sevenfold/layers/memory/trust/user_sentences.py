"""The sentences that a user typed, and which of them they assert: no question, nothing that somebody else
said, nothing that is announced, hidden or made up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise

from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.core.text.stems import SENTENCE_END, normalize_text
from sevenfold.layers.memory.trust.frames import (
    announces_message,
    announces_text,
    depends_on_last,
    is_back_reference,
    is_question,
    is_record_line,
    turns_back,
)
from sevenfold.layers.memory.trust.phrases import (
    ParsedSentence,
    Phrase,
    find_grammar,
    find_key,
    parse_sentence,
)
from sevenfold.layers.memory.trust.replies import MAX_REFERRING_WORDS, points_back, says_only_thanks
from sevenfold.layers.memory.trust.scopes import ends_now, is_invention, limits_next, tells_situation
from sevenfold.layers.memory.trust.tokens import Grammar, has_hidden_text

MAX_EVIDENCE_CHARS = 1_000
"""Of one sentence that is kept beside a memory."""

_BULLET = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSentence:
    """A sentence that a user typed."""

    text: str
    """Verbatim."""
    at: int
    """The message it stands in."""
    place: int
    """Its place in the message."""
    is_asserted: bool
    needs: frozenset[int] = frozenset()
    """Places of sentences that limit it, which have to be kept with it."""
    key: str = field(repr=False)
    """Its words, by which it is found again."""
    grammar: Grammar = field(repr=False)
    parsed: ParsedSentence = field(repr=False)


def read_user_sentences(
    own: str, at: int, is_reported: Callable[[str], bool], day: date | None = None
) -> tuple[UserSentence, ...]:
    """The sentences of a message, by what a person typed themselves. With the day on which it was said, a
    memory may give the date for "next Friday"."""
    pieces = [piece.strip() for piece in SENTENCE_END.split(own) if any(mark.isalnum() for mark in piece)]
    is_hidden = has_hidden_text(own)
    around = find_grammar(own[:MAX_EVIDENCE_CHARS]).name
    made: list[UserSentence] = []
    is_announced = is_limited = False
    introduced: frozenset[int] = frozenset()
    for place, piece in enumerate(pieces):
        bare = _BULLET.sub("", piece)
        grammar = find_grammar(bare, around)
        parsed = parse_sentence(bare, grammar)
        is_free = not is_question(piece, grammar) and not is_record_line(piece) and not is_reported(piece)
        made.append(
            UserSentence(
                text=piece[:MAX_EVIDENCE_CHARS],
                at=at,
                place=place,
                is_asserted=is_free and not is_hidden and not is_announced and not is_limited,
                needs=introduced,
                key=find_key(bare),
                grammar=grammar,
                parsed=parsed,
            )
        )
        is_short = parsed.count <= MAX_REFERRING_WORDS and is_back_reference(piece, parsed, grammar)
        is_asking = is_short and is_question(piece, grammar)
        # "Here is the trace …", where the trace is taken out, announces nothing any more.
        is_showing = (bool(parsed.phrases) or is_invention(bare)) and announces_message(bare)
        is_announced |= (bool(parsed.phrases) and is_asking) or is_showing
        # "Eve sent me a mail. Use port 80.", "We have an emergency today. Skip the review."
        is_setting = announces_text(piece) or ends_now(piece) or tells_situation(piece)
        introduced = frozenset({place} if is_setting or piece.endswith(";") else ())
        # "This time. Lint before you push."
        is_first = not any(one.is_asserted and one.parsed.count > 1 for one in made[:-1])
        is_limited = limits_next(bare, parsed, grammar, is_first=is_first)
    linked = tuple(_linked(made))
    return (*linked, *_dated(linked, day)) if day else linked


def _dated(sentences: Iterable[UserSentence], day: date) -> Iterator[UserSentence]:
    """The same with dates, where that makes a difference."""
    for sentence in sentences:
        text = resolve_relative_dates(sentence.text, day)
        if text != sentence.text:
            bare = _BULLET.sub("", text)
            yield replace(sentence, key=find_key(bare), parsed=parse_sentence(bare, sentence.grammar))


def _linked(sentences: Sequence[UserSentence]) -> Iterator[UserSentence]:
    """With what each of them has to be kept with: what comes next, where that hangs on it."""
    thanks = [one for one in sentences if says_only_thanks(one.text)]
    yield from thanks
    sentences = [one for one in sentences if one not in thanks]
    for sentence, after in pairwise(sentences):
        if is_question(after.text, after.grammar):
            is_asked = is_back_reference(after.text, after.parsed, after.grammar)
            yield replace(sentence, is_asserted=sentence.is_asserted and not is_asked)
        elif sentence.text.endswith(";") or _is_about_last(after):
            yield replace(sentence, needs=sentence.needs | {after.place})
        else:
            yield sentence
    yield from sentences[-1:]


def _is_about_last(one: UserSentence) -> bool:
    """Whether it limits, takes back or speaks of the sentence before it."""
    is_small = depends_on_last(one.text, one.parsed) or turns_back(one.text)
    return is_small or points_back(one.text, one.grammar) or ends_now(one.text)


def iterate_clauses(parsed: ParsedSentence) -> Iterator[ParsedSentence]:
    part: list[Phrase] = []
    for phrase in parsed.phrases:
        if phrase.begins_clause and part:
            yield ParsedSentence(tuple(part))
            part = []
        part.append(phrase)
    if part:
        yield ParsedSentence(tuple(part))


_UNSPACED_IDLE = re.compile(
    r"覚えておいて(?:ください)?|覚えて(?:ください)?|メモして(?:ください)?|今後は?|これからは?|必ず|お願いします|こと"
    r"|请记住|請記住|記住|记住|请注意|注意|从现在起|从现在开始|今后|以后|请|請|我们的|我们|总是|一定"
)
_UNSPACED_END = re.compile(
    r"(?:しています|している|あります|ある|います|いる|してください|します|する|して|です|ます"
    r"|(?<=使)(?:ってください|います|って|う)|(?<=[書置])(?:いてください|きます|いて|く)"
    r"|(?<=[行])(?:ってください|きます|って|く)|(?<=[読])(?:んでください|みます|んで|む)"
    r"|(?<=[送通直残返消])(?:してください|します|して|す)|(?<=[付避変])(?:けてください|えてください|けます|えます|ける|える)"
    r"|でください|てください|ください)\W*$"
)
"""Ends of a sentence that asks for something or states it, polite or plain; not of one that denies it or
tells what was."""
_UNSPACED_TOPIC = re.compile(r"(?:は|是|为)(?=[\d：:])|[：:](?=\s*\d)")
_UNSPACED_MARK = re.compile(r"[\s\W]+")


def squeeze_unspaced(text: str) -> str:
    """A sentence of a script without spaces, without polite words and marks."""
    bare = _UNSPACED_END.sub("", _UNSPACED_IDLE.sub("", normalize_text(text)))
    return _UNSPACED_MARK.sub("", _UNSPACED_TOPIC.sub("", bare)).casefold()
