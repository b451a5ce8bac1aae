"""What the user said, so that the sentences that a memory rests on are found without reading all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator

from sevenfold.layers.memory.trust.frames import announces_message, turns_back
from sevenfold.layers.memory.trust.near_words import NearMatch, NearWords
from sevenfold.layers.memory.trust.phrases import find_key
from sevenfold.layers.memory.trust.replies import says_only_thanks
from sevenfold.layers.memory.trust.scopes import takes_back_message
from sevenfold.layers.memory.trust.user_sentences import UserSentence


class SentenceIndex:
    """Sentences of one message after another, each read once."""

    def __init__(self, sentences: Iterable[UserSentence] = ()) -> None:
        self._before: tuple[tuple[_Part, int], ...] = ()
        """What belongs to the conversation that this one came from, and how much of it."""
        self._own = _Part()
        self._messages = _Messages()
        self.add(sentences)

    def add(self, sentences: Iterable[UserSentence]) -> None:
        for one in sentences:
            self._own.add(one)
            self._messages.add(one)

    def fork(self) -> SentenceIndex:
        """The same sentences, to add others to. What is added here later is not among them."""
        made = SentenceIndex()
        made._before = tuple((part, count) for part, count in self._parts())
        made._messages = self._messages.copy()
        return made

    def __iter__(self) -> Iterator[UserSentence]:
        for part, count in self._parts():
            yield from part.sentences[:count]

    def __len__(self) -> int:
        return sum(count for _, count in self._parts())

    @property
    def last_message(self) -> int | None:
        """Where the user spoke last."""
        last = [part.sentences[count - 1].at for part, count in self._parts() if count]
        return last[-1] if last else None

    def is_set_aside(self, one: UserSentence) -> bool:
        return one.at in self._messages.find_set_aside()

    def find_same(self, sentence: str) -> list[UserSentence]:
        """What says this word for word, the newest first."""
        key = find_key(sentence)
        return self._find(lambda part: part.by_key.get(key, ()))[::-1]

    def find_holding(self, words: frozenset[str]) -> list[UserSentence]:
        """What holds exactly these words, and others."""
        return self._find(lambda part: part.find_holding(words))

    def find_message(self, at: int) -> list[UserSentence]:
        return self._find(lambda part: part.by_message.get(at, ()))

    def find_near(self, sentence: str) -> list[NearMatch]:
        """What shares most words with this sentence, by the first word that both have, the newest first."""
        parts = list(self._parts())
        found = [one for part, count in reversed(parts) for one in part.read_near().find(sentence, count)]
        names = [name for part, _ in parts for name in part.read_near().grammars]
        age = {name: -at for at, name in enumerate(names)}
        ordered = sorted(found, key=lambda one: (age.get(one.language, -len(names)), one.first))
        return [one.match for one in ordered]

    def _parts(self) -> Iterator[tuple[_Part, int]]:
        yield from self._before
        yield self._own, len(self._own.sentences)

    def _find(self, find: Callable[[_Part], Iterable[int]]) -> list[UserSentence]:
        """Sentences by their numbers, in order."""
        return [
            part.sentences[number]
            for part, count in self._parts()
            for number in sorted(find(part))
            if number < count
        ]


class _Part:
    """Sentences by what they say, by their words and by their messages."""

    def __init__(self) -> None:
        self.sentences: list[UserSentence] = []
        self.by_key: dict[str, list[int]] = {}
        self.by_message: dict[int, list[int]] = {}
        self._by_word: dict[str, set[int]] = {}
        self._near = NearWords()
        self._near_count = 0

    def add(self, one: UserSentence) -> None:
        number = len(self.sentences)
        self.sentences.append(one)
        self.by_key.setdefault(one.key, []).append(number)
        self.by_message.setdefault(one.at, []).append(number)
        for word in one.parsed.words:
            self._by_word.setdefault(word.text, set()).add(number)

    def find_holding(self, words: frozenset[str]) -> set[int]:
        found = sorted((self._by_word.get(word, set[int]()) for word in words), key=len)
        smallest, *others = found or [set[int]()]
        return smallest.intersection(*others)

    def read_near(self) -> NearWords:
        """The same sentences by what is near to them, read when somebody first asks."""
        for number in range(self._near_count, len(self.sentences)):
            self._near.add(self.sentences[number], number)
        self._near_count = len(self.sentences)
        return self._near


class _Messages:
    """Which messages the user took back at the beginning of the next ("Forget that."), or announced at the
    end of the one before ("Here comes the text."). Thanks between the two count for nothing."""

    def __init__(self) -> None:
        self._texts: dict[int, dict[int, str]] = {}
        self._unread: set[int] = set()
        self._stating: list[int] = []
        self._revoking: list[int] = []
        self._announcing: list[int] = []
        """In order: messages that are more than thanks, that take back the one before, that announce the
        next."""
        self._set_aside: frozenset[int] = frozenset()

    def copy(self) -> _Messages:
        made = _Messages()
        made._texts, made._unread = dict(self._texts), set(self._unread)
        made._stating, made._revoking = list(self._stating), list(self._revoking)
        made._announcing, made._set_aside = list(self._announcing), self._set_aside
        return made

    def add(self, one: UserSentence) -> None:
        before = self._texts.get(one.at, {})
        if one.place not in before:
            self._texts[one.at] = {**before, one.place: one.text}
            self._unread.add(one.at)

    def find_set_aside(self) -> frozenset[int]:
        if self._unread:
            for at in self._unread:
                self._read(at)
            self._unread.clear()
            before = (bisect_left(self._stating, at) - 1 for at in self._revoking)
            after = (bisect_right(self._stating, at) for at in self._announcing)
            found = (place for place in (*before, *after) if 0 <= place < len(self._stating))
            self._set_aside = frozenset(self._stating[place] for place in found)
        return self._set_aside

    def _read(self, at: int) -> None:
        texts = [text for _, text in sorted(self._texts[at].items())]
        is_back = takes_back_message(" ".join(texts[:2])) or turns_back(" ".join(texts))
        _keep(self._revoking, at, is_in=is_back)
        _keep(self._announcing, at, is_in=announces_message(texts[-1]))
        _keep(self._stating, at, is_in=not all(map(says_only_thanks, texts)))


def _keep(places: list[int], at: int, *, is_in: bool) -> None:
    """Have a number in a sorted list, or not."""
    place = bisect_left(places, at)
    is_known = places[place : place + 1] == [at]
    if is_in and not is_known:
        insort(places, at)
    elif is_known and not is_in:
        del places[place]
