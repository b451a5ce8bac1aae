"""For how long a sentence holds: what limits the next one ("This time."), makes it up ("Write a story."), or
takes the last one back ("Forget that."), and what tells a statement that lasts from a task."""

from __future__ import annotations

import re
from itertools import pairwise

from sevenfold.core.text.stems import normalize_text
from sevenfold.layers.memory.trust.phrases import ParsedSentence
from sevenfold.layers.memory.trust.tokens import (
    Grammar,
    is_unspaced,
    read_word_set,
    split_tokens,
)

MAX_LIMIT_TOKENS = 3
"""Of a sentence without a verb that only says when or where: "On release branches."."""
MAX_TOKENS_WITH_ARTICLE = 4
"""The same with an article: "Only on the release branch.", without "only"."""

_NOW_LEAD = (
    r"(?:(?:just|only|but|and|ok|okay|so|nur|aber|also|juste|seulement|solo|sólo|só|soltanto|alleen|"
    r"maar|tylko|"
    r"только)\W+)*"
)
_NOW_WORDS = (
    r"(?:"
    r"this (?:time|once|one|week|sprint|month|morning|afternoon|evening|release|pr|branch|session|"
    r"task|chat|"
    r"commit|ticket|change|file|run)|today|tonight|tomorrow|yesterday|(?:right |just )?now|once|"
    r"temporarily|"
    r"(?:an? )?(?:one[- ]off|exception|experiment|example|test)|(?:last|next) (?:year|week|month|"
    r"sprint|time)|"
    r"back then|formerly|previously|in \d{4}|(?:as an|for) example|zum beispiel|par exemple|"
    r"por ejemplo|per esempio|"
    r"por exemplo|bijvoorbeeld|na przykład|например"
    r"|diesmal|dieses mal|heute|morgen|gestern|jetzt|einmal|vorerst|vorläufig|ausnahmsweise|zurzeit|"
    r"früher|"
    r"(?:letztes|nächstes) (?:jahr|mal)|letzte woche|ein beispiel"
    r"|(?:pour )?cette fois(?:-ci)?|aujourd['’]hui|demain|hier|maintenant|une fois|temporairement|"
    r"exceptionnellement|l['’]an dernier|l['’]année dernière|autrefois|un exemple"
    r"|esta vez|hoy|mañana|ayer|ahora|una vez|temporalmente|excepcionalmente|el año pasado|un ejemplo"
    r"|(?:per )?questa volta|stavolta|oggi|domani|ieri|adesso|temporaneamente|eccezionalmente|"
    r"l['’]anno scorso|"
    r"un esempio"
    r"|desta vez|hoje|amanhã|ontem|agora|uma vez|temporariamente|excepcionalmente|"
    r"(?:no )?ano passado|um exemplo"
    r"|deze keer|vandaag|gisteren|nu(?: even)?|eenmalig|tijdelijk|voorlopig|vorig jaar|vroeger|"
    r"een voorbeeld"
    r"|tym razem|dziś|dzisiaj|jutro|wczoraj|teraz|raz|tymczasowo|wyjątkowo|w zeszłym roku|kiedyś|przykład"
    r"|(?:в|на) этот раз|сегодня|завтра|вчера|сейчас|пока|временно|в прошлом году|раньше|пример"
    r"|今回(?:だけ|のみ)?は?|今日(?:だけ|のみ)?は?|今(?:だけ|は)|一時的に|例えば|去年は?|这次|這次|这一次|今天|暂时|去年|以前|例如|比如"
    r")(?: only| nur| seulement| solo| alleen)?"
)
_NOW = re.compile(_NOW_LEAD + _NOW_WORDS, re.IGNORECASE)
_ENDS_NOW = re.compile(
    rf"\b(?!(?:one[- ]off|exception|experiment|example|test)\b)(?:{_NOW_WORDS})\W*$", re.IGNORECASE
)
"""With "a test" and not "the login test"."""
_UNLIMITED = re.compile(
    r"\b(?:for (?:the record|future reference|your information|next time|everyone|all|ever|sure|context)|"
    r"from (?:now|here|today|this point) on(?:wards?)?|going forward|in (?:general|short|future|"
    r"the future|"
    r"principle|any case|all cases|(?:this|our|the|my) (?:\w+ )?(?:repo|repository|project|codebase|"
    r"monorepo|team|"
    r"company|code))|by (?:the way|default)|as (?:always|usual|ever|a rule|agreed|discussed|before|"
    r"promised)|"
    r"on (?:that|another|a) (?:\w+ )?note|on top|of course|at all times|with (?:thanks|pleasure)|per our|"
    r"ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|in zukunft|im allgemeinen|in (?:diesem|unserem) \w+|"
    r"dans (?:ce|notre) \w+|en (?:este|nuestro|général|general) ?\w*|in (?:questo|generale|futuro|"
    r"dit|onze?) ?\w*|"
    r"n(?:este|o nosso) \w+|em geral|over het algemeen|w tym \w+|в (?:этом|нашем) \w+|в целом|"
    r"à partir de|a partir de|d['’]ora in|vanaf nu|od teraz|с этого|"
    r"from my (?:side|end)|(?:with|for|by) me|von mir aus|von meiner seite|de (?:mon|notre) "
    r"côté|pour moi|por mí|"
    r"por mi parte|da parte mia|per me|por mim|da minha parte|van mij|wat mij betreft|de "
    r"acuerdo|d['’]accord\w?)\b",
    re.IGNORECASE,
)
"""A sentence without a verb that limits nothing that does not last."""
_LEADS = r"\W*(?:(?:please|now|ok|okay|so|and|then|first|hey|hi|bitte|por favor)\W+)*"
_INVENTED = re.compile(
    _LEADS + r"(?:"
    r"(?:let['’]?s |let us )?(?:pretend|imagine|assume|suppose|role-?play|"
    r"act (?:as|like)|behave (?:as|like)|you are (?:now )?an? |make believe|play (?:a|the|some)\b)"
    r"|(?:can|could|would|will) you (?:please )?(?:pretend|imagine|write (?:me )?an? (?:\w+ )?story)"
    r"|(?:write|tell|invent|make up|compose|continue|finish|give|create|generate)(?: me| us)? (?:up )?"
    r"(?:an?|some|the|this|my|our) (?:[\w-]+ ){0,3}(?:story|stories|poem|song|lyrics|novel|tale|"
    r"scene|joke|dialogue?|"
    r"essay|sketch|script for|play|fiction|riddle|limerick|haiku|parody|satire|screenplay|monologue|"
    r"fable)\b"
    r"|(?:this|that|it|the following) (?:was|were|used to be) (?:the case|true|so|how|valid|like this|"
    r"(?:the|our) (?:old |former )?(?:rule|policy|way|plan|setup|practice))\b"
    r"|(?:put|add|insert|copy|paste|include|print|render|log|show|display|type|output|echo|return)"
    r" (?:this|these|the following)\b(?!.*\b(?:memory|memories|notes?|mind)\b)"
    r"|stell dir vor|stellt euch vor|nehmen wir an|angenommen|lass uns (?:so tun|spielen|ein spiel)|"
    r"tu so,? als"
    r"|(?:schreibe?|erzähle?|erfinde?)(?: mir| uns)? (?:eine?n?|die|das) (?:\w+ ){0,3}(?:geschichte|"
    r"gedicht|lied|roman|"
    r"märchen|witz|szene|dialog|aufsatz)\b"
    r"|imagin(?:e|ons|ez) |supposons|faisons semblant|jouons"
    r"|(?:écris|écrivez|raconte|invente)(?:-moi)? (?:une?|l[ae]) (?:\w+ ){0,3}(?:histoire|poème|"
    r"chanson|roman|conte|"
    r"blague|scène|dialogue)\b"
    r"|imagina |supongamos|finge |juguemos|(?:escribe|cuéntame|cuenta|inventa)(?:me)? (?:una?|el|"
    r"la) (?:\w+ ){0,3}"
    r"(?:historia|poema|canción|novela|cuento|chiste|escena|diálogo)\b"
    r"|immagina |supponiamo|fingi |facciamo finta|giochiamo|(?:scrivi|racconta|"
    r"inventa)(?:mi)? (?:una?|il|la) "
    r"(?:\w+ ){0,3}(?:storia|poesia|canzone|romanzo|favola|barzelletta|scena|dialogo|racconto)\b"
    r"|imagine |suponha|finja |vamos fingir|(?:escreva|escreve|conta|conte|invente)(?:-me)? (?:uma?|o|a) "
    r"(?:\w+ ){0,3}(?:história|poema|canção|romance|conto|piada|cena|diálogo)\b"
    r"|stel je voor|stel dat|doe alsof|laten we doen alsof|(?:schrijf|vertel|verzin)(?: me|"
    r" mij)? een (?:\w+ ){0,3}"
    r"(?:verhaal(?:tje)?|gedicht|lied|roman|sprookje|mop|scène|dialoog)\b"
    r"|wyobraź|załóżmy|udawaj|pobawmy|(?:napisz|opowiedz|"
    r"wymyśl)(?: mi)? (?:\w+ ){0,3}(?:opowiadanie|historię|wiersz|"
    r"piosenkę|bajkę|żart|scenę|dialog)\b"
    r"|представь|допустим|предположим|притворись|давай поиграем|(?:напиши|расскажи|"
    r"придумай)(?: мне)? (?:\w+ ){0,3}"
    r"(?:рассказ|историю|стих\w*|песню|сказку|шутку|сцену|диалог)\b"
    r"|(?:写|寫|讲|講)(?:一)?(?:个|篇|首)?[^。]{0,8}(?:故事|小说|小說|诗|詩|笑话)|假装|假裝|想象|想像"
    r"|[^。]{0,10}(?:物語|小説|詩|話)を(?:書|作|話)|想像して|仮に)",
    re.IGNORECASE,
)
"""Asks for something made up, tells of what was, or shows it."""
_POINTING = read_word_set(
    "this these that those dies diese diesen diesem dieses dieser ce cet cette ces este esta estos estas "
    "questo questa questi queste deste desta este esse dit deze dat ten ta tego tej tym этот эту "
    "этого этом"
)
_OTHERWISE = read_word_set(
    "please thanks not no never bitte danke nicht nie kein keine s'il merci pas jamais favor "
    "gracias nunca "
    "grazie non mai obrigado não alsjeblieft niet geen nooit proszę nie nigdy пожалуйста не никогда "
    "use uses do is are was has have run write nutze benutze nimm ist sind utilise utiliser est "
    "sont usa usar "
    "es son è sono usare são gebruik is zijn jest są używaj"
)
"""Words of a sentence that says something itself."""


