"""Turns for `bench/extraction.py` with nothing to keep, by kind and "
"language: the kinds that were tuned on."""

from __future__ import annotations

TASK = {
    "en": (
        "add a retry with backoff to the fetch helper",
        "rename UserService to AccountService everywhere",
        "bump axios to 1.7 and fix what breaks",
        "the login page is broken, please have a look",
        "use a set instead of a list in dedupe()",
        "I want to see the diff before you commit this",
        "we need a migration for the new column",
        "move the parser into its own file and keep the tests green",
        "let's refactor the scheduler, start with the queue",
        "I need you to write a script that imports the csv from marketing",
        "remove the feature flag and everything behind it",
        "put the button to the right of the search box",
        "remember to run the tests once you're done with this change",
        "make it blue and a bit bigger",
    ),
    "de": (
        "bau bitte einen Retry in den Fetch-Helfer ein",
        "wir brauchen eine Migration für die neue Spalte",
    ),
    "es": ("agrega un reintento al helper de fetch", "necesitamos una migración para la nueva columna"),
    "fr": ("ajoute un retry au helper de fetch", "il nous faut une migration pour la nouvelle colonne"),
    "pt": ("adiciona um retry no helper de fetch", "precisamos de uma migração para a nova coluna"),
    "it": ("aggiungi un retry all'helper di fetch", "ci serve una migrazione per la nuova colonna"),
    "nl": ("voeg een retry toe aan de fetch-helper", "we hebben een migratie nodig voor de nieuwe kolom"),
    "pl": ("dodaj ponawianie do helpera fetch", "potrzebujemy migracji dla nowej kolumny"),
    "ru": ("добавь повтор в хелпер fetch", "нам нужна миграция для новой колонки"),
    "zh": ("给 fetch 工具函数加上重试", "我们需要给新列写一个迁移"),
    "ja": ("fetch ヘルパーにリトライを追加して", "新しいカラムのマイグレーションが必要です"),
    "ko": ("fetch 헬퍼에 재시도를 추가해 줘", "새 컬럼용 마이그레이션이 필요합니다"),
}

TASK_ALWAYS = {
    "en": (
        "make sure the function always returns a list",
        "write a test that checks that the cache never grows past its limit",
        "fix the bug where the cursor always jumps to the end",
        "the dropdown should always be visible on mobile, please fix that",
        "refactor this so that it never throws",
        "add a lint rule that we never import from internal",
        "change the handler so it always closes the connection",
        "find out which requests never get an answer",
        "implement a queue that always prefers the newest item",
        "the retry button must never be disabled, change the component",
    ),
    "de": (
        "sorg dafür, dass die Funktion immer eine Liste zurückgibt",
        "schreib einen Test, dass der Cache nie über das Limit wächst",
    ),
    "es": ("haz que la función siempre devuelva una lista",),
    "fr": ("fais en sorte que la fonction renvoie toujours une liste",),
    "pt": ("faz a função sempre retornar uma lista",),
    "it": ("fai in modo che la funzione restituisca sempre una lista",),
    "nl": ("zorg dat de functie altijd een lijst teruggeeft",),
    "pl": ("zrób tak, żeby funkcja zawsze zwracała listę",),
    "ru": ("сделай так, чтобы функция всегда возвращала список",),
    "zh": ("让这个函数总是返回一个列表", "写一个测试，确保缓存永远不会超过上限"),
    "ja": ("この関数が必ずリストを返すように直して",),
    "ko": ("이 함수가 항상 리스트를 반환하도록 고쳐 줘",),
}

