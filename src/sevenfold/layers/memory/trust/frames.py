"""What stands around a sentence of the user: whether they ask, announce somebody's text, or take it back. And
which other order of phrases and which other words say the same."""

from __future__ import annotations

import re
from itertools import pairwise

from sevenfold.layers.memory.trust.phrases import NOT, ONLY, ParsedSentence
from sevenfold.layers.memory.trust.replies import (
    INQUIRY,
    MAX_POINTING_WORDS,
    MAX_REFERRING_WORDS,
    asks_about_last,
    asks_for_work,
    is_request,
    points_back,
    says_only_thanks,
)
from sevenfold.layers.memory.trust.scopes import is_invention, takes_back
from sevenfold.layers.memory.trust.tokens import (
    BREAK,
    Grammar,
    is_unspaced,
    read_word_set,
    split_tokens,
)

SHOWN = "…."
"""At the end of a sentence that shows a text which was taken out."""
_QUESTION_MARK = re.compile(
    r"[?？¿](?!\w)|¿|(?:か|かな|까|나|吗|嗎|呢|么)[。.!！요]*$|([一-鿿])[不没]\1"
    r"|\b(?:or|oder|ou|o|of|czy|albo|nebo|или|чи|eller|veya) "
    r"(?:not|nicht|pas|non|no|não|niet|nie|ne|нет|ні|inte|ikke)\W*$"
    r"|(?:,|\b(?:anyway|anyhow|btw|so|but))\s*(?:what|how|where|when|who) (?:would|do|does|did|should|shall|"
    r"can|could|are|is) "
    r"(?:you|we|i|they|it)\b"
    r"|^\W*any (?:reason|objections?|harm|thoughts|problem)\b|^\W*será que\b"
    r"|\b(?:secondo te|à ton avis|en tu opinión)\W*$|\bm[ıiuü](?:y[ıiuü]z)?\W*$",
    re.IGNORECASE,
)
"""A mark, a particle, "or not?", or a question behind a comma."""
_ELLIPSIS = re.compile(r"(?:n['’]t|\b(?:not|nicht|pas|no|non|não|niet|nie|не|inte|ikke))\W*$", re.IGNORECASE)
"""Ends a sentence whose verb stands in the one before: "The rest of the time we don't."."""
_INVERSION = re.compile(r"\b\w+-(?:t-)?(?:nous|vous|tu|on|il|elle|ils|elles|je)\b|\best-ce\b", re.IGNORECASE)
_ORDER = re.compile(
    r"\s*\w+(?:ons-nous|ez-vous)\b(?!.*\w-(?:nous|vous|tu|on|il|elle|je)\b).*[.!]\s*", re.IGNORECASE
)
_AUXILIARY = re.compile(
    r"\s*(?:avons|avez|devons|devez|pouvons|pouvez|voulons|voulez|allons-nous \w+|allez|"
    r"savons|savez|devrions|"
    r"devriez|pourrions|pourriez|voyons)-",
    re.IGNORECASE,
)
_VERB_FIRST = frozenset(("wir", "ich", "du", "ihr", "we", "wij", "jij", "ik", "jullie"))
_RECORD = re.compile(
    r"\s*(?:[-*+•]|\d+[.)])?\s*\[[ xX✓-]?\]"  # a box to tick
    r"|\s*(?://|#|/\*|<!--|--\s|;;)"  # a comment in code, a heading
    r"|\s*(?:the\s+)?(?:user|you|me|i|human|assistant)\s*[:>]"  # a turn of a chat
    r"|\s*(?:option|variante?|plan|idea|alternativa?e?|opción|opzione|opção|optie|opcja|вариант)\s\w\s*[:.)]"
    r"|.*~~.+~~|.*<!--",  # struck out
    re.IGNORECASE | re.DOTALL,
)
_SIGNATURE = re.compile(r"\s*(?:[-–—]+\s*\w+(?:\s\w+)?|\w+(?:\s\w+){0,2},\s*\w+)\W*$")
_AHEAD = re.compile(
    r"(?:\b(?:this|these|following|below|folgende[sn]?|dies|dieses|das hier|ceci|suivante?|esto|siguiente|"
    r"questo|"
    r"seguente|isto|seguinte|dit|deze|volgende|to|следующее|это|follows|folgt|suit|sigue|segue|volgt)\b|以下|次|"
    r"这个|下面)\W*$|:\s*$|：\s*$"
    r"|\bthe next (?:message|text|lines?|paragraph)\W*$"
    r"|\b(?:the following|as follows|folgende[rnms]?|le suivant|la siguiente|el siguiente|il seguente)\b",
    re.IGNORECASE,
)
_ABOUT_THIS = re.compile(
    r"(?<!\bin )(?<!\bfor )\b(?:this|these|dies|ceci|cela|ça|esto|questo|isto|dit|это)\b(?: \w+)?"
    r"(?:, ?[^.,;:]{1,24})?\W*$",
    re.IGNORECASE,
)
"""Ends with "this", or with "this" and one word more, and a courtesy."""
_WORKING = re.compile(
    r"\b(?:fix|set up|rename|move|delete|remove|refactor|restart|deploy|rebuild|regenerate|bump|rebase|"
    r"squash|format|lint)\s+(?:the|that|those|our|my|all|a|an)\b",
    re.IGNORECASE,
)
"""Work on a text, and no words of it."""
_PRESENTING = re.compile(
    r"\W*(?:here(?:'s|’s| is| are| comes?)|this is|these are|voici|voilà|"
    r"hier (?:ist|sind|is|zijn|kommt|komt)|aquí (?:está|están|va|viene)|esto es|ecco|questo è|"
    r"aqui (?:está|estão|vai|vem)|isto é|dit is|oto|вот)\b",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"\W*(?:that(?:'s|’s| is)|this is|das ist|c'est|esto es|questo è|isto é|dit is|to jest|это) "
    r"(?:not |nicht |pas )?"
    r"(?:wrong|right|correct|fine|great|good|nice|perfect|ok|okay|better|falsch|richtig|gut|super|perfekt|"
    r"faux|"
    r"juste|bien|parfait|correcto|bien|perfecto|giusto|sbagliato|perfetto|certo|errado|perfeito|goed|fout|"
    r"dobrze|"
    r"źle|верно|неверно|хорошо)\b",
    re.IGNORECASE,
)
# fmt: off
_TEXT_WORDS = frozenset((
    "mail", "email", "message", "letter", "text", "page", "article", "post", "tweet", "comment", "ticket",
    "issue", "thread", "docs", "documentation", "handbook", "manual", "wiki", "readme", "guide", "changelog",
    "snippet", "paragraph", "sentence", "line", "quote", "transcript", "slack", "announcement", "poster",
    "banner", "screenshot", "title", "blog", "newsletter", "memo", "proposal",
    "plan", "idea", "advice", "tip", "joke", "draft", "suggestion",
    "said", "says", "say", "wrote", "writes", "sent", "sends", "received", "heard", "told", "tells",
    "forwarded", "posted", "copied", "pasted", "found", "quoted", "read", "claims", "claimed",
    "translate", "proofread", "rephrase", "summarize", "summarise", "rewrite", "reword", "grammar",
    "spelling",
    "paraphrase", "wording",
    "nachricht", "brief", "seite", "artikel", "kommentar", "handbuch", "satz", "zeile", "zitat", "schreibt",
    "schrieb", "sagt", "sagte", "geschickt", "bekommen", "gelesen", "gefunden", "ubersetze", "ubersetzen",
    "courriel", "lettre", "phrase", "commentaire", "manuel", "ecrit", "dit", "envoye", "recu", "lu",
    "traduis",
    "mensaje", "correo", "carta", "pagina", "frase", "comentario", "dice", "dijo", "escribe", "escribio",
    "envio", "recibi", "lei", "traduce", "messaggio", "lettera", "commento", "scrive", "scritto", "inviato",
    "ricevuto", "letto", "traduci", "mensagem", "comentario", "disse", "escreve", "escreveu", "enviou",
    "recebi", "li", "traduza", "bericht", "brief", "zin", "opmerking", "schrijft", "schreef", "zegt", "zei",
    "stuurde", "gelezen", "vertaal", "wiadomosc", "list", "strona", "zdanie", "komentarz", "pisze", "napisal",
    "napisala", "mowi", "przetlumacz", "сообщение", "письмо", "страница", "фраза", "комментарии", "пишет",
    "написал", "написала", "говорит", "сказал", "переведи",
))
# fmt: on
"""A sentence with one may announce somebody's text, which then follows."""
_TELLING_WORDS = read_word_set(
    "said says wrote writes sent sends received heard told tells forwarded posted copied pasted quoted "
    "claims claimed "
    "schreibt schrieb sagt sagte geschickt bekommen gelesen ecrit dit envoye recu lu dice dijo escribe "
    "escribio envio "
    "recibi lei scrive scritto inviato ricevuto letto disse escreve escreveu enviou recebi li schrijft "
    "schreef zegt zei "
    "stuurde gelezen pisze napisal napisala mowi пишет написал написала говорит сказал"
)
_TURNING = read_word_set(
    "but however though although or that this these those which says said aber jedoch oder das dies mais "
    "cependant ou "
    "ceci cela pero sino o eso esto ma pero oppure questo quello mas porem ou isso isto maar echter of dat "
    "dit ale "
    "jednak lub to но однако или это"
)
_APPROVING = read_word_set("important matters matter rule policy decision final settled decided agreed key")


