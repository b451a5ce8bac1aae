"""Which sentence of the user a memory rests on. The default is that there is none.

A memory is the user's when each of its sentences says what one sentence of theirs says, and nothing of that
sentence is missing: no condition, negation, number, doubt, name or source. So a note may be shorter than what
was said only by words that say nothing (`grammar`). That sentence has to be an assertion: not a question, not
what somebody else said, not text that was announced, pasted or hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice, pairwise

from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.core.text.stems import normalize_text
from sevenfold.layers.memory.trust.frames import (
    are_synonyms,
    depends_on_last,
    exchanges_cases,
    has_text_word,
    is_back_reference,
    is_question,
    is_record_line,
    points_ahead,
    read_otherwise,
    takes_back_message,
)
from sevenfold.layers.memory.trust.phrases import (
    EVERY,
    NOT,
    SECOND_PERSON,
    WISH,
    ParsedSentence,
    Phrase,
    find_grammar,
    parse_sentence,
)
from sevenfold.layers.memory.trust.replies import MAX_REFERRING_WORDS, says_only_thanks
from sevenfold.layers.memory.trust.scopes import is_invention, limits_next, makes_general
from sevenfold.layers.memory.trust.tokens import (
    PREFERENCE,
    Grammar,
    Word,
    has_hidden_text,
    is_past_form,
    is_same_word,
    is_unspaced,
)

MAX_EVIDENCE_CHARS = 1_000
"""Of one sentence that is kept beside a memory."""

_BULLET = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+")
_PIECE = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+(?!(?:Januar|Februar|März|April|Mai|Juni|Juli|Oktober|Dezember)\b)|\n+|(?<=;)\s+|(?<=[。！？])"
)


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
    grammar: Grammar = field(repr=False)
    parsed: ParsedSentence = field(repr=False)


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """The user's sentences that a text rests on, and the sentences of it that rest on none."""

    sentences: tuple[UserSentence, ...] = ()
    unsupported: tuple[str, ...] = ()


def read_user_sentences(
    own: str, at: int, is_reported: Callable[[str], bool], day: date | None = None
) -> tuple[UserSentence, ...]:
    """The sentences of a message, by what a person typed themselves. With the day on which it was said, a
    memory may give the date for "next Friday"."""
    pieces = [piece.strip() for piece in _PIECE.split(own) if any(mark.isalnum() for mark in piece)]
    is_hidden = has_hidden_text(own)
    made: list[UserSentence] = []
    is_announced = is_limited = False
    for place, piece in enumerate(pieces):
        bare = _BULLET.sub("", piece)
        grammar = find_grammar(bare)
        parsed = parse_sentence(bare, grammar)
        is_free = not is_question(piece, grammar) and not is_record_line(piece) and not is_reported(piece)
        made.append(
            UserSentence(
                text=piece[:MAX_EVIDENCE_CHARS],
                at=at,
                place=place,
                is_asserted=is_free and not is_hidden and not is_announced and not is_limited,
                grammar=grammar,
                parsed=parsed,
            )
        )
        is_short = parsed.count <= MAX_REFERRING_WORDS and is_back_reference(piece, parsed, grammar)
        is_asking = is_short and is_question(piece, grammar)
        is_announced |= bool(parsed.phrases) and (is_asking or points_ahead(piece) or has_text_word(piece))
        is_announced |= is_invention(bare)
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
            yield replace(sentence, parsed=parse_sentence(_BULLET.sub("", text), sentence.grammar))


def _linked(sentences: Sequence[UserSentence]) -> Iterator[UserSentence]:
    """With what each of them has to be kept with: what comes next, where that hangs on it."""
    for sentence, after in pairwise(sentences):
        if is_question(after.text, after.grammar):
            is_asked = is_back_reference(after.text, after.parsed, after.grammar)
            yield replace(sentence, is_asserted=sentence.is_asserted and not is_asked)
        elif depends_on_last(after.text, after.parsed):
            yield replace(sentence, needs=frozenset({after.place}))
        else:
            yield sentence
    yield from sentences[-1:]


