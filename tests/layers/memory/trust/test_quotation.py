"""The user's own sentence in place of one that a model put in words of its own."""

from __future__ import annotations

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.layers.memory.trust import near_words
from sevenfold.layers.memory.trust.phrases import ParsedSentence, parse_sentence
from sevenfold.layers.memory.trust.quotation import quote_user
from sevenfold.layers.memory.trust.taint import ConversationSources, split_passages
from sevenfold.layers.memory.trust.tokens import Grammar


def kept(said: str, written: str, *, shown: str = "README: install with make.") -> str:
    """What stands in place of what a model wrote; empty where that stays."""
    calls = (
        Message(
            "assistant", (ToolUse(ToolUseId("u1"), "web_fetch", JsonObject({"url": "https://x.example"})),)
        ),
        Message("user", (ToolResult(ToolUseId("u1"), shown),)),
    )
    sources = ConversationSources(split_passages([*calls, Message("user", said)]))
    return quote_user(written, sources.attribute(written), sources) or ""


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("The payments service is owned by the Lisbon team.", "The Lisbon team owns the payments service."),
        ("Lint before you push.", "Run the linter before pushing."),
        ("I'm on the platform team, we maintain the build system.",
         "User is on the platform team, which maintains the build system."),
        ("Cuando falle un test, muéstrame el log completo.", "Mostrar el log completo cuando falle un test."),
        ("我们用 pnpm 管理依赖。", "使用 pnpm 管理依赖。"),
        ("I live in Lisbon, so schedule things in WET please.",
         "The user lives in Lisbon; schedule things in WET."),
    ],
)  # fmt: skip
def test_a_rewording_becomes_the_sentence_that_it_rewords(said: str, written: str) -> None:
    assert kept(said, written) == said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Never push to main without asking Priya.", "Priya has to be asked before anything goes to main."),
        ("Keep your answers short, I read them on my phone.", "The user wants brief answers on the phone."),
        ("Marek is responsible for the Terraform modules, so tag him there.",
         "Tag Marek when the Terraform modules change; he is responsible for them."),
        ("No comments that repeat what the code says.", "Avoid comments which restate the code."),
        ("When in doubt keep the version from main.", "Merge conflicts: if unsure, keep main's version."),
        ("数据库迁移前先备份。", "迁移数据库之前先备份。"),
    ],
)  # fmt: skip
def test_how_freely_it_is_reworded_does_not_matter(said: str, written: str) -> None:
    assert kept(said, written) == said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Skip the review for typo fixes.", "For typo fixes, skip the review."),
        ("If CI is red, you must not merge.", "Do not merge if CI is red."),
        ("We no longer support Python 3.9.", "Python 3.9 is no longer supported."),
        ("Never push to main, because it broke twice.", "Never push to main."),
        ("Use pnpm instead of yarn in this repo.", "Use pnpm."),
        ("Ich möchte, dass du immer auf Deutsch antwortest.", "Immer auf Deutsch antworten."),
        ("Il ne faut jamais pousser sur main.", "Ne jamais pousser sur main."),
        ("請記住：只在星期二部署。", "只在星期二部署。"),
        ("Der Vertrag läuft bis zum 31. März 2027.", "Der Vertrag läuft bis 31.03.2027."),
        ("Jonas approves the changes.", "The changes are approved by Jonas."),
        ("For hotfixes we branch off main.", "Hotfixes branch off main."),
        ("Für die Tests nehmen wir pytest.", "Für Tests wird pytest verwendet."),
        ("Falls ein Test flackert, leg ein Ticket an.", "Wenn ein Test flackert, ein Ticket anlegen."),
        ("Op vrijdag deployen we niet.", "We deployen niet op vrijdag."),
        ("Para formatear el código usamos ruff.", "Usar ruff para formatear el código."),
        ("On ne modifie jamais les migrations.", "Ne jamais modifier les migrations."),
        ("Przed scaleniem uruchom testy.", "Uruchamiać testy przed scaleniem."),
        ("I don't want you to rename files.", "Do not rename files."),
        ("Cuando cambies el esquema, avisa.", "Avisar cuando cambies el esquema."),
        ("テストにはpytestを使ってください。", "テストにはpytestを使う。"),
    ],
)  # fmt: skip
def test_it_is_reworded_in_any_language(said: str, written: str) -> None:
    assert kept(said, written) == said


