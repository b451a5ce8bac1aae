"""BM25 over memories, in memory and updated one document at a time.

It suits about ten thousand documents, more than any project has written by hand. `large_index` puts the same
words into an index on disk.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from heapq import nsmallest
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Protocol, cast

# Words are stemmed and in lower case. `parseHeader` and `parse_header` also match "header"; each pair of
# neighbours counts as a word, so that a phrase weighs more than its words apart.

WORDS_VERSION = 4
"""Another way of taking texts apart gets another number: what is stored by the old one is made anew."""

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_UNSPACED_LETTERS = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f]+"
"""Chinese, Japanese, Korean and Thai, which put no space between words, or none before endings. Each pair of
neighbouring characters counts as a word."""
_KANA = re.compile("[\u3040-\u309f]+")
"""Hiragana: what is written in it alone is grammar, as a rule."""
_UNSPACED_WORDS = """
继续 繼續 谢谢 謝謝 好的 可以 帮我 幫我 一下 什么 什麼 怎么 怎麼 这个 這個 那个 那個 现在 現在 请你 請你
我们 我們 你们 不要 没有 沒有 就是 还是 還是 然后 然後 今天 明天 完成 提交 时间 時間 看看 告诉 告訴 知道
今日 明日 何時 続け 続行 了解 確認 質問 教え 감사 계속 해줘 주세 세요 니다 습니 합니 지금 시간 오늘 내일
"""
_UNSPACED_TALK = frozenset(_UNSPACED_WORDS.split())
_MAX_WORD = 64
"""Characters. Longer ones are hashes and encoded data, which nobody asks for by a part of them."""

# fmt: off
STOP_WORDS = frozenset((
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "she",
    "should", "so", "some", "such", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "would",
    "you", "your",
))
# fmt: on

_TALK = """
aber abl abov accept accord across act action activ actual add adelant adesso after again against ago agora
agre ahead ahora ai ainda al algo alguma alguna all allora almost alon along alor alreadi alright
alsjeblieft also although alway amaz among anch ancora anoth answer ant anymor anyon anyth anyway anywher ao
apart appar appear appli appreci approach appropri approv aprè aqui aquí around arriv ask assim assum así
attempt até au auch auf aus aussi autr aux avail avant avanti avec avez avoid away awesom back bad base
basic beaucoup beauti becaus becom bedankt befor begin behind bei beim believ below bem bene besid best
better between beyond bien big bin bis bist bit bitt blank block boa bom bon bonjour bonn bonsoir bore both
bottom box branch break brief briefli bring broken buena bueno build bullet buon buona buongiorno busi bye
call calm cambio cancel care carri case catch caus ce cela certain ces cet cett chanc chang chat che cheap
check cheer chi choic choos chose ciao claro clean clear close code coffe cold com come comm command comment
commit common como compar complet con concis confirm confus consid contain content context continu continua
convert cool correct cosa così couldn count coupl cours creat cuando current cut cuál d da daili damit damn
dan dank dann das dass dat date datei day de deal dear decid decis deep definit dein del delet della dem den
denn depend depoi der des describ desd despué detail deux di dia didn die dies dieser diff differ difficult
dis discard discuss disso dit doch doesn doi don donc dond done door dos doubl doubt dove down draft drop du
due dure días e each earli earlier easi easier easili edit een effect effort ein einen einer einmal either
el ela ele ell ella ello els em emoji empti en encor end english enough ensur enter entir entonc então er
era ere error erst es esa ese eso especi ess essa esser est esta esto está et etc etwa eu euch even evening
ever everi everybodi everyon everyth everywher exact exampl excel except execut expect explain explan extra
eye fa face fact fai fail fair fait fall fantast far fast fatto faut favor faz feel fertig few figur file
fill final find fine fini finish first fix focus foi folder follow forget form format forward free french
fresh friday friend front fue full fulli fun funni further futur für ga ganz geht genau general gerad german
gern get gib give glad gli go god gone gonna good goodby gostei got gotcha graag grab gracia grazi great
guess gut guten guy ha habe haben hace hacer haha hai half hallo halt hand handl happen happi hard hasn hast
hasta hat hate haven hay haz head hear hello help here het heur heut hey hi hier high hij hint hit hmm ho
hoe hoje hola hold honest hope hora hour howev huge hurri ich ici idea ignor ihm ihr ik il im imagin immedi
immer implement import imposs impress improv includ increas incred inde inform insid instead interest
internet io isso issu ist isto item itself ja je jetzt job join joke jump just já kann kannst keep kein kill
kind klaar know kurz la laat larg las lass last late later latest laufen laugh lazi le lead learn least leav
left les less let leur level light like line lint linter list listen liter littl live ll lo log lol long
longer look los lose lot loud love luck lucki luego lui lunch lá läuft m ma maar mach machen mai main make
mal man manag mani manual mark markdown mas matter may mayb mañana mean meanwhil meet mehr mein mejor
mention merci mes mesmo mess messag met meu mi mich middl might mind mine minha minor minut mir miss mistak
mit model moi molto moment momento mon monday month montr more morgen morn most move much mucha mucho muito
muss must muy myself más naar nach nada name ne near necessari need nein neither never nevertheless new next
nice nicht niet night nobodi noch nochmal nog non none noon nope normal nos note noth notic nous nova novo
now nu nuevo nuit number nun nur não o obrigada obrigado obvious odd oder off offer often oh oi ok okay old
olá onc ond one onli ook oop op open opinion opposit option ora os other otherwis otra otro ou oui ourselv
out outlin output outra outsid over overal overview own où par para paragraph pardon parfait part particular
pas pass passt past paste path paus pela pelo peopl per perché perfect perfetto perhap pero person peu peux
piacer pick piec più place plain plan play plaît pleas pleasur plus pode poi point poor por porqu possibl
pour pourquoi pr pra prefer prego premier prepar present press pretti prettier previous prima primera
primero print prior probabl problem proceed produc progress promis prompt proper propos provid pued pui pull
puoi push put qu qual quand quando que quel quell quello quem quero question questo qui quick quiero quiet
quit quién quoi quot qué rais random rather re reach read readi real realiz realli reason recent recheck
redo reduc refer regard regular relat relev remain rememb remind remov renam repeat replac repli repo
request requir rerun respond respons rest restart restor result resum retri return revert review revis
rewrit right roll round rule run s sa sad safe salut same san saturday save say schon screen scroll se
second see seem segundo seguro sehr sei sein select self sem send sens sentenc senza separ ser serious será
ses session set seu sever shall share short shorten shorter shouldn show shut si sich sick side sie sigu
silli sim similar simpl simpli simplifi sin sinc sind singl sit situat size skip slight slow slowli small
smooth sobr soll solo solut solv somebodi somehow someon someth sometim somewher son sono sont soon sorri
sort soy speak special specif spell spend split spät start state status stay step still stimmt stop straight
strang strong stuff stupid style su sua subito sudden suggest sui sum summar summari sunday super suppos sur
sure surpris swap sweet switch sé sì sí só sûr t ta tabl take talk también também tan tard task tchau te
tell tem tenho term terribl tes test text than thank thing think third those though thought three through
throw thursday thus tick tidi tien time tini tip tire today todo togeth toi tomorrow ton tone tonight too
top topic total touch tout toward translat tri tricki troubl true truli truth très tu tudo tuesday turn
tutto twice two typo tú ugh uhr ultim um uma un una und under understand undo une unfortun unless unlik uno
until up updat upon us use useless usual va vai vale vamo van vas ve ver veri verifi version veux vez via
view você voilà vom von voor vor vos votr vous vraiment wait wake walk wanna want war warn wart warum wasn
wast wat watch way weather wednesday week weekend weird weiter wel welcom well wenn wer weren whatev whenev
wherev whether whi while whoever whole whom whose wide wie wieder wir wird wish within without wo won wonder
word work worri wors worst worth wouldn wow wrap write wrong y ya yay yeah year yep yes yesterday yet yo
yourself zeig zero zijn zoom zu zum zur zurück zweit ça è é él être
"""
TALK_WORDS = frozenset(_TALK.split())
"""Stems of words that people say whatever they talk about, in eight languages. "Go on", "thanks" and "commit
this" are made of them, so a memory that holds one of them is not what is meant. They count less in the
ranking, and little as evidence."""

_CODE = """
abstract algorithm align alphabet amend annot append archiv argument array ascend ascii assert async
attribut author averag await awk backslash bar bash baz bench benchmark binari bisect black blue boilerpl
book boolean brace bracket breakpoint browser bug byte bytecod calcul callback capit cast cat ceil celsius
center char charact checkout cherri chmod chown class click client clone closur codebas collaps colon comma
compil complex comprehens comput concaten condit conflict consol const constant constructor convers copi cpp
cpu crash css csv curl cursor dash debug debugg decim decor decrement default descend desktop devic dict
dictionari digit directori disk div divid docstr dog dot download drive duplic eight element enum environ
equal exit expand export express extens extract factor factori fahrenheit failur fals fibonacci field
filenam filter five float floor fold foo fork four function gb generat generic gigabyt git global golang
grammar graph green grep haiku hardwar hash haskel height helper host html http https hundr hyphen increment
indent inlin insert instal instanc integ integr interfac interpret invert ipsum ipv4 ipv6 iter java
javascript jpeg js json kb key kilobyt km kotlin lambda languag length lib librari liner link local
localhost logic loop lorem lower lowercas map match math max maximum mb md megabyt member memori meter
method mile min minimum minus modul modulo moon mount movi multipl multipli namespac nan network newlin nine
null numer object obsolet onelin origin overflow page paramet parenthes parenthesi pars parser patch pattern
pdf perl php ping pixel placehold planet png poem pointer port powershel prepend prettifi prime privat
process programm properti public python rb rebas reboot recip recurs red redund refactor regex regexp reload
remot resolv revers root router rs rubi runtim rust scala schedul scope screenshot script sea search sed
semant semicolon server seven sh shell six slash snippet song sourc space span spreadsheet sql squar squash
src ssh stack stacktrac stage stash static stderr stdin stdout string struct submodul subtract sudo sun
swift symbol synonym syntax tar templat ten termin thread timestamp tmp toml trace traceback trail tree trim
truncat tupl tutori txt type typescript undefin underflow underscor unfold unicod uninstal unit unnecessari
unus unwrap unzip upload upper uppercas upstream usag utf util valu var variabl vector vectoris video vim
wget white whitespac width window world wrote xml yaml yellow zip zsh
"""
CODE_WORDS = frozenset(_CODE.split())
"""Stems of words of any code, editor or machine: "split this function in two" and "kill that process"
are made of them. One of them is less than it takes to bring a memory, and two are enough."""

TALK_WEIGHT, CODE_WEIGHT, NAMED_WEIGHT = 0.25, 0.45, 0.6
TELLING = 0.7
"""Of the weight of a word that no document holds: more, and a memory that is named by it may be meant by that
word alone. "That alert was funny" is about none of twenty alerts."""
PAIR_WEIGHT = 0.3
"""Of two words that stand side by side in the question and in the text, beside what each of them counts."""
LEAST_EVIDENCE = 0.45
"""Of a word that is no talk: in a directory about accounts every memory holds "account", and who says it
still asks for something."""
_TALK_DIGITS = 2
"""A number this short counts an option or a step."""


class _Stemmer(Protocol):
    """What is used of the library, which has no types."""

    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's word


_ONE_LANGUAGE = "_sevenfold_stemmer"
"""The package under another name, so that its own is there in full for whoever else imports it."""


@cache
def _stemmer() -> _Stemmer:
    """That of one language: the package loads thirty, which takes longer than many a search."""
    found = find_spec("snowballstemmer")
    bare = ModuleType(_ONE_LANGUAGE)
    bare.__path__ = [*((found and found.submodule_search_locations) or ())]
    sys.modules[_ONE_LANGUAGE] = bare
    try:
        return cast("_Stemmer", import_module(f"{_ONE_LANGUAGE}.english_stemmer").EnglishStemmer())
    except (ImportError, AttributeError):
        # Not at the top: only who searches needs it.
        import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

        made = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType]
        return cast("_Stemmer", made)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    return _stemmer().stemWord(word)


@cache
def _unspaced() -> re.Pattern[str]:
    # Compiled when a text needs it, which takes as long as a module to load.
    return re.compile(_UNSPACED_LETTERS)


def split_words(text: str) -> list[str]:
    """In the order of the text: each word, its parts, and each pair of neighbours as `one two`."""
    found: list[str] = []
    before = ""
    for match in _WORD.finditer(text):
        word = match.group()
        if not word.isascii() and _unspaced().search(word):
            found += _unspaced_forms(word)
            before = ""
            continue
        forms = _forms(word)
        found += forms
        if forms:
            if before:
                found.append(f"{before} {forms[-1]}")
            before = forms[-1]
    return found


def spell_words(text: str, stems: Iterable[str]) -> tuple[str, ...]:
    """Words of an index as they are spelled in the text that asked for them, each once."""
    spelled: dict[str, str] = {}
    for match in _WORD.finditer(text):
        for stem in split_words(match.group()):
            spelled.setdefault(stem, match.group())
    return tuple(dict.fromkeys(spelled.get(stem, stem) for stem in stems))


def _unspaced_forms(text: str) -> list[str]:
    """Pairs of characters of each run, and the words of other scripts between them."""
    found: list[str] = []
    at = 0
    for run in _unspaced().finditer(text):
        found += _forms(text[at : run.start()]) if run.start() > at else []
        characters, at = run.group(), run.end()
        found += [characters[i : i + 2] for i in range(max(1, len(characters) - 1))]
    return [*found, *_forms(text[at:])] if at < len(text) else found


def _forms(word: str) -> list[str]:
    """What a word is known by: itself where it is a compound, and the stems of its parts."""
    if len(word) > _MAX_WORD:
        return []
    plain = word.lower()
    parts = [part.lower() for part in _PART.findall(word)] if word.isascii() else [plain]
    stems = [_stem(part) for part in parts if part not in STOP_WORDS]
    is_compound = len(parts) > 1 and plain not in STOP_WORDS
    return [plain, *stems] if is_compound else stems


BM25_K1 = 1.2
BM25_B = 0.75
"""The usual two: how soon more of a word stops counting, and how much a long document is held back. Other
values were tried on five sets of questions and none was better on all of them."""

TALK_RANKS = 0.75
"""Of the weight of a word of everyday talk in the ranking. Among a few hundred memories such a word may be as
rare as a name, which says less than it does among many: docs/decisions/028-ranking.md."""

MOST_REPEATS = 3
"""How often a word of the question counts. A question that is a whole report repeats itself."""


ABOUT_LENGTH = 120
"""Words and pairs of a text in which a word counts as evidence what it weighs. A memory of a line that holds
it is about it, a document of pages that holds it once is not."""

LEAST_DOCUMENTS = 50
"""A handful of documents says little of how rare a word is, so an overlap takes them to be as many."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    key: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOverlap:
    """What a question and a document have in common."""

    share: float
    """Of what the question asks, rare words counting more; 1: all of it."""
    rare_words: float
    """The same as a number of words that hardly any document holds."""
    evidence: float
    """How much speaks for it that the document is meant: words of everyday talk count little, and so does
    what a long document holds once."""
    words: tuple[str, ...]
    """The words, rarest first."""


