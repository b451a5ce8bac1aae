"""Turns for `bench/extraction.py` that say something worth keeping, by kind and language.

`[[` and `]]` enclose what is worth keeping where the rest of the turn is not.
"""

from __future__ import annotations

STANDING = {
    "en": (
        "always run the linter before you commit",
        "from now on use pnpm, not npm",
        "Never push straight to main, we go through PRs.",
        "please always answer in German, the code comments stay English",
        "don't ever touch anything under vendor/",
        "going forward all new endpoints go into api/v2",
        "Every commit message has to start with the ticket number.",
        "in this repo we never use default exports",
        "whenever you change the schema, regenerate the client too",
        "no emojis in commit messages, ever",
        "use tabs in this project. always.",
        "In future, put the migrations in db/changes instead of the root.",
        "as a rule, we squash before merging",
        "you should always check the changelog when you bump a dependency",
    ),
    "de": (
        "Ab jetzt bitte immer pnpm benutzen, nie npm.",
        "niemals direkt auf main pushen",
        "in Zukunft die Tests bitte mit make test laufen lassen",
        "Commit-Nachrichten schreiben wir grundsätzlich auf Englisch.",
    ),
    "es": (
        "a partir de ahora usa pnpm, no npm",
        "nunca hagas push directamente a main",
        "Siempre ejecuta los tests antes de hacer commit.",
        "de ahora en adelante los comentarios van en inglés",
    ),
    "fr": (
        "à partir de maintenant, utilise pnpm et pas npm",
        "ne pousse jamais directement sur main",
        "Lance toujours les tests avant de committer.",
        "désormais les messages de commit sont en anglais",
    ),
    "pt": (
        "a partir de agora use pnpm, não npm",
        "nunca faça push direto na main",
        "Sempre rode os testes antes do commit.",
        "daqui pra frente os comentários ficam em inglês",
    ),
    "it": (
        "d'ora in poi usa pnpm, non npm",
        "non fare mai push direttamente su main",
        "Esegui sempre i test prima del commit.",
    ),
    "nl": (
        "gebruik vanaf nu altijd pnpm, geen npm",
        "push nooit rechtstreeks naar main",
        "Draai altijd eerst de tests voor je commit.",
    ),
    "pl": (
        "od teraz używaj pnpm zamiast npm",
        "nigdy nie pushuj bezpośrednio na main",
        "Zawsze uruchamiaj testy przed commitem.",
    ),
    "ru": (
        "с этого момента используй pnpm, а не npm",
        "никогда не пушь напрямую в main",
        "Всегда запускай тесты перед коммитом.",
    ),
    "zh": (
        "从现在开始一律用 pnpm，不要用 npm",
        "永远不要直接推送到 main",
        "提交之前总是先跑一遍测试。",
        "以后提交信息都用英文写",
    ),
    "ja": (
        "今後は npm ではなく pnpm を使ってください",
        "main に直接 push は絶対にしないで",
        "コミット前には必ずテストを実行してください。",
        "これからはコメントを英語で書いてね",
    ),
    "ko": (
        "앞으로는 npm 말고 pnpm을 써 줘",
        "main에 절대 직접 푸시하지 마",
        "커밋하기 전에 항상 테스트를 돌려 주세요.",
    ),
}