def limits_next(text: str, parsed: ParsedSentence, grammar: Grammar, *, is_first: bool) -> bool:
    """Whether it has no verb and says when, where or for what the next sentence holds. Behind a statement
    (not `is_first`) it may limit that one instead, so long as it does not point at what is done now."""
    bare = normalize_text(text).strip(" \t\n.!;:…。！-–—*")
    if _NOW.fullmatch(bare):
        return True
    tokens = [token.text for token in split_tokens(bare) if not token.is_break]
    if len(tokens) < 2 or _UNLIMITED.search(bare) or not _OTHERWISE.isdisjoint(tokens):
        return False
    start = 1 if tokens[0] in grammar.limits else 0
    has_article = tokens[start + 1] in grammar.idle | _POINTING if len(tokens) > start + 1 else False
    is_short = len(tokens) - start <= (MAX_TOKENS_WITH_ARTICLE if has_article else MAX_LIMIT_TOKENS)
    is_led = tokens[start] in grammar.markers and bool(parsed.phrases) and not parsed.core
    return is_short and is_led and (is_first or not _POINTING.isdisjoint(tokens))


def ends_now(text: str) -> bool:
    """Whether it tells how things are now, for which the next sentence may be meant: "We have an emergency
    today."."""
    return _ENDS_NOW.search(text) is not None