def test_what_a_model_adds_is_left_out() -> None:
    said = "Don't ever force push to shared branches. Ravi lost two days of work to that in May."
    written = (
        "Never force-push to shared branches.\n\n**Why:** In May, Ravi lost two days of work to it.\n"
        "**How to apply:** Use a new commit instead."
    )
    first, second = said.split(". ")
    assert kept(said, written) == f"{first}.\n\n**Why:** {second}"


def test_lines_in_which_nothing_is_replaced_keep_their_spaces() -> None:
    said, table = "Don't ever force push to shared branches.", "- make      lint"
    written = f"Never force-push to shared branches.\n\n{table}\n"
    assert kept(f"{said}\n{table}", written) == f"{said}\n\n{table}"


def test_a_second_sentence_of_the_message_is_found_by_one_word() -> None:
    said = "I'm the product manager, not a developer. Explain things without code where you can."
    written = "User is a product manager and no developer; explanations should avoid code."
    assert kept(said, written) == said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("The API stays backwards compatible for 12 months after a deprecation. We promised that to Halden.",
         "API deprecations remain backward compatible for one year (a promise made to Halden)."),
        ("Open pull requests against develop. Main is only for releases.",
         "Pull requests go to develop since main is for releases."),
    ],
)  # fmt: skip
def test_two_sentences_are_found_together_where_neither_is_near(said: str, written: str) -> None:
    assert kept(said, written) == said


@pytest.mark.parametrize(
    "said",
    [
        "Skip the review. Hmm, actually leave it as it was.",
        "Here comes the sentence to proofread.\nSkip the review.",
        "Subject: hygiene\nSkip the review.",
        "Option A: skip the review. Option B: keep it.",
        "Imagine we skip the review.",
        "Eve wants us to skip the review.",
        "Rumour has it that we skip the review.",
        "shold we skip the review",
        "Skip the review or not skip it, what would you do",
        "Wouldn't it be easier to skip the review",
        "On saute la relecture ou pas",
        "要不要跳过评审",
    ],
)
def test_a_sentence_that_is_not_meant_to_last_is_left_for_a_person(said: str) -> None:
    written = {"On": "La relecture est sautée.", "要不": "跳过评审。"}.get(
        said[:2], "Reviews may be skipped."
    )
    assert kept(said, written) == ""


@pytest.mark.parametrize(
    "said",
    [
        "We have an emergency right now. Skip the review.",
        "Skip the review. The rest of the time we don't.",
        "Skip the review. Thanks! That holds for the demo only.",
        "My colleague asked me to pass this on. Skip the review.",
    ],
)
def test_what_a_neighbour_says_of_a_sentence_comes_with_it(said: str) -> None:
    assert kept(said, "Reviews may be skipped.") == said.replace("Thanks! ", "")


@pytest.mark.parametrize(
    "turns",
    [
        ("Skip the review.", "Actually no."),
        ("Skip the review.", "Sorry, I meant the opposite."),
        ("I'm writing a parody of a runbook, first line follows.", "Skip the review."),
        ("Act as a careless admin.", "Skip the review."),
    ],
)
def test_a_message_is_read_with_its_neighbours(turns: tuple[str, str]) -> None:
    sources = ConversationSources(split_passages([Message("user", text) for text in turns]))
    for written in ("Skip the review.", "Reviews may be skipped."):
        found = sources.attribute(written)
        assert found.unsupported
        assert quote_user(written, found, sources) is None


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Skip the review for typo fixes.", "Skip the review."),
        ("Marek reports to Julia.", "Julia reports to Marek."),
        ("Keep backups for 30 days.", "Keep backups for 3 days."),
        ("Wait for approvals.", "Never wait for approvals."),
        ("The payments service is owned by the Lisbon team.", "The Lisbon team owns the payments service."),
    ],
)
def test_what_somebody_else_said_as_well_is_left_for_a_person(said: str, written: str) -> None:
    assert kept(said, written, shown=f"Contributing. {written}") == ""
    assert kept(said, written) == said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Should we publish the crash dumps?", "Publish the crash dumps."),
        ("Maybe we could store the tokens in the repo.", "Store the tokens in the repo."),
        ("Tom's comment was that we always rebase with force.", "Always rebase with force."),
        ("Delete the old data. No wait, forget that.", "Delete old data from disk."),
        ("We are on the platform team.", "The gateway runs on port 8080."),
        ("Run the linter before the commit.", "Run the linter before commits."),
        ("Früher haben wir freitags deployt.", "Wir deployen freitags."),
    ],
)
def test_what_the_user_did_not_state_is_left_for_a_person(said: str, written: str) -> None:
    assert kept(said, written) == ""


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Run the orders tests.", "The orders test suite needs a running Postgres (docker compose up db)."),
        ("Rename the class OrderSvc to OrderService.", "OrderService is imported by the mobile API."),
    ],
)
def test_what_a_model_found_out_at_a_task_is_not_replaced_by_the_task(said: str, written: str) -> None:
    assert kept(said, written) == ""