CORRECTION = {
    "en": (
        "no, we use pytest here, not unittest",
        "That's wrong, the config lives in infra/, not in deploy/.",
        "nope, it's Postgres, not MySQL",
        "actually we don't use Redux anymore, we moved to Zustand",
        "you used yarn again. we use pnpm in this repo",
        "not the v1 API - our clients are all on v2",
        "No, the main branch is called trunk here.",
        "wrong formatter, this project uses biome instead of prettier",
        "stop adding docstrings to tests, we don't do that here",
        "no no, billing belongs to the payments team, not to us",
    ),
    "de": (
        "nein, wir benutzen pytest, nicht unittest",
        "Das stimmt nicht, die Konfiguration liegt in infra/, nicht in deploy/.",
        "falsch, wir nehmen hier Postgres statt MySQL",
    ),
    "es": (
        "no, aquí usamos pytest, no unittest",
        "Eso está mal, la configuración está en infra/, no en deploy/.",
    ),
    "fr": (
        "non, ici on utilise pytest, pas unittest",
        "C'est faux, la config est dans infra/, pas dans deploy/.",
    ),
    "pt": (
        "não, aqui a gente usa pytest, não unittest",
        "Está errado, a configuração fica em infra/, não em deploy/.",
    ),
    "it": (
        "no, qui usiamo pytest, non unittest",
        "È sbagliato, la configurazione sta in infra/, non in deploy/.",
    ),
    "nl": (
        "nee, we gebruiken hier pytest, niet unittest",
        "Dat klopt niet, de configuratie staat in infra/, niet in deploy/.",
    ),
    "pl": (
        "nie, u nas używamy pytest, a nie unittest",
        "To nieprawda, konfiguracja jest w infra/, nie w deploy/.",
    ),
    "ru": (
        "нет, мы используем pytest, а не unittest",
        "Неверно, конфигурация лежит в infra/, а не в deploy/.",
    ),
    "zh": ("不对，我们用的是 pytest，不是 unittest", "错了，配置在 infra/ 里，不在 deploy/ 里。"),
    "ja": (
        "違います、うちは unittest ではなく pytest を使っています",
        "いや、設定は deploy/ じゃなくて infra/ にあります。",
    ),
    "ko": (
        "아니요, 우리는 unittest가 아니라 pytest를 씁니다",
        "틀렸어요, 설정은 deploy/가 아니라 infra/에 있습니다.",
    ),
}

FACT = {
    "en": (
        "our API is versioned by header, not by path",
        "This project targets Python 3.9 because of the cluster.",
        "We deploy from trunk every Tuesday.",
        "fyi the billing service is written in Go and lives in a separate repo",
        "we have two databases: Postgres for orders, Clickhouse for events",
        "All money amounts in this codebase are in cents.",
        "the public SDK is generated from openapi.yaml, so hand edits get lost",
        "our customers are mostly hospitals, so uptime matters more than features",
        "Just so you know, the mobile app still talks to the v1 endpoints.",
        "we support Firefox ESR, so no top-level await in the bundle",
    ),
    "de": (
        "unsere API wird über den Header versioniert, nicht über den Pfad",
        "Alle Beträge im Code sind in Cent.",
    ),
    "es": ("nuestra API se versiona por cabecera, no por ruta", "Desplegamos todos los martes desde trunk."),
    "fr": (
        "notre API est versionnée par en-tête, pas par chemin",
        "Nous déployons depuis trunk tous les mardis.",
    ),
    "pt": (
        "nossa API é versionada por cabeçalho, não pelo caminho",
        "A gente faz deploy toda terça a partir da trunk.",
    ),
    "it": (
        "la nostra API è versionata tramite header, non nel path",
        "Facciamo il deploy ogni martedì da trunk.",
    ),
    "nl": (
        "onze API is geversioneerd via de header, niet via het pad",
        "We deployen elke dinsdag vanaf trunk.",
    ),
    "pl": (
        "nasze API jest wersjonowane przez nagłówek, nie przez ścieżkę",
        "Wdrażamy w każdy wtorek z gałęzi trunk.",
    ),
    "ru": (
        "наш API версионируется через заголовок, а не через путь",
        "Мы деплоим каждый вторник из ветки trunk.",
    ),
    "zh": ("我们的 API 用请求头区分版本，不用路径", "我们每周二从 trunk 发布。"),
    "ja": (
        "うちの API はパスではなくヘッダーでバージョンを分けています",
        "毎週火曜日に trunk からデプロイしています。",
    ),
    "ko": ("우리 API는 경로가 아니라 헤더로 버전을 구분합니다", "우리는 매주 화요일에 trunk에서 배포합니다."),
}

