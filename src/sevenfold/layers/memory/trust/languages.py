"""The closed classes of nine languages. A language that is not here is read as English: words that are not
listed are content, so that its sentences are still recognized word by word.
"""

from __future__ import annotations

from functools import lru_cache

from sevenfold.layers.memory.trust.tokens import (
    Grammar,
    read_phrases,
    read_word_set,
)

_ENGLISH = Grammar(
    name="en",
    idle=read_word_set(
        "a an the our my your is are be been being am was were do does must should shall will ought have "
        "has had always please just simply really very quite actually definitely absolutely strictly "
        "certainly also so it its us happen happens happening keep keeps kept stay stays ever to there as "
        "too out here live lives located placed resides reside sits ensure"
    )
    - {"was", "were", "had"},
    speakers=read_word_set("i we you me us user users"),
    passive=read_word_set("is are be been being am get gets"),
    negations=read_word_set("not never no don't cannot"),
    markers=read_word_set(
        "in on at by for from into onto to before after until till unless except if when while whenever "
        "where with without within during over under than then first about against between through via per "
        "but or nor because since although though whether which who whose what why how once instead besides "
        "despite across beyond toward towards upon near behind above below"
    )
    - {"to"},
    weak=read_word_set("may can could might"),
    limits=read_word_set("only solely exclusively"),
    leads=read_phrases(
        """
        remember that | remember this | remember | please remember that | please remember | please note that
        please note | note that | note | keep in mind that | keep in mind | bear in mind that | bear in mind
        don't forget that | do not forget that | do not forget to | don't forget to | remember to
        it is important to | it is important that | i need you to | i expect you to | for the record
        for future reference | from now on | from here on | going forward | in the future | in future
        as a rule | fyi | make sure that | make sure you | make sure to | make sure | be sure to
        i want you to | i would like you to | i'd like you to | we decided to | we decided that | we decided
        we agreed that | we agreed to | we agreed | we have decided to | we have decided that | let's
        let us | please | the rule here is that | the rule here is | the rule is that | the rule is to
        the rule is | the convention is that | the convention is | the policy is that | the policy is
        our rule is that | our rule is | our convention is | our policy is | also | and | so | ok | okay
        yes | no | right | by default | in general | generally | under no circumstances ever | rule
        convention | policy | decision | preference | user preference | team convention | project rule
        we settled | decided | agreed | important | reminder | hi | hello | hey | thanks | in this repo
        in this project | in this repository | in this codebase | could you please | can you please
        would you please | could you | can you | would you | would you mind | just so you know | next time
        for your information | for context | heads up | btw | by the way | the user said that | the user said
        the user wants to | the user wants us to | the user wants you to | the user wants that
        the user asked to | the user asks to | the user asked that | the user asked us to
        the user prefers that | the user expects that | the user requires that"""
    ),
    tails=read_phrases(
        """
        please | thanks | thank you | ok | okay | here | around here | in this repo | in this project
        in this repository | in this codebase | in this code base | from now on | going forward | too
        as well | at all times | every time | period | full stop | in future | in the future
        no exceptions"""
    ),
    asking=read_word_set("what why how which who whom whose whats whys hows"),
    inverting=read_word_set(
        "should shall do does did is are was were am can could will would may might must have has"
    ),
    subjects=read_word_set(
        "we i you they he she it the a an our my your this that there anyone everyone someone one"
    ),
)
_GERMAN = Grammar(
    name="de",
    idle=read_word_set(
        "der die das den dem des ein eine einen einem einer eines unser unsere unseren unserem unserer mein "
        "meine meinen dein deine ist sind sei bin werden wird werde werdet soll sollen sollst sollt sollte "
        "sollten muss müssen musst müsst bitte immer stets auch so dass es mir uns dir zu heißt heissen "
        "nutzen nutze nutzt benutzen benutze benutzt verwenden verwende verwendet hat haben habe gilt "
        "gelten einfach wirklich hier man grundsätzlich dabei genutzt machen macht mache nehmen nehme nimmt "
        "stehen steht liegen liegt"
    ),
    speakers=read_word_set("ich wir du ihr mich uns dich euch nutzer nutzerin benutzer benutzerin user"),
    passive=read_word_set("werden wird werde ist sind"),
    negations=read_word_set("nicht nie niemals kein keine keinen keinem keiner"),
    markers=read_word_set(
        "in im an am auf bei beim von vom vor nach bis aus mit ohne für gegen über unter zwischen durch "
        "während wegen trotz statt anstatt wenn falls sofern solange sobald nachdem bevor ehe außer ausser "
        "aber sondern oder weil denn obwohl ob damit seit ab zum zur um je pro als dann zuerst laut gemäß"
    ),
    weak=read_word_set("kann können kannst könnt könnte könnten darf dürfen darfst dürft dürfte"),
    limits=read_word_set("nur ausschließlich lediglich"),
    leads=read_phrases(
        """
        merk dir dass | merk dir bitte dass | merk dir bitte | merk dir | merke dir dass | merke dir | merke
        bitte merken | denk daran dass | denk dran dass | denk daran | denke daran dass | vergiss nicht dass
        bitte beachte dass | bitte beachte | beachte dass | beachte | ab jetzt gilt | ab sofort gilt
        ab jetzt | ab sofort | von jetzt an | von nun an | ab heute | künftig | zukünftig | in zukunft
        bitte | also | und | ok | ja | nein | wir haben beschlossen dass | wir haben entschieden dass
        wir haben beschlossen | ich möchte dass | ich will dass | die regel ist dass | die regel ist
        die regel lautet | regel | hinweis | vereinbarung | wichtig | achte darauf dass | stell sicher dass
        stelle sicher dass | sorge dafür dass | grundsätzlich | der nutzer möchte dass
        die nutzerin möchte dass | generell | übrigens | zur info"""
    ),
    tails=read_phrases("bitte | danke | hier | in diesem projekt | in diesem repo | ab jetzt | ab sofort"),
    asking=read_word_set(
        "was warum wieso weshalb wie wer wen wem wo wohin woher welche welcher welches welchen"
    ),
    inverting=read_word_set(
        "soll sollen sollte sollten kann können könnte könnten darf dürfen muss müssen ist sind hat haben "
        "wird werden machen tun gibt"
    ),
    subjects=read_word_set("ich wir du ihr man er sie es das der die ein eine dieses diese dieser"),
)
_FRENCH = Grammar(
    name="fr",
    idle=read_word_set(
        "le la les l un une des du de d notre nos mon ma mes ton ta tes votre vos est sont être soit ont a "
        "avoir faut doit dois devons devez doivent toujours aussi que qu il y se s ne n utiliser utilise "
        "utilisons utilisez utilisent lieu très bien trouve trouvent sera seront utilisé utilisée utilisés "
        "utilisées vraiment simplement"
    )
    - {"ne", "n"},
    speakers=read_word_set("je j nous on tu vous me m moi te toi utilisateur utilisatrice"),
    passive=read_word_set("est sont être soit"),
    negations=read_word_set("pas jamais non aucun aucune ne n"),
    markers=read_word_set(
        "à au aux en dans sur sous pour par avec sans avant après depuis pendant jusque jusqu si quand "
        "lorsque dès sauf mais ou car parce puis d'abord chez entre contre selon malgré afin tant comme "
        "dont où qui"
    ),
    weak=read_word_set("peut peux pouvons pouvez peuvent pourrait pourrions pourrais"),
    limits=read_word_set("seulement uniquement seul seule seuls"),
    leads=read_phrases(
        """
        retiens que | retiens ceci | retiens | rappelle toi que | souviens toi que | souviens toi | note que
        note | notez que | notez | n'oublie pas que | n oublie pas que | à partir de maintenant | désormais
        dorénavant | s'il te plaît | s il te plaît | s'il vous plaît | s il vous plaît | merci de | et
        aussi | ok | oui | non | nous avons décidé de | nous avons décidé que | on a décidé de
        on a décidé que | la règle est que | la règle est | règle | important | je veux que tu
        je voudrais que tu | assure toi que | en général"""
    ),
    tails=read_phrases(
        "s'il te plaît | s il te plaît | s'il vous plaît | merci | ici | dans ce projet | dans ce dépôt"
    ),
    asking=read_word_set("pourquoi comment quel quelle quels quelles combien qui que est-ce"),
    inverting=frozenset(),
    subjects=frozenset(),
)
_SPANISH = Grammar(
    name="es",
    idle=read_word_set(
        "el la los las un una unos unas lo al del de nuestro nuestra nuestros nuestras mi mis tu tus su sus "
        "es son ser está están estar debe deben debes debemos hay que tiene tienen tenemos siempre también "
        "se así muy usar usa usamos usan usado usada será serán use utilizar utiliza utilizamos realmente "
        "simplemente hacer hagas haga ha han"
    ),
    speakers=read_word_set("yo nosotros nosotras tú usted ustedes me nos te usuario usuaria"),
    passive=read_word_set("es son ser está están se"),
    negations=read_word_set("no nunca jamás ningún ninguna ninguno"),
    markers=read_word_set(
        "a en por para con sin sobre bajo antes después desde hasta durante entre contra según si cuando "
        "mientras salvo excepto pero sino o porque pues aunque luego primero como donde quien mediante tras"
    ),
    weak=read_word_set("puede pueden podemos puedes puedo podría podríamos podrías"),
    limits=read_word_set("solo sólo solamente únicamente"),
    leads=read_phrases(
        """
        recuerda que | recuerda esto | recuerda | recuerde que | recuerde | recordad que | ten en cuenta que
        ten en cuenta | toma nota | nota | no olvides que | a partir de ahora | de ahora en adelante
        desde ahora | por favor | y | también | ok | sí | no | hemos decidido que | hemos decidido
        decidimos que | decidimos | la regla es que | la regla es | regla | importante | quiero que
        asegúrate de que | asegúrate de | en general"""
    ),
    tails=read_phrases("por favor | gracias | aquí | en este proyecto | en este repositorio | en este repo"),
    asking=read_word_set("qué por-qué cómo cuál cuáles quién quiénes dónde cuándo cuánto cuántos cuántas"),
)
_ITALIAN = Grammar(
    name="it",
    idle=read_word_set(
        "il lo la i gli le un uno una l del dello della dei degli delle di d nostro nostra nostri nostre "
        "mio mia miei mie tuo tua è sono essere sia deve devono devi dobbiamo bisogna va vanno sempre anche "
        "si ci così molto usare usa usiamo usano usato usata usati usate utilizzare utilizza utilizziamo "
        "davvero semplicemente che fare fai fate ha hanno avvengono avviene"
    ),
    speakers=read_word_set("io noi tu voi mi me te utente"),
    passive=read_word_set("è sono essere sia va vanno si vengono viene"),
    negations=read_word_set("non mai no nessun nessuno nessuna"),
    markers=read_word_set(
        "a ad al allo alla ai agli alle in nel nello nella nei negli nelle su sul sullo sulla sui sugli "
        "sulle per con da dal dalla dai dalle prima dopo durante tra fra contro secondo se quando mentre "
        "finché salvo tranne eccetto senza ma o oppure perché poiché invece sotto sopra fino poi come dove "
        "chi"
    ),
    weak=read_word_set("può possono puoi possiamo potrebbe potremmo potresti"),
    limits=read_word_set("solo soltanto solamente unicamente"),
    leads=read_phrases(
        """
        ricorda che | ricordati che | ricorda | ricordati | ricordate che | tieni presente che
        tieni a mente che | nota che | nota | non dimenticare che | d'ora in poi | d ora in poi
        da ora in poi | per favore | e | anche | ok | sì | no | abbiamo deciso che | abbiamo deciso di
        la regola è che | la regola è | regola | importante | voglio che | assicurati che | assicurati di
        in generale"""
    ),
    tails=read_phrases(
        "per favore | grazie | qui | in questo progetto | in questo repository | in questo repo"
    ),
    asking=read_word_set("cosa perché come quale quali chi dove quando quanto quanti quante"),
)
_PORTUGUESE = Grammar(
    name="pt",
    idle=read_word_set(
        "o a os as um uma uns umas do da dos das de d nosso nossa nossos nossas meu minha meus minhas seu "
        "sua é são ser está estão deve devem deves devemos temos tem têm sempre também se assim muito usar "
        "será serão use usa usamos usam usado usada usados usadas utilizar utilize realmente simplesmente "
        "que fazer faça faz acontecem acontece há"
    ),
    speakers=read_word_set("eu nós você vocês me nos te usuário usuária utilizador utilizadora"),
    passive=read_word_set("é são ser está estão foram"),
    negations=read_word_set("não nunca jamais nenhum nenhuma"),
    markers=read_word_set(
        "em no na nos nas ao à às aos por pelo pela pelos pelas para com sem sobre sob antes depois desde "
        "até durante entre contra segundo conforme quando enquanto salvo exceto mas ou porque pois embora "
        "primeiro depois como onde quem caso apenas se"
    )
    - {"apenas"},
    weak=read_word_set("pode podem podemos podes posso poderia poderíamos"),
    limits=read_word_set("só apenas somente unicamente"),
    leads=read_phrases(
        """
        lembre se de que | lembre-se de que | lembre-se que | lembre-se | lembre se | lembra que
        lembre que | lembre | anote que | anote | note que | note | não esqueça que | tenha em mente que
        a partir de agora | de agora em diante | doravante | por favor | e | também | ok | sim | não
        decidimos que | decidimos | a regra é que | a regra é | regra | importante | quero que
        certifique-se de que | certifique-se de | em geral"""
    ),
    tails=read_phrases(
        "por favor | obrigado | obrigada | aqui | neste projeto | neste repositório | neste repo"
    ),
    asking=read_word_set("quê como qual quais quem onde quando quanto quantos quantas porquê"),
)
_DUTCH = Grammar(
    name="nl",
    idle=read_word_set(
        "de het een onze ons mijn jouw je uw is zijn ben worden wordt moet moeten zal zullen altijd "
        "alsjeblieft graag ook zo dat er gebruik gebruiken gebruikt heet heten hebben heb heeft gewoon echt "
        "hier om te"
    ),
    speakers=read_word_set("ik wij we jij jullie u mij me ons gebruiker"),
    passive=read_word_set("worden wordt is zijn"),
    negations=read_word_set("niet nooit geen"),
    markers=read_word_set(
        "in op aan bij van voor na tot uit met zonder tegen over onder tussen door tijdens wegens als "
        "wanneer indien zolang zodra nadat voordat behalve tenzij maar of want omdat hoewel sinds vanaf "
        "naar per dan eerst volgens"
    ),
    weak=read_word_set("kan kunnen kun mag mogen zou zouden"),
    limits=read_word_set("alleen uitsluitend enkel slechts"),
    leads=read_phrases(
        """
        onthoud dat | onthoud | onthou dat | onthou | let op | vergeet niet dat | noteer dat | noteer
        vanaf nu | van nu af aan | voortaan | alsjeblieft | graag | en | ook | ok | ja | nee
        we hebben besloten dat | we hebben besloten om | ik wil dat je | ik wil graag dat je
        de regel is dat | de regel is | regel | belangrijk | zorg dat | zorg ervoor dat | in het algemeen"""
    ),
    tails=read_phrases("alsjeblieft | graag | bedankt | hier | in dit project | in deze repo | vanaf nu"),
    asking=read_word_set("wat waarom hoe wie waar welke welk waarheen"),
    inverting=read_word_set("moeten moet zullen zal kunnen kan mogen mag is zijn heeft hebben gaan"),
    subjects=read_word_set("ik wij we jij je jullie u hij ze het de een dit dat"),
)
_POLISH = Grammar(
    name="pl",
    idle=read_word_set(
        "to jest są być został zostały nasz nasza nasze naszego mój moja moje twój się zawsze też także "
        "należy trzeba musi muszą musisz musimy powinien powinna powinno powinny proszę używać używaj "
        "używamy używa po prostu tak że"
    ),
    speakers=read_word_set("ja my ty wy mnie mi nam użytkownik użytkowniczka"),
    passive=read_word_set("jest są być został zostały się"),
    negations=read_word_set("nie nigdy żaden żadna żadne bez") - {"bez"},
    markers=read_word_set(
        "w we na do od dla z ze bez przed po przy pod nad przez podczas między o u za ku jeśli jeżeli gdy "
        "kiedy dopóki aż chyba oprócz ale lecz lub albo bo ponieważ choć zamiast jak gdzie kto co najpierw "
        "potem według"
    ),
    weak=read_word_set("może mogą można możesz możemy mógłby wolno"),
    limits=read_word_set("tylko wyłącznie jedynie"),
    leads=read_phrases(
        """
        zapamiętaj że | zapamiętaj | pamiętaj że | pamiętaj | zanotuj że | zanotuj | nie zapomnij że
        od teraz | od tej pory | odtąd | w przyszłości | proszę | i | a | też | ok | tak | nie
        ustaliliśmy że | zdecydowaliśmy że | zasada jest taka że | zasada | ważne | chcę żebyś
        upewnij się że | ogólnie"""
    ),
    tails=read_phrases(
        "proszę | dzięki | dziękuję | tutaj | tu | w tym projekcie | w tym repozytorium | w tym repo"
    ),
    asking=read_word_set("czy dlaczego jak kto co gdzie kiedy który która które ile po-co"),
)
_RUSSIAN = Grammar(
    name="ru",
    idle=read_word_set(
        "это есть быть был наш наша наше наши мой моя мои твой всегда также тоже нужно надо должен должна "
        "должно должны следует пожалуйста использовать используй используем использует просто что же"
    )
    - {"был"},
    speakers=read_word_set("я мы ты вы мне нам меня нас пользователь"),
    passive=read_word_set("быть был"),
    negations=read_word_set("не никогда нет ни нельзя"),
    markers=read_word_set(
        "в во на до от для с со без перед после при под над через во-время между о об у за к ко если когда "
        "пока кроме но или либо потому хотя вместо как где кто сначала потом по из"
    ),
    weak=read_word_set("может могут можно можешь можем мог"),
    limits=read_word_set("только исключительно лишь"),
    leads=read_phrases(
        """
        запомни что | запомни | запомните что | запомните | помни что | помни | учти что | учти
        имей в виду что | не забудь что | отныне | с этого момента | теперь | впредь | пожалуйста | и | а
        также | ок | да | нет | мы решили что | мы решили | правило такое | правило | важно
        я хочу чтобы ты | убедись что | в целом"""
    ),
    tails=read_phrases(
        "пожалуйста | спасибо | здесь | тут | в этом проекте | в этом репозитории | в этом репо"
    ),
    asking=read_word_set("почему зачем как кто что где когда какой какая какие сколько разве неужели ли"),
)

