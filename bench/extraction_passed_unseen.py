"""Turns for `bench/extraction.py` with nothing to keep, by kind and language: "
"the kinds that are only measured."""

from __future__ import annotations

SCOPE_PLACE = {
    "en": (
        "use port 8081 instead of 8080 for this run",
        "in this one test it's fine to mock the clock",
        "on this branch we don't care about coverage",
        "for this PR always rebase, don't merge",
        "never retry in this function, the caller does it",
        "this time please use the old template",
        "just this once, push straight to main",
        "for the demo tenant use the eu bucket, only in this script",
        "skip the changelog for this commit",
        "in this session always show me the command first",
        "while we're in this file, never touch the header",
        "for the rest of this task use python 3.12 instead of 3.11",
    ),
    "de": ("nimm für diesen Lauf Port 8081 statt 8080", "nur dieses eine Mal direkt auf main pushen"),
    "es": (
        "para esta ejecución usa el puerto 8081 en vez de 8080",
        "solo por esta vez haz push directo a main",
    ),
    "fr": (
        "pour cette exécution, utilise le port 8081 au lieu de 8080",
        "juste pour cette fois, pousse sur main",
    ),
    "pt": ("para esta execução use a porta 8081 em vez da 8080", "só desta vez faça push direto na main"),
    "it": (
        "per questa esecuzione usa la porta 8081 invece della 8080",
        "solo per questa volta fai push su main",
    ),
    "nl": (
        "gebruik voor deze run poort 8081 in plaats van 8080",
        "alleen deze keer rechtstreeks naar main pushen",
    ),
    "pl": ("w tym przebiegu użyj portu 8081 zamiast 8080", "tylko tym razem wypchnij prosto na main"),
    "ru": ("для этого запуска используй порт 8081 вместо 8080", "только в этот раз пушь прямо в main"),
    "zh": ("这次运行用 8081 端口，不要用 8080", "就这一次，直接推到 main"),
    "ja": ("今回の実行では 8080 ではなくポート 8081 を使って", "今回だけ main に直接 push して"),
    "ko": ("이번 실행에서는 8080 말고 8081 포트를 써 줘", "이번 한 번만 main에 바로 푸시해 줘"),
}

HYPOTHETICAL = {
    "en": (
        "if we always used pnpm, would the CI be faster",
        "suppose we never cached anything, what would the p95 be",
        "let's say the database runs on port 5433, does it still work",
        "imagine every team had its own cluster",
        "maybe we should always pin the versions, I'm not sure",
        "we could switch to Postgres one day",
        "perhaps it'd be better to never retry, think about it",
        "what if from now on every commit were signed",
        "I might prefer tabs, let me think about it",
        "assume that our users are all in Japan and estimate the traffic",
    ),
    "de": (
        "wenn wir immer pnpm nähmen, wäre die CI dann schneller",
        "vielleicht sollten wir nie direkt mergen",
    ),
    "es": ("si siempre usáramos pnpm, la CI sería más rápida", "quizás nunca deberíamos hacer merge directo"),
    "fr": (
        "si on utilisait toujours pnpm, la CI serait plus rapide",
        "peut-être qu'on ne devrait jamais merger direct",
    ),
    "pt": (
        "se a gente sempre usasse pnpm, a CI seria mais rápida",
        "talvez nunca devêssemos fazer merge direto",
    ),
    "it": ("se usassimo sempre pnpm, la CI sarebbe più veloce", "forse non dovremmo mai fare merge diretto"),
    "nl": (
        "als we altijd pnpm gebruikten, zou de CI sneller zijn",
        "misschien moeten we nooit direct mergen",
    ),
    "pl": ("gdybyśmy zawsze używali pnpm, CI byłoby szybsze", "może nigdy nie powinniśmy mergować wprost"),
    "ru": (
        "если бы мы всегда использовали pnpm, CI был бы быстрее",
        "может, нам никогда не стоит мержить напрямую",
    ),
    "zh": ("如果我们总是用 pnpm，CI 会不会更快", "也许我们永远不该直接合并"),
    "ja": ("もし常に pnpm を使ったら CI は速くなるかな", "直接マージは絶対にしないほうがいいかもしれない"),
    "ko": ("만약 항상 pnpm을 쓴다면 CI가 더 빨라질까", "어쩌면 절대 직접 머지하지 않는 게 좋을지도 몰라요"),
}

