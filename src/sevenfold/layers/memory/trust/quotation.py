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
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from sevenfold.core.text.stems import normalize_text, split_sentences
from sevenfold.layers.memory.trust.evidence import find_evidence
from sevenfold.layers.memory.trust.frames import has_text_word, is_text_word, takes_back_message
from sevenfold.layers.memory.trust.near_words import (
    MIN_OWN_SHARE,
    NearMatch,
    is_quotable,
    may_be_related,
    read_content_words,
    share_words,
)
from sevenfold.layers.memory.trust.scopes import is_invention, makes_general
from sevenfold.layers.memory.trust.sentence_index import SentenceIndex
from sevenfold.layers.memory.trust.taint import Attribution, ConversationSources
from sevenfold.layers.memory.trust.tokens import (
    Word,
    has_hidden_text,
    read_word_set,
    split_tokens,
)
from sevenfold.layers.memory.trust.user_sentences import UserSentence

MIN_ADDED_WORDS = 2
"""Of a model's sentence, that another of the same message has and the first has not: it put two into one."""
MIN_BESIDE_SHARE = 0.6
"""Of the words of a sentence beside one that is near, in the model's."""
MIN_TOGETHER = 3
"""Of a model's sentence, that stand in several sentences of the user together."""
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
    r"^\W*poderia)\b(?![^,.;]*\b(?:whether|if|tell|say|explain|check|look|find|see|show|ask|confirm|verify|ob|"
    r"sagen|prüfen|dire|vérifier|decir\w*|comprobar|dizer|verificar)\b)",
    re.IGNORECASE,
)
"""Words of doubt in form that ask for something."""
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


_ABOUT_USER = re.compile(r"\W*(?:the )?user\b", re.IGNORECASE)
_OF_ONESELF = re.compile(
    r"(?!.*(?:\b(?:sicher|überrascht|sûre?|surprise?|segur[oa]|sicur[oa]|cert[oa]|zeker|pew(?:ien|na))\b|"
    r"思|생각|说|看|读|我在想|読|書|言|문서|읽|"
    r"\b(?:que|qu|che|dass|daß|dat|że|что)\b|nutzer|usu[aá]rio|utilisateur|utente|gebruiker|użytkowni|"
    r"пользовател|ユーザ|用户|사용자))\W*(?:(?:ich (?:bin|arbeite|wohne)|je (?:suis|travaille|préfère)|"
    r"(?:yo )?(?:soy|trabajo|prefiero|vivo)|(?:io )?(?:sono|lavoro|preferisco|vivo)|"
    r"(?:eu )?(?:sou|trabalho|prefiro|moro)|ik (?:ben|werk|woon)|(?:ja )?(?:jestem|pracuję|wolę|mieszkam)|"
    r"я (?:работаю|живу|предпочитаю))\b|"
    r"(?:私|僕|俺|わたし)は|我(?:是|在|做|喜欢|更喜欢|习惯|住)|(?:저|나)는|(?:전|난)\s)",
    re.IGNORECASE,
)
"""How statements about oneself begin in languages other than English, with no thoughts and nothing read."""


def quote_user(body: str, found: Attribution, sources: ConversationSources) -> str | None:
    """A body that says what the user said where a model said it in other words; None where they said nothing
    of the kind, or somebody else said something like it. `found`: whose words the body is.

    What a model adds to that, such as advice on how to apply it, is nobody's rule and left out.
    """
    sentences = split_sentences(body)
    is_changed = not found.unsupported or not set(found.unsupported) <= set(sentences)
    if is_changed or has_hidden_text(body) or any(map(sources.is_shown, found.unsupported)):
        return None
    said = sources.sentences
    chosen = {text: _choose(text, said) for text in found.unsupported}
    messages = {one.at for own in chosen.values() for one in own} | set(found.messages)
    if not messages:
        return None
    beside = [one for at in messages for one in said.find_message(at) if is_quotable(one)]
    for text, own in chosen.items():
        # "Explain it without code." stands beside "I'm the product manager.", which was found.
        chosen[text] = own or [
            one for one in beside if share_words(text, one) and _may_replace(text, one, said)
        ]
    quoted = list(found.evidence)
    instead: dict[str, str] = {}
    # The longest first: nothing is left of a heading, and of the rest of a sentence that is there already.
    for text, own in sorted(chosen.items(), key=lambda pair: -len(pair[0])):
        new = [one for one in own if one.text not in quoted]
        whole = {part.text: part for one in new for part in _whole(one, said) if part.text not in quoted}
        instead[text] = " ".join(sorted(whole, key=lambda part: (whole[part].at, whole[part].place)))
        quoted += whole
    uses = Counter(one.text for own in chosen.values() for one in own)
    shared = {text for text, own in chosen.items() if any(uses[one.text] > 1 for one in own)}
    return _replace_sentences(body, instead, shared) or None


