"""Models of one kind behave alike: one of each kind is always run, all of them in `make stories`."""

from __future__ import annotations

import pytest

from sevenfold.core.models import MODELS, Model


def traits_of(model: Model) -> tuple[object, ...]:
    """What a history can depend on. Tests give all models one small window, and prices matter to none."""
    thinking = (model.has_preserved_thinking, model.drops_thinking, model.enforces_prefix)
    return (*thinking, model.takes_system_role, model.takes_prefill, model.tokenizer)


def choose_models(turn: int = 0) -> set[str]:
    """One of each kind, another one at each turn."""
    kinds: dict[tuple[object, ...], list[str]] = {}
    for model in MODELS:
        kinds.setdefault(traits_of(model), []).append(model.name)
    return {names[turn % len(names)] for names in kinds.values()}


def marks_of(model: Model, turn: int = 0) -> list[pytest.MarkDecorator]:
    return [] if model.name in choose_models(turn) else [pytest.mark.story]


every_model = pytest.mark.parametrize(
    "model", [pytest.param(model, id=model.name, marks=marks_of(model)) for model in MODELS]
)
