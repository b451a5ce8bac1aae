"""The words by which a statement is recognized without a model, by language.

Each row of a table is a list of patterns with ` | ` between them; a blank matches any blanks, and an indented
line goes on with the row. `Cues` in `cue_patterns` says what each row is for. One more table adds a language.
"""

from __future__ import annotations

from sevenfold.layers.memory.extraction.cues_romance import ROMANCE_CUES
from sevenfold.layers.memory.extraction.cues_unspaced import UNSPACED_CUES

COMMON_WORDS = {
    "en": """the a is are we you i to and of in it not for on with don't our my never always please use
    from that this no all be have do at as by but or an if so was should must when what can will just here
    now ever before i'm it's let's has were more only into like need""",
    "de": """der die das und ist nicht wir ich du bitte ein eine für mit auf immer nie niemals den dem zu
    im es wird sind haben auch aber dass von nur hier ab statt dir mir bin jetzt gerade unser unsere
    unserem unseren kein keine keinen will""",
    "es": """ese esa el la los las de que y en un una sin es no por con para del se al siempre nunca está usa
    más pero esto esta aquí mi lo ahora gracias eso nuestro nuestra nuestros nuestras""",
    "fr": """le la les de des et est un une en pas ne que je nous on pour dans sur toujours jamais notre
    nos avec il ce c l d du ça merci au tu sont j""",
    "pt": """o a os as de que e em um uma é não por com para do da no na sempre nunca está usa use mas
    isso aqui eu você pra gente agora valeu ao nosso nossa nossos nossas meus minhas meu minha seu pare""",
    "it": """l dell all mi piace piacciono il lo la i gli le di che e è non un una per con del della
    nel in sempre mai usa questo ma qui sono si no ora grazie ci da alla su nostro nostra nostri nostre""",
    "nl": """per tot de het een en is niet we wij ik je in op van voor met altijd nooit dat dit onze ons te
    naar geen maar ook hier gebruik er zijn deze eerst om bedankt nee nu""",
    "pl": """nie się w na z do jest to i że za od o dla a ale zawsze nigdy mamy ja my u po przez bez jak
    co teraz bo tu tak jestem proszę dzięki nasz nasza nasze naszych ten tej używaj używamy użyj""",
}
"""By which a language is recognized; others have a script of their own."""

CLAUSE_JOINS = {
    "en": "and | but | because | plus", "de": "und | aber", "es": "y | pero", "fr": "et | mais",
    "pt": "e(?!-) | mas", "it": "e(?!-) | ma", "nl": "en | maar", "pl": "i | ale", "ru": "и | но",
}  # fmt: skip
_LASTING = (
    "(?:repo|repository|project|codebase|code base|monorepo|package|service|team|company|app|machine|box|"
    "laptop|server|cluster|org|library|product)"
)
"""What lasts: "in this repo" limits nothing."""
_DEICTIC = r"(?:it|this|that|these|those|them)\b(?! when)"

