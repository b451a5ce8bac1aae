"""What the form of a prompt says of whether a memory is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.layers.memory.recall.asking import OTHER_FACTOR, weigh_asking
from sevenfold.layers.memory.recall.finder import recall
from sevenfold.layers.memory.recall.policy import OWN_QUESTION_FACTOR, QUESTION_FACTOR
from sevenfold.store.memory.directory import MemoryDir

IDLE = (
    "thanks for the dashboard fix",
    "great, the deploy works now",
    "love the new labels",
    "go on with the export",
    "commit the changes of the alert service",
    "put the old icon back",
    "write a limerick about a satellite",
    "translate 'the gate is closed' to French",
    "what is a message broker?",
    "explain the difference between a queue and a stack",
    "turn this into a checklist for the release",
    "start with the invoice page",
    "mach weiter mit dem Export",
    "merci pour la carte",
    "好的,继续部署",
)
ASKED = (
    "where does our staging database run?",
    "wo liegt unser Schema?",
    "who renews the certificate for the cooperative?",
    "quel est notre serveur de test ?",
    "どこに本番サーバーがありますか?",
)


@pytest.mark.parametrize("prompt", IDLE)
def test_thanks_go_aheads_and_questions_about_the_world_ask_for_nothing(prompt: str) -> None:
    assert weigh_asking(prompt) <= 0.4


@pytest.mark.parametrize("prompt", ASKED)
def test_a_question_asks_for_what_was_noted(prompt: str) -> None:
    assert weigh_asking(prompt) in (QUESTION_FACTOR, OWN_QUESTION_FACTOR)


def test_an_edit_of_the_text_at_hand_asks_for_less_than_another() -> None:
    assert weigh_asking("rename this field to value") < weigh_asking("rename the billing topic") < 1


def test_a_prompt_of_no_known_form_asks_for_less_than_a_question_and_more_than_an_edit() -> None:
    prompt = "the upstream limits our rate, restore the intended budget of attempts"
    assert weigh_asking(prompt) == weigh_asking("") == OTHER_FACTOR
    assert weigh_asking("rename the billing topic") < OTHER_FACTOR < QUESTION_FACTOR


def test_a_thank_you_that_goes_on_with_a_question_is_a_question() -> None:
    assert weigh_asking("great, and where do we keep the backups?") == OWN_QUESTION_FACTOR


def test_the_same_word_brings_a_memory_to_a_question_and_not_to_thanks(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add("grafana", "Dashboards are provisioned from ops/grafana; edits in Grafana are lost.")
        assert recall(memory, "where do we edit a dashboard?", environ=environ)
        assert recall(memory, "thanks for the dashboard fix", environ=environ) == ()