def find_evidence(sentences: Sequence[str], said: Sequence[UserSentence]) -> EvidenceFound:
    """What these sentences of a memory rest on. `said`: all that the user said, in order."""
    taken_back = _find_taken_back(said)
    asserted = [one for one in said if one.is_asserted and one.at not in taken_back]
    support = [_unrevoked(_support(sentence, asserted), said) for sentence in sentences]
    while True:
        used = _join(part for parts in support for part in parts)
        incomplete = {id(one) for one, covered in used if not _is_complete(one, covered, used)}
        incomplete |= {id(one) for one, _ in used if not _is_in_order(one, support)}
        if not incomplete:
            break
        support = [() if any(id(part.said) in incomplete for part in parts) else parts for parts in support]
    unsupported = tuple(text for text, parts in zip(sentences, support, strict=True) if not parts)
    said_once = {(one.at, one.place): one for one, _ in used}
    return EvidenceFound(tuple(said_once.values()), unsupported)


def _find_taken_back(said: Sequence[UserSentence]) -> set[int]:
    """The messages that the user took back at the beginning of the next: "Forget that.". Thanks between the
    two count for nothing."""
    messages: dict[int, dict[int, str]] = {}
    for one in said:
        messages.setdefault(one.at, {}).setdefault(one.place, one.text)
    ats = sorted(messages)
    taken_back: set[int] = set()
    for place, at in enumerate(ats):
        texts = [text for _, text in sorted(messages[at].items())]
        if takes_back_message(" ".join(texts[:2])):
            before = (one for one in reversed(ats[:place]) if not _is_thanks(messages[one].values()))
            taken_back |= set(islice(before, 1))
    return taken_back


def _is_thanks(sentences: Iterable[str]) -> bool:
    return all(map(says_only_thanks, sentences))


@dataclass(frozen=True, slots=True)
class _Support:
    """A sentence of the user, and which of its phrases a sentence of a memory says."""

    said: UserSentence
    covered: frozenset[int]


def _join(parts: Iterable[_Support]) -> list[tuple[UserSentence, frozenset[int]]]:
    found: dict[int, tuple[UserSentence, frozenset[int]]] = {}
    for part in parts:
        before = found.get(id(part.said), (part.said, frozenset[int]()))[1]
        found[id(part.said)] = (part.said, before | part.covered)
    return list(found.values())


def _is_complete(
    said: UserSentence, covered: frozenset[int], used: Sequence[tuple[UserSentence, frozenset[int]]]
) -> bool:
    """Whether all of a sentence is said, and all that limits it."""
    needed = (at for at, phrase in enumerate(said.parsed.phrases) if not phrase.is_optional)
    places = {one.place for one, _ in used if one.at == said.at}
    return covered.issuperset(needed) and said.needs <= places


def _is_in_order(said: UserSentence, support: Sequence[tuple[_Support, ...]]) -> bool:
    """Whether the steps of a sentence that a memory tells in several still come one after the other."""
    core = frozenset(at for at, phrase in enumerate(said.parsed.phrases) if not phrase.is_led)
    told = [part.covered & core for parts in support for part in parts if part.said is said]
    steps = [sorted(places) for places in told if places]
    return all(one[0] <= two[0] for one, two in pairwise(steps))


def _support(sentence: str, said: Sequence[UserSentence]) -> tuple[_Support, ...]:
    """Where the user said this, as a whole or clause by clause; empty where they did not."""
    if has_hidden_text(sentence):
        return ()
    # The newest first: who changed their mind means what they said last.
    for one in reversed(said):
        covered = _match(sentence, one)
        if covered is not None:
            return (_Support(one, covered),)
    return _support_clauses(sentence, said)


def _unrevoked(parts: tuple[_Support, ...], said: Sequence[UserSentence]) -> tuple[_Support, ...]:
    """Nothing where the user said the opposite later."""
    for part in parts:
        words, negations = _content(part.said.parsed)
        for later in said:
            if (later.at, later.place) > (part.said.at, part.said.place):
                others, count = _content(later.parsed)
                if words and words <= others and count != negations:
                    return ()
    return parts


