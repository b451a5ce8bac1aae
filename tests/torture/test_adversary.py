"""The adversary rigs find nothing, and find each defence that is taken away."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.agent.sandbox import folders
from sevenfold.agent.subagents import definition_files
from sevenfold.cli import screen
from sevenfold.store.project.trust import Consent, TrustStore
from tests.torture.adversary import ADVERSARIES
from tests.torture.adversary_repository import run_repository
from tests.torture.adversary_terminal import run_terminal
from tests.torture.rig import Orders, Outcome, Progress, Rig

pytestmark = pytest.mark.torture


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders("tiny", 1, tmp_path, Progress(quiet=True))


def agreed(*_: object) -> Consent:
    return "agreed"


def forget(*_: object) -> None:
    """Keeps nothing."""


def nobody(_: object) -> None:
    """Knows of none."""


def as_it_is(text: str) -> str:
    return text


def told(lines: list[Outcome]) -> str:
    return "\n".join(text for line in lines for text in line.shown)


@pytest.mark.parametrize("rig", ADVERSARIES.values(), ids=ADVERSARIES)
def test_no_adversary_gets_in(rig: Rig, orders: Orders) -> None:
    found = rig(orders)
    assert told(found) == ""
    assert all(line.count or line.skipped for line in found)


def test_answers_that_are_taken_for_a_yes_are_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrustStore, "find", agreed)
    assert "ran" in told(run_repository(orders))


def test_refusals_that_are_not_kept_are_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrustStore, "refuse", forget)
    assert "a refusal was forgotten" in told(run_repository(orders))


def test_a_built_in_agent_that_is_replaced_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition_files, "find_built_in", nobody)
    assert "took another's place" in told(run_repository(orders))


def test_files_that_are_written_unasked_are_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "explain_guarded_name", nobody)
    all_modes = Orders("short", 1, orders.place, Progress(quiet=True))
    assert "was written unasked" in told(run_repository(all_modes))


def test_text_that_is_not_escaped_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "escape_controls", as_it_is)
    monkeypatch.setattr(screen, "escape_painted", as_it_is)
    assert "answer passes" in told(run_terminal(orders))
