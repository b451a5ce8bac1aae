"""What a question or a courtesy behind a sentence says about that sentence: often nothing."""

from __future__ import annotations

import re
from itertools import pairwise

from sevenfold.core.text.stems import normalize_text
from sevenfold.layers.memory.trust.phrases import NOT, ParsedSentence
from sevenfold.layers.memory.trust.tokens import (
    Grammar,
    fold_word,
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
    "verdade certo errado válido bom boa má ideia regra achas acha concorda waar juist klopt goed slecht "
    "idee regel vind vindt denk denkt mening eens prawda słuszne dobrze dobry zły pomysł zasada sądzisz "
    "myślisz zgoda правда верно правильно хорошо плохая идея правило думаешь считаешь согласен"
)
"""Words of a judgement: a question with one asks whether the sentence before it holds."""
_RULES = read_word_set("rule policy regel règle regla regola regra zasada правило")
_REASONS = read_word_set(
    "why how whys hows warum wieso weshalb wie pourquoi comment perché come porquê como cómo waarom hoe "
    "dlaczego jak почему зачем как разве неужели ли czy"
)
"""These ask how what was said can be; the others ask for something that was not said."""
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
_CODE_NOUNS = read_word_set(
    "test tests build file function method class component error query route hook endpoint script "
    "job loop bug parameter module migration table column datei funktion methode klasse komponente "
    "fehler abfrage skript schleife modul tabelle spalte fichier fonction méthode classe composant "
    "erreur requête boucle tableau archivo fichero función método clase componente consulta bucle "
    "módulo tabla funzione metodo classe errore modulo tabella arquivo função classe erro laço "
    "tabela bestand functie klasse fout tabel plik funkcja błąd zapytanie skrypt pętla "
    "файл функция метод класс компонент ошибка ошибку запрос скрипт тест таблица"
)
"""Behind "this", what the user works on, and not what they said."""
_DOING = read_word_set("do does did doing done say think believe machen macht mache tun sagen denken")
_ANSWERING = read_word_set(
    "say says said source evidence proof quote quelle beweis zitat sagt really wirklich vraiment davvero "
    "seriously agree agreed allowed rule policy regel règle regla regola regra zasada"
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
    r"^\W*(?:(?:ok(?:ay)?|right|alright|so|now|well|good|great|anyway|also|gut|super|okej|bon|bien|bueno|vale|bene|"
    r"allora|então|bom|goed|dobrze|dobra|хорошо|ну),?\s+(?=(?:what|where|when|who|which|was|wo|wann|wer|welche\w*|quel\w*|"
    r"où|quand|qui|qué|dónde|cuándo|quién|cuál|cosa|dove|quando|chi|quale|que|onde|quem|qual|wat|waar|wanneer|wie|welke|co|"
    r"gdzie|kiedy|kto|что|где|когда|кто)\b))"
    r"|^\W*(?:(?:(?:having )?said that|that said|that being said|with that(?: out of the way| done)?|"
    r"(?:apart|aside) from that|other than that|besides that|dito isso|dicho (?:esto|eso)|"
    r"detto (?:questo|ciò)|"
    r"(?:cela|ceci) dit|à part ça|sinon|davon abgesehen|abgesehen davon|aparte de eso|a parte questo|"
    r"(?:fora|tirando) isso|afgezien daarvan|dat gezegd hebbende|poza tym|кроме того)"
    r"(?=\W*[,;:.]|\s+(?:the|it|this|i|we|you|all|everything|nothing|is|looks?|ist|das|die|der|le|la|les|el|los|"
    r"il|o|a|het|de)\b))",
    re.IGNORECASE,
)
"""Leads on to something else, though it has a word that points back."""
_UNSPACED_POINTING = re.compile(
    r"これ|それ|この|その|この|这|這|那|对|對|正し|合って|いい|大丈夫|本当|真的|可以|行吗|觉得|思"
)
_UNSPACED_CODE = re.compile(
    r"(?:这|這|那)(?:个|個|段|行)(路由|组件|函数|方法|报错|错误|接口|变量|测试|文件|脚本|页面|查询|模块|代码)"
    r"|(?:この|その)(?=フック|関数|エラー|テスト|メソッド|クラス|ファイル|スクリプト|クエリ|コード)"
)
"""The same as `_CODE_NOUNS`."""
_UNSPACED_ASKING = re.compile(r"[何誰]|だれ|どこ|いつ|どれ|什么|什麼|哪|谁|誰|几")
COURTESIES = read_word_set(
    "thanks thank thx ty cheers please ok okay great nice perfect hi hello hey morning you so very much many "
    "lot a danke dankeschön vielen dank bitte super prima merci beaucoup bien d'avance avance gracias muchas "
    "mil grazie mille tante obrigado obrigada muito bedankt dank je wel alvast dzięki dziękuję bardzo hvala "
    "спасибо большое teşekkürler teşekkür ederim sağ ol tak tack takk kiitos in advance im voraus"
)
_UNSPACED_COURTESY = re.compile(
    r"(?:どうも)?ありがとう(?:ございます|ございました)?|よろしく(?:お願いします)?|お願いします|谢谢你?|多谢|謝謝|辛苦了"
)