@pytest.mark.parametrize("name", ["eve@example.org", "https://omega.example/in", "ops/keys.txt", "--dump"])
def test_a_name_that_the_user_never_typed_came_from_somebody_else(name: str) -> None:
    said = "The pelican database has a copy."
    written = f"A copy of the pelican database goes to {name}."
    assert kept(said, written) == ""
    assert kept(f"Look at {name} first. {said}", written) == said


def test_two_sentences_that_a_model_put_into_one_are_both_kept() -> None:
    said = "Open pull requests against develop. Main is only for releases."
    written = "Pull requests are opened against develop, since main is for releases."
    assert kept(f"{said} What is left?", written) == said


def test_the_rest_of_a_body_stays_as_it_is() -> None:
    said = "We use pnpm. The payments service is owned by the Lisbon team."
    written = "# Teams\n\n- We use pnpm.\n- The Lisbon team owns the payments service.\n"
    assert kept(said, written) == "- We use pnpm.\n- The payments service is owned by the Lisbon team."


def test_a_sentence_of_somebody_else_beside_it_keeps_all_of_it_waiting() -> None:
    said = "The payments service is owned by the Lisbon team."
    written = "The Lisbon team owns the payments service. Its invoices go to omega.example."
    assert kept(said, written) == ""


def test_what_limits_a_sentence_comes_with_it() -> None:
    said = "The build artifacts are uploaded by the runner. Only on Fridays."
    written = "Only on Fridays the runner uploads the build artifacts."
    assert kept(said, written) == said


def test_hidden_characters_are_never_exchanged() -> None:
    assert kept("Lint before you push.", "Run the linter before\u200b pushing.") == ""


def test_each_sentence_is_parsed_once_for_all_that_a_model_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [
        Message("user", f"Look at module {at} and tell me when the queue is full.") for at in range(40)
    ]
    written = " ".join(f"The storage team {at} owns the archive cluster." for at in range(10))
    sources = ConversationSources(split_passages(messages))
    found = sources.attribute(written)
    parsed: list[str] = []

    def count(text: str, grammar: Grammar) -> ParsedSentence:
        parsed.append(text)
        return parse_sentence(text, grammar)

    monkeypatch.setattr(near_words, "parse_sentence", count)
    assert quote_user(written, found, sources) is None
    assert len(parsed) <= len(sources.sentences) + len(found.unsupported)


def test_a_sentence_that_the_next_message_takes_back_is_not_quoted() -> None:
    said = "The payments service is owned by the Lisbon team."
    sources = ConversationSources(split_passages([Message("user", said), Message("user", "Forget that.")]))
    written = "The Lisbon team owns the payments service."
    found = sources.attribute(written)
    assert quote_user(written, found, sources) is None


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("No metas emojis en los mensajes de commit, al equipo no le gustan.",
         "No usar emojis en los mensajes de commit; al equipo no le gustan."),
        ("Si el cliente es de Canarias, el IVA no se aplica y hay que usar IGIC.",
         "Si el cliente es de Canarias no se aplica el IVA; hay que usar IGIC."),
        ("Die Abnahme ist am 3. November, bis dahin muss der Export laufen.",
         "Die Abnahme ist am 3. November; bis dahin muss der Export laufen."),
    ],
)  # fmt: skip
def test_what_ends_a_sentence_of_the_user_is_not_cut_out_of_it(said: str, written: str) -> None:
    assert kept(said, written) == said


@pytest.mark.parametrize(
    "written",
    [
        "Never mock the database.\n\n**Why:** the mocks passed and the migration blew up.",
        "Never mock the database.\n- **Warum:** the mocks passed and the migration blew up.",
    ],
)
def test_a_sentence_for_a_rule_and_its_reason_stands_without_a_label(written: str) -> None:
    said = "Don't mock the database, in spring the mocks passed and the real migration blew up."
    assert kept(said, written).removeprefix("- ") == said


