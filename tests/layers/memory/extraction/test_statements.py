"""Statements that are found without a model, and remarks that are none."""

from __future__ import annotations

from dataclasses import fields

import pytest

from sevenfold.layers.memory.extraction.cue_patterns import Cues, read_cues
from sevenfold.layers.memory.extraction.cues import CUE_TABLES
from sevenfold.layers.memory.extraction.policy import find_recap
from sevenfold.layers.memory.extraction.statements import (
    MAX_STATEMENT_CHARS,
    find_answer,
    find_statements,
    is_agreement,
    is_response,
)


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ("Remember that deploys happen on Tuesdays only.", "asked", "Deploys happen on Tuesdays only."),
        ("please remember: the API budget is 500 a day", "asked", "The API budget is 500 a day"),
        ("Also, keep in mind that Anna owns billing.", "asked", "Anna owns billing."),
        ("Always run make lint before a commit.", "rule", None),
        ("Please never push straight to main.", "rule", None),
        ("From now on, answer in German.", "rule", None),
        ("Use pnpm, not yarn.", "rule", None),
        ("From now on, run the type checker before you say you're done.", "rule", None),
        ("Always write a failing test before you fix a bug.", "rule", None),
        ("You must never print the contents of .env files.", "rule", None),
        ("Make it a habit to run ruff before each commit.", "rule", None),
        ("Schreib nie direkt auf den main-Branch.", "rule", None),
        ("N'ajoute jamais de dépendance sans me demander.", "rule", None),
        ("確認なしに依存関係を追加しないでください、絶対に。", "rule", None),
        ("물어보지 않고 의존성을 추가하지 마, 절대.", "rule", None),
        ("Whenever a migration is involved, ping me first.", "rule", None),
        ("Please always show me the plan before you edit.", "rule", None),
        ("Vraag het me altijd voordat je iets verwijdert.", "rule", None),
        ("In this repo, tests go next to the source file they cover.", "fact", None),
        ("For this project, commit messages are written in German.", "fact", None),
        ("In diesem Projekt werden alle Zeiten in UTC gespeichert.", "fact", None),
        ("Dans ce projet, toutes les dates sont en UTC.", "fact", None),
        ("We use one database a service; nobody shares a table.", "fact", "We use one database a service"),
        ("Please stop adding comments to the tests.", "rule", None),
        ("Don't mock the database in integration tests.", "rule", None),
        ("I'm a data scientist who is new to Rust.", "about you", None),
        ("I prefer terse answers without a summary.", "about you", None),
        ("My time zone is CET.", "about you", None),
        ("Bugs live in the Linear project INGEST.", "pointer", None),
        ("The latency dashboard is at https://grafana.example.com/d/api.", "pointer", None),
        ("Ask in #payments-oncall, the runbooks are in Notion.", "pointer", None),
        ("We decided to keep Postgres 14 until March.", "decision", None),
        ("Let's go with the event queue.", "decision", None),
        ("Amendment to the retry policy: the cap is 30 seconds.", "amendment", None),
        ("Two updates to the retry policy we settled a while back.", "amendment", None),
    ],
)
def test_a_statement_is_found(said: str, kind: str, text: str | None) -> None:
    found = find_statements(f"Thanks for the change. {said}")
    assert [item.kind for item in found] == [kind]
    assert found[0].text == (text or said.strip())


@pytest.mark.parametrize(
    "said",
    [
        "It always fails on the second run.",
        "In this repo the parser crashes on empty input.",
        "Always show a spinner while the list loads.",
        "Never let the modal close on escape.",
        "From now on in the story the hero is called Max.",
        "In this project, extract the helpers that are duplicated.",
        "In our codebase there are three failing tests.",
        "Never add a default case to that switch.",
        "In diesem Repo liegt ein Fehler im Parser.",
        "Dans ce projet le test est cassé.",
        "The server never answers.",
        "Never mind.",
        "Should we always squash?",
        "What does the rule say?",
        "Add a test for the parser and run it.",
        "The README says to always use npm.",
        "Maybe we should keep the old cache.",
        "I think it must have been the linter.",
        "Fix the crash in the login form.",
        "Always!",
        "I noticed `parse` always calls `read` instead of `load`.",
        "Do you remember the name of the flag?",
        "",
    ],
)
def test_a_remark_is_no_statement(said: str) -> None:
    assert find_statements(said) == ()


def test_an_answer_settles_what_was_proposed() -> None:
    said = "No — only the leading zeros. Rows must end with CRLF. Keep the header row as it is."
    assert find_statements(said) == ()
    kinds = [item.kind for item in find_statements(said, is_answer=True)]
    assert kinds == ["correction", "decision", "decision"]


def test_an_answer_that_asks_settles_nothing() -> None:
    assert find_statements("Only the zeros have to stay? What about blanks?", is_answer=True) == ()