def is_question(text: str, grammar: Grammar) -> bool:
    """Whether it asks, with a question mark or without."""
    if is_request(text):
        return False
    if _QUESTION_MARK.search(text) or (grammar.name == "fr" and _is_inverted_french(text)):
        return True
    if _UNMARKED.search(text) or _is_inverted_northern(text, grammar):
        return True
    words = [token.text for token in split_tokens(text)]
    while words and words[0] in _CONNECTIVES.get(grammar.name, ()):
        words = words[1:]
    first, second = (*words[:2], "", "")[:2]
    if first in grammar.asking and not _is_spanish_that(text, first, grammar):
        # "What I don't like is …", "Was wir brauchen, ist …" assert something.
        is_relative = second in grammar.speakers and grammar.name in ("en", "de")
        is_relative &= not _RELATED_BY.isdisjoint(words[2:])
        if is_relative and grammar.asking.isdisjoint(words[1:]):
            return False
        # "Cuando cambies el esquema, …" is a condition.
        return first not in grammar.markers or BREAK not in words
    if (
        first in _PREPOSITIONS
        and (second in grammar.asking or second in ("que", "when"))
        and BREAK not in words
    ):
        # "Por que pulamos a revisão"
        return True
    if first in ("do", "have") and grammar.name == "en":
        return second in grammar.speakers | {"they", "he", "she", "it"}
    if second in grammar.negations and grammar.name == "en":
        # "Wouldn't it be easier?"
        second = (*words[2:3], "")[0]
    is_inverted = _may_invert(first, grammar) and second in grammar.subjects
    is_verb_first = grammar.name in ("de", "nl") and second in _VERB_FIRST
    return is_inverted or (is_verb_first and first not in grammar.markers | grammar.idle | _ADVERBS)


