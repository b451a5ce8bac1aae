"""The words of a sentence in the order in which they are compared: verbs in one piece, "first" in front,
"ne … jamais" as one negation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sevenfold.layers.memory.trust.tokens import BREAK, Grammar, Word, read_word_set

_AND = {
    "de": "und sowie",
    "fr": "et",
    "es": "y e",
    "it": "e ed",
    "pt": "e",
    "nl": "en",
    "pl": "i oraz",
    "ru": "и",
}


def is_and(token: Word, grammar: Grammar) -> bool:
    """Whether it joins two clauses or things; with an accent "é" and "è" are verbs."""
    return token.text in _AND.get(grammar.name, "and").split() and token.surface not in ("é", "è")


CONJUNCTIONS = read_word_set(
    "if when whenever while where unless until till before after once because since although though whether "
    "which who whose what why how than then but or nor wenn falls sofern solange sobald nachdem bevor ehe "
    "aber sondern oder weil denn obwohl ob damit als dann quand lorsque mais ou car parce puis comme dont "
    "où qui tant si cuando mientras pero sino o porque pues aunque luego como donde quien se quando mentre "
    "finché ma oppure perché poiché come dove chi enquanto mas pois embora onde quem caso wanneer indien "
    "zolang zodra nadat voordat tenzij maar of want omdat hoewel jeśli jeżeli gdy kiedy dopóki aż chyba ale "
    "lecz lub albo bo ponieważ choć jak gdzie kto co если когда пока но или либо потому хотя как где кто"
)
"""Lead a clause with a verb of its own, unlike a preposition."""
SUBJECTS_AFTER_VERB = frozenset(("wir", "ich", "du", "ihr", "man", "we", "wij", "ik", "je", "jij", "jullie"))
_SEPARABLE = {
    "de": read_word_set("an auf aus ab ein vor nach um zurück los weg fest bei mit zu"),
    "nl": read_word_set("aan op uit af in over toe mee door weg terug"),
}
"""Stand at the end of a clause and belong to its verb: "leg ein Ticket an"."""
_WEEKDAYS = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_ON_WEEKDAYS = {f"{day}s": day for day in _WEEKDAYS}
THEN = read_word_set(
    "then afterwards dann danach anschließend dan daarna alors puis ensuite entonces allora poi então "
    "wtedy potem następnie потом затем"
)
_FIRST = read_word_set("first zuerst erst eerst primero najpierw сначала")


def join_words(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """Without "in this project", with "first" before what comes first, and each verb in one piece."""
    return _joined(_with_first_ahead(_without_place(tokens, grammar), grammar), grammar)


def reorder_words(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """With nouns before what they belong to, and each negation once."""
    return _denied_once(_reordered(tokens, grammar), grammar)


def _joined(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """With each verb that is written in two parts in one: "leg ein Ticket an" as "anleg ein Ticket"."""
    prefixes = _SEPARABLE.get(grammar.name)
    if not prefixes:
        return [part for token in tokens for part in _on_weekdays(token)]
    made: list[Word] = []
    verb = -1
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else Word(BREAK, BREAK)
        is_end = after.is_break or is_and(after, grammar) or after.text in CONJUNCTIONS
        if token.text in prefixes and is_end and verb >= 0 and verb < len(made) - 1:
            made[verb] = replace(made[verb], text=token.text + made[verb].text)
            continue
        if token.is_break or is_and(token, grammar) or token.text in CONJUNCTIONS:
            verb = -1
        elif after.text in SUBJECTS_AFTER_VERB or (
            verb < 0
            and not (token.is_exact or ends_noun(token, grammar))
            and token.text not in grammar.speakers
        ):
            verb = len(made) + (token.text in _ON_WEEKDAYS)
        made += _on_weekdays(token)
    return made


def _on_weekdays(token: Word) -> Iterator[Word]:
    """ "Montags" as "am Montag"."""
    day = _ON_WEEKDAYS.get(token.text)
    yield from (Word("am", "am"), Word(day, token.surface)) if day else (token,)


def _without_place(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """Without "in this project", wherever it stands."""
    places = [phrase for phrase in grammar.tails if len(phrase) > 2]
    at = 0
    while at < len(tokens):
        texts = tuple(token.text for token in tokens[at : at + 4])
        place = next((phrase for phrase in places if texts[: len(phrase)] == phrase), None)
        tokens = tokens if place is None else [*tokens[:at], *tokens[at + len(place) :]]
        at += place is None
    return tokens


def _with_first_ahead(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """ "Write the test first, …" as "first write the test, …"."""
    made: list[Word] = []
    start = 0
    if THEN.isdisjoint(token.text for token in tokens):
        return tokens
    for at, token in enumerate(tokens):
        ends = at + 1 == len(tokens) or tokens[at + 1].is_break or is_and(tokens[at + 1], grammar)
        made.insert(start if token.text in _FIRST and ends else len(made), token)
        start = len(made) if token.is_break or is_and(token, grammar) else start
    return made


_CLEFTS = {"en": ("it", "is", "who"), "fr": ("c", "est", "qui")}
"""In "it is Ada who approves it" they say nothing."""


def _reordered(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """ "Bugs of the pipeline" as "the pipeline bugs"."""
    cleft = _CLEFTS.get(grammar.name, ())
    texts = [token.text for token in tokens]
    if cleft and tuple(texts[:2]) == cleft[:2] and cleft[2] in texts[3:]:
        at = texts.index(cleft[2], 3)
        tokens = [*tokens[2:at], *tokens[at + 1 :]]
    if grammar.name != "en":
        return tokens
    made = list(tokens)
    at = 1
    while at < len(made) - 1:
        if (
            made[at].text == "of"
            and made[at - 1].text not in ("care", "charge")
            and not ends_noun(made[at - 1], grammar)
        ):
            end = at + 1
            while end < len(made) and made[end].text in grammar.idle:
                end += 1
            while end < len(made) and not ends_noun(made[end], grammar):
                end += 1
            made[at - 1 : end] = [*made[at + 1 : end], made[at - 1]]
        at += 1
    return made


def ends_noun(token: Word, grammar: Grammar) -> bool:
    is_function = token.text in grammar.idle | grammar.markers | grammar.negations | grammar.weak
    return token.is_break or is_function or is_and(token, grammar) or token.text == "of"


_DENYING = {
    name: (read_word_set(first), read_word_set(second))
    for name, first, second in (
        ("fr", "ne n", "pas jamais aucun aucune"),
        ("es", "no", "nunca jamás ningún ninguna ninguno"),
        ("it", "non", "mai nessun nessuno nessuna"),
        ("pt", "não", "nunca jamais nenhum nenhuma"),
        ("pl", "nie", "nigdy żaden żadna żadne"),
        ("ru", "не", "никогда"),
    )
}
"""The two parts of a negation, in languages that deny in two."""


def _denied_once(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """Without the second part of "ne … jamais", "non … mai", "no … nunca"."""
    denying, second = _DENYING.get(grammar.name, (frozenset[str](), frozenset[str]()))
    return [
        token
        for at, token in enumerate(tokens)
        if token.text not in second
        or not any(before.text in denying for before in tokens[max(0, at - 2) : at])
    ]
