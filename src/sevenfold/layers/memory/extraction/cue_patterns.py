"""The words of a language as patterns: which language a sentence is in, and its table of `cues`, compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache

from sevenfold.layers.memory.extraction.cues import CLAUSE_JOINS, COMMON_WORDS, CUE_TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """The words of one language, as patterns."""

    joins: re.Pattern[str]
    """Between two main clauses."""
    lead: re.Pattern[str]
    """May stand before a statement and adds nothing."""
    remember: re.Pattern[str]
    onward: re.Pattern[str]
    """From now on: a rule in any mood."""
    always: re.Pattern[str]
    """A rule in an instruction, and in what "we" do."""
    we: re.Pattern[str]
    when: re.Pattern[str]
    """Begins a clause that says when a rule applies."""
    other: re.Pattern[str]
    """Before "always": somebody or something else does it, or it is no main clause."""
    state: re.Pattern[str]
    """After "always": tells how things are or went, and asks for nothing."""
    telling: re.Pattern[str]
    """After "always", behind a thing: what it does ("Safari never fires that")."""
    same: re.Pattern[str]
    """After a bare "always", or one of what "we" do, it tells too: "always the same"."""
    status: re.Pattern[str]
    """In a fact: tells how things are going at the moment."""
    prefer: re.Pattern[str]
    here: re.Pattern[str]
    """How something is in this project: "in this repo, tests go next to the source"."""
    fact: re.Pattern[str]
    """How things are done here: "we use", "our"."""
    person: re.Pattern[str]
    """Who somebody is, or what they are responsible for."""
    decided: re.Pattern[str]
    wrong: re.Pattern[str]
    """How a correction begins."""
    contrast: re.Pattern[str]
    """Not this but that."""
    found: re.Pattern[str]
    """Where something is, beside an address."""
    limited: re.Pattern[str]
    """It holds for now, or for the thing at hand."""
    open: re.Pattern[str]
    """It asks, or says that it need not be so always."""
    unsaid: re.Pattern[str]
    """It is supposed, somebody else's word, or about a text or code to be made."""
    made: re.Pattern[str]
    """A text or code to be made, where nothing says that this is always so ("from now on write …")."""
    task: re.Pattern[str]
    """What somebody is to do: a fact beside it is told for that."""


_SCRIPTS = (
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
)
_UNSPACED_LANGUAGES = frozenset(("ko", "ja", "zh"))
_LETTERS = {"de": "äöüß", "es": "ñ¿¡", "fr": "êçœ", "it": "ìò", "pl": "ąćęłńśźż", "pt": "ãõ"}
_URL = re.compile(r"https?://\S+")
_WORD = re.compile(r"[^\W\d_]+(?:'t\b)?")