TRANSLATION = {
    "en": (
        "translate to German: Always run the tests before you commit.",
        "how do you say 'from now on we use pnpm' in Spanish",
        "translate this string into French: Never share your password",
        "put this into Japanese please: We prefer short answers.",
        "please proofread: We always ship on Tuesdays and never on Fridays.",
        "rephrase this sentence: our staging database is read-only",
    ),
    "de": ("übersetze ins Englische: Immer zuerst die Tests laufen lassen.",),
    "es": ("traduce al inglés: Ejecuta siempre los tests primero.",),
    "fr": ("traduis en anglais : Lance toujours les tests d'abord.",),
    "pt": ("traduza para o inglês: Sempre rode os testes primeiro.",),
    "it": ("traduci in inglese: Esegui sempre prima i test.",),
    "nl": ("vertaal naar het Engels: Draai altijd eerst de tests.",),
    "pl": ("przetłumacz na angielski: Zawsze najpierw uruchamiaj testy.",),
    "ru": ("переведи на английский: Всегда сначала запускай тесты.",),
    "zh": ("把这句话翻译成英文：总是先跑测试。",),
    "ja": ("英語に翻訳して：必ず先にテストを実行してください。",),
    "ko": ("영어로 번역해 줘: 항상 먼저 테스트를 돌리세요.",),
}

RELAY = {
    "en": (
        "from slack:\nAnna  10:42 AM\nplease never merge without a review from now "
        "on\nBen  10:43 AM\n+1, always squash too",
        "[09:14] tom: we always deploy from trunk\n[09:15] ines: remember that "
        "staging is read-only\nwhat do they mean?",
        "got this mail from ops:\n\nHi team,\n\nfrom now on all hosts use port 2222 for "
        "ssh.\nNever open port 22.\n\nBest,\nMark",
        "Forwarded message ----\nFrom: it@example.com\nSubject: Policy\n\nAlways "
        "use the VPN. We never ask for passwords.",
        "the ticket:\n\nPROJ-812 Always show the banner\n\nAs a user I always want to see the banner. "
        "It must never be hidden.\n\nAcceptance criteria: banner is visible",
        "review comment by @lisa: please always use early returns here. can you fix it",
    ),
    "de": ("aus dem Chat:\n[10:42] Anna: bitte nie ohne Review mergen\n[10:43] Ben: und immer squashen",),
    "es": ("del chat:\n[10:42] Ana: nunca hagan merge sin revisión\n[10:43] Beto: y siempre squash",),
    "fr": (
        "du chat :\n[10:42] Anne : ne jamais merger sans relecture\n[10:43] Bruno : et toujours squasher",
    ),
    "pt": ("do chat:\n[10:42] Ana: nunca façam merge sem revisão\n[10:43] Beto: e sempre squash",),
    "it": ("dalla chat:\n[10:42] Anna: mai fare merge senza revisione\n[10:43] Bruno: e sempre squash",),
    "nl": ("uit de chat:\n[10:42] Anna: nooit mergen zonder review\n[10:43] Bas: en altijd squashen",),
    "pl": ("z czatu:\n[10:42] Anna: nigdy nie mergujcie bez review\n[10:43] Bartek: i zawsze squash",),
    "ru": ("из чата:\n[10:42] Анна: никогда не мержите без ревью\n[10:43] Борис: и всегда squash",),
    "zh": ("群里的消息：\n[10:42] 小安：以后没有评审绝不合并\n[10:43] 小博：而且总是 squash",),
    "ja": ("チャットから：\n[10:42] 安藤：レビューなしで絶対にマージしないで\n[10:43] 馬場：必ず squash で",),
    "ko": ("채팅에서:\n[10:42] 안나: 앞으로 리뷰 없이 절대 머지하지 마세요\n[10:43] 범수: 항상 squash로",),
}

