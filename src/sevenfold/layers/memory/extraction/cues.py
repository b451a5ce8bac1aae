"""The words by which a statement is recognized without a model, by language.

Each row of a table is a list of patterns with ` | ` between them; a blank matches any blanks, and an indented
line goes on with the row. `Cues` in `statements` says what each row is for. One more table adds a language.
"""

from __future__ import annotations

from sevenfold.layers.memory.extraction.cues_unspaced import UNSPACED_CUES

COMMON_WORDS = {
    "en": """the a is are we you i to and of in it not for on with don't our my never always please use
    from that this no all be have do at as by but or an if so was should must when what can will just here
    now ever before i'm it's let's has were more only into like need""",
    "de": """der die das und ist nicht wir ich du bitte ein eine für mit auf immer nie niemals den dem zu
    im es wird sind haben auch aber dass von nur hier ab statt dir mir bin jetzt gerade unser unsere
    unserem unseren kein keine keinen""",
    "es": """el la los las de que y en un una es no por con para del se al siempre nunca está usa como más
    pero esto esta aquí mi lo ahora gracias eso nuestro nuestra nuestros nuestras""",
    "fr": """le la les de des et est un une en pas ne que je nous on pour dans sur toujours jamais notre
    nos avec il ce c l d du ça merci au tu sont j""",
    "pt": """o a os as de que e em um uma é não por com para do da no na sempre nunca está usa use mas
    isso aqui eu você pra gente agora valeu ao nosso nossa nossos nossas""",
    "it": """il lo la i gli le di che e è non un una per con del della nel in sempre mai usa questo ma qui
    sono si no ora grazie ci da alla su nostro nostra nostri nostre""",
    "nl": """de het een en is niet we wij ik je in op van voor met altijd nooit dat dit onze ons te naar
    geen maar ook hier gebruik er zijn deze eerst om bedankt nee nu""",
    "pl": """nie się w na z do jest to i że za od o dla a ale zawsze nigdy mamy ja my u po przez bez jak
    co teraz bo tu tak jestem proszę dzięki nasz nasza nasze naszych ten tej używaj używamy użyj""",
}
"""By which a language is recognized; others have a script of their own."""

CLAUSE_JOINS = {
    "en": "and | but | because | plus", "de": "und | aber", "es": "y | pero", "fr": "et | mais",
    "pt": "e | mas", "it": "e | ma", "nl": "en | maar", "pl": "i | ale", "ru": "и | но",
}  # fmt: skip
_LASTING = (
    "(?:repo|repository|project|codebase|code base|monorepo|package|service|team|company|app|machine|box|"
    "laptop|server|cluster|org|library|product)"
)
"""What lasts: "in this repo" limits nothing."""
_DEICTIC = r"(?:it|this|that|these|those|them)\b(?! when)"