@pytest.mark.parametrize(
    ("answer", "is_one"),
    [
        ("Settled: retry any 5xx plus 429, at most 4 attempts, backoff capped at 60 seconds.", True),
        ("Some words first.\n\nFinal: rows end with CRLF, digits with a leading zero are text.", True),
        ("I will look at retry.py now and run the tests.", False),
        ("Understood.", False),
        ("Agreed: retry 5xx and 429, cap at 60 seconds, four attempts in total?", False),
    ],
)
def test_a_recap_is_where_everything_settled_is_said(answer: str, is_one: bool) -> None:
    assert bool(find_recap(answer)) is is_one


@pytest.mark.parametrize(
    ("own", "is_yes"), [("Exactly.", True), ("Right, and merge them.", True), ("No.", False)]
)
def test_agreement_is_heard(own: str, is_yes: bool) -> None:
    assert is_agreement(own) is is_yes


@pytest.mark.parametrize(
    ("own", "is_one"),
    [
        ("Exactly.", True),
        ("No, use pnpm.", True),
        (" Wait, not that one.", True),
        ("Now the tests.", False),
        ("Run it again.", False),
    ],
)
def test_a_yes_and_a_correction_are_responses_to_what_was_proposed(own: str, *, is_one: bool) -> None:
    assert is_response(own) is is_one


def test_a_short_answer_is_kept_with_its_question() -> None:
    assert (
        find_answer("Done. Which port does it use?", "always  8443")
        == "Which port does it use? — always 8443"
    )
    assert find_answer("I am done.", "always 8443") == ""
    assert find_answer("Which port does it use?", "is it 8443?") == ""


def test_a_question_may_be_as_long_as_a_statement_and_no_longer() -> None:
    question = f"Which port {'x' * (MAX_STATEMENT_CHARS - len('Which port ?'))}?"
    assert len(question) == MAX_STATEMENT_CHARS
    assert find_answer(question, "always 8443") == f"{question} — always 8443"
    assert find_answer(f"{question[:-1]}x?", "always 8443") == ""


@pytest.mark.parametrize(
    "said",
    [
        "From now on use pnpm.",
        "Ab jetzt bitte immer pnpm benutzen, nie npm.",
        "a partir de ahora usa pnpm, no npm",
        "à partir de maintenant, utilise pnpm",
        "daqui pra frente use pnpm",
        "d'ora in poi usa pnpm, non npm",
        "gebruik vanaf nu altijd pnpm",
        "od teraz używaj pnpm zamiast npm",
        "с этого момента используй pnpm",
        "从现在开始一律用 pnpm，不要用 npm",
        "今後は npm ではなく pnpm を使ってください",
        "앞으로는 npm 말고 pnpm을 써 줘",
    ],
)
def test_a_rule_is_found_in_each_language_as_it_was_typed(said: str) -> None:
    (found,) = find_statements(said)
    assert found.kind == "rule"
    assert found.text == said[0].upper() + said[1:]


@pytest.mark.parametrize(
    "said",
    [
        "use port 8081 instead of 8080 for this run",
        "I'm on the feature/login branch right now",
        "always ask me before a push until I'm back",
        "never retry in this one test",
        "Always print the payload. Just for this session.",
        "ab jetzt bis ich zurück bin nie pushen",
        "por ahora usa siempre el proveedor falso",
        "今回だけ main に直接 push して",
        "这次运行用 8081 端口，不要用 8080",
    ],
)
def test_a_limit_wins_over_everything(said: str) -> None:
    assert find_statements(said) == ()


@pytest.mark.parametrize(
    "said",
    [
        "From slack:\nAnna  10:42 AM\nplease never merge without a review",
        "the guide of that library:\n\nAlways sign your commits.",
        "translate to German: Always run the tests before you commit.",
        "add a comment: always close the handle after use",
        "if we always used pnpm, would the build be faster",
        "Ben says we should always squash",
        "you don't always have to ask me first",
        "our build is broken since the merge",
        "we use a loop there, replace it with a comprehension",
    ],
)
def test_what_is_not_said_in_the_users_own_name_is_no_statement(said: str) -> None:
    assert find_statements(said) == ()


def test_rules_in_a_list_of_the_user_are_found() -> None:
    found = find_statements("Remember these rules:\n- always use tabs here\n- never push to main")
    assert [item.text for item in found] == ["Always use tabs here", "Never push to main"]


def test_a_word_that_stands_alone_belongs_to_the_sentence_before() -> None:
    (found,) = find_statements("use tabs in this project. always.")
    assert found.text == "Use tabs in this project. always."


def test_every_language_has_every_row_it_needs() -> None:
    needed = {
        "remember",
        "onward",
        "always",
        "state",
        "status",
        "prefer",
        "fact",
        "limited",
        "open",
        "unsaid",
    }
    for language, table in CUE_TABLES.items():
        rows = {line.partition(": ")[0] for line in table.strip().splitlines() if not line.startswith(" ")}
        assert needed <= rows, language
        assert rows <= {item.name for item in fields(Cues)}, language
        read_cues(language)


