"""Numbers, dates and times of a sentence, written in one way: "ninety" and "90", "3 March" and "March 3rd",
"2 pm" and "14:00"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise, takewhile
from math import prod

from sevenfold.layers.memory.trust.tokens import BREAK, Word, fold_word, read_word_set

_VALUES = (*range(2, 21), *range(30, 100, 10), 100, 1_000, 1_000_000)
_SCALES = frozenset((100, 1_000, 1_000_000))
_FIRST_TEN = 10
# fmt: off
_NUMBERS = {
    "en": "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
          "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
          "thousand million",
    "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
          "siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig "
          "hundert tausend millionen",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize - - - "
          "vingt trente quarante cinquante soixante - - - cent mille millions",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
          "diecisiete dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta "
          "noventa cien mil millones",
    "it": "due tre quattro cinque - sette otto nove dieci undici dodici tredici quattordici quindici sedici "
          "diciassette diciotto diciannove venti trenta quaranta cinquanta sessanta settanta ottanta "
          "novanta cento mille milioni",
    "pt": "dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis "
          "dezessete dezoito dezenove vinte trinta quarenta cinquenta sessenta setenta oitenta noventa cem "
          "mil milhões",
    "nl": "twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien "
          "zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig "
          "honderd duizend miljoen",
    "pl": "dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście trzynaście "
          "czternaście piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście dwadzieścia "
          "trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt "
          "dziewięćdziesiąt sto tysiąc milion",
    "ru": "два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать "
          "четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать тридцать сорок "
          "пятьдесят шестьдесят семьдесят восемьдесят девяносто сто тысяча миллион",
}
_MONTHS = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada "
          "grudnia",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
}
_UNITS = {
    unit: written
    for written, units in {
        "second": "s sec secs second seconds", "minute": "min mins minute minutes",
        "hour": "h hr hrs hour hours",
        "millisecond": "ms millisecond milliseconds", "kilobyte": "kb kilobyte kilobytes",
        "megabyte": "mb megabyte megabytes", "gigabyte": "gb gigabyte gigabytes",
    }.items()
    for unit in units.split()
}
# fmt: on
_WORD_VALUES = {
    name: {word: n for word, n in zip(map(fold_word, words.split()), _VALUES, strict=True) if word != "-"}
    for name, words in _NUMBERS.items()
}
_MONTH_NUMBERS = {
    name: {fold_word(word): n for n, word in enumerate(words.split(), 1)} for name, words in _MONTHS.items()
}
_PERCENT = frozenset(("percent", "prozent", "procent", "процентов"))
_GROUPED = {
    True: re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?"),
    False: re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d{1,2}"),
}
"""With commas between thousands, as in English, or with dots."""
_VERSIONS = read_word_set(
    "version versions versión versione versão versie wersja wersji версия версии release v"
)
"""What follows one, or a name, is not an amount: version 1.234 is not version 1234."""
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_CLOCK = re.compile(r"0?(\d{1,2}):(\d\d)(am|pm)?|(\d{1,2})(am|pm)")
_AMOUNT = re.compile(r"(\d+)(s|ms|min|h|kb|mb|gb)")
_ISO_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_DOTTED_DAY = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})")
_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_HALVES = {"am": "am", "pm": "pm", "a.m": "am", "p.m": "pm"}
_OF = frozenset(("of", "de", "di", "do", "the", BREAK))
"""May stand inside a date."""
_LAST_DAY, _MIN_YEAR, _HOURS = 31, 1900, 12


@dataclass(frozen=True, slots=True)
class _Taken:
    """How many words were read, and what they are written as."""

    count: int
    words: tuple[Word, ...]


def read_numbers(tokens: Sequence[Word], language: str) -> list[Word]:
    """The same words, with each number, date and time written in one way. What is none of them stays."""
    plain: list[Word] = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        is_version = before is not None and (before.is_name or before.text in _VERSIONS)
        is_grouped = is_version and _GROUPED[language == "en"].fullmatch(token.text)
        plain += (token,) if is_grouped else _write_number(token, language)
    found: list[Word] = []
    at = 0
    while at < len(plain):
        rest = plain[at:]
        taken = _take_day(rest, _MONTH_NUMBERS.get(language, {}))
        taken = taken or _take_count(rest, _WORD_VALUES.get(language, {})) or _Taken(1, (plain[at],))
        found += taken.words
        at += taken.count
    return found


def is_number_word(word: str, language: str) -> bool:
    return word in _WORD_VALUES[language] or word in _MONTH_NUMBERS[language]


def _exact(text: str) -> Word:
    return Word(text, text, is_exact=True)


def _write_number(token: Word, language: str) -> Iterator[Word]:
    text, is_english = token.text, language == "en"
    if not token.is_exact:
        yield token
    elif day := _ISO_DAY.fullmatch(text):
        yield _write_day(*map(int, day.groups()))
    elif (day := _DOTTED_DAY.fullmatch(text)) and not is_english:
        yield _write_day(int(day[3]), int(day[2]), int(day[1]))
    elif _GROUPED[is_english].fullmatch(text):
        yield _exact(text.replace(",", "") if is_english else text.replace(".", "").replace(",", "."))
    elif ordinal := _ORDINAL.fullmatch(text):
        yield _exact(ordinal[1])
    elif amount := _AMOUNT.fullmatch(text):
        yield from (_exact(amount[1]), Word(_UNITS[amount[2]], amount[2]))
    elif clock := _CLOCK.fullmatch(text):
        yield _write_time(int(clock[1] or clock[4]), clock[2] or "00", clock[3] or clock[5] or "")
    else:
        yield token


def _write_day(year: int, month: int, day: int) -> Word:
    return _exact(f"«{year or ''}-{month:02}-{day:02}»")


def _write_time(hour: int, minute: str, half: str) -> Word:
    is_other = (half == "pm" and hour < _HOURS) or (half == "am" and hour == _HOURS)
    return _exact(f"{(hour + _HOURS) % 24 if is_other else hour}:{minute}")


def _take_day(tokens: Sequence[Word], months: Mapping[str, int]) -> _Taken | None:
    """ "3 March 2027", "March 3, 2027", "3 de marzo"."""
    places = [at for at, token in enumerate(tokens[:6]) if token.text not in _OF][:3]
    texts = [tokens[at].text for at in places]
    if not places or places[0] or not {*texts[:2]} & months.keys():
        return None
    month = next(months[text] for text in texts if text in months)
    numbers = [int(text) if text.isdecimal() else 0 for text in texts if text not in months]
    if not numbers or not 0 < numbers[0] <= _LAST_DAY:
        return None
    has_year = len(numbers) > 1 and numbers[1] >= _MIN_YEAR
    count = places[2 if has_year else 1] + 1
    return _Taken(count, (_write_day(numbers[1] if has_year else 0, month, numbers[0]),))


def _take_count(tokens: Sequence[Word], values: Mapping[str, int]) -> _Taken | None:
    """ "Ninety", "twenty-five", "one thousand", "1.2 million", "30 s", "2 pm", "80 percent"."""
    first = tokens[0]
    following = (
        0 if _begins_compound(before, token) else values.get(token.text, 0)
        for before, token in pairwise(tokens[:4])
    )
    scales = list(takewhile(_SCALES.__contains__, following))
    if first.is_exact and _DECIMAL.fullmatch(first.text):
        value = Decimal(first.text)
    elif first.text in values or (first.text == "one" and scales):
        value = Decimal(values.get(first.text, 1))
    else:
        return _take_half_of_day(tokens)
    count = 1 + len(scales)
    is_more = count < len(tokens) and not _begins_compound(tokens[count - 1], tokens[count])
    more = values.get(tokens[count].text, 0) if is_more else 0
    if not first.is_exact and not scales and value in range(20, 100, 10) and 0 < more < _FIRST_TEN:
        value, count = value + more, count + 1
    written = f"{value * prod(scales):f}" if scales or not first.is_exact else first.text
    if "." in written and scales:
        written = written.rstrip("0").rstrip(".")
    after = tokens[count].text if count < len(tokens) else ""
    if after in _PERCENT:
        return _Taken(count + 1, (_exact(f"{written}%"),))
    if after in _UNITS:
        return _Taken(count + 1, (_exact(written), Word(_UNITS[after], after)))
    if after in _HALVES and written.isdecimal():
        return _Taken(count + 1, (_write_time(int(written), "00", _HALVES[after]),))
    return _Taken(count, (_exact(written),))


def _begins_compound(before: Word, token: Word) -> bool:
    """ "Twenty five-line snippets" are twenty, not twenty-five."""
    return token.has_hyphen and not before.has_hyphen


def _take_half_of_day(tokens: Sequence[Word]) -> _Taken | None:
    """ "9:30 pm"."""
    clock = _CLOCK.fullmatch(tokens[0].text) if tokens[0].is_exact else None
    if not clock or not clock[1] or len(tokens) < 2 or tokens[1].text not in _HALVES:
        return None
    return _Taken(2, (_write_time(int(clock[1]), clock[2], _HALVES[tokens[1].text]),))