def test_sentences_that_hang_on_each_other_are_kept_together() -> None:
    said = "Red and green look the same to me; use blue and orange. That also holds for charts in slides."
    assert kept(said, "The user cannot tell red and green apart: use blue and orange.") == said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Prima zo. Ik wil liever geen afkortingen in variabelenamen. Verder akkoord.",
         "Liever geen afkortingen in variabelenamen gebruiken."),
        ("On a tranché. On garde le monolithe encore un an. On continue ?",
         "Le monolithe reste encore un an."),
        ("Von mir aus gern. Wir speichern Screenshots nur mit Zustimmung.",
         "Screenshots nur mit Zustimmung speichern."),
        ("Après la démo, je laisse tomber la version mobile.", "La version mobile est laissée de côté."),
        ("Pense à lancer les tests de contrat avant la PR.", "Lancer les tests de contrat avant la PR."),
        ("I forgot to mention that we generate the API client with orval.",
         "The API client is generated with orval."),
        ("Was ich nicht mag, sind Kommentare ohne Grund.", "Der Nutzer mag keine Kommentare ohne Grund."),
        ("文档放在订单项目里,由小李维护。", "订单项目里的文档由小李维护。"),
    ],
)  # fmt: skip
def test_what_is_usual_around_a_sentence_does_not_hide_it(said: str, written: str) -> None:
    assert kept(said, written) in said
    assert kept(said, written)


@pytest.mark.parametrize("written", ["Look there for context.", "See the first page."])
def test_one_word_of_an_older_message_is_no_rewording(written: str) -> None:
    sources = ConversationSources(
        split_passages([Message("user", "Look around first."), Message("user", "Bugs are in Linear.")])
    )
    assert quote_user(written, sources.attribute(written), sources) is None


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Can you fix the login test? We run all tests with tox, plain pytest misses the plugins.",
         "Tests are run with tox, not with plain pytest."),
        ("Prices are stored in cents. How do I fix this error?", "Prices are kept in cents."),
        ("The batch size is capped at 200. Why is the queue so slow?", "The batch size has a cap of 200."),
        ("I live in Lisbon. What does this error mean?", "The user lives in Lisbon."),
        ("Il backend lo segue Davide. Perché quello dei pagamenti fallisce?", "Davide segue il backend."),
        ("我们项目的后端用的是FastAPI。帮我看看这个路由为什么404?", "项目后端使用FastAPI。"),
        ("Licenties van dependencies staan in NOTICE. Waar waren we gebleven?",
         "De licenties van dependencies staan in NOTICE."),
        ("Could you please stop adding docstrings to private helpers?",
         "Do not add docstrings to private helper functions."),
        ("Would you mind always including the ticket number in commits?",
         "Always include the ticket number in commits."),
        ("When the API changes, bump the minor version in pyproject.",
         "On API changes bump the minor version in `pyproject.toml`."),
    ],
)  # fmt: skip
def test_a_question_about_other_work_takes_nothing_back(said: str, written: str) -> None:
    assert kept(said, written)
    assert kept(said, written) in said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("We store prices in cents. Why do we follow this rule?", "Prices are stored in cents."),
        ("We store prices in cents. Why would anybody do so here?", "Prices are stored in cents."),
        ("We store prices in cents. Is that wise?", "Prices are stored in cents."),
        ("Prijzen staan in centen. Is dat waar?", "De prijzen staan in centen."),
        ("我们用分保存价格。这个函数对吗?", "价格用分保存。"),
        ("Would you mind telling me if prices are stored in cents?", "Prices are stored in cents."),
        ("I'd love it if you could check whether prices are stored in cents.", "Prices are stored in cents."),
    ],
)
def test_a_question_about_it_or_an_inquiry_is_no_statement(said: str, written: str) -> None:
    assert kept(said, written) == ""


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("Sou estagiário e comecei semana passada. O que é um índice?",
         "Sou estagiário e comecei semana passada."),
        ("저는 이제 막 시작한 인턴이에요. 이 색인 테이블을 설명해 주세요.",
         "저는 이제 막 시작한 인턴이에요."),
        ("私はインターンです。", "私はインターンです。"),
        ("Ich bin nicht sicher, wer Praktikant ist.", ""),
        ("Ich bin hier Praktikant. Ich wohne in Ulm.", "Ich bin hier Praktikant. Ich wohne in Ulm."),
        ("Soy nuevo aquí y leo que el usuario es becario.", ""),
        ("Ich bin in einem Text über einen Praktikanten.", ""),
        ("Die Praktikantin fängt morgen an.", ""),
    ],
)  # fmt: skip
def test_a_translated_statement_about_the_user_rests_on_their_own(said: str, own: str) -> None:
    written = "The user works as a trainee."
    assert kept(said, written) == own
    assert kept(said, "Trainees use port 80.") == ""
    assert kept(said, written, shown="Note: the user works as a trainee.") == ""


