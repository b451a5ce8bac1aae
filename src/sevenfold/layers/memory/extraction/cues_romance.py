"""The tables of `cues` for Spanish, French, Portuguese and Italian."""

from __future__ import annotations

ROMANCE_CUES = {
    "es": r"""
lead: por favor | y | también | pero | ok | sí | no | vale | oye | importante | nota | regla | gracias
    | perfecto | aquí | en este (?:proyecto|repo|repositorio) | por cierto | además
remember: recuerda | recuerde | acuérdate(?: de)? | ten (?:en cuenta|presente) | no olvides(?! \w+r\b)
    | toma nota | anota | guarda en (?:la )?memoria
onward: ^deja(?:d|en?)? de \w+r (?!el|la|los|las|es[eoa]|est[eoa]) | ^(?:no|basta de) más? .*(?:commits?|prs?
    |código|por favor) | desde hoy | [,.] (?:siempre|nunca)\W*$ | a partir de (?:ahora|hoy)
    | de ahora en adelante | desde ahora | en (?:el futuro|adelante) | no .* sin (?:preguntar\w*|consultar\w*
    |avisar\w*|mi permiso|permiso) | por regla general | cada vez que | bajo ninguna circunstancia
    | como norma | acostúmbrate a
here: ^(?:aquí|en este proyecto|en este repo),? no (?:hacemos|permitimos|se (?:usan?|hacen?|permiten?))
    | (?:para que lo sepas|que sepas que|para tu información|fyi)[,:]? (?!yo\b)(?:\S+ )+?(?:cada|todos
    |todas|siempre|nunca|solo)\b | en (?:este|nuestro) (?:proyecto|repo|repositorio
    |equipo),? (?:\w+ ){1,4}(?:son|es|están|está|van|va
    |viven|vive
    |se (?:guardan?|escriben?|ponen?|usan?|llaman?)|llevan?|empiezan?|tienen?|quedan?)
always: siempre
    | nunca | jamás
when: los? \w+[oe]s\W*$ | cuando | antes | después | tras | si | al | en | para
we: nosotros | \w+[aei]mos
other: ambos | ambas | dos | tres | yo | él | ella | ellos | el | la | los | las | un | una | que | si
    | esto | eso | lo | me | se | es
    | mi
state: te \w+as | \w+(?:ábamos|íamos) | es | son | está | están | era | fue | hay | había | he | ha | se | me
    | visto | falla | funciona | termina | \w{3,}[éí] | tenemos | preguntas | haces
status: list[oa]s? | rot[oa]s? | caíd[oa] | falla | fallan | pasan | lent[oa] | otra vez | de nuevo
    | problema | queja\w* | roto
prefer: prefiero | preferimos | me gustan? | no me gustan? | odio | quiero que | mi editor es | detesto
fact: usamos | (?:todo lo )?alojamos | utilizamos | desplegamos | publicamos | soportamos | escribimos
    | nuestr[oa]s? | trabajamos con | (?:[\w-]+ ){1,6}(?:corre|corren|se ejecuta) en
    | \w+[aei]mos .*cada (?:dos |segundo )?(?:lunes|martes|miércoles|jueves|viernes|semanas?|sprint|mes)
person: es (?:la|el) responsable | es responsable | se encarga de | soy (?:\w+ )?(?:desarrollador\w*
    |ingenier\w*|científic\w*|nuev\w*|diseñador\w*|el|la) | trabajo (?:como|en) | me llamo | mi nombre es
decided: (?:hemos )?decidi(?:mos|do) | acordamos | decisión(?=:) | optamos por | nos quedamos con
wrong: no | eso está mal | está mal | incorrecto | falso | te equivocas
contrast: , no | y no | en (?:vez|lugar) de | sino
found: (?:corren?|está|están|vive|se encuentra) en
limited: ahora mismo | por ahora | de momento | por el momento | (?<!partir de )(?<!desde )hoy | mañana
    | actualmente | temporalmente | est[ea]s? (?!proyecto|repo|repositorio|equipo|servidor|máquina)\w+
    | mientras | hasta (?:que|mañana|el) | solo (?:por )?(?:hoy|esta) | esta vez | durante (?:la demo
    |la migración|esta|este|la prueba) | es[ea]s? \w+
task: (?:arregl\w+|cambia|usa|llám\w+|llama|pon|haz|mira|míralo|quita|agrega|empieza)
open: [?¿] | ^(?:por qué|cómo|qué|quién|dónde|cuándo|cuál|cuáles)\b | no siempre | no hace falta
    | no tienes que | no es necesario | depende | da igual
unsaid: quizás? | tal vez | a lo mejor | ^si | supongamos | imagina | podríamos | sería | deberíamos
    | creo que | usáramos | pienso que | dice | dicen | dijo | piensa | cree | quiere que | supuestamente
    | al parecer | ^según | según (?:la doc\w*|el readme|él|ella|ellos) | haz que | asegúrate de que (?:el
    |la) | al inglés
made: traduce | traduzca | escribe | redacta | documenta | agrega | añade
""",
    "fr": r"""
lead: et | aussi | mais | ok | oui | non | s'il te plaît | svp | stp | merci | parfait | important | règle
    | note | ici | au fait | dans ce (?:projet|dépôt|repo) | en général
remember: souviens-toi | rappelle-toi | retiens(?: bien)? | n'oublie pas(?! de) | note bien | note(?= que|:)
    | garde (?:en tête|à l'esprit) | sache
onward: ^arrête[zr]? d(?:e |')\w+re? (?!l[ae]s? |ç|c) | ^plus d(?:e |').*(?:commits?|pr|code|s'il te plaît
    |stp|svp) | [,.] (?:toujours|jamais)\W*$ | à partir de maintenant | désormais | dorénavant | n(?:e
    |')\b.* sans (?:m'|me |mon|nous|notre|ma) | à l'avenir | en règle générale | chaque fois que tu
    | en aucun cas | à partir d'aujourd'hui | l'habitude de
here: (?:pour info(?:rmation)?|pour ton info(?:rmation)?|sache que|fyi)[,:]? (?!je\b|j\b|il\b|elle\b)
    (?:\S+ )+?(?:chaque|tous|toutes|toujours|jamais|seulement)\b | (?:dans|sur) (?:ce|notre) (?:projet|dépôt
    |repo),? (?:[\w'-]+ ){1,4}(?:sont|est|vont|va|vivent|restent
    |se trouvent?|commencent|commence|portent|porte|s'écrivent|s'appellent|ont|passent|passe)
always: toujours | jamais | systématiquement
when: quand | lorsque | avant | après | si | pour | dans | en
we: nous | on
other: tu(?! dois| devrais) | vous(?! devez) | je | j | il | elle | ils | c | ça | ce | cela | le | la | les
    | l | un | une | que | qu | si | ta | mon | ^(?!ne\b|n'|on\b|nous\b)\S+ (?:ne\b|n')
same: le | la | un
state: est | sont | était | a | ai | vu | marche | oublie | finit
status: fini[es]? | cassé\w* | plante | passent | lent\w* | encore | à nouveau | problème | prêt\w*
prefer: je préfère | j'aime | je n'aime pas | je déteste | nous préférons | on préfère | je veux que tu
    | j'aimerais que tu | mon éditeur est
fact: on héberge | on n(?:e |')(?:fait|utilise|pousse|merge|déploie) | (?:nous|on) (?:utilisons|utilise
    |déployons|déploie|publions|écrivons|écrit|supportons|supporte) | notre | nos | (?:[\w-]+ ){1,6}(?:tourne
    |tournent) sur | chez nous | (?:on|nous) \w+ .*(?:tous les|chaque) (?:lundi|mardi|mercredi|jeudi|vendredi
    |semaine|sprint|mois)s?
person: est (?:la |le )?responsable | s'occupe d[eu] | je suis (?:\w+ )?(?:développeu\w*|ingénieur\w*|data
    |designer|nouveau|nouvelle|chef|l\w*) | je travaille (?:comme|chez|dans) | je m'appelle
decided: (?:on a|nous avons) (?:décidé|choisi|convenu) | décision(?= ?:) | on reste (?:sur|avec)
wrong: non | c'est faux | faux | pas du tout | incorrect
contrast: pas | au lieu d | plutôt que | et non
found: (?:tourne|se trouve|est|sont|se trouvent) (?:sur|à|dans|sous|en)
limited: en ce moment | pour l'instant | pour le moment | (?<!partir d')aujourd'hui | demain
    | maintenant(?<!de maintenant) | actuellement | temporairement | ce(?:t|tte|s)? (?!projet|dépôt|repo
    |équipe|serveur|machine|n'est|qui|que)\w+ | tant que | jusqu'à | juste pour | provisoirement
    | le temps de | pendant (?:que|la démo|la migration|ce|cette|qu)
task: (?:corrige|change|utilise|appelle\S*|mets|fais|regarde|enlève|ajoute|commence)
open: \?\W*$ | ^(?:pourquoi|comment|quel\w*|combien|qui|où|quand|est-ce)\b | est-ce que | pas toujours
    | pas obligé | pas besoin | pas la peine | ça dépend | peu importe
unsaid: peut-être | ^si | supposons | imagine | pourrait | pourrions | serait | devrait | utilisait
    | je pense | je crois | éventuellement | disent | selon | pense que | veut qu | prétend | paraît
    | apparemment | (?<!on )dit | ^d'après | d'après (?:la doc\w*|le readme|lui|elle|eux) | fais en sorte
    | assure-toi que l | en anglais(?= :)
made: traduis | traduire | écris | rédige | documente | reformule | ajoute
""",
    "pt": r"""
lead: por favor | e | também | mas | ok | sim | não | importante | nota | regra | valeu | obrigad[oa] | aqui
    | ficou ótimo | neste (?:projeto|repo|repositório) | aliás
remember: lembre(?:-se)?(?: de)? | lembra(?:-te)? | tenha em mente | não (?:se )?esqueça(?! de \w+r\b)
    | anote | anota | guarde na memória | tenha em conta
onward: ^par[ea]m? de \w+r (?!o|a|os|as|isso|esse) | ^(?:chega de|sem mais) .*(?:commits?|prs?|código
    |por favor) | de hoje em diante | [,.] (?:sempre|nunca)\W*$ | a partir de agora | daqui (?:pra|para
    |para a) frente | de agora em diante | daqui em diante | no futuro | via de regra
    | não .* sem (?:me |nos |perguntar|falar com|minha|pedir|consultar|avisar) | toda vez que você
    | em hipótese alguma | futuramente | doravante | a partir de hoje | o hábito de
here: ^(?:aqui|neste projeto|neste repo),? (?:a gente )?não (?:fazemos|permitimos|usamos|se (?:usa|faz
    |permite)|usa|faz) | (?:só )?(?:para|pra) (?:você )?(?:saber|sua informação)[,:]? (?!eu\b|ele\b
    |ela\b)(?:\S+ )+?(?:todo|toda|todos|todas|cada|sempre|nunca|só)\b | n(?:este|esse|o nosso) (?:projeto
    |repo|repositório|time),? (?:\w+ ){1,4}(?:são|é|estão|está|ficam?|vão|vai|começam?|moram?|têm|tem|usam?)
always: sempre
    | nunca | jamais
when: quando | antes | depois | se | ao | em | para
we: nós | a gente | \w+[aei]mos
other: você(?! deve| tem) | vocês | ambos | ambas | dois | duas | três | eu | ele | ela | eles | o | a | os
    | as | um | uma | que | se | isso | me | é | minha | meu | esse
state: \w+(?:ávamos|íamos) | é | são | está | era | foi | há | tem | tinha | vi | visto | falha | funciona
    | esqueço | termina | deu | consegui | \w{3,}ei | temos
status: pront[oa]s? | quebrad[oa]s? | caiu | falha\w* | passaram | lent[oa] | de novo | problema | quebr\w+
    | deu
prefer: prefiro | preferimos | gosto | não gosto | odeio | quero que você | meu editor é | detesto
fact: a gente usa | (?:nós )?(?:usamos|utilizamos|publicamos|suportamos|escrevemos|fazemos deploy)
    | a gente faz deploy | noss[oa]s? | (?:[\w-]+ ){1,6}(?:roda|rodam) (?:no|na|em|nos|nas) | (?:a gente \w+
    |\w+[aei]mos) .*(?:a cada|toda|todo) (?:duas )?(?:segunda|terça|quarta|quinta|sexta|semana|mês|sprint)s?
person: é (?:a |o )?responsável | cuida d[aeo] | sou (?:\w+ )?(?:desenvolvedor\w*|engenheir\w*|cientista|novo
    |nova|designer|o|a) | trabalho (?:como|no|na|em) | meu nome é | me chamo
decided: decidimos | optamos por | combinamos | decisão(?=:) | ficamos com
wrong: não | está errado | errado | isso está errado | incorreto
contrast: , não | e não | em vez d | ao invés d | mas sim
found: (?:rodam?|fica|ficam|está|estão|se encontra) (?:em|no|na)
limited: agora mesmo | por enquanto | no momento | (?<!partir de )hoje(?! em diante) | amanhã | atualmente
    | temporariamente | enquanto | (?:n?d?est[ea]s?|n?d?ess[ea]s?) (?!projeto|repo|repositório|equipe
    |servidor|máquina)\w+ | até (?:que|amanhã|eu|a gente|segunda|terça|quarta|quinta|sexta|sábado|domingo)
    | só (?:por )?(?:hoje|desta|dessa|agora)
    | (?<!de )agora | durante (?:a demo|a migração|est[ae])
task: (?:arruma|conserta|muda|usa|use|chama|põe|faz|olha|tira|adiciona|começa)
open: \?\W*$ | ^(?:por que|como|o que|qual|quais|quem|onde|quando)\b | nem sempre | não precisa
    | não precisam | não é necessário | depende | tanto faz
unsaid: talvez | ^se | suponha | imagine | poderíamos | seria | deveríamos | devêssemos | usasse | acho que
    | penso | diz | dizem | disse | acha que | quer que | aparentemente | supostamente | ^segundo
    | segundo (?:a doc\w*|o readme|ele|ela) | faz a | garanta que [ao] | para o inglês
made: traduz\w* | escrev[ae] (?:no|na|um|uma) | redij\w* | documente | adicion\w+
""",
    "it": r"""
lead: per favore | e | anche | ma | ok | sì | no | importante | nota | regola | grazie | perfetto | qui
    | in questo (?:progetto|repo|repository) | comunque | tra l'altro
remember: ricorda(?:ti)?(?! di) | tieni (?:presente|a mente|conto) | non dimenticare che | prendi nota
    | annota | memorizza
onward: ^(?:smettila|smetti|smettete) di \w+re (?!il |la |lo |i (?!miei|nostri)|quest) | ^basta .*(?:commit
    |pr|codice|per favore) | ^da adesso | [,.] (?:sempre|mai)\W*$ | d'ora in (?:poi|avanti)
    | non .* senza (?:chieder\w*|dir\w*|avvis\w*|consult\w*|il mio) | da (?:ora|adesso|oggi) in (?:poi
    |avanti) | in futuro | di norma | ogni volta che | in nessun caso | da oggi | l'abitudine di
here: (?:per (?:tua )?info(?:rmazione)?|giusto perché tu lo sappia|fyi)[,:]? (?!io\b|lui\b|lei\b)
    (?:\S+ )+?(?:ogni|tutti|tutte|sempre|mai|solo)\b | (?:in questo|nel nostro) (?:progetto|repo|repository
    |team),? (?:[\w']+ ){1,4}(?:sono|è|vanno|va
    |stanno|sta
    |si (?:trovano?|scrivono|chiamano)|iniziano|hanno|usano)
always: sempre | mai
when: quando | prima | dopo | se | per | in
we: noi | \w+iamo
other: ^fai \w+re | non (?!\w+(?:re|r[ltn][oaie]|te|mo)\b)\w+ | dimentichi | l | dimentico | scordo
    | entramb[ei] | due | tre | io | lui | lei | loro | il | lo | la | i | gli | le | un | una | che | se
    | questo | mi | è | c | mia | mio
same: il | la | un
state: \w+[ae]vamo | è | sono | era | ho | ha | hai | visto | finisce | funziona | stato | abbiamo
status: finit[oaie] | rott[oaie] | passano | fallisc\w+ | lent[oaie] | di nuovo | ancora | problema
    | pront[oaie] | rotta
prefer: preferisco | preferiamo | mi piac(?:e|ciono) | non mi piac(?:e|ciono) | odio | voglio che tu
    | vorrei che tu | il mio editor è | detesto
fact: non (?:facciamo|permettiamo|usiamo) | non si (?:usan?o?|fanno|fa|permette) | usiamo | utilizziamo
    | facciamo (?:il )?deploy | rilasciamo | supportiamo | scriviamo | (?:la |il |le |i |gli )?nostr[oaie]
    | (?:[\w-]+ ){1,6}(?:gira|girano) (?:su|sulla|sul) | da noi | \w+iamo .*ogni (?:due )?(?:lunedì|martedì
    |mercoledì|giovedì|venerdì|settiman[ae]|sprint|mese)
person: è (?:la |il )?responsabile | si occupa d | sono (?:uno? |un'|una )?(?:sviluppat\w*|ingegner\w*|data
    |designer|nuov\w*|l\w*) | lavoro (?:come|in|per) | mi chiamo | il mio nome è
decided: abbiamo (?:deciso|scelto|concordato) | decisione(?=:) | restiamo (?:su|con)
wrong: no | è sbagliato | sbagliato | non è vero | falso
contrast: , non | e non | invece d | anziché
found: (?:gira|si trova|si trovano|sta|stanno|è) (?:su|in|nel|nella|sotto)
limited: in questo momento | per ora | al momento | (?<!da )oggi | domani | attualmente | temporaneamente
    | (?<!da )adesso | mentre | quest[oaie] (?!progetto|repo|repository|team|server|macchina|è)\w+ | finché
    | fino a | solo per | stavolta | durante (?:la demo|la migrazione|quest\w+) | stanotte | stasera
task: (?:sistema\w*|correggi|cambia|usa|chiama\w*|metti|fai|guarda|togli|aggiungi|inizia)
open: \?\W*$ | ^(?:perché|come|cosa|che cosa|quale|quali|chi|dove|quando)\b | non .*sempre | non serve
    | non c'è bisogno | non è necessario | dipende | non importa
unsaid: forse | magari | ^se | supponiamo | immagina | potremmo | sarebbe | dovremmo | usassimo | penso che
    | credo che | dice | dicono | ha detto | pensa che | vuole che | a quanto pare | sostiene | ^secondo
    | secondo (?:la doc\w*|il readme|lui|lei|loro) | fai in modo
    | assicurati che (?:il|la) | in inglese(?=:)
made: traduci | scrivi | documenta | redigi | aggiungi
""",
}
