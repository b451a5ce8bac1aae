"""The user's own sentence in place of one that a model put in words of its own.

Nothing is trusted here: what comes out is judged again, and holds only sentences that the user asserted and
that a model could have written down as they stand. So this chooses which sentence a model meant, and cannot
let anything in.

Whether a sentence in other words says the same cannot be told by its words. Who else said it can: where a
page, a tool or a file holds something like it, a person had better look at it, and it stays as it was
written. Where nobody does, the model can only have meant the user.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TypeAlias

from sevenfold.core.text.stems import normalize_text, split_sentences
from sevenfold.layers.memory.trust.evidence import find_evidence
from sevenfold.layers.memory.trust.frames import (
    is_telling_word,
    shows_text,
)
from sevenfold.layers.memory.trust.near_words import (
    MIN_OWN_SHARE,
    NearMatch,
    is_quotable,
    may_be_related,
    read_content_words,
    share_words,
)
from sevenfold.layers.memory.trust.phrases import find_grammar
from sevenfold.layers.memory.trust.replies import is_request
from sevenfold.layers.memory.trust.scopes import (
    is_invention,
    lasts,
    makes_general,
    takes_back_within,
)
from sevenfold.layers.memory.trust.sentence_index import SentenceIndex
from sevenfold.layers.memory.trust.taint import Attribution, ConversationSources
from sevenfold.layers.memory.trust.tokens import (
    Word,
    has_hidden_text,
    is_unspaced,
    read_word_set,
    split_tokens,
)
from sevenfold.layers.memory.trust.user_sentences import UserSentence

MIN_ADDED_WORDS = 2
"""Of a model's sentence, that another of the same message has and the first has not: it put two into one."""
MIN_BESIDE_SHARE = 0.5
"""Of the words of a sentence beside one that is near, in the model's."""
MIN_TOGETHER = 3
"""Of a model's sentence, that stand in several sentences of the user together."""
MIN_PASSAGE_WORDS, MIN_PASSAGE_SHARE = 2, 0.3
"""Words of a model's sentence that stand in a message of which no sentence says most of it; their share."""
MAX_PASSAGE_SENTENCES = 3
"""Of what is kept of such a message."""
MAX_LIMITS = 12
"""Sentences that limit one of the user's: where each hangs on the next, the text is no statement to keep."""
MAX_UNSUPPORTED = 40
"""Sentences of a memory that are looked for: each is compared with all that the user said."""
MAX_TRIED = 16
"""Of the user's sentences near to one of a model: whether one still holds depends on all the others."""