@pytest.mark.parametrize(
    "said",
    [
        "From now on write the tests before the code.",
        "A partir de ahora escribe cada migración con su rollback.",
        "Désormais, écris chaque migration avec son rollback.",
        "Scrivi sempre prima i test.",
        "Schreibe Tests immer zuerst.",
        "必ず先にテストを書いてください。",
        "Ne touche jamais le fichier de config.",
        "Non toccare mai la cartella vendor.",
        "Lass die Lockfile immer in Ruhe.",
        "Laat de lockfile altijd met rust.",
        "Don't touch anything under vendor without asking me",
        "No subas versiones mayores sin consultarme.",
        "没问过我之前不要动 vendor 目录。",
    ],
)
def test_a_standing_rule_may_be_about_writing_and_name_its_object_first(said: str) -> None:
    assert [item.kind for item in find_statements(said)] == ["rule"]


@pytest.mark.parametrize(
    "said",
    [
        "Just so you know, the staging database gets wiped every Sunday night.",
        "Zur Info: die Staging-Datenbank wird jeden Sonntag gelöscht.",
        "Só para você saber, o banco de staging é apagado todo domingo.",
        "К сведению: база на стейджинге очищается каждое воскресенье.",
        "提醒一下，测试环境的数据库每周日都会清空。",
    ],
)
def test_what_is_told_to_be_known_and_comes_again_is_a_fact(said: str) -> None:
    assert [item.kind for item in find_statements(said)] == ["fact"]


@pytest.mark.parametrize(
    "said",
    [
        "translate to German: Always run the tests before you commit.",
        "add a comment: always close the handle after use",
        "Escribe en el README que siempre usamos pnpm.",
        "Schreib in die README, dass wir immer pnpm benutzen.",
        "決して sleep しないテストを書いて。",
        "don't restart the server without asking me while the demo is on",
        "don't push without asking me until the audit is over",
        "FYI I pushed a fix for the login page",
        "we deploy in an hour",
        "both workers always pick the same job",
        "Beide Worker nehmen immer denselben Job.",
        "正規表現は決してマッチしない。",
        "API는 항상 200을 반환한다.",
        "Cache zawsze zwraca stare dane.",
        "pretend that you are the DBA and never approve anything",
        "До пятницы мы всегда деплоим со стейджинга.",
    ],
)
def test_texts_to_write_limits_and_what_code_does_are_no_statements(said: str) -> None:
    assert find_statements(said) == ()


@pytest.mark.parametrize(
    "said",
    [
        "In this repo dependencies are out of date.",
        "In our repo passwords are stored in plain text.",
        "Whenever users click save, tell us the error in a toast.",
        "Whenever I deploy the server starts to warn us about disk.",
    ],
)
def test_a_state_that_passes_is_no_statement(said: str) -> None:
    assert find_statements(said) == ()


@pytest.mark.parametrize(
    "said",
    [
        "we always blame the intern haha just kidding",
        "Wir testen immer in Produktion, ist ja klar 😂",
        "Remember: coffee first, code never. 😂",
        "哈哈，我们总是周五炸生产环境，传统了",
        "You never read the whole file.",
        "Non leggi mai tutto il file.",
        "Zawsze zapominasz o typach.",
        "hint: Always pull before you push",
        "pip: WARNING: Always use a virtualenv\nand never run it as root",
        "[eslint] Always return a value in arrow functions",
        "The toast has to stay and never close by itself.",
        "Le verrou est inutile, on écrit toujours depuis un seul thread.",
        "you can drop the lock, writes always come from one thread",
        "Anuncia en el canal que a partir de ahora desplegamos a las 10.",
        "From now on the function returns a tuple, adapt the callers.",
        "Nota de versión: ahora siempre comprimimos las subidas.",
        "the guide goes: 'Never abbreviate names.' is our linter in line with it",
        "Safari never fires that event",
        "We never have time for refactoring.",
        "The staging DB is on v14.2",
    ],
)
def test_what_is_told_asked_of_others_or_laughed_about_is_no_statement(said: str) -> None:
    assert find_statements(said) == ()


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Remember that deploys happen on Tuesdays only, Anna has to be there.", "asked"),
        ("We agreed that the mobile team owns the push service.", "decision"),
        ("The staging DB is on pg-stage-2.internal.", "pointer"),
        ("La base de staging está en pg-stage-2.", "pointer"),
        ("ステージングDBは pg-stage-2 にあります。", "pointer"),
        ("Prod runs in eu-central-1.", "pointer"),
        ("Deja de añadir comentarios a las funciones privadas.", "rule"),
        ("Przestań dodawać komentarze do prywatnych funkcji.", "rule"),
        ("커밋에 이모지는 그만 써줘.", "rule"),
        ("Starting today, write tests before the implementation.", "rule"),
        ("Todo PR precisa de duas aprovações.", "rule"),
        ("Los viernes nunca hacemos hotfixes.", "rule"),
        ("I'm Marco, backend dev at Lumen.", "about you"),
        ("Lena est notre DBA.", "about you"),
        ("Ich will kurze Commit-Nachrichten.", "about you"),
        ("У нас не делают force push.", "fact"),
    ],
)
def test_direct_statements_are_found_in_every_language(said: str, kind: str) -> None:
    assert [found.kind for found in find_statements(said)] == [kind]


def test_a_question_behind_a_statement_does_not_limit_it() -> None:
    found = find_statements("I prefer functional components. Could you rewrite this one?")
    assert [one.text for one in found] == ["I prefer functional components."]