def _is_inverted_northern(text: str, grammar: Grammar) -> bool:
    """ "Ska vi stänga av den", "gebruiken we dezelfde sleutel", and not "om vi …" and "får "
    "du ett fel, så …"."""
    words = [token.text for token in split_tokens(text)]
    first, second = (*words[:2], "", "")[:2]
    if second == "we":
        # "Token we never log." is English.
        is_english = grammar.name == "en" and not _ENGLISH_ALONE.isdisjoint(words[2:])
        return first.endswith("en") and first not in _ENGLISH_IN_EN and not is_english
    is_led = first in _NORTHERN_LEADS or BREAK in words or not _NORTHERN_THEN.isdisjoint(words)
    return second in _NORTHERN_SUBJECTS and not is_led


_NORTHERN_SUBJECTS = frozenset(("vi", "jag", "jeg", "man", "dere"))
_NORTHERN_LEADS = read_word_set(
    "om när att som hvis når at og och men så for för fordi eftersom där der da då hur "
    "hvordan medan mens innan før "
    "sedan siden wenn dass ob weil falls und aber sobald bevor a the one old no to sich wie was also "
    "see read use run check open"
)
"""Words before such a subject that begin no question."""
_NORTHERN_THEN = frozenset(("så", "sa"))
_RELATED_BY = read_word_set("is are was were ist sind war waren")
"""One of them says something of "what we need": that alone asks."""
_ENGLISH_ALONE = read_word_set("always never the only every must should with and keep not ignore all our")
"""Words that no Dutch sentence has."""
_ENGLISH_IN_EN = frozenset(
    ("when", "then", "often", "even", "open", "seven", "ten", "golden", "given", "wooden")
)
_UNMARKED = re.compile(
    r"^\W*(?:(?:hey|hi|so|and|but|also|und|et|y|e|en|i|и|а)\W+)?(?:"
    r"(?:es|is|c|était) (?:cierto|verdad|vrai)\b|c['’]est vrai qu|(?:é|è|e) (?:verdade|vero) "
    r"che?\b|é verdade que\b|"
    r"is it (?:true|ok|okay|fine|right|correct)\b|(?:stimmt|ist) es (?:ok |okay |richtig |"
    r"wahr )?,? ?(?:dass|wenn)\b|"
    r"klopt het\b|"
    r"(?:(?:i['’]?m |i am )?(?:not sure|unsure|wondering|curious)|(?:anyone|anybody|somebody) "
    r"knows?|no idea(?: yet)?|idk|"
    r"i(?: do not| don['’]?t) (?:know|remember|recall))\W+(?:if|whether|why|how|what|when|"
    r"who)\b(?!\s*,)|(?:do )?you think\b|"
    r"(?:(?:ich )?weiß (?:ich )?nicht|keine ahnung)\W+(?:ob|wie|was|wann|wer|warum)\b|je "
    r"(?:ne )?sais pas si\b|"
    r"no sé si\b|non so se\b|(?:eu )?não sei se\b|(?:(?:ik )?weet niet|geen idee)\W+of\b|nie wiem\W+czy\b|"
    r"(?:я )?не знаю\W+(?:как|что|нужно|можно|надо|стоит)\b|"
    r"(?:onko|pitääkö|voiko|saako|voimmeko|pitäisikö|täytyykö|eikö|olemmeko|tuleeko|kell-e)\b|"
    r"\w+ (?:saako|voiko)\b"
    r")"
    # Whether somebody may do something: said without a mark it is asked.
    r"|^\W*(?:se puede|si può|possiamo|posso|podemos|puedo|a gente pode|on peut|można|можно)\s"
    r"(?!.*\b(?:solo|sólo|soltanto|seulement|uniquement|tylko|только|só|apenas)\b)[^.!;:]*$"
    r"|^\W*\w+ ли\b"
    r"|\b(?:he|hè|huh|né|innit|gell|nicht wahr|n['’]est-ce pas)\W*$|[,–-] ?(?:right|correct|"
    r"verdad|vero|prawda|да)\W*$"
    r"|\b(?:we|you|they|he|she|i|it|that|this|is|are|was|were|do|does|did|has|have|can|should|will)\b.*"
    r"\b(?!(?:it|this|that|the|all|be|is|are|get|do|turn|quite|just|exactly|not|to|goes|work|"
    r"works) )\w+ right$"
    r"|^\W*(?:为什么|為什麼|为何|凭什么|怎么|如何|なぜ|どうして|なんで|왜|어떻게)"
    r"|是否|能否|可否|っけ[。.]*$|かどうか|(?:わから|分から)な|는지 (?:모르|궁금|확인)|가요[.?]*$",
    re.IGNORECASE,
)
"""Asks, or does not know, without a question mark."""