def _content(parsed: ParsedSentence) -> tuple[frozenset[str], int]:
    texts = [word.text for phrase in parsed.phrases for word in phrase.words]
    return frozenset(text for text in texts if text != NOT), texts.count(NOT)


def _support_clauses(sentence: str, said: Sequence[UserSentence]) -> tuple[_Support, ...]:
    """ "We ship on Fridays and Anna signs off first", said in two sentences of one message."""
    for at in dict.fromkeys(one.at for one in reversed(said)):
        message = [one for one in said if one.at == at]
        if len(message) < 2:
            continue
        parsed = parse_sentence(sentence, message[0].grammar)
        clauses = list(_clauses(parsed))
        found = [
            next((_Support(one, c) for one in message if (c := _match_parsed(clause, one)) is not None), None)
            for clause in clauses
        ]
        if len(clauses) > 1 and all(found):
            return tuple(part for part in found if part is not None)
    return ()


def _clauses(parsed: ParsedSentence) -> Iterator[ParsedSentence]:
    part: list[Phrase] = []
    for phrase in parsed.phrases:
        if phrase.begins_clause and part:
            yield replace(parsed, phrases=tuple(part))
            part = []
        part.append(phrase)
    if part:
        yield replace(parsed, phrases=tuple(part))


def _match(sentence: str, said: UserSentence) -> frozenset[int] | None:
    """Which phrases of what the user said a sentence says; None where it says anything else."""
    if is_unspaced(sentence) or is_unspaced(said.text):
        every = frozenset(range(len(said.parsed.phrases)))
        own = squeeze_unspaced(said.text)
        kept = squeeze_unspaced(sentence)
        kept = _UNSPACED_USER.sub(own[:1], kept) if own.startswith(("我", "私")) else kept
        return every if kept == own else None
    if said.grammar.name == "en" and makes_general(said.text, sentence):
        return None
    kept = parse_sentence(sentence, said.grammar)
    is_turned = kept.is_passive or said.parsed.is_passive
    if not is_turned and exchanges_cases(said.text, sentence, said.grammar.name):
        return None
    return _match_parsed(kept, said)


def _match_parsed(kept: ParsedSentence, said: UserSentence) -> frozenset[int] | None:
    parsed = said.parsed
    kept = _without_added_preference(kept, parsed)
    if not kept.count or changes_speaker(kept, parsed):
        return None
    plain = _Comparison(parsed, kept).match()
    if plain is not None:
        return plain
    # One of the two as it stands: with both turned, two things could change places.
    turned = [(one, kept) for one in read_otherwise(parsed)] + [(parsed, one) for one in read_otherwise(kept)]
    for one, other in turned:
        places = _Comparison(one, other).match()
        needed = {at for at, phrase in enumerate(one.phrases) if not phrase.is_optional}
        if places is not None and places >= needed:
            return frozenset(range(len(parsed.phrases)))
    return None


def _without_added_preference(kept: ParsedSentence, said: ParsedSentence) -> ParsedSentence:
    """ "The user wants short answers" says no more than "short answers"."""
    if said.has_preference or not kept.has_preference or kept.addresses_agent or not kept.speakers:
        return kept
    first = kept.phrases[0]
    if first.words[0].text not in (PREFERENCE, WISH):
        return kept
    rest = (replace(first, words=first.words[1:]),) if len(first.words) > 1 else ()
    return replace(kept, phrases=(*rest, *kept.phrases[1:]))


def changes_speaker(kept: ParsedSentence, said: ParsedSentence) -> bool:
    """ "I approve releases" does not say that the agent does."""
    if said.first in SECOND_PERSON and not said.is_obliging:
        # "You always skip the tests" may be a complaint.
        return not kept.addresses_agent
    if not said.has_own_subject or said.has_preference:
        return False
    return kept.addresses_agent or (not kept.speakers and not said.is_passive)