CUE_TABLES = {
    **UNSPACED_CUES,
    **ROMANCE_CUES,
    "en": rf"""
lead: please | also | and | but | so | ok | okay | yes | yeah | yep | no | nope | right | btw | by the way
    | fyi | just so you know | one (?:more )?thing | important | note | hey | hi | thanks | actually | rule
    | (?:in|for|on) (?:this|our) {_LASTING} | here | personally | generally | in general
    | make sure (?:to|you) | be sure to | oh | well | because | then | (?:when|before
    |after) (?:you \w+|\w+ing)(?: \w+)? | heads up
remember: (?:can you |could you )?(?:remember(?! to)|keep in mind(?! (?:that )?(?:it|this|he|she|they)(?:'s
    |'re| is| are| was)\b)|bear in mind|make a note|take note|memori[sz]e|note for later|note that|note(?=:)
    |(?:don't|do not) forget(?! to| (?:the|your) \w+\W*$)|for the record(?!,? i\b)|for future reference
    |save (?:this|that|it) (?:to|in) (?:your )?memory)
onward: whenever (?!(?:the |an? )?(?:users?|customers?|visitors?)\b).* (?<!to )(?:ask|ping|tell|warn|remind
    |call|check with) (?:me|us) | from now on | from (?:here|this (?:point|moment)) on(?:wards?)? | (?:from
    |starting|as of) (?:today|now)(?!'s) | from here on out | ^(?:in general|note for the future)(?=,|:)
    | going forward | in (?:the )?future | as a rule(?! of) | (?:don't|do not) .* without (?:asking
    |checking with|telling|consulting|talking to) (?:me|us)\b | under no circumstances | by default,? (?:use
    |run|write|we) | (?:whenever|(?:every|each|any) time) (?:you|we) | the (?:rule|convention|policy
    |standard) (?:here )?(?:is|stays|remains) | [,.] (?:ever|never|always)\W*$
    | ^all .* in this {_LASTING} (?:are|is) | ^(?:stop|quit) (?!running|deploying|building|testing|waiting
    |breaking)\w+ing(?! (?:the|this|that|it|these|those)\b) | ^no more .*(?:please|commit\w*|messages?|prs?
    |docs?|comments?|repl\w+|answers?|code) | ^(?:don't|do not|use|write|keep|put) .*in (?:(?:this
    |our) {_LASTING}|(?:all|every) (?:docs?|commits?|prs?|comments?|tests?|repl\w+|answers?|messages?))
    | ^for (?:every|each|any) new \w+ | ^when(?:ever)? you (?:write|create|add|name|rename|touch|edit|change
    |review) (?!(?:the|this|that|it|them|these|those)\b) | ^only [a-z]+ (?:can|may|is allowed to) (?:approve
    |merge|deploy|release|push|review)(?! (?:that|this|it)\b) | ^for (?:this|our) {_LASTING},? (?:use|prefer
    |write|keep|put) | i'd like you to (?:always|never) | ^(?:don't|do not) (?:mock|use|add|write|put|create
    |commit) .*(?:in|for|to|with|from) (?:\w+ )?\w+s\W*(?:,|$) | ^(?:don't|do not) (?:add|write) \w+s that
    | ^use [\w@./+-]+,? (?:not|instead of|rather than|over) [\w@./+-]+\W*$ | ^(?:every|each|all)(?: (?:new
    |our|the|single|public))* (?:prs?|pull requests?|commits?|commit messages?|branch(?:es)?|tests?
    |endpoints?|migrations?|releases?|modules?|files?|functions?|classes|tickets?|changes?|reviews?
    |components?|services?|comments?|docs?|deploy\w*|apis?|dependenc\w+) (?:has to|have to|must|needs?|should
    |goe?s?|gets?|(?:are|is)(?! (?:red|green|broken|failing|down|done|missing|wrong|stuck|slow|late|not
    |\w+ing)\b)) | (?:make (?:it |this )?|get in(?:to)? )(?:a|the) (?:habit|rule|point) (?:to|of|that)
here: (?:just so you know|fyi|for your information|heads up)[,:]? (?!i\b|it\b|they\b|he\b|she\b)
    (?:\S+ )+?(?:every|each|only|never|always)\b | (?:in|for|across) (?:this|our
    |the) (?:whole |entire )?(?:repo|repository|project|monorepo|codebase
    |code base|team|company|org),? (?!(?:\w+ ){{0,3}}(?:it|this|that|there|what|which|who|you|i)\b)
    (?!the \w+(?<!s) )(?:[\w/'-]+ ){{1,4}}(?:is|are|goe?s?|lives?|sits?|stays?|comes?|ha(?:s|ve)|starts?|ends?
    |begins?|follows?|belongs?|uses?|runs?|means?|gets?)
always: always(?!-) | never(?!-) | don't ever | do not ever
when: when | whenever | before | after | if | for | in | on | as | unless | once | while
we: we(?: should| must|'ll| will| have to| do| also| really| generally| usually)? | you(?: should| must)
other: both | two | three | four | many | several | i | it | it's | he | she | they | that | this | these
    | those | which | who | what | where | the | a
    | an | if | there | that's | there's | everything | everyone | nothing | some | most | my | your
    | you$ | you're | need to | want to | wants to | let's | can | users? | should have
telling: ^\w+[^s\W]s\b(?! (?:and|in|to|for)\b) | ^\w+(?:x|sh|ch|ss)es | (?:that|here|there|wrong)
state: end up | (?:show|display|hide|render|disable|enable|highlight|scroll|animate|redirect|prefill|center
    |align|let) (?!(?:me|us)\b) | a | an | the | mind | again | change\W*$ | good | nice | fun | worth | been
    | seen | had | has | have | get | gets | got | know | knew | forget | forgot | seems? | works? | worked
    | fails? | failed | happens? | is | was | were | finds? | manage[sd]? | finish(?:es)? | enough | broken
    | down | failing | slow | red | green | stuck | done | ready | behind | late | finished | running
    | passing | missing | wrong | still | \d+ ?% | happens | on | at | by | from | (?!need|embed|feed|seed
    |speed|shed)\w+ed | thought
status: broken | out of (?:date|sync) | outdated | in (?:plain|clear) ?text | down | failing | fails | failed
    | slow | red | green | stuck | done | ready | behind schedule | late | finished | passing | missing
    | again | \d+ ?% | a (?:bug|problem|issue|meeting|call|demo) | bug | problem | (?:is|are|was
    |were) (?:\w+ )?\w+ing | fixed | expected | should be | a mess | got | was | were | had | did | broke
    | crashed | went | came | rejected | takes? (?:forever|ages|long|too) | can we | could we | the wrong
prefer: (?:i|we) (?:really |much |generally |usually |strongly )?(?:prefer|favou?r|dislike
    |can't stand) (?!{_DEICTIC}|(?:the )?(?:option|version|variant|approach|first|second|number|\d|[ab]\b))
    | (?:i|we)(?:'d| would) rather (?:have |see |get |use )?(?!not\b|{_DEICTIC}|.*\bhere\W*$)
    | i (?:really )?(?:hate|like|love|don't like|do not like) (?!{_DEICTIC}|the |your |how|what|where
    |to see(?!.* (?:before|first|when)\b)) | i (?:always|never) (?:want|prefer|expect) (?!to\b)
    | it(?:'s| is) important to me | i want you to .*(?:before you|when you|whenever|each time|every time)
    | (?:we're|we are|i'm|i am) not (?:a )?(?:big )?fans? of (?!{_DEICTIC}) | my (?:editor|shell|terminal
    |browser|preference|os|keyboard|ide) is
fact: (?:all )?our | we (?:only |mostly |still |also |now )?(?:use|deploy|support|store|ship|target|write
    |name|tag|version|host|squash|release|follow|require|track|(?:don't|do not) (?!have|know|need|see|want
    |care|get|think|even|really|yet|understand|remember)\w+ (?!it\b|this|that|the\b|anything)|no longer use
    |rely on|run on|are on|have (?:only|no|two|three|four|five|\d+)) | we're (?:on|behind)
    | this {_LASTING} (?:uses|targets|has|runs|supports|needs|requires|only|still|is (?:written|built
    |deployed|hosted|licensed|generated|a monorepo|open|public|private)) | the (?:[\w-]+ ){{1,3}}(?:runs on
    |lives? (?:in|under|at|on)|is hosted|is deployed|is generated|are generated|is written in|is versioned
    |is called|is named|listens on|is read-only|has only|(?:still )?talks? to|belongs to|is stored in)
    | we \w+ .*every (?:other |second |two )?(?:\w+days?|weeks?|sprint|month|quarter)
person: ^i(?:'m| am) (?:an? (?!bit|little|few|fan)|the (?!one|only|same)|(?:new to|responsible|in charge
    |not an?) ) | ^i(?:'m| am) on (?:an? )?(?:m\d|mac|macos|windows|linux|ubuntu|arch|fedora|debian|wsl)
    | ^i (?:work (?:as|for|in|at)|speak|live in|report to|maintain|manage) | ^call me [A-Z]
    | ^i've been (?:writing|using|doing) .* (?:years|months) | ^my name's | ^my (?:name|time ?zone|role|team
    |pronouns|job|background) (?:is|are) | ^(?!this|that|it|he|she|they|which
    |who)\w+\.? (?:[\w.]+ ){{0,3}}(?:owns|maintains|signs off on|is responsible for|is in charge of
    |is the owner of) (?!that|this|it\b)
decided: (?:we|the team)(?:'ve| have)? (?:all )?(?:decided|agreed on|settled on|chose|standardi[sz]ed
    |went with|picked|opted for|ruled out) | we're moving (?:off|from|to) | we (?:moved|switched
    |migrated) (?:to|from|off) | we(?:'re)? stick(?:ing)? (?:with|to) | decision(?=:)
wrong: no | nope | wrong(?: \w+)? | that(?:'s| is) (?:wrong|not right) | not quite | actually | incorrect
    | not the [\w ]+
contrast: (?:, |- |is |was )not | instead of | rather than | here\W*$ | any ?more
found: (?:is|are|runs?|lives?|live|goes?|tracked|kept|stored|documented|generated) (?:at|in|on|under|into|to)
    | you can find
limited: in (?:the|this|our) (?:story|novel|game|essay|chapter|poem|scene|demo) | for now | right now
    | at the moment | currently | temporarily | for the time being | (?<!from )(?<!starting )(?<!as of )today
    | tonight | (?<!from )(?<!we )(?<!starting )(?<!as of )now(?! on) | tomorrow | (?:to|in|of|from|for|on
    |at) that (?!case\b|{_LASTING}\b)\w+ | this (?!{_LASTING}\b|is\b|to\b|:|(?:point|moment) on)[\w/]+
    | this one | these | those | just once | (?:just|only) here | yet | meanwhile | in the meantime
    | afterwards | once you're | (?:until|till) (?:i|we|you|it|they|he|she|then|tomorrow|next|further|this
    |that|\w+day|the (?:demo|release|meeting|end|call|deploy|fix|merge)|.* (?:is|are) (?:over|done|back
    |finished|ready|merged|fixed|out|closed|green|live)|\w+ (?:is|are|comes?) back) | while (?:i|we|you|i'm
    |we're|you're|it's|debugging|testing|the|this|that) | just for | in (?:an?|\d+|two|three|five|ten
    |a few) (?:hours?|minutes?|mins?|days?|weeks?) | as long as (?:i|we|you) | for the (?:next|rest of|demo
    |release|hotfix|experiment) | during the (?:demo|migration|incident|freeze|outage|call|meeting|release
    |test|move|upgrade) | next (?:week|sprint|hour|few) | for a (?:sec|second|minute|moment|while|bit|day
    |week) | on the phone | the (?:first|second|third|last|other|left|right|top|bottom) one
    | when you're done | i(?:'m| am) (?:in|at) a | (?:fix|change|replace|update|remove|try|revert|undo
    |start with|go with) (?:it|that|them) | (?:until|till) (?:lunch|noon|evening|morning|eod|eow|midnight)
    | you(?:'re| are) on | yesterday | the other \w+ | same (?:thing )?here | ^we (?:use|need|do|call
    |have) .*there\W*(?:$|,) | ^we (?:use|support|need|do|call|run|have) (?:that|it|them)\b
task: (?:please )?(?:fix|replace|start|add|change|remove|rename|try|go ahead|update|make|show|check|look|find
    |put|move|implement|create|delete|commit(?! messages?)|push|revert|adjust|set|call|use|take|keep|give
    |do it|redo|rerun
    |run|switch|merge|assign|quick fix|cut|drop)
open: \?\W*$ | ^(?:wait,? )?(?:what|why|how|where|which|who|whose)\b | ^when (?:do|does|did|will|is|are|can)
    | ^(?:wait,? )?(?:is|are|do|does|did|can|could|would|should|will|shall|have|has) (?:i|we|you|it|they|the
    |there|our|this|that|these)\b | wondering | not sure | do you (?:remember|know) | (?:don't|do not|doesn't
    |needn't|not) (?:\w+ )?(?:always|have to|need to) | ^no need | no need to (?:\w+ ){{0,3}}(?:always|every
    |each|all) | not like | no rule | didn't say
    | don't worry | don't (?:really )?(?:care|mind|have a preference) | no preference
unsaid: pretend | ^here,? we | ^you keep | maybe | perhaps | probably | presumably | might | could | suppose
    | imagine | assum(?:e|ing) | let's say | what if | consider | i guess | i think | would(?! rather) | it'd
    | one day | some ?day | thinking | hopefully | it depends | i meant? | may | (?!you say\b)\w+ (?:says?
    |said|thinks?|claims?|claimed|told|believes?|insists?|suggests?|suggested|recommends?|complains?|wants
    |wanted) | according to | apparently | supposedly | i (?:heard|read|found|saw) | ^they | (?:some|most
    |other) people(?!\W*$) | over there | comment by | from (?:slack|the chat|the mail|the docs) | (?:write
    |draft|document|translate|rephrase|proofread|reword|summari[sz]e|print|render|display)(?=:)
    | (?:commit message|subject|title|label|text|string|caption|heading|wording) (?:should|must|is|to|from)
    | how do (?:you|i) say | (?:mail|message|note|comment) to | says? (?:that|we) | make sure (?:the|that|it
    |we) | (?:from now on|going forward|in (?:the )?future),? (?:the (?:\w+ ){{1,2}}\w+s\b|it\b|versions)
    | (?:when|whenever|(?:every|each) time) .*\b(?:it|the \w+) \w+s | as (?:the saying goes|they say)
made: (?<!don't )(?:write|draft|document|translate
    |rephrase|print|render|display) (?:an?|the|that|this|to|it|into|release|down)
    | (?<!don't )(?:add|put|create|insert) (?:(?:an?|the
    |some) )?(?:\w+ )?(?:comment|note|test|rule|slide|section|line|label|banner|check|paragraph|sentence
    |warning)
""",
    "de": r"""
lead: bitte | und | also | auch | aber | ok | ja | nein | übrigens | zur info | wichtig | hinweis | regel
    | danke | hier | in diesem (?:projekt|repo) | generell | denn
remember: behalte? (?:bitte )?im (?:kopf|hinterkopf) | merke? dir | denke? (?:bitte )?(?:daran|dran)
    | vergiss nicht(?! zu) | beachte | zur erinnerung | notiere? dir
onward: ^(?:bitte )?keine? .*mehr (?:in|an|bei|im) | ^bitte .*keine? .*mehr
    | ^hör\w* (?:bitte )?auf,? (?!damit|mit|das|die|den) | ^von heute an | [,.] (?:immer|niemals|nie)\W*$
    | ab jetzt | ab sofort | ab heute | von (?:jetzt|nun) an | in zukunft | zukünftig | künftig | fortan
    | grundsätzlich | (?:nie|niemals|nichts?|kein\w*) .*ohne (?:rückfrage|rücksprache|absprache|meine? \w+
    |(?:mich|uns) (?:vorher )?zu fragen) | jedes mal,? wenn du | auf keinen fall | zur (?:gewohnheit|regel)
    | standardmäßig
here: (?:zur info|zu deiner info|nur damit du es weißt|fyi)[,:]? (?!ich\b|er\b|sie\b|es\b)(?:\S+ )+?
    (?:jede\w*|immer|nie|nur)\b | (?:in|bei) (?:diesem|unserem) (?:\w*projekt|repo|repository|team
    |code) (?:werden|wird|sind|ist
    |liegen|liegt
    |gehören|gehört|heißen|heißt|gelten|gilt:?|haben|hat|laufen|läuft|stehen|steht|kommen|kommt|beginnen
    |beginnt) (?!es|das|da|eine?|ein)
always: immer | niemals
    | nie(?! gesehene) | stets
when: wenn | bevor | nachdem | sobald | vor | nach | bei | in | für
we: wir
other: du(?! sollst| musst| darfst) | ich | er | sie | es | das$ | (?<!in )(?<!auf )(?<!bei )der | ^(?:den
    |dem|das|die|eine?) | \S+ \S+ (?:das|die|eine?) | ob | beide | zwei | drei | viele | mehrere | dass
    | wenn | was | welche\w* | man | ihr
same: der | das | ein
state: \w+[sß]t du | ist | sind | war | waren | hat | habe | hatte | noch | wieder | gesehen | fehlt | geht
    | haben | ^\w+ \w+t$
status: fertig | kaputt | rot | grün | durch | down | langsam | wieder | weg | fehlt | fehlen | problem
prefer: ich (?:bevorzuge|mag|hasse|will,? dass du|möchte,? dass du) | (?:[\w-]+ ){0,4}(?:ist|sind
    |wäre) mir (?:lieber|wichtiger)
    | mir (?:ist|sind|wäre) .* (?:lieber|wichtiger) | ich hätte lieber | wir bevorzugen
    | ich habe? (?:es )?lieber
fact: wir (?:benutzen|nutzen|verwenden|nehmen|deployen|unterstützen|schreiben|hosten|releasen|arbeiten mit)
    | unsere?[mnrs]? | alle .* (?:sind|müssen|liegen|kommen) | (?:[\w-]+ ){1,5}(?:läuft|laufen) (?:auf|in
    |unter) | bei uns (?:heißt|heißen|gilt|gibt) | (?:benutzen|nutzen|verwenden|nehmen|schreiben
    |deployen) wir | wir \w+ .*jede[nrs]? (?:zweite[nrs]? )?(?:\w+tag|mittwoch|woche|monat|sprint)
person: ist (?:für .* )?(?:zuständig|verantwortlich) | ich bin (?:\w+ )?(?:\w*entwickler\w*|\w*scientist
    |\w+in\b|backend|frontend|neu) | ich arbeite (?:als|bei|im) | mein name ist | ich heiße
decided: wir haben (?:uns )?.*(?:entschieden|beschlossen|geeinigt) | entscheidung(?=:) | wir bleiben bei
wrong: nein | falsch | das stimmt nicht | stimmt nicht | nö | das ist falsch | quatsch | bei uns nicht
contrast: nicht | statt | anstatt | sondern
found: (?:läuft|laufen|liegt|liegen|ist|steht|stehen|findest du) (?:unter|in|im|auf|bei)
limited: (?:nimm|benutze?|verwende?|setze?|mache?) (?:das |es )?hier | gerade | (?<!ab )jetzt(?! an)
    | (?<!ab )heute | morgen | vorerst | vorläufig | momentan | im moment | zurzeit | derzeit | einstweilen
    | diese[mnrs]? (?!projekt|repo|repository|team|maschine|server|code|codebase)\w+ | solange | bis (?:ich
    |wir|du|er|sie|morgen|\w+tag|mittwoch|zum|das|die|der) | erst ?mal | nur kurz | diesmal | ausnahmsweise
    | nur einmal | fürs erste | während (?:wir|ich|du|der (?:demo|migration|umstellung)|des)
task: (?:bitte )?(?:fix\w*|ändere?|nimm|nenne?|mache?|benutze?|setze?|füge?|repariere?|schaue?|entferne?
    |starte?)
open: \?\W*$ | ^(?:warum|wieso|weshalb|wie|was|wer|wo|wann|welche\w*|woher)\b | ^(?:soll|sollen|kann|können
    |ist|sind|hat|haben|muss|müssen|darf|benutzen|nutzen) (?:ich|wir|du|man|das|es|die|der) | nicht immer
    | musst (?:du )?nicht | brauchst (?:du )?nicht | es kommt drauf an | nicht jedes mal | egal
unsaid: vielleicht | wenn wir | falls | angenommen | stell dir vor | könnten? | würden? | wäre(?! mir)
    | nähmen | hätten | glaubt | eventuell | vermutlich | ich glaube | ich denke | möglicherweise | sagt
    | sagte | meint | meinte | behauptet | angeblich | findet,? dass | will,? dass wir | steht(?! (?:auf
    |unter) \S+\.) | ^laut | laut (?:doku\w*|readme|ihm|ihr|chef\w*|team) | sorge? dafür
    | stelle? sicher,? dass die | ins englische | ins deutsche | kommentar(?=:) | nehmen wir an | dürften
    | theoretisch | garantiert | besteht darauf | wie immer
made: (?:schreibe?|übersetze?|formuliere|dokumentiere|füge?) (?!wir)
""",
    "nl": r"""
lead: alsjeblieft | graag | en | ook | maar | ok | oké | ja | nee | belangrijk | let op | regel | bedankt
    | hier | in (?:dit|deze) (?:project|repo) | trouwens | over het algemeen
remember: hou(?:d|dt)? (?:er )?(?:in gedachten|in je achterhoofd) | onthoud | denk eraan
    | vergeet niet(?! te) | houd er rekening mee | noteer | hou er rekening mee
onward: ^(?:graag )?geen .*meer .*(?:alsjeblieft|graag|commit\w*|prs?|code)
    | ^stop (?:alsjeblieft )?met (?!dat|dit|de|het (?!\w+en van)) | [,.] (?:altijd|nooit)\W*$ | (?:vraag|zeg
    |meld|laat) (?:het )?(?:me|mij|ons) (?:altijd|eerst|nooit) | vanaf (?:nu|vandaag) | (?:niet|nooit|geen
    |niks|niets) .*zonder (?:overleg|toestemming|(?:het )?(?:aan )?(?:me|mij|ons)\b|te vragen) | voortaan
    | in het vervolg | in de toekomst | in principe | elke keer als je | onder geen beding | een gewoonte van
here: (?:ter info(?:rmatie)?|fyi)[,:]? (?!ik\b|hij\b|zij\b|ze\b|het\b)(?:\S+ )+?(?:elke|elk|iedere?|altijd
    |nooit
    |alleen)\b | in (?:dit|ons) (?:project|repo|team) (?:worden|wordt|zijn|is|staan|staat|gaan|gaat|horen
    |hoort|heeft
    |hebben|liggen
    |ligt|beginnen|begint|heten|heet|komen|komt|draaien|draait) (?!het|dat|er)
always: altijd | nooit | steeds
when: als | wanneer | voordat | nadat | bij | voor | in | na
we: we | wij
other: ^(?:je|jij|u) (?!moet|mag) | ik | hij | zij | ze | het$ | ^(?:het|de|een) | \S+ \S+ (?:het|de|een)
    | beide | twee | drie | dat | die | dit | als | wat | dan | er | mijn
same: de | het | een
state: is | was | zijn | heb | heeft | had | nog | gezien | weer | klaar | werkt | hebben | ^(?!met )\w+ \w+t$
status: klaar | kapot | rood | groen | traag | weer | probleem | faalt | stuk
prefer: ik heb (?:het )?liever | ik hou van | ik hou niet van | ik haat | we hebben liever
    | ik wil (?:graag )?dat je | ik geef de voorkeur | mijn editor is
fact: (?:we|wij) doen (?:hier )?(?:geen|niet) | (?:we|wij) (?:gebruiken|deployen|ondersteunen|schrijven
    |hosten|werken met) | onze | ons | (?:[\w-]+ ){1,5}(?:draait|draaien) op | bij ons | (?:gebruiken
    |deployen|schrijven) (?:we|wij) | (?:we|wij) \w+ .*(?:elke|iedere|om de) (?:\w+dag|week|maand|sprint)
person: is (?:\w+ )?verantwoordelijk | gaat over | ik ben (?:\w+[- ])?(?:\w*ontwikkelaar|\w*engineer|data
    |designer|nieuw|de|een) | ik werk (?:als|bij|in) | mijn naam is | ik heet
decided: (?:we|wij) hebben (?:besloten|gekozen|afgesproken) | besluit(?=:) | we blijven bij
wrong: nee | dat klopt niet | fout | klopt niet | onjuist
contrast: niet | geen | in plaats van | maar
found: (?:draait|staat|staan|is|ligt) (?:op|in|onder)
limited: nu even | (?<!vanaf )nu | voorlopig | op dit moment | (?<!vanaf )vandaag | morgen | momenteel
    | tijdelijk | zolang | (?:deze|dit) (?!project|repo|repository|team|server|machine|is)\w+ | totdat
    | tot (?:ik|morgen|we|\w+dag|het|de) | terwijl | alleen deze | eventjes | tijdens de (?:demo|migratie
    |test) | vannacht | vanavond
task: (?:fix|verander|gebruik|noem|zet|maak|kijk|haal|voeg|begin|neem)
open: \?\W*$ | ^(?:waarom|hoe|wat|wie|waar|wanneer|welke|welk)\b | ^(?:gebruiken|moeten|kunnen|zullen|hebben
    |zijn) (?:we|wij|je) | niet altijd | hoeft niet | hoef je niet | het hangt ervan af | maakt niet uit
    | niet elke keer
unsaid: ^laat (?:het|de) \w+ (?:altijd|nooit) .*\w+en\W*$ | misschien | als we | stel dat | stel je voor
    | zouden? | zou | wellicht | ik denk | ik geloof | gebruikten | zegt | zeggen | zei | vindt dat
    | wil dat we | blijkbaar | beweert | ^volgens | volgens (?:de doc\w*|hem|haar|de readme) | zorg dat
    | zorg ervoor | naar het engels | zoals altijd
made: vertaal | schrijf | documenteer | voeg
""",
    "pl": r"""
lead: proszę | i | też | ale | ok | tak | nie | ważne | uwaga | zasada | dzięki | tutaj | u nas
    | w tym (?:projekcie|repo) | a propos | swoją drogą
remember: pamiętaj(?! żeby) | zapamiętaj | zanotuj | miej na uwadze | nie zapomnij(?! \w+ć)
    | zapisz w pamięci
onward: ^przestań(?:cie)? \w+ć (?!t[oeę]) | ^koniec z .*(?:commit\w*|pr|kodzie|proszę) | od tej chwili
    | [,.] (?:zawsze|nigdy)\W*$ | nie .* bez (?:pytania|mojej|konsultacji|uzgodnienia|naszej) | od teraz
    | od tej pory | od dziś | od dzisiaj | w przyszłości | z reguły | na przyszłość
    | za każdym razem,? (?:gdy|kiedy) | pod żadnym pozorem | nawyk\w* | w nawyk
here: ^u nas nie (?:robimy|robi się|używa\w*|wolno) | (?:dla (?:twojej )?(?:informacji|wiadomości)
    |fyi)[,:]? (?!ja\b|on\b|ona\b)(?:\S+ )+?(?:każd\w+|co|zawsze|nigdy|tylko)\b | w (?:tym
    |naszym) (?:projekcie|repo|repozytorium|zespole),? (?:\w+ ){1,4}(?:są|jest|trafiają|trafia|leżą|leży
    |zaczynają się|mają|ma)
always: zawsze | nigdy
when: gdy | kiedy | zanim | jeśli | przed | po | przy | w | dla
we: my | \w+(?:amy|emy|imy|ymy)
other: (?!musisz|masz)\w+sz | oba | obie | dwa | dwie | trzy | ja | on | ona | to | żeby | który | która
    | jeśli | co | ten | ta | mi | że
state: (?:nie )?\w+l[iy]śmy | (?:nie )?(?!musisz|masz)\w+sz | \w+(?:ca|uje|aje|eje|wia|nia|ada) | jest | są
    | był\w* | \w+(?:łem|łam) | wcześniej | \w+(?:uję|am|em|ę) | się | znowu | działa | (?:nie )?mamy
    | (?:nie )?\w+[aei](?:ra|era)
status: skończon\w+ | zepsut\w+ | przechodzą | gotow\w+ | znowu | problem | nie działa | padł\w*
prefer: wolę | wolimy | preferuję | preferujemy | lubię | nie lubię | nienawidzę | chcę,? żebyś
    | mój edytor to
fact: używamy | stosujemy | wdrażamy | wspieramy | piszemy | hostujemy | nasz\w* | (?:[\w-]+ ){1,5}(?:działa
    |działają) na | \w+(?:amy|emy|imy|ymy) .*(?:co|w każd[ąy]) (?:drug[ąi] )?(?:tydzień|poniedziałek|wtorek
    |środę|czwartek|piątek|miesiąc|sprint)
person: odpowiada za | jest odpowiedzialn\w+ | zajmuje się | jestem (?:\w+,? )?(?:programist\w+|inżynier\w*
    |analityk\w*|now\w+) | pracuję (?:jako|w) | mam na imię | nazywam się
decided: zdecydowaliśmy | postanowiliśmy | wybraliśmy | ustaliliśmy | decyzja(?=:) | zostajemy przy
wrong: nie | to nieprawda | nieprawda | źle | błąd
contrast: a nie | , nie | zamiast | tylko nie
found: (?:stoi|działa|jest|są|znajduje się|leży) (?:w|na|pod)
limited: teraz(?<!od teraz) | na razie | w tej chwili | dziś(?<!od dziś) | dzisiaj(?<!od dzisiaj) | jutro
    | obecnie | tymczasowo | t(?:ym|ej|en|ę|ego) (?!projekcie|repo|repozytorium|zespole|serwerze|porze|pory
    |chwili)\w+ | do (?:poniedziałku|wtorku|środy|czwartku|piątku|soboty|niedzieli|jutra|końca) | dopóki | aż
    | póki | tylko raz | chwilowo | podczas (?:demo|migracji|gdy|tego|tej)
task: (?:napraw|zmień|użyj|nazwij|zrób|sprawdź|usuń|dodaj|zacznij|weź|popraw)
open: \?\W*$ | ^(?:dlaczego|czemu|jak|co|kto|gdzie|kiedy|który|która|czy)\b | nie zawsze | nie musisz
    | nie trzeba | to zależy | wszystko jedno | nie musimy
unsaid: może | gdyby\w* | załóżmy | wyobraź | chyba(?! że) | pewnie | moglibyśmy | byłoby | powinniśmy
    | myślę,? że | mówi | mówią | powiedział\w* | uważa | twierdzi | chce,? żebyśmy | podobno | jest w readme
    | w readme | ^według | według (?:dokument\w*|niego|niej|readme) | zrób tak | upewnij się,? że
    | na angielski
made: przetłumacz | napisz | udokumentuj | dodaj
""",
    "ru": r"""
lead: пожалуйста | и | также | но | ок | да | нет | важно | заметка | правило | спасибо | здесь | тут
    | кстати | в этом (?:проекте|репозитории|репо) | у нас
remember: запомни(?:те)? | помни(?:те)? | имей(?:те)? в виду | не забывай(?:те)? | учти(?:те)? | запиши
onward: ^перестань(?:те)? \w+ть (?!эт) | ^больше никаких (?!ошиб|проблем)\w+ | начиная с сегодняшнего
    | [,.] (?:всегда|никогда)\W*$ | не .* без (?:моего|моей|нашего|спроса|согласования|разрешения)
    | с этого момента | впредь | отныне | в дальнейшем | на будущее | как правило | каждый раз,? когда
    | с сегодняшнего дня | за привычку | ни в коем случае | теперь всегда | в привычку
here: ^у нас не (?:дела|использу|пуша|пиш|принято)\w* | (?:к сведению|для информации|чтобы ты знал\w*
    |fyi)[,:]? (?!я\b|он\b|она\b|это\b)(?:\S+ )+?(?:кажд\w+|все|всегда|никогда|только)\b | в (?:этом
    |нашем) (?:проекте|репозитории|репо|коде),? (?:все |кажд\w+ |люб\w+|(?:\w+ ){1,3}(?:хран\w+тся|лежат
    |лежит|пишутся|называются|находятся|находится|начинаются|идут|идёт|живут))
always: всегда | никогда
when: когда | перед | прежде | после | если | при | в | для
we: мы
other: (?:ты|вы)(?! долж) | тво\w+ | ваш\w* | оба | обе | два | две | три | я | он | она | они | это | чтобы
    | который | которая | если | что | мне | эта | этот | оно | там
state: (?:не )?должн[оа] | (?:не )?\w{2,}ли(?<!или)(?<!если) | это | был\w* | видел\w* | раньше | ещё
    | забываю | работает | падает | заканчивается | не видел\w* | (?:не )?\w+(?:тся|ает|яет|ит|ят|ют|ет)
    | что-то
status: готов\w* | сломал\w* | упал\w* | зелён\w+ | красн\w+ | снова | опять | проблем\w* | не работает
prefer: я предпочитаю | мы предпочитаем | мне нрав[ия]тся | мне не нрав[ия]тся | ненавижу | хочу,? чтобы ты
    | я люблю | мой редактор | предпочитаю
fact: мы (?:не )?(?:используем|деплоим|поддерживаем|пишем|выкатываем|храним|применяем) | наш\w*
    | (?:[\w-]+ ){1,5}работа(?:ет|ют) на | у нас (?:это )?называ\w+ | мы \w+ .*кажд(?:ый|ую|ое) (?:втор(?:ой
    |ую|ое) )?(?:понедельник|вторник|сред[уы]|четверг|пятницу|неделю|месяц|спринт)
person: отвечает за | ответственн\w+ за | занимается | я (?:[\w-]+ )?[\w-]*(?:разработчик|инженер|аналитик
    |тестировщик|дизайнер) | работаю (?:в|на|кем) | меня зовут
decided: мы (?:решили|выбрали|договорились|остановились) | решение(?=:) | мы остаёмся на
wrong: нет | неверно | неправильно | это не так | не так
contrast: а не | не | вместо
found: (?:работает|лежит|лежат|находится|находятся|есть) (?:на|в|по|под)
limited: сейчас | пока | сегодня | завтра | временно | на данный момент | в данный момент | прямо сейчас
    | эт(?:от|ого|ой|ом|у|их) (?!проект\w*|репо\w*|команд\w*|сервер\w*|машин\w*|момента)\w+ | до (?:завтра
    |понедельника|вторника|среды|четверга
    |пятницы|субботы|воскресенья|вечера|конца)
    | на время | только раз | пока что
task: (?:почини|исправь|поменяй|используй|назови|сделай|посмотри|убери|добавь|начни|возьми)
open: \?\W*$ | ^(?:почему|зачем|как|что|кто|где|когда|какой|какая|какие|сколько)\b | ли | не всегда
    | не обязательно | не нужно | необязательно | не надо всегда | зависит | по-разному | всё равно
unsaid: может | возможно | наверное | если бы | допустим | предположим | представь | стоит ли | было бы
    | был бы | думаю | кажется | вероятно | говорит | говорят | сказал\w* | согласно | считает
    | хочет,? чтобы | якобы | по слухам | написано | сделай так | убедись,? что | на английский | по идее
    | теоретически
made: переведи | напиши | задокументируй | добавь
""",
}