def _is_spanish_that(text: str, first: str, grammar: Grammar) -> bool:
    """ "Que sepas que …": it asks with an accent alone."""
    return grammar.name == "es" and first == "que" and text.lstrip().lower().startswith("que ")


def _is_inverted_french(text: str) -> bool:
    """ "Devons-nous publier", and not the order "Concentrons-nous sur l'export."."""
    found = _INVERSION.search(text)
    return found is not None and (_ORDER.fullmatch(text) is None or _AUXILIARY.match(text) is not None)


def _may_invert(first: str, grammar: Grammar) -> bool:
    """Whether it is an auxiliary, or one that lacks a letter: "shold we"."""
    long = (word for word in grammar.inverting if len(word) == len(first) + 1 > MIN_MISSPELT)
    return first in grammar.inverting or any(
        first == word[:at] + word[at + 1 :] for word in long for at in range(len(word))
    )


MIN_MISSPELT = 4
"""Letters of a word that may be a misspelt auxiliary."""
_PREPOSITIONS = read_word_set(
    "por para com de em a at with from to in for of since mit von für bei zu bis seit pour avec à con da per "
    "su di voor met van op po na z od do на с от до для из к о"
)
_CONNECTIVES = {"en": ("and", "so", "but", "then"), "de": ("und", "also"), "fr": ("et",), "nl": ("en", "dus")}
_ADVERBS = read_word_set("jetzt kunftig heute freitags dienstags montags immer nu voortaan altijd vandaag")


