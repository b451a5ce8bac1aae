"""What stands around a sentence of the user: whether they ask, announce somebody's text, or take it back. And
which other order of phrases and which other words say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from sevenfold.layers.memory.trust.phrases import NOT, ONLY, PLACE_MARK, ParsedSentence, Phrase
from sevenfold.layers.memory.trust.replies import MAX_REFERRING_WORDS, asks_about_last, says_only_thanks
from sevenfold.layers.memory.trust.tokens import (
    BREAK,
    Grammar,
    Word,
    fold_word,
    is_same_word,
    read_word_set,
    split_tokens,
)
from sevenfold.layers.memory.trust.word_order import CONJUNCTIONS

_QUESTION_MARK = re.compile(r"[?？¿](?!\w)|¿|(?:か|かな|吗|嗎|呢|么)[。.!！]*$")
_REQUEST = re.compile(
    r"(?:[^.?!]{0,200},)?\W{0,20}(?:(?:and|so|also|und|et|y|e|en)\W{1,20})?(?:"
    r"(?:can|could|would|will) (?:you|we) (?:\w+ )?please\b|(?:can|could|would|will) you\b[^.?!]*\bplease\W*$"
    r"|would you mind \w+ing\b"
    r"|(?:kannst|könntest|würdest) du (?:\w+ )?bitte\b|(?:können|könnten|würden) sie (?:\w+ )?bitte\b"
    r"|(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous)\b[^.?!]*\bs['’]il (?:te|vous) pla[iî]t"
    r"|(?:puedes|podrías|puede|podría|podéis)\b[^.?!]*\bpor favor\b"
    r"|(?:puoi|potresti|può|potrebbe)\b[^.?!]*\bper favore\b"
    r"|(?:você pode|pode|poderia|podes)\b[^.?!]*\bpor favor\b"
    r"|(?:kun|kan|zou) (?:je|jij|u)\b[^.?!]*\b(?:alsjeblieft|alstublieft)\b"
    r"|(?:czy )?(?:możesz|mógłbyś|mogłabyś) proszę\b"
    r"|(?:можешь|мог бы ты|могли бы вы|можете),? пожалуйста\b)",
    re.IGNORECASE,
)
"""A question in form, and a wish in fact."""
MAX_REQUEST_CHARS = 300
"""Of a wish that has the form of a question: what is longer counts as a question."""
_INQUIRY = re.compile(
    r"\b(?:whether|tell|say|explain|check|look|find out|see if|know|show|ask|what|why|how|which|who|confirm|"
    r"verify|ob|sagen|erklären|prüfen|nachsehen|zeigen|warum|wie|was|welche\w*|dire|vérifier|expliquer|pourquoi|comment|"
    r"quel\w*|decir\w*|explicar|comprobar|revisar|cómo|qué|cuál|controllare|spiegare|perché|come|cosa|dizer|"
    r"verificar|como|qual|zeggen|uitleggen|controleren|waarom|hoe|wat|czy|powiedzieć|sprawdzić|dlaczego|jak|"
    r"сказать|объяснить|проверить|почему|как|что|ли)\b",
    re.IGNORECASE,
)
"""Asks to look or to answer."""
_REVOKING = re.compile(
    r"\W*(?:(?:oh|no|nope|wait|hm+|sorry|actually|scratch|well|ok|okay|nein|nee|halt|ach|non|attends|espera|"
    r"aspetta|espere|wacht|nie|нет)\W+)*(?:"
    r"(?:please )?(?:forget|ignore|disregard|scratch|drop|scrap|strike|undo)(?: about)? "
    r"(?:that|this|it|what i said)"
    r"|never ?mind|(?:i was |i'm |i am |only )?(?:just )?(?:kidding|joking)|that was a joke"
    r"|i take (?:that|it) back"
    r"|(?:das )?vergiss (?:das|es)|vergiss es|war nur (?:ein )?(?:spaß|scherz)|oublie(?:z)?(?: (?:ça|cela))?"
    r"|je plaisante|olv[ií]da(?:lo)|es broma|era broma|lascia (?:perdere|stare)|scherzo|dimentica(?:lo)"
    r"|esquece(?: isso)?|brincadeira|vergeet (?:dat|het)|grapje|zapomnij o tym|żartuję|забудь(?: об этом)?"
    r"|шучу"
    r")\b",
    re.IGNORECASE,
)
"""Takes back the sentence before it."""
_DENYING = re.compile(
    r"\W*(?:(?:oh|no|nope|wait|hm+|sorry|actually|oops|well|ok|okay|nein|nee|non|perdón|scusa|"
    r"desculpa|nie|нет)\W+)*(?:"
    r"(?:that|this|it|what i (?:just )?(?:said|wrote|told you))(?:'s|’s| is| was) (?:actually |"
    r"just |all |completely )?"
    r"(?:wrong|not (?:true|right|correct|so)|incorrect|false|untrue|outdated|nonsense|a mistake|"
    r"my mistake|a lie)"
    r"|i was wrong|i (?:made a mistake|misspoke|lied)|my (?:bad|mistake)"
    r"|das (?:ist|war) (?:falsch|nicht (?:wahr|richtig)|quatsch)|(?:das )?stimmt (?:so |gar )?nicht"
    r"|(?:c'est|c’est|c'était) faux|ce n['’]est pas (?:vrai|juste)|(?:eso )?(?:es|está) (?:falso|"
    r"mal)|no es (?:cierto|verdad)"
    r"|(?:è|era) (?:falso|sbagliato)|non è vero|(?:isso )?(?:é falso|está errado)|não é verdade"
    r"|dat (?:klopt niet|is (?:fout|niet waar))|to (?:nieprawda|błąd)|это (?:неверно|неправда|не так)"
    r")\b",
    re.IGNORECASE,
)
"""Says that the message before it is wrong."""
_CLAUSE_END = re.compile(
    r"\s*(?:(?:please|again|then|actually|about|what|i|just|said|for|now|though|after all|bitte|"
    r"wieder)\b\s*)*"
    r"(?:[^\w\s]|$)",
    re.IGNORECASE,
)
_INVERSION = re.compile(r"\b\w+-(?:t-)?(?:nous|vous|tu|on|il|elle|ils|elles|je)\b|\best-ce\b", re.IGNORECASE)
_VERB_FIRST = frozenset(("wir", "ich", "du", "ihr", "we", "wij", "jij", "ik", "jullie"))
_RECORD = re.compile(
    r"\s*(?:[-*+•]|\d+[.)])?\s*\[[ xX✓-]?\]"  # a box to tick
    r"|\s*(?://|#|/\*|<!--|--\s|;;)"  # a comment in code, a heading
    r"|\s*(?:the\s+)?(?:user|you|me|i|human|assistant)\s*[:>]"  # a turn of a chat
    r"|.*~~.+~~|.*<!--",  # struck out
    re.IGNORECASE | re.DOTALL,
)
_SIGNATURE = re.compile(r"\s*(?:[-–—]+\s*\w+(?:\s\w+)?|\w+(?:\s\w+){0,2},\s*\w+)\W*$")
_AHEAD = re.compile(
    r"(?:\b(?:this|these|following|below|folgende[sn]?|dies|dieses|das hier|ceci|suivante?|esto|siguiente|"
    r"questo|"
    r"seguente|isto|seguinte|dit|deze|volgende|to|следующее|это)\b|以下|次|这个|下面)\W*$|:\s*$|：\s*$"
    r"|\b(?:the following|as follows|folgende[rnms]?|le suivant|la siguiente|el siguiente|il seguente)\b",
    re.IGNORECASE,
)
_PRESENTING = re.compile(
    r"\W*(?:here(?:'s|’s| is| are)|this is|these are|that(?:'s|’s| is)|hier (?:ist|sind|is|zijn)|das ist|"
    r"voici|voilà|c'est|"
    r"aquí (?:está|están|va)|esto es|ecco|questo è|aqui (?:está|estão)|isto é|dit is|oto|to jest|вот|это)\b",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"\W*(?:that(?:'s|’s| is)|this is|das ist|c'est|esto es|questo è|isto é|dit is|to jest|это) "
    r"(?:not |nicht |pas )?"
    r"(?:wrong|right|correct|fine|great|good|nice|perfect|ok|okay|better|falsch|richtig|gut|super|perfekt|faux|"
    r"juste|bien|parfait|correcto|bien|perfecto|giusto|sbagliato|perfetto|certo|errado|perfeito|goed|fout|dobrze|"
    r"źle|верно|неверно|хорошо)\b",
    re.IGNORECASE,
)
# fmt: off
_TEXT_WORDS = frozenset((
    "mail", "email", "message", "letter", "text", "page", "article", "post", "tweet", "comment", "ticket",
    "issue", "thread", "docs", "documentation", "handbook", "manual", "wiki", "readme", "guide", "changelog",
    "snippet", "paragraph", "sentence", "line", "quote", "transcript", "slack", "announcement", "poster",
    "banner", "screenshot", "title", "blog", "newsletter", "memo", "proposal", "draft", "suggestion",
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
    if len(text) <= MAX_REQUEST_CHARS and _REQUEST.match(text) and not _INQUIRY.search(text):
        # "Can you please use tabs?" asks for something, not whether.
        return False
    if _QUESTION_MARK.search(text) or (grammar.name == "fr" and _INVERSION.search(text)):
        return True
    words = [token.text for token in split_tokens(text)]
    while words and words[0] in _CONNECTIVES.get(grammar.name, ()):
        words = words[1:]
    first, second = (*words[:2], "", "")[:2]
    if first in grammar.asking:
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
    is_inverted = first in grammar.inverting and second in grammar.subjects
    is_verb_first = grammar.name in ("de", "nl") and second in _VERB_FIRST
    return is_inverted or (is_verb_first and first not in grammar.markers | grammar.idle | _ADVERBS)


_PREPOSITIONS = read_word_set(
    "por para com de em a at with from to in for of since mit von für bei zu bis seit pour avec à con da per "
    "su di voor met van op po na z od do на с от до для из к о"
)
_CONNECTIVES = {"en": ("and", "so", "but", "then"), "de": ("und", "also"), "fr": ("et",), "nl": ("en", "dus")}
_ADVERBS = read_word_set("jetzt kunftig heute freitags dienstags montags immer nu voortaan altijd vandaag")


def is_record_line(text: str) -> bool:
    """A line of a list of tasks, of code or of a chat; or text that is struck out."""
    return _RECORD.match(text) is not None


def points_ahead(text: str) -> bool:
    """Whether it announces what follows: "look at this", "the following"."""
    if _AHEAD.search(text) is not None:
        return True
    # "That's wrong, …" judges what was done, and shows nothing.
    return _PRESENTING.match(text) is not None and _VERDICT.match(text) is None


def has_text_word(text: str) -> bool:
    """Whether it speaks of some text, or of somebody who said something."""
    return any(is_text_word(token.text) for token in split_tokens(text))


def is_text_word(word: str) -> bool:
    return word in _TEXT_WORDS


def is_back_reference(text: str, parsed: ParsedSentence, grammar: Grammar) -> bool:
    """Whether a question has no matter of its own, and so asks about what was said before."""
    if has_text_word(text) and parsed.count <= MAX_REFERRING_WORDS:
        # "Is it from the docs?"
        return True
    return asks_about_last(text, parsed, grammar, asks_for_look=_INQUIRY.search(text) is not None)


def depends_on_last(text: str, parsed: ParsedSentence) -> bool:
    """Whether a sentence limits or takes back the one before it: "Only on Fridays.", "But not here."."""
    if _REVOKING.match(text):
        return True
    if says_only_thanks(text):
        return False
    words = [word.text for phrase in parsed.phrases for word in phrase.words]
    if not words or set(words) <= _APPROVING:
        return False
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


def takes_back_message(text: str) -> bool:
    """Whether a message begins by taking back the one before it. "Undo that" is about what was done."""
    match = _REVOKING.match(text) or _DENYING.match(text)
    is_undone = match is not None and "undo" in match.group().casefold()
    return match is not None and not is_undone and _CLAUSE_END.match(text, match.end()) is not None


_TOPICS = frozenset(("for", "bei", "fur", "pour", "para", "per", "voor", "dla", "для", PLACE_MARK))
BY_WORDS = frozenset(("by", "von", "durch", "par", "por", "da", "dal", "dalla", "door", "przez"))
_VERB_AT_END = frozenset(("de", "nl"))
_FREE_ORDER = frozenset(("es", "it", "pt", "pl", "ru"))
MAX_LEAD_WORDS = 4
MIN_NOUN = 4
"""Letters of a noun whose ending tells its case."""


@lru_cache(maxsize=4_096)
def read_otherwise(parsed: ParsedSentence) -> tuple[ParsedSentence, ...]:
    """A sentence as it stands, and with its phrases as they stand in other sentences of the same meaning."""
    bases = (parsed, *_with_core(parsed), *_with_verb_in_core(parsed))
    return tuple(other for one in bases for other in (one, *_with_topic(one), *_made_active(one)))


def _with_core(parsed: ParsedSentence) -> Iterator[ParsedSentence]:
    """A sentence has a core: "przed scaleniem | uruchom testy"."""
    first = parsed.phrases[0] if parsed.phrases else None
    if first is None or parsed.core or not first.is_led or first.words[0].text in CONJUNCTIONS:
        return
    for at in range(2, min(MAX_LEAD_WORDS, len(first.words) - 1) + 1):
        lead, words = replace(first, words=first.words[:at]), first.words[at:]
        yield replace(parsed, phrases=(lead, Phrase(words), *parsed.phrases[1:]))
        if len(words) == 2 and parsed.language in _FREE_ORDER:
            # "Za wdrożenia odpowiada Marek"
            yield replace(parsed, phrases=(lead, Phrase(words[::-1]), *parsed.phrases[1:]))


def _with_verb_in_core(parsed: ParsedSentence) -> Iterator[ParsedSentence]:
    """A verb at the end belongs to the core: "den Branch | nach dem Mergen löschen"."""
    if not (parsed.is_passive or parsed.language in _VERB_AT_END) or len(parsed.core) > 1:
        return
    for phrase in parsed.phrases:
        *head, verb = phrase.words
        is_free = phrase.is_led and len(head) > 1 and phrase.words[0].text not in CONJUNCTIONS
        if not is_free or verb.is_exact:
            continue
        core = parsed.core[0].words if parsed.core else ()
        joined = Phrase((*core, verb), begins_clause=True)
        rest = [replace(phrase, words=tuple(head)) if one is phrase else one for one in parsed.phrases]
        left = [one for one in rest if not parsed.core or one is not parsed.core[0]]
        yield replace(parsed, phrases=(joined, *left))


def _with_topic(parsed: ParsedSentence) -> Iterator[ParsedSentence]:
    """ "For hotfixes we branch off main" as "hotfixes branch off main", "there are two replicas in
    production" as "production has two replicas"."""
    core = [phrase for phrase in parsed.phrases if not phrase.is_led]
    for at, phrase in enumerate(parsed.phrases):
        lead = phrase.words[0]
        is_topic = parsed.has_use or parsed.first == "there" or (at == 0 and bool(parsed.speakers))
        if phrase.is_led and lead.text in _TOPICS and is_topic and len(phrase.words) > 1 and len(core) == 1:
            joined = Phrase((*phrase.words[1:], *core[0].words), begins_clause=True)
            left = [one for one in parsed.phrases if one is not phrase]
            yield replace(parsed, phrases=tuple(joined if one is core[0] else one for one in left))