PERSON = {
    "en": (
        "I'm the on-call lead for the payments team",
        "Maria owns the billing service, ask her before changing its schema.",
        "my name is Jonas, I do the frontend here",
        "I'm a data scientist, not a backend dev, so explain the SQL parts please",
        "Dr. Chen signs off on every model release.",
        "our security contact is Priya",
        "I've been writing Rust for ten years but React is new to me",
        "Tom from infra is responsible for the Terraform modules.",
        "i work in the Lisbon office, so my times are WET",
    ),
    "de": (
        "Maria ist für den Billing-Service zuständig",
        "Ich bin Data Scientist und kenne mich mit React nicht aus.",
    ),
    "es": (
        "María es la responsable del servicio de facturación",
        "Soy desarrollador backend, React es nuevo para mí.",
    ),
    "fr": (
        "Marie est responsable du service de facturation",
        "Je suis développeur backend, React est nouveau pour moi.",
    ),
    "pt": (
        "A Maria é responsável pelo serviço de cobrança",
        "Sou desenvolvedor backend, React é novo para mim.",
    ),
    "it": (
        "Maria è la responsabile del servizio di fatturazione",
        "Sono uno sviluppatore backend, React per me è nuovo.",
    ),
    "nl": (
        "Maria is verantwoordelijk voor de billing-service",
        "Ik ben backend-ontwikkelaar, React is nieuw voor mij.",
    ),
    "pl": ("Maria odpowiada za serwis rozliczeń", "Jestem programistą backendu, React jest dla mnie nowy."),
    "ru": ("Мария отвечает за сервис биллинга", "Я бэкенд-разработчик, React для меня новый."),
    "zh": ("账单服务由李梅负责", "我是后端开发，对 React 不熟。"),
    "ja": ("課金サービスの担当は田中さんです", "私はバックエンドエンジニアで、React は初めてです。"),
    "ko": ("결제 서비스 담당자는 김민수입니다", "저는 백엔드 개발자라서 React는 처음입니다."),
}

MIXED = {
    "en": (
        "can you add a retry to the fetch helper? [[and from now on put helpers like that into lib/net]]",
        "the login test is red again. [[we never mock the clock in this repo]], so find another way",
        "ok merge it. [[Always use squash merges here.]] then start on the docs",
        "I'm on the phone right now, go ahead without me. [[By the way, our staging database is read-only.]]",
        "thanks, looks great! one thing: [[we use British spelling in all user-facing text]]",
        "What does this error mean?\n```\nTypeError: x is not a function\n```\n[[Never "
        "silence errors with an empty catch.]]",
        "fix the typo in the header. [[I prefer small commits, one per change.]]",
        "run the suite for me please. [[Remember that the integration tests need docker running.]]",
    ),
    "de": (
        "Kannst du den Test reparieren? [[Und ab jetzt bitte keine Mocks mehr für die Datenbank.]]",
        "Danke, sieht gut aus! [[Wir schreiben Kommentare immer auf Englisch.]]",
    ),
    "es": (
        "¿Puedes arreglar el test? [[Y a partir de ahora nada de mocks para la base de datos.]]",
        "Gracias, perfecto. [[Siempre escribimos los comentarios en inglés.]]",
    ),
    "fr": (
        "Tu peux réparer le test ? [[Et désormais, plus de mocks pour la base de données.]]",
        "Merci, parfait. [[On écrit toujours les commentaires en anglais.]]",
    ),
    "pt": (
        "Pode arrumar o teste? [[E a partir de agora nada de mocks para o banco.]]",
        "Valeu, ficou ótimo. [[Sempre escrevemos os comentários em inglês.]]",
    ),
    "it": ("Puoi sistemare il test? [[E d'ora in poi niente mock per il database.]]",),
    "nl": ("Kun je de test repareren? [[En gebruik vanaf nu geen mocks meer voor de database.]]",),
    "pl": ("Możesz naprawić ten test? [[I od teraz żadnych mocków bazy danych.]]",),
    "ru": ("Можешь починить тест? [[И впредь никаких моков для базы данных.]]",),
    "zh": (
        "能修一下这个测试吗？[[另外以后数据库都不要用 mock。]]",
        "谢谢，很好。[[我们的注释始终用英文写。]]",
    ),
    "ja": (
        "このテストを直せますか？[[今後はデータベースのモックは使わないでください。]]",
        "ありがとう、いいですね。[[コメントは常に英語で書きます。]]",
    ),
    "ko": ("이 테스트 좀 고쳐 줄래? [[그리고 앞으로 데이터베이스는 목을 쓰지 마세요.]]",),
}