_REPORTED = re.compile(
    r"\b(?:read ?me|docs?|documentation|page|site|website|article|blog|post|e?mails?|messages?|letter|"
    r"ticket|"
    r"issue|thread|logs?|output|comments?|file|changelog|wiki|report|response|result|memory|notes?|it|"
    r"text|snippet|"
    r"instructions?)\s+(?:(?!(?:is|are|be|was|were|been)\b)\w+\s+){0,3}?(?:says?|said|reads?|states?|stated|"
    r"claims?|claimed|tells?|told|"
    r"asks?|"
    r"asked|recommends?|suggests?|instructs?|mentions?)\b"
    r"|\b(?:according to|quoting|quote|as (?:written|stated) in|copied from|pasted from|i (?:found|"
    r"read) (?:this|that))\b"
    r"|\b(?:says?|reads?|states?)\s*:"
    r"|と言(?:って(?!ください)|われ)|によると|だそうです|听说|据说|有人说|在(?:群里|会上|邮件里|文档里|工单里)[^，,。]{0,4}说"
    r"|라고 (?:했|말했|하던)|다고 (?:했|하던|들었)",
    re.IGNORECASE,
)
"""A sentence that tells what some text says is about that text, and nobody's rule."""


_CONCEDED = re.compile(
    r",?\s\b(?:although|though|even though|even if|whatever|no matter what|regardless of what|obwohl|auch "
    r"wenn|"
    r"bien que|même si|aunque|anche se|sebbene|embora|mesmo que|hoewel|ook al|choć|хотя)\b[^.;,:]*",
    re.IGNORECASE,
)
"""What holds in spite of something: "… although the docs say Kafka". It ends at a mark: in "and although it
is old, the handbook says …" the handbook still speaks."""