_SITUATION = re.compile(
    r"\W*(?:(?:ok|okay|so|well|also|und|et|y|e)\W+)?(?:it(?:'s|’s| is)|there(?:'s|’s| is| are)|this is|"
    r"es (?:ist|gibt)|das ist|c['’]est|il y a|es (?:un|una|el|la)|hay|è|c['’]è|é|há|het is|er (?:is|zijn)|"
    r"to jest|jest|это|есть)\b",
    re.IGNORECASE,
)


def tells_situation(text: str) -> bool:
    """Whether it says what is the case, for which the next sentence may be meant: "It's the hackathon."."""
    return _SITUATION.match(text) is not None


_LASTING = {
    name: read_word_set(words)
    for name, words in {
        "en": "i we me us my our ours mine is are am has have had must should shall need needs want wants "
        "prefer prefers "
        "like likes hate always never every each all any only no not nobody nothing everyone everything "
        "without whenever "
        "use uses default instead",
        "de": "ich wir mich uns mein meine meinen meinem meiner unser unsere unseren unserem unserer ist "
        "sind bin hat haben "
        "habe muss müssen soll sollen darf dürfen immer nie niemals jeder jede jedes jeden alle alles nur "
        "kein keine "
        "keinen nicht nichts niemand ohne grundsätzlich lieber statt",
        "fr": "je j nous on me m moi mon ma mes notre nos est sont suis a ont avons ai doit doivent faut "
        "toujours jamais "
        "chaque tous toutes tout seulement uniquement aucun aucune pas plus personne rien sans préfère",
        "es": "yo nosotros me mi mis nuestro nuestra nuestros nuestras es son está están soy estoy hay ha "
        "han he tengo debe "
        "deben siempre nunca cada todos todas todo solo sólo no ningún ninguna nadie nada sin prefiero jamás",
        "it": "io noi mi ci mio mia miei mie nostro nostra nostri nostre è sono ha hanno ho deve devono "
        "sempre mai ogni tutti "
        "tutte tutto solo soltanto non nessun nessuno niente senza preferisco",
        "pt": "eu nós me meu minha meus minhas nosso nossa nossos nossas é são está estão sou estou há tem "
        "têm tenho deve "
        "devem sempre nunca cada todos todas tudo só somente não nenhum nenhuma ninguém nada sem prefiro a "
        "gente",
        "nl": "ik wij we mij me ons mijn onze is zijn ben heeft hebben heb moet moeten mag mogen altijd "
        "nooit elke elk ieder "
        "alle alleen geen niet niemand niets zonder liever",
        "pl": "ja my mnie nam nas mój moja moje nasz nasza nasze jest są jestem ma mają mam musi muszą "
        "zawsze nigdy każdy "
        "każda każde wszystkie wszystko tylko nie żaden nikt nic bez wolę",
        "ru": "я мы мне меня нам нас мой моя моё мои наш наша наше наши нашей нашем наших у есть должен "
        "должны должна всегда "
        "никогда каждый каждая каждое все всё только не нет никто ничего без нельзя",
    }.items()
}
"""Words of a statement or of a rule, that a task seldom has."""
_LASTING_END = re.compile(
    r"(?<=\w\w)(?:[aei]mos|iamo|[eiya]my|[аяу]ем|им)\b",
    re.IGNORECASE,
)
_LASTING_UNSPACED = re.compile(
    r"[我俺僕私]|うち|当社|弊社|[总都不别只每必]|禁止|一律|所有|です|ます(?!か)|ない|いつも|毎|だけ|のみ|저|우리|항상|절대|마세요|않|없|만\s|입니다|습니다|해요"
)