SCOPE_TIME = {
    "en": (
        "I'm on the feature/login branch right now",
        "don't push anything until I'm back",
        "for now just use the fake provider",
        "we're using sqlite at the moment, ignore the postgres part",
        "today only: skip the slow tests",
        "always ask me before deleting anything while we debug this",
        "never mind the lint errors for the time being",
        "the staging server is down this afternoon, so use local",
        "use the backup key till tomorrow",
        "i'm in a meeting for the next hour, don't ask questions",
        "currently I'm looking at the parser module",
        "temporarily point the client at localhost:9000",
        "during the demo we always use the acme tenant, so switch to it now",
    ),
    "de": (
        "ich bin gerade auf dem Branch feature/login",
        "bis ich zurück bin, bitte nichts pushen",
        "nimm vorerst immer den Fake-Provider",
        "heute nie deployen, das Team ist weg",
    ),
    "es": ("ahora mismo estoy en la rama feature/login", "por ahora usa siempre el proveedor falso"),
    "fr": (
        "je suis sur la branche feature/login en ce moment",
        "pour l'instant utilise toujours le faux provider",
    ),
    "pt": ("estou na branch feature/login agora mesmo", "por enquanto use sempre o provider falso"),
    "it": ("in questo momento sono sul branch feature/login", "per ora usa sempre il provider finto"),
    "nl": ("ik zit nu even op de branch feature/login", "gebruik voorlopig altijd de nep-provider"),
    "pl": ("jestem teraz na gałęzi feature/login", "na razie zawsze używaj fałszywego providera"),
    "ru": ("я сейчас на ветке feature/login", "пока что всегда используй фейковый провайдер"),
    "zh": ("我现在在 feature/login 分支上", "暂时一直用假的 provider 就行"),
    "ja": ("今は feature/login ブランチにいます", "とりあえず常にダミーの provider を使って"),
    "ko": ("지금은 feature/login 브랜치에 있어요", "당분간은 항상 가짜 provider를 써 줘"),
}

QUESTION = {
    "en": (
        "should we always use pnpm here?",
        "do you remember where the config lives",
        "which database do we use in staging?",
        "why does the build never finish on windows?",
        "is it true that we always squash before merging",
        "what do you prefer, tabs or spaces?",
        "can you tell me who owns the billing service?",
        "how do I always get the latest version of a package",
        "do we never clean these up?",
        "wait, are we on Postgres or MySQL",
    ),
    "de": (
        "sollen wir hier immer pnpm benutzen?",
        "warum läuft der Build nie durch",
        "welche Datenbank benutzen wir?",
    ),
    "es": ("¿siempre usamos pnpm aquí?", "por qué nunca termina el build"),
    "fr": ("est-ce qu'on utilise toujours pnpm ici ?", "pourquoi le build ne finit jamais"),
    "pt": ("a gente sempre usa pnpm aqui?", "por que o build nunca termina"),
    "it": ("usiamo sempre pnpm qui?", "perché la build non finisce mai"),
    "nl": ("gebruiken we hier altijd pnpm?", "waarom is de build nooit klaar"),
    "pl": ("czy zawsze używamy tu pnpm?", "dlaczego build nigdy się nie kończy"),
    "ru": ("мы всегда используем здесь pnpm?", "почему сборка никогда не заканчивается"),
    "zh": ("我们这里总是用 pnpm 吗？", "为什么构建永远跑不完"),
    "ja": ("ここでは常に pnpm を使いますか？", "なぜビルドは絶対に終わらないのか"),
    "ko": ("여기서는 항상 pnpm을 쓰나요?", "왜 빌드가 절대 안 끝나지"),
}

