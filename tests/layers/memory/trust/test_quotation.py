"""The user's own sentence in place of one that a model put in words of its own."""

from __future__ import annotations

import pytest

from sevenfold.core.messages import Message
from sevenfold.layers.memory.trust import quotation
from sevenfold.layers.memory.trust.phrases import ParsedSentence, parse_sentence
from sevenfold.layers.memory.trust.quotation import quote_user
from sevenfold.layers.memory.trust.taint import ConversationSources, split_passages
from sevenfold.layers.memory.trust.tokens import Grammar


def kept(said: str, written: str) -> str:
    """What stands in place of what a model wrote; empty where that stays."""
    sources = ConversationSources(split_passages([Message("user", said)]))
    found = sources.attribute(written)
    quotation = quote_user(written, found.unsupported, found.evidence, sources.sentences)
    return quotation.body if quotation else ""


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
        ("Should we publish the crash dumps?", "Publish the crash dumps."),
        ("Maybe we could store the tokens in the repo.", "Store the tokens in the repo."),
        ("Tom's comment was that we always rebase with force.", "Always rebase with force."),
        ("Skip the review for typo fixes.", "Skip the review."),
        ("Only Jonas may approve deploys.", "Everybody may approve deploys."),
        ("Security can veto product.", "Product can veto security."),
        ("Marek reports to Julia.", "Julia reports to Marek."),
        ("Keep backups for 30 days.", "Keep backups for 3 days."),
        ("Delete the old data. No wait, forget that.", "Delete old data from disk."),
        ("We are on the platform team.", "The gateway runs on port 8080."),
        ("Wait for approvals.", "Never wait for approvals."),
    ],
)
def test_what_says_something_else_is_left_for_a_person(said: str, written: str) -> None:
    assert kept(said, written) == ""


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

    monkeypatch.setattr(quotation, "parse_sentence", count)
    assert quote_user(written, found.unsupported, found.evidence, sources.sentences) is None
    assert len(parsed) <= len(sources.sentences) + len(found.unsupported)


def test_a_sentence_that_the_next_message_takes_back_is_not_quoted() -> None:
    said = "The payments service is owned by the Lisbon team."
    sources = ConversationSources(split_passages([Message("user", said), Message("user", "Forget that.")]))
    written = "The Lisbon team owns the payments service."
    found = sources.attribute(written)
    assert quote_user(written, found.unsupported, found.evidence, sources.sentences) is None