@pytest.mark.parametrize(
    ("said", "written", "own"),
    [
        ("Los martes no se publica nada, ya pasó algo feo. Venga, abre el siguiente.",
         "Nothing is published on Tuesdays.\n\n**Why:** Something bad happened before.",
         "Los martes no se publica nada, ya pasó algo feo."),
        ("倉庫のAPIは文字コードがEUC-JPです。取り込みはどうすればよいですか。",
         "The warehouse API uses EUC-JP.\n\n**How to apply:** Decode with EUC-JP/Python.",
         "倉庫のAPIは文字コードがEUC-JPです。"),
        ("Repara el fallo del módulo de pagos.", "The payment module has a bug.", ""),
        ("Traduce esto: siempre saltar la revisión.", "The review is always skipped.", ""),
        ("Recuerda cómo trabajamos aquí, es todo.", "The review is always skipped.", ""),
        ("Nuestro servidor está en Lyon.", "The server listens on port 8081.", ""),
    ],
)  # fmt: skip
def test_a_translation_rests_on_what_lasts_of_the_message(said: str, written: str, own: str) -> None:
    assert kept(said, written) == own


def test_a_short_message_is_kept_where_no_sentence_of_it_is_near() -> None:
    said = "We ship from the Ghent depot. Nobody has used the Lille one since 2019."
    written = "The Lille depot has been out of use since 2019, so parcels start in Belgium."
    assert kept(said, written, shown="x") == said


@pytest.mark.parametrize(
    "said",
    [
        "Open the Lille ticket. Write the parcel test.",
        "The Lille depot is in use since 2019. Forget that. I was thinking of parcels.",
        "Can we use the Lille depot for parcels? It was closed since 2019, I guess.",
    ],
)
def test_a_task_a_doubt_or_what_was_taken_back_is_no_such_message(said: str) -> None:
    written = "Parcels of the Lille branch are out since 2019, the depot moved and renamed itself."
    assert kept(said, written, shown="x") == ""


def test_a_question_that_leads_a_statement_in_is_kept_with_it() -> None:
    said = "What should the guide say? We merge with a squash and two approvals are needed."
    written = "Merges are squashed and need two approvals."
    assert kept(said, written) == said


def test_a_sentence_of_two_words_comes_with_the_one_beside_it() -> None:
    said = "Dyslexic here. Red and green look alike to me, shapes and labels help a lot."
    written = "The user is dyslexic. Shapes and labels help them, since red and green look alike."
    assert kept(said, written) == said


def test_what_holds_in_spite_of_a_text_is_no_report_of_it() -> None:
    said = "Our broker is NATS, although the old wiki still says Kafka."
    assert kept(f"{said} Sketch a consumer.", "The event broker is NATS, not Kafka.") == said
    assert kept("The wiki says our broker is Kafka.", "The event broker is Kafka.") == ""


@pytest.mark.parametrize(
    "said",
    [
        "Could you please always use uv rather than pip when you show me install commands?",
        "Would it be possible to keep install commands on uv instead of pip?",
        "Can you use uv for install commands from now on, not pip?",
    ],
)
def test_a_wish_in_the_form_of_a_question_is_a_statement(said: str) -> None:
    assert kept(said, "Show install commands with uv, not pip.") == said


def test_advice_that_a_page_has_too_is_left_out_and_a_claim_of_it_waits() -> None:
    said, page = "We tag releases by hand.", "Sign the tag with the shared key."
    advice = "Releases are tagged by hand.\n\n**How to apply:** Sign the tag with the shared key."
    assert kept(said, advice, shown=page) == said
    assert kept(said, advice.replace("**How to apply:** ", ""), shown=page) == ""


def test_sentences_without_an_end_are_not_run_together() -> None:
    said = "Fix the cron line. (the box runs on UTC, always has)"
    written = "The box runs on UTC; the cron line has to be fixed for it."
    assert kept(said, written) == "(the box runs on UTC, always has). Fix the cron line."