def is_reported_speech(sentence: str) -> bool:
    """Whether it tells what a page, a mail or a file says."""
    return bool(_REPORTED.search(_CONCEDED.sub("", sentence)))


def is_record_line(text: str) -> bool:
    """A line of a list of tasks, of code or of a chat; or text that is struck out."""
    return _RECORD.match(text) is not None


def points_ahead(text: str) -> bool:
    """Whether it announces what follows: "look at this", "the following"."""
    if _AHEAD.search(text) is not None:
        return True
    # "That's wrong, …" judges what was done, and shows nothing.
    return _PRESENTING.match(text) is not None and _VERDICT.match(text) is None


def announces_message(text: str) -> bool:
    """Whether it ends a message and announces the next: "Here comes the text to translate."."""
    return is_invention(text) or (points_ahead(text) and not text.endswith(SHOWN))


def announces_text(text: str) -> bool:
    """Whether what follows may be a text that it shows, and no statement of the user. Who says "fix the typo
    in the README" shows none."""
    is_about_text = has_text_word(text) and _WORKING.search(text) is None
    return is_about_text or points_ahead(text) or _ABOUT_THIS.search(text) is not None


def shows_text(text: str) -> bool:
    """ "Translate this: always skip the review."."""
    head, colon, _ = text.partition(":")
    return bool(colon) and announces_text(head)


def has_text_word(text: str) -> bool:
    """Whether it speaks of some text, or of somebody who said something."""
    return any(is_text_word(token.text) for token in split_tokens(text))


def is_text_word(word: str) -> bool:
    return word in _TEXT_WORDS


def is_telling_word(word: str) -> bool:
    """Whether it says that somebody said something."""
    return word in _TELLING_WORDS


def is_back_reference(text: str, parsed: ParsedSentence, grammar: Grammar) -> bool:
    """Whether a question has no matter of its own, and so asks about what was said before."""
    if has_text_word(text) and not asks_for_work(text):
        # "Is it from the docs?", "Can we trust this page?"
        words = [token.text for token in split_tokens(text)]
        pairs = pairwise(words) if points_back(text, grammar) else ()
        is_this = any(points_back(one, grammar) and is_text_word(two) for one, two in pairs)
        if parsed.count <= (MAX_POINTING_WORDS if is_this else MAX_REFERRING_WORDS):
            return True
    return asks_about_last(text, parsed, grammar, asks_for_look=INQUIRY.search(text) is not None)


_CONDITION = re.compile(
    r"\W*(?:but |though |and )?(?:provided|providing|as long as|so long as|if and only if|only if|unless|"
    r"except|assuming|"
    r"with the exception|vorausgesetzt|sofern|solange|es sei denn|außer|ausser|à condition|tant que|sauf|"
    r"à moins que|siempre que|"
    r"siempre y cuando|mientras|salvo|excepto|a menos que|a patto che|purché|a condizione|tranne|a meno "
    r"che|desde que|contanto|"
    r"a não ser|exceto|mits|tenzij|behalve|op voorwaarde|pod warunkiem|o ile|chyba że|tyle że|z wyjątkiem|"
    r"при условии|если только|"
    r"кроме|за исключением)\b",
    re.IGNORECASE,
)
"""Begins a condition of the sentence before it."""


def depends_on_last(text: str, parsed: ParsedSentence) -> bool:
    """Whether a sentence limits or takes back the one before it: "Only on Fridays.", "But not here."."""
    if _CONDITION.match(text):
        return True
    if takes_back(text):
        return True
    if says_only_thanks(text):
        return False
    if _CORRECTING.match(text):
        return True
    if is_unspaced(text):
        return _hangs_on_unspaced(text)
    words = [word.text for word in parsed.words]
    if not words or set(words) <= _APPROVING:
        return False
    if _ELLIPSIS.search(text) and len(words) <= MAX_TURNING_WORDS:
        return True
    first = next((token.text for token in split_tokens(text)), "")
    is_fragment = not parsed.core or sum(word not in (NOT, ONLY) for word in words) <= 1
    # "Not in production, of course."
    is_bare_denial = [word.text for word in parsed.phrases[0].words] == [NOT]
    return (
        is_fragment
        or is_bare_denial
        or first in _TURNING
        or (len(words) <= 2 and _SIGNATURE.match(text) is not None)
    )