@dataclass(frozen=True, slots=True)
class MemoryHead:
    """What a document is called and said to be about: words of it are no passing mention."""

    key: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """The words of a question, each with its weight."""

    words: Mapping[str, float]
    pairs: Mapping[str, float]
    """Of neighbours, as `one two`."""
    rarest: float
    """What a word weighs that no document holds."""

    def overlap(self, held: Mapping[str, int], head: MemoryHead) -> QueryOverlap:
        """With a document that holds these words so many times."""
        shared = sorted(
            (word for word in self.words if word in held), key=lambda word: (-self.words[word], word)
        )
        found = sum(self.words[word] for word in shared)
        return QueryOverlap(
            share=found / (sum(self.words.values()) or 1.0),
            rare_words=found / self.rarest,
            evidence=self._sum_evidence(held, shared, head) if shared else 0.0,
            words=tuple(shared),
        )

    def measure_shared(self, held: Mapping[str, int]) -> float:
        """How much a document shares of it: words of everyday talk count little, as a number of rare ones."""
        return (
            sum(
                weight * (TALK_WEIGHT if is_talk(word) else 1.0)
                for word, weight in self.words.items()
                if word in held
            )
            / self.rarest
        )

    def measure(self) -> float:
        """How much there is to look for: words of everyday talk aside, as a number of rare ones."""
        return sum(weight for word, weight in self.words.items() if not is_talk(word)) / self.rarest

    def _sum_evidence(self, held: Mapping[str, int], shared: Sequence[str], head: MemoryHead) -> float:
        key = {word for word in split_words(head.key) if len(word) > 1}
        described = frozenset(split_words(head.text))
        held_back = BM25_K1 * sum(held.values()) / ABOUT_LENGTH
        found = 0.0
        for word in shared:
            about = held[word] * (BM25_K1 + 1) / (held[word] + held_back)
            is_named = word in key or word in described
            if is_named:
                about = max(1.0, about)
            is_passing = len(shared) == 1 and not (is_named and self.words[word] >= TELLING * self.rarest)
            if is_passing or is_talk(word) or (word in CODE_WORDS and word not in key):
                about = min(1.0, about)
            found += about * self._weigh_evidence(word, word in key)
        pairs = sum(weight for pair, weight in self.pairs.items() if pair in held)
        return found + PAIR_WEIGHT * pairs / self.rarest

    def _weigh_evidence(self, word: str, is_named: bool) -> float:
        """What a document is named after is no small talk: "run the tests" is about `running-tests`."""
        rare = self.words[word] / self.rarest
        if is_talk(word):
            return rare * (NAMED_WEIGHT if is_named else TALK_WEIGHT)
        if word in CODE_WORDS or (len(word) == 1 and word.isascii()):
            return rare * (NAMED_WEIGHT if is_named else CODE_WEIGHT)
        return max(rare, LEAST_EVIDENCE)