def _choose(sentence: str, said: SentenceIndex) -> list[UserSentence]:
    """The sentences of the user that say most of it, the newest of several: one, or more of one message where
    a model put them together."""
    found = said.find_near(sentence)
    last = said.last_message
    # "Look there for context." is not "Look around first.", said long before.
    told = (match for match in found if match.said.at == last or len(match.common) > 1)
    near = sorted((match for match in told if match.is_near), key=lambda match: -match.share)
    usable = [match for match in near[:MAX_TRIED] if _may_replace(sentence, match.said, said)]
    beside = (match for match in found if usable and match.said.at == usable[0].said.at)
    usable += [
        match
        for match in beside
        if match.said_share >= MIN_BESIDE_SHARE
        and match not in usable
        and _may_replace(sentence, match.said, said)
    ]
    chosen = _join(usable, MIN_ADDED_WORDS) if usable else _choose_together(sentence, found, said)
    if not chosen and _ABOUT_USER.match(sentence):
        return _choose_about_user(sentence, said)
    return sorted((match.said for match in chosen), key=lambda one: one.place)


def _choose_together(sentence: str, found: Sequence[NearMatch], said: SentenceIndex) -> list[NearMatch]:
    """Sentences of one message that say most of it together, where none does by itself."""
    for at in sorted({match.said.at for match in found}, reverse=True):
        beside = [match for match in found if match.said.at == at]
        chosen = _join(sorted(beside, key=lambda match: -match.share), 1)
        common = frozenset[str]().union(*(match.common for match in chosen))
        share = len(common) * chosen[0].share / len(chosen[0].common)
        is_most = len(common) >= MIN_TOGETHER and share >= MIN_OWN_SHARE
        if is_most and all(_may_replace(sentence, match.said, said) for match in chosen):
            return chosen
    return []


def _choose_about_user(sentence: str, said: SentenceIndex) -> list[UserSentence]:
    """What the user said of themselves in another language, where it is one sentence of the last message: a
    statement about them in translation rests on nothing else."""
    last = said.last_message
    told = [
        one
        for one in ([] if last is None else said.find_message(last))
        if is_quotable(one) and _OF_ONESELF.match(one.text) and not has_text_word(one.text)
    ]
    return told if len(told) == 1 and _may_replace(sentence, told[0], said) else []


def _join(matches: Sequence[NearMatch], least: int) -> list[NearMatch]:
    """The first, and those of its message that have more words of it."""
    chosen: list[NearMatch] = []
    for match in matches:
        words = frozenset[str]().union(*(one.common for one in chosen))
        is_beside = all(one.said.at == match.said.at for one in chosen)
        if not chosen or (is_beside and len(match.common - words) >= least):
            chosen.append(match)
    return chosen


def _may_replace(sentence: str, one: UserSentence, said: SentenceIndex) -> bool:
    """Whether it still holds, and the model has not made a statement of a doubt or a rule of one task."""
    if is_invention(one.text) or _drops_stance(sentence, one) or _drops_frame(sentence, one):
        return False
    if one.grammar.name == "en" and makes_general(one.text, sentence):
        return False
    if any(takes_back_message(other.text) for other in _find_limits(one, said)):
        return False
    whole = " ".join(dict.fromkeys(part.text for part in _whole(one, said)))
    return not find_evidence(split_sentences(whole), said).unsupported


def _drops_stance(sentence: str, one: UserSentence) -> bool:
    """Whether a word is missing that shows doubt, or that somebody else says it, or that it was so once."""
    if _FORMERLY.search(one.text):
        return True
    kept = split_tokens(sentence)
    is_opening = True
    said = split_tokens(_ASKING_POLITELY.sub(" ", _REMINDING.sub(" ", one.text)))
    for before, word in pairwise([Word("", ""), *said]):
        is_kept = any(may_be_related(word, other) for other in kept)
        # "Tom's comment was that …", and not "comments that say what the code says".
        is_wanting = word.text in _WANTING and before.text not in _FIRST_PERSON
        is_telling = is_opening and (is_text_word(word.text) or is_wanting)
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


def _whole(one: UserSentence, said: SentenceIndex) -> list[UserSentence]:
    """A sentence with those that limit it or lead it in, in order."""
    return sorted((*_find_limits(one, said), one), key=lambda each: each.place)


def _find_limits(one: UserSentence, said: SentenceIndex) -> Iterator[UserSentence]:
    """Those that it has to be kept with, and those that they have to be kept with."""
    beside = said.find_message(one.at) if one.needs else []
    known, left = {one.place}, one.needs
    while left:
        found = [other for other in beside if other.place in left]
        yield from found
        known |= left
        left = frozenset[int]().union(*(other.needs for other in found)) - known


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
                made, rest = made + lead + left[old], behind
                left[old] = ""
            elif found:
                made, rest = made + before + old, behind
        changed = made + rest
        if changed == line:
            lines.append(line.rstrip())
        elif split_sentences(changed):
            lines.append(_GAP.sub(" ", changed).rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


_LABEL = re.compile(r"^(\s*(?:[-*•+]\s+|\d+[.)]\s+)?)[^\n]*\*\*[^\n]*$")
"""The start of a line up to a sentence: "- **Why:** "."""
_GAP = re.compile(r"(?<=\S) {2,}")