def _made_active(parsed: ParsedSentence) -> Iterator[ParsedSentence]:
    """ "Changes are approved by Ada" as "Ada approves changes"."""
    core = [phrase for phrase in parsed.phrases if not phrase.is_led]
    for phrase in parsed.phrases:
        is_agent = phrase.is_led and phrase.words[0].text in BY_WORDS and len(phrase.words) > 1
        if is_agent and parsed.is_passive and len(core) == 1 and len(core[0].words) > 1:
            words = core[0].words
            turned = Phrase((*phrase.words[1:], words[-1], *words[:-1]), begins_clause=True)
            left = [one for one in parsed.phrases if one is not phrase]
            phrases = tuple(turned if one is core[0] else one for one in left)
            yield replace(parsed, phrases=phrases, is_passive=False)


# fmt: off
_SYNONYMS = {
    name: tuple(tuple(Word(fold_word(word), word) for word in group.split()) for group in groups.split("|"))
    for name, groups in {
        "en": "big large | bigger larger greater | expire lapse | fix repair resolve | build construct | "
              "begin start launch | display show | store save persist | send transmit | choose pick select "
              "| notify inform alert tell | colleague coworker teammate | folder directory dir | kubernetes "
              "k8s | postgres postgresql | environment env | application app | authentication auth | "
              "administrator admin | temporary temp tmp | often frequently | wrong incorrect | required "
              "mandatory compulsory | simple easy | immediately instantly | favourite favorite | behaviour "
              "behavior | vacation holiday | update refresh | obtain get fetch | currently now | small tiny "
              "| quick fast | end finish | explain describe | colour color | important essential | hate "
              "loathe | deploy ship",
        "de": "beginnen starten anfangen | löschen entfernen | prüfen kontrollieren | ändern modifizieren "
              "bearbeiten | zuständig verantwortlich | ordner verzeichnis | höchstens maximal | mindestens "
              "wenigstens | speichern ablegen | ausführen starten | erst zuerst | danach anschließend | "
              "erstellen anlegen",
        "fr": "supprimer effacer | lancer exécuter | modifier changer | vérifier contrôler | dossier "
              "répertoire | commencer débuter | enregistrer stocker",
        "es": "borrar eliminar | ejecutar lanzar correr | cambiar modificar | revisar comprobar verificar | "
              "carpeta directorio | empezar comenzar | guardar almacenar",
        "it": "cancellare eliminare | eseguire lanciare | cambiare modificare | controllare verificare | "
              "cartella directory | iniziare cominciare | salvare memorizzare",
        "pt": "apagar excluir remover | executar rodar | mudar alterar modificar | verificar conferir | "
              "pasta diretório | começar iniciar | guardar armazenar salvar",
        "nl": "verwijderen wissen | uitvoeren draaien | wijzigen veranderen aanpassen | map directory | "
              "beginnen starten | opslaan bewaren | minstens minimaal | hoogstens maximaal",
        "pl": "usuwać kasować | uruchamiać odpalać | zmieniać modyfikować | sprawdzać weryfikować | katalog "
              "folder",
        "ru": "удалять стирать | запускать выполнять | изменять менять | проверять сверять | папка каталог",
    }.items()
}
# fmt: on