@dataclass(slots=True)
class LexicalIndex:
    """Documents by key. Adding a key again replaces its document."""

    _words: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """For each word the documents that hold it, and how often."""
    _documents: dict[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    _lengths: dict[str, int] = field(default_factory=dict[str, int])
    _total: int = 0

    def __len__(self) -> int:
        return len(self._documents)

    def add(self, key: str, text: str) -> None:
        self.add_counts(key, Counter(split_words(text)))

    def add_counts(self, key: str, counts: Mapping[str, int]) -> None:
        """The same for a text whose words were counted before."""
        self.remove(key)
        total = sum(counts.values())
        self._documents[key], self._lengths[key] = counts, total
        self._total += total
        for word, count in counts.items():
            self._words.setdefault(word, {})[key] = count

    def remove(self, key: str) -> None:
        """Forget a document; one that is not there is forgotten already."""
        for word in self._documents.pop(key, {}):
            holders = self._words[word]
            del holders[key]
            if not holders:
                del self._words[word]
        self._total -= self._lengths.pop(key, 0)

    @property
    def total(self) -> int:
        """Words of all documents."""
        return self._total

    def length(self, key: str) -> int:
        """Of a document, in words."""
        return self._lengths[key]

    def holders(self, word: str) -> Mapping[str, int]:
        """The documents that hold a word, and how often."""
        return self._words.get(word, {})

    def score(self, question: str) -> dict[str, float]:
        """Every document that holds a word of the question, with its score."""
        scores: dict[str, float] = {}
        count = len(self._documents)
        mean = self._total / count if count else 1.0
        for word, asked in Counter(split_words(question)).items():
            holders = self._words.get(word)
            if not holders:
                continue
            weight = weigh_word(word, asked, count, len(holders))
            for key, times in holders.items():
                held_back = hold_back(self._lengths[key], mean)
                scores[key] = scores.get(key, 0.0) + weight * times / (times + held_back)
        return scores

    def weigh_query(self, question: str) -> WeightedQuery:
        """The words of a question, for `overlap`."""
        return weigh_query(question, len(self), self._held_by)

    def measure_shared(self, asked: WeightedQuery, keys: Iterable[str]) -> float:
        """The most that one of these documents shares of a question."""
        return max((asked.measure_shared(self._documents[key]) for key in keys), default=0.0)

    def overlap(self, asked: WeightedQuery, head: MemoryHead) -> QueryOverlap:
        """How much of a question a document answers."""
        return asked.overlap(self._documents.get(head.key, {}), head)

    def rank(self, question: str, limit: int) -> list[SearchHit]:
        """The best, best first; of equals the first by key, so that the same question has one answer."""
        return choose_best(self.score(question), limit)

    def _held_by(self, word: str) -> int:
        return len(self._words.get(word, ()))


def is_talk(word: str) -> bool:
    """Whether a stem says little of what a prompt is about."""
    if word in TALK_WORDS or (word.isdigit() and len(word) <= _TALK_DIGITS):
        return True
    return word in _UNSPACED_TALK or _KANA.fullmatch(word) is not None


def rarity(count: int, holders: int) -> float:
    """What a word weighs that so many of the documents hold."""
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def weigh_word(word: str, asked: int, count: int, holders: int) -> float:
    """What a word of the question weighs in the ranking, that so many of the documents hold."""
    weight = min(asked, MOST_REPEATS) * rarity(count, holders) * (BM25_K1 + 1)
    return weight * TALK_RANKS if is_talk(word) else weight


def hold_back(length: int, mean: float) -> float:
    """How much a document of this length needs of a word, for half of the word's weight."""
    return BM25_K1 * (1 - BM25_B + BM25_B * length / mean)


def weigh_query(question: str, count: int, held_by: Callable[[str], int]) -> WeightedQuery:
    """The words of a question among so many documents."""
    count = max(count, LEAST_DOCUMENTS)
    weights = {word: rarity(count, held_by(word)) for word in split_words(question)}
    words = {word: weight for word, weight in weights.items() if " " not in word}
    pairs = {word: weight for word, weight in weights.items() if " " in word}
    return WeightedQuery(words, pairs, rarity(count, 0))


def choose_best(scores: Mapping[str, float], limit: int) -> list[SearchHit]:
    found = nsmallest(limit, scores.items(), key=lambda item: (-item[1], item[0]))
    return [SearchHit(key, score) for key, score in found]


def build_lexical_index(documents: Iterable[tuple[str, str]]) -> LexicalIndex:
    index = LexicalIndex()
    for key, text in documents:
        index.add(key, text)
    return index