_DOUBTING = read_word_set(
    "maybe perhaps probably possibly might could think guess suppose suspect assume believe wonder doubt "
    "fear afraid worry worried unsure uncertain hope wish convinced kidding joking supposedly allegedly "
    "apparently vielleicht wahrscheinlich vermutlich angeblich glaube denke vermute fürchte hoffe könnte "
    "könnten peut-être probablement crois pense crains espère pourrait pourrions quizás quizá tal-vez "
    "probablemente supuestamente creo pienso temo espero podría podríamos forse probabilmente credo penso "
    "temo spero potrebbe talvez provavelmente acho penso receio misschien waarschijnlijk vermoedelijk denk "
    "geloof vrees hoop zou może chyba prawdopodobnie myślę sądzę obawiam возможно наверное вероятно думаю "
    "кажется боюсь надеюсь якобы according selon apres laut segun secondo segundo volgens według "
    "словам früher vroeger autrefois dawniej antigamente antaño раньше"
)
"""Words by which somebody takes back some of what they say. A model that leaves one out has changed it."""
_REMINDING = re.compile(
    r"\b(?:pensez? (?:bien )?à|denk (?:er )?aan|pensa (?:a|di)|piensa en)\b", re.IGNORECASE
)
"""Words of that kind that ask somebody to keep something in mind."""
_ASKING_POLITELY = re.compile(
    r"(?:^\W*(?:(?:hey|hi|and|also|so)\W+)?(?:could|would) (?:you|we)|\bif you (?:could|would|might)|"
    r"^\W*(?:könntest du|könnten sie)|^\W*(?:pourriez-vous|pourrais-tu)|^\W*podrías?|^\W*potr(?:esti|ebbe)|"
    r"^\W*poderia)\b(?![^,.;]*\b(?:whether|if|tell|say|explain|check|look|find|see|show|ask|confirm|verify|"
    r"ob|"
    r"sagen|prüfen|dire|vérifier|decir\w*|comprobar|dizer|verificar)\b)",
    re.IGNORECASE,
)
"""Words of doubt in form that ask for something."""
_POLITE = re.compile(r"^\W*\w+\W+\w+")
"""The first two words of a wish: "could you"."""
_FORMERLY = re.compile(r"\bused to\b", re.IGNORECASE)
_WANTING = read_word_set("wants veut quiere vuole quer wil chce хочет vill")
"""Tells what somebody else wants, unless it stands behind one of the next."""
_FIRST_PERSON = read_word_set("ik jag jeg")
_FRAME_END = re.compile(
    r"^\W*\w+(?=:\s)|\b(?:that (?=we|you|they|it|the|i)|dass|daß|dat we|że|что)\b", re.IGNORECASE
)
"""Ends what may lead in a sentence of somebody else."""
_MENTIONING = re.compile(
    r"\W*(?:\w+\W+){0,3}?(?:(?:i|we)(?:['’]d| should| must| would)?(?: have| like to| want to| wanted to)? "
    r"(?:forgot to |just )?(?:mention|mentioned|say|said|add|told you|tell you)|"
    r"ich (?:wollte|sollte|muss|hätte)\b[^,.]*\b(?:sagen|erwähnen|ergänzen)|ich habe? "
    r"vergessen[^.]*(?:sagen|erwähnen)|"
    r"j'ai oublié de (?:te |vous )?(?:le )?(?:dire|préciser|mentionner)|(?:se me )?olvid[éó] "
    r"(?:decir|comentar)\w*|"
    r"ho dimenticato di dir\w+|esqueci de (?:dizer|falar)|ik vergat te (?:zeggen|melden)|"
    r"zapomni\w+ (?:powiedzieć|wspomnieć)|забыла? сказать)\b",
    re.IGNORECASE,
)
"""Leads in a sentence of the user's own: "I forgot to mention that …"."""


_UNSURE = re.compile(
    r"\b(?:sicher|überrascht|sûre?|surprise?|segur[oa]|sicur[oa]|cert[oa]|zeker|pew(?:ien|na)|text|texte?|"
    r"texto|testo|"
    r"tekst\w*|nutzer|usu[aá]rio|utilisateur|utente|gebruiker|użytkowni\w*|пользовател\w*)\b|ユーザ|用户|사용자",
    re.IGNORECASE,
)
"""Words of somebody who reads or wonders about what a memory says."""
_DELEGATING = re.compile(
    r"\b(?:remember|note|memori[sz]e|save|learn|merke? dir|retiens|recuerda|apunta|ricorda|segna|"
    r"lembra|anota|onthoud|"
    r"zapamiętaj|запомни)\W+(?:how|what|which|the|wie|was|comment|ce qu|cómo|lo que|come|quello|como|o "
    r"que|hoe|wat|jak|co|как|"
    r"что)\b|记住.{0,4}(?:怎么|什么|规则)|(?:方法|ルール|内容)を覚え",
    re.IGNORECASE,
)
"""Asks to remember what somebody else wrote: "Remember how we work here."."""


def quote_user(body: str, found: Attribution, sources: ConversationSources) -> str | None:
    """A body that says what the user said where a model said it in other words; None where they said nothing
    of the kind, or somebody else said something like it. `found`: whose words the body is.

    What a model adds to that, such as advice on how to apply it, is nobody's rule and left out.
    """
    sentences = split_sentences(body)
    is_changed = not found.unsupported or not set(found.unsupported) <= set(sentences)
    if is_changed or has_hidden_text(body) or len(found.unsupported) > MAX_UNSUPPORTED:
        return None
    shown = {text for text in found.unsupported if sources.is_shown(text)}
    if not shown <= _read_advice(body):
        return None
    search = _QuoteSearch(body, sources.sentences)
    chosen = search.choose_for_each(text for text in found.unsupported if text not in shown)
    messages = {one.at for own in chosen.values() for one in own} | set(found.messages)
    if not messages and not any(map(sources.is_said_elsewhere, shown)):
        chosen |= search.choose_passage(list(chosen))
        messages = {one.at for own in chosen.values() for one in own}
    if not messages:
        return None
    chosen = search.add_beside(chosen, messages)
    uses = Counter(one.text for own in chosen.values() for one in own)
    shared = {text for text, own in chosen.items() if any(uses[one.text] > 1 for one in own)}
    instead = dict.fromkeys(shown, "") | search.write_instead(chosen, found.evidence)
    return _replace_sentences(body, instead, shared) or None


