"""What kind of prompt it is, by its form: a question about the project asks for what somebody noted, thanks
and "commit this" do not, whatever words they share with a memory.

The words are those of ten languages. A prompt that none of them fits is taken as it is. Sets of words and few
patterns, compiled when a prompt needs them, because a command of the shell reads this at every start.
"""

from __future__ import annotations

import re

from sevenfold.layers.memory.recall.policy import OWN_QUESTION_FACTOR, QUESTION_FACTOR

MAX_REQUEST_WORDS = 14
"""A longer prompt says more than its form does."""

OTHER_FACTOR = 0.93
"""Of what no form fits: people ask for what was noted mostly with a question."""
TALK_FACTOR, CHECKOUT_FACTOR, WORLD_FACTOR, FORMAT_FACTOR = 0.3, 0.4, 0.4, 0.4
HERE_QUESTION_FACTOR, HERE_EDIT_FACTOR, EDIT_FACTOR = 0.7, 0.55, 0.8
"""Of what is asked or wanted of the text at hand ("rename this field"), and of another edit."""

_WORD = re.compile(r"[\w'’-]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LEAD = _words(
    "ok okay yes yeah no now then and so but well hey hi hello please could can would will you let's i want "
    "you'd like to ja bitte kannst du oui peux-tu sí por favor puedes sim podes sì puoi graag kun je да tak "
    "пожалуйста proszę"
)
_TALK = _words(
    "thanks thank thx cheers great good nice perfect super awesome excellent cool lovely happy hello hi hey "
    "love brilliant neat wow impressive "
    "sorry congratulations congrats danke prima toll klasse schön hallo guten merci bravo parfait bonjour "
    "bonsoir gracias perfecto genial hola buenos buenas obrigado obrigada perfeito olá bom boa grazie "
    "perfetto "
    "ciao buongiorno bedankt mooi спасибо отлично привет dzięki świetnie"
)
_GOES_ON = _words(
    "continue proceed next resume weiter weitermachen continua continuez continúa continuar sigue segue "
    "prossegue kontynuuj продолжай продолжи дальше"
)
_GOES_ON_BEGINNINGS = (
    "go on", "go ahead", "carry on", "keep going", "keep on", "move on", "mach weiter", "mache weiter",
    "vai avanti", "ga verder", "ga door",
)  # fmt: skip
_CHECKOUT = _words(
    "commit amend squash rebase stash unstash stage unstage revert undo redo restore discard push pull "
    "cherry-pick stop cancel forget committe committen annule annuler deshaz desfaz annulla закоммить отмени "
    "верни cofnij"
)
_CHECKOUT_FIRST = _words("put take leave mach nimm draai roll go show tag haz fai create open make")
_CHECKOUT_PATTERN = (
    r"(?:put|take|leave|mach|nimm|draai) (?:\S+ ){1,4}(?:back|out|alone|rückgängig|zurück|raus|terug)\b"
    r"|(?:roll|go) back\b|show (?:me )?the diff\b|tag this\b|(?:haz|fai) (?:un |il )?commit\b"
    r"|(?:create|open|make) an? (?:new |draft )?(?:branch|pull request|pr|merge request)\b"
)
_UNSPACED_TALK = (
    "谢谢", "好的", "很好", "继续", "提交", "撤销", "翻译", "ありがとう", "いいね", "続けて", "元に戻し",
    "コミットして", "감사", "좋아", "계속", "되돌려", "커밋해",
)  # fmt: skip
_ELSEWHERE = _words(
    "translate recommend calculate sing übersetze übersetz traduis traduisez traduce traduz traduci vertaal "
    "переведи przetłumacz"
)
_WRITES = _words(
    "write compose tell give make schreib schreibe erzähl écris raconte escribe cuenta escreve conta scrivi "
    "racconta schrijf"
)
_WRITTEN = _words(
    "haiku poem limerick joke slogan song story riddle rhyme gedicht witz geschichte poème "
    "blague histoire poema "
    "chiste cuento piada poesia barzelletta"
)
_WORLD_FIRST = _words(
    "explain describe define what what's how do are have can who did is count wie wer bist quelle qué che que"
)
_WORLD_PATTERN = (
    r"(?:explain|describe|define|what(?:'s| is| are| does| do)|how (?:do|does))(?: me)?(?: the difference"
    r" between)? an? (?!new\b)[\w-]+(?: (?:and|or|vs\.?) an? [\w-]+)?(?: (?:do|work|mean|contain|look like))?"
    r"(?: (?:in|for|to)\b.{0,30})?\W*$"
    r"|what(?:'s| is| are) an? (?:[\w-]+ ){1,2}[\w-]+\W*$"
    r"|what(?:'s| is) (?:\d|the (?:difference between an? |capital of |weather\b|time\b|date\b))|what time\b"
    r"|how (?:do you do|are you)\b|(?:do|are|have|can|who are|did) you\b|is it (?:already|still)\b"
    r"|how many \w+ (?:has|have|are in)\b(?! (?:i|we|you)\b)(?!.*\b(?:my|src|this)\b)|count (?:from|to)\b"
    r"|wie spät\b|(?:wer )?bist du\b|quelle heure\b|qué hora\b|che ora\b|que horas\b"
)
_STEERS = _words(
    "do start begin leave skip finish ignore postpone save let fang mach lass commence laisse empieza deja "
    "começa deixa inizia lascia begin laat"
)
_STEERING_PATTERN = (
    r"\b(?:first|next|later|last|tomorrow|tonight|for (?:now|today|the moment)|zuerst|später|morgen|d'abord"
    r"|plus tard|demain|primero|después|mañana|primeiro|depois|amanhã|prima|dopo|domani|eerst|later)\W*$"
    r"|^(?:start|begin) with\b"
)
_FORMATS = _words("answer reply write put format turn use give make show")
_FORMAT_PATTERN = (
    r"\b(?:as an? |in(?:to)? an? (?:table|list|sentence|checklist)|in (?:german|french|english|spanish"
    r"|italian|plain|one|simple|short)\b|bullet|plain words|shorter|table\b|checklist|json\b)"
)
_QUESTION = _words(
    "who where when which why how what what's who's where's whom whose does did is are was were has wer wo "
    "wohin wann warum weshalb wie was welche welcher welches darf dürfen muss müssen qui où quand pourquoi "
    "combien comment quel quelle quels quelles est-ce quién dónde cuándo cómo qué cuál cuánto cuánta cuántos "
    "quem onde quando porquê como qual quais quanto quantos chi dove perché come quale quali waar wanneer "
    "waarom hoe welk welke кто где когда почему как какой какая какие сколько kto gdzie kiedy dlaczego jak "
    "który ile"
)
_ASKED_PATTERN = r"[?？]\s*$|哪|谁|什么|怎么|多少|どこ|誰|いつ|なぜ|어디|누구|언제|무엇"
_HERE = _words(
    "this these those here it above below dies diese dieser dieses diesen hier ce cette ces ici este esta "
    "estos aquí isto aqui questo questa qui dit deze"
)
_HERE_PATTERN = (
    r"\bthat\W*$|^\w+ that\b|\bthat (?:do|does|mean|return|work)s?\b"
    r"|\bline \d|\bthe (?:loop|function|method|variable|argument|parameter|class"
    r"|constant|import|list|string|button|command|file)\b"
)
_OURS = _words(
    "i've i'm my mine we our us ours wir unser unsere unserem unseren unserer uns nous notre nos nuestro "
    "nuestra nuestros nuestras nosso nossa nossos nossas noi nostro nostra nostri onze wij мы наш наша наши"
)
_OWN_PATTERN = r"\b(?:did|have|had|was|were|should|may|(?:who|where|when|which \w+) (?:do|can)) i\b"
"""What the person did, or may do; "how do I …?" is asked of anything."""
_EDIT = _words(
    "rename add remove delete drop move extract inline split merge wrap swap replace turn sort make handle "
    "put write use format fix change convert insert invert simplify refactor clean collapse "
    "pull call name hide "
    "show disable enable parse print log cast return raise catch mock cover mark set increase decrease bump"
)