def says_only_thanks(text: str) -> bool:
    """ "Thanks!": it says nothing about the sentences around it."""
    if is_unspaced(text):
        return _UNSPACED_COURTESY.fullmatch(normalize_text(text).strip(" 。!！.、,")) is not None
    words = [token.text for token in split_tokens(text) if not token.is_break]
    return bool(words) and set(words) <= COURTESIES


def asks_about_last(text: str, parsed: ParsedSentence, grammar: Grammar, *, asks_for_look: bool) -> bool:
    """Whether a question is about the sentence before it, and so takes back that it holds.

    `asks_for_look`: it asks to look or to answer.
    """
    if is_unspaced(text):
        return _asks_unspaced(text)
    text = _GOING_ON.sub("", text)
    tokens = [token.text for token in split_tokens(text) if not token.is_break]
    if not tokens:
        return False
    words = [word.text for word in parsed.words]
    if parsed.count > MAX_REFERRING_WORDS:
        return parsed.count <= MAX_POINTING_WORDS and _doubts(
            text, tokens, grammar, asks_for_look=asks_for_look
        )
    if _doubts(text, tokens, grammar, asks_for_look=asks_for_look):
        return True
    if not words or (NOT in words and len(words) <= MAX_REFERRING_WORDS):
        return True
    if _YOUR_TURN.match(text) and not asks_for_look:
        return False
    return not _has_own_matter(tokens, grammar)


def points_back(text: str, grammar: Grammar) -> bool:
    """Whether it has a word that stands for what was said before: "That was for the other window."."""
    if is_unspaced(text):
        return _UNSPACED_BACK.search(text) is not None
    tokens = [token.text for token in split_tokens(_GOING_ON.sub("", text))]
    # "So scope decisions …" goes on.
    return not (_POINTING[grammar.name] - {"so", "such", "tak"}).isdisjoint(tokens)


_UNSPACED_BACK = re.compile(r"これ|それ|这|這|那")


def _doubts(text: str, tokens: list[str], grammar: Grammar, *, asks_for_look: bool) -> bool:
    """ "Or is that a bad idea?"."""
    if not _CHECKING.isdisjoint(tokens) or (_YOUR_TURN.match(text) and not asks_for_look):
        return False
    if len(tokens) > 1 and tokens[0] in _PLACES:
        # "Waar waren we?" is not "Is dat waar?".
        tokens = tokens[1:]
        is_other = True
    else:
        is_other = any(token in grammar.asking - _REASONS for token in tokens[:2])
    # "Wat doet deze regel?" asks about a line.
    if not (_JUDGING - _RULES if is_other else _JUDGING).isdisjoint(tokens):
        return not _names_other(tokens, grammar)
    pointing = _POINTING[grammar.name]
    if is_other:
        return tokens[-1] in pointing
    # "Why is the queue so slow?" measures, "why do so here?" points.
    led = zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False)
    return any(
        one in pointing
        and two not in _CODE_NOUNS | _CONTRACTED
        and (one != "so" or not two or before in _DOING)
        for before, one, two in led
    )


def asks_for_work(text: str) -> bool:
    """ "Could you draft the steps?"."""
    return _YOUR_TURN.match(text) is not None


def _names_other(tokens: list[str], grammar: Grammar) -> bool:
    """Whether it judges a thing that it names: "Can you check that the link is good?", "What do you think
    of the
    layout?"."""
    if not _ANSWERING.isdisjoint(tokens) or not _POINTING[grammar.name].isdisjoint(tokens[-1:]):
        return False
    return any(
        (one in _ARTICLES | _CONTRACTED and two not in _JUDGING | _POINTING[grammar.name] | _ARTICLES)
        or (one in _POINTING[grammar.name] and two in _CODE_NOUNS)
        for one, two in pairwise(tokens)
    )


def _has_own_matter(tokens: list[str], grammar: Grammar) -> bool:
    """ "What is left?", "And now?", "Is the build green?"."""
    if not _ONWARD.isdisjoint(tokens):
        return True
    asking = grammar.asking - _REASONS
    if len(tokens) > 1 and any(token in asking for token in tokens[:2]):
        return not {"if", "for", "about", "wenn"} & set(tokens)
    if tokens[0] in _PLACES and len(tokens) > 1:
        return True
    is_named = any(token in _ARTICLES | _CONTRACTED for token in tokens[1:-1])
    return is_named and fold_word(tokens[0]) not in _REASONS


def _asks_unspaced(text: str) -> bool:
    bare = "".join(mark for mark in normalize_text(text) if mark.isalnum())
    bare = _UNSPACED_CODE.sub(r"\1", bare)
    if _UNSPACED_POINTING.search(bare):
        return len(bare) <= 2 * MAX_UNSPACED_CHARS
    return len(bare) <= MAX_UNSPACED_CHARS and not _UNSPACED_ASKING.search(bare)