REMEMBER = {
    "en": (
        "remember that the staging password rotates on Mondays",
        "Note for later: the export job must not run during market hours.",
        "keep in mind we have no IPv6 in the datacenter",
        "please memorize: releases are tagged without the v prefix",
        "for the record, the old parser stays until 2027",
        "don't forget that our CI runners have only 4 GB of memory",
        "save this to memory: the demo tenant is acme-demo",
        "important: the fixtures are shared with the mobile team, so never rename them",
        "make a note: customer ids are strings, even when they look like numbers",
    ),
    "de": (
        "merk dir, dass das Staging-Passwort montags wechselt",
        "Denk daran: Der Export darf nicht während der Handelszeiten laufen.",
    ),
    "es": (
        "recuerda que la contraseña de staging cambia los lunes",
        "Ten en cuenta que en el centro de datos no hay IPv6.",
    ),
    "fr": (
        "souviens-toi que le mot de passe de staging change le lundi",
        "Retiens bien : l'export ne doit pas tourner pendant les heures de marché.",
    ),
    "pt": (
        "lembre-se de que a senha de staging muda às segundas",
        "Tenha em mente que não temos IPv6 no datacenter.",
    ),
    "it": (
        "ricorda che la password di staging cambia il lunedì",
        "Tieni presente che nel datacenter non c'è IPv6.",
    ),
    "nl": (
        "onthoud dat het staging-wachtwoord op maandag wisselt",
        "Houd er rekening mee dat er geen IPv6 is.",
    ),
    "pl": (
        "zapamiętaj, że hasło do stagingu zmienia się w poniedziałki",
        "Pamiętaj, że w serwerowni nie ma IPv6.",
    ),
    "ru": (
        "запомни, что пароль от стейджинга меняется по понедельникам",
        "Имей в виду: в дата-центре нет IPv6.",
    ),
    "zh": ("请记住，staging 的密码每周一更换", "记一下：导出任务不能在交易时间运行。"),
    "ja": (
        "ステージングのパスワードは毎週月曜に変わることを覚えておいてください",
        "メモしておいて：エクスポートは取引時間中に動かしてはいけない。",
    ),
    "ko": ("스테이징 비밀번호는 월요일마다 바뀐다는 걸 기억해 줘", "메모해 둬: 데이터센터에는 IPv6가 없어."),
}

PREFERENCE = {
    "en": (
        "I prefer short answers, no summaries at the end",
        "i'd rather have explicit types than clever inference",
        "I like my tests next to the code, not in a separate tree",
        "I don't like it when you rewrite whole files, small diffs please",
        "my editor is helix, so skip the VS Code tips",
        "we prefer composition over inheritance in this codebase",
        "I hate trailing summaries",
        "Personally I favour early returns over nested ifs.",
        "I want you to explain your plan before you edit files",
        "we're not fans of mocks here, real fakes are better",
    ),
    "de": (
        "ich bevorzuge kurze Antworten ohne Zusammenfassung",
        "Mir sind kleine Diffs lieber als große Umbauten.",
    ),
    "es": ("prefiero respuestas cortas sin resumen", "Me gustan los diffs pequeños, no las reescrituras."),
    "fr": ("je préfère des réponses courtes sans résumé", "J'aime les petits diffs, pas les réécritures."),
    "pt": ("prefiro respostas curtas, sem resumo", "Gosto de diffs pequenos, não de reescritas."),
    "it": ("preferisco risposte brevi senza riassunto", "Mi piacciono i diff piccoli, non le riscritture."),
    "nl": (
        "ik heb liever korte antwoorden zonder samenvatting",
        "Ik hou van kleine diffs, niet van herschrijvingen.",
    ),
    "pl": (
        "wolę krótkie odpowiedzi bez podsumowania",
        "Preferuję małe diffy zamiast przepisywania całych plików.",
    ),
    "ru": ("я предпочитаю короткие ответы без итогов", "Мне нравятся маленькие диффы, а не переписывание."),
    "zh": ("我喜欢简短的回答，不要总结", "我更喜欢小的改动，而不是整体重写。"),
    "ja": ("短い答えのほうが好みです、まとめは不要です", "大きな書き換えより小さな差分が好きです。"),
    "ko": ("저는 요약 없이 짧은 답변을 선호합니다", "전체를 다시 쓰는 것보다 작은 변경을 좋아해요."),
}