def weigh_asking(prompt: str) -> float:
    """How much what a memory shares with such a prompt counts: more than 1 for a question to the project."""
    text = " ".join(prompt.casefold().split())
    words = _WORD.findall(text)
    at = next((at for at, word in enumerate(words) if word not in _LEAD), len(words))
    bare = text[text.find(words[at]) :] if at < len(words) else text
    is_ours = not _OURS.isdisjoint(words) or re.search(_OWN_PATTERN, text) is not None
    is_short, has_mark = len(words) <= MAX_REQUEST_WORDS, text.endswith(("?", "？"))
    if is_short and not (has_mark and is_ours):
        for form in (text, bare):
            if (factor := _weigh_form(form, has_mark=has_mark)) is not None:
                return factor
    first = words[at] if at < len(words) else ""
    is_here = is_short and (not _HERE.isdisjoint(words) or re.search(_HERE_PATTERN, text) is not None)
    if first in _QUESTION or re.search(_ASKED_PATTERN, text):
        if is_ours:
            return OWN_QUESTION_FACTOR
        return HERE_QUESTION_FACTOR if is_here else QUESTION_FACTOR
    if is_short and first in _EDIT:
        return HERE_EDIT_FACTOR if is_here else EDIT_FACTOR
    return OTHER_FACTOR


def _weigh_form(text: str, *, has_mark: bool) -> float | None:
    """Of a short prompt; None where its first words do not say that it asks for nothing."""
    words = _WORD.findall(text)
    first = words[0] if words else ""
    # "Good, but why …?" goes on with a question.
    if first in _TALK and not has_mark:
        return TALK_FACTOR
    if first in _GOES_ON or text.startswith((*_GOES_ON_BEGINNINGS, *_UNSPACED_TALK)):
        return TALK_FACTOR
    if first in _CHECKOUT or (first in _CHECKOUT_FIRST and re.match(_CHECKOUT_PATTERN, text)):
        return CHECKOUT_FACTOR
    if first in _ELSEWHERE or (first in (*_WRITES, "a", "an") and not _WRITTEN.isdisjoint(words)):
        return TALK_FACTOR
    if first in _WORLD_FIRST and re.match(_WORLD_PATTERN, text):
        return WORLD_FACTOR
    is_steering = first in _STEERS and re.search(_STEERING_PATTERN, text)
    is_formal = first in _FORMATS and re.search(_FORMAT_PATTERN, text)
    return FORMAT_FACTOR if is_steering or is_formal else None