@lru_cache(maxsize=16_384)
def are_synonyms(said: Word, kept: Word, language: str) -> bool:
    """Whether forms of them stand in one group of words that mean the same, and none the opposite."""
    if said.is_exact or kept.is_exact:
        return False
    return any(
        any(is_same_word(said, word, language) for word in group)
        and any(is_same_word(kept, word, language) for word in group)
        for group in _SYNONYMS[language]
    )


_SUBJECT_ARTICLES = frozenset(("der", "ein", "dieser", "unser"))
_OBJECT_ARTICLES = frozenset(("den", "dem", "einen", "einem", "diesen", "unseren", "unserem"))


_FEMININE_ENDS = ({"а", "у"}, {"я", "ю"}, {"a", "ę"})


def exchanges_cases(said: str, kept: str, language: str) -> bool:
    """Whether a noun is who does it in one and whom it is done to in the other, though no verb is passive:
    "Der Kunde zahlt den Händler" and "den Kunden zahlt der Händler"."""
    if language in ("pl", "ru"):
        one, other = ([token.surface for token in split_tokens(text)] for text in (said, kept))
        return any(
            noun[:-1] == name[:-1] and len(noun) >= MIN_NOUN and {noun[-1:], name[-1:]} in _FEMININE_ENDS
            for noun in one
            for name in other
        )
    return language == "de" and any(
        case != found and noun.removesuffix("n") == name.removesuffix("n")
        for noun, case in _cases(said)
        for name, found in _cases(kept)
    )


def _cases(text: str) -> list[tuple[str, bool]]:
    """Nouns behind a German article that tells their case: whether it is that of a subject."""
    words = [token.text for token in split_tokens(text)]
    articles = _SUBJECT_ARTICLES | _OBJECT_ARTICLES
    return [(noun, article in _SUBJECT_ARTICLES) for article, noun in pairwise(words) if article in articles]