def lasts(text: str, grammar: Grammar) -> bool:
    """Whether it has a word of a statement or a rule, and is no bare task."""
    if is_unspaced(text):
        return _LASTING_UNSPACED.search(text) is not None
    if grammar.name in ("es", "it", "pt", "pl", "ru") and _LASTING_END.search(text):
        return True
    return not _LASTING[grammar.name].isdisjoint(token.text for token in split_tokens(text))


def is_invention(text: str) -> bool:
    """Whether what follows it is a story, a game, a sample or the past, and no statement of the user."""
    return _INVENTED.match(normalize_text(text)) is not None


_ONE = re.compile(
    r"\b(?:before|after|during|for|on|at|with|in|when|once) the ([a-z]+)\b(?! \w+ing\b)", re.IGNORECASE
)
_MANY = re.compile(
    r"(?:\b(?:every|each|any|all|whenever|always|never|from now on|going forward|in (?:the )?future|"
    r"as a rule|by default|remember|must|should)\b)",
    re.IGNORECASE,
)


def makes_general(said: str, kept: str) -> bool:
    """Whether "before the commit", of one task, has become "before commits", of each."""
    if _MANY.search(said):
        return False
    words = {token.text for token in split_tokens(said)}
    kept_words = [token.text for token in split_tokens(kept)]
    named = {match[1].casefold() for match in _ONE.finditer(said)}
    general = {f"{one}{end}" for one in named for end in ("s", "es")} - words
    is_every = any(one in ("every", "each", "any") and two in named for one, two in pairwise(kept_words))
    return is_every or not general.isdisjoint(kept_words)