GRAMMARS = (
    _ENGLISH,
    _GERMAN,
    _FRENCH,
    _SPANISH,
    _ITALIAN,
    _PORTUGUESE,
    _DUTCH,
    _POLISH,
    _RUSSIAN,
)


_LETTERS = {"de": "äöüß", "fr": "œèùî", "es": "ñ", "pt": "ãõ", "pl": "ąćęłńóśźż"}
"""That other languages of `GRAMMARS` hardly write."""
_OPEN_ENDS = frozenset(("es", "it", "pt"))
_MIN_LETTERS = 4
AROUND_WEIGHT = 0.95
"""How much the language of a message counts for in each of its sentences, in function words: "Prima zo." is
Dutch in a Dutch message, and "Quantos faltam?" Portuguese in an English one."""


@lru_cache(maxsize=16_384)
def choose_grammar(words: tuple[str, ...], surfaces: tuple[str, ...], around: str = "") -> Grammar:
    """The language with the most function words among these; English where none has any. `around`: the name
    of the language of what stands around them, which a few words alone do not tell."""
    long = [word for word in words if len(word) >= _MIN_LETTERS]
    share = sum(word.endswith(("a", "i", "o")) for word in long) / max(1, len(long))

    def rate(grammar: Grammar) -> float:
        if grammar.name == "ru" and any("а" <= letter <= "я" for word in words for letter in word):
            return len(words)
        letters = set(_LETTERS.get(grammar.name, ""))
        known = sum(word in grammar.hints for word in words)
        marked = sum(not letters.isdisjoint(word) for word in surfaces)
        # Where function words do not tell: Romance words end in vowels.
        led = (share * 0.9 if grammar.name in _OPEN_ENDS else 0) + AROUND_WEIGHT * (grammar.name == around)
        return known + marked + led

    return max(GRAMMARS, key=rate)