ENVIRONMENT = {
    "en": (
        "the dev database runs on port 5433 on this machine",
        "I'm on an M2 Mac, so no CUDA here",
        "our CI runs on GitHub Actions with self-hosted runners",
        "Production is on GKE in europe-west3.",
        "we're behind a corporate proxy, so pip needs the internal mirror",
        "my shell is fish, so export doesn't work",
        "the staging cluster has only two nodes",
        "Local services are started with `make up`, docker compose is not installed.",
        "this box has no root access, everything goes into ~/.local",
    ),
    "de": (
        "die Entwicklungsdatenbank läuft auf Port 5433",
        "Unsere CI läuft auf GitLab mit eigenen Runnern.",
    ),
    "es": (
        "la base de datos de desarrollo corre en el puerto 5433",
        "Nuestra CI corre en GitLab con runners propios.",
    ),
    "fr": (
        "la base de développement tourne sur le port 5433",
        "Notre CI tourne sur GitLab avec nos propres runners.",
    ),
    "pt": ("o banco de desenvolvimento roda na porta 5433", "Nossa CI roda no GitLab com runners próprios."),
    "it": ("il database di sviluppo gira sulla porta 5433", "La nostra CI gira su GitLab con runner propri."),
    "nl": ("de ontwikkeldatabase draait op poort 5433", "Onze CI draait op GitLab met eigen runners."),
    "pl": ("baza deweloperska działa na porcie 5433", "Nasze CI działa na GitLabie z własnymi runnerami."),
    "ru": ("база для разработки работает на порту 5433", "Наш CI работает на GitLab со своими раннерами."),
    "zh": ("开发数据库跑在 5433 端口", "我们的 CI 在 GitLab 上，用的是自建 runner。"),
    "ja": (
        "開発用データベースはポート 5433 で動いています",
        "うちの CI は GitLab の自前ランナーで動いています。",
    ),
    "ko": ("개발용 데이터베이스는 5433 포트에서 돌아갑니다", "우리 CI는 자체 러너로 GitLab에서 돌아갑니다."),
}

DECISION = {
    "en": (
        "we decided to drop Windows support because nobody uses it",
        "We went with SQLite instead of Postgres since the app has to run offline.",
        "the team agreed on trunk-based development, long branches cost us too much",
        "we settled on uuid v7 for ids so that they sort by time",
        "after the outage we chose to keep two replicas per region",
        "we're moving off Kafka to NATS, ops couldn't keep it alive",
        "Decision: no ORM in the hot path, it allocates too much.",
        "we stick with Node 18 until the Lambda runtime supports 22",
    ),
    "de": (
        "wir haben uns für SQLite entschieden, weil die App offline laufen muss",
        "Entscheidung: kein ORM im heißen Pfad, es alloziert zu viel.",
    ),
    "es": ("decidimos usar SQLite porque la app tiene que funcionar sin conexión",),
    "fr": ("on a décidé de prendre SQLite parce que l'app doit marcher hors ligne",),
    "pt": ("decidimos usar SQLite porque o app precisa funcionar offline",),
    "it": ("abbiamo deciso di usare SQLite perché l'app deve funzionare offline",),
    "nl": ("we hebben besloten SQLite te gebruiken omdat de app offline moet werken",),
    "pl": ("zdecydowaliśmy się na SQLite, bo aplikacja musi działać offline",),
    "ru": ("мы решили взять SQLite, потому что приложение должно работать офлайн",),
    "zh": ("我们决定用 SQLite，因为应用必须离线运行",),
    "ja": ("アプリはオフラインで動く必要があるので、SQLite を使うことに決めました",),
    "ko": ("앱이 오프라인에서 동작해야 해서 SQLite를 쓰기로 결정했습니다",),
}

REFERENCE = {
    "en": (
        "the runbook is at https://wiki.example.com/runbooks/payments",
        "Bugs are tracked in Linear under the INGEST project.",
        "the design doc for the scheduler is docs/rfc/014-scheduler.md",
        "our style guide lives in the handbook repo, under guides/python",
        "you can find the load test dashboards in Grafana, folder 'perf'",
        "the API reference is generated into site/api by make docs",
        "incidents go to the #inc-payments channel",
        "The glossary of domain terms is in docs/terms.md.",
    ),
    "de": ("das Runbook liegt unter https://wiki.example.com/runbooks/zahlungen",),
    "es": ("el runbook está en https://wiki.example.com/runbooks/pagos",),
    "fr": ("le runbook se trouve sur https://wiki.example.com/runbooks/paiements",),
    "pt": ("o runbook fica em https://wiki.example.com/runbooks/pagamentos",),
    "it": ("il runbook si trova su https://wiki.example.com/runbooks/pagamenti",),
    "nl": ("het runbook staat op https://wiki.example.com/runbooks/betalingen",),
    "pl": ("runbook jest pod adresem https://wiki.example.com/runbooks/platnosci",),
    "ru": ("ранбук лежит на https://wiki.example.com/runbooks/platezhi",),
    "zh": ("运维手册在 https://wiki.example.com/runbooks/payments",),
    "ja": ("ランブックは https://wiki.example.com/runbooks/payments にあります",),
    "ko": ("런북은 https://wiki.example.com/runbooks/payments 에 있습니다",),
}