_REVOKING = re.compile(
    r"\W*(?:(?:oh|no|nope|wait|hm+|hang on|sorry|actually|scratch|well|ok|okay|nein|nee|halt|ach|non|"
    r"attends|uy|espera|"
    r"aspetta|espere|wacht|nie|нет)\W+)*(?:"
    r"(?:please )?(?:forget|ignore|disregard|scratch|drop|scrap|strike|undo)(?: about)? "
    r"(?:that|this|it|what i said)"
    r"|never ?mind|(?:i was |i'm |i am |only )?(?:just )?(?:kidding|joking)|that was a joke"
    r"|i take (?:that|it|both|them|all of it) back|(?:i )?got carried away|on second thou?ghts?\b|better "
    r"not|let'?s not"
    r"|(?:leave|keep) it (?:as it|the way)"
    r"|(?:laat|lass) maar|bórralo|táchalo|quítalo|cancellalo|apaga isso|lieber (?:doch )?nicht|doch nicht|"
    r"lass es|(?:mieux vaut|plutôt|finalement) (?:pas|non)|mejor no|déjalo"
    r"|meglio (?:di )?no|lascialo|melhor não|deixa (?:estar|assim)|(?:toch )?liever niet|toch maar niet"
    r"|(?:jednak )?lepiej nie|jednak nie|лучше не (?:надо|стоит)|оставь как"
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
    r"wieder|as|it|that|way|is|was|were|alone|be|do)\b\s*)*"
    r"(?:[^\w\s]|$)",
    re.IGNORECASE,
)


def takes_back(text: str) -> bool:
    """Whether it begins by taking the sentence before it back."""
    found = _REVOKING.match(text)
    return found is not None and _CLAUSE_END.match(text, found.end()) is not None


def takes_back_within(text: str) -> bool:
    """Whether it takes something back anywhere in it."""
    return takes_back(text) or _TAKEN_BACK.search(text) is not None


_TAKEN_BACK = re.compile(
    r"\b(?:forget (?:it|that|about it)|take (?:it|that|both|them) back|scratch that|never ?mind|laat maar|"
    r"bórralo|olvídalo|"
    r"vergiss (?:es|das)|oublie(?:z)? (?:ça|cela)|lascia perdere|esquece|zapomnij|забудь)\b|作废|作廢|算了|"
    r"やっぱり(?:なし|やめ)|취소",
    re.IGNORECASE,
)


def takes_back_message(text: str) -> bool:
    """Whether a message begins by taking back the one before it. "Undo that" is about what was done."""
    match = _REVOKING.match(text) or _DENYING.match(text)
    is_undone = match is not None and "undo" in match.group().casefold()
    return match is not None and not is_undone and _CLAUSE_END.match(text, match.end()) is not None