def _read_advice(body: str) -> set[str]:
    """Sentences of lines such as "**How to apply:** …"."""
    lines = (line for line in body.split("\n") if _LABELLED.match(line))
    return {sentence for line in lines for sentence in split_sentences(line)}


_LABELLED = re.compile(r"\s*(?:[-*•+]\s+)?\*\*[^*\n]+\*\*")
_Choice: TypeAlias = dict[str, list[UserSentence]]
"""By a sentence of a model: those of the user that take its place."""


class _QuoteSearch:
    """Looks for the user's sentences that a model put in words of its own."""

    def __init__(self, body: str, said: SentenceIndex) -> None:
        self._kept, self._said = split_tokens(body), said

    def choose_for_each(self, texts: Iterable[str]) -> _Choice:
        return {text: self._choose(text) for text in texts}

    def choose_passage(self, texts: Sequence[str]) -> _Choice:
        """What the user asserted in one message, where that is short: one with several words of what a model
        wrote, or the last one where it wrote in another language."""
        found = {text: _group_by_message(self._said.find_near(text)) for text in texts}
        for at in sorted({at for near in found.values() for at in near}, reverse=True):
            for text, near in found.items():
                beside = [match for match in near.get(at, ()) if match.common]
                common = frozenset[str]().union(*(match.common for match in beside))
                share = max((len(common) * match.share / len(match.common) for match in beside), default=0)
                if len(common) >= MIN_PASSAGE_WORDS and share >= MIN_PASSAGE_SHARE:
                    return {text: self._quote_passage(text, at)}
        last = self._said.last_message
        first = texts[0] if texts else ""
        if last is not None and first and _is_translation(first, self._said.find_message(last)):
            passage = self._quote_passage(first, last)
            return {} if any(_UNSURE.search(one.text) for one in passage) else {first: passage}
        return {}

    def add_beside(self, chosen: _Choice, messages: Collection[int]) -> _Choice:
        """With sentences of the same messages: those that have a word of a sentence for which none was found,
        and those of a word or two ("Dyslexic here.")."""
        beside = [one for at in messages for one in self._said.find_message(at) if is_quotable(one)]
        added: _Choice = {}
        for text, own in chosen.items():
            # "Explain it without code." stands beside "I'm the product manager.", which was found.
            near = (one for one in beside if share_words(text, one) and self._may_replace(text, one))
            found = own or list(near)
            added[text] = [*found, *self._find_short(text, found, messages)]
        return added

    def write_instead(self, chosen: _Choice, evidence: Iterable[str]) -> dict[str, str]:
        """What takes the place of each sentence, with those of the user that limit it; nothing where that is
        there already, such as of the rest of a sentence and of a heading: the longest first."""
        quoted, instead = list(evidence), dict[str, str]()
        for text, own in sorted(chosen.items(), key=lambda pair: -len(pair[0])):
            new = [one for one in own if one.text not in quoted]
            whole = {part.text: part for one in new for part in self._whole(one) if part.text not in quoted}
            ordered = sorted(whole, key=lambda part: (whole[part].at, whole[part].place))
            instead[text] = "".join(map(_end, ordered[:-1])) + "".join(ordered[-1:])
            quoted += whole
        return instead

    def _choose(self, sentence: str) -> list[UserSentence]:
        """The sentences of the user that say most of it, the newest of several: one, or more of one message
        where a model put them together."""
        found, last = self._said.find_near(sentence), self._said.last_message
        # "Look there for context." is not "Look around first.", said long before.
        told = (match for match in found if match.said.at == last or len(match.common) > 1)
        near = sorted((match for match in told if match.is_near), key=lambda match: -match.share)
        usable = [match for match in near[:MAX_TRIED] if self._may_replace(sentence, match.said)]
        beside = (match for match in found if usable and match.said.at == usable[0].said.at)
        usable += [
            match
            for match in beside
            if match.said_share >= MIN_BESIDE_SHARE
            and match not in usable
            and self._may_replace(sentence, match.said)
        ]
        chosen = _join(usable, MIN_ADDED_WORDS) if usable else self._choose_together(sentence, found)
        return sorted((match.said for match in chosen), key=lambda one: one.place)

    def _choose_together(self, sentence: str, found: Sequence[NearMatch]) -> list[NearMatch]:
        """Sentences of one message that say most of it together, where none does by itself."""
        for _, beside in sorted(_group_by_message(found).items(), reverse=True):
            chosen = _join(sorted(beside, key=lambda match: -match.share), 1)
            common = frozenset[str]().union(*(match.common for match in chosen))
            share = len(common) * chosen[0].share / len(chosen[0].common)
            is_most = len(common) >= MIN_TOGETHER and share >= MIN_OWN_SHARE
            if is_most and all(self._may_replace(sentence, match.said) for match in chosen):
                return chosen
        return []

    def _quote_passage(self, text: str, at: int) -> list[UserSentence]:
        """What lasts of a message: no task, and nothing that shows a text."""
        message = self._said.find_message(at)
        if any(takes_back_within(one.text) for one in message):
            return []
        lasting = (one for one in message if one.is_asserted and lasts(one.text, one.grammar))
        own = (one for one in lasting if not shows_text(one.text) and not _DELEGATING.search(one.text))
        whole = [one for one in own if self._may_replace(text, one)]
        is_short = len(whole) <= MAX_PASSAGE_SENTENCES
        return whole if is_short and any(map(is_quotable, whole)) else []

    def _find_short(
        self, sentence: str, chosen: Sequence[UserSentence], messages: Collection[int]
    ) -> Iterator[UserSentence]:
        for one in (one for at in messages for one in self._said.find_message(at)):
            is_new = one not in chosen and not is_quotable(one) and one.is_asserted and "…" not in one.text
            if is_new and share_words(sentence, one) and self._may_replace(sentence, one):
                yield one

    def _may_replace(self, sentence: str, one: UserSentence) -> bool:
        """Whether it still holds, and the model has not made a statement of a doubt or a rule of one task."""
        if is_invention(one.text) or _drops_stance(self._kept, one) or _drops_frame(sentence, one):
            return False
        if one.grammar.name == "en" and makes_general(one.text, sentence):
            return False
        limits = list(islice(self._find_limits(one), MAX_LIMITS + 1))
        if len(limits) > MAX_LIMITS or any(takes_back_within(other.text) for other in limits):
            return False
        whole = " ".join(dict.fromkeys(part.text for part in self._whole(one)))
        return not find_evidence(split_sentences(whole), self._said).unsupported

    def _whole(self, one: UserSentence) -> list[UserSentence]:
        """A sentence with those that limit it or lead it in, in order."""
        return sorted((*self._find_limits(one), one), key=lambda each: each.place)

    def _find_limits(self, one: UserSentence) -> Iterator[UserSentence]:
        """Those that it has to be kept with, and those that they have to be kept with."""
        beside: dict[int, list[UserSentence]] = {}
        for other in self._said.find_message(one.at) if one.needs else ():
            beside.setdefault(other.place, []).append(other)
        known, left = {one.place}, one.needs
        while left:
            found = [other for place in sorted(left) for other in beside.get(place, ())]
            yield from found
            known |= left
            left = frozenset[int]().union(*(other.needs for other in found)) - known


