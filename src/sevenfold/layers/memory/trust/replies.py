"""What a question or a courtesy behind a sentence says about that sentence: often nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from sevenfold.core.text.stems import normalize_text
from sevenfold.layers.memory.trust.phrases import CONJUNCTIONS, NOT, ParsedSentence
from sevenfold.layers.memory.trust.tokens import (
    Grammar,
    is_unspaced,
    read_word_set,
    split_tokens,
)

MAX_REFERRING_WORDS = 2
"""Of a question that says nothing of its own ("Sounds good?"): it asks about the sentence before."""
MAX_POINTING_WORDS = 5
"""Of one that points back ("Or is that a bad idea?"). A longer one has a matter of its own."""
MAX_UNSPACED_CHARS = 8
"""The same for a script without spaces."""

_POINTING = {
    name: read_word_set(words)
    for name, words in {
        "en": "that this so such",
        "de": "das dies dieses so",
        "fr": "ça cela ceci c",
        "es": "eso esto ello",
        "it": "questo quello ciò",
        "pt": "isso isto aquilo",
        "nl": "dat dit",
        "pl": "to tego tak",
        "ru": "это этого так",
    }.items()
}
"""Words that stand for what was said before."""
_CHECKING = read_word_set(
    "sense clear understood klar verstanden compris entendido claro capito chiaro jasne понятно"
)
"""Asks whether the agent has understood, which is no doubt."""
_JUDGING = read_word_set(
    "right wrong true false correct valid really seriously sure ok okay fine good bad better best wise "
    "safe allowed sensible reasonable idea rule policy advice agree agreed think thoughts opinion "
    "objections mean means said says say knows claim source evidence proof text quote yours reason "
    "richtig falsch wahr korrekt gültig stimmt wirklich "
    "sicher gut schlecht erlaubt sinnvoll idee regel einverstanden denkst meinst hältst meinung sagt meint "
    "quelle beweis zitat "
    "vrai faux juste correct valable vraiment bon bonne mauvaise bien idée règle accord penses pensez avis "
    "cierto verdad falso correcto válido bien bueno buena mala idea regla acuerdo piensas crees opinas "
    "vero giusto sbagliato corretto valido bene buona cattiva davvero regola pensi accordo parere "
    "verdade certo errado válido bom boa má ideia regra achas acha bem concorda waar juist klopt goed slecht "
    "idee regel vind vindt denk denkt mening eens prawda słuszne dobrze dobry zły pomysł zasada sądzisz "
    "myślisz zgoda правда верно правильно хорошо плохая идея правило думаешь считаешь согласен"
)
"""Words of a judgement: a question with one asks whether the sentence before it holds."""
_RULES = read_word_set("rule policy advice claim regel règle regla regola regra zasada правило")
_REASONS = read_word_set(
    "why how whys hows warum wieso weshalb wie pourquoi comment perché come porquê como cómo waarom hoe "
    "dlaczego jak почему зачем как разве неужели ли czy"
)
"""These ask how what was said can be; the others ask for something that was not said."""
_WAYS = read_word_set("how wie comment como cómo come hoe jak как")
"""With a word of its own behind it, it asks how something is done."""
_PLACES = read_word_set(
    "where when wo wann où quand dónde cuándo dove onde waar wanneer gdzie kiedy где когда"
)
_ONWARD = read_word_set(
    "now next else continue proceed start begin ready nun weiter weitermachen fortfahren "
    "anfangen beginnen los "
    "loslegen maintenant ensuite continue continuer continuons commence commençons reprend "
    "reprenons poursuit "
    "poursuivons ahora seguimos sigo continuamos empezamos avanzamos adesso ora andiamo "
    "continuiamo proseguiamo "
    "procediamo cominciamo partiamo agora começamos avançamos nu verder doorgaan beginnen teraz dalej "
    "kontynuujemy zaczynamy теперь дальше продолжаем продолжим начнём начинаем devam "
    "başlayalım vidare fortsätter"
)
"""A question with one goes on to something else."""
_ARTICLES = read_word_set(
    "the our my der die das unser unsere le la les notre el los las nuestro il lo i gli o os as de het ons"
)
_CONTRACTED = read_word_set(
    "zum zur beim vom den dem au aux du al del dei degli della delle dello pelo pela nos nas sul sulla"
)
_EMPTY = read_word_set(
    "sounds seems looks do does did doing done make makes made say says said think believe go goes "
    "come comes came get gets got want wants wanted need needs needed "
    "apply applies hold holds stand stands matter matters work works still even "
    "just actually "
    "anyway again here there case current always everywhere anyone anybody everyone everybody someone "
    "somebody people "
    "anything something everything nothing they them he she decide decides decided decision check verify "
    "confirm explain "
    "tell told show look see know knows understand point purpose benefit worth up to date official necessary "
    "normal "
    "source evidence proof quote claim claims "
    "dazu davon daran darüber dafür damit daarvan ervan daarover erover dessus "
    "machen macht mache tun tut sagen denken braucht brauchen gilt gelten noch immer eigentlich überhaupt "
    "hier alle jemand "
    "jeder man entschieden entscheidet prüfen prüf bestätigen erklären erklär zeigen sehen aktuell nötig "
    "üblich offiziell "
    "ce fait faire faut encore toujours vraiment ici tout monde on décidé vérifier vérifie confirmer "
    "expliquer "
    "actuel utile "
    "hace hacer hacemos todavía aún siempre aquí alguien todos decidió verificar verifica confirmar explicar "
    "actual "
    "fa fare ancora sempre qui qualcuno tutti deciso verificare verifica confermare spiegare attuale serve "
    "faz fazer ainda sempre aqui alguém todos decidiu verificar confirmar explicar atual precisa "
    "doen doet moet moeten nog altijd hier iemand iedereen besloten controleren bevestigen uitleggen actueel "
    "nodig "
    "robi robić trzeba jeszcze zawsze tutaj ktoś wszyscy zdecydował sprawdzić potwierdzić wyjaśnić aktualne "
    "делать делает нужно надо ещё всегда здесь кто-то все решил проверить подтвердить объяснить актуально"
)
"""Words of a question that name no matter of its own, with those of a judgement."""
_WHOLE = read_word_set("anything something everything nothing anyone everyone us me you")
"""Behind a verb of what was said: "Does that break anything?"."""
_IMPERSONAL = read_word_set("it es il ça het ello")
_ANSWERING = read_word_set(
    "say says said source evidence proof quote quelle beweis zitat sagt dice dicono dit disent diz zegt mówi "
    "говорит"
)
"""A question with one asks about what was said, whatever else it names."""
_YOUR_TURN = re.compile(
    r"\W*(?:(?:and|also|und|et|y|e|en|i|и|so)\W+)?(?:(?:can|could|will|would) you|"
    r"is there (?:a|an|any) (?:\w+ )?way to|"
    r"(?:kannst|könntest|würdest) du|"
    r"(?:peux|pourrais)[ -]tu|(?:pouvez|pourriez)[ -]vous|tu peux|puedes|podrías|puoi|potresti|podes|pode|"
    r"poderias|você pode|kun je|kan je|zou je|możesz|mógłbyś|можешь|не мог бы ты)\b",
    re.IGNORECASE,
)
_GOING_ON = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|right|alright|so|now|well|good|great|anyway|also|gut|super|okej|bon|bien|bueno|"
    r"vale|bene|"
    r"allora|então|bom|goed|dobrze|dobra|хорошо|ну),?\s+(?=(?:what|where|when|who|which|was|wo|wann|wer|"
    r"welche\w*|quel\w*|"
    r"où|quand|qui|qué|dónde|cuándo|quién|cuál|cosa|dove|quando|chi|quale|que|onde|quem|qual|wat|waar|"
    r"wanneer|wie|welke|co|"
    r"gdzie|kiedy|kto|что|где|когда|кто)\b))"
    r"|^\W*(?:(?:(?:having )?said that|that said|that being said|with that(?: out of the way| done)?|"
    r"(?:apart|aside) from that|other than that|besides that|dito isso|dicho (?:esto|eso)|"
    r"detto (?:questo|ciò)|"
    r"(?:cela|ceci) dit|à part ça|sinon|davon abgesehen|abgesehen davon|aparte de eso|a parte questo|"
    r"(?:fora|tirando) isso|afgezien daarvan|dat gezegd hebbende|poza tym|кроме того)"
    r"(?=\W*[,;:.]|\s+(?:the|it|this|i|we|you|all|everything|nothing|is|looks?|ist|das|die|der|le|la|les|el|"
    r"los|"
    r"il|o|a|het|de)\b))",
    re.IGNORECASE,
)
"""Leads on to something else, though it has a word that points back."""
_UNSPACED_POINTING = re.compile(
    r"(?:これ|それ)(?!ぞれ|から|まで)|(?:この|その)(?=ルール|規則|ポリシー|方針|話|情報|理解)|(?:这|這|那)(?![个個段行里裡次边邊些])"
    r"|(?:这|這|那)(?:个|個)(?=规|規|说|說|政策|主意|建议)|对吗|對嗎|正し|合って(?:い?ます)?か|いいです?か|大丈夫です?か|本当|真的|可以吗|行吗|觉得呢"
)
MAX_BARE_CHARS = 4
_UNSPACED_DOUBT = re.compile(
    r"[对對好行吗嗎吧呢]|没错|确定|確定|いい|よい|本当|ほんと|正し|合って|大丈夫|確か|です|ます|맞|정말|진짜|까"
)
_UNSPACED_ASKING = re.compile(
    r"[何誰]|だれ|どこ|どう(?!して)|怎[么麼样樣]|如何|いつ|どれ|(?<!为)什么|(?<!為)什麼|哪|谁|誰|几"
)
COURTESIES = read_word_set(
    "thanks thank thx ty cheers please ok okay great nice perfect hi hello hey morning you so very much many "
    "lot a danke dankeschön vielen dank bitte super prima merci beaucoup bien d'avance avance gracias muchas "
    "mil grazie mille tante obrigado obrigada muito bedankt dank je wel alvast dzięki dziękuję bardzo hvala "
    "спасибо большое teşekkürler teşekkür ederim sağ ol tak tack takk kiitos in advance im voraus"
)
_UNSPACED_COURTESY = re.compile(
    r"(?:どうも)?ありがとう(?:ございます|ございました)?|よろしく(?:お願いします)?|お願いします|谢谢你?|多谢|謝謝|辛苦了"
)


_REQUEST = re.compile(
    r"(?:[^.?!]{0,200},)?\W{0,20}(?:(?:and|so|also|und|et|y|e|en)\W{1,20})?(?:"
    r"(?:can|could|would|will) (?:you|we) (?:\w+ )?please\b(?P<en>[^.?!]*)"
    r"|(?:can|could|would|will) you\b(?P<en2>[^.?!]*)\bplease\W*$"
    r"|would you mind (?:(?:always|also|not|never|please|only) )?"
    r"(?!(?:tell|explain|check|say|show|look|ask|confirm|verify)ing)\w+ing\b"
    r"|(?:would|is|might) it be possible to (?P<en3>[^.?!]*)"
    r"|(?:kannst|könntest|würdest) du (?:\w+ )?bitte\b|(?:können|könnten|würden) sie (?:\w+ )?bitte\b"
    r"|(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous)\b[^.?!]*\bs['’]il (?:te|vous) pla[iî]t"
    r"|(?:puedes|podrías|puede|podría|podéis)\b[^.?!]*\bpor favor\b"
    r"|(?:puoi|potresti|può|potrebbe)\b[^.?!]*\bper favore\b"
    r"|(?:você pode|pode|poderia|podes)\b[^.?!]*\bpor favor\b"
    r"|(?:kun|kan|zou) (?:je|jij|u)\b[^.?!]*\b(?:alsjeblieft|alstublieft)\b"
    r"|(?:czy )?(?:możesz|mógłbyś|mogłabyś) proszę\b"
    r"|(?:можешь|мог бы ты|могли бы вы|можете),? пожалуйста\b"
    r"|(?:(?:can|could|would|will) you|(?:can|could) we|(?:kannst|könntest|würdest) du|"
    r"(?:können|könnten) (?:sie|wir)|würden sie|"
    r"(?:peux|pourrais)[ -]tu|(?:pouvez|pourriez)[ -]vous|tu peux|puedes|podrías|podemos|puoi|potresti|"
    r"possiamo|"
    r"você pode|pode|poderia|podes|kun je|kan je|zou je|kunnen we|(?:czy )?(?:możesz|mógłbyś|mogłabyś)|"
    r"(?:можешь|мог бы ты|можете))\b(?=[^.?!]*\b(?:always|never|from now on|going forward|in (?:the )?future|"
    r"every time|"
    r"whenever|by default|ab jetzt|künftig|in zukunft|immer|nie|grundsätzlich|désormais|dorénavant|toujours|"
    r"jamais|"
    r"à l['’]avenir|de ahora en adelante|a partir de ahora|siempre|nunca|d['’]ora in (?:poi|avanti)|sempre|"
    r"mai|"
    r"a partir de agora|daqui (?:para|pra) frente|voortaan|altijd|nooit|vanaf nu|od teraz|zawsze|nigdy|"
    r"отныне|всегда|никогда|впредь)\b))",
    re.IGNORECASE,
)
"""A question in form, and a wish in fact."""
MAX_REQUEST_CHARS = 300
"""Of a wish that has the form of a question: what is longer counts as a question."""
INQUIRY = re.compile(
    r"\b(?:whether|tell|say|explain|check|look|find out|see if|know|show|ask|what|why|how|which|who|confirm|"
    r"verify|ob|sagen|erklären|prüfen|nachsehen|zeigen|warum|wie|was|welche\w*|dire|vérifier|expliquer|"
    r"pourquoi|comment|"
    r"quel\w*|decir\w*|explicar|comprobar|revisar|cómo|qué|cuál|controllare|spiegare|perché|come|cosa|dizer|"
    r"verificar|como|qual|zeggen|uitleggen|controleren|waarom|hoe|wat|czy|powiedzieć|sprawdzić|dlaczego|jak|"
    r"сказать|объяснить|проверить|почему|как|что|ли)\b",
    re.IGNORECASE,
)
"""Asks to look or to answer."""


def is_request(text: str) -> bool:
    """ "Can you please use tabs?" asks for something, not whether."""
    if len(text) > MAX_REQUEST_CHARS or not _REQUEST.match(text):
        return False
    asked = INQUIRY.search(text)
    # "Could you please always use uv when you show me commands?"
    return asked is None or len(text[: asked.start()].split()) > MAX_ASKING_WORDS


MAX_ASKING_WORDS = 6
"""Before the word that asks for an answer: behind more of them it belongs to something else."""


def says_only_thanks(text: str) -> bool:
    """ "Thanks!": it says nothing about the sentences around it."""
    if is_unspaced(text):
        return _UNSPACED_COURTESY.fullmatch(normalize_text(text).strip(" 。!！.、,")) is not None
    words = [token.text for token in split_tokens(text) if not token.is_break]
    return bool(words) and set(words) <= COURTESIES


def asks_about_last(text: str, parsed: ParsedSentence, grammar: Grammar, *, asks_for_look: bool) -> bool:
    """Whether a question is about the sentence before it, and so takes back that it holds: it names nothing
    else.

    `asks_for_look`: it asks to look or to answer.
    """
    if is_unspaced(text):
        return _asks_unspaced(text)
    text = _GOING_ON.sub("", text)
    tokens = [token for token in split_tokens(text) if not token.is_break]
    is_work = _YOUR_TURN.match(text) is not None and not asks_for_look
    if not tokens or parsed.count > MAX_POINTING_WORDS or is_work:
        return False
    words = [token.text for token in tokens]
    known = _read_closed(grammar) | _POINTING[grammar.name]
    named = [token for token in tokens if token.is_exact or token.text not in known]
    is_checking = not _CHECKING.isdisjoint(words)
    if not named:
        return not is_checking and not _leads_on(words, grammar)
    is_free = len(named) > 1 or named[0].is_exact or is_checking
    return _names_rule(words, grammar) or (not is_free and _points_at_it(words, grammar))


def _points_at_it(words: list[str], grammar: Grammar) -> bool:
    """Whether a question with a word of its own is about what was said all the same."""
    if not _ANSWERING.isdisjoint(words):
        return True
    if words[0] in _WAYS:
        return False
    is_short = words[0] in _REASONS and len(words) <= MAX_REASON_WORDS
    places = range(min(len(words), MAX_SUBJECT_PLACE + 1))
    return is_short or _is_about_it(words, grammar) or any(_stands_alone(at, words, grammar) for at in places)


MAX_REASON_WORDS = 3
"""Of a question for a reason ("Why so strict?")."""
MAX_SUBJECT_PLACE = 2
"""Where the subject of a question stands, from 0: "Is that …", "Why is that …"."""


@lru_cache(maxsize=16)
def _read_closed(grammar: Grammar) -> frozenset[str]:
    return (
        grammar.idle
        | grammar.speakers
        | grammar.passive
        | grammar.negations
        | grammar.markers
        | grammar.limits
        | grammar.weak
        | grammar.asking
        | grammar.inverting
        | grammar.subjects
        | _ARTICLES
        | _CONTRACTED
        | _PLACES
        | _REASONS
        | _JUDGING
        | _EMPTY
        | _CHECKING
        | _ONWARD
        | CONJUNCTIONS
        | {NOT}
    )


def _leads_on(words: list[str], grammar: Grammar) -> bool:
    """ "And now?", "Where were we?": it has no matter of its own, and goes on."""
    is_doubt = not (_JUDGING | _POINTING[grammar.name]).isdisjoint(words)
    is_place = words[0] in _PLACES and len(words) > 1
    return not _ONWARD.isdisjoint(words) or (is_place and not is_doubt)


def _names_rule(words: list[str], grammar: Grammar) -> bool:
    """ "Why do we follow this rule?"."""
    pointing = _POINTING[grammar.name]
    return any(one in pointing and two in _RULES for one, two in pairwise(words))


def _is_about_it(words: list[str], grammar: Grammar) -> bool:
    """ "Is it allowed in production?", "What kind of advice is that?"."""
    is_named = words[-1] in _POINTING[grammar.name] or (len(words) > 1 and words[1] in _IMPERSONAL)
    return is_named and not _JUDGING.isdisjoint(words)


def _stands_alone(at: int, words: list[str], grammar: Grammar) -> bool:
    """Whether a word stands for what was said, and not before the name of something else: "Is that safe in
    production?", "Is this handler safe?"."""
    pointing = _POINTING[grammar.name]
    if words[at] not in pointing - {"so", "tak"}:
        return False
    closed = _read_closed(grammar)
    behind = [*words[at + 1 :], "", ""]
    if not behind[0] or behind[0] in closed:
        return True
    is_verb_or_state = not behind[1] or behind[1] in grammar.markers | _WHOLE
    return is_verb_or_state and words[0] not in grammar.asking - _REASONS


def points_back(text: str, grammar: Grammar) -> bool:
    """Whether it has a word that stands for what was said before: "That was for the other window."."""
    if is_unspaced(text):
        return _UNSPACED_BACK.search(text) is not None
    tokens = [token.text for token in split_tokens(_GOING_ON.sub("", text))]
    # "So scope decisions …" goes on.
    return not (_POINTING[grammar.name] - {"so", "such", "tak"}).isdisjoint(tokens)


_UNSPACED_BACK = re.compile(r"これ|それ|这|這|那")


def asks_for_work(text: str) -> bool:
    """ "Could you draft the steps?"."""
    return _YOUR_TURN.match(text) is not None


def _asks_unspaced(text: str) -> bool:
    bare = "".join(mark for mark in normalize_text(text) if mark.isalnum())
    if _UNSPACED_POINTING.search(bare):
        return len(bare) <= 2 * MAX_UNSPACED_CHARS
    is_short = len(bare) <= MAX_UNSPACED_CHARS and not _UNSPACED_ASKING.search(bare)
    return is_short and (len(bare) <= MAX_BARE_CHARS or _UNSPACED_DOUBT.search(bare) is not None)