@dataclass(frozen=True, slots=True)
class _Comparison:
    said: ParsedSentence
    kept: ParsedSentence

    def match(self) -> frozenset[int] | None:
        places = self.match_phrases()
        return self.match_in_a_row() if places is None else places

    def match_phrases(self) -> frozenset[int] | None:
        """Phrase by phrase. What a preposition leads may stand elsewhere in a sentence of one clause."""
        places: list[int] = []
        for phrase in self.kept.phrases:
            free = (at for at in range(len(self.said.phrases)) if at not in places)
            place = next((at for at in free if self._is_same(self.said.phrases[at], phrase)), None)
            if place is None:
                return None
            places.append(place)
        core = [at for at in places if not self.said.phrases[at].is_led]
        if len(self.said.core) > 1 and (not _is_cyclic(places) or core != sorted(core)):
            return None
        return frozenset(places)

    def match_in_a_row(self) -> frozenset[int] | None:
        """All words in their order, or with the end first: "on Fridays do not deploy"."""
        needed = [(at, phrase) for at, phrase in enumerate(self.said.phrases) if not phrase.is_optional]
        words = [word for phrase in self.kept.phrases for word in phrase.words]
        for every in (list(enumerate(self.said.phrases)), needed):
            phrases = [phrase for _, phrase in every]
            turns = range(len(phrases)) if len(self.said.core) <= 1 else range(1)
            for turn in turns:
                row = [word for phrase in (*phrases[turn:], *phrases[:turn]) for word in phrase.words]
                if self._are_same(row, words) and not self._turns_passive(row, words):
                    return frozenset(at for at, _ in every)
        return None

    def _is_same(self, said: Phrase, kept: Phrase) -> bool:
        words = _without_idle(said.words, kept.words)
        if said.is_led != kept.is_led or len(words) != len(kept.words):
            return False
        if self._are_same(words, kept.words):
            return not self._turns_passive(words, kept.words)
        if not said.is_led and self._puts_verb_last(words, kept.words):
            return True
        if [word.text in (PREFERENCE, WISH) for word in words] == [True, False, False]:
            # "I like answers short" is "I like short answers".
            turned = (words[0], words[2], words[1])
            return not words[2].surface.endswith("ing") and self._are_same(turned, kept.words)
        if said.is_led or not (self.said.is_passive or self.kept.is_passive):
            return False
        words, turned_kept = _without_may(words, kept.words)
        kept = replace(kept, words=tuple(turned_kept))
        # "We no longer support it" is "it is no longer supported".
        turned = ((*words[at:], *words[:at]) for at in range(1, len(words)))
        return any(self._are_same(turn, kept.words) for turn in turned) or self._moves_verb(words, kept.words)

    def _puts_verb_last(self, said: Sequence[Word], kept: Sequence[Word]) -> bool:
        """ "Lösch den Branch" is "den Branch löschen", with "nicht" before the verb or behind."""
        if self.said.language not in _INFINITIVES or len(said) < 2:
            return False
        one = [word for word in said if word.text != NOT]
        other = [word for word in kept if word.text != NOT]
        if not one or len(one) != len(other) or len(said) - len(one) > 1:
            return False
        turned = [*one[1:], one[0]], [*other[1:], other[0]]
        # A noun may end like a verb, and does not change its form when it changes its place.
        is_last = self._is_moved_verb(one[0], other[-1]) and self._are_same(turned[0], other)
        is_first = self._is_moved_verb(other[0], one[-1]) and self._are_same(one, turned[1])
        if is_last and self.said.language in ("de", "nl") and self._is_preterite(one[0], other[-1]):
            return False
        return is_last or is_first or self._are_same(one, other)

    def _is_preterite(self, said: Word, kept: Word) -> bool:
        """ "Wir löschten es", "wir übersprangen es": what was, and no rule."""
        is_past = said.surface.endswith(("te", "ten", "test", "tet", "de", "den"))
        is_weak = is_past and not kept.surface.endswith(("ten", "den"))
        return is_weak or not is_same_word(said, kept, self.said.language, may_change_vowel=False)

    def _is_moved_verb(self, first: Word, last: Word) -> bool:
        is_infinitive = last.text.endswith(_INFINITIVES[self.said.language])
        return is_infinitive and (first.surface != last.surface or bool(self.said.speakers))

    def _moves_verb(self, said: Sequence[Word], kept: Sequence[Word]) -> bool:
        """ "Name branches feat/x" is "branches are named feat/x"."""
        for at, word in enumerate(said):
            rest = [*said[:at], *said[at + 1 :]]
            for to, other in enumerate(kept):
                is_verb = word.surface != other.surface and self._is_same_form(word, other)
                if is_verb and self._are_same(rest, [*kept[:to], *kept[to + 1 :]]):
                    return self.said.is_passive != self.kept.is_passive
        return False

    def _are_same(self, said: Sequence[Word], kept: Sequence[Word]) -> bool:
        return len(said) == len(kept) and all(map(self._is_same_form, said, kept))

    def _is_same_form(self, said: Word, kept: Word) -> bool:
        """ "We skipped it" and "we are skipping it" tell what happens, and are no rule."""
        is_past = is_past_form(said) and not is_past_form(kept) and said.text != "need"
        is_told = (is_past and not self.said.is_passive) or (said.is_going_on and not kept.is_going_on)
        language = self.said.language
        is_same = is_same_word(said, kept, language) or are_synonyms(said, kept, language)
        is_liking = {said.text, kept.text} == {PREFERENCE, WISH} and self.said.speakers and self.kept.speakers
        is_same = is_same or bool(is_liking)
        if self.said.is_perfect and not self.kept.is_perfect and said.surface != kept.surface:
            # "Wir haben das Review übersprungen" is no rule.
            is_same = is_same and said.text == kept.text
        return is_same and (not is_told or bool(self.kept.speakers))

    def _turns_passive(self, said: Sequence[Word], kept: Sequence[Word]) -> bool:
        """ "Ada reviews" is not "Ada is reviewed"."""
        if len(said) < 2 or self.said.is_passive or not self.kept.is_passive:
            return False
        if self.said.language in ("de", "nl") and self.said.speakers:
            # "Kommentare schreiben wir auf Englisch"
            return False
        pairs = zip(said, kept, strict=True)
        return any(two.surface.endswith(("ed", "en")) and one.surface != two.surface for one, two in pairs)