def _group_by_message(matches: Iterable[NearMatch]) -> dict[int, list[NearMatch]]:
    grouped: dict[int, list[NearMatch]] = {}
    for match in matches:
        grouped.setdefault(match.said.at, []).append(match)
    return grouped


def _join(matches: Sequence[NearMatch], least: int) -> list[NearMatch]:
    """The first, and those of its message that have more words of it."""
    chosen: list[NearMatch] = []
    for match in matches:
        words = frozenset[str]().union(*(one.common for one in chosen))
        is_beside = all(one.said.at == match.said.at for one in chosen)
        if not chosen or (is_beside and len(match.common - words) >= least):
            chosen.append(match)
    return chosen


_ASIDE = re.compile(r"\([^()]*\)")
"""May hold the user's own word."""


def _is_translation(text: str, message: Sequence[UserSentence]) -> bool:
    """Whether a model wrote in a language in which the user did not speak."""
    text = _ASIDE.sub("", text)
    if not all(
        any(word.text in one.text.casefold() for one in message)
        for word in split_tokens(text)
        if word.is_exact
    ):
        # "Trainees use port 80." of somebody who named no port.
        return False
    unspaced = [is_unspaced(one.text) for one in message]
    if is_unspaced(text):
        return bool(message) and not any(unspaced)
    return all(unspaced) or find_grammar(text).name not in {one.grammar.name for one in message}