QUOTE = {
    "en": (
        'the README says "always run make setup first" but that target is gone',
        'I found this in the docs: "never call init twice". find out if that\'s still true',
        'the error text is "you must always pass a token", where does it come from',
        "> Always use strict mode.\n> Never disable the linter.\nthis is from "
        "their contributing guide, summarize it",
        'change the label from "Always on" to "Never off"',
        "the comment above it reads 'we never use this in production', delete the comment",
        "“From now on we deploy on Fridays” – who wrote that in the wiki",
    ),
    "de": ("in der README steht „immer zuerst make setup ausführen“, aber das Ziel gibt es nicht mehr",),
    "es": ("el README dice «ejecuta siempre make setup primero», pero ya no existe",),
    "fr": ("le README dit « toujours lancer make setup d'abord », mais la cible n'existe plus",),
    "pt": ('o README diz "sempre rode make setup primeiro", mas esse alvo sumiu',),
    "it": ("il README dice «esegui sempre make setup prima», ma il target non c'è più",),
    "nl": ("in de README staat 'draai altijd eerst make setup', maar dat target is weg",),
    "pl": ("w README jest „zawsze najpierw uruchom make setup”, ale tego celu już nie ma",),
    "ru": ("в README написано «всегда сначала запускайте make setup», но цели больше нет",),
    "zh": ("README 里写着“总是先运行 make setup”，但这个目标已经没了",),
    "ja": ("README に「必ず最初に make setup を実行する」と書いてあるけど、そのターゲットはもうない",),
    "ko": ('README에 "항상 먼저 make setup을 실행하라"고 되어 있는데 그 타깃이 없어졌어',),
}

PASTE = {
    "en": (
        "getting this:\n\nERROR config: you must always set DATABASE_URL\nERROR "
        "config: never start without it\n"
        "    at boot (server.js:12:5)\n",
        "2026-11-02 10:12:44 WARN  pool: always retrying connection\n2026-11-02 "
        "10:12:45 WARN  pool: never got an answer\n"
        "2026-11-02 10:12:46 ERROR pool: we use port 5432 instead of 5433",
        "output of the linter:\n\nsrc/a.ts:3:1  error  Always use const  prefer-const\n"
        "src/b.ts:9:5  error  Never use any  no-explicit-any\n\n2 problems",
        "here's the contributing guide of that library:\n\n# Contributing\n\nAlways sign "
        "your commits. Never rebase a shared branch. "
        "We use Conventional Commits.\n\n## Tests\n\nRemember to run tox before you push.",
        'Traceback (most recent call last):\n  File "app.py", line 3, in <module>\n    main()\n'
        "ValueError: the key must always be a string",
        "$ npm install\nnpm WARN deprecated request@2.88: never use this again\nadded 214 packages in 9s",
    ),
    "de": (
        "das kommt raus:\n\nFEHLER: Die Variable muss immer gesetzt sein\nFEHLER: niemals "
        "ohne sie starten\n    at boot (a.js:1:2)",
    ),
    "es": ("sale esto:\n\nERROR config: siempre hay que definir DATABASE_URL\n    at boot (server.js:12:5)",),
    "fr": ("j'ai ça :\n\nERROR config: il faut toujours définir DATABASE_URL\n    at boot (server.js:12:5)",),
    "pt": ("deu isso:\n\nERROR config: sempre defina DATABASE_URL\n    at boot (server.js:12:5)",),
    "it": ("esce questo:\n\nERROR config: impostare sempre DATABASE_URL\n    at boot (server.js:12:5)",),
    "nl": ("ik krijg dit:\n\nERROR config: zet altijd DATABASE_URL\n    at boot (server.js:12:5)",),
    "pl": ("wyskakuje to:\n\nERROR config: zawsze ustawiaj DATABASE_URL\n    at boot (server.js:12:5)",),
    "ru": ("вот что вышло:\n\nERROR config: всегда задавайте DATABASE_URL\n    at boot (server.js:12:5)",),
    "zh": ("报错如下：\n\nERROR config: 必须始终设置 DATABASE_URL\n    at boot (server.js:12:5)",),
    "ja": (
        "こうなりました：\n\nERROR config: 必ず DATABASE_URL "
        "を設定してください\n    at boot (server.js:12:5)",
    ),
    "ko": ("이렇게 나와요:\n\nERROR config: 항상 DATABASE_URL을 설정하세요\n    at boot (server.js:12:5)",),
}