CUE_TABLES = {
    **UNSPACED_CUES,
    "en": rf"""
lead: please | also | and | but | so | ok | okay | yes | yeah | yep | no | nope | right | btw | by the way
    | fyi | just so you know | one (?:more )?thing | important | note | hey | hi | thanks | actually | rule
    | (?:in|for|on) (?:this|our) {_LASTING} | here | personally | generally | in general
    | make sure (?:to|you) | be sure to | oh | well | haha | because | then | (?:when|before
    |after) (?:you \w+|\w+ing)(?: \w+)? | heads up
remember: (?:can you |could you )?(?:remember(?! to)|keep in mind|bear in mind|make a note|take note
    |memori[sz]e|note for later|note that|note(?=:)|(?:don't|do not) forget(?! to)|for the record
    |for future reference|save (?:this|that|it) (?:to|in) (?:your )?memory)
onward: whenever (?!(?:the |an? )?(?:users?|customers?|visitors?)\b).* (?<!to )(?:ask|ping
    |tell|warn|remind|call|check with) (?:me|us) | from now on
    | from here on | from today on | going forward | in (?:the )?future | as a rule
    | under no circumstances | by default,? (?:use|run|write|we) | (?:whenever|(?:every|each
    |any) time) (?:you|we) | the (?:rule|convention|policy|standard) (?:here )?(?:is|stays|remains)
    | [,.] (?:ever|never|always)\W*$ | ^all .* in this {_LASTING} (?:are|is) | ^(?:stop|quit) (?:adding|using
    |writing|putting|mocking|creating|committing|explaining|apologi[sz]ing|summari[sz]ing) | ^(?:don't
    |do not) (?:mock|use|add|write|put|create|commit) .*(?:in|for|to|with|from) (?:\w+ )?\w+s\W*(?:,|$)
    | ^use [\w@./+-]+,? (?:not|instead of|rather than|over) [\w@./+-]+\W*$ | ^(?:every|each|all)(?: (?:new
    |our|the|single))* (?:prs?|pull requests?|commits?|commit messages?|branch(?:es)?|tests?|endpoints?
    |migrations?|releases?|modules?|files?|functions?|classes|tickets?|changes?|reviews?|components?
    |services?|comments?|docs?|deploy\w*|apis?|dependenc\w+) (?:has to|have to|must|needs?|should|goe?s?
    |gets?|are|is) | (?:make (?:it|this)|get in(?:to)?) (?:a|the) (?:habit|rule|point) (?:to|of|that)
here: (?:in|for|across) (?:this|our|the) (?:whole |entire )?(?:repo|repository|project|monorepo|codebase
    |code base|team|company|org),? (?!(?:\w+ ){{0,3}}(?:it|this|that|there|what|which|who|you|i)\b)
    (?!the \w+(?<!s) )(?:[\w/'-]+ ){{1,4}}(?:is|are|goe?s?|lives?|sits?|stays?|comes?|ha(?:s|ve)|starts?|ends?
    |begins?|follows?|belongs?|uses?|runs?|means?|gets?)
always: always | never | don't ever | do not ever
we: we(?: should| must|'ll| will| have to| do| also| really| generally| usually)? | you(?: should| must)
other: i | it | it's | he | she | they | that | this | these | those | which | who | what | where | the | a
    | an | if | there | that's | there's | everything | everyone | nothing | some | most | my | your
    | need to | want to | wants to | let's | can | users? | should have
state: (?:show|display|hide|render|disable|enable|highlight|scroll|animate|redirect|prefill|center|align
    |let) (?!(?:me|us)\b) | a | an | the | mind | again | change | good | nice | fun | worth | been
    | seen | had | has | have
    | get | gets | got | know | knew | forget | forgot | seems? | works? | worked | fails? | failed
    | happens? | is | was | were | finds? | manage[sd]? | finish(?:es)? | enough | broken | down | failing
    | slow | red | green | stuck | done | ready | behind | late | finished | running | passing | missing
    | wrong | still | \d+ ?% | happens | on | at | by | from
status: broken | out of (?:date|sync) | outdated | in (?:plain|clear) ?text
    | down | failing | fails | failed | slow | red | green | stuck | done | ready
    | behind schedule | late | finished | passing | missing | again | \d+ ?% | a (?:bug|problem|issue|meeting
    |call|demo) | bug | problem | (?:is|are|was|were) (?:\w+ )?\w+ing | fixed | expected | should be | a mess
    | got | was | were | had | did | broke | crashed | went | came | rejected
    | takes? (?:forever|ages|long|too) | can we | could we
prefer: (?:i|we) (?:really |much |generally |usually |strongly )?(?:prefer|favou?r|dislike
    |can't stand) (?!{_DEICTIC}|(?:the )?(?:option|version|variant|approach|first|second|number|\d|[ab]\b))
    | (?:i|we)(?:'d| would) rather (?:have |see |get |use )?(?!not\b|{_DEICTIC}) | i (?:really )?(?:hate|like
    |love|don't like|do not like) (?!{_DEICTIC}|the |your |how|what|where|to see)
    | i always (?:want|prefer|expect) (?!to\b)
    | i want you to .*(?:before you|when you|whenever|each time|every time) | (?:we're|we are|i'm
    |i am) not (?:a )?(?:big )?fans? of (?!{_DEICTIC}) | my (?:editor|shell|terminal|browser|preference|os
    |keyboard|ide) is
fact: we (?:only |mostly |still |also |now )?(?:use|deploy|support|store|ship|target|write|name|tag|version
    |host|squash|release|follow|require|track|don't use|don't do|don't support|do not use|no longer use
    |rely on|run on|are on|have (?:only|no|two|three|four|five|\d+)) | we're (?:on|behind) | our
    | this {_LASTING} (?:uses|targets|has|runs|supports|needs|requires|only|still|is (?:written|built
    |deployed|hosted|licensed|generated|a monorepo|open|public|private)) | the (?:[\w-]+ ){{1,3}}(?:runs on
    |lives? (?:in|under|at|on)|is hosted|is deployed|is generated|are generated|is written in|is versioned
    |is called|is named
    |listens on|is read-only|has only|(?:still )?talks? to|belongs to|is stored in)
person: ^i(?:'m| am) (?:an? (?!bit|little|few|fan)|the (?!one|only|same)|(?:new to|responsible|in charge
    |not an?) ) | ^i(?:'m| am) on (?:an? )?(?:m\d|mac|macos|windows|linux|ubuntu|arch|fedora|debian|wsl)
    | ^i (?:work (?:as|for|in the|at)|speak|live in|report to|maintain|manage) | ^call me [A-Z]
    | ^i've been (?:writing|using|doing) .* (?:years|months) | ^my (?:name|time ?zone|role|team|pronouns|job
    |background) (?:is|are) | ^(?!this|that|it|he|she|they|which|who)\w+\.? (?:[\w.]+ ){{0,3}}(?:owns
    |maintains|signs off on|is responsible for|is in charge of|is the owner of) (?!that|this|it\b)
decided: (?:we|the team)(?:'ve| have)? (?:all )?(?:decided|agreed on|settled on|chose|standardi[sz]ed
    |went with|picked|opted for|ruled out) | we're moving (?:off|from|to) | we (?:moved|switched
    |migrated) (?:to|from|off) | we(?:'re)? stick(?:ing)? (?:with|to) | decision(?=:)
wrong: no | nope | wrong(?: \w+)? | that(?:'s| is) (?:wrong|not right) | not quite | actually | incorrect
    | not the [\w ]+
contrast: (?:, |- |is |was )not | instead of | rather than | here\W*$ | any ?more
found: (?:is|are|lives?|live|goes?|tracked|kept|stored|documented|generated) (?:at|in|on|under|into|to)
    | you can find
limited: in (?:the|this|our) (?:story|novel|game|essay|chapter|poem|scene|demo) | for now | right now
    | at the moment | currently | temporarily | for the time being | (?<!from )today
    | tonight | (?<!from )(?<!we )now(?! on) | tomorrow
    | (?:to|in|of|from|for|on|at) that (?!case\b|{_LASTING}\b)\w+
    | this (?!{_LASTING}\b|is\b|to\b|:)[\w/]+ | this one
    | these | those | just once | (?:just|only) here | yet | meanwhile | in the meantime | afterwards
    | once you're | (?:until|till) (?:i|we|you|it|they|he|she|then|tomorrow|next|further|this|that|\w+day
    |the (?:demo|release|meeting|end|call|deploy|fix|merge)|\w+ (?:is|are|comes?) back) | while (?:i|we|you
    |i'm|we're|you're|it's|debugging|testing) | as long as (?:i|we|you) | for the (?:next|rest of|demo
    |release|hotfix|experiment) | during the (?:demo|migration|incident|freeze|outage|call|meeting|release
    |test|move|upgrade) | next (?:week|sprint|hour|few) | for a (?:sec|second|minute|moment|while|bit|day
    |week) | on the phone | the (?:first|second|third|last|other|left|right|top|bottom) one
    | when you're done | i(?:'m| am) (?:in|at) a | (?:fix|change|replace|update|remove|try|revert|undo
    |start with|go with) (?:it|that|them) | (?:until|till) (?:lunch|noon|evening|morning|eod|eow|midnight)
    | you(?:'re| are) on | yesterday
task: (?:please )?(?:fix|replace|start|add|change|remove|rename|try|go ahead|update|make|show|check|look|find
    |put|move|implement|create|delete|commit(?! messages?)|push|revert|adjust|set|call|use|take|keep|give
    |do it|redo|rerun
    |run|switch|merge|assign|quick fix|cut|drop)
open: \?\W*$ | ^(?:wait,? )?(?:what|why|how|where|which|who|whose)\b | ^when (?:do|does|did|will|is|are|can)
    | ^(?:wait,? )?(?:is|are|do|does|did|can|could|would|should|will|shall|have|has) (?:i|we|you|it|they|the
    |there|our|this|that|these)\b | wondering | not sure | do you (?:remember|know) | (?:don't|do not|doesn't
    |needn't|not) (?:\w+ )?(?:always|have to|need to) | no need | not like | no rule | didn't say
    | don't worry | don't (?:really )?(?:care|mind|have a preference) | no preference
unsaid: maybe | perhaps | probably | presumably | might | could | suppose | imagine | assum(?:e|ing)
    | let's say | what if | consider | i guess | i think | would(?! rather) | it'd | one day | some ?day
    | thinking | hopefully | it depends | i meant? | may
    | (?!you say\b)\w+ (?:says?|said|thinks?|claims?|claimed|told
    |believes?|insists?|suggests?|suggested|recommends?|complains?|wants|wanted) | according to | apparently
    | supposedly | i (?:heard|read|found|saw) | ^they | (?:some|most|other) people | over there | comment by
    | from (?:slack|the chat|the mail|the docs) | (?:write|draft|document|translate|rephrase|proofread|reword
    |summari[sz]e|print|render|display)(?=:)
    | (?<!never )(?<!always )(?<!don't )(?:write|draft|document|translate
    |rephrase|print|render|display) (?:an?|the|that|this|to|it|into|release|down)
    | (?<!never )(?<!always )(?<!don't )(?:add|put|create|insert) (?:(?:an?|the
    |some) )?(?:\w+ )?(?:comment|note|test|rule|slide|section|line|label|banner|check|paragraph|sentence
    |warning) | (?:commit message|subject|title|label|text|string|caption|heading|wording) (?:should|must|is
    |to|from) | how do (?:you|i) say | (?:mail|message|note|comment) to | says? (?:that|we)
    | make sure (?:the|that|it)
""",
    "de": r"""
lead: bitte | und | also | auch | aber | ok | ja | nein | übrigens | zur info | wichtig | hinweis | regel
    | danke | hier | in diesem (?:projekt|repo) | generell | denn
remember: merke? dir | denke? (?:bitte )?(?:daran|dran) | vergiss nicht(?! zu) | beachte | zur erinnerung
    | behalte im kopf | notiere? dir
onward: ab jetzt | ab sofort | ab heute | von (?:jetzt|nun) an | in zukunft | zukünftig | künftig | fortan
    | grundsätzlich | jedes mal,? wenn du | auf keinen fall | zur (?:gewohnheit|regel)
here: (?:in|bei) (?:diesem|unserem) (?:\w*projekt|repo|repository|team|code) (?:werden|wird|sind|ist
    |liegen|liegt
    |gehören|gehört|heißen|heißt|gelten|gilt:?|haben|hat|laufen|läuft|stehen|steht|kommen|kommt|beginnen
    |beginnt) (?!es|das|da|eine?|ein)
always: immer | niemals | nie | stets
we: wir
other: ich | er | sie | es | das | der | die | den | dem | ein | eine | dass | wenn | was | welche\w* | man
    | ihr
state: ist | sind | war | waren | hat | habe | hatte | noch | wieder | der | das | ein | gesehen | fehlt
    | geht
status: fertig | kaputt | rot | grün | durch | down | langsam | wieder | weg | fehlt | fehlen | problem
prefer: ich (?:bevorzuge|mag|hasse|will,? dass du|möchte,? dass du) | (?:ist|sind|wäre) mir lieber
    | mir (?:ist|sind|wäre) .* lieber | ich hätte lieber | wir bevorzugen | ich habe? (?:es )?lieber
fact: wir (?:benutzen|nutzen|verwenden|nehmen|deployen|unterstützen|schreiben|hosten|releasen|arbeiten mit)
    | unsere?[mnrs]? | alle .* (?:sind|müssen|liegen|kommen) | (?:[\w-]+ ){1,5}(?:läuft|laufen) (?:auf|in
    |unter) | bei uns (?:heißt|heißen|gilt|gibt) | (?:benutzen|nutzen|verwenden|nehmen|schreiben
    |deployen) wir
person: ist (?:für .* )?(?:zuständig|verantwortlich) | ich bin (?:\w+ )?(?:\w*entwickler\w*|\w*scientist
    |\w+in\b|backend|frontend|neu) | ich arbeite (?:als|bei|im) | mein name ist | ich heiße
decided: wir haben (?:uns )?.*(?:entschieden|beschlossen|geeinigt) | entscheidung(?=:) | wir bleiben bei
wrong: nein | falsch | das stimmt nicht | stimmt nicht | nö | das ist falsch | quatsch | bei uns nicht
contrast: nicht | statt | anstatt | sondern
found: (?:liegt|liegen|ist|steht|stehen|findest du) (?:unter|in|im|auf|bei)
limited: (?:nimm|benutze?|verwende?|setze?|mache?) (?:das |es )?hier | gerade | (?<!ab )jetzt(?! an)
    | (?<!ab )heute | morgen | vorerst | momentan | im moment | zurzeit
    | derzeit | einstweilen | diese[mnrs]? (?!projekt|repo|repository|team|maschine|server|codebase)\w+
    | solange | bis (?:ich|wir|du|er|sie|morgen|montag|freitag|zum) | erst ?mal | nur kurz | diesmal
    | ausnahmsweise | nur einmal | fürs erste | während (?:wir|ich|du|der (?:demo|migration|umstellung)|des)
task: (?:bitte )?(?:fix\w*|ändere?|nimm|nenne?|mache?|benutze?|setze?|füge?|repariere?|schaue?|entferne?
    |starte?)
open: \?\W*$ | ^(?:warum|wieso|weshalb|wie|was|wer|wo|wann|welche\w*|woher)\b | ^(?:soll|sollen|kann|können
    |ist|sind|hat|haben|muss|müssen|darf|benutzen|nutzen) (?:ich|wir|du|man|das|es|die|der) | nicht immer
    | musst (?:du )?nicht | brauchst (?:du )?nicht | es kommt drauf an | nicht jedes mal | egal
unsaid: vielleicht | wenn wir | falls | angenommen | stell dir vor | könnten? | würden? | wäre(?! mir)
    | nähmen | eventuell | vermutlich | ich glaube | ich denke | möglicherweise | sagt | sagte | meint
    | meinte | behauptet | angeblich | findet,? dass | will,? dass wir | steht | ^laut | laut (?:doku\w*
    |readme|ihm|ihr|chef\w*|team) | (?:schreibe?|übersetze?|formuliere|dokumentiere|füge?) (?!wir
    |nie(?! ge)|niemals|immer|stets)
    | sorge? dafür | stelle? sicher,? dass die | ins englische | ins deutsche | kommentar(?=:)
""",
    "es": r"""
lead: por favor | y | también | pero | ok | sí | no | vale | oye | importante | nota | regla | gracias
    | perfecto | aquí | en este (?:proyecto|repo|repositorio) | por cierto | además | jaja
remember: recuerda | recuerde | acuérdate(?: de)? | ten (?:en cuenta|presente) | no olvides(?! \w+r\b)
    | toma nota | anota | guarda en (?:la )?memoria
onward: a partir de (?:ahora|hoy) | de ahora en adelante | desde ahora | en (?:el futuro|adelante)
    | por regla general | cada vez que | bajo ninguna circunstancia | como norma | acostúmbrate a
here: en (?:este|nuestro) (?:proyecto|repo|repositorio|equipo),? (?:\w+ ){1,4}(?:son|es|están|está|van|va
    |viven|vive
    |se (?:guardan?|escriben?|ponen?|usan?|llaman?)|llevan?|empiezan?|tienen?|quedan?)
always: siempre | nunca | jamás
we: nosotros | \w+[aei]mos
other: yo | él | ella | ellos | el | la | los | las | un | una | que | si | esto | eso | lo | me | se | es
    | mi
state: es | son | está | están | era | fue | hay | había | he | ha | se | me | visto | falla | funciona
    | termina
status: list[oa]s? | rot[oa]s? | caíd[oa] | falla | fallan | pasan | lent[oa] | otra vez | de nuevo
    | problema | queja\w* | roto
prefer: prefiero | preferimos | me gustan? | no me gustan? | odio | quiero que | mi editor es | detesto
fact: usamos | utilizamos | desplegamos | publicamos | soportamos | escribimos | nuestr[oa]s?
    | trabajamos con | (?:[\w-]+ ){1,6}(?:corre|corren|se ejecuta) en
person: es (?:la|el) responsable | es responsable | se encarga de | soy (?:\w+ )?(?:desarrollador\w*
    |ingenier\w*|científic\w*|nuev\w*|diseñador\w*|el|la) | trabajo (?:como|en) | me llamo | mi nombre es
decided: (?:hemos )?decidi(?:mos|do) | acordamos | decisión(?=:) | optamos por | nos quedamos con
wrong: no | eso está mal | está mal | incorrecto | falso | te equivocas
contrast: , no | y no | en (?:vez|lugar) de | sino
found: (?:está|están|vive|se encuentra) en
limited: ahora mismo | por ahora | de momento | por el momento | (?<!partir de )hoy | mañana | actualmente
    | temporalmente | est[ea]s? (?!proyecto|repo|repositorio|equipo|servidor|máquina)\w+ | mientras
    | hasta (?:que|mañana|el) | solo (?:por )?(?:hoy|esta) | esta vez | durante (?:la demo|la migración|esta
    |este|la prueba)
task: (?:arregl\w+|cambia|usa|llám\w+|llama|pon|haz|mira|míralo|quita|agrega|empieza)
open: [?¿] | ^(?:por qué|cómo|qué|quién|dónde|cuándo|cuál|cuáles)\b | no siempre | no hace falta
    | no tienes que | no es necesario | depende | da igual
unsaid: quizás? | tal vez | a lo mejor | ^si | supongamos | imagina | podríamos | sería | deberíamos
    | creo que | usáramos | pienso que | dice | dicen | dijo | piensa | cree | quiere que | supuestamente
    | al parecer | ^según | según (?:la doc\w*|el readme|él|ella|ellos) | traduce | traduzca | escribe
    | redacta | documenta | haz que | asegúrate de que (?:el|la) | al inglés | agrega
    | añade(?! (?:siempre|nunca))
""",
    "fr": r"""
lead: et | aussi | mais | ok | oui | non | s'il te plaît | svp | stp | merci | parfait | important | règle
    | note | ici | au fait | dans ce (?:projet|dépôt|repo) | en général | haha
remember: souviens-toi | rappelle-toi | retiens(?: bien)? | n'oublie pas(?! de) | note bien | note(?= que|:)
    | garde (?:en tête|à l'esprit) | sache
onward: à partir de maintenant | désormais | dorénavant | à l'avenir | en règle générale | chaque fois que tu
    | en aucun cas | à partir d'aujourd'hui | l'habitude de
here: (?:dans|sur) (?:ce|notre) (?:projet|dépôt|repo),? (?:[\w'-]+ ){1,4}(?:sont|est|vont|va|vivent|restent
    |se trouvent?|commencent|commence|portent|porte|s'écrivent|s'appellent|ont|passent|passe)
always: toujours | jamais | systématiquement
we: nous | on
other: je | j | il | elle | ils | c | ça | ce | cela | le | la | les | l | un | une | que | qu | si | ta
    | mon
state: est | sont | était | a | ai | vu | le | la | un | marche | oublie | finit
status: fini[es]? | cassé\w* | plante | passent | lent\w* | encore | à nouveau | problème | prêt\w*
prefer: je préfère | j'aime | je n'aime pas | je déteste | nous préférons | on préfère | je veux que tu
    | j'aimerais que tu | mon éditeur est
fact: (?:nous|on) (?:utilisons|utilise|déployons|déploie|publions|écrivons|écrit|supportons|supporte) | notre
    | nos | (?:[\w-]+ ){1,6}(?:tourne|tournent) sur | chez nous
person: est (?:la |le )?responsable | s'occupe d[eu] | je suis (?:\w+ )?(?:développeu\w*|ingénieur\w*|data
    |designer|nouveau|nouvelle|chef|l\w*) | je travaille (?:comme|chez|dans) | je m'appelle
decided: (?:on a|nous avons) (?:décidé|choisi|convenu) | décision(?= ?:) | on reste (?:sur|avec)
wrong: non | c'est faux | faux | pas du tout | incorrect
contrast: pas | au lieu d | plutôt que | et non
found: (?:se trouve|est|sont|se trouvent) (?:sur|à|dans|sous)
limited: en ce moment | pour l'instant | pour le moment | (?<!partir d')aujourd'hui | demain
    | maintenant(?<!de maintenant) | actuellement | temporairement | ce(?:t|tte|s)? (?!projet|dépôt|repo
    |équipe|serveur|machine|n'est|qui|que)\w+ | tant que | jusqu'à | juste pour | provisoirement
    | le temps de | pendant (?:que|la démo|la migration|ce|cette|qu)
task: (?:corrige|change|utilise|appelle\S*|mets|fais|regarde|enlève|ajoute|commence)
open: \?\W*$ | ^(?:pourquoi|comment|quel\w*|combien|qui|où|quand|est-ce)\b | est-ce que | pas toujours
    | pas obligé | pas besoin | pas la peine | ça dépend | peu importe
unsaid: peut-être | ^si | supposons | imagine | pourrait | pourrions | serait | devrait | utilisait
    | je pense | je crois | éventuellement | disent | selon | pense que | veut qu | prétend | paraît
    | apparemment | (?<!on )dit | ^d'après | d'après (?:la doc\w*|le readme|lui|elle|eux) | traduis
    | traduire | écris | rédige | documente | fais en sorte | assure-toi que l | en anglais(?= :) | reformule
    | ajoute(?! (?:jamais|toujours))
""",
    "pt": r"""
lead: por favor | e | também | mas | ok | sim | não | importante | nota | regra | valeu | obrigad[oa] | aqui
    | ficou ótimo | neste (?:projeto|repo|repositório) | aliás | haha
remember: lembre(?:-se)?(?: de)? | lembra(?:-te)? | tenha em mente | não (?:se )?esqueça(?! de \w+r\b)
    | anote | anota | guarde na memória | tenha em conta
onward: a partir de agora | daqui (?:pra|para|para a) frente | de agora em diante | no futuro | via de regra
    | toda vez que você | em hipótese alguma | futuramente | doravante | a partir de hoje | o hábito de
here: n(?:este|esse|o nosso) (?:projeto|repo|repositório|time),? (?:\w+ ){1,4}(?:são|é|estão|está|ficam?
    |vão|vai
    |começam?|moram?|têm|tem|usam?)
always: sempre | nunca | jamais
we: nós | a gente | \w+[aei]mos
other: eu | ele | ela | eles | o | a | os | as | um | uma | que | se | isso | me | é | minha | meu | esse
state: é | são | está | era | foi | há | tem | tinha | vi | visto | falha | funciona | esqueço | termina
    | deu
status: pront[oa]s? | quebrad[oa]s? | caiu | falha\w* | passaram | lent[oa] | de novo | problema | quebr\w+
    | deu
prefer: prefiro | preferimos | gosto | não gosto | odeio | quero que você | meu editor é | detesto
fact: a gente usa | (?:nós )?(?:usamos|utilizamos|publicamos|suportamos|escrevemos|fazemos deploy)
    | a gente faz deploy | noss[oa]s? | (?:[\w-]+ ){1,6}(?:roda|rodam) (?:no|na|em|nos|nas)
person: é (?:a |o )?responsável | cuida d[aeo] | sou (?:\w+ )?(?:desenvolvedor\w*|engenheir\w*|cientista|novo
    |nova|designer|o|a) | trabalho (?:como|no|na|em) | meu nome é | me chamo
decided: decidimos | optamos por | combinamos | decisão(?=:) | ficamos com
wrong: não | está errado | errado | isso está errado | incorreto
contrast: , não | e não | em vez d | ao invés d | mas sim
found: (?:fica|ficam|está|estão|se encontra) (?:em|no|na)
limited: agora mesmo | por enquanto | no momento | (?<!partir de )hoje | amanhã | atualmente
    | temporariamente | enquanto | (?:n?d?est[ea]s?|n?d?ess[ea]s?) (?!projeto|repo|repositório|equipe
    |servidor|máquina)\w+ | até (?:que|amanhã|eu|a gente) | só (?:por )?(?:hoje|desta|dessa|agora)
    | (?<!de )agora | durante (?:a demo|a migração|est[ae])
task: (?:arruma|conserta|muda|usa|use|chama|põe|faz|olha|tira|adiciona|começa)
open: \?\W*$ | ^(?:por que|como|o que|qual|quais|quem|onde|quando)\b | nem sempre | não precisa
    | não precisam | não é necessário | depende | tanto faz
unsaid: talvez | ^se | suponha | imagine | poderíamos | seria | deveríamos | devêssemos | usasse | acho que
    | penso | diz | dizem | disse | acha que | quer que | aparentemente | supostamente | ^segundo
    | segundo (?:a doc\w*|o readme|ele|ela) | traduz\w* | escrev[ae] (?:no|na|um|uma) | redij\w* | documente
    | faz a | garanta que [ao] | para o inglês | adicion\w+
""",
    "it": r"""
lead: per favore | e | anche | ma | ok | sì | no | importante | nota | regola | grazie | perfetto | qui
    | in questo (?:progetto|repo|repository) | comunque | ahah | tra l'altro
remember: ricorda(?:ti)?(?! di) | tieni (?:presente|a mente|conto) | non dimenticare che | prendi nota
    | annota | memorizza
onward: d'ora in (?:poi|avanti) | da (?:ora|adesso|oggi) in (?:poi|avanti) | in futuro | di norma
    | ogni volta che | in nessun caso | da oggi | l'abitudine di
here: (?:in questo|nel nostro) (?:progetto|repo|repository|team),? (?:[\w']+ ){1,4}(?:sono|è|vanno|va
    |stanno|sta
    |si (?:trovano?|scrivono|chiamano)|iniziano|hanno|usano)
always: sempre | mai
we: noi | \w+iamo
other: io | lui | lei | loro | il | lo | la | i | gli | le | un | una | che | se | questo | mi | è | c | mia
    | mio
state: è | sono | era | ho | ha | hai | visto | il | la | un | finisce | funziona | stato
status: finit[oaie] | rott[oaie] | passano | fallisc\w+ | lent[oaie] | di nuovo | ancora | problema
    | pront[oaie] | rotta
prefer: preferisco | preferiamo | mi piac(?:e|ciono) | non mi piac(?:e|ciono) | odio | voglio che tu
    | vorrei che tu | il mio editor è | detesto
fact: usiamo | utilizziamo | facciamo il deploy | rilasciamo | supportiamo | scriviamo
    | (?:la |il )?nostr[oaie] | (?:[\w-]+ ){1,6}(?:gira|girano) (?:su|sulla|sul) | da noi
person: è (?:la |il )?responsabile | si occupa d | sono (?:uno? |un'|una )?(?:sviluppat\w*|ingegner\w*|data
    |designer|nuov\w*|l\w*) | lavoro (?:come|in|per) | mi chiamo | il mio nome è
decided: abbiamo (?:deciso|scelto|concordato) | decisione(?=:) | restiamo (?:su|con)
wrong: no | è sbagliato | sbagliato | non è vero | falso
contrast: , non | e non | invece d | anziché
found: (?:si trova|si trovano|sta|stanno|è) (?:su|in|nel|nella|sotto)
limited: in questo momento | per ora | al momento | (?<!da )oggi | domani | attualmente | temporaneamente
    | adesso | mentre | quest[oaie] (?!progetto|repo|repository|team|server|macchina|è)\w+ | finché | fino a
    | solo per | stavolta | durante (?:la demo|la migrazione|quest\w+)
task: (?:sistema\w*|correggi|cambia|usa|chiama\w*|metti|fai|guarda|togli|aggiungi|inizia)
open: \?\W*$ | ^(?:perché|come|cosa|che cosa|quale|quali|chi|dove|quando)\b | non .*sempre | non serve
    | non c'è bisogno | non è necessario | dipende | non importa
unsaid: forse | magari | ^se | supponiamo | immagina | potremmo | sarebbe | dovremmo | usassimo | penso che
    | credo che | dice | dicono | ha detto | pensa che | vuole che | a quanto pare | sostiene | ^secondo
    | secondo (?:la doc\w*|il readme|lui|lei|loro) | traduci | scrivi | documenta | redigi | fai in modo
    | assicurati che (?:il|la) | in inglese(?=:) | aggiungi(?! (?:sempre|mai))
""",
    "nl": r"""
lead: alsjeblieft | graag | en | ook | maar | ok | oké | ja | nee | belangrijk | let op | regel | bedankt
    | hier | in (?:dit|deze) (?:project|repo) | trouwens | haha | over het algemeen
remember: onthoud | denk eraan | vergeet niet(?! te) | houd er rekening mee | noteer | hou er rekening mee
onward: (?:vraag|zeg|meld|laat) (?:het )?(?:me|mij|ons) (?:altijd|eerst|nooit) | vanaf (?:nu|vandaag)
    | voortaan | in het vervolg | in de toekomst | in principe | elke keer als je
    | onder geen beding | een gewoonte van
here: in (?:dit|ons) (?:project|repo|team) (?:worden|wordt|zijn|is|staan|staat|gaan|gaat|horen|hoort|heeft
    |hebben|liggen
    |ligt|beginnen|begint|heten|heet|komen|komt|draaien|draait) (?!het|dat|er)
always: altijd | nooit | steeds
we: we | wij
other: ik | hij | zij | ze | het | de | een | dat | die | dit | als | wat | dan | er | mijn
state: is | was | zijn | heb | heeft | had | nog | de | het | een | gezien | weer | klaar | werkt
status: klaar | kapot | rood | groen | traag | weer | probleem | faalt | stuk
prefer: ik heb (?:het )?liever | ik hou van | ik hou niet van | ik haat | we hebben liever
    | ik wil (?:graag )?dat je | ik geef de voorkeur | mijn editor is
fact: (?:we|wij) (?:gebruiken|deployen|ondersteunen|schrijven|hosten|werken met) | onze | ons
    | (?:[\w-]+ ){1,5}(?:draait|draaien) op | bij ons | (?:gebruiken|deployen|schrijven) (?:we|wij)
person: is (?:\w+ )?verantwoordelijk | gaat over | ik ben (?:\w+[- ])?(?:\w*ontwikkelaar|\w*engineer|data
    |designer|nieuw|de|een) | ik werk (?:als|bij|in) | mijn naam is | ik heet
decided: (?:we|wij) hebben (?:besloten|gekozen|afgesproken) | besluit(?=:) | we blijven bij
wrong: nee | dat klopt niet | fout | klopt niet | onjuist
contrast: niet | geen | in plaats van | maar
found: (?:staat|staan|is|ligt) (?:op|in|onder)
limited: nu even | (?<!vanaf )nu | voorlopig | op dit moment | (?<!vanaf )vandaag | morgen | momenteel
    | tijdelijk | zolang | (?:deze|dit) (?!project|repo|repository|team|server|machine|is)\w+ | totdat
    | tot (?:ik|morgen|we) | terwijl | alleen deze | eventjes | tijdens de (?:demo|migratie|test)
task: (?:fix|verander|gebruik|noem|zet|maak|kijk|haal|voeg|begin|neem)
open: \?\W*$ | ^(?:waarom|hoe|wat|wie|waar|wanneer|welke|welk)\b | ^(?:gebruiken|moeten|kunnen|zullen|hebben
    |zijn) (?:we|wij|je) | niet altijd | hoeft niet | hoef je niet | het hangt ervan af | maakt niet uit
    | niet elke keer
unsaid: misschien | als we | stel dat | stel je voor | zouden? | zou | wellicht | ik denk | ik geloof
    | gebruikten | zegt | zeggen | zei | vindt dat | wil dat we | blijkbaar | beweert | ^volgens
    | volgens (?:de doc\w*|hem|haar|de readme) | vertaal | schrijf | documenteer | zorg dat | zorg ervoor
    | naar het engels | voeg(?! (?:nooit|altijd))
""",
    "pl": r"""
lead: proszę | i | też | ale | ok | tak | nie | ważne | uwaga | zasada | dzięki | tutaj | u nas
    | w tym (?:projekcie|repo) | a propos | haha | swoją drogą
remember: pamiętaj(?! żeby) | zapamiętaj | zanotuj | miej na uwadze | nie zapomnij(?! \w+ć)
    | zapisz w pamięci
onward: od teraz | od tej pory | od dziś | w przyszłości | z reguły | na przyszłość
    | za każdym razem,? (?:gdy|kiedy) | pod żadnym pozorem | w nawyk
here: w (?:tym|naszym) (?:projekcie|repo|repozytorium|zespole),? (?:\w+ ){1,4}(?:są|jest|trafiają|trafia
    |leżą|leży
    |zaczynają się|mają|ma)
always: zawsze | nigdy
we: my | \w+(?:amy|emy|imy|ymy)
other: ja | on | ona | to | żeby | który | która | jeśli | co | ten | ta | mi | że
state: jest | są | był\w* | \w+(?:łem|łam) | wcześniej | \w+(?:uję|am|em|ę) | się | znowu | działa
status: skończon\w+ | zepsut\w+ | przechodzą | gotow\w+ | znowu | problem | nie działa | padł\w*
prefer: wolę | wolimy | preferuję | preferujemy | lubię | nie lubię | nienawidzę | chcę,? żebyś
    | mój edytor to
fact: używamy | stosujemy | wdrażamy | wspieramy | piszemy | hostujemy | nasz\w* | (?:[\w-]+ ){1,5}(?:działa
    |działają) na
person: odpowiada za | jest odpowiedzialn\w+ | zajmuje się | jestem (?:\w+ )?(?:programist\w+|inżynier\w*
    |analityk\w*|now\w+) | pracuję (?:jako|w) | mam na imię | nazywam się
decided: zdecydowaliśmy | postanowiliśmy | wybraliśmy | ustaliliśmy | decyzja(?=:) | zostajemy przy
wrong: nie | to nieprawda | nieprawda | źle | błąd
contrast: a nie | , nie | zamiast | tylko nie
found: (?:jest|są|znajduje się|leży) (?:w|na|pod)
limited: teraz(?<!od teraz) | na razie | w tej chwili | dziś(?<!od dziś) | dzisiaj | jutro | obecnie
    | tymczasowo | t(?:ym|ej|en|ę|ego) (?!projekcie|repo|repozytorium|zespole|serwerze|porze|pory)\w+
    | dopóki | aż | póki | tylko raz | chwilowo | podczas (?:demo|migracji|gdy|tego|tej)
task: (?:napraw|zmień|użyj|nazwij|zrób|sprawdź|usuń|dodaj|zacznij|weź|popraw)
open: \?\W*$ | ^(?:dlaczego|czemu|jak|co|kto|gdzie|kiedy|który|która|czy)\b | nie zawsze | nie musisz
    | nie trzeba | to zależy | wszystko jedno | nie musimy
unsaid: może | gdyby\w* | załóżmy | wyobraź | chyba | pewnie | moglibyśmy | byłoby | powinniśmy | myślę,? że
    | mówi | mówią | powiedział\w* | uważa | twierdzi | chce,? żebyśmy | podobno | jest w readme | w readme
    | ^według | według (?:dokument\w*|niego|niej|readme) | przetłumacz | napisz | udokumentuj | zrób tak
    | upewnij się,? że | na angielski | dodaj
""",
    "ru": r"""
lead: пожалуйста | и | также | но | ок | да | нет | важно | заметка | правило | спасибо | здесь | тут
    | кстати | в этом (?:проекте|репозитории|репо) | у нас | ха-ха
remember: запомни(?:те)? | помни(?:те)? | имей(?:те)? в виду | не забывай(?:те)? | учти(?:те)? | запиши
onward: с этого момента | впредь | отныне | в дальнейшем | на будущее | как правило | каждый раз,? когда
    | с сегодняшнего дня | ни в коем случае | теперь всегда | в привычку
here: в (?:этом|нашем) (?:проекте|репозитории|репо|коде),? (?:все |кажд\w+ |люб\w+
    |(?:\w+ ){1,3}(?:хран\w+тся|лежат
    |лежит|пишутся|называются|находятся|находится|начинаются|идут|идёт|живут))
always: всегда | никогда
we: мы
other: я | он | она | они | это | чтобы | который | которая | если | что | мне | эта | этот | оно
state: это | был\w* | видел\w* | раньше | ещё | забываю | работает | падает | заканчивается | не видел\w*
    | (?:не )?\w+(?:тся|ает|яет|ит|ят|ют|ет)
status: готов\w* | сломал\w* | упал\w* | зелён\w+ | красн\w+ | снова | опять | проблем\w* | не работает
prefer: я предпочитаю | мы предпочитаем | мне нрав[ия]тся | мне не нрав[ия]тся | ненавижу | хочу,? чтобы ты
    | я люблю | мой редактор | предпочитаю
fact: мы (?:не )?(?:используем|деплоим|поддерживаем|пишем|выкатываем|храним|применяем) | наш\w*
    | (?:[\w-]+ ){1,5}работа(?:ет|ют) на | у нас (?:это )?называ\w+
person: отвечает за | ответственн\w+ за | занимается | я (?:[\w-]+ )?[\w-]*(?:разработчик|инженер|аналитик
    |тестировщик|дизайнер) | работаю (?:в|на|кем) | меня зовут
decided: мы (?:решили|выбрали|договорились|остановились) | решение(?=:) | мы остаёмся на
wrong: нет | неверно | неправильно | это не так | не так
contrast: а не | не | вместо
found: (?:лежит|лежат|находится|находятся|есть) (?:на|в|по|под)
limited: сейчас | пока | сегодня | завтра | временно | на данный момент | в данный момент | прямо сейчас
    | эт(?:от|ого|ой|ом|у|их) (?!проект\w*|репо\w*|команд\w*|сервер\w*|машин\w*|момента)\w+ | до завтра
    | на время | только раз | пока что
task: (?:почини|исправь|поменяй|используй|назови|сделай|посмотри|убери|добавь|начни|возьми)
open: \?\W*$ | ^(?:почему|зачем|как|что|кто|где|когда|какой|какая|какие|сколько)\b | ли | не всегда
    | не обязательно | не нужно | необязательно | не надо всегда | зависит | по-разному | всё равно
unsaid: может | возможно | наверное | если бы | допустим | предположим | представь | стоит ли | было бы
    | был бы | думаю | кажется | вероятно | говорит | говорят | сказал\w* | согласно | считает
    | хочет,? чтобы | якобы | по слухам | написано | переведи | напиши | задокументируй | сделай так
    | убедись,? что | на английский | добавь
""",
}
