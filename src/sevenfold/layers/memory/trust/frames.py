"""What stands around a sentence of the user: whether they ask, announce somebody's text, or take it back."""

from __future__ import annotations

import re

from sevenfold.layers.memory.trust.phrases import NOT, ParsedSentence
from sevenfold.layers.memory.trust.tokens import Grammar, read_word_set, split_tokens

MAX_REFERRING_WORDS = 2
"""Of a question that says nothing of its own ("Is that right?"): it asks about the sentence before."""

_QUESTION_MARK = re.compile(r"[?？¿](?!\w)|¿|(?:か|かな|吗|嗎|呢|么)[。.!！]*$")
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
    if _QUESTION_MARK.search(text) or (grammar.name == "fr" and _INVERSION.search(text)):
        return True
    words = [token.text for token in split_tokens(text)]
    while words and words[0] in _CONNECTIVES.get(grammar.name, ()):
        words = words[1:]
    first, second = (*words[:2], "", "")[:2]
    if first in grammar.asking:
        return True
    if first in ("do", "have") and grammar.name == "en":
        return second in grammar.speakers | {"they", "he", "she", "it"}
    is_inverted = first in grammar.inverting and second in grammar.subjects
    is_verb_first = grammar.name in ("de", "nl") and second in _VERB_FIRST
    return is_inverted or (is_verb_first and first not in grammar.markers | grammar.idle | _ADVERBS)


_CONNECTIVES = {"en": ("and", "so", "but", "then"), "de": ("und", "also"), "fr": ("et",), "nl": ("en", "dus")}
_ADVERBS = read_word_set("jetzt kunftig heute freitags dienstags montags immer nu voortaan altijd vandaag")


def is_record_line(text: str) -> bool:
    """A line of a list of tasks, of code or of a chat; or text that is struck out."""
    return _RECORD.match(text) is not None


def points_ahead(text: str) -> bool:
    """Whether it announces what follows: "look at this", "the following"."""
    return _AHEAD.search(text) is not None or _PRESENTING.match(text) is not None


def has_text_word(text: str) -> bool:
    """Whether it speaks of some text, or of somebody who said something."""
    return any(token.text in _TEXT_WORDS for token in split_tokens(text))


def is_back_reference(parsed: ParsedSentence) -> bool:
    """Whether a question has no matter of its own, and so asks about what was said before."""
    return parsed.count <= MAX_REFERRING_WORDS


def depends_on_last(text: str, parsed: ParsedSentence) -> bool:
    """Whether a sentence limits or takes back the one before it: "Only on Fridays.", "But not here."."""
    words = [word.text for phrase in parsed.phrases for word in phrase.words]
    if not words or set(words) <= _APPROVING:
        return False
    first = next((token.text for token in split_tokens(text)), "")
    is_fragment = not parsed.core or sum(word != NOT for word in words) <= 1
    return is_fragment or first in _TURNING or (len(words) <= 2 and _SIGNATURE.match(text) is not None)