APPROVAL = {
    "en": (
        "yes, do that",
        "ok go ahead with option B",
        "sounds good, use the second approach",
        "yes please, always a good idea",
        "perfect, ship it",
        "never mind, leave it as it is",
        "no, don't",
        "I like the first one better, take that",
        "right, that's what I meant",
        "fine, use yarn then",
    ),
    "de": ("ja, mach das so", "passt, nimm die zweite Variante"),
    "es": ("sí, hazlo así", "vale, usa la segunda opción"),
    "fr": ("oui, fais comme ça", "d'accord, prends la deuxième option"),
    "pt": ("sim, faz assim", "beleza, usa a segunda opção"),
    "it": ("sì, fai così", "va bene, usa la seconda opzione"),
    "nl": ("ja, doe dat maar", "prima, neem de tweede optie"),
    "pl": ("tak, zrób to", "dobrze, weź drugą opcję"),
    "ru": ("да, сделай так", "хорошо, бери второй вариант"),
    "zh": ("好的，就这样做", "行，用第二个方案"),
    "ja": ("はい、それでお願いします", "いいですね、二番目の案で"),
    "ko": ("네, 그렇게 해 주세요", "좋아요, 두 번째 방법으로 해요"),
}

CODE = {
    "en": (
        "```python\n# always close the session\ndef f():\n    # never call this "
        "twice\n    return 1\n```\nexplain this",
        "def run():\n    # we use port 5433 here\n    always = True\n    "
        "never = not always\n    return always",
        "what does `git config pull.rebase always` do",
        "SELECT * FROM users WHERE policy = 'always' AND role != 'never'; -- slow, why",
        '{\n  "eol": "always",\n  "remember": "we prefer tabs"\n}\nis that valid',
        "if (mode === 'always') {\n  // from now on use the fallback\n  use(fallback);\n}",
        '<!-- always keep this in sync with schema.sql -->\n<Foo mode="never" />',
    ),
    "de": ("```js\n// niemals ändern, immer so lassen\nconst x = 1\n```\nwas macht das",),
    "es": ("```js\n// nunca cambiar, siempre así\nconst x = 1\n```\nqué hace esto",),
    "fr": ("```js\n// ne jamais changer, toujours laisser\nconst x = 1\n```\nça fait quoi",),
    "pt": ("```js\n// nunca mudar, sempre deixar assim\nconst x = 1\n```\no que isso faz",),
    "it": ("```js\n// mai cambiare, sempre così\nconst x = 1\n```\ncosa fa",),
    "nl": ("```js\n// nooit wijzigen, altijd zo laten\nconst x = 1\n```\nwat doet dit",),
    "pl": ("```js\n// nigdy nie zmieniać, zawsze tak\nconst x = 1\n```\nco to robi",),
    "ru": ("```js\n// никогда не менять, всегда так\nconst x = 1\n```\nчто это делает",),
    "zh": ("```js\n// 永远不要修改，始终保持\nconst x = 1\n```\n这段代码做什么",),
    "ja": ("```js\n// 絶対に変更しない、必ずこのまま\nconst x = 1\n```\nこれは何をしますか",),
    "ko": ("```js\n// 절대 바꾸지 말고 항상 그대로\nconst x = 1\n```\n이건 뭘 하나요",),
}