def _without_may(said: Sequence[Word], kept: Sequence[Word]) -> tuple[Sequence[Word], Sequence[Word]]:
    """Both without "may", where it stands in both and nothing is denied."""
    texts = [[word.text for word in words] for words in (said, kept)]
    if any(one.count("may") != 1 or NOT in one for one in texts):
        return said, kept
    return [word for word in said if word.text != "may"], [word for word in kept if word.text != "may"]


_INFINITIVES = {"de": "n", "nl": "n", "pl": "c", "ru": "ть"}
"""How a verb ends that may stand behind its object."""


def _without_idle(said: Sequence[Word], kept: Sequence[Word]) -> Sequence[Word]:
    """What was said without "all" and "I want", where the memory leaves them out."""
    left = said
    if not any(word.text == EVERY for word in kept):
        at = next((at for at, word in enumerate(left) if word.text == EVERY), -1)
        is_free = at >= 0 and (at == 0 or left[at - 1].text != NOT)
        left = [*left[:at], *left[at + 1 :]] if is_free else left
    if left and left[0].text == WISH and not any(word.text in (WISH, PREFERENCE) for word in kept):
        left = left[1:]
    return left


def _is_cyclic(places: Sequence[int]) -> bool:
    """Whether places go up, or do so after one turn."""
    falls = sum(one > two for one, two in pairwise(places))
    return falls == 0 or (falls == 1 and places[-1] < places[0])


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
_UNSPACED_USER = re.compile(r"^(?:用户|ユーザー)")
_UNSPACED_MARK = re.compile(r"[\s\W]+")


def squeeze_unspaced(text: str) -> str:
    """A sentence of a script without spaces, without polite words and marks."""
    bare = _UNSPACED_END.sub("", _UNSPACED_IDLE.sub("", normalize_text(text)))
    return _UNSPACED_MARK.sub("", _UNSPACED_TOPIC.sub("", bare)).casefold()