def choose_language(text: str, likely: str = "") -> str:
    """By its script, or by the language in which most of its words are common; `likely`: that of the turn."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return language
    # A longer word decides between equal counts: "a" and "i" are common in many.
    words = [match.group() for match in _WORD.finditer(_URL.sub("", text.casefold()))]
    counts = {
        name: sum(1 + (len(word) > 4) / 10 for word in words if word in _usual_words(name))
        + bool(set(_LETTERS.get(name, "")) & set(text))
        + (name == likely)
        for name in COMMON_WORDS
    }
    best = max(counts, key=lambda name: (counts[name], name == likely))
    return best if counts[best] else "en"


@cache
def _usual_words(language: str) -> frozenset[str]:
    """With the longer words of its table that English has not."""
    if language == "en":
        return frozenset(COMMON_WORDS["en"].split())
    english, own = (set(_WORD.findall(CUE_TABLES[name].casefold())) for name in ("en", language))
    return frozenset((*COMMON_WORDS[language].split(), *(word for word in own - english if len(word) > 3)))


@cache
def read_cues(language: str) -> Cues:
    """The words of a language; compiled when they are first needed."""
    is_spaced = language not in _UNSPACED_LANGUAGES
    rows = {"joins": CLAUSE_JOINS.get(language, "(?!)"), **dict(_rows(CUE_TABLES[language]))}
    return Cues(
        **{item.name: _compile(rows.get(item.name, "(?!)"), is_spaced=is_spaced) for item in fields(Cues)}
    )


def _rows(table: str) -> Iterator[tuple[str, str]]:
    name, row = "", ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            part = line.strip()
            row += f" {part}" if part.startswith("| ") else part
        else:
            if name:
                yield name, row
            name, _, row = line.partition(": ")
    yield name, row


_BLANKS = re.compile(r"(\(\?<[!=][^)]*\))| +")
"""A look-behind stays as it is: its width is fixed."""


_BOUNDARY = r"(?:(?<!\w)|(?!\w))"
"""Of a word, at both ends; a pattern may begin with a comma and end with a blank."""


def _compile(row: str, *, is_spaced: bool) -> re.Pattern[str]:
    blank = r"\s+" if is_spaced else r"\s?"
    parts = (_BLANKS.sub(lambda match: match[1] or blank, part.strip()) for part in row.split(" | "))
    body = "|".join(parts)
    if not is_spaced:
        return re.compile(body)
    return re.compile(rf"{_BOUNDARY}(?:{body}){_BOUNDARY}", re.IGNORECASE)


# In any language: names of what has an address, laughter, lines of logs.

LOGGED = re.compile(
    r"^\s*\$ \S|^\S+: \*\*\*|^\s*(?:\S+[: ]\s*)?(?:WARN(?:ING)?|ERR(?:OR)?!?|FATAL|INFO|DEBUG|NOTICE|TRACE)\b"
    r"|^\s*(?i:npm (?:warn|err!|notice|info)|(?:hint|remote|warning|error|fatal|deprecated"
    r"|(?:e +)?\w+(?:warning|error|exception)):|\[[\w.:/ -]+\]\s|(?:\S+:)?\d+:\d+:?\s+\w)"
)
"""A line that a program printed. What follows it up to an empty line was printed too."""
JOKED = re.compile(
    r"(?<!\w)(?:lol+|lmf?ao|rofl|xd+|jk|just kidding|a?(?:ha){2,}h?|(?:h[ei]){2,}h?|(?:j[aei]){2,}j?|k{3,}"
    r"|(?:rs){2,}|mdr+|ptdr+|лол|а?ха?(?:-?ха)+х?)(?!\w)|哈{2,}|笑死|[（(]笑[）)]|^[草笑]"
    r"|[\u3040-\u30ff]w+\W*$|ㅋ{2,}|ㅎ{2,}|(?<=\w)\){2,}\s*$|[:;]-?[DP](?!\w)|;-?\)|[😀-😆😉😎😏😛-😝🙃🤡🤣🤪👑🧙💀😹]",
    re.IGNORECASE,
)
"""Laughter in a sentence: it is hardly meant as a rule."""
TEXT_TO_WRITE = re.compile(
    r"^[^:：]*(?:\b(?:e?-?mails?|correo|письмо|tweet|subject|betreff|asunto|objet|oggetto|assunto|slack"
    r"|release[ -]?not\w+|not[ae] d[eai]|заметк\w+|übersetze?|trad\w+|translat\w+|rephrase|переведи)\b"
    r"|发布说明|リリースノート|릴리스 노트|邮件|メール|메일|翻译|訳|번역)[^:：]*[:：]",
    re.IGNORECASE,
)
"""A text to be written or translated, which follows."""
PLACE = re.compile(
    r"^\W*(?:[\w'’-]+ ){0,4}?[\w'’-]*(?:stag(?:e|ing)|prod|dev|data ?base|datenbank|db|banco|baz[ay]|base"
    r"|server|cluster|registry|wiki|dashboard|panel|panneau|pannello|painel|broker|bucket"
    r"|environment|umgebung|entorno|ambiente|omgeving|środowisk|instance|box|host|qa|mirror|proxy|vault"
    r"|admin|api|баз[аы]|прод|сервер|кластер|админк)|^[^,，、]{0,12}(?:数据库|环境|后台|服务器|本番|環境"
    r"|画面|サーバ|DB|데이터베이스|서버|환경|페이지)",
    re.IGNORECASE,
)
"""Names of what has an address, near the beginning."""
ADDRESS = re.compile(
    r"(?<![\w@/.-])(?!(?:v|rc|build|release|version)[-.\d])"
    r"[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*(?:\.[a-z]{2,}\b|[.-][a-z]*\d)(?!\w*\()",
    re.IGNORECASE,
)
"""`db.internal`, `pg-stage-2`; a version is none."""
INTRODUCED = re.compile(
    r"^(?i:i'm|i am|ich bin|soy|je suis|sou(?: [oa])?|sono|ik ben|jestem|я) [A-ZÀ-ÝА-Я][a-zà-ÿа-я]+, \w"
    r"|^(?!(?:This|That|It|There|Here|Das|Dies|Es|Est[aeo]|Ce|Cela|Iss?o|Quest[ao]|Dit|Dat|To|Это|Which"
    r"|What)\b)(?:[AO] )?[A-ZÀ-ÝА-Я][a-zà-ÿа-я]+ (?:is|ist|es|est|é|è|jest|to|[—-]) (?:our|unsere?"
    r"|nuestr[oa]|notre|noss[oa]|(?:la|il) nostr[ao]|onze|nasz[ay]?|наш[а]?) [\w -]{2,40}\W*$"
)
"""Who somebody is: "I'm Ada, backend developer", "Lena is our DBA"."""
UNIVERSAL = re.compile(
    r"^(?:all|every|each|alle|jede[rs]?|tod[oa]s?(?: l?[oa]s)?|cada|tou(?:te)?s les|chaque|ogni|elke?"
    r"|każd[aey]|tutt[ie](?: le| i| gli)?|wszystkie|все[мх]?|кажд\w+) (?:prs?|pr['-]\w+|(?:pull"
    r"|merge) requests?|commit\w*|branch(?:es)?|ram[ai]s?|releases?|коммит\w*|ветк\w+"
    r"|релиз\w*)\b.* (?:needs?|requires?|must|brauch\w+|müssen|muss|soll(?:en)?|necesitan?|tienen? que"
    r"|deben?|besoin|doi(?:ven)?t|precisam?|devem?|richied\w+|devono|deve|va|vanno|moet(?:en)?|nodig"
    r"|wymaga\w*|mus(?:i|zą)|нужн\w+|долж\w+)\b"
    r"|^所有.*(?:需要|必须|都要)|必ず.*必要(?:です|だ)|^모든 .*(?:필요|해야)",
    re.IGNORECASE,
)
"""What every pull request, commit or branch needs."""
_EVENTS = (
    r"(?:[\w'’-]+ ){0,2}?(?:\w*commit\w*|push\w*|\w*releases?|\w*deploy\w*|merges?|merge[ -]requests?|prs?"
    r"|pull[ -]requests?|tags?|rollouts?|bereitstellung|auslieferung|déploiement|livraison|publication|fusion"
    r"|despliegue|entrega|publicación|publicação|lançamento|rilascio|pubblicazione|wydani\w+|wdrożeni\w+"
    r"|scaleni\w+|коммит\w*|релиз\w*|депло\w*|пуш\w*|слияни\w*|выпуск\w*|мерж\w*)"
)
RECURRING = re.compile(
    r"^(?!.*\b(?:i|ich|je|yo|eu|io|ik|я|ja|users?|customers?)\b)(?:\W*(?:please|bitte|por favor|s'il te plaît"
    r"|proszę|пожалуйста)\b\W*)?(?:(?:before|after|on|for|with|vor|nach|bei|für|avant|après|à|lors de"
    r"|antes de|después de|en|depois de|a|prima di|dopo|ad?|voor|na|bij|przed|po|przy|перед|после|при)"
    r" (?:every|each|any|jede[mrsn]|chaque|cada|todos? o?s?|ogni|elke?|iedere?|każd\w+|кажд\w+) "
    rf"{_EVENTS}\b.* ?\b(?:must|ha(?:s|ve) to|needs?(?: to)?|should|muss|müssen|sollen?|faut|doi(?:ven)?t"
    r"|doit|hay que|deben?|tienen? que|tenemos que|é (?:preciso|necessário|obrigatório)|temos de|tem d[eo]"
    r"|devem?|precisa\w*|bisogna|occorre|deve|devono|vanno|moet(?:en)?|dien(?:t|en)|trzeba|należy"
    r"|mus(?:i|zą|imy)|нужно|надо|необходимо|долж\w+|следует)\b"
    r"|(?!(?:the|this|that|it|we|they|he|she|there|my|our|what|why|an?)\b)[a-z]+ (?:\S+ ){1,6}(?:before|after"
    rf"|for) (?:every|each) {_EVENTS}\W*$)"
    r"|^(?:(?!我).)*每次(?:提交|发布|部署|合并|推送|上线)(?:代码)?(?:之?前|之?后|时|的时候).*(?:要|必须|得|请)"
    r"|(?:コミット|リリース|デプロイ|プッシュ|マージ)(?:する|の)?(?:前|まえ|後|たび)に(?:は)?、?(?:毎回|必ず|いつも)"
    r".*(?:て(?:ください|下さい|ね|ほしい)|こと|必要)"
    r"|(?:커밋|배포|릴리스|머지|푸시)(?:하기)? ?(?:전|후|때)(?:에|에는|마다)? ?(?:매번|항상|반드시|꼭)"
    r".*(?:줘|세요|해야|한다)",
    re.IGNORECASE,
)
"""What has to be done with every commit, push, merge or release: "before each release bump the version"."""
WANTED_TEXT = re.compile(
    r"^(?:i want|ich (?:will|möchte)|quiero|je veux|quero|voglio|ik wil|chcę|хочу) (?!(?:a|an"
    r"|all)\b)(?:\S+ ){0,3}(?:commit[- ]?(?:messages|nachrichten|berichten)|m[eé]nsa\w+ de commit"
    r"|messag\w+ d[ei] commit|opis\w+ commit|сообщени\w+ коммит|answers|replies|antworten|respuestas|réponses"
    r"|respostas|risposte|ответы)",
    re.IGNORECASE,
)
"""How what the assistant writes is wanted."""
RELATED = re.compile(r"\b(?:that|dass|que|che|dat|что|że)\W+(?:\w+\W+)?$", re.IGNORECASE)
"""Before "from now on": it is told to somebody ("announce that from now on")."""