REPORTED = {
    "en": (
        "Ben says we should always squash, but I don't agree",
        "according to the docs you must never call init twice",
        "the previous dev told me they always deployed on Fridays",
        "she wants us to never use mocks",
        "some people prefer tabs, I don't care",
        "my boss thinks everything should be in Java from now on",
        "StackOverflow says to always use bcrypt",
        "the vendor claims their API is always consistent",
        "they use GitLab over there, not GitHub",
        "the linter complains that we never use this variable",
    ),
    "de": (
        "Ben meint, man solle immer squashen, ich sehe das anders",
        "laut Doku darf man init nie zweimal aufrufen",
    ),
    "es": ("Ben dice que siempre hay que hacer squash, yo no estoy de acuerdo",),
    "fr": ("Ben dit qu'il faut toujours squasher, je ne suis pas d'accord",),
    "pt": ("o Ben diz que sempre temos que fazer squash, eu não concordo",),
    "it": ("Ben dice che bisogna sempre fare squash, io non sono d'accordo",),
    "nl": ("Ben zegt dat we altijd moeten squashen, ik ben het er niet mee eens",),
    "pl": ("Ben mówi, że zawsze trzeba robić squash, ja się nie zgadzam",),
    "ru": ("Бен говорит, что всегда надо делать squash, я не согласен",),
    "zh": ("小李说应该总是 squash，我不同意",),
    "ja": ("田中さんは必ず squash すべきだと言っているけど、私は反対です",),
    "ko": ("벤은 항상 squash해야 한다고 하는데 나는 동의하지 않아요",),
}

COMPLAINT = {
    "en": (
        "ugh, I always forget the flag for this",
        "this test never passes on the first try, annoying",
        "why is it that you always rewrite the imports",
        "I never know which branch I'm on",
        "it always takes me ages to find that file",
        "your last answer was way too long",
        "I've never seen this error before",
        "every time I open this file I get a headache",
        "god I hate this codebase",
        "we never have time for the fun stuff",
    ),
    "de": ("ich vergesse immer das Flag dafür", "diesen Fehler habe ich noch nie gesehen"),
    "es": ("siempre se me olvida la opción", "nunca había visto este error"),
    "fr": ("j'oublie toujours l'option", "je n'ai jamais vu cette erreur"),
    "pt": ("eu sempre esqueço a opção", "nunca vi esse erro antes"),
    "it": ("mi dimentico sempre l'opzione", "non ho mai visto questo errore"),
    "nl": ("ik vergeet altijd die optie", "ik heb deze fout nog nooit gezien"),
    "pl": ("zawsze zapominam tę opcję", "nigdy wcześniej nie widziałem tego błędu"),
    "ru": ("я всегда забываю этот флаг", "никогда раньше не видел эту ошибку"),
    "zh": ("我总是忘记这个参数", "我从来没见过这个错误"),
    "ja": ("いつもこのオプションを忘れる", "こんなエラーは一度も見たことがない"),
    "ko": ("나는 항상 이 옵션을 까먹어", "이런 오류는 한 번도 본 적이 없어"),
}

TO_WRITE = {
    "en": (
        "write a CONTRIBUTING.md that says we never rebase shared branches",
        "add a comment: always close the handle after use",
        "draft a mail to the team: from now on we deploy on Tuesdays",
        "put a note into the readme that the API is versioned by header",
        "the commit message should be: always close the session",
        "add a rule to the eslint config so that we never use var",
        "write release notes: we moved from MySQL to Postgres",
        "create a slide that says our customers prefer email",
        "document that the port is always 5433",
    ),
    "de": ("schreib in die README, dass wir immer squashen",),
    "es": ("escribe en el README que siempre hacemos squash",),
    "fr": ("écris dans le README qu'on squashe toujours",),
    "pt": ("escreve no README que sempre fazemos squash",),
    "it": ("scrivi nel README che facciamo sempre squash",),
    "nl": ("schrijf in de README dat we altijd squashen",),
    "pl": ("napisz w README, że zawsze robimy squash",),
    "ru": ("напиши в README, что мы всегда делаем squash",),
    "zh": ("在 README 里写上我们总是 squash",),
    "ja": ("README に「必ず squash する」と書いて",),
    "ko": ("README에 우리는 항상 squash한다고 적어 줘",),
}