def _drops_stance(kept: Sequence[Word], one: UserSentence) -> bool:
    """Whether a word is missing that shows doubt, or that somebody else says it, or that it was so once."""
    if _FORMERLY.search(one.text):
        return True
    is_opening = True
    text = _REMINDING.sub(" ", one.text)
    said = split_tokens(_POLITE.sub(" ", text) if is_request(text) else _ASKING_POLITELY.sub(" ", text))
    for before, word in pairwise([Word("", ""), *said]):
        is_kept = any(may_be_related(word, other) for other in kept)
        # "Tom's comment was that …", and not "comments that say what the code says".
        is_wanting = word.text in _WANTING and before.text not in _FIRST_PERSON
        is_telling = is_opening and (is_telling_word(word.text) or is_wanting)
        is_doubting = word.text in _DOUBTING and before.text != "in"
        # "D'après eux, …", and not "après la démo".
        is_doubting &= word.text != "apres" or before.text == "d"
        if not is_kept and (is_telling or is_doubting):
            return True
        is_opening &= not is_kept
    return False


def _drops_frame(sentence: str, one: UserSentence) -> bool:
    """Whether nothing is left of what leads the sentence in: "Bad advice: …", "Rumour has it that …"."""
    kept = split_tokens(sentence)
    if _MENTIONING.match(one.text):
        return False
    heads = (read_content_words(one.text[: end.end()], one.grammar) for end in _FRAME_END.finditer(one.text))
    return any(
        head and not any(may_be_related(word, other) for word in head for other in kept) for head in heads
    )


def _replace_sentences(body: str, instead: Mapping[str, str], shared: Collection[str]) -> str:
    """The body with some of its sentences exchanged or left out. `shared`: those whose place is taken by what
    stands for others too, so that "**Why:**" does not fit before it."""
    left = dict(instead)
    lines: list[str] = []
    for line in normalize_text(body).split("\n"):
        made, rest = "", line
        for old in split_sentences(line):
            before, found, behind = rest.partition(old)
            if found and old in left:
                lead = _LABEL.sub(r"\1", before) if old in shared else before
                is_behind = bool(left[old]) and any(mark.isalnum() for mark in made)
                start = f"{_end(made)}{lead.lstrip()}" if is_behind else made + lead
                made, rest = start + left[old], behind
                left[old] = ""
            elif found:
                made, rest = made + before + old, behind
        changed = made + rest
        if changed == line:
            lines.append(line.rstrip())
        elif split_sentences(changed):
            lines.append(_GAP.sub(" ", changed).rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _end(text: str) -> str:
    """With a mark behind it, before another sentence."""
    bare = text.rstrip()
    if is_unspaced(bare):
        return bare if _ENDED.search(bare) else f"{bare}。"
    return f"{bare} " if _ENDED.search(bare) else f"{bare}. "


_ENDED = re.compile(r"[.!?。！？…:;：；*]\W*$")
_LABEL = re.compile(r"^(\s*(?:[-*•+]\s+|\d+[.)]\s+)?)[^\n]*\*\*[^\n]*$")
"""The start of a line up to a sentence: "- **Why:** "."""
_GAP = re.compile(r"(?<=\S) {2,}")