SMALL_TALK = {
    "en": (
        "haha it's always DNS",
        "morning! coffee first, then the parser",
        "you're the best, never change",
        "ok I'm back, where were we",
        "lol that never gets old",
        "ugh mondays",
        "that was a good session, see you tomorrow",
        "I love this, nice work",
        "sorry, I was away for lunch",
    ),
    "de": ("haha, es ist immer DNS", "danke dir, bis morgen"),
    "es": ("jaja siempre es el DNS", "gracias, hasta mañana"),
    "fr": ("haha c'est toujours le DNS", "merci, à demain"),
    "pt": ("haha é sempre o DNS", "valeu, até amanhã"),
    "it": ("ahah è sempre il DNS", "grazie, a domani"),
    "nl": ("haha het is altijd DNS", "bedankt, tot morgen"),
    "pl": ("haha, to zawsze DNS", "dzięki, do jutra"),
    "ru": ("ха-ха, это всегда DNS", "спасибо, до завтра"),
    "zh": ("哈哈，永远是 DNS 的问题", "谢谢，明天见"),
    "ja": ("いつも DNS ですよね（笑）", "ありがとう、また明日"),
    "ko": ("ㅋㅋ 항상 DNS 문제네", "고마워요, 내일 봐요"),
}

STATUS = {
    "en": (
        "the migration is done, tests are green",
        "I pushed the fix to the branch, CI is running",
        "I've just merged your PR",
        "still the same error, nothing changed",
        "we use 80% of the disk now, so I deleted the old builds",
        "I tried it with node 20 and it worked",
        "my tests pass but Anna's don't",
        "the deploy failed twice this morning",
        "I ran it again, it never got past step 3",
        "I'm done with the header, the footer is next",
        "we are two days behind, the release is on Thursday",
    ),
    "de": ("die Migration ist durch, die Tests sind grün", "ich habe den Fix gepusht, die CI läuft"),
    "es": ("la migración está lista, los tests pasan", "acabo de subir el arreglo"),
    "fr": ("la migration est finie, les tests passent", "je viens de pousser le correctif"),
    "pt": ("a migração terminou, os testes passaram", "acabei de subir a correção"),
    "it": ("la migrazione è finita, i test passano", "ho appena pushato la correzione"),
    "nl": ("de migratie is klaar, de tests zijn groen", "ik heb de fix net gepusht"),
    "pl": ("migracja skończona, testy przechodzą", "właśnie wypchnąłem poprawkę"),
    "ru": ("миграция готова, тесты зелёные", "я только что запушил исправление"),
    "zh": ("迁移做完了，测试都通过了", "我刚把修复推上去了"),
    "ja": ("マイグレーションは終わりました、テストも通っています", "修正をさっき push しました"),
    "ko": ("마이그레이션 끝났고 테스트도 통과했어요", "방금 수정을 푸시했어요"),
}

NEGATED = {
    "en": (
        "you don't always have to ask me first",
        "it's not like we never use mocks",
        "you don't need to run the whole suite every time",
        "no need to always explain everything",
        "I didn't say never, I said be careful",
        "we don't always squash, it depends",
        "there's no rule about that, do what you think is best",
        "don't worry about the lint warnings, they are always there",
        "I don't really have a preference here",
    ),
    "de": ("du musst nicht immer erst fragen", "wir squashen nicht immer, es kommt drauf an"),
    "es": ("no hace falta que siempre preguntes", "no siempre hacemos squash, depende"),
    "fr": ("tu n'es pas obligé de toujours demander", "on ne squashe pas toujours, ça dépend"),
    "pt": ("você não precisa sempre perguntar", "nem sempre fazemos squash, depende"),
    "it": ("non devi sempre chiedere prima", "non facciamo sempre squash, dipende"),
    "nl": ("je hoeft niet altijd eerst te vragen", "we squashen niet altijd, het hangt ervan af"),
    "pl": ("nie musisz zawsze pytać", "nie zawsze robimy squash, to zależy"),
    "ru": ("не обязательно всегда спрашивать", "мы не всегда делаем squash, по-разному бывает"),
    "zh": ("你不用总是先问我", "我们不总是 squash，看情况"),
    "ja": ("必ずしも毎回聞かなくていいです", "いつも squash するわけではないです"),
    "ko": ("항상 먼저 물어볼 필요는 없어요", "항상 squash하는 건 아니에요"),
}