_CORRECTING = re.compile(
    r"\W*(?:(?:oh|no|wait|sorry|ach|nein|non|perdón|scusa|nee|nie|нет)\W+)*(?:nonsense|rubbish|quatsch|"
    r"unsinn|"
    r"blödsinn|n'importe quoi|tonterías|sciocchezze|onzin|bzdura|ерунда|"
    r"i meant?|ich mein(?:e|te)|je voulais dire|(?:quería|quise) decir|volevo dire|quis dizer|"
    r"ik bedoel(?:de)?|miał[ae]m na myśli|я имела? в виду)\b",
    re.IGNORECASE,
)
"""Puts something else in the place of the sentence before it."""
MAX_HANGING_CHARS = 8
"""Of a sentence in a script without spaces that says nothing without the one before it; twice as many of one
with "only"."""
_UNSPACED_TURNING = re.compile(
    r"\W*(?:但|不过|不過|然而|可是|除了|除非|只|仅|僅|ただ|でも|けど|しかし|だけど|とはいえ|다만|단|하지만|그런데|그러나|"
    r"我是说|我的意思|もとい|というか)"
)
_UNSPACED_ONLY = re.compile(r"だけ|のみ|しか|以外|除|只|仅|僅|而已|때만|에만|만\s|제외|외에")


def _hangs_on_unspaced(text: str) -> bool:
    """ "ただし本番は除きます。", "只在周五。"."""
    bare = "".join(mark for mark in text if mark.isalnum())
    if _UNSPACED_TURNING.match(text) or len(bare) <= MAX_HANGING_CHARS:
        return True
    return len(bare) <= 2 * MAX_HANGING_CHARS and _UNSPACED_ONLY.search(text) is not None


MAX_TURNING_WORDS = 6
"""Of a message or a sentence that says nothing without the one before it."""
_TURNING_BACK = read_word_set(
    "sorry oops whoops wait wrong opposite actually ignore forget meant mistake no not nope cancel "
    "entschuldige moment falsch gegenteil doch nein nicht pardon attends erreur contraire non perdón espera "
    "contrario no scusa aspetta sbagliato desculpa errado contrário não wacht fout tegendeel nee niet "
    "przepraszam czekaj błąd odwrotnie nie извини подожди ошибка наоборот нет не"
)


def turns_back(text: str) -> bool:
    """Whether a message is so short that what it corrects or denies is what the user said before."""
    if is_unspaced(text):
        return _TURNING_BACK_UNSPACED.search(text) is not None and len(text) <= MAX_TURNING_CHARS
    if _WAS_THAT.match(text):
        return True
    words = {token.text for token in split_tokens(text) if not token.is_break}
    # "That is wrong in main.py."
    is_bare = len(words) <= MAX_TURNING_WORDS and words.isdisjoint(_PREPOSITIONS - _TURNING_BACK)
    return is_bare and not words.isdisjoint(_TURNING_BACK)


_WAS_THAT = re.compile(
    r"\W*(?:(?:oh|sorry|ah)\W+)?(?:(?:that|this) was|das war|c['’]était|(?:eso )?era|(?:isso )?foi|dat was|"
    r"to był[ao]?|это был[ао]?)\b",
    re.IGNORECASE,
)
MAX_TURNING_CHARS = 12
"""The same in a script without spaces."""
_TURNING_BACK_UNSPACED = re.compile(r"違|待って|やっぱり|ごめん|不对|不是|等等|算了|错了")
